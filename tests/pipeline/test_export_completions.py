"""Examples and preferences for TRL, made of a run's samples and positives."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import polars as pl
import pytest
from test_export_formats import rows_of, write_lines
from typer.testing import CliRunner

from truegold.flows.cli.app import app
from truegold.pipeline.config.sources import FileSource
from truegold.pipeline.export.completions import CompletionChoice, DrawnCompletion, read_completions
from truegold.pipeline.export.convert import Written, check, convert
from truegold.pipeline.export.formats import FORMATS, ExportRow
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.tables.rows import Row
from truegold.verifiers import InputError

SYSTEM = {"role": "system", "content": "Be exact."}
HARD, SATURATED, USEFUL = range(1, 5), range(5, 7), range(7, 15)


def problem(number: int) -> str:
    """Return a problem whose answer is 5 more."""
    return f"Tom has {number} apples and gets 5 more. How many has he now <{number}>?"


def answers(number: int) -> list[str]:
    """Return what the scripted model says: hard problems are never solved, saturated ones always."""
    right = number + 5
    if number in HARD:
        return [f"I think \\boxed{{{right + wrong}}}" for wrong in (1, 2, 3)]
    if number in SATURATED:
        return [f"so \\boxed{{{right}}}"]
    return [f"{number}+5={right}: \\boxed{{{right}}}", f"so \\boxed{{{right}}}", f"\\boxed{{{right + 4}}}", "No idea."]


@pytest.fixture(scope="module")
def run(curate: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with samples and positives, whose prompts had a template around them."""
    folder = tmp_path_factory.mktemp("completions")
    script, positives = folder / "script.jsonl", folder / "positives.jsonl"
    numbers = [*HARD, *SATURATED, *USEFUL]
    script.write_text(
        "".join(json.dumps({"prompt": f"<{n}>", "completions": answers(n)}) + "\n" for n in numbers), encoding="utf-8"
    )
    positives.write_text(
        "".join(
            json.dumps({"prompt": f"<{n}>", "completions": [f"{n}+5={n + 5}, so \\boxed{{{n + 5}}}"]}) + "\n"
            for n in numbers
        ),
        encoding="utf-8",
    )
    chat = {"system": "Think.", "user": "Solve.\n{prompt}\nBox it."}
    return curate(
        folder,
        [(problem(n), str(n + 5)) for n in numbers],
        until="synth",
        engine={"type": "scripted", "path": str(script)},
        chat=chat,
        profile={"samples": 8},
        select={},
        synth={"engine": {"type": "scripted", "path": str(positives)}, "strategies": ["retry"], "max_tokens": 300},
    )


def export(run: Path, name: str, out: Path, system: str | None = None, **choice: Any) -> Written:
    """Write a run's completions."""
    source = FileSource(path=str(run))
    return convert(run, FORMATS[name], out, NullProgress(), source, system, CompletionChoice(**choice))


def records_of(written: Written) -> list[dict[str, Any]]:
    """Return all records, of all splits."""
    return [record for path in written.splits for record in pl.read_parquet(path).to_dicts()]


def number_of(record: dict[str, Any]) -> int:
    """Return which problem a record is of."""
    return int(record["prompt"][-1]["content"].partition("<")[2].partition(">")[0])


def test_an_example_is_a_right_completion_behind_the_prompt_that_it_was_drawn_from(run: Path, tmp_path: Path) -> None:
    written = export(run, "trl-sft", tmp_path / "out")
    records = records_of(written)
    assert sorted(map(number_of, records)) == [*HARD, *SATURATED, *USEFUL]
    for record in records:
        number = number_of(record)
        user = {"role": "user", "content": f"Solve.\n{problem(number)}\nBox it."}
        assert record["prompt"] == [{"role": "system", "content": "Think."}, user]
        (reply,) = record["completion"]
        assert reply["role"] == "assistant" and f"\\boxed{{{number + 5}}}" in reply["content"]
        assert record["drawn_by"] == ("synth:retry" if number in HARD else "profile")


