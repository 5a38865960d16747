"""Measures the page of the report: how large it is, how fast it opens, and how many of its first rows are bad.

    python benchmarks/report_page.py DATA_DIR --page benchmarks/results/report_page.md

DATA_DIR holds curation/gsm8k_platinum.jsonl (648 rows of the GSM8K test set with the final answers of up to 60 systems
and the word of reviewers: kept, revised, rejected), gsm8k_train.jsonl and math_train_7474.jsonl. Two pages:

    gsm8k    the 648 rows with the systems as samples, and the first 352 of train without any, as `truegold flag` reads
             them. Of the first 30 rows of the page those are bad that reviewers revised or rejected. The labels are
             read here alone, after the page is made.
    10,000   10,000 rows of train sets, each prompt followed by solutions of other rows up to 3,000 characters, with
             eight made samples of 3,000 characters: texts as long as those of reasoning models, of which the page cuts.

Opening is the time from the request until the table stands and the first card is drawn: in Chromium, the median of
five. Making it is measured in CPU time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from publishing import publish, say

from truegold.pipeline.profile.drawing import SAMPLE_SCHEMA
from truegold.pipeline.report import open_page
from truegold.pipeline.tables.ledger import DROPPED_SCHEMA, Ledger
from truegold.pipeline.tables.rows import PROFILE_SCHEMA, row_id, write_rows

FIRST = 30
TRAIN_ROWS = 352
ROWS = 10_000
PROMPT_CHARS, COMPLETION_CHARS, SAMPLES = 3_000, 3_000, 8
OPENINGS = 5


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON Lines file."""
    with path.open() as lines:
        yield from map(json.loads, lines)


