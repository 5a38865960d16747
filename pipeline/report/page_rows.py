"""Gathers every record of a run with its outcome, and packs the records for the table of the report page.

    outcome            stage     reason             comes from
    dropped            dedup     exact_duplicate    dedup/dropped.parquet
    held for review    settle    held_for_review    settle/dropped.parquet
    selected           select                       select/selected.parquet
    rejected           ingest    invalid_json       ingest/rejects.jsonl

The most suspicious rows come first. Each row is shown with its last content. The page has two parts: the index with the
columns of the table, and blocks with the details of rows, their cards (`row_cards`):

    index    {"rows": 1000, "records": 1000, "columns": {"id": [...], "outcome": [0, 0, 1, ...], ...},
              "names": {"outcome": ["dropped", "selected"], ...}, "cuts": {...}}
    blocks   [[card of row 0, card of row 1, ...], ...], with BLOCK_ROWS cards in each block

Both are JSON, deflated and in base64, so that no text of the data is part of the page's code. The browser unpacks them
(`DecompressionStream`).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.row_cards import SUSPICION_STAGES, WHOLE, TextCuts, cuts_for, gather_cards
from truegold.pipeline.running.stage_table import DROPPING_STAGES, ROW_STAGES
from truegold.pipeline.tables.ledger import DROPPED_FILE
from truegold.pipeline.tables.reasons import SUSPECT_GOLD, SUSPICION_FILE, DropReason
from truegold.pipeline.tables.rows import KEY, content_key
from truegold.pipeline.tables.run_files import HELD_REASONS, KEY_TYPES, Fields, RunFiles, fetch, has_id
from truegold.pipeline.text.shown_text import cut, visible

MAX_RECORDS = 50_000
"""The maximum number of records on a page: the most suspicious ones, and a random sample of the others."""

BLOCK_ROWS = 200
"""The number of cards that are unpacked together."""
GOLD_CHARS = 400
"""The maximum number of characters of a gold or a suggestion on the page."""
NAME_CHARS = 200
"""The maximum number of characters of a value in the columns CODED and LISTED."""
CODED = ("source", "split", "domain", "verifier", "outcome", "stage", "reason", "tier", "fault_by")
"""Columns with few distinct values, which are stored as indices into `names` of the index."""
LISTED = ("flags", "verdicts")
"""Columns with lists of values, which are stored as lists of such indices."""

Codes = dict[str, int]
"""Maps each value of a column to its index."""

TEXTS = ["prompt", "gold", "solution", "split", "domain", "verifier", "verifier_args", "context"]
"""The columns of a row that the page shows."""

SUREST = 0.99
"""The highest probability of a fault by a flag whose precision was not measured."""

TEXT_TYPES = dict.fromkeys([*TEXTS, "seen"], pl.String)

EVIDENCE_SOURCES = ("samples", "model", "rules", "doubts", "wording")
"""The sources of evidence on which the suspicion of a row is based (`suspicion.joined`)."""

FLAGGING_STAGES = ("well_posed", "flag")
"""The stages whose rows `settle` reads. The first of them that the run has is used."""


@dataclass(frozen=True)
class EndedRows:
    """The records that are shown."""

    rows: pl.DataFrame
    """The shown rows, with KEY, TEXTS, outcome, stage, reason, suspicion, tier, suggestion, fault, fault_by, seen."""
    rejects: tuple[Fields, ...]
    """The shown lines of rejects.jsonl."""
    records: int
    """The number of records of the run, including those that are not shown."""

    @property
    def shown(self) -> int:
        """The number of shown records."""
        return self.rows.height + len(self.rejects)


def gather_ended_rows(files: RunFiles, limit: int = MAX_RECORDS, suspected_by: RunFiles | None = None) -> EndedRows:
    """Return the records of a run, the most suspicious rows first.

    At most `limit` records are returned. Suspicions come from `suspected_by`, by default from `files`.
    """
    scan = _scan_ends(files)
    total = scan.select(pl.len()).collect(engine="streaming").item()
    ranked = _rank(scan.select(*KEY, "outcome", "stage", "reason"), suspected_by or files, is_drawn=total > limit)
    top = ranked.head(limit).collect(engine="streaming")
    texts = (
        scan.select(*KEY, *TEXTS, "name").join(top.lazy().select(KEY), on=KEY, how="semi").collect(engine="streaming")
    )
    rows = _as_reviewed(top.join(texts, on=KEY, how="left", maintain_order="left"), files)
    rejects, rejected = _rejects(files, limit - rows.height)
    return EndedRows(rows, rejects, total + rejected)


def _before_decisions(files: RunFiles) -> tuple[RunFiles, RunFiles]:
    """Return the stages of a run before `settle`, and all of its stages that do not depend on reviewers' decisions."""
    if "settle" not in files:
        return files, files
    stages = list(files.folders)
    blind = files.only(name for name in stages if name not in ("settle", "select"))
    return files.only(stages[: stages.index("settle")]), blind


