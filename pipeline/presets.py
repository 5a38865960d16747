r"""The shapes that datasets come in. A preset looks at the columns and a few sample records and says which is which.

    {"question": "Natalia sold ...", "answer": "48+24 = 72\n#### 72"}

fits `gsm8k`: prompt from `question`, gold from `answer` after the last "####", solution from `answer`.

Each preset is a function `(columns, samples) -> Layout | None`; None where the columns do not fit. Without a preset in
the configuration they are tried in the order of `PRESETS`, the most specific first (`layout_choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from truegold.pipeline.config import Columns, ColumnSpec
from truegold.pipeline.mapping import last_boxed, text_of
from truegold.pipeline.records import Unusable

Values = Mapping[str, Any]
Samples = Sequence[Values]


@dataclass(frozen=True, slots=True)
class Derived:
    """What a preset makes out of several columns of a record."""

    verifier_args: Mapping[str, Any]
    solution: str | None = None
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is which, who judges, and what else to make of a record.

    uses: columns that `derive` reads, which therefore do not go into `meta`.
    """

    columns: Columns
    domain: str = "math"
    verifier: str = "math"
    derive: Callable[[Values], Derived] | None = None
    uses: frozenset[str] = frozenset()


def gsm8k(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"question": "Natalia ...", "answer": "48+24 = 72 #### 72"}`: gold "72", solution the whole answer.

    Also `{"question": "Natalia ...", "solution": "48+24 = 72 #### 72", "answer": "72"}`: gold the answer as it is.
    """
    if not {"question", "answer"} <= columns:
        return None
    if any("####" in (text_of(sample.get("answer")) or "") for sample in samples):
        gold = ColumnSpec(column="answer", extract="after ####")
        return Layout(Columns(prompt=_column("question"), gold=gold, solution=_column("answer")))
    return Layout(
        Columns(prompt=_column("question"), gold=_column("answer"), solution=_first(columns, "solution", "rationale"))
    )


def math(columns: Set[str], samples: Samples) -> Layout | None:
    r"""`{"problem": "What is ...", "solution": "... so \\boxed{12}."}`: gold "12", solution kept.

    Also `{"problem": "What is ...", "answer": "12"}`, with or without a solution: gold the answer as it is.
    """
    if "problem" not in columns:
        return None
    if "answer" in columns:
        return Layout(Columns(prompt=_column("problem"), gold=_column("answer"), solution=_first(columns, "solution")))
    if not _boxed_solutions(samples):
        return None  # such as programs: problem and solution are common names
    gold = ColumnSpec(column="solution", extract="boxed")
    return Layout(Columns(prompt=_column("problem"), gold=gold, solution=_column("solution")))


def humaneval(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"prompt": "def f(x):\\n", "canonical_solution": "    return x", "test": "def check(...", "entry_point": "f"}`

    becomes a code row: no gold, solution the whole program (prompt and canonical solution), verifier_args
    `{"type": "asserts", "entry_point": "f", "code": "def check(..."}`.
    """
    needs = frozenset({"prompt", "canonical_solution", "test", "entry_point"})
    if not needs <= columns:
        return None

    def derive(values: Values) -> Derived:
        body = text_of(values.get("canonical_solution"))
        test, entry_point = text_of(values.get("test")), text_of(values.get("entry_point"))
        if test is None or entry_point is None:
            raise Unusable("missing_tests", f"column {'test' if test is None else 'entry_point'!r} is empty")
        arguments = {"type": "asserts", "entry_point": entry_point, "code": test}
        return Derived(arguments, (text_of(values.get("prompt")) or "") + body if body else None)

    return Layout(Columns(prompt=_column("prompt")), "code", "code", derive, needs)


def mbpp(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"text": "Write a function to ...", "code": "def f ...", "test_list": ["assert f(1) == 2", "assert ..."]}`

    becomes a code row: no gold, solution the code, verifier_args `{"type": "asserts", "code": "assert f(1) == 2 ..."}`.
    The prompt gets the first assertion, as is usual with MBPP: without it nobody could know the function's name.
    """
    text = _first(columns, "text", "prompt")
    if text is None or not {"code", "test_list"} <= columns:
        return None
    uses = frozenset({text.column, "code", "test_list", "test_setup_code", "test_imports"})

    def derive(values: Values) -> Derived:
        tests = _texts(values.get("test_list"))
        if not tests:
            raise Unusable("missing_tests", "column 'test_list' is empty")
        setup = _texts(values.get("test_imports")) + _texts(values.get("test_setup_code"))
        prompt = text_of(values.get(text.column))
        if prompt:
            prompt = f"{prompt}\n\nYour code should pass this test:\n\n{tests[0]}"
        return Derived({"type": "asserts", "code": "\n".join([*setup, *tests])}, prompt=prompt)

    return Layout(Columns(prompt=text, solution=_column("code")), "code", "code", derive, uses)


