"""Does an output speak of what only its context had: an earlier attempt, feedback, a hint, whoever gave it?

    "As the hint says, subtract last."                 the hint
    "My previous answer of 12 forgot the 5."           an attempt
    "根据反馈，应当先减去 5。"                              feedback
    "12+9=21. Wait, that is wrong: 12+8=20."           nothing: it corrects itself
    "We are told that Tom has 12 apples."              nothing: the problem tells it
    "The waiter gets the tip."                         nothing: the problem speaks of a tip

Words that the problem itself uses are no mention. Talk of a correction ("this time", "instead of adding") counts only
where the output has not derived anything yet that it could be about.
"""

from __future__ import annotations

import re

from truegold.synth.guards.openings import find_openings
from truegold.synth.guards.text import OPERATION, normal, sentences

_EARLIER = r"(?:previous|prior|earlier|preceding|former|last|past|old|rejected|failed|discarded)"
_WORK = (
    r"(?:attempts?|tries|try|submissions?|solutions?|answers?|responses?|repl(?:y|ies)|programs?|versions?|drafts?"
    r"|reasoning|derivations?|approach(?:es)?|implementations?|code|work|guess(?:es)?|conclusions?|efforts?)"
)
_ADVICE = (
    r"(?:feedback|hints?|advice|suggestions?|guidance|critiques?|corrections?|comments?|remarks?|reminders?|pointers?"
    r"|reflections?|recommendations?|instructions?|warnings?|tips?|notes?|clues?)"
)
_GIVER = (
    r"(?:reviewers?|graders?|checkers?|verifiers?|evaluators?|tutors?|teachers?|instructors?|judges?|examiners?"
    r"|assistants?|users?|test suites?|failing tests?|failed tests?)"
)
_SAYS = (
    r"(?:says?|said|states?|stated|suggests?|suggested|points? out|pointed out|notes?|noted|tells?|told|indicates?"
    r"|indicated|mentions?|mentioned|advises?|advised|recommends?|recommended|explains?|explained|shows?|showed"
    r"|reminds?|reminded|warns?|warned|requires?|asks?|asked|hints?|hinted)"
)