def _table_of(row: Mapping[str, Any], files: RunFiles) -> str:
    """Return the path, relative to the run, of the table from which the shown content of a row comes."""
    if row["stage"] not in DROPPING_STAGES and row["seen"] is not None:
        return f"{next(name for name in FLAGGING_STAGES if name in files)}/rows.parquet"
    if row["outcome"] in ("dropped", "held for review", "in reserve"):
        return f"{row['stage']}/{DROPPED_FILE}"
    if row["stage"] == "select":
        return f"select/{'selected' if row['outcome'] == 'selected' else 'heldout'}.parquet"
    return f"{row['stage']}/rows.parquet"


def _scan_ends(files: RunFiles) -> pl.LazyFrame:
    """Return every row once, with its last content."""
    frames = []
    reason = pl.col("drop_reason")
    for stage, dropped in files.drops((*ROW_STAGES, "select")):
        is_reserve = (reason == str(DropReason.IN_RESERVE)) & pl.lit(stage == "select")
        held, reserve = pl.when(reason.is_in(HELD_REASONS)), pl.when(is_reserve)
        outcome = pl.coalesce(
            held.then(pl.lit("held for review")), reserve.then(pl.lit("in reserve")), pl.lit("dropped")
        )
        frames.append(_as_end(dropped, outcome, stage, reason))
    left = pl.when(pl.col("split") == "heldout").then(pl.lit("held out")).otherwise(pl.lit("left"))
    outcomes = {"rows": left, "selected": pl.lit("selected"), "heldout": pl.lit("held out")}
    last = "select" if "select" in files else files.last_row_stage
    frames += [_as_end(table, outcomes[name], last, pl.lit("")) for name, table in files.end_tables().items()]
    return pl.concat(frames)


def _as_reviewed(rows: pl.DataFrame, files: RunFiles) -> pl.DataFrame:
    """Return the rows with the column `seen`: the content key if a reviewer may decide about the row, else null.

    A reviewer may decide about all rows that reached `settle`. These rows are shown with their content before `settle`,
    so with the original gold. For an id of which no row reached `settle`, a reviewer may decide about the first row
    that an earlier stage dropped, because a decision can restore this row.
    """
    stage = next((name for name in FLAGGING_STAGES if name in files), None)
    table = None if stage is None else files.table(stage, "rows.parquet")
    if table is None:
        return rows.with_columns(seen=pl.lit(None, pl.String))
    left = table.filter(has_id(rows["id"])).select("id").collect()["id"]
    gone = files.dropped_before_review(set(rows["id"]).difference(left))
    reviewed = [*fetch(table, rows, TEXTS), *gone.select(*KEY, *TEXTS).iter_rows(named=True)]
    seen = pl.DataFrame([{**row, "seen": content_key(row)} for row in reviewed], schema_overrides=TEXT_TYPES)
    if seen.is_empty():
        return rows.with_columns(seen=pl.lit(None, pl.String))
    joined = rows.join(seen, on=KEY, how="left", suffix="_seen", maintain_order="left")
    has_seen = pl.col("seen").is_not_null()
    texts = [pl.when(has_seen).then(pl.col(f"{name}_seen")).otherwise(pl.col(name)).alias(name) for name in TEXTS]
    return joined.with_columns(texts).drop(f"{name}_seen" for name in TEXTS)


