"""Repair of real programs from failing tests: MBPP in the sandbox, with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from numbered_rows import make_row
from real_data import real_data

from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.profile import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import Row, dump_json, row_id, write_rows
from truegold.synth import synth
from truegold.synth.config import SynthConfig

ROWS = 6


def mbpp() -> list[tuple[Row, str]]:
    """Return rows of MBPP with their programs."""
    lines = real_data("code/mbpp.jsonl").read_text().splitlines()
    made = []
    for line in lines[1 : 1 + 4 * ROWS : 4]:
        task = json.loads(line)
        prompt = f"{task['text']}\n{task['test_list'][0]}"
        tests = dump_json({"tests": task["test_list"]})
        changed = {"prompt": prompt, "gold": None, "verifier": "code", "verifier_args": tests, "domain": "code"}
        row: Row = {**make_row(task["task_id"]), **changed, "id": row_id(prompt, None, tests)}  # type: ignore[typeddict-item]
        made.append((row, task["code"]))
    return made


def test_programs_are_repaired_from_the_test_that_fails(tmp_path: Path) -> None:
    problems = mbpp()
    script = []
    for row, code in problems:
        name = code.split("def ")[-1].split("(")[0]
        broken = [f"```python\ndef {name}(*arguments):\n    return {wrong!r}\n```" for wrong in (None, "?")]
        script.append({"prompt": row["prompt"], "completions": broken})
        asked = f"{row['prompt']}\n\nThis program does not pass the tests:"
        script.append({"prompt": asked, "completions": [f"```python\n{code}\n```"]})
    (tmp_path / "script.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in script))
    engine = ScriptedEngineConfig(path=str(tmp_path / "script.jsonl"))
    write_rows(tmp_path / "hard.parquet", [row for row, _ in problems])
    write_rows(tmp_path / "none.parquet", [], SELECTED_SCHEMA)
    for name in ("profile", "synth"):
        (tmp_path / name).mkdir()
    settings = ProfileConfig(engine=engine, samples=2, first_samples=None, max_tokens=2000)
    profile({"rows": tmp_path / "hard.parquet"}, settings, tmp_path / "profile", NullProgress())
    inputs = {name: tmp_path / "profile" / f"{name}.parquet" for name in ("profile", "suspicion", "samples")}
    inputs |= {"hard": tmp_path / "hard.parquet", "selected": tmp_path / "none.parquet"}
    config = SynthConfig(engine=engine, strategies=("retry", "repair"), attempts=2, max_tokens=2000, positives=1)
    synth(inputs, config, tmp_path / "synth", NullProgress())
    attempts = pl.read_parquet(tmp_path / "synth" / "attempts.parquet")
    # `retry` is for answers, not for programs.
    assert set(attempts["strategy"]) == {"repair"}
    assert all("It passes 0 of" in context and "test: assert" in context for context in attempts["context"])
    assert attempts["kept"].sum() == ROWS
    distilled = pl.read_parquet(tmp_path / "synth" / "distilled.parquet")
    assert {row["prompt"] for row, _ in problems} == set(distilled["prompt"])
