"""Chooses a source's layout: the configured preset's or the first that fits, with the configured columns over it.

`columns: {prompt: Body, gold: Answer}` over a file of `{"Body": "...", "Question": "...", "Answer": 51.0}` takes those
two and no preset. `columns: {gold: answr}` ends with one line: the file, the missing column, those that exist, and
"Did you mean 'answer'?". Commands that work alone on a file ask `guess_columns`, so that a column which one command
reads is read by all.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from truegold.pipeline.config.sources import Columns, ColumnSpec, SourceConfig
from truegold.pipeline.sources.column_names import (
    CHOICE_COLUMNS,
    NAMES,
    column_paths,
    describe_columns,
    find_column,
    gold_spec,
)
from truegold.pipeline.sources.columns import MISSING, Column
from truegold.pipeline.sources.layout import Layout, Samples
from truegold.pipeline.sources.presets import PRESETS
from truegold.pipeline.sources.row_columns import judged_without_gold, with_row_columns
from truegold.verifiers import ConfigError, InputError
from truegold.verifiers.user_code import did_you_mean


def check_preset(name: str | None) -> None:
    """Raise ConfigError where there is no such preset."""
    if name is not None and name not in PRESETS:
        near = did_you_mean(name, PRESETS)
        raise ConfigError(
            f"There is no preset {name!r}.", f"{near + ' ' if near else ''}There are: {', '.join(PRESETS)}."
        )


def layout_of_preset(name: str, samples: Samples, location: str, taken: Set[str] = frozenset()) -> Layout:
    """Return the layout that a preset gives records such as `samples`; columns that are `taken` need not be there.

    `location` names the source in errors. Raises ConfigError for a preset that does not exist, InputError where it does
    not fit the columns.
    """
    check_preset(name)
    fits, shape = PRESETS[name]
    layout = fits(_column_names(samples) | taken, samples)
    if layout is None:
        raise InputError(f"{location} does not have the columns of preset {name}: {shape}.", _list_columns(samples))
    return layout


def guess_columns(samples: Samples) -> Columns:
    """Return which column is which, by the names and values of the sample records; what is not there is left out.

    A question whose answer options stand in a column of their own is a prompt here: it can be compared and judged,
    though not trained on (`choose_layout`).
    """
    layout = _first_preset(_column_names(samples), samples)
    if layout is not None:
        return _add_id(layout.columns, samples)
    gold = find_column("gold", samples)
    columns = Columns(
        prompt=_spec(find_column("prompt", samples)), gold=None if gold is None else gold_spec(gold, samples)
    )
    return _add_id(columns, samples)


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
