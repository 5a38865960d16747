r"""The shapes that datasets come in. A preset looks at the columns and a few sample records and says which is which.

    {"question": "Natalia sold ...", "answer": "48+24 = 72\n#### 72"}

fits `gsm8k`: prompt from `question`, gold from `answer` after the last "####", solution from `answer`.

Each preset is a function `(columns, samples) -> Layout | None`; None where the columns do not fit. Without a preset in
the configuration they are tried in the order of `PRESETS`, the most specific first (`layout_choice`). The presets of
programs are in `presets_code`.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.pipeline.ingest.code_tests import looks_like_tests
from truegold.pipeline.ingest.columns import last_boxed, text_of
from truegold.pipeline.ingest.layout import Derived, Layout, Samples, Values
from truegold.pipeline.ingest.presets_code import (
    apps,
    codecontests,
    ground_truth,
    humaneval,
    leetcode,
    livecodebench,
    mbpp,
    verl_code,
)
from truegold.pipeline.ingest.records import Unusable

__all__ = ["CHOICE_COLUMNS", "PRESETS", "Derived", "Layout", "Samples"]


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


def verl(columns: Set[str], samples: Samples) -> Layout | None:
    """`{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "Natalia ..."}],
    "reward_model": {"style": "rule", "ground_truth": "72"}}`: prompt the last user message, gold "72".

    Rows whose ground truth holds tests are programs (`verl_code`). One source has rows of one kind; those of the other
    are rejected as mixed_source.
    """
    if not {"prompt", "reward_model"} <= columns:
        return None
    if any(looks_like_tests(ground_truth(sample)) for sample in samples):
        return verl_code()

    def derive(values: Values) -> Derived:
        if looks_like_tests(ground_truth(values)):
            raise Unusable("mixed_source", "reward_model.ground_truth holds tests, in other rows an answer")
        return Derived({})

    return Layout(Columns(prompt=_column("prompt"), gold=_column("reward_model.ground_truth")), derive=derive)


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


def _boxed_solutions(samples: Samples) -> bool:
    return any(last_boxed(text_of(sample.get("solution")) or "") for sample in samples)


def _column(name: str) -> ColumnSpec:
    return ColumnSpec(column=name)


def _first(columns: Set[str], *names: str) -> ColumnSpec | None:
    return next((_column(name) for name in names if name in columns), None)


PRESETS: dict[str, tuple[Callable[[Set[str], Samples], Layout | None], str]] = {
    "leetcode": (leetcode, "entry_point, test, prelude (or prompt and completion), and a column with the problem"),
    "humaneval": (humaneval, "prompt, canonical_solution, test, entry_point"),
    "mbpp": (mbpp, "text or prompt, code, test_list"),
    "livecodebench": (livecodebench, "question_content, public_test_cases"),
    "apps": (apps, "question, input_output"),
    "codecontests": (codecontests, "problem, description or question, and tests or public_tests"),
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
