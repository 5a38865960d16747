"""Chooses a source's layout: the configured preset's or the first that fits, with the configured columns over it.

`columns: {prompt: Body, gold: Answer}` over a file of `{"Body": "...", "Question": "...", "Answer": 51.0}` takes those
two and no preset. `columns: {gold: answr}` ends with one line: the file, the missing column, those that exist, and
"Did you mean 'answer'?".
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Set
from dataclasses import replace

from truegold.pipeline.config.sources import Columns, SourceConfig
from truegold.pipeline.ingest.columns import MISSING, Column
from truegold.pipeline.ingest.presets import CHOICE_COLUMNS, PRESETS, Layout, Samples
from truegold.pipeline.ingest.records import excerpt
from truegold.verifiers import ConfigError, InputError

SHOWN_CHARS = 1000
"""What an error shows of a source's column names: some files have data where the header should be."""


def check_preset(name: str | None) -> None:
    """ConfigError where there is no such preset."""
    if name is not None and name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"There is no preset {name!r}.", f"{meant}There are: {', '.join(PRESETS)}.")


def choose_layout(config: SourceConfig, place: str, samples: Samples) -> Layout:
    """The layout of a source: the configured preset's, or the first that fits, with the configured columns over it."""
    check_preset(config.preset)
    present = {name for sample in samples for name in sample}
    layout: Layout | None
    if config.preset is not None:
        layout = PRESETS[config.preset][0](present | _overridden(config), samples)
        if layout is None:
            raise InputError(
                f"{place} does not have the columns of preset {config.preset}: {PRESETS[config.preset][1]}.",
                _exists(present),
            )
    elif config.columns.prompt is not None:
        layout = _bare_layout(config)
    else:
        layout = _fitting(config, place, present, samples)
    given = {name: spec for name, spec in config.columns if spec is not None}
    layout = replace(layout, columns=layout.columns.model_copy(update=given))
    check_columns(config, layout, place, samples)
    return layout


def _overridden(config: SourceConfig) -> set[str]:
    """A preset does not miss `question` where the configuration takes the prompt from elsewhere."""
    names = set()
    if config.columns.prompt is not None:
        names |= {"question", "problem", "prompt", "text"}
    if config.columns.gold is not None:
        names |= {"answer", "reward_model"}
    return names


def _bare_layout(config: SourceConfig) -> Layout:
    columns = config.columns
    if columns.tests is not None:
        return Layout(Columns(), "code", "code")
    if columns.gold is None and config.verifier is None and columns.verifier is None:
        raise ConfigError(
            "columns names a prompt and no gold.", "Add columns.gold, columns.tests, or a verifier that needs neither."
        )
    return Layout(Columns())


def _fitting(config: SourceConfig, place: str, present: set[str], samples: Samples) -> Layout:
    split_problem = any(sample.get(name) for sample in samples for name in CHOICE_COLUMNS)
    for fits, _ in PRESETS.values():
        layout = fits(present | _overridden(config), samples)
        if layout is not None and (not split_problem or layout.domain == "code"):
            return layout
    why = " (with answer options in a column of their own, the prompt has to hold them)" if split_problem else ""
    raise InputError(
        f"{place}: no preset fits its columns{why}.",
        f"{_exists(present)} Name them: columns: {{prompt: ..., gold: ...}}",
    )


def check_columns(config: SourceConfig, layout: Layout, place: str, samples: Samples) -> None:
    """InputError for a mapped column that none of the sample records has."""
    present = {name for sample in samples for name in sample}
    for field, spec in layout.columns:
        required = getattr(config.columns, field) is not None or field in ("prompt", "gold")
        if spec is None or not required:
            continue
        column = Column(spec.column, None)
        if all(column(sample) is MISSING for sample in samples):
            near = difflib.get_close_matches(spec.column, _paths(samples), n=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(f"{place} has no column {spec.column!r} (columns.{field}).", meant + _exists(present))


def _paths(samples: Samples) -> list[str]:
    """Top-level names and one level of structs below them."""
    paths: dict[str, None] = {}
    for sample in samples:
        for name, value in sample.items():
            paths[name] = None
            if isinstance(value, Mapping):
                paths.update({f"{name}.{inner}": None for inner in value})
    return list(paths)


def _exists(present: Set[str]) -> str:
    names = sorted(present)
    shown = ", ".join(names[:40]) + (", ..." if len(names) > 40 else "")
    return f"Its columns: {excerpt(shown, SHOWN_CHARS)}." if names else "It has no columns."