ALWAYS: tuple[tuple[str, str], ...] = (
    (
        "attempt",
        r"\b(?:my|your) (?:previous|prior|earlier|former|last|initial|original|first|old) [a-z]+\b"
        r"|\b(?:the )?first time (?:around|round|i)\b",
    ),
    (
        "attempt",
        r"\b(?:was|were|been|is|are) (?:marked|judged|deemed|graded|flagged|ruled|called|rejected) (?:as )?(?:wrong"
        r"|incorrect|invalid|false|mistaken)\b|\b(?:failing|failed) tests?\b"
        r"|\btests? (?:case )?(?:that )?(?:fails|failed)\b",
    ),
    ("advice", rf"\bas [a-z]+ (?:in|by|from|with) (?:the|your|this|that|my|above) (?:[a-z]+ )?{_ADVICE}\b"),
    ("attempt", rf"\b(?:my|your|the|that|this|our|a|an|in|from|than|unlike) {_EARLIER} (?:\w+ )?{_WORK}\b"),
    ("attempt", rf"\b{_EARLIER} (?:attempts?|tries|submissions?|drafts?|guess(?:es)?)\b"),
    (
        "attempt",
        r"\b(?:first|initial|original|second|third|new|next|wrong|incorrect|mistaken|flawed) (?:attempts?"
        r"|try|submissions?|drafts?)\b",
    ),
    ("attempt", rf"\b(?:my|your) (?:first|initial|original|wrong|incorrect|mistaken) {_WORK}\b"),
    (
        "attempt",
        rf"\b(?:the|this|that) (?:wrong|incorrect|mistaken|flawed|faulty|erroneous|rejected"
        rf"|failed) (?:\w+ )?{_WORK}\b",
    ),
    (
        "attempt",
        rf"\b(?:the )?{_WORK} (?:shown |given |provided |listed )?(?:above|before) (?:was|is|were|had|has"
        rf"|forgot|failed|did)\b",
    ),
    (
        "attempt",
        r"\b(?:solution|answer|attempt|program|code)s? (?:that )?(?:was|were|had been|has been) (?:given"
        r"|shown|provided|presented|submitted|tried|proposed|rejected|marked|graded|judged)\b",
    ),
    (
        "attempt",
        r"\b(?:last|previous) time\b(?! \w+ (?:the |he |she |it ))|\bas (?:i|we) did (?:before|earlier"
        r"|previously)\b",
    ),
    (
        "attempt",
        r"\b(?:i|we) (?:previously|earlier|formerly|originally) (?!derived|showed|computed|found"
        r"|calculated|defined)\w+",
    ),
    (
        "attempt",
        r"\b(?:earlier|previously|before),? (?:i|we) (?:forgot|misread|missed|overlooked|added|subtracted"
        r"|made|got|gave|answered|claimed|said|concluded|ignored|assumed|neglected|mixed|confused)\b",
    ),
    ("advice", r"\b(?:feedback|hint|hints|hinted)\b"),
    (
        "advice",
        r"\b(?:as|like|just as) (?:(?:was|is|i was|has been|had been|rightly|correctly|it was"
        r"|you) )?(?:suggested|advised|instructed|hinted|recommended|reminded|pointed out|warned|told"
        r"|noted above|mentioned above|indicated above|explained above)\b(?! in the (?:problem"
        r"|question|statement))",
    ),
    (
        "advice",
        rf"\b(?:according to|following|based on|per|given|using|thanks to|considering|heeding|applying"
        rf"|in line with|with|after reading|in light of|taking) (?:the |your |this |that |these |those |my "
        rf"|all )?(?:above |given |provided |received )?{_ADVICE}\b",
    ),
    (
        "advice",
        rf"\b(?:the|your|these|those|this|that|given|above) (?:above |given |provided )?{_ADVICE} (?:above "
        rf"|given |here )?(?:that )?{_SAYS}\b",
    ),
    (
        "advice",
        rf"\b(?:the|your|that|a) {_GIVER} (?:\w+ )?(?:{_SAYS}|is right|was right|found|flagged|rejected"
        rf"|marked|complained|wants?|expects?)\b",
    ),
    (
        "advice",
        r"\bi (?:was|am|have been|had been|got) (?:told|reminded|advised|informed|warned|asked|instructed"
        r"|given)\b|\bi(?:'ve| have) been (?:told|shown|given)\b",
    ),
    (
        "advice",
        r"\b(?:you|someone|somebody) (?:told|reminded|advised|warned|pointed out|suggested|mentioned|noted"
        r"|said|asked me)\b",
    ),
    (
        "advice",
        r"\bkeep(?:ing)? (?:the|these|those|your|that) (?:\w+ )?(?:points?|remarks?|warnings?|notes?"
        r"|reminders?|advice|suggestions?) in mind\b",
    ),
    (
        "attempt",
        r"\b(?:revised|corrected|fixed|improved|updated|amended|repaired|reworked) (?:\w+ )?(?:solution"
        r"|answer|attempt|approach|derivation|response)\b",
    ),
    (
        "advice",
        r"\bknown to be (?:wrong|right|correct|incorrect)\b|\b(?:answer|result) (?:\w+ )?(?:is|was|has been"
        r"|had been|has already been) (?:already )?(?:given|known|provided|revealed|supplied)\b(?! in the (?:problem"
        r"|question))",
    ),
    (
        "advice",
        r"\bwhat (?:was|is|has been|had been|i was|you) (?:just |previously |been )?(?:said|told|mentioned|noted"
        r"|pointed out|advised|suggested|recommended)\b",
    ),
    (
        "advice",
        r"\b(?:for|to) (?:a|any|the) readers? who\b|\bstands? on its own\b|\bself-contained (?:solution|answer)\b"
        r"|\b(?:without|avoid|not) (?:any )?(?:referring|reference|mentioning|speaking|alluding)\b",
    ),
)
"""What is a mention wherever it stands."""

