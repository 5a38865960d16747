r"""The boilerplate that is cut by default: case does not matter, `*` and `#` are Markdown's.

Start   "Question 3:" "**Problem.**" "12. (5 points)" "Solve the following math problem step by step."
        "### Instruction:" "<|im_start|>user" "[INST]" "Human:"
End     "Let's think step by step and output the final answer within \boxed{}." "Answer:" "[/INST]"

Only what says nothing about the problem is listed. "Express your answer as a common fraction", "round to the nearest
tenth" and the like decide which answer is right, and stay.
"""

from __future__ import annotations

_BOX = (
    r"(?:a\s+)?[$`]?\\{1,2}boxed\s*(?:\{\s*(?:[a-z_ ]{0,20}|\.{2,3}|…)\s*\})?[$`]?"
    r"(?:\s+(?:notation|format|environment|command))?"
)
_IN = r"(?:within|in|inside|into|using|with|to|enclosed\s+in)"
_WHAT = r"(?:the|your)\s+(?:final\s+)?(?:answer|result|response)(?:\s+\(and\s+only\s+(?:the\s+)?answer\))?"
_BOXED_ANSWER = (
    rf"(?:please\s+|remember\s+to\s+|make\s+sure\s+to\s+|be\s+sure\s+to\s+)?"
    rf"(?:put|place|write|give|provide|present|enclose|return|output|box|state|wrap)\s+{_WHAT}\s+{_IN}\s+{_BOX}"
)
_STEPS = (
    r"(?:(?:let'?s|let\s+us|please)\s+)?(?:think|reason|work|solve\s+(?:this|it|the\s+problem))\s+"
    r"(?:about\s+it\s+|through\s+it\s+|this\s+out\s+)?step[\s-]by[\s-]step"
)
_PROBLEM = r"(?:math(?:ematics|ematical|s)?\s+|programming\s+|reasoning\s+)?(?:problem|question|exercise|task)s?"
_MARK = r"[*#_\s]{0,8}"

BOILERPLATE = (
    rf"{_MARK}(?:question|problem|q|exercise|task|题目|问题)(?:\s+statement)?\s*(?:\d+(?:\.\d+)*\s*)?[*_]{{0,2}}(?:[:：]|\.(?!\d))[*_]{{0,2}}\s*",
    rf"(?:please\s+)?(?:solve|answer)\s+the\s+following\s+{_PROBLEM}(?:\s+(?:carefully|efficiently|step[\s-]by[\s-]step))?\s*[.:]\s*",
    rf"{_STEPS}\s*[.:]\s*",
    r"(?:the\s+last\s+line\s+of\s+your\s+response\s+should\s+be\s+(?:of|in)\s+the\s+(?:form|format)[^\n]{0,200}?"
    r"(?:is\s+the\s+answer\s+to\s+the\s+problem|without\s+quotes\)?)\.)\s*",
    rf"{_BOXED_ANSWER}\s*[.:]\s*",
    r"below\s+is\s+an\s+instruction\s+that\s+describes\s+a\s+task\.\s+write\s+a\s+response\s+that\s+appropriately\s+"
    r"completes\s+the\s+request\.\s*",
    r"(?:#{1,4}\s*(?:instruction|question|problem|input|user)s?\s*:?[ \t]*\n\s*|<\|im_start\|>\s*user\s*|<\|user\|>\s*"
    r"|<s>\s*|\[INST\]\s*|(?:human|user)\s*:\s+)",
    # An exercise's number and marks; not where the text goes on to number its parts.
    r"\d{1,3}\s?[.．、](?!\d)\s{0,3}(?=[A-Z一-鿿]|[（(]\s?\d{1,2}\s?(?:points?|marks?|pts|分))(?![\s\S]*\n\s*\d{1,3}\s?[.．、)])",
    r"[（(]\s?\d{1,2}\s?(?:points?|marks?|pts|分)\s?[)）]\s*",
)

BOILERPLATE_END = (
    # As a sentence of its own: "the theory attempts to answer the following question:" is the problem.
    rf"(?<![A-Za-z,]\s)(?:please\s+)?(?:solve|answer)\s+the\s+(?:above|following)\s+{_PROBLEM}\s*[.:]?",
    rf"{_STEPS}(?:,?\s+and\s+{_BOXED_ANSWER})?\s*[.:]?",
    rf"{_BOXED_ANSWER}\s*[.:]?",
    rf"(?:the|your)\s+final\s+answer\s+(?:should|must)\s+be\s+(?:given\s+|placed\s+|put\s+|enclosed\s+)?{_IN}\s+{_BOX}\s*[.:]?",
    r"(?:please\s+)?remember\s+to\s+put\s+your\s+answer\s+on\s+its\s+own\s+line\s+after\s+\"answer:\"\s*\.?",
    r"(?<=\n)[*#\s]{0,8}(?:final\s+)?(?:answer|solution|response|a|答案|答|解|解答)\s*[:：][*\s]{0,4}",
    r"(?:###\s*response\s*:?|<\|im_end\|>|<\|im_start\|>\s*assistant|<\|assistant\|>|\[/INST\]|(?<=\n)assistant\s*:)",
    r"请?(?:通过)?(?:一步一步|一步步|逐步)(?:地)?(?:进行)?(?:推理|思考)(?:来)?(?:解答问题)?(?:[，,]?\s*(?:并且?)?(?:请)?(?:把|将)?最终(?:的)?答案"
    r"(?:放在|放到|放置于|写在|置于)\s*\$?\\{1,2}boxed\s*\{\s*\}\$?\s*(?:中|里面|里|内|之中)?)?\s*[。.]?",
    r"让我们(?:一步一步|逐步)(?:地)?思考\s*[。.]?",
)
