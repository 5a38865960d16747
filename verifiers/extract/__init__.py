r"""Finds the answer that a response commits to.

The forms of an answer are tried in this order, in the text after the thinking. If a form has several answers, the last
one counts:

    boxed           \boxed{x}, \fbox{x}, <|begin_of_box|>x<|end_of_box|>; boxes that stand together are one answer
    answer_tag      <answer>x</answer>, if no box follows
    hashes          #### x on the last line; on any line if x is a plain number, or if no other value follows
    phrase          the answer is x, Answer: x, **Final Answer** x, la respuesta es x, 答案是x, 故选B ...
    a_line          A: x on the last line
    json            {"answer": x} at the end, also nested, in a fence, or before `I hope this helps` (`objects`)
    whole_response  x, if the whole response is one short expression, number or word
    first_line      x, if `Explanation: ...` below it does not end with another value
    last_line       x, if the last line is one expression
    conclusion      the one value that the last sentence states

Other tags at the end, such as <respuesta>x</respuesta>, are read like <answer>. In a table, a row or column named
`Answer` or `Total` shows the answer. Courtesies, signatures and marks at the end are skipped if no answer is announced
(`closings`). A line `Answer: x` or `#### x` after the last box replaces the box. If a response goes on to another
problem (`Question: ...`), the answer to the first problem counts. A box that was cut off commits to nothing, and
neither does thinking that was never closed. An announced sentence is narrowed to its answer with the unit (`narrow`).
Two values of one answer stay together (`5 or 6`), so the verifier sees that the response does not decide.

Not covered: a number picked from a line further up. Reading it would reward a response for mentioning the answer. All
patterns are linear in the length of the text, or run over a piece of bounded length.
"""

from truegold.verifiers.extract.committed import Committed, committed_answer, final_part, last_line, without_hidden
from truegold.verifiers.extract.stated_values import MAX_LINE_CHARS
from truegold.verifiers.extract.unread import GUESSED, ends_with_value, names_gold, several_values

__all__ = [
    "GUESSED",
    "MAX_LINE_CHARS",
    "Committed",
    "committed_answer",
    "ends_with_value",
    "final_part",
    "last_line",
    "names_gold",
    "several_values",
    "without_hidden",
]
