"""Several approaches named in the prompt, of which the model is to take the one that fits."""

from truegold.synth.strategies.base import Strategy

APPROACHES = Strategy(
    "approaches",
    "1",
    answer={
        "en": """{problem}

Ways to attack such a problem: name what is known and what is asked; set up an equation; work backwards from what is \
asked; go through the cases one by one; try small numbers and look for the rule. Take the one that fits best, work \
step by step, and check each step against the problem's text. Write the solution alone, without a word on the \
choice.""",
        "zh": """{problem}

常用的思路：列出已知条件和所求；列方程；从所求倒推；逐一讨论各种情况；先试小的数，再找规律。选择最合适的一种，\
逐步计算，并对照题目检查每一步。只写解答，不要提到思路的选择。""",
    },
    for_programs=False,
)