def _as_end(table: pl.LazyFrame, outcome: pl.Expr, stage: str, reason: pl.Expr) -> pl.LazyFrame:
    name = pl.col("meta").str.json_path_match("$.source_id")
    reason = reason.fill_null("").cast(pl.String)
    return table.select(*KEY, *TEXTS, name=name, outcome=outcome, stage=pl.lit(stage), reason=reason)


def _rank(ends: pl.LazyFrame, files: RunFiles, *, is_drawn: bool) -> pl.LazyFrame:
    """Return the rows with the columns `fault` and `fault_by`, in the order of the page.

    `fault` is the probability of a fault: the larger of the row's suspicion and the precision of a flag that holds the
    row back. `fault_by` is the strongest evidence of the suspicion, or the reason of the flag.

    Rows with the largest `fault` come first, then flagged rows, then all others in the order of the data. With
    `is_drawn`, only some of the other rows can be shown. They are then in the order of their ids, which is random.
    """
    ranked = ends.join(_suspicion(files), on=KEY, how="left").join(_blocking(files), on=KEY, how="left")
    suspicion, rule = pl.col("suspicion"), pl.col("rule")
    by_rule = rule.is_not_null() & (rule > suspicion.fill_null(-1.0))
    fault_by = pl.when(by_rule).then(pl.col("rule_name")).otherwise(pl.col("told_by"))
    ranked = ranked.with_columns(fault=pl.max_horizontal(suspicion, rule), fault_by=fault_by)
    ranked = ranked.drop("rule", "rule_name", "told_by")
    return ranked.sort(
        ["fault", "flagged", *(KEY if is_drawn else ["source", "source_row", "id"])],
        descending=[True, True, False, False, False],
        nulls_last=[True, True, False, False, False],
    )


def _suspicion(files: RunFiles) -> pl.LazyFrame:
    """Return the suspicion of each row with its strongest evidence, from the last stage that has it."""
    texts = dict.fromkeys(("tier", "suggestion", "told_by"), pl.String)
    frames = [pl.LazyFrame(schema={**KEY_TYPES, "suspicion": pl.Float64, **texts})]
    logs = {
        source: pl.col("evidence").str.json_path_match(f"$.log_odds.{source}").cast(pl.Float64)
        for source in EVIDENCE_SOURCES
    }
    most = pl.max_horizontal(*logs.values())
    told_by = pl.coalesce(*(pl.when(log == most).then(pl.lit(source)) for source, log in logs.items()))
    for _, table in files.tables(SUSPICION_FILE, SUSPICION_STAGES):
        keyed = table.drop_nulls("suspicion").with_columns(id="row_id", told_by=told_by)
        frames.append(keyed.select(*KEY, "suspicion", *texts))
    return pl.concat(frames).unique(KEY, keep="last", maintain_order=True)


def _blocking(files: RunFiles) -> pl.LazyFrame:
    """Return, for each flagged row, the most precise flag that holds the row back, and the highest confidence of a
    flag."""
    if (flags := files.flags(after_training=True)) is None:
        return pl.LazyFrame(schema={**KEY_TYPES, "rule": pl.Float64, "rule_name": pl.String, "flagged": pl.Float64})
    measured = [
        pl.col("evidence").str.json_path_match(f"$.measured.{name}").cast(pl.Float64, strict=False)
        for name in ("precision", "rows")
    ]
    precision, rows = measured
    # The mean of the posterior with a uniform prior. With 26 right rows of 26, it is .96.
    known = (precision * rows + 1) / (rows + 2)
    flags = flags.with_columns(precision=pl.coalesce(known, pl.col("confidence").clip(0.0, SUREST)))
    # The confidence of `suspect_gold` is the agreement of samples. It is not a probability.
    holding = pl.col("blocks") & (pl.col("reason") != str(SUSPECT_GOLD))
    surest = pl.col("precision").filter(holding)
    return flags.group_by(KEY).agg(
        rule=surest.max(),
        rule_name=pl.col("reason").filter(holding).sort_by(surest, descending=True).first(),
        flagged=pl.col("confidence").fill_null(0.0).max(),
    )


