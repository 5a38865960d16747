"""Configuration mistakes are told all at once, each in a line that names the field and what was meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from truegold.flows.config import RunConfig, load_config, validate_config
from truegold.flows.execute import open_run
from truegold.flows.plan import plan
from truegold.pipeline.config.engines import ScriptedEngineConfig, VllmEngineConfig
from truegold.pipeline.running.stage import Output
from truegold.verifiers import ConfigError

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def project_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two files of problems and one of texts."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.jsonl", "more.jsonl"):
        (tmp_path / name).write_text('{"question": "How many pens?", "answer": "#### 7", "text": "x"}\n')
    (tmp_path / "sft.jsonl").write_text('{"prompt": "How many pens?", "completion": "7"}\n')
    return tmp_path


TINY_RUN = {"data": {"type": "demo"}, "model": {"type": "tiny", "max_positions": 2048}, "sft": {}}
"""A run of the demo with the tiny model, whose context is long enough for the default settings."""


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text)
    return path


def test_all_mistakes_are_reported_together(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "data: {path: x.jsonl, limt: 3}\nprofile: {samples: 0}\nclaen: {}\ntrain: {group_size: one}\n",
    )
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert f"{path}: 4 mistakes" in message
    assert "data.limt: unknown setting; did you mean limit?" in message
    assert "profile.samples" in message
    assert "claen: unknown setting; did you mean clean?" in message
    assert "train.group_size" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "holds no settings"),
        ("just words", "holds a text, not settings by name"),
        ("data: [", "not valid YAML"),
        (
            "data: {path: a.jsonl}\nprofile: {seed: 100000000000000000000000}",
            "profile.seed is a number of more than 64",
        ),
        ("data: {path: a.jsonl}\nprofile: {max_tokens: 3000000000}", "profile.max_tokens: must be at most"),
        ("name: x", "data: is missing"),
        ("data: {path: a.jsonl}\nname: ../up", "name: must be letters, digits and . _ - alone"),
        ("data: {type: sql, path: a}", "data.type: there is no 'sql'. There are: file, hf, demo."),
        ("data: {path: a.jsonl}\ntrain: {}", "sft and train need a model"),
        ("data: {path: a.jsonl}\nsynth: {}", "synth needs a model"),
        ("data: {path: a.jsonl}\nmodel: {path: m}\ndistill: {}", "set synth"),
        ("data: {path: a.jsonl}\nmodel: {type: tiny}", "set sft"),
        ("data: {path: a.jsonl}\nmodel: {type: tiny}\nsft: {}", "set sft.data"),
        (
            "data: {path: a.jsonl}\nmodel: {path: m}\ntrain: {}\nengine: {type: server, url: 'http://x'}",
            "train needs engine.weights_dir",
        ),
        ("data: {path: a.jsonl}\ndedup: {embedder: e, reworded: false}", "no effect with reworded: false"),
        ("data: {path: a.jsonl}\ndedup: {template_cap: 2, case_sensitive: true}", "no effect with case_sensitive"),
        ("data: {path: a.jsonl}\nengine: {ray_address: auto}", "ray_address has no effect on one engine"),
        ("data: {path: a.jsonl}\nchat: {user: no place}", "must contain {prompt}"),
        ("data: {path: a.jsonl}\ntrain: {temperature: 0.7}", "train.temperature: moved to train.sampling.temperature"),
        ("data: {path: a.jsonl}\ntrain: {reward: [], steps: 0}", "train.reward: moved to train.reward.terms"),
    ],
)
def test_each_mistake_has_a_line_that_names_it(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text))
    assert expected in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "nothing.yaml")
    with pytest.raises(ConfigError, match="is a directory without data files"):
        load_config(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "latin.yaml")


def test_overrides_reach_into_sections_that_are_not_there_yet(tmp_path: Path) -> None:
    path = write(tmp_path, "data: {path: a.jsonl}")
    config = load_config(path, ["data.limit=200", "profile.samples=4", "name=other", "engine.dtype=float32"])
    assert config.name == "other"
    assert config.profile.samples == 4
    assert config.data.limit == 200  # type: ignore[union-attr]
    assert isinstance(config.engine, VllmEngineConfig)
    assert config.engine.dtype == "float32"


@pytest.mark.parametrize("override", ["data.limit", "name.more=1", "data.limit=[1"])
def test_a_wrong_override_is_one_line(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError, match=r"^--set "):
        load_config(write(tmp_path, "name: x\ndata: {path: a.jsonl}"), [override])


@pytest.mark.parametrize("field", ["profile.seed", "profile.samples", "select.quotas.domain:a", "engine.max_num_seqs"])
def test_an_integer_that_no_table_holds_is_named(tmp_path: Path, field: str) -> None:
    with pytest.raises(ConfigError, match=f"{field} is a number of more than 64 bits"):
        load_config(write(tmp_path, "data: {path: a.jsonl}"), [f"{field}={10**23}"])


def test_the_resolved_configuration_reads_back_as_itself() -> None:
    config = validate_config(
        {"data": {"path": "a.jsonl", "preset": "gsm8k"}, "engine": {"type": "scripted", "path": "s.jsonl"}}, "here"
    )
    assert isinstance(config.engine, ScriptedEngineConfig)
    assert RunConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_valid(example: Path) -> None:
    load_config(example)


def test_synthesis_feeds_the_training_that_follows() -> None:
    values = {**TINY_RUN, "synth": {}, "train": {"group_size": 6}}
    values["profile"] = {"max_tokens": 77}
    stages = {stage.name: stage for stage in plan(validate_config(values, "test"))}
    assert list(stages)[-4:] == ["synth", "train", "profile_after", "report"]
    assert stages["train"].inputs["rows"] == Output("synth", "selected.parquet")
    assert stages["train"].inputs["distilled"] == Output("synth", "distilled.parquet")
    assert stages["select"].config.model_dump()["may_be_empty"]
    section = stages["synth"].config.model_dump()
    assert (section["max_tokens"], section["group_size"]) == (77, 6)
    with_sft = {stage.name: stage for stage in plan(validate_config({**values, "distill": {}}, "test"))}
    assert with_sft["distill"].inputs == {
        "model": Output("sft", "checkpoint"),
        "distilled": Output("synth", "distilled.parquet"),
    }
    assert with_sft["train"].inputs["model"] == Output("distill", "checkpoint")
    assert "profile" in with_sft["train"].config.model_dump()["guards"]["off"]


def test_what_rules_and_an_asked_model_say_joins_the_suspicion_of_the_profile() -> None:
    values = TINY_RUN
    flags = Output("flag", "flags.parquet")
    stages = {stage.name: stage for stage in plan(validate_config(values, "test"))}
    assert "suspect" not in stages
    assert (stages["profile"].inputs["flags"], stages["profile"].inputs.get("asked")) == (flags, None)
    asked = {"name": "m", "engine": {"type": "chat", "base_url": "http://localhost:1/v1", "model": "m"}}
    stages = {stage.name: stage for stage in plan(validate_config({**values, "flag": {"model": asked}}, "test"))}
    first = list(stages).index("flag")
    assert list(stages)[first : first + 4] == ["flag", "well_posed", "suspect", "settle"]
    for name in ("suspect", "profile"):
        assert stages[name].inputs["flags"] == Output("well_posed", "flags.parquet")
        assert stages[name].inputs["asked"] == Output("well_posed", "asked.parquet")


def test_the_resolved_configuration_has_every_section_as_its_stage_runs_it(project_files: Path) -> None:
    values = {
        "data": [{"path": "train.jsonl", "quota": 0.5}, {"path": "more.jsonl", "preset": "gsm8k", "weight": 2}],
        "model": {"type": "tiny", "max_positions": 2048},
        "chat": {"user": "{prompt} Box it."},
        "engine": {"dtype": "float32", "max_model_len": 512},
        "sft": {"data": "sft.jsonl"},
        "profile": {"max_tokens": 77, "chat": {"system": "Be brief."}},
        "synth": {},
        "distill": {},
        "train": {"group_size": 6, "engine": {"dtype": "bfloat16"}},
    }
    config = validate_config(values, "test")
    resolved = config.resolved()
    stages = {stage.name: stage for stage in plan(config)}
    for name in ("clean", "dedup", "verify_gold", "sft", "profile", "select", "synth", "distill", "train", "export"):
        assert getattr(resolved, name) == stages[name].config, name
    assert resolved.profile is not None
    # What was selected is not selected from again.
    again = resolved.profile.model_copy(update={"rows_to_select": None, "quotas": {}, "zero_share": 1.0})
    assert again == stages["profile_after"].config
    dump = resolved.model_dump(mode="json")
    assert dump["sft"]["chat"]["user"] == "{prompt} Box it."
    assert dump["profile"]["chat"] == {"system": "Be brief.", "user": "{prompt}", "use_template": True}
    assert dump["profile"]["engine"]["max_model_len"] == 512
    assert dump["train"]["engine"]["dtype"] == "bfloat16"
    assert dump["select"]["group_size"] == dump["synth"]["group_size"] == 6
    assert dump["select"]["quotas"] == {"source:train.jsonl": 0.5, "source:more.jsonl": 0.5}
    assert dump["train"]["guards"]["off"] == ["profile"]
    # What was written down can be run again, and is the same.
    assert validate_config(dump, "config.resolved.json").resolved() == resolved


def test_the_written_configuration_is_the_resolved_one(project_files: Path) -> None:
    values = {"data": {"path": "train.jsonl"}, "chat": {"system": "Be brief."}, "runs_dir": str(project_files / "runs")}
    config = validate_config(values, "test")
    with open_run(config) as run_dir:
        written = json.loads((run_dir / "config.resolved.json").read_text())
    assert written == config.resolved().model_dump(mode="json")
    assert written["profile"]["chat"]["system"] == "Be brief."


ENGINE = "engine: {dtype: float32, max_model_len: 300}\nchat: {system: Be brief.}"
SERVER = "engine: {type: server, url: http://localhost:1/v1, weights_dir: w}"


@pytest.mark.parametrize(
    ("text", "changes", "path", "expected"),
    [
        (ENGINE, ["train.engine.dtype=bfloat16"], "train.engine.max_model_len", 300),
        (ENGINE, ["train.engine.dtype=bfloat16"], "train.engine.dtype", "bfloat16"),
        (ENGINE, ["train.engine.dtype=bfloat16"], "profile.engine.dtype", "float32"),
        # In any order, for every section that shares, several at once, and spelled out.
        (ENGINE, ["train.engine.dtype=bfloat16", "engine.max_model_len=200"], "train.engine.max_model_len", 200),
        (ENGINE, ["train.engine.sleep=false", "train.engine.max_num_seqs=4"], "train.engine.max_model_len", 300),
        (ENGINE, ["train.engine.type=vllm", "train.engine.max_num_seqs=4"], "train.engine.dtype", "float32"),
        (ENGINE, ["profile.engine.max_num_seqs=4"], "profile.engine.max_model_len", 300),
        (ENGINE, ["synth.engine.max_num_seqs=4"], "synth.engine.dtype", "float32"),
        (ENGINE, ["sft.chat.use_template=false"], "sft.chat.system", "Be brief."),
        (ENGINE, ["profile.chat.user=Q {prompt}"], "profile.chat.system", "Be brief."),
        (SERVER, ["train.engine.concurrency=4"], "train.engine.url", "http://localhost:1/v1"),
        # Another type of engine, one that the file has, or a whole one begins anew.
        (
            ENGINE,
            ["train.engine.type=server", "train.engine.url=http://u", "train.engine.weights_dir=w"],
            "train.engine.url",
            "http://u",
        ),
        (
            ENGINE + "\nprofile: {engine: {max_num_seqs: 2}}",
            ["profile.engine.dtype=auto"],
            "profile.engine.max_model_len",
            2048,
        ),
        (ENGINE, ["profile.engine={dtype: auto}"], "profile.engine.max_model_len", 2048),
        # A section's own defaults stay where it is set in part.
        ("", ["sft.optimizer.dtype=float32"], "sft.optimizer.lr", 1e-5),
        ("sft: {optimizer: {dtype: float32}}", [], "sft.optimizer.lr", 1e-5),
        ("sft: {optimizer: {lr: 0.1}}", [], "sft.optimizer.lr", 0.1),
        ("", ["train.optimizer.dtype=float32"], "train.optimizer.lr", 1e-6),
        ("distill: {optimizer: {dtype: float32}}\nsynth: {}", [], "distill.optimizer.lr", 1e-5),
    ],
)
def test_one_setting_leaves_the_others_of_its_section_as_they_are(
    tmp_path: Path, text: str, changes: list[str], path: str, expected: object
) -> None:
    written = write(tmp_path, f"data: {{path: a.jsonl}}\nmodel: {{path: ./m}}\n{text}")
    value: object = load_config(written, ["train.steps=1", "synth.seed=0", "sft.epochs=1", *changes]).resolved()
    for name in path.split("."):
        value = getattr(value, name)
    assert value == expected


@pytest.mark.parametrize("field", ["profile.deadline_s", "profile.temperature", "engine.gpu_memory_utilization"])
@pytest.mark.parametrize("value", [".inf", ".nan"])
def test_a_setting_is_a_finite_number(tmp_path: Path, field: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{field}: must be"):
        load_config(write(tmp_path, "data: {path: a.jsonl}"), [f"{field}={value}"])