AT_THE_START: tuple[tuple[str, str], ...] = (
    (
        "attempt",
        r"\b(?:up)?on (?:further |closer |second |careful |more careful )?(?:review|reflection"
        r"|reconsideration|thought)\b"
        r"|\b(?:is|was|cannot be|can't be|isn't|wasn't|be) not \d|\b(?:it|this|that) (?:isn't|can't be|cannot be) \d",
    ),
    (
        "advice",
        r"\b(?:it|this|that) (?:was|has been|had been) (?:pointed out|noted|suggested|mentioned|remarked"
        r"|explained)\b",
    ),
    (
        "attempt",
        r"\b(?:wrong|incorrect|false|mistaken|erroneous|faulty|flawed|careless) (?:\w+ )?(?:values?|results?|numbers?"
        r"|figures?|totals?|counts?|conclusions?|steps?|operations?|orders?|readings?|interpretations?|signs?)\b",
    ),
    (
        "attempt",
        r"\b(?:fix(?:ing|ed|es)?|mend(?:ing|ed|s)?|repair(?:ing|ed|s)?|undo(?:ing)?|avoid(?:ing)?"
        r"|repeat(?:ing)?) (?:the"
        r"|this|that|these|an?|my|such|making) (?:\w+ )?(?:mistakes?|errors?|issues?|bugs?|slips?|oversights?)\b",
    ),
    (
        "attempt",
        r"\b(?:be|been|being|go|look|read|think) more (?:careful(?:ly)?|closely|slowly)\b"
        r"|\bwent (?:wrong|astray|off)\b"
        r"|\bcontrary to (?:what|the|my)\b|\b(?:claimed|stated|said|written|computed) (?:before|earlier"
        r"|previously)\b",
    ),
    (
        "attempt",
        r"\b(?:another|a second|a better|a new|a fresh) (?:attempt|try|go|start)\b"
        r"|\bstart(?:ing)? (?:over|afresh|fresh)\b"
        r"|\bfrom scratch\b|\b(?:is|was) (?:off|mistaken|flawed|faulty|unsuccessful|rejected)\b"
        r"|\bdo (?:this|it) properly\b",
    ),
    (
        "advice",
        r"\b(?:your|because of the|due to the|know from the|learn from the|see from the|thanks to the) (?:\w+ )?"
        r"(?:notes?|tips?|corrections?|comments?|instructions?|remarks?|hints?|explanations?)\b",
    ),
    (
        "advice",
        r"\b(?:note|notes|remarks?|comments?|tips?|instructions?) (?:above|below|given|received|provided)\b"
        r"|\b(?:mindful of|heed(?:ing)?|as (?:was|is|has been) (?:said|noted|mentioned|remarked))\b"
        r"|\b(?:wants?|expects?|requires?) (?:me|us) to\b",
    ),
    (
        "attempt",
        r"\bthis time\b|\bonce (?:more|again)\b|\b(?:try|trying|solve|solving|compute|calculate|do|start"
        r"|let's|begin)\w* (?:this |it |that |the problem |all )?(?:again|anew|over|afresh)\b",
    ),
    (
        "attempt",
        r"\b(?:re-?do|redoing|re-?try|retrying|re-?solve|re-?solving|re-?work|reconsider\w*|re-?examin\w*"
        r"|re-?calculat\w*|re-?comput\w*|revisit\w*|re-?think\w*|correct(?:ing|ed)? (?:that|the|my|this"
        r"|an))\b",
    ),
    (
        "attempt",
        r"\b(?:my|the|that|an|our) (?:mistake|error|slip|oversight|misreading|confusion)\b|\b(?:mistakes?"
        r"|errors?) (?:was|were|made|lay|is|in)\b",
    ),
    (
        "attempt",
        r"\b(?:is|was|are|were|isn't|wasn't) (?:not )?(?:wrong|incorrect|not right|not correct"
        r"|not the (?:right |correct )?(?:answer|result)|the right answer)\b",
    ),
    (
        "attempt",
        r"\b(?:i|we) (?:forgot|misread|missed|overlooked|neglected|made an? (?:mistake|error|slip)|had the|mixed up"
        r"|confused|failed|erred|went wrong|got it wrong|should(?:n't| not)? have)\b"
        r"|\b(?:i|we) (?:wrongly|mistakenly|incorrectly|erroneously) \w+",
    ),
    (
        "attempt",
        r"\b(?:rather than|instead of) (?:just |simply |wrongly |\w+ing the )?(?:\d[\d.,]*|repeating|mistak\w+)\b"
        r"|\bunlike (?:before|previously|earlier)\b|\bas before\b",
    ),
    (
        "attempt",
        r"\b(?:sorry|apolog\w+|oops|you(?:'re| are) right|good (?:point|catch)|thanks?|thank you"
        r"|understood|got it)\b|(?:^|[.!?] )noted\b",
    ),
    (
        "advice",
        r"\b(?:the|your|these|those) (?:\w+ )?(?:feedback|hints?|advice|suggestions?|guidance|critiques?|remarks?"
        r"|reminders?|pointers?|recommendations?|warnings?|clues?)\b",
    ),
)
"""What is a mention as long as nothing has been derived."""