def _rejects(files: RunFiles, room: int) -> tuple[tuple[Fields, ...], int]:
    """Return the first `room` rejected records, and the number of all rejected records."""
    if (path := files.path("ingest", "rejects.jsonl")) is None:
        return (), 0
    with path.open("rb") as lines:
        shown = tuple(map(orjson.loads, islice(lines, max(room, 0))))
        return shown, len(shown) + sum(1 for _ in lines)


@dataclass(frozen=True)
class PageRows:
    """The rows of a run, packed for the page."""

    index: str
    blocks: tuple[str, ...]
    shown: int
    """The number of records on the page."""
    records: int
    """The number of records in the run."""
    cuts: TextCuts
    cards: Sequence[Fields] = field(default=(), repr=False)
    """The cards before packing."""
    prompts: Sequence[str] = field(default=(), repr=False)

    def texts(self) -> Iterator[str]:
        """Yield the texts that may contain formulas to render."""
        yield from self.prompts
        for card in self.cards:
            yield card.get("solution") or ""
            yield from (sample["text"] for sample in card.get("samples", ()))


def gather_page_rows(files: RunFiles, limit: int = MAX_RECORDS, *, is_blind: bool = False) -> PageRows:
    """Return the rows of a run, the most suspicious first, then the rejected records.

    With `is_blind`, rows are shown as before `settle`. Nothing on the page depends on reviewers' decisions.
    """
    before, files = _before_decisions(files) if is_blind else (files, files)
    ended = gather_ended_rows(before, limit, suspected_by=files)
    cuts = cuts_for(ended.shown)
    rows = _with_measures(ended.rows, files)
    cards = gather_cards(files, rows, cuts)
    for row, card in zip(rows.iter_rows(named=True), cards, strict=True):
        if long := _long_texts(row, cuts):
            # The page names the table that has the whole texts.
            card["cut"] = long | {"table": _table_of(row, files)}
    columns: dict[str, list[Any]] = {
        "id": rows["id"].to_list(),
        "seen": rows["seen"].to_list(),
        "row": rows["source_row"].to_list(),
        "name": [name and cut(visible(name), NAME_CHARS) for name in rows["name"]],
        "prompt": [cut(visible(text or ""), cuts.prompt) for text in rows["prompt"]],
        "gold": [None if text is None else cut(visible(text), GOLD_CHARS) for text in rows["gold"]],
        "suggestion": [text and cut(visible(text), GOLD_CHARS) for text in rows["suggestion"]],
        "rival": [_rival(card) for card in cards],
        **{name: [_rounded(value) for value in rows[name]] for name in ("suspicion", "fault", "rate", "after")},
        **{name: rows[name].to_list() for name in ("passes", "judged", "n", "holds")},
    }
    codes: dict[str, Codes] = {name: {} for name in (*CODED, *LISTED)}
    for name in CODED:
        columns[name] = _code(rows[name], codes[name])
    for name in LISTED:
        columns[name] = [_code(values or (), codes[name]) for values in rows[name].to_list()]
    _add_rejects(ended.rejects, columns, codes, cards, cuts.prompt)
    names = {name: list(known) for name, known in codes.items()}
    index = {"rows": ended.shown, "records": ended.records, "columns": columns, "names": names, "cuts": asdict(cuts)}
    blocks = [cards[start : start + BLOCK_ROWS] for start in range(0, len(cards), BLOCK_ROWS)]
    packed = pack({**index, "block_rows": BLOCK_ROWS, "dropping_stages": DROPPING_STAGES})
    # A gold may be a formula without dollar signs.
    golds = [f"{gold} ${gold}$" for gold in columns["gold"] if gold and set(gold) & {"\\", "^", "$"}]
    texts = [*columns["prompt"], *golds]
    return PageRows(packed, tuple(map(pack, blocks)), ended.shown, ended.records, cuts, cards, texts)


def _long_texts(row: Mapping[str, Any], cuts: TextCuts) -> dict[str, int]:
    """Return the lengths of a row's texts that the page shortens."""
    limits = {"prompt": cuts.prompt, "gold": GOLD_CHARS, "suggestion": GOLD_CHARS, "solution": cuts.prompt}
    return {name: len(row[name]) for name, limit in limits.items() if row[name] and len(row[name]) > limit}


