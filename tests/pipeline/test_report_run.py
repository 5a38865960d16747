"""The small run that the tests of the report and of explain read is sound."""

from __future__ import annotations

from pathlib import Path

from fake_run import FULL, FakeRun, make_row

from truegold.pipeline.tables.rows import ROW_SCHEMA


def test_the_run_has_the_stages_it_says(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "runs" / "fake").build(FULL)
    assert sorted(path.name for path in run.folder.iterdir() if path.is_dir()) == sorted(FULL)
    assert set(make_row(1)) == set(ROW_SCHEMA.names)
