"""A small run directory made with the real writers, for the tests of the report and of explain.

Sixteen records: fourteen lines of raw.jsonl, two of heldout.jsonl. What is planted in which line, and what became of
it, stands in PLANTED and in the functions below, so that every line of the report can be worked out by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from truegold.pipeline.profile.drawing import SAMPLE_SCHEMA
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, Ledger
from truegold.pipeline.tables.reasons import SUSPICION_SCHEMA
from truegold.pipeline.tables.rows import PROFILE_SCHEMA, dump_json, row_id, write_rows

PAYLOAD = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
LATEX = r"Find \(\frac{1}{2}+\sqrt{3}\) and \[\notacommand{x}\] for $x_1$, \href{javascript:alert(3)}{y}."
CHINESE = "小明有12个苹果，又买了9个。"
NULS = "a\0b\x1b[2Jc\u202ed"

CURATION = ("make_data", "ingest", "clean", "dedup", "verify_gold", "flag", "settle")
FULL = (*CURATION, "model", "sft", "profile", "select", "train", "profile_after")

PLANTED = {2: "exact_duplicate", 3: "format_duplicate", 5: "wrong_gold", 6: "wrong_gold", 7: "wrong_gold"}
PLANTED |= {8: "format_variant_gold", 10: "truncated", 13: "rephrased"}
PROMPTS = {n: f"Tom has {n} apples and buys 9 more. How many has he now?" for n in range(1, 15)}
PROMPTS |= {2: PROMPTS[1], 4: PROMPTS[3], 11: f"{PAYLOAD} {LATEX} {CHINESE} {NULS}"}

RATES = {1: 1, 3: 2, 6: 0, 7: 2, 9: 4, 11: 1, 13: 3}
"""Passes of four samples, by line of raw.jsonl."""

_TEXTS = ("id", "prompt", "gold", "completion", "reason", "extracted")
_OTHERS = {"step": pa.int32(), "truncated": pa.bool_(), "score": pa.float64(), "advantage": pa.float64()}
COMPLETIONS = pa.schema({**dict.fromkeys(_TEXTS, pa.string()), **_OTHERS, "trained": pa.bool_()})
"""The columns of a step's completions that the report reads."""


def make_row(line: int, source: str = "raw.jsonl", prompt: str | None = None) -> dict[str, Any]:
    """Return the row of one line of a source, with what is planted in it."""
    heldout = source == "heldout.jsonl"
    prompt = prompt or (f"Held out {line}: how many?" if heldout else PROMPTS[line])
    return {
        "id": row_id(prompt, str(line)),
        "prompt": prompt,
        "gold": PAYLOAD if line == 11 else str(line + 9),
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": f"{line}+9={line + 9}",
        "source": source,
        "source_row": line,
        "split": "heldout" if heldout else "train",
        "meta": dump_json({"planted": None if heldout else PLANTED.get(line)}),
        "context": None,
    }


def flag_of(row: Mapping[str, Any], reason: str, confidence: float, blocks: bool, **evidence: Any) -> dict[str, Any]:
    """Return a row of a table of flags."""
    key = {name: row[name] for name in ("id", "source", "source_row")}
    finding = {"reason": reason, "detector": reason, "confidence": confidence, "blocks": blocks, "suggestion": None}
    return {**key, **finding, "evidence": dump_json(evidence)}


