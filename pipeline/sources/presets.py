r"""Defines presets, the layouts of known datasets, and chooses the preset of a source.

    {"question": "Natalia sold ...", "answer": "48+24 = 72\n#### 72"}

fits `gsm8k`: prompt from `question`, gold from `answer` after the last "####", solution from `answer`.

Each preset is a function `(columns, samples) -> Layout | None`, which returns None if the columns do not fit. The
presets of programs are in `presets_code`. `choose_layout` uses the configured preset, or the first one in `PRESETS`
that fits. Configured columns replace the columns of the preset.

With `columns: {prompt: Body, gold: Answer}`, a file of `{"Body": "...", "Question": "...", "Answer": 51.0}` is read
without a preset. With `columns: {gold: answr}`, the error names the file, the missing column and the existing columns,
and asks "Did you mean 'answer'?". All commands on a single file use `guess_layout`, so that they read the same columns.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from truegold.pipeline.config.sources import Columns, ColumnSpec, ListedFile, ListedHub, SourceConfig
from truegold.pipeline.sources.columns import (
    WHOLE,
    Column,
    Derived,
    Layout,
    boxed_gold_spec,
    column_paths,
    compile_column,
    describe_columns,
    gold_spec,
    gold_texts,
    golds_of,
)
from truegold.pipeline.sources.conversations import CONVERSATIONS, messages_of, read_prompt
from truegold.pipeline.sources.jsonl import nested_records
from truegold.pipeline.sources.presets_code import (
    apps,
    codecontests,
    find_tests,
    has_assertions,
    holds_tests,
    humaneval,
    leetcode,
    livecodebench,
    mbpp,
    program_layout,
    solution_column,
)
from truegold.pipeline.sources.provenance import exported
from truegold.pipeline.sources.row_builder import ROW_COLUMNS, judged_without_gold, with_row_columns
from truegold.pipeline.sources.story_columns import STORIES, StoryColumns, count_words, story_columns
from truegold.verifiers import ConfigError, InputError, TruegoldError
from truegold.verifiers.answers.gold_words import shorter_answers, unmatchable_because
from truegold.verifiers.choice_rows import (
    LETTER,
    LISTS,
    ChoiceColumns,
    find_choices,
    first_index,
    read_choice,
    with_options,
)
from truegold.verifiers.code.suite.row_tests import Unusable
from truegold.verifiers.columns import (
    GOLDS_COLUMNS,
    MISSING,
    NAMES,
    SOURCES,
    Samples,
    Values,
    are_different,
    are_shared,
    find_column,
    spelled,
    text_of,
)
from truegold.verifiers.gold import OTHER_GOLDS
from truegold.verifiers.row_kinds import TESTS, foreign_kind, looks_like_tests
from truegold.verifiers.strict_json import parse_structure
from truegold.verifiers.user_code import did_you_mean


def programs(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Return the layout of records with a problem and a column of tests, in any form of `row_tests`, or None.

        {"question": "Write area(w, h).", "test_cases": ["assert area(3, 4) == 12"]}
        {"prompt": [...], "reward_model": {"ground_truth": "{\"inputs\": [...], \"outputs\": [...]}"}}
        {"question": "Print ...", "inputs": ["3\n"], "outputs": ["6\n"]}

    Rows without tests are judged by their gold if the source has a column of golds. Else they are rejected as
    mixed_source.
    """
    prompt = find_column("prompt", samples)
    names_verifiers = any(text_of(values.get("verifier")) is not None for values in samples)
    if prompt is None or names_verifiers or (tests := find_tests(samples)) is None:
        return None
    of_programs = program_layout(prompt, tests, story_columns(samples, prompt), samples)
    gold = find_column("gold", samples)
    if gold is not None and gold != tests and not _surely_tests(tests, gold, samples):
        return None
    may_be_answers = gold == tests or not all(holds_tests(tests, values) for values in samples)
    of_answers = answers(columns, samples) if gold is not None and may_be_answers else None
    return of_programs if of_answers is None else _of_both(of_programs, of_answers, tests)


def _surely_tests(tests: str, gold: str, samples: Samples) -> bool:
    """Return whether a column surely has tests, although there is a gold column. This is true if the tests of each row
    are assertions, or the row has no gold."""
    tested = [values for values in samples if holds_tests(tests, values)]
    return all(text_of(Column(gold)(values)) is None or has_assertions(tests, values) for values in tested)


