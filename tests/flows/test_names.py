"""Everything that a configuration names is looked up before the first stage, and a dry run finds it too."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from tables import rows

from truegold.flows.config import validate_config
from truegold.flows.execute import check_remote, execute
from truegold.flows.plan import plan
from truegold.pipeline.sources.hub import quick_hub
from truegold.verifiers import TruegoldError

CHECKS = """
from truegold.verifiers import verifier

@verifier(options=("strict",))
def declared(response, gold, *, info):
    return response == gold

@verifier
def anything(response, gold, *, info):
    return response == gold

@verifier
def nothing(response, gold):
    return response == gold
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    record = {"question": "How many pens do Ann and Ben have?", "answer": "3+4\n#### 7", "kind": "math"}
    (tmp_path / "train.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "script.jsonl").write_text('{"prompt": "x", "completions": ["y"]}\n')
    (tmp_path / "checks.py").write_text(CHECKS)
    return tmp_path


def mistake(**settings: Any) -> str:
    data = {"path": "train.jsonl", **settings.pop("data", {})}
    engine = {"type": "scripted", "path": "script.jsonl"}
    with pytest.raises(TruegoldError) as caught:
        plan(validate_config({"data": data, "engine": engine, **settings}, "run.yaml"))
    line = str(caught.value)
    assert "Traceback" not in line
    return line


@rows(
    "data, line",
    [
        ({"verifier": "mth"}, "there is no verifier 'mth'"),
        ({"verifier": "checks.py:declard"}, "Did you mean 'declared'?"),
        ({"preset": "gsm9k"}, "Did you mean 'gsm8k'?"),
        ({"columns": {"gold": "answr"}}, "has no column 'answr' (columns.gold). Did you mean 'answer'?"),
        ({"columns": {"solution": "answr"}}, "has no column 'answr' (columns.solution)"),
        ({"columns": {"gold": {"column": "answer", "extract": "regex:("}}}, "columns.gold"),
        ({"verifier_args": {"tolerence": 0.1}}, "math has no option 'tolerence'"),
        ({"verifier_args": {"tolerence": 0.1}}, "Did you mean 'tolerance'?"),
        ({"verifier_args": {"tolerance": "x"}}, "tolerance is 'x', expected a number"),
        (
            {"verifier": "numeric", "verifier_args": {"tol": 0.1}},
            "numeric has no option 'tol'; its options are abs_tol",
        ),
        ({"verifier": "numeric", "verifier_args": {"abs_tol": "x"}}, "abs_tol must be a number"),
        ({"verifier": "exact", "verifier_args": {"case_sensitive": "no"}}, "case_sensitive must be true or false"),
        ({"verifier": "choice", "verifier_args": {"multiple": 1}}, "multiple must be true or false"),
        ({"verifier": "length", "verifier_args": {"buffer": 3}}, "length needs the option 'max'"),
        ({"verifier": "regex", "verifier_args": {"pattern": "("}}, "the pattern cannot be compiled"),
        ({"verifier": "code", "verifier_args": {"languge": "cpp"}}, "Did you mean 'language'?"),
        ({"verifier": "code", "verifier_args": {"limits": {"cpu": 3}}}, "limits.cpu is unknown"),
        ({"verifier": "code", "verifier_args": {"reward": "some"}}, "reward must be one of all, pass_rate"),
        ({"verifier": "checks.py:declared", "verifier_args": {"strct": 1}}, "Did you mean 'strict'?"),
        ({"verifier": "checks.py:nothing", "verifier_args": {"strict": 1}}, "it takes none"),
    ],
)
def test_what_the_data_names_is_there(data: dict[str, Any], line: str) -> None:
    assert line in mistake(data=data)


def test_a_heldout_file_needs_the_columns_too(project: Path) -> None:
    (project / "held.jsonl").write_text('{"question": "How many?", "gold": "7"}\n')
    assert "held.jsonl has no column 'answer'" in mistake(data={"heldout_path": "held.jsonl"})


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"engine": {"type": "scripted", "path": "scrpt.jsonl"}}, "profile.engine.path: scrpt.jsonl does not exist"),
        ({"profile": {"engine": {"type": "scripted", "path": "."}}}, "profile.engine.path: . is a folder"),
        ({"profile": {"judge": {"name": "big", "model": "nowhere"}}}, "profile.judge.model: nowhere is not a folder"),
        ({"profile": {"judge": {"name": "big"}}}, "profile.judge names no model"),
        ({"flag": {"model": {"name": "big", "model": "nowhere"}}}, "well_posed.model: nowhere is not a folder"),
        (
            {"flag": {"model": {"name": "big", "engine": {"type": "replies", "path": "no.jsonl"}}}},
            "no.jsonl does not exist",
        ),
        (
            {
                "flag": {
                    "model": {
                        "name": "b",
                        "engine": {"type": "chat", "base_url": "http://x/v1", "model": "b"},
                        "known": "no.jsonl",
                    }
                }
            },
            "no.jsonl does not exist",
        ),
        ({"flag": {"detectors": ["truncated_txt"]}}, "there is no detector 'truncated_txt'"),
        ({"vet_tests": {"python": "/no/python"}, "data": {"verifier": "code"}}, "vet_tests.python: /no/python"),
        ({"dedup": {"embedder": "checks.py:encode"}}, "encoder 'checks.py:encode'"),
        ({"clean": {"boilerplate": ["("]}}, "clean.boilerplate: the pattern '(' is invalid"),
        ({"decontaminate": {"against": ["math501"]}}, "math501"),
        ({"decisions": "nowhere"}, "decisions: nowhere does not exist"),
        ({"export": {"suspicion": "nowhere.parquet"}}, "nowhere.parquet does not exist"),
    ],
)
def test_what_the_stages_name_is_there(settings: dict[str, Any], line: str) -> None:
    assert line in mistake(**settings)