def test_a_pair_is_a_right_and_a_wrong_completion_of_one_row(run: Path, tmp_path: Path) -> None:
    written = export(run, "trl-dpo", tmp_path / "out")
    records = records_of(written)
    # The saturated problems have no wrong completion.
    assert sorted(map(number_of, records)) == [*HARD, *USEFUL]
    assert written.lines(FORMATS["trl-dpo"])[-1] == "Rows with no wrong completion: 2."
    for record in records:
        right = f"\\boxed{{{number_of(record) + 5}}}"
        assert right in record["chosen"][0]["content"] and right not in record["rejected"][0]["content"]


def test_which_completions_are_taken_depends_on_the_seed_and_on_nothing_else(run: Path, tmp_path: Path) -> None:
    def taken(out: str, **choice: Any) -> list[tuple[int, str, str]]:
        records = records_of(export(run, "trl-dpo", tmp_path / out, **choice))
        return [(number_of(row), row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in records]

    first = taken("first")
    assert taken("again") == first
    assert any(taken(str(seed), seed=seed) != first for seed in range(1, 4))
    several = taken("several", per_row=9)
    assert set(first) <= set(several) and len(several) > len(first)
    for part in (1, 2):
        used = [(pair[0], pair[part]) for pair in several]
        assert len(used) == len(set(used))  # No text twice.


def test_the_rows_come_back_as_they_were(run: Path, tmp_path: Path) -> None:
    kept = ("id", "prompt", "gold", "verifier", "verifier_args", "split")
    for name in ("trl-sft", "trl-dpo"):
        written = export(run, name, tmp_path / name)
        after = []
        for path in written.splits:
            assert check(path, FORMATS[name]).mistakes == ()
            after += rows_of(path, tmp_path / f"{name}-{path.stem}")
        before = [row for path in (run / "settle").glob("rows.parquet") for row in pl.read_parquet(path).to_dicts()]
        assert {row["split"] for row in after} == {"train", "heldout"}
        ids = {row["id"] for row in after}
        assert sorted(str([row[column] for column in kept]) for row in after) == sorted(
            str([row[column] for column in kept]) for row in before if row["id"] in ids
        )


def test_limit_counts_rows_that_have_what_the_format_needs(run: Path, tmp_path: Path) -> None:
    pairs = [*HARD, *USEFUL]
    for limit in (1, len(pairs)):
        source = FileSource(path=str(run), limit=limit)
        written = convert(run, FORMATS["trl-dpo"], tmp_path / str(limit), NullProgress(), source, None)
        assert len({number_of(record) for record in records_of(written)}) == limit


EARLIER = [{"role": "user", "content": "I have 3."}, {"role": "assistant", "content": "Good."}]


@pytest.mark.parametrize("turns", [[], [SYSTEM], EARLIER, [SYSTEM, *EARLIER]], ids=["alone", "system", "turns", "both"])
@pytest.mark.parametrize("user", ["{prompt}", "Solve.\n{prompt}\nBox it.", "{prompt}\n\nAgain: {prompt}", " {prompt} "])
@pytest.mark.parametrize("name", ["trl-sft", "trl-dpo"])
def test_conversations_and_templates_come_back(
    name: str, user: str, turns: list[dict[str, str]], tmp_path: Path
) -> None:
    question = {"role": "user", "content": "How many has he now, {prompt} or not?"}
    record = {"messages": [*turns, question], "answer": "7"}
    (row,) = rows_of(write_lines(tmp_path / "set.jsonl", [record]), tmp_path / "before")
    right, wrong = DrawnCompletion("\\boxed{7}", "profile"), DrawnCompletion("\\boxed{8}", "profile")
    exported = ExportRow(cast("Row", row), (), "Think.", user, right, wrong)
    written = FORMATS[name].record(exported, 0)
    FORMATS[name].schema.model_validate(written)
    before, asked = written["prompt"][:-1], written["prompt"][-1]
    assert before == (turns if turns[:1] == [SYSTEM] else [{"role": "system", "content": "Think."}, *turns])
    assert asked["content"] == user.replace("{prompt}", question["content"])
    (after,) = rows_of(write_lines(tmp_path / "out.jsonl", [dict(written)]), tmp_path / "after")
    kept = ("id", "prompt", "gold", "verifier", "verifier_args", "split", "solution", "domain")
    assert {column: after[column] for column in kept} == {column: row[column] for column in kept}


def test_an_edited_prompt_is_another_row(run: Path, tmp_path: Path) -> None:
    (path, *_) = export(run, "trl-sft", tmp_path / "out").splits
    records = pl.read_parquet(path).to_dicts()
    records[0]["prompt"][-1]["content"] += " Twice."
    pl.DataFrame(records).write_parquet(tmp_path / "edited.parquet")
    before, after = rows_of(path, tmp_path / "before"), rows_of(tmp_path / "edited.parquet", tmp_path / "after")
    assert after[0]["prompt"].endswith("Box it. Twice.") and after[0]["id"] != before[0]["id"]
    assert after[1:] == [{**row, "source": "edited.parquet"} for row in before[1:]]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "right"),
        ({"finish_reason": "length"}, "cut"),
        ({"finish_reason": "repetition"}, "cut"),
        ({"score": None, "reason": "gold_unparsed"}, "unjudged"),
        ({"score": None, "reason": "timeout"}, "unjudged"),
        ({"score": 0.0, "reason": "no_answer"}, "unread"),
        ({"score": 0.0, "reason": "unread"}, "unread"),
        ({"score": 0.0, "reason": "a_reason_of_tomorrow"}, "unread"),
        ({"score": 0.0, "reason": "mismatch"}, "wrong"),
        ({"score": 0.0, "reason": "hedged"}, "wrong"),
        ({"score": 0.5, "reason": "partial"}, "wrong"),
        ({"score": 0.0, "reason": "mismatch", "finish_reason": "length"}, "cut"),
    ],
)
def test_what_is_cut_or_not_read_is_neither_right_nor_wrong(changes: dict[str, Any], kind: str, tmp_path: Path) -> None:
    (tmp_path / "profile").mkdir()
    sample = {"id": "a", "completion": "x", "score": 1.0, "reason": "match", "finish_reason": "stop"}
    pl.DataFrame([{**sample, **changes}], schema_overrides={"score": pl.Float64}).write_parquet(
        tmp_path / "profile" / "samples.parquet"
    )
    (tmp_path / "manifest.json").write_text(json.dumps({"stages": [{"name": "profile"}]}))
    drawn = read_completions(tmp_path, CompletionChoice())
    kinds = {"right": len(drawn.right), "wrong": len(drawn.wrong), **drawn.left_out}
    assert {name for name, count in kinds.items() if count} == {kind}