def _of_both(of_programs: Layout, of_answers: Layout, tests: str) -> Layout:
    """Return the layout of a source in which some rows have tests, and other rows an answer."""

    def derive(values: Values) -> Derived:
        if not holds_tests(tests, values):
            return of_answers.derive(values) if of_answers.derive is not None else Derived({})
        assert of_programs.derive is not None
        return replace(of_programs.derive(values), verifier="code")

    return replace(of_answers, derive=derive, uses=frozenset(of_programs.uses - {tests.split(".", maxsplit=1)[0]}))


def answers(columns: Set[str], samples: Samples) -> Layout | None:
    r"""Return the layout of records with problem and answer in columns with usual names (`columns.NAMES`), or None.

    {"question": "Natalia ...", "answer": "48+24 = 72 #### 72"}            gold "72", the solution is the answer
    {"problem": "What is ...", "solution": "... so \\boxed{12}."}           gold "12", the solution is kept
    {"prompt": [...], "reward_model": {"ground_truth": "72"}}              gold "72"
    {"input": "What is one half?", "target": ["1/2", "0.5"]}               each gold of the list is accepted
    {"question": "Which word?", "answer": "colour", "golds": ["color"]}    golds "colour" and "color"
    {"Body": "Tom has 3 apples.", "Question": "How many ...", "Answer": 3}  the story precedes the question
    {"question": "...", "answer": "Let x be ... and so x = 54."}            a reject: sentences without a marked answer

    If more than half of all golds are sentences, their rows are rejected. If fewer are, `verify_gold` holds these rows
    back.
    """
    prompt = find_column("prompt", samples)
    if prompt is None and not columns & {"prompt", "question", "problem", "text"}:
        return None
    prompt = prompt or next(name for name in ("prompt", "question", "problem", "text") if name in columns)
    golds = next((name for name in GOLDS_COLUMNS if any(_is_list(Column(name)(sample)) for sample in samples)), None)
    # If a column has a list of golds, a column `label` may be a class of the record.
    exclude = (prompt, "label") if golds is not None else (prompt,)
    fallbacks = (name for name in ("answer", "solution", "solutions") if name in columns and name not in exclude)
    gold = find_column("gold", samples, exclude=exclude) or next(fallbacks if golds is None else iter(()), None)
    if gold is not None and gold.casefold() == "label" and (worked := next(fallbacks, None)) is not None:
        # The column `label` is a class.
        gold = worked if boxed_gold_spec(worked, samples) is not None else gold
    if gold is None and golds is None:
        return None
    layout = Layout(Columns(prompt=ColumnSpec(column=prompt), golds=_spec(golds)))
    if gold is not None:
        spec, solution = _gold_and_solution(prompt, gold, samples)
        layout = Layout(layout.columns.model_copy(update={"gold": spec, "solution": _spec(solution)}))
    texts = [_texts_of_golds(values, layout.columns.gold, layout.columns.golds) for values in samples]
    story = story_columns(samples, prompt, texts)
    return replace(layout, derive=_answer_derivation(layout.columns, story, samples), asks=story.names)


def _answer_derivation(columns: Columns, story: StoryColumns, samples: Samples) -> partial[Derived]:
    prose = [_is_prose(columns, story.prompt, values) for values in samples]
    return partial(_derive_answer, columns, story, 2 * sum(prose) > len(prose))


def _is_prose(columns: Columns, prompt: str, values: Values, *, alone: bool = True) -> bool:
    """Return whether the gold of a record is sentences without a separate answer. With `alone` false, sentences that
    also have a separate answer count."""
    column = compile_column(columns.gold, "gold") if columns.gold is not None else None
    question = values.get(prompt)
    if column is None or not isinstance(column(values), str) or not isinstance(question, str):
        return False
    gold = column.text(values) or ""
    return unmatchable_because(gold, question) == "prose" and not (alone and shorter_answers(gold))


def _texts_of_golds(values: Values, *columns: ColumnSpec | None) -> list[str]:
    return [text for spec in columns for text in _gold_texts(spec, values)]


def _gold_and_solution(prompt: str, gold: str, samples: Samples) -> tuple[ColumnSpec, str | None]:
    """Return the gold column with its extract, and the column of worked solutions or None."""
    if gold in ("solution", "solutions") and (spec := boxed_gold_spec(gold, samples)) is not None:
        return spec, gold if gold == "solution" else None
    spec = gold_spec(gold, samples)
    is_working = spec.extract is not None and spec.extract != WHOLE
    return spec, gold if is_working else find_column("solution", samples, exclude=(prompt, gold))


