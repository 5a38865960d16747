r"""Presets: the shapes that datasets come in, and the choice of one for a source.

    {"question": "Natalia sold ...", "answer": "48+24 = 72\n#### 72"}

fits `gsm8k`: prompt from `question`, gold from `answer` after the last "####", solution from `answer`.

Each preset is a function `(columns, samples) -> Layout | None`; None where the columns do not fit. The presets of
programs are in `presets_code`. `choose_layout` takes the configured preset's layout, or that of the first in the order
of `PRESETS` that fits, and puts the configured columns over it.

`columns: {prompt: Body, gold: Answer}` over a file of `{"Body": "...", "Question": "...", "Answer": 51.0}` takes those
two and no preset. `columns: {gold: answr}` ends with one line: the file, the missing column, those that exist, and
"Did you mean 'answer'?". Commands that work alone on a file ask `guess_layout`, so that a column which one command
reads is read by all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import replace

from truegold.pipeline.config.sources import Columns, ColumnSpec, ListedFile, ListedHub, SourceConfig
from truegold.pipeline.sources.code_tests import looks_like_tests
from truegold.pipeline.sources.columns import (
    CHOICE_COLUMNS,
    GOLDS_COLUMNS,
    MISSING,
    NAMES,
    Column,
    Derived,
    Layout,
    Samples,
    Values,
    boxed_gold_spec,
    column_paths,
    compile_column,
    describe_columns,
    find_column,
    gold_spec,
)
from truegold.pipeline.sources.jsonl import parse_structure
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
from truegold.pipeline.sources.provenance import exported
from truegold.pipeline.sources.records import Unusable
from truegold.pipeline.sources.row_builder import judged_without_gold, with_row_columns
from truegold.verifiers import ConfigError, InputError, TruegoldError
from truegold.verifiers.user_code import did_you_mean


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
    if (gold := find_column("gold", samples, exclude=(prompt, "label"))) is None:
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
    "generic": (generic, f"one of {', '.join(NAMES['prompt'])}, and one of {', '.join(NAMES['gold'])}, solution"),
}
"""Each preset with the columns it needs, in words; the order is that of the automatic choice."""


def check_preset(name: str | None) -> None:
    """Raise ConfigError where there is no such preset."""
    if name is not None and name not in PRESETS:
        near = did_you_mean(name, PRESETS)
        raise ConfigError(
            f"There is no preset {name!r}.", f"{near + ' ' if near else ''}There are: {', '.join(PRESETS)}."
        )


def check_spelling(config: SourceConfig) -> None:
    """Raise ConfigError for a preset or an extract that does not exist, without a look at the data."""
    check_preset(config.preset)
    for field, spec in config.columns:
        if spec is not None:
            compile_column(spec, field)


@contextmanager
def source_named(part: SourceConfig, location: str = "") -> Iterator[None]:
    """Name one of several sources, and its location in the configuration, in errors about it."""
    try:
        yield
    except TruegoldError as error:
        if isinstance(part, ListedFile | ListedHub):
            error.message = f"Source {part.label!r}{location}: {error.message}"
            error.args = (error.message,)
        raise


def layout_of_preset(name: str, samples: Samples, location: str, taken: Set[str] = frozenset()) -> Layout:
    """Return the layout that a preset gives records such as `samples`; columns that are `taken` need not be there.

    `location` names the source in errors. Raises ConfigError for a preset that does not exist, InputError where it does
    not fit the columns.
    """
    check_preset(name)
    fits, shape = PRESETS[name]
    if (layout := fits(_column_names(samples) | taken, samples)) is None:
        raise InputError(f"{location} does not have the columns of preset {name}: {shape}.", _list_columns(samples))
    return layout


def guess_layout(samples: Samples) -> Layout:
    """Return how records are read, by the names and values of the samples; columns that are not there are left out.

    A question whose answer options stand in a column of their own is a prompt here: it can be compared and judged,
    though not trained on (`choose_layout`).
    """
    if (layout := _first_preset(_column_names(samples), samples)) is None:
        gold = find_column("gold", samples)
        spec = None if gold is None else gold_spec(gold, samples)
        layout = Layout(Columns(prompt=_spec(find_column("prompt", samples)), gold=spec))
    return replace(layout, columns=_add_id(layout.columns, samples))


def choose_layout(config: SourceConfig, location: str, samples: Samples) -> Layout:
    """Return the layout of a source whose rows may be trained on, with the configured columns over it.

    `location` names the source in errors. Raises ConfigError for a preset that does not exist or a prompt without gold,
    InputError where the columns fit no preset or a configured one is missing.
    """
    if config.preset is not None:
        layout = layout_of_preset(config.preset, samples, location, _taken_elsewhere(config))
    elif config.columns.prompt is not None:
        layout = _layout_without_preset(config, samples)
    else:
        layout = _fit_preset(config, location, _column_names(samples), samples)
    configured = {name: spec for name, spec in config.columns if spec is not None}
    columns = _add_id(layout.columns, samples).model_copy(update=configured)
    if layout.restore is None:
        columns = with_row_columns(columns, config, layout.uses)
    layout = replace(layout, columns=columns)
    check_columns(config, layout, location, samples)
    return layout


def _add_id(columns: Columns, samples: Samples) -> Columns:
    taken = {spec.column for _, spec in columns if spec is not None}
    return columns.model_copy(update={"id": columns.id or _spec(find_column("id", samples, exclude=taken))})


def _spec(name: str | None) -> ColumnSpec | None:
    return None if name is None else ColumnSpec(column=name)


def _column_names(samples: Samples) -> set[str]:
    return {name for sample in samples for name in sample}


def _taken_elsewhere(config: SourceConfig) -> set[str]:
    """Return the columns that a preset does not miss, because the configuration takes the prompt or gold elsewhere."""
    names = set()
    if config.columns.prompt is not None:
        names |= {"question", "problem", "prompt", "text"}
    if config.columns.gold is not None:
        names |= {"answer", "reward_model"}
    return names


def _layout_without_preset(config: SourceConfig, samples: Samples) -> Layout:
    columns = config.columns
    if columns.tests is not None:
        return Layout(Columns(), "code", "code")
    if columns.gold is not None or columns.golds is not None:
        return Layout(Columns())
    without_gold = judged_without_gold(config, samples)
    taken = {spec.column for _, spec in columns if spec is not None}
    gold = find_column("gold", samples, exclude=taken)
    if gold is not None and not all(without_gold):
        return Layout(Columns(gold=gold_spec(gold, samples)))
    if any(without_gold):
        return Layout(Columns())
    raise ConfigError(
        "columns names a prompt and no gold.", "Add columns.gold, columns.tests, or a verifier that needs neither."
    )


def _first_preset(names: set[str], samples: Samples, *, code_only: bool = False) -> Layout | None:
    surest_gold = find_column("gold", samples)
    for fits, _ in PRESETS.values():
        layout = fits(names, samples)
        if layout is None or (code_only and layout.domain != "code"):
            continue
        # Where `ground_truth` stands beside it, `answer` is a worked solution or what a model said.
        gold = layout.columns.gold
        if gold is None or gold.column not in NAMES["gold"] or surest_gold in (gold.column, None):
            return layout
    return None


def _fit_preset(config: SourceConfig, location: str, names: set[str], samples: Samples) -> Layout:
    options_apart = any(sample.get(name) for sample in samples for name in CHOICE_COLUMNS)
    layout = _first_preset(names | _taken_elsewhere(config), samples, code_only=options_apart)
    if layout is not None:
        return layout
    prompt = find_column("prompt", samples)
    if prompt is not None and not options_apart and any(judged_without_gold(config, samples)):
        return Layout(Columns(prompt=_spec(prompt)))
    remark = " (with answer options in a column of their own, the prompt has to hold them)" if options_apart else ""
    raise InputError(
        f"{location}: no preset fits its columns{remark}.",
        f"{_list_columns(samples)} Name them: columns: {{prompt: ..., gold: ...}}, or prompt=..., gold=... in Python.",
    )


def check_columns(config: SourceConfig, layout: Layout, location: str, samples: Samples) -> None:
    """Raise InputError for a mapped column that none of the sample records has."""
    for field, spec in layout.columns:
        required = getattr(config.columns, field) is not None or field in ("prompt", "gold")
        if spec is None or not required:
            continue
        column = Column(spec.column)
        if all(column(sample) is MISSING for sample in samples):
            near = did_you_mean(spec.column, column_paths(samples))
            hint = f"{near} {_list_columns(samples)}" if near else _list_columns(samples)
            raise InputError(f"{location} has no column {spec.column!r} (columns.{field}).", hint)


def _list_columns(samples: Samples) -> str:
    return f"Its columns: {describe_columns(samples)}." if _column_names(samples) else "It has no columns."
