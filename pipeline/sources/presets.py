r"""The shapes that datasets come in. A preset looks at the columns and a few sample records and says which is which.

    {"question": "Natalia sold ...", "answer": "48+24 = 72\n#### 72"}

fits `gsm8k`: prompt from `question`, gold from `answer` after the last "####", solution from `answer`.

Each preset is a function `(columns, samples) -> Layout | None`; None where the columns do not fit. Without a preset in
the configuration they are tried in the order of `PRESETS`, the most specific first (`layouts`). The presets of
programs are in `presets_code`.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from truegold.pipeline.config.sources import Columns, ColumnSpec
from truegold.pipeline.sources.carried import exported
from truegold.pipeline.sources.code_tests import looks_like_tests
from truegold.pipeline.sources.column_names import GOLDS_COLUMNS, NAMES, boxed_gold_spec, find_column, gold_spec
from truegold.pipeline.sources.jsonl import parse_structure
from truegold.pipeline.sources.layout import Derived, Layout, Samples, Values
from truegold.pipeline.sources.presets_code import (
    apps,
    codecontests,
    humaneval,
    leetcode,
    livecodebench,
    mbpp,
    verl_code,
    verl_ground_truth,
)
from truegold.pipeline.sources.records import Unusable


def gsm8k(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"question": "Natalia ...", "answer": "48+24 = 72 #### 72"}`: gold is "72", the solution the whole answer.

    In `{"question": "Natalia ...", "solution": "48+24 = 72 #### 72", "answer": "72"}` gold is the answer as it is.
    """
    if not {"question", "answer"} <= columns:
        return None
    return _prompt_and_gold("question", "answer", samples)


