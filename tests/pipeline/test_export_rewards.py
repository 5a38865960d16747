"""Accepted golds and options of verifiers, from a plain file through every export to the reward of its trainer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from tables import rows
from test_export_formats import OF_CONVERSATIONS, WITHOUT_COMPLETIONS, export, rows_of, write_lines
from typer.testing import CliRunner

from truegold.flows.cli.app import app
from truegold.pipeline.export.formats import FORMATS
from truegold.verifiers import InputError
from truegold.verifiers.adapters import nemo_gym, open_instruct, openrlhf, prime, rubric, slime, verl
from truegold.verifiers.adapters.scoring import Scorer
from truegold.verifiers.adapters.skyrl import TruegoldEnv
from truegold.verifiers.adapters.trl import TruegoldReward

ADD = "```python\ndef add(a, b):\n    return a + b\n```"
ROWS: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "other_golds": (
        {"question": "What is one half?", "answer": "1/2", "other_golds": ["0.25", "75"]},
        ("\\boxed{1/2}", "\\boxed{.25}", "\\boxed{75}"),
        "\\boxed{2}",
    ),
    "golds": ({"question": "Name a colour.", "golds": ["3", "7"]}, ("\\boxed{3}", "\\boxed{7}"), "\\boxed{9}"),
    "rel_tol": (
        {"question": "What is pi?", "answer": "3.14", "verifier": "numeric", "verifier_args": {"rel_tol": 0.01}},
        ("\\boxed{3.14}", "\\boxed{3.15}"),
        "\\boxed{3.3}",
    ),
    "unit": (
        {"question": "How far?", "answer": "5", "verifier": "numeric", "verifier_args": {"unit": ["km"]}},
        ("\\boxed{5 km}",),
        "\\boxed{6 km}",
    ),
    "comma": (
        {"question": "Wie viel Euro?", "answer": "1.002,25", "verifier": "math", "verifier_args": {"comma": "decimal"}},
        ("\\boxed{1.002,25}", "\\boxed{1002.25}", "\\boxed{1002,25}"),
        "\\boxed{1002,5}",
    ),
    "options": (
        {
            "question": "Which?",
            "answer": "B",
            "verifier": "choice",
            "verifier_args": {"options": ["red", "blue", "green"]},
        },
        ("\\boxed{blue}", "\\boxed{B}"),
        "\\boxed{red}",
    ),
    "multiple": (
        {"question": "Which two?", "answer": "AC", "verifier": "choice", "verifier_args": {"multiple": True}},
        ("\\boxed{A, C}", "\\boxed{C, A}"),
        "\\boxed{A}",
    ),
    "case_sensitive": (
        {"question": "Who?", "answer": "Goethe", "verifier": "exact", "verifier_args": {"case_sensitive": True}},
        ("Goethe", "\\boxed{Goethe}"),
        "\\boxed{goethe}",
    ),
    "exact": ({"question": "Who?", "answer": "Goethe", "verifier": "exact"}, ("goethe",), "\\boxed{Schiller}"),
    "pattern": (
        {"question": "When?", "answer": "", "verifier": "regex", "verifier_args": {"pattern": "\\d{4}"}},
        ("\\boxed{1999}",),
        "\\boxed{99}",
    ),
    "both": (
        {
            "question": "How much?",
            "answer": "10",
            "other_golds": ["20"],
            "verifier": "numeric",
            "verifier_args": {"abs_tol": 1},
        },
        ("\\boxed{11}", "\\boxed{19}"),
        "\\boxed{15}",
    ),
    "tests": (
        {"prompt": "Add.", "verifier": "code", "verifier_args": {"tests": ["assert add(1, 2) == 3"]}},
        (ADD,),
        ADD.replace("+", "-"),
    ),
}
"""A record of a plain file, responses that are right, and one that is wrong, by what of the record has to survive."""
Reward = Callable[[Mapping[str, Any], str], float | None]
"""The reward that a trainer computes of an exported record and a response."""


def _messages(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


def by_trl(record: Mapping[str, Any], response: str) -> float | None:
    """TRL: lists of one batch, columns by their names."""
    columns = {name: [value] for name, value in record.items() if name != "prompt"}
    (reward,) = TruegoldReward()(prompts=[record["prompt"]], completions=[_messages(response)], **columns)
    return reward


def by_verl(record: Mapping[str, Any], response: str) -> float:
    """verl's manager `naive`: by keyword."""
    return verl.compute_score(
        data_source=record["data_source"],
        solution_str=response,
        ground_truth=record["reward_model"]["ground_truth"],
        extra_info=record["extra_info"],
    )["score"]