IN_COMMENTS: tuple[tuple[str, str], ...] = (
    (
        "attempt",
        r"(?:#|//)[^\n]*\b(?:fix(?:ed|es|ing)?|correct(?:ed|ion)|bug|previous(?:ly)?|earlier|no longer"
        r"|instead of|unlike"
        r"|was wrong|now (?:handles?|returns?|correctly|works?))\b|(?:#|//)[^\n]*(?:修复|修正|改正|之前|原来|不再)",
    ),
)
"""What is a mention in the comments of a program."""

CHINESE: tuple[tuple[str, str], ...] = (
    ("advice", r"提示|反馈|点评|指正|提醒|(?<!合理)建议"),
    ("attempt", r"前述的?(?:解|答|做法|方法)|题解有误|(?:没有|未能?|没)通过(?:的)?测试"),
    ("attempt", r"上次|上一次|前一次|前次|上一轮"),
    (
        "attempt",
        r"(?:上一个|上一版|之前|先前|前一个|此前|早先|刚才|原来|原先|最初|最开始|第一次"
        r"|前次|旧)的?(?:那个|那份|错误)?(?:尝试|解答|解法|答案|回答"
        r"|做法|程序|代码|版本|思路|作答|提交|推导|方案|错误)",
    ),
    (
        "attempt",
        r"(?:上面|上述|以上|前面|给出|所给|提供)的?(?:那个|那份|这个|这份)?(?:错误的?)?(?:尝试|解答|回答"
        r"|程序|代码|作答|提交|错误解答|错误答案)",
    ),
    (
        "attempt",
        r"(?:错误|不正确|失败|被否定|被判错)的?(?:解答|回答|尝试|解法|答案|结果|程序|代码|作答)|新的?尝试"
        r"|再次尝试",
    ),
    (
        "attempt",
        r"我(?:之前|先前|原来|原先|上次|此前|刚才|错误地|误把|误将|忘记了|忘了|漏掉了|看错)|(?:上次|上一次"
        r"|之前)(?:我|忘|漏|错|算|少|多|误|把)",
    ),
    (
        "attempt",
        r"(?:更正|纠正|修正|改正|订正)(?:后|了|过)?的?(?:错误|解答|答案|做法|解法|程序|代码|计算)|不再犯"
        r"|避免(?:同样|之前|上次|重复)",
    ),
    ("advice", r"反馈|反思|点评|评语|批改|评审|评阅"),
    (
        "advice",
        r"(?:根据|按照|依照|遵照|参考|结合|利用|考虑到?|听从|依据|有了|借助|由)(?:了|以上|上述|上面|这|该"
        r"|所给|给出|您|你|老师)?的?(?:这些|这个|这条)?(?:提示"
        r"|建议|提醒|意见|说明|指点|指正|线索|指导|要求|注意事项)",
    ),
    (
        "advice",
        r"(?:正如|如同|就像|如|像)(?:上面|前面|以上|您|你|老师|有人)?(?:所)?(?:提示|建议|提醒|指出|告知"
        r"|说明|指点|要求)(?:的|那样|所)?",
    ),
    (
        "advice",
        r"(?:提示|建议|提醒|意见|说明|线索)(?:中|里|上)?(?:说|指出|告诉|要求|提到|写道|表明|是|让)|(?:您"
        r"|你|有人|老师|用户|系统)(?:已经|曾)?(?:告诉|提醒"
        r"|指出|建议|提示|说过)",
    ),
    (
        "advice",
        r"被告知|得到的?(?:提示|建议|提醒)|(?:牢记|记住|注意)(?:以上|上述|这些|那些)|答案(?:已经?"
        r"|已)(?:给出|知道|告诉|提供)|已知答案",
    ),
)
CHINESE_AT_THE_START: tuple[tuple[str, str], ...] = (
    ("advice", r"提醒|点评|指正|指导|意见|建议|提示|按要求|(?:按照|依照|根据)要求|注意事项|感谢"),
    ("attempt", r"改正|更正|纠正|修正|订正|有误|出错|出了错|算错|弄错|搞错|不正确|更仔细|再次|不同于(?:前|上|之前)"),
    (
        "attempt",
        r"这一?次|重新(?:解|做|计算|算|考虑|审题|审视|推导|写|来|分析|检查)|再(?:试|做|算|来|解)一?(?:次"
        r"|遍)|从头(?:再|开始|来)",
    ),
    (
        "attempt",
        r"(?:错误|失误|问题)(?:在于|出在|是|就在)|而不(?:是|能|应)|不(?:是|等于|应该?是) ?\d|(?:是"
        r"|算)错(?:的|了)|不对|抱歉|对不起|谢谢|明白了|好的[，,]",
    ),
)


