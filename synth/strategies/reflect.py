"""Reflect, then retry: the model first says what went wrong, then solves the problem with that in mind.

Reflect-Retry-Reward (arXiv 2505.24726) rewards the reflection; here the second answer is what is kept.
"""

from truegold.synth.strategies.base import Strategy

REFLECT = Strategy(
    "reflect",
    "1",
    reflection={
        "en": """A problem and a solution that is not right:

Problem:
{problem}

Solution:
---
{attempt}
---
{feedback}

In two or three sentences: which step went wrong, and what should be done instead? Do not solve the problem, and do \
not give an answer.""",
        "zh": """一道题和一个不正确的解答：

题目：
{problem}

解答：
---
{attempt}
---
{feedback}

请用两三句话说明：哪一步出了错，应该怎样做？不要解题，也不要给出答案。""",
    },
    answer={
        "en": """{problem}

Keep in mind:
{reflection}

Write a solution that stands on its own, for a reader who has seen nothing but the problem: do not speak of these \
remarks.""",
        "zh": """{problem}

请注意：
{reflection}

你的解答必须独立完整，读者只看得到题目：不要提到以上说明。""",
    },
)
