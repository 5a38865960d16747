"""Gathers the cards of rows for the report page. A card has the details of a row: flags, answers, samples, edits, ...

Each table of the run is read once for all rows of the page. The evidence of stages and verifiers is put into words:

    {"options": "A and C", "precision": 0.86}
        ->  [["options", "A and C"], ["precision", "0.86"]]
    {"rung": "exact", "gold": "1/2", "answer": "0.5", "form": "boxed"}
        ->  {"gold": "1/2", "answer": "0.5", "how": "compared as exact numbers, taken from a box"}

`rung` is the name of the comparison in `verifiers/math`, and `form` tells where in the response the answer was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files as package_files
from itertools import islice
from typing import Any

import orjson
import polars as pl

from truegold.pipeline.report.row_tests import shown_tests
from truegold.pipeline.tables.ledger import LEDGER_FILE, Action
from truegold.pipeline.tables.reasons import ANSWERS_FILE, SUSPECT_GOLD, SUSPICION_FILE
from truegold.pipeline.tables.rows import KEY, RowKey, context_of, group_by_row, row_key
from truegold.pipeline.tables.run_files import AFTER_TRAINING, Fields, RunFiles, fetch
from truegold.pipeline.text.shown_text import cut, visible
from truegold.verifiers import GuardError, Item, TruegoldError, Verifier, gold_response, judges_solutions, resolve
from truegold.verifiers.audit.suites import PROPOSED
from truegold.verifiers.conversation import write_out
from truegold.verifiers.registry import BUILT_IN
from truegold.verifiers.running.batch import verify_one

SUSPICION_STAGES = ("suspect", "profile", AFTER_TRAINING)
"""The stages that compute suspicions, in order. A later stage has more samples."""
FACT_CHARS = 600
"""The maximum number of characters that are shown of a value in the evidence."""
MOST_PARTS = 12
"""The maximum number of entries that are shown of a list or an object in the evidence."""
NEIGHBOURS_SHOWN = 6
"""The maximum number of neighbours on a card."""
ROWS_READ = 300
"""Answers are verified again on the page for this number of rows, the most suspicious ones. More rows take long."""
ANSWERS_READ = 3
"""The maximum number of answers of such a row that are verified again."""
ANSWERS_SHOWN = 8
"""The maximum number of different answers on a card. Others are only counted."""
SYSTEMS_SHOWN = 80
"""The maximum number of systems that are named for one answer."""

_SHOWN_ELSEWHERE = ("rows", "texts", "golds", "kept", "kept_id", PROPOSED)
"""Keys of evidence that other parts of the card show: neighbours and test cases."""

EVIDENCE_WORDS: Mapping[str, Mapping[str, str]] = orjson.loads(
    (package_files(__package__) / "evidence_words.json").read_bytes()
)
"""Words for the keys of evidence (`names`), and for the values of its keys `rung` and `form`."""


@dataclass(frozen=True)
class TextCuts:
    """The maximum numbers of characters of texts on a page. Longer texts are shortened; the tables have the whole
    texts."""

    prompt: int
    """The characters of a prompt or a solution."""
    completion: int
    """The characters of a completion."""
    samples: int
    """The number of completions for each row."""
    edited: int = 1_500
    """The characters of a text before or after an edit."""
    answer: int = 200
    """The characters of an answer."""


CUTS = (
    (2_000, TextCuts(prompt=4_000, completion=2_000, samples=8)),
    (12_000, TextCuts(prompt=2_000, completion=600, samples=4)),
)
"""The limits for pages of up to 2,000 and up to 12,000 rows."""
FEWEST = TextCuts(prompt=800, completion=300, samples=2)
"""The limits for larger pages."""
WHOLE = TextCuts(*[sys.maxsize] * 5)
"""The limits that shorten nothing."""


def cuts_for(rows: int) -> TextCuts:
    """Return the limits for a page with this number of rows."""
    return next((cuts for most, cuts in CUTS if rows <= most), FEWEST)


def middle_cut(text: str, limit: int) -> str:
    """Return the start and the end of a text. Between them is the number of characters that are left out.

    The end is kept because it often has the answer.
    """
    if len(text) <= limit:
        return visible(text)
    head, tail = limit * 2 // 3, limit - limit * 2 // 3
    # Only the shown parts are made visible, since the rest may be long.
    return f"{visible(text[:head])} … ({len(text) - limit:,} characters left out) … {visible(text[-tail:])}"


def longer_than(limit: int, *texts: str | None) -> dict[str, int]:
    """Return `{"chars": length}` of the longest text if it is longer than `limit`, else `{}`."""
    longest = max((len(text) for text in texts if text is not None), default=0)
    return {"chars": longest} if longest > limit else {}


def gather_cards(files: RunFiles, rows: pl.DataFrame, cuts: TextCuts) -> list[Fields]:
    """Return the card of each row, in order. A card has no keys for empty values."""
    keys = rows.select(KEY)
    flags = _flags(files, keys)
    answers = _answers(files, keys, cuts)
    samples = _samples(files, keys, cuts)
    ledger, evidence = _ledger(files, keys, cuts)
    evidence_of = _suspicion_evidence(files, keys)
    neighbours = _link_neighbours(rows, flags, evidence)
    cards = []
    columns = [*KEY, "solution", "gold", "verifier", "verifier_args", "context"]
    for position, row in enumerate(rows.select(columns).iter_rows(named=True)):
        key = row_key(row)
        is_read = position < ROWS_READ and key in answers and key not in samples
        context = write_out(context_of(row))
        card: Fields = {
            "context": context and middle_cut(context, cuts.prompt),
            "solution": row["solution"] and middle_cut(row["solution"], cuts.prompt),
            **judged_by(row, cuts.prompt),
            "flags": [_flag(flag) for flag in flags.get(key, ())],
            "answers": answers.get(key),
            "readings": _read_answers(row, answers[key]) if is_read else None,
            "samples": samples.get(key),
            "neighbours": neighbours.get(key),
            "ledger": ledger.get(key),
            "weighed": describe_log_odds(evidence_of.get(key, {}).pop("log_odds", {})),
            "told": list_evidence(evidence_of.get(key, {})),
        }
        cards.append({name: value for name, value in card.items() if value})
    return cards


def judged_by(row: Mapping[str, Any], chars: int) -> Fields:
    """Return the `tests` of a row if it has a program to test, else the `settings` of its verifier."""
    if row["verifier"] in BUILT_IN and judges_solutions(_verifier(row["verifier"])):
        return {"tests": shown_tests(row["verifier_args"], chars)}
    return {"settings": list_evidence(read_evidence(row["verifier_args"]))}


def _flags(files: RunFiles, keys: pl.DataFrame) -> dict[RowKey, list[Fields]]:
    if (table := files.flags(after_training=True)) is None:
        return {}
    records = fetch(table, keys, ["reason", "detector", "confidence", "blocks", "evidence", "suggestion"])
    for record in records:
        record["evidence"] = read_evidence(record["evidence"])
    records.sort(key=lambda flag: (not flag["blocks"], -(flag["confidence"] or 0), flag["reason"], flag["detector"]))
    return group_by_row(records)


def _flag(flag: Mapping[str, Any]) -> Fields:
    return {
        "reason": visible(flag["reason"]),
        "detector": visible(flag["detector"]),
        "strength": describe_confidence(flag["reason"], flag["confidence"]),
        "blocks": flag["blocks"],
        "facts": list_evidence(flag["evidence"], _SHOWN_ELSEWHERE),
        "suggestion": flag["suggestion"] and visible(flag["suggestion"]),
        **({"cases": "\n".join(flag["evidence"][PROPOSED])} if PROPOSED in flag["evidence"] else {}),
    }


def _answers(files: RunFiles, keys: pl.DataFrame, cuts: TextCuts) -> dict[RowKey, list[Fields]]:
    """Return the different answers of each row with their votes, from the last stage that counted them."""
    answers: dict[RowKey, list[Fields]] = {}
    for _, table in files.tables(ANSWERS_FILE, SUSPICION_STAGES):
        counted = group_by_row(fetch(table, keys, ["kind", "spellings", "votes", "systems"]))
        for key, classes in counted.items():
            shown = classes[:ANSWERS_SHOWN]
            answers[key] = [
                {
                    "kind": entry["kind"],
                    "texts": [middle_cut(text, cuts.answer) for text in entry["spellings"]],
                    **longer_than(cuts.answer, *entry["spellings"]),
                    "votes": entry["votes"],
                    "systems": [visible(name) for name in entry["systems"][:SYSTEMS_SHOWN] if name != "-"],
                }
                for entry in shown
            ]
            if len(classes) > len(shown):
                rest = sum(entry["votes"] for entry in classes[ANSWERS_SHOWN:])
                answers[key].append({"kind": "others", "texts": [], "votes": rest, "systems": []})
    return answers


def _samples(files: RunFiles, keys: pl.DataFrame, cuts: TextCuts) -> dict[RowKey, list[Fields]]:
    """Return some completions of each row: one for each different answer, then a second one for each, ..."""
    if (table := files.table("profile", "samples.parquet")) is None:
        return {}
    columns = ["sample", "completion", "finish_reason", "score", "reason", "extracted", "evidence"]
    among = table.select(*KEY, *columns).join(keys.lazy(), on=KEY, how="semi")
    turn = pl.col("sample").rank("ordinal").over([*KEY, "extracted", "score"]).alias("turn")
    ordered = among.with_columns(turn).sort([*KEY, "turn", "sample"])
    shown = ordered.group_by(KEY, maintain_order=True).head(cuts.samples).collect()
    return {
        key: [
            {
                "text": middle_cut(record["completion"], cuts.completion),
                **longer_than(cuts.completion, record["completion"]),
                "score": record["score"],
                "reason": record["reason"],
                "answer": record["extracted"] and middle_cut(record["extracted"], cuts.answer),
                "finish": record["finish_reason"],
                "reading": describe_reading(read_evidence(record["evidence"])),
            }
            for record in records
        ]
        for key, records in group_by_row(shown.to_dicts()).items()
    }


def _ledger(files: RunFiles, keys: pl.DataFrame, cuts: TextCuts) -> tuple[dict[RowKey, list[Fields]], list[Fields]]:
    """Return the ledger records of each row in the order of the stages, and the records that name a row kept in its
    place."""
    ledger: dict[RowKey, list[Fields]] = {}
    linked: list[Fields] = []
    for stage, table in files.tables(LEDGER_FILE):
        for record in fetch(table, keys, ["action", "reason", "evidence", "before", "after"]):
            evidence = read_evidence(record["evidence"])
            if "kept_id" in evidence:
                linked.append({**record, "evidence": evidence})
            if record["action"] == Action.FLAG:
                continue  # The card shows flags separately.
            entry: Fields = {
                "stage": stage,
                "action": record["action"],
                "reason": visible(record["reason"]),
                "facts": list_evidence(evidence, _SHOWN_ELSEWHERE),
            }
            if record["action"] == Action.EDIT:
                entry["before"], entry["after"] = (
                    None if record[side] is None else middle_cut(record[side], cuts.edited)
                    for side in ("before", "after")
                )
                entry |= longer_than(cuts.edited, record["before"], record["after"])
            ledger.setdefault(row_key(record), []).append(entry)
    return ledger, linked


def _suspicion_evidence(files: RunFiles, keys: pl.DataFrame) -> dict[RowKey, Fields]:
    """Return the evidence on each row from samples, rules, and a model that was asked about it."""
    return {
        row_key(record): read_evidence(record["evidence"])
        for _, table in files.tables(SUSPICION_FILE, SUSPICION_STAGES)
        for record in fetch(table.drop_nulls("suspicion").with_columns(id="row_id"), keys, ["evidence"])
    }


def _link_neighbours(
    rows: pl.DataFrame, flags: Mapping[RowKey, list[Fields]], linked: Iterable[Mapping[str, Any]]
) -> dict[RowKey, list[Fields]]:
    """Return the neighbours of each row, such as its duplicates: `{"row": index on the page, "relation": "..."}`.

    `rows` are the rows of the page, in order. `linked` are ledger records of dropped rows, which name the kept row.
    """
    keys: list[RowKey] = rows.select(KEY).rows()
    by_name = {f"{source}:{source_row}": index for index, (_, source, source_row) in enumerate(keys)}
    position = {key: index for index, key in enumerate(keys)}
    links: dict[int, dict[int, str]] = {}

    def link(first: int, second: int, relation: str) -> None:
        if first != second:
            links.setdefault(first, {}).setdefault(second, relation)

    for record in linked:
        kept = by_name.get(str(record["evidence"].get("kept")))
        here = position[row_key(record)]
        if kept is not None:
            relation = visible(str(record["reason"])).replace("_", " ")
            link(here, kept, f"{relation}; this one stayed")
            link(kept, here, f"{relation}; left for this row")
    for key, row_flags in flags.items():
        for flag in row_flags:
            names = flag["evidence"].get("rows")
            for name in names if isinstance(names, list) else ():
                if isinstance(name, str) and (other := by_name.get(name)) is not None:
                    link(position[key], other, visible(flag["reason"]).replace("_", " "))
    return {
        keys[here]: [{"row": other, "relation": text} for other, text in islice(others.items(), NEIGHBOURS_SHOWN)]
        for here, others in links.items()
    }


def _read_answers(row: Mapping[str, Any], answers: Sequence[Fields]) -> list[Fields]:
    """Return how the verifier reads and compares the most frequent answers of a row.

    The list is empty if the verifier judges programs or is not built in, because the page does not run such code.
    """
    name = row["verifier"]
    if row["gold"] is None or name not in BUILT_IN or judges_solutions(_verifier(name)):
        return []
    written = [answer["texts"][0] for answer in answers if answer["kind"] in ("label", "alternative")]
    readings = []
    for text in written[:ANSWERS_READ]:
        response = gold_response(_verifier(name), text, None)
        item = Item(text if response is None else response, row["gold"], name, row["verifier_args"] or "{}")
        try:
            verdict = verify_one(item)
        except GuardError:
            raise
        except TruegoldError:
            continue
        if (reading := describe_reading(verdict.evidence)) is not None:
            readings.append({"written": text, "verdict": str(verdict.reason), "reading": reading})
    return readings


@lru_cache(maxsize=16)
def _verifier(name: str) -> Verifier:
    return resolve(name)


def list_evidence(evidence: Mapping[str, Any], without: Sequence[str] = ()) -> list[list[str]]:
    """Return the evidence as pairs of name and text. Keys in `without` and empty values are left out."""
    return [
        [EVIDENCE_WORDS["names"].get(name, visible(name).replace("_", " ")), describe(name, value)]
        for name, value in evidence.items()
        if name not in without and value not in (None, [], {}, "")
    ]


def describe(name: str, value: Any) -> str:
    """Return the value of a key of evidence in words.

    The measured precision of a flag gives two shares: 28 of 43 over all rows, and the mean of the shares in 7 corpora.
    """
    if name == "measured" and isinstance(value, dict) and {"precision", "right", "rows", "corpora"} <= value.keys():
        counts = f"right in {value['right']} of {value['rows']} rows of {value['corpora']} corpora"
        return f"{counts}; mean of the corpora {100 * value['precision']:.0f} %"
    if name in ("rung", "form") and isinstance(value, str):
        return EVIDENCE_WORDS[name].get(value, visible(value))
    return cut(visible(_words(value)), FACT_CHARS)


def say_value(value: Any) -> str:
    """Return any value in words. An empty value gives "nothing"."""
    return "nothing" if value in (None, "", [], {}) else describe("", value)


def _words(value: Any) -> str:
    """Return any value in words: `yes`, `0.25`, `a, b, 3 more`, `kept 2 of 3; form boxed`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if not isinstance(value, dict | list):
        return "none" if value is None else str(value)
    if isinstance(value, dict):
        comma = "; "
        parts = [f"{str(name).replace('_', ' ')} {_entry(entry)}" for name, entry in list(value.items())[:MOST_PARTS]]
    else:
        comma = ", "
        parts = [_words(entry) for entry in value[:MOST_PARTS]]
    return comma.join(parts if len(value) <= MOST_PARTS else [*parts, f"{len(value) - MOST_PARTS} more"])