def _derive_answer(columns: Columns, story: StoryColumns, rejects_prose: bool, values: Values) -> Derived:
    """Return the prompt from all its columns. Raises Unusable for a row of another kind."""
    if rejects_prose and _is_prose(columns, story.prompt, values, alone=False):
        raise Unusable(
            "gold_is_prose",
            f"column {columns.gold.column if columns.gold is not None else ''!r} holds sentences and no marked answer "
            "(a box, ####, 'The answer is'), which no verifier can compare; columns.gold names another one",
        )
    gold = columns.gold.column if columns.gold is not None else ""
    if (
        looks_like_tests(Column(gold)(values))
        and (derive := program_layout(story.prompt, gold, story).derive) is not None
    ):
        return replace(derive(values), verifier="code")
    names = values.get("dataset")
    if isinstance(names, list) and len(set(map(str, names))) > 1:
        raise Unusable("mixed_source", f"its ground truths are for several verifiers: {', '.join(map(str, names))}")
    if (column := story.giving_away(values, _texts_of_golds(values, columns.gold, columns.golds))) is not None:
        raise Unusable("answer_in_prompt", f"column {column!r}, which belongs to the prompt, ends with the answer")
    return Derived({}, prompt=story.whole_prompt(values))


def _gold_texts(spec: ColumnSpec | None, values: Values) -> list[str]:
    if spec is None:
        return []
    column = compile_column(spec, "gold")
    texts = gold_texts(column(values))
    return texts if column.extract is None else [part for text in texts if (part := column.extract(text)) is not None]


def _is_list(value: object) -> bool:
    structure = parse_structure(value)
    return (isinstance(structure, list) and bool(structure)) or (isinstance(structure, dict) and "spans" in structure)


Preset = Callable[[Set[str], Samples], Layout | None]


def _with(*names: str) -> Preset:
    """Return the preset of answers for files that have these columns."""

    def fits(columns: Set[str], samples: Samples) -> Layout | None:
        return answers(columns, samples) if set(names) <= columns else None

    return fits


def _verl(columns: Set[str], samples: Samples) -> Layout | None:
    return (programs(columns, samples) or answers(columns, samples)) if "reward_model" in columns else None


PROMPTS = ("goal", "sentence", "stem", "ctx")
"""Columns of questions in records with options. In other records, columns with these names may have any content."""


def choices(columns: Set[str], samples: Samples) -> Layout | None:
    """Return the layout of questions with options in other columns (`choice_rows`), or None.

    A row without options is an open question, judged by `math`, unless its answer is a letter. Raises InputError if
    answers are indices that may count from 0 or from 1.
    """
    if (chosen := find_choices(columns, samples)) is None:
        return None
    taken = {*chosen.options, *chosen.wrong, chosen.answer or ""}
    asking = find_column("prompt", samples, exclude=taken)
    prompt = asking or next((name for name in spelled(PROMPTS, columns) if name not in taken), None)
    if prompt is None:
        return None
    first = first_index(chosen, samples)
    column = Column(prompt)
    golds = [_right_texts(chosen, values, first) for values in samples]
    stories = story_columns(samples, prompt, golds, have_options=True)

    def derive(values: Values) -> Derived:
        question = stories.whole_prompt(values) or text_of(read_prompt(column(values))[0])
        if (is_open := _open_question(chosen, values, question)) is not None:
            return is_open
        if (name := stories.giving_away(values, _right_texts(chosen, values, first))) is not None:
            raise Unusable("answer_in_prompt", f"column {name!r}, which belongs to the prompt, ends with the answer")
        texts, right = read_choice(chosen, values, first, question or "")
        arguments = {"options": texts, **({"multiple": True} if len(right) > 1 else {})}
        return Derived(arguments, prompt=with_options(question, texts), gold=right)

    named = Columns(prompt=ColumnSpec(column=prompt))
    if (solution := find_column("solution", samples, exclude={prompt, *taken})) is not None:
        named = named.model_copy(update={"solution": ColumnSpec(column=solution)})
    return Layout(named, "choice", "choice", derive, frozenset(taken - {""}), stories.names)