def test_the_completions_of_a_training_are_taken_where_they_are_asked_for(run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run, tmp_path / "run"))
    (record,) = [row for row in pl.read_parquet(run / "settle" / "rows.parquet").to_dicts() if "<7>" in row["prompt"]]
    folder = run / "train" / "completions"
    folder.mkdir(parents=True)
    texts = [("trained \\boxed{12}", 1.0, "match", False), ("trained \\boxed{1}", 0.0, "mismatch", False)]
    texts.append(("trained and cut \\boxed{12}", 1.0, "match", True))
    columns = ("completion", "score", "reason", "truncated")
    steps = [{"id": record["id"], **dict(zip(columns, values, strict=True))} for values in texts]
    pl.DataFrame(steps).write_parquet(folder / "step-000001.parquet")
    with pytest.raises(InputError, match="has no completions of train"):
        export(run, "trl-dpo", tmp_path / "unfinished", origins=["train"])
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["stages"].append({"name": "train"})
    (run / "manifest.json").write_text(json.dumps(manifest))
    (pair,) = records_of(export(run, "trl-dpo", tmp_path / "out", origins=["train"]))
    assert [pair[name][0]["content"] for name in ("chosen", "rejected")] == [texts[0][0], texts[1][0]]
    assert pair["drawn_by"] == ["train", "train"]
    with pytest.raises(InputError, match="profile and train sampled from different prompts"):
        export(run, "trl-dpo", tmp_path / "both", origins=["profile", "train"])
    (run / "train" / "stage.json").write_text(json.dumps({"config": {"turns": {"environment": "world.py:World"}}}))
    with pytest.raises(InputError, match="held dialogues"):
        export(run, "trl-dpo", tmp_path / "dialogues", origins=["train"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "hf", "--per-row", "2"], "no completions to choose"),
        (["--format", "trl-sft", "--completions", "rollouts"], "The stage 'rollouts' has no completions"),
        (["--format", "trl-sft", "--completions", "profile_after"], "has no completions of profile_after"),
        (["--format", "trl-sft", "--split-column", "fold"], "need no split"),
    ],
)
def test_what_cannot_be_taken_is_one_line(run: Path, options: list[str], message: str, tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["export", str(run), "--out", str(tmp_path / "out"), *options])
    assert outcome.exit_code != 0 and message in str(outcome.exception)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_file_has_no_completions(tmp_path: Path) -> None:
    (tmp_path / "set.jsonl").write_text(json.dumps({"question": "1+1?", "answer": "2"}) + "\n")
    with pytest.raises(InputError, match="is not a run of truegold"):
        export(tmp_path / "set.jsonl", "trl-sft", tmp_path / "out")