def by_openrlhf(record: Mapping[str, Any], response: str) -> float:
    """OpenRLHF: by position, for one response."""
    prompt = "<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n"
    return float(openrlhf.reward_func([prompt + response], [prompt], [record["label"]])["rewards"][0])


def by_open_instruct(record: Mapping[str, Any], response: str) -> float:
    """open-instruct: the rewards of all ground truths added up, each by the verifier of its data set."""
    pairs = list(zip(record["ground_truth"], record["dataset"], strict=True))
    assert {name for _, name in pairs} == {"truegold"}
    judge = open_instruct.TruegoldVerifier()
    return sum(judge([], response, label, record["messages"][-1]["content"]).score for label, _ in pairs)


def by_verifiers(record: Mapping[str, Any], response: str) -> float | None:
    """The taskset of verifiers v1: a task's data and a trace."""
    data = SimpleNamespace(**record)
    return asyncio.run(prime.score_trace(data, SimpleNamespace(last_reply=response)))["correct"]


def by_inspect(record: Mapping[str, Any], response: str) -> float | None:
    """inspect's metadata (its scorer runs in tests/integrations)."""
    scorer = Scorer()
    return scorer.judge([scorer.truth(record["metadata"]).question(response)])[0].score


def by_nemo_gym(record: Mapping[str, Any], response: str) -> float:
    """NeMo-Gym: the request with a response of the Responses API."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": response}]}]
    return asyncio.run(nemo_gym.verify_fields({**record, "response": {"output": output}}))["reward"]


def by_nemo_rl(record: Mapping[str, Any], response: str) -> float:
    """NeMo-RL: messages and `extra_env_info`, as `calculate_rewards` hands them to the actor."""
    from truegold.verifiers.adapters.nemo_rl import RowEnvironment

    messages = [{"role": "user", "content": f"<|user|>{record['input']}"}, *_messages(response)]
    observations, metadata, stops, rewards, terminateds, _ = RowEnvironment({}).step(
        [messages], [{"ground_truth": record["output"]}]
    )
    assert len(observations) == len(metadata) == len(stops) == 1 and terminateds.tolist() == [1.0]
    return float(rewards[0])


def by_plain_file(record: Mapping[str, Any], response: str) -> float | None:
    """The columns of `hf`, as any of truegold's own calls reads them."""
    scorer = Scorer()
    truth = scorer.truth({name: record[name] for name in ("gold", "verifier", "verifier_args")})
    return scorer.judge([truth.question(response)])[0].score


def by_slime(record: Mapping[str, Any], response: str) -> float:
    """slime: `await rm_function(args, sample)`, of OpenRLHF's file; the engine leaves the last token there."""
    sample = SimpleNamespace(
        prompt="<|im_start|>user\n?", label=record["label"], response=f"{response}<|im_end|>", metadata={}
    )
    sample.remove_sample = False
    reward = asyncio.run(slime.truegold(SimpleNamespace(), sample))
    assert sample.remove_sample is False and sample.metadata["truegold"]["judged"] == 1.0
    return reward


def by_skyrl(record: Mapping[str, Any], response: str) -> float:
    """SkyRL: an environment for a trajectory, of verl's file."""
    extras = {name: value for name, value in record.items() if name != "prompt"}
    environment = TruegoldEnv(env_config={}, extras={**extras, "max_turns": 1})
    assert environment.init(record["prompt"]) == (record["prompt"], {})
    output = environment.step(response)
    assert output["done"] and output["observations"] == [] and environment.get_metrics() == {"judged": 1, "masked": 0}
    environment.close()
    return output["reward"]