def math(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Fit `{"problem": "What is ...", "solution": "... so \\boxed{12}."}`: gold is "12", and the solution stays.

    In `{"problem": "What is ...", "answer": "12"}`, with or without a solution, gold is the answer as it is.
    """
    if "problem" not in columns:
        return None
    if "answer" in columns:
        return _prompt_and_gold("problem", "answer", samples)
    # Problem and solution are common names: without a box they may be a program's.
    return _prompt_and_boxed("problem", "solution", samples)


def verl(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": "Natalia ..."}], "reward_model":
    {"style": "rule", "ground_truth": "72"}}`: the prompt is the last user message, gold is "72".

    Rows whose ground truth holds tests are programs (`verl_code`). One source has rows of one kind; those of the other
    are rejected as mixed_source.
    """
    if not {"prompt", "reward_model"} <= columns:
        return None
    if any(looks_like_tests(verl_ground_truth(sample)) for sample in samples):
        return verl_code()

    def derive(values: Values) -> Derived:
        if looks_like_tests(verl_ground_truth(values)):
            raise Unusable("mixed_source", "reward_model.ground_truth holds tests, in other rows an answer")
        return Derived({})

    columns_of_verl = Columns.model_validate({"prompt": "prompt", "gold": "reward_model.ground_truth"})
    return Layout(columns_of_verl, derive=derive)


def trl(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Fit `{"prompt": [{"role": "user", "content": "What is ..."}], "solution": "... \\boxed{12}"}`: gold is "12".

    Gold comes from the column that is named so (`ground_truth`, `answer`, ...), else from the solution, which is
    searched for its box where it has one.
    """
    gold = _gold_column(columns, samples)
    if "prompt" not in columns or gold is None:
        return None
    return _prompt_and_gold("prompt", gold, samples)


def inspect(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"input": "What is one half?", "target": ["1/2", "0.5"]}`: several targets are several accepted golds."""
    if not {"input", "target"} <= columns or not any(isinstance(sample.get("target"), list) for sample in samples):
        return None
    return Layout(Columns.model_validate({"prompt": "input", "gold": "target"}))


def open_instruct(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"messages": [{"role": "user", "content": "What is one half?"}], "ground_truth": ["1/2", "0.5"], "dataset":
    ["math", "math"]}`: several ground truths of one verifier are several accepted golds.

    Rows whose ground truths are for several verifiers, which add up there, are rejected as mixed_source.
    """
    if not {"messages", "ground_truth", "dataset"} <= columns:
        return None

    def derive(values: Values) -> Derived:
        names = values.get("dataset")
        if isinstance(names, list) and len(set(names)) > 1:
            raise Unusable("mixed_source", f"its ground truths are for several verifiers: {', '.join(map(str, names))}")
        return Derived({})

    return Layout(Columns.model_validate({"prompt": "messages", "gold": "ground_truth"}), derive=derive)


def accepted(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"question": "What is one half?", "golds": ["1/2", "0.5"]}`: any gold of the list is right.

    In `{"question": "Which word?", "answer": "colour", "golds": ["color"]}` the answer is gold, and those of the list
    are right beside it.
    """
    prompt = find_column("prompt", samples)
    lists = (name for name in GOLDS_COLUMNS if any(_is_list(sample.get(name)) for sample in samples))
    golds = next(lists, None)
    if prompt is None or golds is None:
        return None
    lists_alone = Columns.model_validate({"prompt": prompt, "golds": golds})
    # A `label` may be a class of the record.
    gold = find_column("gold", samples, exclude=(prompt, "label"))
    if gold is None:
        return Layout(lists_alone)
    columns_with_gold = _prompt_and_gold(prompt, gold, samples).columns
    return Layout(columns_with_gold.model_copy(update={"golds": lists_alone.golds}))


def _is_list(value: object) -> bool:
    structure = parse_structure(value)
    return isinstance(structure, list) and bool(structure)


def generic(columns: Set[str], samples: Samples) -> Layout | None:
    """Fit `{"input": "Janet's ducks lay ...", "target": -9867630.0}` by the names that prompt and gold often have."""
    prompt, gold = find_column("prompt", samples), _gold_column(columns, samples)
    if prompt is None or gold is None:
        return None
    return _prompt_and_gold(prompt, gold, samples)


def _gold_column(columns: Set[str], samples: Samples) -> str | None:
    """Return the column of gold; `columns` may have names that the configuration will take from elsewhere."""
    fallbacks = (name for name in ("answer", "solution") if name in columns)
    return find_column("gold", samples) or next(fallbacks, None)


def _prompt_and_gold(prompt: str, gold: str, samples: Samples) -> Layout:
    """Return the layout of a column of gold; a worked solution is one only where nothing else is."""
    if gold == "solution" and (layout := _prompt_and_boxed(prompt, gold, samples)) is not None:
        return layout
    spec = gold_spec(gold, samples)
    solution = gold if spec.extract else find_column("solution", samples, exclude=(prompt, gold))
    return _layout(prompt, spec, solution)


def _prompt_and_boxed(prompt: str, solution: str, samples: Samples) -> Layout | None:
    """Return the layout of golds in the boxes of worked solutions; None where there are no boxes."""
    spec = boxed_gold_spec(solution, samples)
    return None if spec is None else _layout(prompt, spec, solution)


def _layout(prompt: str, gold: ColumnSpec, solution: str | None) -> Layout:
    return Layout(
        Columns(
            prompt=ColumnSpec(column=prompt),
            gold=gold,
            solution=ColumnSpec(column=solution) if solution is not None else None,
        )
    )


PRESETS: dict[str, tuple[Callable[[Set[str], Samples], Layout | None], str]] = {
    "truegold": (exported, "truegold (or extra_info.truegold, metadata.truegold), as `truegold export` writes it"),
    "leetcode": (leetcode, "entry_point, test, prelude (or prompt and completion), and a column with the problem"),
    "humaneval": (humaneval, "prompt, canonical_solution, test, entry_point"),
    "mbpp": (mbpp, "text or prompt, code, test_list"),
    "livecodebench": (livecodebench, "question_content, public_test_cases"),
    "apps": (apps, "question, input_output"),
    "codecontests": (codecontests, "problem, description or question, and tests or public_tests"),
    "verl": (verl, "prompt, reward_model"),
    "accepted": (accepted, f"one of {', '.join(NAMES['prompt'])}, and a list in one of {', '.join(GOLDS_COLUMNS)}"),
    "inspect": (inspect, "input, target (a list of accepted golds)"),
    "open-instruct": (open_instruct, "messages, ground_truth, dataset"),
    "gsm8k": (gsm8k, "question, answer"),
    "math": (math, "problem, and answer or a solution with \\boxed{}"),
    "trl": (trl, "prompt, and ground_truth, answer, ... or solution"),
    "generic": (
        generic,
        f"one of {', '.join(NAMES['prompt'])}, and one of {', '.join(NAMES['gold'])}, solution",
    ),
}
"""Each preset with the columns it needs, in words; the order is that of the automatic choice."""