@pytest.mark.parametrize(
    ("term", "line"),
    [
        ({"verifier": "format", "args": {"pattern": "x"}}, "format has no option 'pattern'; its options are tags"),
        ({"verifier": "format", "args": {"pattern": "x"}}, "The verifier regex has it."),
        ({"verifier": "numeric", "args": {"tol": "x"}}, "numeric has no option 'tol'"),
        ({"verifier": "length", "args": {"maximum": 9}}, "length needs the option 'max'"),
        ({"verifier": "length", "args": {"max": 0}}, "max must be a whole number"),
        ({"verifier": "regex", "args": {"pattern": "("}}, "the pattern cannot be compiled"),
        ({"verifier": "math", "args": {"units": "some"}}, "units is 'some', expected one of convert, strict, ignore"),
    ],
)
def test_the_options_of_reward_terms_are_checked(term: dict[str, Any], line: str) -> None:
    terms = [{"name": "correct"}, {"name": "extra", **term}]
    found = mistake(train={"reward": {"terms": terms}}, model={"path": "m"})
    assert "train.reward.terms" in found
    assert line in found


def test_options_that_fit_are_accepted() -> None:
    for data in (
        {"verifier_args": {"units": "strict"}},
        {"verifier": "checks.py:declared", "verifier_args": {"strict": 1}},
        {"verifier": "checks.py:anything", "verifier_args": {"whatever": 1}},
        {"verifier": "code", "verifier_args": {"language": "cpp", "limits": {"cpu_s": 2}}},
        {"verifier": "length", "verifier_args": {"max": 100}},
    ):
        engine = {"type": "scripted", "path": "script.jsonl"}
        plan(validate_config({"data": {"path": "train.jsonl", **data}, "engine": engine}, "run.yaml"))


def test_rows_that_name_an_unknown_verifier_are_rejected_when_they_are_read(project: Path) -> None:

    record = {"question": "How many pens do Ann and Ben have?", "answer": "#### 7"}
    lines = [json.dumps({**record, "kind": kind}) for kind in ("math", "mth")]
    (project / "train.jsonl").write_text("\n".join(lines) + "\n")
    (project / "run.yaml").write_text("data: {path: train.jsonl, columns: {verifier: kind}}\n")
    done = run_command("curate", "run.yaml", "--engine", "local", cwd=project)
    assert done.returncode == 0, done.stderr
    (reject,) = map(json.loads, (project / "runs" / "run" / "ingest" / "rejects.jsonl").read_text().splitlines())
    assert (reject["source_row"], reject["reason"]) == (2, "unknown_verifier")
    assert "Did you mean 'math'?" in reject["detail"]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"flag": {"advise_only": ["prof"]}}, "no flag of curation has the reason 'prof'. Did you mean 'proof'?"),
        ({"flag": {"advise_only": ["suspect_gold"]}}, "no flag of curation has the reason 'suspect_gold'"),
        ({"flag": {"advise_only": ["model_no_problem"]}}, "flag.model.blocks names the reasons"),
        (
            {"engine": {"type": "server", "url": "http://x/v1", "api_key_env": "NO_SUCH_KEY"}, "model": {"path": "m"}},
            "profile.engine.api_key_env: the environment variable NO_SUCH_KEY is not set.",
        ),
        ({"decontaminate": {"against": [{"set": "script.jsonl", "columns": {"prompt": "promp"}}]}}, "'promp'"),
    ],
)
def test_reasons_keys_and_columns_of_evaluation_sets_are_looked_up(
    settings: dict[str, Any], line: str, project: Path
) -> None:
    (project / "m").mkdir()
    (project / "m" / "config.json").write_text('{"model_type": "llama"}')
    (project / "m" / "tokenizer.json").write_text("{}")
    assert line in mistake(**settings)