def _right_texts(columns: ChoiceColumns, values: Values, first: int | None) -> list[str]:
    """Return the texts that name the right option of a record: its letter, and its words."""
    try:
        texts, letters = read_choice(columns, values, first, "")
    except Unusable:
        return []
    return [*letters, *(texts[ord(letter) - ord("A")] for letter in letters)]


def _open_question(columns: ChoiceColumns, values: Values, question: str | None) -> Derived | None:
    """Return the open question of a record without options; None if it has options, or its answer is a letter."""
    if columns.wrong or columns.answer is None or any(text is not None for text in columns.slots(values)):
        return None
    golds = golds_of(values.get(columns.answer), columns.answer)
    if not golds or all(LETTER.fullmatch(gold.strip()) for gold in golds):
        return None
    return Derived({OTHER_GOLDS: golds[1:]} if golds[1:] else {}, prompt=question, gold=golds[0], verifier="math")


PRESETS: dict[str, tuple[Preset, str]] = {
    "truegold": (exported, "truegold (or extra_info.truegold, metadata.truegold), as `truegold export` writes it"),
    "leetcode": (leetcode, "entry_point, test, prelude (or prompt and completion), and a column with the problem"),
    "humaneval": (humaneval, "prompt, canonical_solution, test, entry_point; or prompt, test, language"),
    "mbpp": (mbpp, "text or prompt, code, test_list"),
    "livecodebench": (livecodebench, "question_content, public_test_cases"),
    "apps": (apps, "question, input_output"),
    "codecontests": (codecontests, "problem, description or question, and tests or public_tests"),
    "verl": (_verl, "prompt, reward_model"),
    "programs": (programs, f"one of {', '.join(NAMES['prompt'])}, and tests in one of {', '.join(TESTS)}"),
    "choices": (choices, f"one of {', '.join(NAMES['prompt'])}, and options in {', '.join(LISTS)}, A to D, ..."),
    "accepted": (answers, f"one of {', '.join(NAMES['prompt'])}, and a list in one of {', '.join(GOLDS_COLUMNS)}"),
    "inspect": (_with("input", "target"), "input, target (a list of accepted golds)"),
    "open-instruct": (_with("messages", "ground_truth", "dataset"), "messages, ground_truth, dataset"),
    "gsm8k": (_with("question", "answer"), "question, answer"),
    "math": (_with("problem"), "problem, and answer or a solution with \\boxed{}"),
    "trl": (_with("prompt"), "prompt, and ground_truth, answer, ... or solution"),
    "generic": (answers, f"one of {', '.join(NAMES['prompt'])}, and one of {', '.join(NAMES['gold'])}, solution"),
}
"""The presets by name, with a description of their columns, in the order of the automatic choice."""


def check_preset(name: str | None) -> None:
    """Raise ConfigError if the preset does not exist."""
    if name is not None and name not in PRESETS:
        near = did_you_mean(name, PRESETS)
        raise ConfigError(
            f"There is no preset {name!r}.", f"{near + ' ' if near else ''}There are: {', '.join(PRESETS)}."
        )


def check_spelling(config: SourceConfig) -> None:
    """Raise ConfigError for a preset or an extract that does not exist, without reading data."""
    check_preset(config.preset)
    for field, spec in config.columns:
        if spec is not None:
            compile_column(spec, field)


@contextmanager
def source_named(part: SourceConfig, location: str = "") -> Iterator[None]:
    """Within this context, errors name the source and its location in the configuration, if it is one of several
    sources."""
    try:
        yield
    except TruegoldError as error:
        if isinstance(part, ListedFile | ListedHub):
            error.message = f"Source {part.label!r}{location}: {error.message}"
            error.args = (error.message,)
        raise


def layout_of_preset(name: str, samples: Samples, location: str, taken: Set[str] = frozenset()) -> Layout:
    """Return the layout of a preset for records such as `samples`, which may lack the columns in `taken`.

    `location` is the name of the source in errors. Raises ConfigError if the preset does not exist, InputError if it
    does not fit the columns.
    """
    check_preset(name)
    fits, shape = PRESETS[name]
    if (layout := fits(_column_names(samples) | taken, samples)) is None:
        raise InputError(f"{location} does not have the columns of preset {name}: {shape}.", _list_columns(samples))
    return layout


