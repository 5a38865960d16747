"""A wrong setting is answered with what was meant: another type, its full path, the form of its value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run_command

from truegold.flows.config import RunConfig, load_config
from truegold.flows.plan import plan
from truegold.pipeline.config.mistakes import OTHER_NAMES, settings_meant
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import ConfigError, TruegoldError


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"question": f"Ann has {n} pens and buys {n + 3}. How many are that?", "answer": 2 * n + 3} for n in range(9)
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "run.yaml").write_text("data: {path: train.jsonl}\nmodel: {path: m}\n")
    return tmp_path


def mistakes(*changes: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(Path("run.yaml"), changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("data.quota=0.5", "data.quota: unknown setting outside a list of sources; write data: [{..., quota: ...}]"),
        ("data.type=hf", "data.path: unknown setting of type hf; it belongs to type file; known: columns, domain,"),
        ("engine.url=http://x", "engine.url: unknown setting of type vllm; it belongs to type server"),
        ("model={type: tiny, path: m}", "model.path: unknown setting of type tiny; it belongs to type path"),
        ("seed=abc", "seed: unknown setting; did you mean vet_tests.seed or sft.seed or profile.seed or"),
        ("lr=1", "did you mean sft.optimizer.lr or distill.optimizer.lr or train.optimizer.lr?"),
        ("train.lr=1", "train.lr: unknown setting; did you mean train.optimizer.lr?"),
        ("train.objective.lr=1", "train.objective.lr: unknown setting; did you mean train.optimizer.lr?"),
        ("train.optimizer.lr=5", "must be at most 1 (given: 5). Usual learning rates are about 1e-6 in RL and 1e-5 in"),
        ("data.columns.question=q", "data.columns.question: unknown setting; the keys are roles: prompt: q"),
        ("data.columns={answer: {column: a}}", "columns.answer: unknown setting; the keys are roles: gold: a"),
        ("data.columns={answer: {extract: boxed}}", "the keys are roles: gold: COLUMN"),
        ("columns.question=q", "columns: unknown setting; did you mean data.columns?"),
        ("data.columns.foo=a", "data.columns.foo: unknown setting; the keys are roles; known: gold, golds, id,"),
        ("url=http://x", "url: unknown setting; did you mean engine.url?"),
        ("chat={prompt}", "chat.prompt: unknown setting; known: system, use_template, user"),
        ("data.limit=true", "data.limit: must be a whole number (given: 'true')"),
        ("data.heldout=10", "data.heldout: must be less than 1 (given: 10). It is a share: 10 % is 0.1"),
        ("data.heldout=10%", "data.heldout: must be a number (given: '10%'). Write it as a share: 0.1"),
        ("data.heldout=0,1", "Numbers have a point, and nothing between thousands"),
        ("data.format=JSONL", "data.format: there is no 'JSONL'; did you mean jsonl?"),
        ("name=2024-01-01", '(given: 2024-01-01). A text that YAML reads as something else is put in quotes: name: "2'),
        ("chat.user={prompt}", "chat.user: must be a text (given: {'prompt': None}). A text that YAML reads"),
        ("chat.user=Answer.", "chat.user: must contain {prompt}, the place of the problem (given: 'Answer.')"),
        ("chat.user={problem} box", "If it is a text, put it in quotes: --set 'chat.user=\"{problem} box\"'"),
        (
            "select=null",
            "select: must be a section, with settings of its own (given: nothing). It cannot be turned off;",
        ),
        ("select=null", "null turns off only decontaminate, model, sft, profile, synth, distill, train, push_to_hub"),
        ("profile=false", "To turn it off, write profile: null"),
        ("decontaminate=false", "To turn it off, leave it out or write decontaminate: null"),
        ("vet_tests=null", "To turn it off, write vet_tests: {enabled: false}"),
        ("decontaminate=true", "Write decontaminate: {against: ...}"),
        ("decontaminate=[math500]", "Write decontaminate: {against: [math500]}"),
        ("train.optimizer.lora=true", "Write lora: {} for its defaults"),
        ("train.evaluation.sets=[math500]", "Write sets: {NAME: VALUE}, without dashes"),
        ("train.trackers=wandb", "Write trackers: [wandb]"),
        ("data=path:train.jsonl", "A space belongs after the colon: path: train.jsonl"),
        ("data.path=''", "data.path: must not be empty (given: '')"),
        ("decisions=['']", "decisions.0: must not be empty"),
        ("decontaminate={against: [' ']}", "decontaminate.against.0.set: must not be empty"),
        ("engine={type: server, url: localhost:8000}", "engine.url: must begin with http:// or https://"),
        ("clean.min_prompt_chars=50000", "min_prompt_chars (50000) exceeds max_prompt_chars (20000)"),
        ("select.min_passes=17", "select.min_passes (17) exceeds profile.samples (16): no row could be selected"),
        ("train.optimizer.betas=[0.9, 1.5]", "train.optimizer.betas.1: must be less than 1"),
        ("train={steps: 5, optimizer: {warmup_steps: 5}}", "optimizer.warmup_steps (5) must be below steps (5)"),
    ],
)
def test_a_wrong_setting_is_answered_with_what_was_meant(change: str, line: str) -> None:
    assert line in mistakes(change)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("learning_rate=1", "did you mean train.optimizer.lr or sft.optimizer.lr?"),
        ("train.learning_rate=1", "did you mean train.optimizer.lr?"),
        ("distill.learning_rate=1", "did you mean distill.optimizer.lr?"),
        ("train.num_generations=8", "did you mean train.group_size?"),
        ("train.objective.kl_coef=0.1", "did you mean train.objective.kl.weight?"),
        ("train.beta=0.1", "did you mean train.objective.kl.weight?"),
        ("train.optimizer.beta=0.1", "did you mean betas?"),
        ("profile.n=16", "profile.n: unknown setting; did you mean profile.samples?"),
        ("sft.num_train_epochs=3", "did you mean sft.epochs?"),
        ("train.epsilon=0.2", "did you mean train.objective.clip.low or train.objective.clip.high?"),
        ("train.max_prompt_length=512", "did you mean engine.max_model_len?"),
        ("train.logging_steps=1", "train.logging_steps: unknown setting; every step is logged in metrics.jsonl"),
        ("trainer.total-epochs=3", "trainer: unknown setting; did you mean train?"),
        ("algorithm.adv_estimator=grpo", "did you mean train.objective.advantage"),
        ("actor_rollout_ref={rollout: {n: 8}}", "did you mean train.group_size or profile.samples?"),
    ],
)
def test_a_name_of_another_trainer_is_answered_with_the_setting_here(change: str, line: str) -> None:
    assert line in mistakes(change)


def test_an_unknown_role_of_an_evaluation_set_is_its_only_mistake() -> None:
    told = mistakes("decontaminate={against: [{set: math500, columns: {question: q}}]}")
    assert told.endswith(
        "1 mistake\n  decontaminate.against.0.columns.question: unknown setting; the keys are roles: prompt: q"
    )


def test_names_of_other_trainers_stand_for_settings_that_exist() -> None:
    assert [name for name in OTHER_NAMES["settings"] if settings_meant(name, "", RunConfig) != [name]] == []
    own = {name.rpartition(".")[2] for name in OTHER_NAMES["settings"]}
    assert not own & {*OTHER_NAMES["none"]}


def test_a_number_below_its_limit_is_told_once() -> None:
    told = mistakes("train.sampling.temperature=0")
    assert told.endswith("1 mistake\n  train.sampling.temperature: must be more than 0 (given: 0)")


def test_the_first_samples_are_among_all() -> None:
    told = mistakes("profile.samples=2", "profile.first_samples=8")
    assert "profile: first_samples (8) must not exceed samples (2), the most that a problem gets" in told
    few = load_config(Path("run.yaml"), ["profile.samples=2"])
    assert few.profile is not None and few.profile.first_samples == 2


def test_an_override_fills_a_section_that_the_file_leaves_empty(project: Path) -> None:
    (project / "run.yaml").write_text("data: {path: train.jsonl}\nclean:\n")
    assert load_config(Path("run.yaml"), ["clean.min_prompt_chars=3"]).clean.min_prompt_chars == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("chat:\n  user: {problem} box it", 'is put in quotes (user: "{problem} box it")'),
        ("data:\n  path: *.jsonl", 'Put the text in quotes: path: "*.jsonl"'),
        ("chat:\n  user: Solve: this: {prompt}", 'Put the text in quotes: user: "Solve: this: {prompt}"'),
        ("data:\n  path: 'a.jsonl\n", "A quote is opened and not closed."),
        ("data:\n path: x\n  limit: 3", "The settings of a section begin in the same column"),
        ("data: {path: x}\n---\nname: b", "A file holds one configuration"),
        ("data\uff1a\n  path: x", "A plain colon and a plain space stand between a setting and its value"),
        ("data = x", "A plain colon and a plain space stand between a setting and its value"),
        ("data:{path: x}", "a plain colon and a plain space belong between a setting and its value"),
        ("data: {path: x}\ntrain:\n  - steps: 3", "Write train: {SETTING: VALUE}, without dashes"),
    ],
)
def test_yaml_that_was_meant_otherwise_is_answered_with_its_form(text: str, line: str, project: Path) -> None:
    (project / "run.yaml").write_text(text)
    assert line in mistakes()


def refusal(*changes: str, until: Phase = Phase.CURATE) -> str:
    with pytest.raises(TruegoldError) as caught:
        plan(load_config(Path("run.yaml"), changes), until)
    return str(caught.value)


def test_rows_that_are_all_held_out_or_all_evaluated_are_refused(project: Path) -> None:
    (project / "link.jsonl").symlink_to("train.jsonl")
    (project / "copy.jsonl").write_bytes((project / "train.jsonl").read_bytes())
    for name in ("train.jsonl", "link.jsonl", "copy.jsonl", str(project / "train.jsonl")):
        assert "heldout_path has all rows of data.path (train.jsonl)" in refusal(f"data.heldout_path={name}")
        assert f"{name} has all rows of train.jsonl" in refusal(f"decontaminate={{against: [{name}]}}")
    (project / "more.jsonl").write_text((project / "train.jsonl").read_text().replace("Ann", "Ben"))
    listed = "data=[{path: train.jsonl}, {path: more.jsonl, heldout_path: copy.jsonl}]"
    assert "heldout_path has all rows of data.0.path (train.jsonl)" in refusal(listed)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("openai/gsm8k@test:main", "Did you mean 'openai/gsm8k:main@test'?"),
        ("trian.jsonl", "Did you mean 'train.jsonl'?"),
        ("other.jsonl", "or a set of the hub as owner/name:subset@split"),
        ("@test", "There is no evaluation set or file @test"),
    ],
)
def test_an_evaluation_set_that_does_not_exist_is_answered_with_the_accepted_forms(name: str, line: str) -> None:
    assert line in refusal(f'decontaminate={{against: ["{name}"]}}')


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("TRAIN.JSONL", "Did you mean 'train.jsonl'?"),
        ("nosuch.jsonl", "Data files in that folder: other.jsonl, train.jsonl."),
        ("train", "Did you mean 'train.jsonl'?"),
        ("train.jsonl/x", "train.jsonl is a file, not a folder."),
        ("$PLACE/train.jsonl", "Variables of the shell are not replaced here. Name "),
        ("train.jsonl,other.jsonl", "data: [{path: train.jsonl}, {path: other.jsonl}]"),
        ("trian/*.jsonl", "its folder does not exist. Did you mean 'train'"),
        (
            "https://huggingface.co/datasets/openai/gsm8k",
            "is a page, not a file. Name the set: {type: hf, name: openai/",
        ),
    ],
)
def test_a_missing_path_is_answered_with_what_was_meant(
    path: str, line: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "other.jsonl").write_text((project / "train.jsonl").read_text())
    monkeypatch.setenv("PLACE", str(project))
    if "/*" in path:
        (project / "train").mkdir()
    assert line in refusal(f'data.path="{path}"')


def test_training_without_its_section_names_the_command_that_shows_one(project: Path) -> None:
    assert "There is no `train` section to run. `truegold init` shows one." in refusal(
        "model={type: smollm2}", until=Phase.TRAIN
    )


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("qwn3", "model.path: qwn3 does not exist. Did you mean 'qwen3'?"),
        ("https://huggingface.co/Qwen/Qwen3-0.6B", "Give the hub name: Qwen/Qwen3-0.6B."),
    ],
)
def test_a_missing_model_is_answered_with_what_was_meant(path: str, line: str, project: Path) -> None:
    (project / "qwen3").mkdir()
    assert line in refusal(f"model.path={path}", until=Phase.PROFILE)


def test_a_run_without_a_row_to_train_on_says_so(project: Path) -> None:
    lines = (project / "train.jsonl").read_text().splitlines()
    (project / "shuffled.jsonl").write_text("\n".join(reversed(lines)))
    done = run_command(
        "curate", "run.yaml", "--engine", "local", "--set", "data.heldout_path=shuffled.jsonl", cwd=project
    )
    assert done.returncode == 0 and "No row is left to train on: " in done.stderr