def whole_texts(files: RunFiles, row_id: str, source_key: tuple[str, int] | None, *, is_blind: bool) -> Fields | None:
    """Return the whole texts of a row on the page, or None if the run has no such row.

    If several rows have this id, `source_key` (source and row number) chooses one.
    """
    before, files = _before_decisions(files) if is_blind else (files, files)
    named = _scan_ends(before).filter(pl.col("id") == row_id).sort("source", "source_row").collect(engine="streaming")
    if source_key is not None:
        named = named.filter(pl.col("source") == source_key[0], pl.col("source_row") == source_key[1])
    if not named.height:
        return None
    rows = _as_reviewed(_rank(named.head(1).lazy(), files, is_drawn=False).collect(), before)
    (row,), (card,) = rows.to_dicts(), gather_cards(files, rows, WHOLE)
    return {
        "prompt": visible(row["prompt"] or ""),
        "gold": None if row["gold"] is None else visible(row["gold"]),
        "suggestion": row["suggestion"] and visible(row["suggestion"]),
        "detail": card,
    }


def _rival(card: Fields) -> str | None:
    """Return the answer with the most votes that differs from the gold."""
    others = (answer["texts"][0] for answer in card.get("answers", ()) if answer["kind"] == "alternative")
    return next(others, None)


def pack(value: Any) -> str:
    """Return a value as JSON, deflated and in base64."""
    return base64.b64encode(zlib.compress(orjson.dumps(value), 6)).decode()


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _code(values: Iterable[str | None], codes: Codes) -> list[int | None]:
    """Return the index of each value, and add new values to `codes`."""
    return [
        None if value is None else codes.setdefault(cut(visible(value), NAME_CHARS), len(codes)) for value in values
    ]


def _with_measures(rows: pl.DataFrame, files: RunFiles) -> pl.DataFrame:
    """Return the rows with their pass rates, and the reasons of their flags and of their samples' verdicts."""
    keys = rows.lazy().select(KEY)
    rates = {"rate": pl.Float64, "passes": pl.Int32, "judged": pl.Int32, "n": pl.Int32}
    tables = {
        "rates": pl.LazyFrame(schema={**KEY_TYPES, **rates}),
        "after": pl.LazyFrame(schema={**KEY_TYPES, "after": pl.Float64}),
        "flags": pl.LazyFrame(schema={**KEY_TYPES, "flags": pl.List(pl.String), "holds": pl.Boolean}),
        "verdicts": pl.LazyFrame(schema={**KEY_TYPES, "verdicts": pl.List(pl.String)}),
    }
    if (profile := files.table("profile", "profile.parquet")) is not None:
        tables["rates"] = profile.select(*KEY, pl.col("pass_rate").alias("rate"), "passes", "judged", "n")
    if (after := files.table("profile_after", "profile.parquet")) is not None:
        tables["after"] = after.select(*KEY, pl.col("pass_rate").alias("after"))
    if (flags := files.flags(after_training=True)) is not None:
        # Reasons that hold the row back come first.
        reasons = pl.col("reason").sort_by("blocks", "reason", descending=[True, False]).unique(maintain_order=True)
        tables["flags"] = flags.group_by(KEY).agg(flags=reasons, holds=pl.col("blocks").any())
    if (samples := files.table("profile", "samples.parquet")) is not None:
        tables["verdicts"] = samples.group_by(KEY).agg(verdicts=pl.col("reason").unique().sort())
    joined = rows.lazy()
    for table in tables.values():
        joined = joined.join(table.join(keys, on=KEY, how="semi"), on=KEY, how="left", maintain_order="left")
    return joined.collect()


def _add_rejects(
    rejects: Sequence[Fields], columns: dict[str, list[Any]], codes: dict[str, Codes], cards: list[Fields], chars: int
) -> None:
    """Add the rejected records to the columns. They have no id, and their excerpts are shown as prompts."""
    for reject in rejects:
        known = {
            "prompt": cut(visible(reject["excerpt"]), chars),
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
        facts = [["detail", cut(visible(str(reject["detail"])), chars)]]
        cards.append({"ledger": [{"stage": "ingest", "action": "reject", "reason": reject["reason"], "facts": facts}]})