def guess_layout(samples: Samples) -> Layout:
    """Return the layout, guessed by the names and values of the samples. A role without a column is left out."""
    if (layout := _first_preset(_column_names(samples), samples)) is None:
        gold = find_column("gold", samples)
        spec = None if gold is None else gold_spec(gold, samples)
        layout = Layout(Columns(prompt=_spec(find_column("prompt", samples)), gold=spec))
    return replace(layout, columns=_add_id(layout.columns, samples))


def choose_layout(config: SourceConfig, location: str, samples: Samples) -> Layout:
    """Return the layout of a source with prompts and golds. Configured columns replace those of the preset.

    `location` is the name of the source in errors. Raises ConfigError for an unknown preset or a prompt without gold,
    InputError if no preset fits the columns, or a configured column is missing.
    """
    check_columns(config, Layout(config.columns), location, samples)
    if config.preset is not None:
        layout = layout_of_preset(config.preset, samples, location, _taken_elsewhere(config))
    elif config.columns.prompt is not None:
        layout = _layout_without_preset(config, location, samples)
    else:
        layout = _fit_preset(config, location, _column_names(samples), samples)
    configured = {name: spec for name, spec in config.columns if spec is not None}
    if layout.restore is not None and (unread := sorted(configured.keys() - {"id"})):
        raise ConfigError(
            f"{location} was written by truegold export, and its rows come back as they were: "
            f"columns.{unread[0]} would not be read.",
            "Leave it out; or name the columns of the prompt and gold too, to read the file as any other.",
        )
    columns = _add_id(layout.columns, samples).model_copy(update=configured)
    if "gold" in configured and isinstance(layout.derive, partial) and layout.derive.func is _derive_answer:
        # The configured column decides whether golds are sentences.
        layout = replace(layout, derive=_answer_derivation(columns, layout.derive.args[1], samples))
    if layout.restore is None:
        columns = with_row_columns(columns, config, layout.uses)
    kinds = frozenset(name for name in (*LISTS, *TESTS, *STORIES) if "." not in name)
    taken = {spec.column for _, spec in columns if spec is not None}
    unseen = kinds - _column_names(samples) - taken - layout.uses if config.preset is None else frozenset()
    layout = replace(layout, columns=columns, unseen=unseen)
    if config.columns.prompt is None and layout.restore is None:
        _check_prompts(layout, location, samples)
    check_columns(config, layout, location, samples)
    return layout


def _check_prompts(layout: Layout, location: str, samples: Samples) -> None:
    """Raise InputError if the prompt column looks wrong. In this case, all records have the same prompt, their golds
    differ, and another column may be the prompt."""
    prompt, gold = layout.columns.prompt, layout.columns.gold
    if layout.verifier != "math" or prompt is None or gold is None or len(layout.asks) > 1:
        return
    golds = {tuple(_texts_of_golds(values, gold)) for values in samples}
    if not are_shared(prompt.column, samples) or len(golds) < 2:
        return
    taken = {spec.column.split(".")[0] for _, spec in layout.columns if spec is not None} | layout.uses
    others = [name for name in sorted(_column_names(samples) - taken - _BESIDE_PROMPTS) if _may_ask(name, samples)]
    if others:
        raise InputError(
            f"{location}: all records have the same text in column {prompt.column!r}, and different answers; is the "
            f"prompt in column {others[0]!r}?",
            f"Name the column of the prompt: --prompt-column {shlex.quote(others[0])}, or --prompt-column "
            f"{shlex.quote(prompt.column)}; if the prompt consists of both, join them in one column.",
        )


_BESIDE_PROMPTS = {
    *(name for name in NAMES["response"] if name != "text"),
    *(*NAMES["solution"], *SOURCES, *NAMES["system"], *ROW_COLUMNS),
}


def _may_ask(name: str, samples: Samples) -> bool:
    texts = [text for values in samples if isinstance(text := values.get(name), str) and count_words(text) > 1]
    return are_different(name, samples) and 2 * len(texts) > len(samples)


def _add_id(columns: Columns, samples: Samples) -> Columns:
    taken = {spec.column for _, spec in columns if spec is not None}
    return columns.model_copy(update={"id": columns.id or _spec(find_column("id", samples, exclude=taken))})


def _spec(name: str | None) -> ColumnSpec | None:
    return None if name is None else ColumnSpec(column=name)


def _column_names(samples: Samples) -> set[str]:
    return {name for sample in samples for name in sample}