def by_rubric(record: Mapping[str, Any], response: str) -> float:
    """A rubric of verifiers 0.3: every column by its name, besides prompt, completion, answer, state, info, parser."""
    state: dict[str, Any] = {}
    objects = {"state": state, "info": {}, "parser": object(), "task": None}
    columns = {**record, "completion": _messages(response), **objects}
    reward = asyncio.run(rubric.truegold(**columns))
    assert rubric.masked(state=state) == 0.0
    return reward


REWARDS: list[tuple[str, Reward]] = [
    *(("trl", by_trl), ("verl", by_verl), ("openrlhf", by_openrlhf), ("open-instruct", by_open_instruct)),
    *(("verifiers", by_verifiers), ("inspect", by_inspect), ("nemo-gym", by_nemo_gym), ("nemo-rl", by_nemo_rl)),
    *(("hf", by_plain_file), ("openrlhf", by_slime), ("verl", by_skyrl), ("trl", by_rubric)),
]


def records_in(path: Path) -> list[dict[str, Any]]:
    """Return the records of an exported split."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "reward"), REWARDS, ids=[reward.__name__ for _, reward in REWARDS])
def test_every_trainer_pays_by_all_golds_and_options_of_a_plain_file(name: str, reward: Reward, tmp_path: Path) -> None:
    for kind, (record, right, wrong) in ROWS.items():
        data = write_lines(tmp_path / f"{kind}.jsonl", [record])
        (path,) = export(data, name, tmp_path / kind).splits
        (exported,) = records_in(path)
        assert [reward(exported, response) for response in right] == [1.0] * len(right), kind
        assert reward(exported, wrong) == 0.0, kind


def test_every_format_has_a_reward_here() -> None:
    assert {name for name, _ in REWARDS} == set(WITHOUT_COMPLETIONS)


@pytest.mark.parametrize(
    ("gold", "verifier", "name"),
    [
        *((gold, "math", "math") for gold in ("72", "-3", "0.5", "1/2", "-7/3", "\\frac{1}{2}", "1234")),
        ("72", "numeric", "math"),
        *((gold, "numeric", "truegold") for gold in ("50%", "1e3")),
        *((gold, "exact", "truegold") for gold in ("72", "Goethe")),
        # open-instruct's `math` (e6c3044) pays 0 for \\boxed{72}, \\boxed{east}, \\boxed{2,1}, ... of these golds.
        *((gold, "math", "truegold") for gold in ("$72$", "\\(72\\)", "72.", "72 km", "\\boxed{72}", "1{,}234", "½")),
        *((gold, "math", "truegold") for gold in ("\\text{east}", "\\{1, 2\\}", "1e3", "$\\frac{1}{2}$", "50\\%")),
    ],
)
def test_open_instructs_own_math_gets_plain_numbers_alone(gold: str, verifier: str, name: str, tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "How much is it?", "answer": gold, "verifier": verifier}])
    (path,) = export(data, "open-instruct", tmp_path / "out").splits
    (record,) = records_in(path)
    assert record["dataset"] == [name]
    if name == "truegold":
        assert by_open_instruct(record, f"\\boxed{{{gold}}}" if "boxed" not in gold else gold) == 1.0
    else:
        assert record["ground_truth"] == [gold]


def test_what_could_not_be_judged_is_visible_in_each_further_trainer(tmp_path: Path) -> None:
    from truegold.verifiers.adapters.nemo_rl import RowEnvironment

    label = json.dumps({"gold": "\\frac{1", "verifier": "math", "verifier_args": "{}"})
    sample = SimpleNamespace(prompt="?", label=label, response="\\boxed{1}", metadata=None, remove_sample=False)
    right = SimpleNamespace(prompt="?", label="1", response="\\boxed{1}", metadata=None, remove_sample=False)
    assert asyncio.run(slime.truegold(None, [sample, right])) == [0.0, 1.0]
    assert (sample.remove_sample, right.remove_sample) == (True, False)
    assert sample.metadata["truegold"]["reason"] == "gold_unparsed"
    environment = TruegoldEnv(None, {"extra_info": {"truegold": label}})
    assert environment.get_metrics() == {}
    assert environment.step("\\boxed{1}")["reward"] == 0.0
    assert environment.get_metrics() == {"judged": 0.0, "masked": 1.0}
    state: dict[str, Any] = {}
    columns = {"prompt": "?", "completion": "\\boxed{1}", "state": state, "answer": "", "truegold": label}
    assert asyncio.run(rubric.truegold(**columns)) == 0.0 and rubric.masked(state=state) == 1.0
    actor = RowEnvironment()
    messages = [{"role": "user", "content": "?"}, *_messages("\\boxed{1}")]
    step = actor.step([messages] * 2, [{"ground_truth": label}, {"ground_truth": ["2", "1"]}], True)
    assert step.rewards.tolist() == [0.0, 1.0] and step.answers == ["1", "1"]
    assert actor.global_post_process_and_metrics("batch") == ("batch", {"masked_share": 0.5})
    actor.shutdown()


@rows(
    "label, response, paid",
    [
        ("72", "\\boxed{72}", 1.0),
        (["72", "73"], "\\boxed{73}</s>", 1.0),
        ("72", "so 72<|im_end|>\n<|endoftext|>", 1.0),
        ("72", "The tag <|x|> is struck. \\boxed{72}", 1.0),
        ("72", "\\boxed{71}", 0.0),
        ("72", "", 0.0),
        (None, "\\boxed{72}", 0.0),
        ({"gold": 72}, "\\boxed{72}", 0.0),
    ],
)
def test_slime_judges_labels_that_are_no_rows(label: Any, response: str, paid: float) -> None:
    sample = SimpleNamespace(
        prompt=[{"role": "user", "content": "?"}], label=label, response=response, metadata={}, remove_sample=False
    )
    assert asyncio.run(slime.truegold(None, sample)) == paid
    assert sample.remove_sample is (label is None or isinstance(label, dict))


def test_skyrl_judges_its_own_sets(tmp_path: Path) -> None:
    extras = {"reward_spec": {"method": "rule", "ground_truth": "72"}, "data_source": "openai/gsm8k"}
    assert [TruegoldEnv(None, extras).step(text)["reward"] for text in ("#### 72", "#### 71")] == [1.0, 0.0]


def test_a_rubric_hands_over_messages_as_models() -> None:
    class Message:
        def __init__(self, content: str) -> None:
            self.content = content

        def model_dump(self) -> dict[str, str]:
            return {"role": "assistant", "content": self.content}

    columns = {"prompt": [Message("?")], "completion": [Message("\\boxed{7}")], "state": {}, "answer": "7"}
    assert asyncio.run(rubric.truegold(**columns)) == 1.0


def output_of(*arguments: str) -> str:
    """Return what the command prints; it has to end well."""
    outcome = CliRunner().invoke(app, list(arguments))
    assert outcome.exit_code == 0, outcome.exception
    return outcome.stdout


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("trl", "2 of 3 rows have tests, several golds or options of their verifier, which TRL's own accuracy_reward"),
        ("verl", "2 of 3 rows have tests, several golds or options of their verifier, which compute_score.py reads"),
        ("open-instruct", "2 of 3 rows say `dataset: truegold`, for which open-instruct pays nothing unless"),
        ("inspect", "1 of 3 rows have tests or options of their verifier, which inspect's own scorers do not read"),
        ("nemo-gym", "2 of 3 rows have tests, several golds or options of their verifier, which math_with_judge"),
        ("nemo-rl", "3 of 3 rows have a row as `output`, which NeMo-RL's own environments cannot read"),
        ("hf", None),
        ("openrlhf", None),
        ("verifiers", None),
    ],
)
def test_the_command_says_which_rows_the_trainers_own_rewards_would_misjudge(
    name: str, line: str | None, tmp_path: Path
) -> None:
    plain = {"question": "What is 1+1?", "answer": "2"}
    data = write_lines(tmp_path / "set.jsonl", [ROWS["other_golds"][0], ROWS["rel_tol"][0], plain])
    lines = output_of("export", str(data), "--format", name, "--out", str(tmp_path / "out")).splitlines()
    assert len(lines) == 1 + (line is not None)
    assert line is None or lines[1].startswith(line)


@pytest.mark.parametrize("name", ["trl", "verl", "open-instruct", "inspect", "nemo-gym", "nemo-rl"])
def test_programs_need_truegolds_own_reward(name: str, tmp_path: Path) -> None:
    program = {"text": "Write f.", "code": "def f(): return 1", "test_list": ["assert f() == 1"]}
    data = write_lines(tmp_path / "set.jsonl", [program])
    lines = output_of("export", str(data), "--format", name, "--out", str(tmp_path / "out")).splitlines()
    assert lines[1].startswith("1 of 1 rows ")


@pytest.mark.parametrize("name", set(WITHOUT_COMPLETIONS) - set(OF_CONVERSATIONS))
def test_a_format_refuses_rows_whose_context_it_would_lose_and_names_one_that_keeps_it(
    name: str, tmp_path: Path
) -> None:
    user, system = {"role": "user", "content": "What is 3+4?"}, {"role": "system", "content": "Answer in French."}
    data = write_lines(
        tmp_path / "set.jsonl", [{"prompt": [system, user], "answer": "7"}, {"prompt": [user], "answer": "7"}]
    )
    lines = output_of("export", str(data), "--format", name, "--out", str(tmp_path / "out")).splitlines()
    assert lines[1] == "1 of 2 records rejected: 1 context_lost"
    assert lines[2].startswith("  set.jsonl:1: context_lost: ") and "--format nemo-gym" in lines[2]
    with pytest.raises(InputError, match=r"1 context_lost\. The first: .*--format nemo-gym"):
        export(write_lines(tmp_path / "one.jsonl", [{"prompt": [system, user], "answer": "7"}]), name, tmp_path / "one")


SPLITS = {"train": "train", "validation": "heldout", "TEST": "heldout", "": "train", None: "train", "fold_1": "train"}


@pytest.mark.parametrize("column", ["split", "part"])
def test_a_column_of_splits_is_read_by_its_name_or_as_it_is_named(column: str, tmp_path: Path) -> None:
    records = [{"question": f"What is {n}+1?", "answer": str(n + 1), column: word} for n, word in enumerate(SPLITS)]
    data = write_lines(tmp_path / "set.jsonl", records)
    named = [] if column == "split" else ["--split-column", column]
    output_of("export", str(data), "--format", "hf", "--out", str(tmp_path / "out"), *named)
    rows = [row for split in ("train", "test") for row in records_in(tmp_path / "out" / f"{split}.parquet")]
    assert {row["prompt"]: row["split"] for row in rows} == {
        record["question"]: split for record, split in zip(records, SPLITS.values(), strict=True)
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--split-column", "prat"], "prat"),
        (["--verifier", "numerc"], "numerc"),
        (["--limit", "0"], None),
    ],
)
def test_a_misspelt_option_is_one_line_and_writes_nothing(
    options: list[str], message: str | None, tmp_path: Path
) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "1+1?", "answer": "2", "part": "test"}])
    outcome = CliRunner().invoke(app, ["export", str(data), "--format", "hf", "--out", str(tmp_path / "out"), *options])
    assert outcome.exit_code != 0
    assert message is None or message in str(outcome.exception)
    assert not (tmp_path / "out").exists()


def test_limit_takes_the_first_rows_of_a_file_a_set_and_a_run(curate: Any, tmp_path: Path) -> None:
    problems = [(f"Ann has {n} pens and buys {n + 1}. How many has she?", str(2 * n + 1)) for n in range(3, 12)]
    run = curate(tmp_path, problems)
    data = write_lines(tmp_path / "set.jsonl", [{"question": prompt, "answer": gold} for prompt, gold in problems])
    output_of("export", str(data), "--format", "trl", "--out", str(tmp_path / "set"))
    for index, source in enumerate((data, tmp_path / "set", run)):
        out = tmp_path / f"out-{index}"
        output_of("export", str(source), "--format", "hf", "--out", str(out), "--limit", "2")
        assert len(records_in(out / "train.parquet")) == 2 and not (out / "test.parquet").exists()


def test_a_run_is_exported_with_the_verifier_and_licence_that_are_stated(curate: Any, tmp_path: Path) -> None:
    run = curate(tmp_path, [(f"What is {n}+{n}? Say it.", str(2 * n)) for n in range(3, 9)], data={"license": "mit"})
    options = ["--verifier", "numeric", "--license", "cc0", "--origin", "ours"]
    output_of("export", str(run), "--format", "hf", "--out", str(tmp_path / "out"), *options)
    rows = [row for path in (tmp_path / "out").glob("*.parquet") for row in records_in(path)]
    # The licence is that of rows which state none.
    assert {(row["verifier"], row["license"], row["origin"]) for row in rows} == {("numeric", "mit", "ours")}
    output_of("export", str(tmp_path / "out"), "--format", "trl", "--out", str(tmp_path / "trl"), "--verifier", "exact")
    assert {row["verifier"] for row in records_in(tmp_path / "trl" / "train.parquet")} == {"exact"}


def test_programs_are_rejected_for_a_verifier_that_needs_gold(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [ROWS["tests"][0], {"prompt": "1+1?", "gold": "2"}])
    output_of("export", str(data), "--format", "hf", "--out", str(tmp_path / "set"))
    for source in (data, tmp_path / "set"):
        out = output_of("export", str(source), "--format", "trl", "--out", str(tmp_path / "out"), "--verifier", "math")
        assert "1 of 2 records rejected: 1 missing_gold" in out
        assert [row["answer"] for row in records_in(tmp_path / "out" / "train.parquet")] == ["2"]


def test_columns_of_what_truegold_has_written_are_not_left_unread(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "set.jsonl", [{"question": "1+1?", "answer": "2", "part": "test"}])
    (path,) = export(data, "trl", tmp_path / "out").splits
    for options in (["--split-column", "license"], ["--gold-column", "answer"]):
        outcome = CliRunner().invoke(
            app, ["export", str(path), "--format", "hf", "--out", str(tmp_path / "hf"), *options]
        )
        assert "was written by truegold export" in str(outcome.exception)
    assert [row["gold"] for row in rows_of(path, tmp_path / "rows")] == ["2"]


def test_a_split_of_an_earlier_export_in_the_same_folder_is_named(tmp_path: Path) -> None:
    records = [{"question": "1+1?", "answer": "2"}, {"question": "1+2?", "answer": "3", "split": "test"}]
    data = write_lines(tmp_path / "set.jsonl", records)
    out = tmp_path / "out"
    assert "earlier export" not in output_of("export", str(data), "--format", "hf", "--out", str(out))
    again = output_of("export", str(data), "--format", "hf", "--out", str(out), "--limit", "1")
    assert f"{out / 'test.parquet'} is from an earlier export and does not belong to this set." in again
    assert re.search(r"^This replaces the set of \d{4}-\d\d-\d\d \d\d:\d\d that was here\.$", again, re.MULTILINE)


def test_an_unknown_verifier_of_a_run_is_refused(curate: Any, tmp_path: Path) -> None:
    run = curate(tmp_path, [(f"What is {n}+{n}? Say it.", str(2 * n)) for n in range(3, 9)])
    outcome = CliRunner().invoke(
        app, ["export", str(run), "--format", "hf", "--out", str(tmp_path / "out"), "--verifier", "numerc"]
    )
    assert "numerc" in str(outcome.exception) and not (tmp_path / "out").exists()


def test_the_formats_of_the_command_are_those_that_there_are() -> None:
    from truegold.flows.cli.set_commands import FormatName

    assert set(FormatName) == set(FORMATS)