def flag_gsm8k(data: Path, work: Path) -> Path:
    """Flag the rows of the first page by the command, and return the folder of its run."""
    rows, samples = [], []
    for entry in read_lines(data / "gsm8k_platinum.jsonl"):
        key = f"test-{entry['id']}"
        solution = entry["gold_solution"]
        rows.append({"id": key, "question": entry["question"], "answer": entry["gold_original"], "solution": solution})
        samples += [{"id": key, "system": name, "answer": str(answer)} for name, answer in entry["preds"].items()]
    for index, entry in enumerate(read_lines(data / "gsm8k_train.jsonl")):
        if index < TRAIN_ROWS:
            parts = {name: entry[name] for name in ("question", "answer", "solution")}
            rows.append({"id": f"train-{entry['id']}", **parts})
    for name, records in (("rows", rows), ("samples", samples)):
        (work / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    command = ["truegold", "flag", "--data", work / "rows.jsonl", "--samples", work / "samples.jsonl"]
    subprocess.run([*map(str, command), "--out", str(work / "flagged")], check=True, capture_output=True)
    return work / "flagged" / "work"


def make_long_run(data: Path, work: Path) -> Path:
    """Write a run of rows with long texts and samples, and return its folder."""
    draw = random.Random(0)
    texts = [
        (entry["question"], entry["solution"], entry["answer"]) for entry in read_lines(data / "gsm8k_train.jsonl")
    ]
    texts += [(entry["problem"], "", entry["answer"]) for entry in read_lines(data / "math_train_7474.jsonl")]
    solutions = [solution for _, solution, _ in texts if solution]

    def lengthen(text: str, limit: int) -> str:
        while len(text) < limit:
            text += "\n" + draw.choice(solutions)
        return text[:limit]

    rows, profiles, samples = [], [], []
    for line, (prompt, solution, gold) in enumerate(texts[:ROWS], start=1):
        long_prompt = lengthen(prompt, PROMPT_CHARS)
        key = {"id": row_id(long_prompt, gold), "source": "train.jsonl", "source_row": line, "split": "train"}
        row = {"prompt": long_prompt, "gold": gold, "domain": "math", "verifier": "math", "verifier_args": "{}"}
        rows.append({**key, **row, "solution": solution or None, "meta": "{}"})
        passes = draw.randint(0, SAMPLES)
        rates = {"n": SAMPLES, "judged": SAMPLES, "passes": passes, "pass_rate": passes / SAMPLES}
        known = {"posterior": [{"weight": 1.0, "a": 1.0 + passes, "b": 1.0 + SAMPLES - passes}]}
        profiles.append({**key, **rates, **known})
        for sample in range(SAMPLES):
            completion = lengthen("", COMPLETION_CHARS) + f"\n\\boxed{{{gold}}}"
            verdict = {"score": float(sample < passes), "reason": "match" if sample < passes else "mismatch"}
            answer = {"completion": completion, "extracted": gold, "evidence": "{}", "finish_reason": "stop"}
            samples.append({**key, "sample": sample, **answer, **verdict})
    run = work / "long"
    for name in ("ingest", "profile"):
        (run / name).mkdir(parents=True)
        write_rows(run / name / "rows.parquet", rows)
        with Ledger(run / name, name):
            pass
        write_rows(run / name / "dropped.parquet", [], DROPPED_SCHEMA)
        report = {"rows_in": ROWS, "rows_out": ROWS, "counts": {}, "facts": {}}
        record = {"name": name, "key": name, "seconds": 0.0, "report": report}
        (run / name / "stage.json").write_bytes(orjson.dumps(record))
    write_rows(run / "profile" / "profile.parquet", profiles, PROFILE_SCHEMA)
    write_rows(run / "profile" / "samples.parquet", samples, SAMPLE_SCHEMA)
    (run / "manifest.json").write_bytes(orjson.dumps({"stages": [{"name": "ingest"}, {"name": "profile"}]}))
    return run


def measure(run: Path, page: Path) -> dict[str, Any]:
    """Make the page of a run, open it, and return what that took."""
    started = time.process_time()
    html = open_page(run)
    figures: dict[str, Any] = {"made_s": round(time.process_time() - started, 2)}
    page.write_text(html, encoding="utf-8")
    figures["megabytes"] = round(page.stat().st_size / 1e6, 2)
    return figures | open_in_browser(page)


def open_in_browser(page: Path) -> dict[str, Any]:
    """Return the median seconds to open the rows and to sort them by pass rate or prompt, and the heap."""
    from playwright.sync_api import sync_playwright

    opened, sorted_in, heap = [], [], 0.0
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(OPENINGS):
            tab = chromium.new_page(viewport={"width": 1440, "height": 900})
            started = time.monotonic()
            tab.goto(f"{page.as_uri()}#rows")
            tab.wait_for_selector("body[data-ready] #card article", timeout=120_000)
            opened.append(time.monotonic() - started)
            sorted_in.append(
                tab.evaluate(
                    "() => { const t = performance.now(); truegold.sortBy('-prompt'); return performance.now() - t }"
                )
            )
            heap = tab.evaluate("performance.memory.usedJSHeapSize") / 1e6
            tab.close()
        chromium.close()
    return {
        "opened_s": round(statistics.median(opened), 2),
        "sorted_s": round(statistics.median(sorted_in) / 1000, 2),
        "heap_mb": round(heap),
    }


def first_rows(run: Path, data: Path) -> dict[str, Any]:
    """Return how many of the first rows reviewers found bad: of all, and by the halves of the rows."""
    from truegold.pipeline.config.stages import ReportConfig
    from truegold.pipeline.report.page_rows import gather_ended_rows
    from truegold.pipeline.tables.run_files import open_finished

    status = dict(enumerate(read_lines(data / "gsm8k_platinum.jsonl"), start=1))
    most = ReportConfig.model_fields["max_rows"].default
    order = gather_ended_rows(open_finished(run), most).rows["source_row"].to_list()
    is_bad = [status.get(line, {"status": "kept"})["status"] != "kept" for line in order]
    halves: list[list[bool]] = [[], []]
    for line, bad in zip(order, is_bad, strict=True):
        if line in status:
            digest = hashlib.sha256(f"gsm8k_platinum.jsonl{status[line]['id']}".encode()).digest()
            halves[digest[-1] % 2].append(bad)
    return {"first": sum(is_bad[:FIRST]), "halves": [sum(half[: FIRST // 2]) for half in halves]}


def main() -> None:
    """Measure both pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--numbers", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    data = options.data / "curation"
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        say("gsm8k")
        run = flag_gsm8k(data, work)
        figures = {"gsm8k": measure(run, work / "gsm8k.html") | first_rows(run, data)}
        say("10,000 rows")
        figures["10,000"] = measure(make_long_run(data, work), work / "long.html")
    lines = ["| page | MB | made in, CPU | opens in | sorts in | heap, MB |", "|---|--:|--:|--:|--:|--:|"]
    for name, page in figures.items():
        times = [f"{page[key]:.2f} s" for key in ("made_s", "opened_s", "sorted_s")]
        lines.append(f"| {name} | {page['megabytes']} | {' | '.join(times)} | {page['heap_mb']} |")
    first = figures["gsm8k"]
    lines += [
        "",
        f"Of the first {FIRST} rows of the GSM8K page {first['first']} are bad by the reviewers' words; of the first "
        f"{FIRST // 2} of each half of the 648 rows (by hash) {first['halves'][0]} and {first['halves'][1]}.",
    ]
    publish(figures, "\n".join(lines), options.numbers, options.page, "The page of the report")


if __name__ == "__main__":
    main()