def test_stages_that_a_run_has_no_more_count_for_nothing(run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run, tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["stages"] = [stage for stage in manifest["stages"] if stage["name"] != "synth"]
    (run / "manifest.json").write_text(json.dumps(manifest))
    records = records_of(export(run, "trl-sft", tmp_path / "out"))
    assert sorted(map(number_of, records)) == [*SATURATED, *USEFUL]


def test_completions_without_a_chat_template_are_said_to_be_such(run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run, tmp_path / "run"))
    for stage in ("profile", "synth"):
        record = json.loads((run / stage / "stage.json").read_text())
        record["config"]["chat"]["use_template"] = False
        (run / stage / "stage.json").write_text(json.dumps(record))
    written = export(run, "trl-sft", tmp_path / "out")
    assert written.lines(FORMATS["trl-sft"])[-1].startswith("Sampling used no chat template")


def test_trl_trains_on_the_completions(run: Path, tiny_model: Path, tmp_path: Path) -> None:
    import datasets
    from transformers import AutoTokenizer
    from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    settings = {"output_dir": str(tmp_path / "trainer"), "report_to": [], "use_cpu": True, "bf16": False}

    def load(name: str) -> Any:
        outcome = CliRunner().invoke(
            app, ["export", str(run), "--format", name, "--out", str(tmp_path / name), "--check"]
        )
        assert outcome.exit_code == 0, outcome.output
        return datasets.load_dataset("parquet", data_files=str(tmp_path / name / "train.parquet"), split="train")

    examples = load("trl-sft")
    made = SFTTrainer(str(tiny_model), SFTConfig(**settings), None, examples, processing_class=tokenizer).train_dataset
    assert len(made) == len(examples)
    for example, read in zip(examples, made, strict=True):
        learned = [token for token in read["labels"] if token != -100]
        assert tokenizer.decode(learned).startswith(example["completion"][0]["content"] + "<|im_end|>")
        assert tokenizer.decode(read["input_ids"][: -len(learned)]).endswith(
            "\nBox it.<|im_end|>\n<|im_start|>assistant\n"
        )
    pairs = load("trl-dpo")
    made = DPOTrainer(str(tiny_model), None, DPOConfig(**settings), train_dataset=pairs, processing_class=tokenizer)
    assert len(made.train_dataset) == len(pairs)
    for pair, read in zip(pairs, made.train_dataset, strict=True):
        for name in ("chosen", "rejected"):
            assert tokenizer.decode(read[f"{name}_ids"]).startswith(pair[name][0]["content"] + "<|im_end|>")
