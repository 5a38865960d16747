"""The steps of CONTRIBUTING.md, followed in a copy of the tree; and every path that the guides name is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from house import FLOORS, ROOT

from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.sources.data_files import SUFFIXES

GUIDES = ("CONTRIBUTING.md", "docs/architecture.md", "README.md", "docs/reference/python.md")
PATH = re.compile(
    r"`((?:verifiers|pipeline|train|flows|synth|tests|benchmarks|docs|examples)/[\w./-]*)`|\]\(([\w./-]+)[)#]"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, tmp_path / "truegold" / floor, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "truegold"


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert text.count(before) == 1, f"{path} does not have {before!r} once"
    path.write_text(text.replace(before, after))


def run(tree: Path, code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(tree.parent)}
    command = [
        sys.executable,
        "-P",
        "-c",
        f"import truegold.verifiers as v; assert {str(tree)!r} in v.__file__\n{code}",
    ]
    done = subprocess.run(
        command, cwd=tree.parent, env=environment, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("guide", GUIDES)
def test_every_path_that_a_guide_names_is_there(guide: str) -> None:
    missing = []
    for inline, link in PATH.findall((ROOT / guide).read_text()):
        target = ROOT / inline if inline else (ROOT / guide).parent / link
        if not target.exists() and "NAME" not in inline:
            missing.append(inline or link)
    assert missing == []


@pytest.mark.parametrize("guide", ["docs/reference/reasons.md", "docs/flagging.md"])
def test_guides_list_every_rule(guide: str) -> None:
    listed = set(re.findall(r"\w+", (ROOT / guide).read_text()))
    assert [name for name in BUILT_IN if name not in listed] == []


def test_every_kind_of_file_can_be_configured() -> None:
    formats = get_args(FileSource.model_fields["format"].annotation)
    assert sorted(formats) == sorted({"auto", *SUFFIXES.values()})


def test_add_a_rule(tree: Path) -> None:
    rules = tree / "pipeline/flag/rules"
    with (rules / "incomplete_prompts.py").open("a") as file:
        file.write(
            '\n\n@detector("shouting", version="1")\ndef shouting(row: Row) -> list[Finding]:\n'
            '    """Flag a prompt in capitals."""\n    if not row["prompt"].isupper():\n        return []\n'
            '    return [Finding("shouting", 0.6, {"prompt": row["prompt"][:80]})]\n'
        )
    change(rules / "registry.py", "    for rule in (\n", "    for rule in (\n        incomplete_prompts.shouting,\n")
    code = (
        "from truegold import pipeline\n"
        "rows = [{'question': 'WHAT IS 1 + 1? THINK HARD.', 'answer': '2'}]\n"
        "print(pipeline.find_flags(rows).flags['reason'].to_list())\n"
    )
    assert "shouting" in run(tree, code)


def test_add_a_verifier(tree: Path) -> None:
    (tree / "verifiers/answers/prefix.py").write_text(
        '"""The verifier `prefix`: the response begins with gold."""\n'
        "from truegold.verifiers.verdict import Reason, Verdict\n\n\n"
        'class PrefixVerifier:\n    """Judges by the first characters."""\n\n    name = "prefix"\n    version = "1"\n\n'
        "    def __call__(self, response, gold, *, problem=None, info={}):\n"
        "        right = response.startswith(gold)\n"
        "        return Verdict(float(right), Reason.MATCH if right else Reason.MISMATCH)\n"
    )
    registry = tree / "verifiers/registry.py"
    change(
        registry,
        '    "numeric": NumericVerifier,\n',
        '    "numeric": NumericVerifier,\n    "prefix": PrefixVerifier,\n',
    )
    change(
        registry,
        "from truegold.verifiers.answers.text_match import",
        "from truegold.verifiers.answers.prefix import PrefixVerifier\n"
        "from truegold.verifiers.answers.text_match import",
    )
    code = "print(v.verify('7 apples', '7', verifier='prefix').score, 'prefix' in v.available())"
    assert run(tree, code) == "1.0 True\n"


def test_add_an_input_format(tree: Path) -> None:
    sources = tree / "pipeline/sources"
    change(tree / "verifiers/columns.py", '"original_text")', '"original_text", "frage")')
    change(
        sources / "presets.py",
        "PRESETS: dict",
        'def riddles(columns: Set[str], samples: Samples) -> Layout | None:\n    """Riddles and their solutions."""\n'
        '    columns_of_riddles = Columns.model_validate({"prompt": "riddle", "gold": "key"})\n'
        '    return Layout(columns_of_riddles) if {"riddle", "key"} <= columns else None\n\n\n'
        "PRESETS: dict",
    )
    change(sources / "presets.py", '    "generic": (', '    "riddles": (riddles, "riddle, key"),\n    "generic": (')
    code = (
        "from truegold import pipeline\n"
        "print(len(pipeline.deduplicate([{'frage': 'Was ist 1 + 1?'}, {'frage': 'was ist 1 + 1?'}]).rows))\n"
        "print(pipeline.curate([{'riddle': 'What is 10 + 7 here?', 'key': '17'}]).rows['gold'].to_list())\n"
    )
    assert run(tree, code) == "1\n['17']\n"


def test_add_a_stage(tree: Path) -> None:
    folder = tree / "pipeline/shout"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        '"""Stage `shout`."""\nfrom truegold.pipeline.shout.stage import shout\n\n__all__ = ["shout"]\n'
    )
    (folder / "stage.py").write_text(
        '"""Stage `shout`: prompts in capitals, each edit in the ledger."""\n'
        "from truegold.pipeline.tables.ledger import Ledger\n"
        "from truegold.pipeline.tables.rows import read_rows, write_rows\n"
        "from truegold.pipeline.running.stage import StageReport, stage_function\n\n\n"
        "@stage_function(version=1)\ndef shout(inputs, config, out_dir, progress):\n"
        '    """Write the prompts in capitals."""\n'
        "    rows = list(read_rows(inputs['rows']))\n"
        '    with Ledger(out_dir, "shout") as ledger:\n        for row in rows:\n'
        '            ledger.edit(row, "shouted", row["prompt"], row["prompt"].upper(), column="prompt")\n'
        '            row["prompt"] = row["prompt"].upper()\n'
        '    write_rows(out_dir / "rows.parquet", rows)\n'
        "    return StageReport(len(rows), len(rows), ledger.counts)\n"
    )
    change(
        tree / "pipeline/config/stages.py",
        "class VerifyGoldConfig(",
        'class ShoutConfig(StageConfig):\n    """Nothing to set."""\n\n\nclass VerifyGoldConfig(',
    )
    change(
        tree / "pipeline/config/stages.py",
        "    dedup: DedupConfig = DedupConfig()\n",
        "    shout: ShoutConfig = ShoutConfig()\n    dedup: DedupConfig = DedupConfig()\n",
    )
    change(tree / "pipeline/running/stage_table.py", '"dedup", ', '"shout", "dedup", ')
    plan = tree / "pipeline/curation/plan.py"
    change(
        plan,
        "        _deduplicate(config.dedup, {**rows_of(stages[-1].name), **priority}),\n",
        '        plan_stage("shout", shout, config.shout, rows_of("clean")),\n'
        '        _deduplicate(config.dedup, rows_of("shout")),\n',
    )
    change(
        plan,
        "from truegold.pipeline.verify import",
        "from truegold.pipeline.shout import shout\nfrom truegold.pipeline.verify import",
    )
    code = (
        "from truegold import pipeline\n"
        "curated = pipeline.curate([{'question': 'What is 10 + 7 here?', 'answer': '17'}])\n"
        "print(curated.rows['prompt'].to_list(), curated.ledger['reason'].to_list())\n"
        "curated.report('report.html')\n"
    )
    assert run(tree, code) == "['WHAT IS 10 + 7 HERE?'] ['shouted']\n"
    assert "shouted" in (tree.parent / "report.html").read_text()


def test_add_an_advantage(tree: Path) -> None:
    advantages = tree / "train/objective.py"
    change(
        advantages,
        "ADVANTAGES: Mapping",
        'def doubled(groups: Groups) -> Tensor:\n    """Return twice r - mean of the group."""\n'
        "    return 2 * dr_grpo(groups)\n\n\nADVANTAGES: Mapping",
    )
    change(advantages, "in (grpo, dr_grpo, ", "in (grpo, dr_grpo, doubled, ")
    change(tree / "train/config/objective.py", '"dr_grpo", ', '"dr_grpo", "doubled", ')
    code = (
        "import torch\n"
        "from truegold.train.config.objective import ObjectiveConfig\n"
        "from truegold.train.objective import advantages\n"
        "kind = ObjectiveConfig(advantage='doubled').advantage\n"
        "print(advantages(kind, torch.tensor([1.0, 0.0]), torch.tensor([0, 0])).tolist())\n"
    )
    assert run(tree, code) == "[1.0, -1.0]\n"
