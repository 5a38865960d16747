"""The rows of the page in a compact form: columns for the table, and blocks of details, unpacked when looked at.

    index    {"rows": 1000, "records": 1000, "columns": {"id": [...], "outcome": [0, 0, 1, ...], ...},
              "names": {"outcome": ["dropped", "selected"], ...}, "cuts": {...}}
    blocks   [[detail of row 0, detail of row 1, ...], ...], BLOCK_ROWS details each

Each is JSON, deflated and in base64, so that no text of the data stands in the page as such, and the page unpacks it by
the browser's `DecompressionStream`.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.browser.details import WHOLE, Cuts, cuts_for, gather_details
from truegold.pipeline.report.browser.ends import MAX_RECORDS, before_decisions, find_end, gather_ends, table_of
from truegold.pipeline.tables.rows import KEY
from truegold.pipeline.tables.run_files import Fields, RunFiles
from truegold.pipeline.text.shown import cut, visible

BLOCK_ROWS = 200
"""The details that are unpacked together."""
GOLD_CHARS = 400
NAME_CHARS = 200
CODED = ("source", "split", "domain", "verifier", "outcome", "stage", "reason", "tier", "fault_by")
"""Columns of few values, which the page has as numbers into `names`."""
LISTED = ("flags", "verdicts")
"""Columns of lists of such values."""

Codes = dict[str, int]
"""The code of each value of a column."""


@dataclass(frozen=True)
class Browser:
    """All rows of a run as the page holds them."""

    index: str
    blocks: tuple[str, ...]
    shown: int
    """The records in the page."""
    records: int
    """The records of the run."""
    cuts: Cuts
    details: Sequence[Fields] = field(default=(), repr=False)
    """The details as they were before they were packed."""
    prompts: Sequence[str] = field(default=(), repr=False)

    def texts(self) -> Iterator[str]:
        """Yield the texts in which the page draws maths."""
        yield from self.prompts
        for detail in self.details:
            yield detail.get("solution") or ""
            yield from (sample["text"] for sample in detail.get("samples", ()))


def gather_browser(
    files: RunFiles, limit: int = MAX_RECORDS, *, is_blind: bool = False, earlier: pl.DataFrame | None = None
) -> Browser:
    """Return the rows of a run, the most suspicious first, then the rejected records.

    earlier: what became of the rows in another run: KEY, `change` (how they ended there and here, where that differs)
    and `earlier_rate`.
    is_blind: whether all that tells of reviewers' decisions is left out: rows are shown as they were before `settle`.
    """
    before, files = before_decisions(files) if is_blind else (files, files)
    ends = gather_ends(before, limit, suspected_by=files)
    cuts = cuts_for(ends.shown)
    rows = _with_measures(ends.rows, files)
    if earlier is not None:
        rows = rows.join(earlier, on=KEY, how="left", maintain_order="left")
    details = gather_details(files, rows, cuts)
    for row, detail in zip(rows.iter_rows(named=True), details, strict=True):
        if long := _long_texts(row, cuts):
            # The page says where the whole texts lie.
            detail["cut"] = long | {"table": table_of(row, files)}
    columns: dict[str, list[Any]] = {
        "id": rows["id"].to_list(),
        "seen": rows["seen"].to_list(),
        "row": rows["source_row"].to_list(),
        "prompt": [cut(visible(text or ""), cuts.prompt) for text in rows["prompt"]],
        "gold": [None if text is None else cut(visible(text), GOLD_CHARS) for text in rows["gold"]],
        "suggestion": [text and cut(visible(text), GOLD_CHARS) for text in rows["suggestion"]],
        "rival": [_rival(detail) for detail in details],
        "suspicion": [_rounded(value) for value in rows["suspicion"]],
        "fault": [_rounded(value) for value in rows["fault"]],
        "rate": [_rounded(value) for value in rows["rate"]],
        "after": [_rounded(value) for value in rows["after"]],
        **{name: rows[name].to_list() for name in ("passes", "judged", "n", "holds")},
    }
    coded = CODED if earlier is None else (*CODED, "change")
    if earlier is not None:
        columns["earlier_rate"] = [_rounded(value) for value in rows["earlier_rate"]]
    codes: dict[str, Codes] = {name: {} for name in (*coded, *LISTED)}
    for name in coded:
        columns[name] = _code(rows[name], codes[name])
    for name in LISTED:
        columns[name] = [_code(values or (), codes[name]) for values in rows[name].to_list()]
    _add_rejects(ends.rejects, columns, codes, details, cuts)
    names = {name: list(known) for name, known in codes.items()}
    index = {"rows": ends.shown, "records": ends.records, "columns": columns, "names": names, "cuts": asdict(cuts)}
    blocks = [details[start : start + BLOCK_ROWS] for start in range(0, len(details), BLOCK_ROWS)]
    packed = pack({**index, "block_rows": BLOCK_ROWS})
    texts = [*columns["prompt"], *(gold for gold in columns["gold"] if gold)]
    return Browser(packed, tuple(map(pack, blocks)), ends.shown, ends.records, cuts, details, texts)


def _long_texts(row: Mapping[str, Any], cuts: Cuts) -> dict[str, int]:
    """Return the length of those texts of a row that the page cuts."""
    limits = {"prompt": cuts.prompt, "gold": GOLD_CHARS, "suggestion": GOLD_CHARS, "solution": cuts.prompt}
    return {name: len(row[name]) for name, limit in limits.items() if row[name] and len(row[name]) > limit}


def whole_texts(files: RunFiles, row_id: str, source_key: tuple[str, int] | None, *, is_blind: bool) -> Fields | None:
    """Return the texts of a row as the page shows them, none of them cut; None where the run has no such row.

    source_key: where it came from, for rows of one content that cleaning may have made different.
    """
    before, files = before_decisions(files) if is_blind else (files, files)
    rows = find_end(before, files, row_id, source_key)
    if rows is None:
        return None
    (row,), (detail,) = rows.to_dicts(), gather_details(files, rows, WHOLE)
    return {
        "prompt": visible(row["prompt"] or ""),
        "gold": None if row["gold"] is None else visible(row["gold"]),
        "suggestion": row["suggestion"] and visible(row["suggestion"]),
        "detail": detail,
    }


def _rival(detail: Fields) -> str | None:
    """Return the answer with most votes that is not gold."""
    others = (answer["texts"][0] for answer in detail.get("answers", ()) if answer["kind"] == "alternative")
    return next(others, None)


def pack(value: Any) -> str:
    """Return JSON, deflated and in base64."""
    return base64.b64encode(zlib.compress(orjson.dumps(value), 6)).decode()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _code(values: Iterable[str | None], codes: Codes) -> list[int | None]:
    """Return the code of each value; new ones get the next."""
    return [
        None if value is None else codes.setdefault(cut(visible(value), NAME_CHARS), len(codes)) for value in values
    ]


def _with_measures(rows: pl.DataFrame, files: RunFiles) -> pl.DataFrame:
    """Return the rows with their pass rates, the reasons of their flags, and of the verdicts on their samples."""
    keys = rows.lazy().select(KEY)
    empty = {"id": pl.String, "source": pl.String, "source_row": pl.Int64}
    rates = {"rate": pl.Float64, "passes": pl.Int32, "judged": pl.Int32, "n": pl.Int32}
    tables = {
        "rates": pl.LazyFrame(schema={**empty, **rates}),
        "after": pl.LazyFrame(schema={**empty, "after": pl.Float64}),
        "flags": pl.LazyFrame(schema={**empty, "flags": pl.List(pl.String), "holds": pl.Boolean}),
        "verdicts": pl.LazyFrame(schema={**empty, "verdicts": pl.List(pl.String)}),
    }
    if (profile := files.table("profile", "profile.parquet")) is not None:
        tables["rates"] = profile.select(*KEY, pl.col("pass_rate").alias("rate"), "passes", "judged", "n")
    if (after := files.table("profile_after", "profile.parquet")) is not None:
        tables["after"] = after.select(*KEY, pl.col("pass_rate").alias("after"))
    if (flags := files.flags(after_training=True)) is not None:
        reasons = pl.col("reason").unique().sort()
        tables["flags"] = flags.group_by(KEY).agg(flags=reasons, holds=pl.col("blocks").any())
    if (samples := files.table("profile", "samples.parquet")) is not None:
        tables["verdicts"] = samples.group_by(KEY).agg(verdicts=pl.col("reason").unique().sort())
    joined = rows.lazy()
    for table in tables.values():
        joined = joined.join(table.join(keys, on=KEY, how="semi"), on=KEY, how="left", maintain_order="left")
    return joined.collect()


def _add_rejects(
    rejects: Sequence[Fields], columns: dict[str, list[Any]], codes: dict[str, Codes], details: list[Fields], cuts: Cuts
) -> None:
    """Add the rejected records to the columns: their excerpts stand for their prompts, and they have no id."""
    for reject in rejects:
        known = {
            "prompt": cut(visible(reject["excerpt"]), cuts.prompt),
            "row": reject["source_row"],
            "source": _code([reject["source"]], codes["source"])[0],
            "outcome": _code(["rejected"], codes["outcome"])[0],
            "stage": _code(["ingest"], codes["stage"])[0],
            "reason": _code([reject["reason"]], codes["reason"])[0],
            "id": "",
            "flags": [],
            "verdicts": [],
        }
        for name, values in columns.items():
            values.append(known.get(name))
        facts = [["detail", cut(visible(str(reject["detail"])), cuts.prompt)]]
        details.append(
            {"ledger": [{"stage": "ingest", "action": "reject", "reason": reject["reason"], "facts": facts}]}
        )
