r"""Sentences that name a value and do not answer with it.

    The answer isn't 5.                                       denied
    答えは7ではない。                                           denied
    So 15 is incorrect.                                       denied
    Thus the probability is less than 7.                      denied: a bound; `at least 7` may answer
    There isn't enough information to find f(0).              withheld
    I tried 7 methods and none worked.                        withheld
    The answer is 12 if n is even, and 13 if n is odd.        withheld
    The answer is not 5 but 7.                                7 in the place of 5
    It isn't hard to see that x = 7.                          (nothing of these)

What is denied is looked for in the clause around the value, what is withheld in the whole sentence. Not covered:
denials in languages that are not listed, and doubt without a word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_N_T = r"n['’]t\b"


def _any_of(alternatives: Iterable[str], behind: str = "") -> re.Pattern[str]:
    """Return a pattern that finds one of several."""
    return re.compile(rf"(?:{'|'.join(alternatives)}){behind}", re.IGNORECASE | re.DOTALL)


_CLAUSE_END = _any_of(
    (
        *(r"[,，、](?!\d)", r"[;；。!！]", r"[:：](?!\d)", r"\s[—–-]\s"),
        r"\b(?:so|but|hence|thus|therefore|because|since|as|and|which|while|that)\b",
        r"所以|因此|故|但|而且|从而|從而",
    )
)
_HARMLESS = _any_of(
    (
        r"\bnot (?:only|hard|difficult|surprising(?:ly)?|to mention|(?:more|less|fewer|greater) than)\b",
        r"\bno doubt\b|\bno (?:more|less|fewer|greater|later|earlier) than\b|\bnone other than\b",
        rf"{_N_T} (?:hard|difficult|surprising)\b|\bisn['’]t it\b|\bif and only if\b",
        rf"\b(?:does|do|did)(?: not|{_N_T}) depend\b",
        r"\b(?:cannot|can not|can['’]t|could not) be anything (?:other than|else than|but)\b",
        r"\b(?:cannot|can['’]t) be (?:simplified|reduced|factored)(?: further| any further)?\b",
        r"\bno es (?:difícil|raro|casualidad)\b",
        r"不难|不難|不妨|不仅|不僅|不超过|不超過|不少于|不大于|不小于|无法(?:再|继续)?(?:化简|约分)",
    )
)
"""Words that look like a denial and are none."""

_NEGATED = _any_of(
    (
        r"\b(?:not|never|neither|nor|cannot|nowhere|no way|no longer|nothing|none|except|(?:anything )?other than)\b",
        r"\b(?:doubt(?:s|ful)?|unlikely|impossible|false|incorrect(?:ly)?|wrong(?:ly)?|far from|fail(?:s|ed)? to)\b",
        r"\b(?:rul(?:e|es|ed|ing) out|exclud(?:e|es|ed|ing)|reject(?:s|ed)?)\b",
        _N_T,
        r"\bno (?:es|son|era|puede|pueden|vale|sea|hay|corresponde)\b|\bnão\b|\bnon (?:è|sono|può|vale|fa)\b",
        r"\bpas\b|\bnicht\b|\bkeine?\b|\bniet\b|\binte\b|\bikke\b|\bei ole\b|\bне\b|\bнельзя\b|\bnie\b|\bne\b",
        r"\bkhông\b|\bbukan\b|\btidak\b|değil|नहीं|ليس|ليست",
        r"不(?:是|等[于於]|能|可能|会|會|为|為|对|對|应|成立)|并非|並非|绝非|决非|排除|没有|沒有|无法|無法",
    )
)
"""What denies a value that follows it in its clause."""

_NEGATED_BEHIND = _any_of(
    (
        rf"^\W*(?:not\b(?!\W*\d)|{_N_T}|to a contradiction\b)",
        r"^\W*(?:\w+\W+){0,3}?(?:is|are|was|were|be|seems?|looks?)(?: \w+)? (?:not|wrong|incorrect|false|impossible"
        r"|invalid|excluded|rejected|ruled out|extraneous|contradictory|too (?:small|large|big))\b",
        rf"^\W*(?:\w+\W+){{0,3}}?(?:(?:is|are|was|were|does|do|did|can|could|would|should|will|wo|ca){_N_T}"
        r"|(?:does|do|did|can|could|would|will) not\b|cannot\b|leads? to a contradiction|fails\b|no longer\b)",
        r"\bkeine?\b|\bnicht\b|\bfalsch\b|\bpas\b|\bfaux\b|\bincorrect[oa]\b|\bневерн|\bне\b|değil|नहीं",
        r"^[^，。]{0,6}(?:不(?:对|對|正确|正確|是|可能|成立|行|符合|合)|错|錯|被?排除)",
        r"(?:ない|ありません|なりません)|違[いうっ]|間違|誤り|(?:이|가|은|는|와|과)?\s?(?:아니|아닙|않|틀[렸린리])",
    )
)
"""What denies a value that stands before it in its clause."""

_EMBEDDING = _any_of(
    (
        rf"\b(?:(?:do|does)(?: not|{_N_T})|cannot|can['’]t|never) (?:\w+ )?"
        r"(?:think|believe|claim|say|mean|conclude|see how|see why)\b",
        r"\bdoubt\b|\bno way\b|\bfalse that\b|\bnot (?:true|the case)\b|\b(?:impossible|unlikely) that\b",
        r"\b(?:students?|people|someone|somebody|others|many|calculator|key|book)\b[^.,;]{0,40}"
        r"\b(?:says?|said|would answer|answered|thinks?|guess(?:es)?|claims?)\b",
    )
)
"""What denies a whole clause that follows it, or puts it into another mouth."""

_WITHHELD = _any_of(
    (
        rf"\b(?:not |{_N_T} |in)(?:\w+ )?(?:enough|sufficient)\b",
        r"\bnot (?:given|known|sure)\b|\bun(?:known|sure|able to)\b",
        r"\bgiv(?:e|en|ing) up\b|\bno (?:idea|clue|answer)\b|\bstuck\b|\bwithout success\b|\bnone (?:of|worked)\b",
        rf"\b(?:does|do|did)(?: not|{_N_T}) (?:know|say|state|specify|provide|give|tell|mention)\b",
        rf"\b(?:can|could)(?: ?not|['’]t|{_N_T}) (?:be )?(?:answer|find|found|finish|comput|complet|say|tell|decide"
        r"|determin|solv|work(?:ed)? out|give)",
        r"\bimpossible to (?:determine|say|tell|solve|know|compute|find|answer)\b",
        rf"\bwould have been\b|\bwould(?: not|{_N_T}) be\b|\bdepends on\b|^\W*(?:maybe|perhaps|possibly|so far)\b",
        r"\bnothing follows\b",
        r"\bif\b[^.]*?(?:[,;]|\band\b|\bor\b)[^.]*?\b(?:if|otherwise|else)\b|\d[^.]*\botherwise\b[^.]*\d",
        r"\bno (?:hay|se puede|es posible|tengo|puedo)\b|\bnão (?:é possível|há)\b",
        r"\bnon (?:è possibile|posso|si può)\b|\bne (?:peut|peux|permet) pas\b|\bimpossible (?:de|à)\b",
        r"\bnicht (?:berechn|bestimm|lös|genug|möglich|angegeben)|невозможно|недостаточно|нельзя",
        r"无法|無法|没有给出|沒有給出|没有得到|没给|未给出|(?:信息|资讯|資訊|条件|條件)不足|放弃|放棄|不知道|不确定|得不出|取决于",
        r"足りな|足りませ|求められ(?:ない|ませ)|求めること(?:は|が)でき(?:ない|ませ)|[分わ]か(?:りませ|らな)|できません",
        r"충분하지|구할 수 없|알 수 없|모르겠|부족",
    )
)
"""What says that there is no answer, or one on a condition only."""

_BOUND = _any_of(
    (
        r"\b(?:less|greater|more|fewer|larger|smaller|higher|lower|bigger|longer|shorter) than",
        r"\b(?:strictly )?(?:below|above|over|under|exceeds?|beyond)",
        r"\b(?:inférieur|supérieur)e?s? à|\b(?:menor|mayor|maior) (?:que|a)|\b(?:kleiner|größer) als|\bменьше|\bбольше",
        r"小于|大于|不足|超过|超過|少于|多于|小於|大於|少於|多於",
    ),
    behind=r"\s*\W?$",
)
_BOUND_BEHIND = re.compile(r"^\s*(?:より(?:も)?(?:大|小|多|少)|未満|보다)")

_DENIAL = r"\bnot\b|n['’]t\b|\bno (?:es|son)\b|\bnão\b|\bnon\b|\bnicht\b|\bpas\b|\bне\b|不是|并非|並非|不为"
_INSTEAD = r"\b(?:but(?: rather)?|rather,?|instead,?|sino(?: que)?|sondern|mais|mas?(?: sim)?|e sim|а)\b|而?是"
_CONTRAST = re.compile(
    rf"(?:{_DENIAL})[^.;。]{{1,60}}?[,，;；]?\s?(?:{_INSTEAD})\s?,?(?P<rest>.+)$"
    r"|(?:が|이|가)?\s?(?:ではなく(?:て)?|じゃなくて|아니라|아니고)[、,]?\s?(?P<eastern>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_TURNED_DOWN = re.compile(
    r"\s?,?\s(?:(?:and|but)\s)?(?:not|rather than|instead of|as opposed to)\s(?=[$\\(*]{0,4}[-\d√])|[，,]?而(?:不是|非)"
)
_BEFORE_BOX = re.compile(rf"(?:{_DENIAL}|不等于|\bnever|\bcannot)\s?(?:be|equal(?: to)?|simply)?[\s:=$\\(\[*]{{0,6}}$")
_UP_TO_FIGURES = re.compile(r".*[\d$})\]%]", re.DOTALL)


_HINTS = (
    *(
        "n't",
        "not",
        "no ",
        "non",
        "nor",
        "never",
        "neither",
        "nowhere",
        "except",
        "than",
        "doubt",
        "unlikely",
        "imposs",
    ),
    *(
        "fals",
        "incorrect",
        "wrong",
        "far from",
        "fail",
        "rul",
        "exclu",
        "reject",
        "contradict",
        "extraneous",
        "invalid",
    ),
    *(
        "pas",
        "nicht",
        "kein",
        "niet",
        "inte",
        "ikke",
        "ei ole",
        "nie",
        " ne ",
        "bukan",
        "tidak",
        "say",
        "said",
        "think",
    ),
    *(
        "guess",
        "claim",
        "answered",
        "would",
        "insuff",
        "giv",
        "stuck",
        "without",
        "unknown",
        "unsure",
        "unable",
        "depends",
    ),
    *(
        "maybe",
        "perhaps",
        "possibly",
        "if ",
        "otherwise",
        "below",
        "above",
        "over",
        "under",
        "exceed",
        "beyond",
        "menor",
    ),
    *("mayor", "maior", "kleiner", "rather", "instead", "opposed", "too ", "falsch"),
)
"""A sentence of ASCII that denies or withholds holds one of these: they are quicker to look for than the patterns."""


def is_plain(sentence: str) -> bool:
    """Return whether a sentence has no word that any of the functions below looks for."""
    if not sentence.isascii():
        return False
    folded = sentence.lower()
    return not any(hint in folded for hint in _HINTS)


def contrasted(sentence: str) -> str | None:
    """Return what a sentence puts in the place of a value that it denies: `not 5 but 7` -> `7`; else None."""
    match = _CONTRAST.search(sentence)
    return (match["rest"] or match["eastern"]).strip() if match is not None else None


def preferred(sentence: str) -> str:
    """Return a sentence without the value that it turns down: `15 rather than 14` -> `15`."""
    match = _TURNED_DOWN.search(sentence)
    return sentence[: match.start()] if match is not None and match.start() else sentence


def is_withheld(sentence: str) -> bool:
    """Return whether a sentence says that it has no answer, or an answer on a condition."""
    return _WITHHELD.search(_HARMLESS.sub(" ", sentence)) is not None


def negates(text: str) -> bool:
    """Return whether a text denies anything."""
    return _NEGATED.search(_HARMLESS.sub(" ", text)) is not None


def is_denied(sentence: str, value: str) -> bool:
    """Return whether the clause around a value denies it, or names it as a mere bound."""
    start = sentence.rfind(value)
    if start < 0:
        return False
    sentence = _HARMLESS.sub(lambda match: "·" * len(match[0]), sentence)
    # Words behind the figures may have been taken for a unit: `4 does`.
    figures = _UP_TO_FIGURES.match(value)
    before, after = sentence[:start], sentence[start + (figures.end() if figures else len(value)) :]
    if _EMBEDDING.search(before) or _BOUND.search(before) or _BOUND_BEHIND.search(after):
        return True
    begin = max((match.end() for match in _CLAUSE_END.finditer(before)), default=0)
    end = _CLAUSE_END.search(after)
    clause_after = after[: end.start()] if end else after
    return _NEGATED.search(before[begin:]) is not None or _NEGATED_BEHIND.search(clause_after) is not None


def is_box_denied(before: str) -> bool:
    r"""Return whether a box is denied by the words right before it: `the answer is not \boxed{7}`."""
    return not is_plain(before) and _BEFORE_BOX.search(before) is not None