def test_reasons_of_every_kind_may_advise_only(project: Path) -> None:
    reasons = ["proof", "conflicting_labels", "gold_unparsed", "low_kill_rate", "possible_translation", "not_vetted"]
    own = {"detectors": ["checks2.py:loud", "proof"], "advise_only": ["anything_at_all"]}
    (project / "checks2.py").write_text(
        "from truegold.pipeline.rules import detector\n@detector('loud', version='1')\ndef loud(row):\n    return []\n"
    )
    for flag in ({"advise_only": reasons}, own):
        plan(validate_config({"data": {"path": "train.jsonl"}, "flag": flag}, "run.yaml"), "curate")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"data": {"type": "hf", "name": "no/such-set", "preset": "gsm8k"}}, "Cannot open the dataset no/such-set"),
        ({"decontaminate": {"against": ["math500"]}}, "Cannot open the dataset HuggingFaceH4/MATH-500"),
        ({"data": [{"type": "hf", "name": "no/set", "source": "far", "preset": "gsm8k"}]}, "Source 'far' (data.0)"),
        ({"model": {"path": "no/such-model"}}, "model.path: no/such-model"),
    ],
)
def test_what_is_on_the_hub_is_looked_up_before_the_first_stage(settings: dict[str, Any], line: str) -> None:
    pytest.importorskip("datasets", reason="needs the extra `hub`")
    values = {"data": {"path": "train.jsonl"}, **settings}
    config = validate_config(values, "run.yaml")
    stages = plan(config, "profile" if "model" in settings else "curate")
    with pytest.raises(TruegoldError) as caught:
        check_remote(stages, config.run_dir)
    assert line in str(caught.value)
    with pytest.raises(TruegoldError):
        execute(stages, config.run_dir, lambda stage: pytest.fail(f"{stage.name} was run"))


@pytest.fixture
def unreachable_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub", reason="needs the extra `hub`").constants
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.mark.usefixtures("unreachable_hub")
def test_caches_are_used_alone_as_long_as_the_hub_cannot_be_reached() -> None:
    from huggingface_hub import constants

    with quick_hub() as is_reached:
        assert (is_reached, constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"]) == (False, True, "1")
    assert not constants.HF_HUB_OFFLINE
    assert "HF_HUB_OFFLINE" not in os.environ


@pytest.mark.usefixtures("unreachable_hub")
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("model.path=no/model", "model.path: no/model cannot be downloaded: the hub cannot be reached. Give a "),
        ("data={type: hf, name: no/set, preset: gsm8k}", "Cannot open the dataset no/set: the hub cannot be reached."),
        (
            "decontaminate.against=[math500]",
            "Cannot open the dataset HuggingFaceH4/MATH-500: the hub cannot be",
        ),
    ],
)
def test_a_hub_that_cannot_be_reached_is_one_line_and_a_dry_run_goes_on(change: str, line: str, project: Path) -> None:
    pytest.importorskip("datasets", reason="needs the extra `hub`")
    until = "profile" if change.startswith("model") else "curate"
    done = run_command(until, "train.jsonl", "--engine", "local", "--set", change, cwd=project)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert done.stderr.startswith(f"error: {line}")
    rehearsed = run_command(until, "train.jsonl", "--dry-run", "--set", change, cwd=project)
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert f"NOT CHECKED  {line}" in rehearsed.stdout


def test_nothing_is_looked_up_for_stages_that_have_run(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setattr("truegold.pipeline.curation.plan.open_hub", lambda source: pytest.fail("asked the hub"))
    monkeypatch.setattr(
        "truegold.flows.execute.with_states", lambda stages, run_dir: [(stage, True) for stage in stages]
    )
    values = {"data": {"type": "hf", "name": "no/such-set", "preset": "gsm8k"}}
    config = validate_config(values, "run.yaml")
    check_remote(plan(config, "curate"), config.run_dir)