_ENDED = re.compile(r"[.!?;:\n。！？；：]\s*$")


def find_mentions(output: str, problem: str, *, is_program: bool = False) -> list[tuple[str, str]]:
    """Return what an output says of its context, as pairs of a kind (`attempt`, `advice`) and the words. Of a program
    the comments are looked at too."""
    text, known = normal(output), normal(problem)
    first_step = OPERATION.search(text)
    start = text[: first_step.start()] if first_step else text
    mentions = [*_search(ALWAYS, text, known), *_search(CHINESE, text, known)]
    if is_program:
        mentions += _search(IN_COMMENTS, text, known)
    mentions += [*_search(AT_THE_START, start, known), *_search(CHINESE_AT_THE_START, start, known)]
    if first_step and start and not _ENDED.search(start):
        # The last sentence leads to the first step.
        start = "\n".join(sentences(start)[:-1])
    return mentions or find_openings(start, known)


def _search(patterns: tuple[tuple[str, str], ...], text: str, known: str) -> list[tuple[str, str]]:
    return [
        (kind, match[0])
        for kind, pattern in patterns
        for match in re.finditer(pattern, text)
        # What the problem says itself needs no context; nor do its nouns, such as a tip or a reflection.
        if match[0] not in known and not _is_of_the_problem(match[0], known)
    ]


_NOUN = re.compile(rf"\b{_ADVICE}\b|\b{_GIVER}\b|提示|建议|反馈|说明|程序|代码|线索")


def _is_of_the_problem(words: str, known: str) -> bool:
    nouns = _NOUN.findall(words)
    return bool(nouns) and all(noun.rstrip("s") in known for noun in nouns)
