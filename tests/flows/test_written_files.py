"""Every file that truegold writes or ships can be read, says what was meant, and runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests.flows.test_mistakes import run
from truegold.flows.config import RunConfig, load_config, parse_settings, validate_config
from truegold.flows.plan import plan
from truegold.pipeline.config.sources import FileSource

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{index}")
    for path in DOCS
    for index, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE))
]
ROW = {"question": "How many pens do Ann and Ben have together?", "answer": "3+4\n#### 7"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_data(path: str, preset: str | None = None) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    rows = [{**ROW, "question": f"{ROW['question']} ({n} friends watch.)"} for n in range(8)]
    if preset == "mbpp":
        rows = [{"text": "Write add.", "code": "def add(a, b): return a + b", "test_list": ["assert add(1, 2) == 3"]}]
    if path.endswith(".parquet"):
        pl.DataFrame(rows).write_parquet(path)
    elif path.endswith(".csv"):
        pl.DataFrame([{"question": "Which? A. 1 B. 2", "correct": "B"}]).write_csv(path)
    else:
        Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("name", ["truegold.yaml", "my run.yaml", "übung.yaml", "2026: first #1.yaml", ".yaml"])
def test_the_starter_runs_under_any_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = 'my "data": #1.jsonl'
    write_data(data)
    assert run(monkeypatch, "init", data, name, "--train", "--model", "C:\\models\\new") == 0
    config = load_config(Path(name))
    assert config.chat.user == "{prompt}\nPut your final answer in \\boxed{}."
    assert isinstance(config.data, FileSource)
    assert config.data.path == data
    assert config.model.path == "C:\\models\\new"  # type: ignore[union-attr]
    assert run(monkeypatch, "curate", name, "--engine", "local") == 0


def test_what_the_starter_has_in_comments_may_be_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    write_data("train.jsonl")
    assert run(monkeypatch, "init", "train.jsonl", "--train") == 0
    lines = Path("run.yaml").read_text().splitlines()
    commented = [index for index, line in enumerate(lines) if re.match(r"\s*# \s*[a-z_]+:( |$)", line)]
    assert len(commented) > 5
    for index in commented:
        taken = [re.sub(r"# ", "", line, count=1) if at == index else line for at, line in enumerate(lines)]
        if "columns:" in lines[index]:
            rest = enumerate(taken)
            taken = [line.replace("# ", "", 1) if index < at <= index + 3 else line for at, line in rest]
        if lines[index].lstrip("# ").startswith(("prompt:", "gold:", "solution:", "Any", "A ")):
            continue
        validate_config(yaml.safe_load("\n".join(taken)), lines[index])


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_is_planned_whole_and_curated(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = yaml.safe_load(example.read_text())
    sources = values["data"] if isinstance(values["data"], list) else [values["data"]]
    for source in sources:
        for field in ("path", "heldout_path"):
            if field in source:
                write_data(source[field], source.get("preset"))
    # A configuration names its own code from the folder above.
    Path("examples").symlink_to(example.parent)
    if "data" in values.get("sft", {}):
        turns = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}]
        Path(values["sft"]["data"]).write_text(json.dumps({"messages": turns}) + "\n")
    for against in values.get("decontaminate", {}).get("against", ()):
        write_data(against)
    config = validate_config(values, example.name)
    assert "\\\\" not in config.chat.user
    names = [stage.name for stage in plan(config)]
    assert names[-1] == "report"


@pytest.mark.parametrize("block", BLOCKS)
def test_every_configuration_in_the_docs_is_valid(block: str) -> None:
    values: dict[str, Any] = parse_settings(block)
    assert isinstance(values, dict)
    needed = {"data": {"path": "x.jsonl"}, "model": {"path": "m"}}
    validate_config({**needed, **values}, "docs")


def test_the_written_configuration_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    write_data("train.jsonl")
    Path("run.yaml").write_text("data: {path: train.jsonl}\nchat: {user: 'Say \\boxed{prompt}: {prompt}'}\n")
    assert run(monkeypatch, "curate", "run.yaml", "--engine", "local") == 0
    resolved = Path("runs/run/config.resolved.json")
    again = RunConfig.model_validate_json(resolved.read_text())
    assert again.chat.user == "Say \\boxed{prompt}: {prompt}"
    assert run(monkeypatch, "curate", str(resolved), "--engine", "local") == 0
    card = Path("runs/run/export/README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["configs"]
