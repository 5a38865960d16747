r"""Finds the answer that a response commits to.

It is looked for in this order, in what stands after the thinking; the last one of a form wins:

    boxed           \boxed{x}, \fbox{x}, <|begin_of_box|>x<|end_of_box|>; boxes that stand together are one answer
    answer_tag      <answer>x</answer>, where no box follows
    hashes          #### x on the last line, further up if no other value follows, or anywhere if x is a plain number
    phrase          the answer is x, Answer: x, **Final Answer** x, la respuesta es x, 答案是x, 故选B ...
    a_line          A: x on the last line
    json            {"answer": x} at the end, nested or in a fence, with courtesies after it (`objects`)
    whole_response  x, where the whole response is one short expression, number or word
    first_line      x, where `Explanation: ...` stands below it and concludes with no other value
    last_line       x, where the last line is one expression
    conclusion      the one value that the last sentence states

Other tags at the end (<respuesta>x</respuesta>) are read as <answer> is, a table's last row by the name of its cell.
Courtesies, signatures and marks at the end are passed over if nothing else is announced (`closings`). A line `Answer:
x` or `#### x` after the last box goes before the box. Where a response goes on to another problem after its answer
(`Question: ...`), the first problem's answer counts. A box that was cut off before its brace closed, and thinking that
was never closed, commit to nothing. An announced sentence is narrowed to the answer in it (`narrow`), units stay on it.
Two values joined as one answer come out joined (`5 or 6`), so that the verifier sees a hedge.

Not covered: picking a number out of lines further up, which rewards a response for mentioning the answer. Every pattern
is linear in the length of the text, or runs over a bounded piece of it.
"""

from truegold.verifiers.extract.committed import Committed, committed_answer
from truegold.verifiers.extract.response_parts import final_part, last_line
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
]