def _entry(value: Any) -> str:
    """Return a value in an object in words: `[2, 3]` gives `2 of 3`, and the change `[0.5, 0.2]` gives `0.5 → 0.2`."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int | float) for part in value):
        first, second = value
        if isinstance(first, int) and isinstance(second, int) and first <= second:
            return f"{first} of {second}"
        return f"{first:.4g} → {second:.4g}"
    return _words(value)


def read_evidence(text: str | None) -> dict[str, Any]:
    """Return the JSON object in a cell of evidence. Another JSON value is returned under the key `evidence`."""
    if not text:
        return {}
    value = orjson.loads(text)
    return value if isinstance(value, dict) else {"evidence": value}


def describe_reading(evidence: Mapping[str, Any], limit: int = 200) -> dict[str, str] | None:
    """Return how a verifier read and compared gold and answer, or None if its evidence does not say so."""
    sides = {side: cut(visible(str(evidence[side])), limit) for side in ("gold", "answer") if evidence.get(side)}
    hows = [EVIDENCE_WORDS[name].get(str(evidence.get(name)), "") for name in ("rung", "form")]
    hows += [visible(str(evidence[name])) for name in ("unread", "error") if evidence.get(name)]
    how = cut(", ".join(part for part in hows if part), limit)
    return {**sides, "how": how} if sides or how else None


def describe_log_odds(log_odds: Mapping[str, float]) -> str:
    """Return the log odds of each source of evidence, the largest first: `prior −2.9, model +4.0, samples +0.4`."""
    ordered = sorted(log_odds.items(), key=lambda item: (item[0] != "prior", -abs(item[1])))
    return ", ".join(f"{source} {log:+.1f}".replace("-", "−") for source, log in ordered)


def describe_confidence(reason: str, confidence: float | None) -> str:
    """Return the confidence of a flag in words. For `suspect_gold`, it is the share of samples that agree."""
    if confidence is None:
        return "confidence not measured"
    return f"{confidence:.0%} of samples agree" if reason == SUSPECT_GOLD else f"confidence {confidence:.0%}"
