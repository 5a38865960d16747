"""Code repair: the failing program with the test that fails, what was expected and what came."""

from truegold.synth.strategies.base import Strategy

REPAIR = Strategy(
    "repair",
    "1",
    answer={
        "en": """{problem}

This program does not pass the tests:
```
{attempt}
```
{feedback}

Write the whole program anew, so that it is right for every input the problem allows, not for this test alone. Do not \
speak of the program above.""",
        "zh": """{problem}

下面的程序没有通过测试：
```
{attempt}
```
{feedback}

请重新写出完整的程序，使它对题目允许的所有输入都正确，而不只是通过这个测试。不要提到上面的程序。""",
    },
    for_programs=True,
)