def verl(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "Natalia ..."}],
    "reward_model": {"style": "rule", "ground_truth": "72"}}`: prompt the last user message, gold "72".
    """
    if not {"prompt", "reward_model"} <= columns:
        return None
    return Layout(Columns(prompt=_column("prompt"), gold=_column("reward_model.ground_truth")))


def trl(columns: Set[str], samples: Samples) -> Layout | None:
    r"""`{"prompt": [{"role": "user", "content": "What is ..."}], "solution": "... \\boxed{12}"}`: gold "12".

    Gold comes from `ground_truth`, `answer` or `solution`; a solution is searched for its box where it has one.
    """
    gold = _first(columns, "ground_truth", "answer", "solution")
    if "prompt" not in columns or gold is None:
        return None
    return _prompt_and_gold(_column("prompt"), gold, columns, samples)


def generic(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"input": "Janet's ducks lay ...", "target": -9867630.0}`: prompt and gold by the names most often used."""
    prompt = _first(columns, "prompt", "question", "problem", "instruction", "input")
    gold = _first(columns, "gold", "answer", "final_answer", "label", "target", "solution")
    if prompt is None or gold is None:
        return None
    return _prompt_and_gold(prompt, gold, columns, samples)


def _prompt_and_gold(prompt: ColumnSpec, gold: ColumnSpec, columns: Set[str], samples: Samples) -> Layout:
    if gold.column != "solution":
        return Layout(Columns(prompt=prompt, gold=gold, solution=_first(columns, "solution")))
    if _boxed_solutions(samples):
        boxed = ColumnSpec(column="solution", extract="boxed")
        return Layout(Columns(prompt=prompt, gold=boxed, solution=gold))
    return Layout(Columns(prompt=prompt, gold=gold))


def _texts(value: Any) -> list[str]:
    """The texts of a list, or of a value that stands alone."""
    texts = (text_of(item) for item in (value if isinstance(value, list) else [value]))
    return [text for text in texts if text is not None]


def _boxed_solutions(samples: Samples) -> bool:
    return any(last_boxed(text_of(sample.get("solution")) or "") for sample in samples)


def _column(name: str) -> ColumnSpec:
    return ColumnSpec(column=name)


def _first(columns: Set[str], *names: str) -> ColumnSpec | None:
    return next((_column(name) for name in names if name in columns), None)


PRESETS: dict[str, tuple[Callable[[Set[str], Samples], Layout | None], str]] = {
    "humaneval": (humaneval, "prompt, canonical_solution, test, entry_point"),
    "mbpp": (mbpp, "text or prompt, code, test_list"),
    "verl": (verl, "prompt, reward_model"),
    "gsm8k": (gsm8k, "question, answer"),
    "math": (math, "problem, and answer or a solution with \\boxed{}"),
    "trl": (trl, "prompt, and ground_truth, answer or solution"),
    "generic": (
        generic,
        "one of prompt, question, problem, instruction, input, "
        "and one of gold, answer, final_answer, label, target, solution",
    ),
}
"""Each preset with the columns it needs, in words; the order is that of the automatic choice."""

CHOICE_COLUMNS = ("options", "choices")
"""Where one of these holds something beside the question, the question alone is not the problem."""