class FakeRun:
    """Writes the stages of a run into `folder`, one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = [line for line in range(1, 15) if line not in (12, 14)]
        self.rows = {n: make_row(n) for n in lines} | {-n: make_row(n, "heldout.jsonl") for n in (1, 2)}

    def stage(self, name: str) -> Path:
        """Make a stage's folder."""
        (self.folder / name).mkdir(parents=True)
        return self.folder / name

    def record(self, name: str, rows_in: int, rows_out: int, **facts: Any) -> None:
        """Write a stage's record."""
        report = {"rows_in": rows_in, "rows_out": rows_out, "counts": {}, "facts": facts}
        record = {"name": name, "key": name.ljust(32, "0"), "seconds": 1.25, "report": report}
        (self.folder / name / "stage.json").write_bytes(orjson.dumps(record))

    def write(self, path: Path, lines: Iterable[int]) -> None:
        """Write the rows of these lines as they are now; those of heldout.jsonl have negative numbers."""
        write_rows(path, [self.rows[line] for line in lines])

    def build(self, stages: Iterable[str]) -> FakeRun:
        """Write these stages, one after the other, and the manifest."""
        names = list(stages)
        for name in names:
            getattr(self, f"_{name}")(self.stage(name))
        manifest = {"stages": [{"name": name} for name in names]}
        (self.folder / "manifest.json").write_text(json.dumps(manifest))
        return self

    def _make_data(self, out: Path) -> None:
        planted = {"exact_duplicate": 1, "format_duplicate": 1, "wrong_gold": 3, "truncated": 2}
        planted |= {"rephrased": 1, "format_variant_gold": 1}
        (out / "planted.json").write_bytes(orjson.dumps(planted))
        self.record("make_data", 0, 14)

    def _ingest(self, out: Path) -> None:
        self.write(out / "rows.parquet", self.rows)
        rejects = [(12, "invalid_json", PAYLOAD), (14, "missing_gold", NULS)]
        with (out / "rejects.jsonl").open("wb") as file:
            for line, reason, excerpt in rejects:
                entry = {"source": "raw.jsonl", "source_row": line, "reason": reason, "detail": "column 'answer'"}
                file.write(orjson.dumps({**entry, "excerpt": excerpt, "source_id": f"bad-{line}"}) + b"\n")
        with Ledger(out, "ingest"):
            pass
        self.record("ingest", 16, 14, sources=["raw.jsonl", "heldout.jsonl"])

    def _clean(self, out: Path) -> None:
        row = self.rows[11]
        before, row["prompt"] = row["prompt"] + "  ", row["prompt"].strip()
        with Ledger(out, "clean") as ledger:
            ledger.edit(row, "whitespace", before, row["prompt"], column="prompt")
        self.write(out / "rows.parquet", self.rows)
        self.record("clean", 14, 14)

    def _dedup(self, out: Path) -> None:
        with Ledger(out, "dedup") as ledger:
            ledger.drop(self.rows[2], "exact_duplicate", kept="raw.jsonl:1", kept_id=self.rows[1]["id"])
            ledger.drop(self.rows[4], "exact_duplicate", kept="raw.jsonl:3", kept_id=self.rows[3]["id"])
        self._pass_on("dedup", out, 14, without=(2, 4))
        write_rows(out / "flags.parquet", [], FLAG_SCHEMA)

    def _verify_gold(self, out: Path) -> None:
        with Ledger(out, "verify_gold"):
            pass
        write_rows(out / "flags.parquet", [], FLAG_SCHEMA)
        self._pass_on("verify_gold", out, 12)

    def _flag(self, out: Path) -> None:
        flags = [
            flag_of(self.rows[5], "solution_contradicts_gold", 0.8, True, solution="14"),
            flag_of(self.rows[8], "solution_contradicts_gold", 0.6, True, solution="17"),
            flag_of(self.rows[9], "truncated_text", 0.5, False, end="more"),
            flag_of(self.rows[10], "truncated_text", 0.9, True, end="now"),
            flag_of(self.rows[11], "missing_quantity", 0.75, False, says=PAYLOAD, nested={"a": [1, NULS]}),
        ]
        flags[0]["suggestion"] = "14"
        write_rows(out / "flags.parquet", flags, FLAG_SCHEMA)
        with Ledger(out, "flag") as ledger:
            for flag in flags:
                ledger.flag(flag, flag["reason"], detector=flag["detector"])
        self._pass_on("flag", out, 12)

    def _settle(self, out: Path) -> None:
        with Ledger(out, "settle") as ledger:
            for line in (5, 8, 10):
                ledger.drop(self.rows[line], "held_for_review", flags=["solution_contradicts_gold"])
        self._pass_on("settle", out, 12, without=(5, 8, 10))

    def _pass_on(self, stage: str, out: Path, rows_in: int, without: tuple[int, ...] = ()) -> None:
        for line in without:
            del self.rows[line]
        self.write(out / "rows.parquet", self.rows)
        self.record(stage, rows_in, len(self.rows))

    def _model(self, out: Path) -> None:
        self.record("model", 0, 0, parameters=1000)

    def _sft(self, out: Path) -> None:
        (out / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
        self.record("sft", 0, 0)

    def _profile(self, out: Path) -> None:
        self._pass_rates(out, {**RATES, -1: 1, -2: 3})
        suspect = flag_of(self.rows[6], "suspect_gold", 0.75, True, majority_answer="99")
        write_rows(out / "flags.parquet", [{**suspect, "suggestion": "99"}], FLAG_SCHEMA)
        with Ledger(out, "profile") as ledger:
            ledger.flag(self.rows[6], "suspect_gold")
        self._pass_on("profile", out, 9)

    def _select(self, out: Path) -> None:
        with Ledger(out, "select") as ledger:
            ledger.drop(self.rows[6], "held_for_review")
            ledger.drop(self.rows[9], "too_easy")
            ledger.drop(self.rows[11], "in_reserve")
        for name, lines in (("selected", (1, 3, 7, 13)), ("reserve", (11,))):
            chosen = [{**self.rows[n], "pass_rate": RATES[n] / 4} for n in lines]
            write_rows(out / f"{name}.parquet", chosen, SELECTED_SCHEMA)
        self.write(out / "heldout.parquet", (-1, -2))
        self.write(out / "after.parquet", (1, 3, 7, 13, -1, -2))
        self.record("select", 9, 4, mean_pass_rate=0.5)

    def _train(self, out: Path) -> None:
        lines = [{"step": 0, "pass_rate": 0.25, "heldout_pass_rate": 0.5, "entropy": 1.5, "length_mean": 20.0}]
        lines += [{"step": 1, "pass_rate": 0.5, "entropy": float("nan"), "grad_norm": 0.5, "mismatch_abs": 1e-7}]
        lines += [{"step": 2, "pass_rate": 0.75, "entropy": 1.0, "grad_norm": 0.25, "probe_mean_abs": 2e-7}]
        (out / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (out / "completions").mkdir()
        for step, problems in ((0, (1, 3)), (2, (13, 1))):
            attempts = [self._attempt(step, n, score) for n in problems for score in (1.0, 0.0)]
            write_rows(out / "completions" / f"step-{step:06d}.parquet", attempts, COMPLETIONS)
        self.record("train", 4, 4, steps=3, sampling={"rollout": {"temperature": 1.0, "max_tokens": 32}})

    def _attempt(self, step: int, line: int, score: float) -> dict[str, Any]:
        row = self.rows[line]
        problem = {"step": step, "id": row["id"], "prompt": row["prompt"], "gold": row["gold"], "score": score}
        answer = {
            "completion": f"step {step}: {PAYLOAD}",
            "extracted": "10",
            "reason": "match" if score else "mismatch",
        }
        return {**problem, **answer, "truncated": False, "advantage": score - 0.5, "trained": line != 3}

    def _profile_after(self, out: Path) -> None:
        for line in (6, 9, 11):
            del self.rows[line]
        self._pass_rates(out, {1: 4, 3: 3, 7: 0, 13: 4, -1: 4, -2: 3})
        write_rows(out / "flags.parquet", [flag_of(self.rows[7], "suspect_gold", 0.5, True)], FLAG_SCHEMA)
        with Ledger(out, "profile"):
            pass
        self._pass_on("profile_after", out, 6)

    def _pass_rates(self, out: Path, passes: Mapping[int, int]) -> None:
        profiles, samples = [], []
        for line, passed in passes.items():
            row = self.rows[line]
            key = {name: row[name] for name in ("id", "source", "source_row", "split")}
            rates = {"pass_rate": passed / 4, "low": 0.1, "high": 0.9, "pass_at": "{}", "truncated": 0.0}
            counts = {"n": 4, "judged": 4, "passes": passed, "unread": 0, "tokens_mean": 12.0, "tokens_max": 20}
            majority = {"majority_answer": "99" if not passed else row["gold"], "majority_agreement": 0.75}
            known = {"posterior": [{"weight": 1.0, "a": 1.0 + passed, "b": 5.0 - passed}]}
            known |= {"expected_rate": (1 + passed) / 6, "expected_deviation": 0.2}
            profiles.append({**key, **rates, **counts, **known, **majority})
            for sample in range(4):
                right = sample < passed
                answer = {
                    "completion": f"sample {sample} {PAYLOAD}\n\\boxed{{99}}",
                    "extracted": "99",
                    "evidence": "{}",
                }
                verdict = {"score": float(right), "reason": "match" if right else "mismatch", "finish_reason": "stop"}
                samples.append({**key, "sample": sample, **answer, **verdict, "token_ids": [1, 2]})
        write_rows(out / "profile.parquet", profiles, PROFILE_SCHEMA)
        write_rows(out / "samples.parquet", samples, SAMPLE_SCHEMA)
        if 6 in passes:
            row = self.rows[6]
            known = {"id": row["id"], "row_id": row["id"], "source": row["source"], "source_row": row["source_row"]}
            evidence = (
                '{"asked": {"verdict": "model_contradiction"}, "log_odds": {"model": 4, "prior": -2.9, "samples": 0.4}}'
            )
            told = {"suspicion": 0.92, "tier": "review", "evidence": evidence, "suggestion": "99"}
            write_rows(out / "suspicion.parquet", [{**known, **told}], SUSPICION_SCHEMA)
