"""Retry with feedback: the failed attempt and what its verdict says, then the problem again."""

from truegold.synth.strategies.base import Strategy

RETRY = Strategy(
    "retry",
    "1",
    answer={
        "en": """{problem}

Here is a solution that is not right:
---
{attempt}
---
{feedback}

Solve the problem from the beginning. Write a solution that stands on its own, for a reader who has seen nothing but \
the problem: do not speak of the solution above.""",
        "zh": """{problem}

下面是一个不正确的解答：
---
{attempt}
---
{feedback}

请从头解答这道题。你的解答必须独立完整，读者只看得到题目：不要提到上面的解答。""",
    },
    for_programs=False,
)