def _taken_elsewhere(config: SourceConfig) -> set[str]:
    """Return the columns that a preset does not need, because the configuration names other columns for their roles."""
    names = set()
    if config.columns.prompt is not None:
        names |= {"question", "problem", "prompt", "text"}
    if config.columns.gold is not None:
        names |= {"answer", "reward_model"}
    return names


def _layout_without_preset(config: SourceConfig, location: str, samples: Samples) -> Layout:
    columns = config.columns
    taken = {spec.column for _, spec in columns if spec is not None}
    if columns.tests is not None:
        return Layout(Columns(solution=solution_column(samples, taken)), "code", "code")
    if columns.gold is not None or columns.golds is not None:
        return Layout(Columns())
    without_gold = judged_without_gold(config, samples)
    gold = find_column("gold", samples, exclude=taken)
    if gold is not None and not all(without_gold):
        return Layout(Columns(gold=gold_spec(gold, samples)))
    if any(without_gold):
        return Layout(Columns())
    prompt = columns.prompt.column if columns.prompt is not None else ""
    raise UnusualNamesError(
        f"{location}: the prompt is column {prompt!r}, and no other column has a usual name of answers.",
        f"{_list_columns(samples)} Name that of the answers: --gold-column COLUMN. Rows without answers need tests, or "
        "a verifier that judges without them.",
    )


def _first_preset(names: set[str], samples: Samples) -> Layout | None:
    return next((layout for fits, _ in PRESETS.values() if (layout := fits(names, samples)) is not None), None)


def _fit_preset(config: SourceConfig, location: str, names: set[str], samples: Samples) -> Layout:
    if (layout := _first_preset(names | _taken_elsewhere(config), samples)) is not None:
        return layout
    prompt = find_column("prompt", samples)
    if prompt is not None and any(judged_without_gold(config, samples)):
        return Layout(Columns(prompt=_spec(prompt)))
    if samples and (kind := foreign_kind(samples[0])) is not None:
        raise InputError(
            f"{location}: its rows are {kind}.", "Name a verifier of your own: verifier: PACKAGE.MODULE:NAME."
        )
    for name in CONVERSATIONS:
        if any(len(messages_of(values.get(name))) > 1 for values in samples):
            raise _answers_in_turns(location, name, samples)
    for name, value in samples[0].items() if len(samples) == 1 else ():
        if isinstance(value, list) and find_column("prompt", [each for each in value if isinstance(each, Mapping)]):
            raise nested_records(location, name)
    raise UnusualNamesError(
        f"{location}: no column has a usual name of problems or answers.",
        f"{_list_columns(samples)} `truegold init {shlex.quote(location)}` proposes their roles; or name them: "
        "--prompt-column COLUMN --gold-column COLUMN; `data: {columns: {prompt: ..., gold: ...}}` in a run's file; "
        "prompt=..., gold=... in Python.",
    )


class UnusualNamesError(InputError):
    """The names of a source's columns are not known."""


def _answers_in_turns(location: str, name: str, samples: Samples) -> InputError:
    """Return the error for conversations without a gold column. It explains how to take the gold from the last turn."""
    turn = next(values[name] for values in samples if messages_of(values.get(name)))
    content = "value" if "value" in str(turn) and "from" in str(turn) and "content" not in str(turn) else "content"
    gold = gold_spec(f"{name}.-1.{content}", samples)
    if gold.extract is None and "boxed{" in str(turn):
        gold = ColumnSpec(column=gold.column, extract="boxed")
    taken = f"{{column: {gold.column}, extract: {gold.extract}}}" if gold.extract else gold.column
    return InputError(
        f"{location}: no preset fits its columns: there is no gold beside the conversations in {name!r}.",
        f"If the last turn ends in the answer, take it from there: columns: {{prompt: {name}, gold: {taken}}} under "
        "data.",
    )


def check_columns(config: SourceConfig, layout: Layout, location: str, samples: Samples) -> None:
    """Raise InputError for a configured column that no sample record has, and for golds that are the prompts."""
    prompt, gold = layout.columns.prompt, layout.columns.gold
    if prompt is not None and gold is not None and (gold.column, gold.extract) == (prompt.column, None):
        raise InputError(
            f"{location}: column {gold.column!r} is named for the prompt and for the gold.",
            f"{_list_columns(samples)} Name two: --prompt-column COLUMN --gold-column COLUMN.",
        )
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
