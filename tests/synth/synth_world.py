"""A small world for synthesis: numbered problems, a scripted model, and the tables that profile and selection make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numbered_rows import make_row

from truegold.pipeline.config.engines import ScriptedEngineConfig
from truegold.pipeline.config.stages import ProfileConfig, SelectConfig
from truegold.pipeline.profile import profile
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.select import select
from truegold.pipeline.tables.rows import Row, write_rows
from truegold.synth import synth
from truegold.synth.config import SynthConfig

HARD, USEFUL, HELDOUT = 12, 12, 2


@dataclass
class World:
    """A profiled and selected set of problems; the first HARD of them never pass."""

    folder: Path
    script: dict[str, Sequence[str]]

    def write_script(self) -> ScriptedEngineConfig:
        """Write what the model answers."""
        lines = [json.dumps({"prompt": prompt, "completions": list(told)}) for prompt, told in self.script.items()]
        path = self.folder / "script.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
        return ScriptedEngineConfig(path=str(path))

    def inputs(self) -> dict[str, Path]:
        """Return what the stage reads."""
        tables = {name: self.folder / "select" / f"{name}.parquet" for name in ("hard", "selected", "reserve")}
        tables |= {name: self.folder / "profile" / f"{name}.parquet" for name in ("profile", "suspicion", "samples")}
        return tables

    def synthesise(self, answers: Mapping[str, Sequence[str]], out: str = "synth", **settings: Any) -> StageReport:
        """Run the stage. answers: what the model says to prompts that contain a text, besides the script."""
        self.script |= answers
        engine = self.write_script()
        out_dir = self.folder / out
        out_dir.mkdir(exist_ok=True)
        config = SynthConfig.model_validate({"engine": engine, "max_tokens": 300, **settings})
        return synth({**self.inputs(), "store": self.folder / "store"}, config, out_dir, NullProgress())


def problem(number: int, split: str = "train") -> Row:
    """Return one of the world's problems."""
    return make_row(number, split)


def make_world(tmp_path: Path) -> World:
    """Hard problems that answer 6, 7, 8, ... and useful ones that pass every other time; every gold is 5."""
    wrong = [f"I think \\boxed{{{answer}}}" for answer in (6, 7, 8, 9)]
    script: dict[str, Sequence[str]] = {f"<{number}>": wrong for number in range(1, HARD + 1)}
    useful = range(HARD + 1, HARD + USEFUL + HELDOUT + 1)
    script |= {f"<{number}>": ["so \\boxed{5}", "so \\boxed{6}", "so \\boxed{7}"] for number in useful}
    made = World(tmp_path, script)
    rows = [problem(number) for number in range(1, HARD + USEFUL + 1)]
    rows += [problem(HARD + USEFUL + 1 + number, "heldout") for number in range(HELDOUT)]
    write_rows(tmp_path / "rows.parquet", rows)
    for name in ("profile", "select"):
        (tmp_path / name).mkdir()
    settings = ProfileConfig(engine=made.write_script(), samples=16, first_samples=None)
    profile({"rows": tmp_path / "rows.parquet"}, settings, tmp_path / "profile", NullProgress())
    select_rows(tmp_path, SelectConfig())
    return made


def select_rows(folder: Path, config: SelectConfig) -> None:
    """Select in the folder of a world."""
    tables = {name: folder / "profile" / f"{name}.parquet" for name in ("rows", "profile", "flags", "suspicion")}
    select(tables, config, folder / "select", NullProgress())
