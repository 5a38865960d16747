"""A data card as Markdown with Hugging Face's YAML head.

    ---
    configs: [{config_name: default, data_files: [{split: train, path: data/train.parquet}]}]
    dataset_info: {features: [{name: id, dtype: string}, ...], splits: [{name: train, num_examples: 1319, ...}], ...}
    ---
    # gsm8k
    ...

The head's fields are those of `datasets.DatasetInfo`; sizes are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from truegold.pipeline.accounting.accounting import describe_losses
from truegold.pipeline.accounting.label_errors import LabelErrors
from truegold.pipeline.export.card import NOT_STATED, DataCard, Decontamination
from truegold.pipeline.text.shown_text import visible

SOURCES_SHOWN = 20
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))


def render(card: DataCard) -> str:
    """Return the card as the text of a README.md."""
    head = yaml.safe_dump(_front_matter(card), sort_keys=True, allow_unicode=True, width=120)
    return f"---\n{head}---\n{_body(card)}"


def _front_matter(card: DataCard) -> dict[str, Any]:
    """Return the YAML head; `datasets` checks `num_examples` against the files when it loads the folder."""
    rows = sum(split.rows for split in card.splits)
    head: dict[str, Any] = {
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split.name, "path": split.path} for split in card.splits],
            }
        ],
        "dataset_info": {
            "config_name": "default",
            "features": [_feature(name, dtype) for name, dtype in card.features.items()],
            "splits": [
                {"name": split.name, "num_bytes": split.bytes, "num_examples": split.rows} for split in card.splits
            ],
            "download_size": sum(split.file_bytes for split in card.splits),
            "dataset_size": sum(split.bytes for split in card.splits),
        },
        "size_categories": [next((name for limit, name in _SIZES if rows < limit), "n>10M")],
        "tags": ["truegold", "reinforcement-learning", "verifiable-rewards"],
    }
    if languages := [code for code in card.languages if code != "und"]:
        head["language"] = languages
    stated = [name for name in card.licenses if name != NOT_STATED]
    if card.license:
        head["license"] = card.license
    elif stated:
        # One licence is the set's where every row has it; a mixture has no name on the hub.
        head["license"] = stated[0] if len(card.licenses) == 1 else "other"
    return head


def _feature(name: str, dtype: str) -> dict[str, str]:
    """Return a column as `dataset_info` describes it."""
    entries = dtype.removeprefix("list[")
    return {"name": name, "dtype": dtype} if entries == dtype else {"name": name, "list": entries.removesuffix("]")}


def _body(card: DataCard) -> str:
    rows = sum(split.rows for split in card.splits)
    parts = ", ".join(f"{split.rows:,} {split.name}" for split in card.splits)
    sections = [
        f"# {_cell(card.name)}",
        f"{rows:,} problems ({parts}) left of {card.records_in:,} records, curated by truegold {card.truegold}. "
        f"Configuration `{card.configuration}`.",
        "## Where the records went",
        markdown_table(("stage", "reason", "rows"), [*card.removed, ("", "**in this set**", rows)]),
        *_by_source(card),
        "## Edits",
        markdown_table(("stage", "reason", "edits"), card.edits) if card.edits else "Nothing was edited.",
        "## Flags on rows of this set",
        markdown_table(("reason", "rows"), card.flags.items()) if card.flags else "None.",
        "## Label errors",
        _label_errors(card.label_errors, rows),
        "## Decontamination",
        _decontamination(card.decontamination),
        "## Verifiers",
        markdown_table(("verifier", "rows"), card.verifiers.items()),
        "## What the rows are",
        _counts(card),
    ]
    return "\n\n".join(sections) + "\n"


def _by_source(card: DataCard) -> list[str]:
    if not card.by_source:
        return []
    head = ("source", "records", "rejected", "dropped", "train", "heldout", "most went for")
    lines = [
        (line.source, line.records, line.rejected, line.dropped, line.left, line.heldout, describe_losses(line))
        for line in card.by_source
    ]
    return ["By source, in the order of the data:", markdown_table(head, lines)]


def _label_errors(estimate: LabelErrors, rows: int) -> str:
    if estimate.rate is None or estimate.low is None or estimate.high is None:
        return "Estimated share of wrong labels: not estimated (no samples, and no reviewed rows without a flag)."
    interval = f"95 % interval {estimate.low:.2%} to {estimate.high:.2%}"
    return (
        f"Estimated share of wrong labels: {estimate.rate:.2%} ({interval}), by {estimate.method}, "
        f"which tell of {estimate.known:,} rows; the set has {rows:,}."
    )


def _decontamination(outcome: Decontamination) -> str:
    heldout = f"Against this run's own held-out rows: {outcome.leaked_heldout:,} rows dropped."
    if not outcome.is_run:
        return f"Against evaluation sets: not run. {heldout}"
    sets = [f"{_cell(name)} ({size:,} items)" for name, size in outcome.sets.items()]
    compared = f"{heldout} Compared with {', '.join(sets)}: "
    if not outcome.matches:
        return f"{compared}no row matches."
    match_table = markdown_table(
        ("against", "kind", "rows matched", "still in train", "in heldout"),
        [(match.against, match.kind, match.rows, match.in_train, match.in_heldout) for match in outcome.matches],
    )
    return f"{compared}\n\n{match_table}"


def _counts(card: DataCard) -> str:
    counted = {"domain": card.domains, "language": card.languages, "gold type": card.gold_types, "source": card.sources}
    counted |= {"license": card.licenses, "origin": card.origins}
    return markdown_table(("", "rows"), [(name, _list_counts(counts)) for name, counts in counted.items()])


def _list_counts(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count:,}" for name, count in list(counts.items())[:SOURCES_SHOWN]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more > 0 else "")


def markdown_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for row in rows:
        cells = [f"{cell:,}" if isinstance(cell, int) else _cell(str(cell)) for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return a name from the data, on one line and without the marks of a table."""
    return " ".join(visible(text).split()).replace("|", "\\|")
