"""Measures `truegold rescore` on a TRL run: how many wrong rewards it finds, and how many right ones it accuses.

    python benchmarks/rescore.py DATA_DIR OUT

TRL's GRPOTrainer runs on a tiny model; its rollouts are stored responses of real models with their labels
(math/responses.jsonl), handed in by its `rollout_func`, so that TRL itself writes the completions. The reward knows the
truth and has four planted faults, each on responses of its own:

    percent     a right answer written as a percentage scores 0
    hedge       two answers, one of them right, score 1
    unit        a wrong unit with the right number scores 1
    timeout     a right response scores 0, because "the verifier timed out"

Rows are split in halves by the hash of their ids; nothing was chosen on either. A wrong reward is found, and a right
one accused, where A's verdict differs from it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from truegold.pipeline.rescore import rescore
from truegold.pipeline.rescore.rescore import read_rollouts, with_texts
from truegold.pipeline.rescore.reward_errors import with_advantages
from truegold.pipeline.running.progress import NullProgress

GROUP = 4
FAULTY = 0.25
"""The share of groups with planted faults."""
MAX_CHARS = 1000
PROMPT = "Answer question {index}, which may ask for a value, a percentage or an amount."
"""The corpus has no questions. This one says what the verifier would read out of a question that it does not know."""
_PLAIN_NUMERAL = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Case:
    """One response with its true reward and the faulty reward."""

    key: str
    gold: str
    response: str
    correct: bool
    paid: bool
    fault: str | None


def plant(row: dict[str, Any], chance: random.Random) -> Case:
    """Return a response with its faulty reward. Most faults only apply to responses with the right number."""
    gold, response, correct = str(row["gold"]), row["response"], bool(row["correct"])
    sound = Case(row["id"], gold, response, correct, correct, None)
    if chance.random() >= FAULTY:
        return sound
    numeral = _PLAIN_NUMERAL.fullmatch(gold)
    fault = chance.choice(["percent", "hedge", "unit", "timeout"] if numeral else ["timeout"])
    if fault == "timeout":
        return Case(row["id"], gold, response, True, False, fault) if correct else sound
    if fault == "hedge":
        text = f"Both are possible, so the answer is \\boxed{{{gold} \\text{{ or }} {float(gold) + 1:g}}}."
        return Case(row["id"], gold, text, False, True, fault)
    if fault == "unit":
        return Case(row["id"], f"{gold} \\text{{ m}}", f"So it is \\boxed{{{gold} \\text{{ cm}}}}.", False, True, fault)
    share = f"{float(gold) / 100:g}"
    return Case(row["id"], share, f"That is \\boxed{{{float(gold):g}\\%}} of all.", True, False, fault)


def make_cases(path: Path) -> list[list[Case]]:
    """Return groups of cases with one gold each, as a trainer samples them."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    usable = [row for row in rows if row["correct"] is not None and len(row["response"]) <= MAX_CHARS]
    cases = [plant(row, random.Random(f"rescore {row['id']}")) for row in usable]
    groups = []
    for _, same in groupby(sorted(cases, key=lambda case: (case.gold, case.key)), key=lambda case: case.gold):
        listed = list(same)
        groups += [listed[start : start + GROUP] for start in range(0, len(listed) - GROUP + 1, GROUP)]
    random.Random("rescore").shuffle(groups)
    return groups


def byte_tokenizer() -> Any:
    """Return a tokenizer with one token a byte, which writes every text back as it was."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: index for index, letter in enumerate([*letters, "<end>"])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", pad_token="<end>")


def train(groups: Sequence[Sequence[Case]], out: Path) -> None:
    """Let TRL's trainer take the steps that these groups fill."""
    import datasets
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = byte_tokenizer()
    tiny = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=4096,
    )
    prompts = [PROMPT.format(index=index) for index in range(len(groups))]
    cases_of = dict(zip(prompts, groups, strict=True))
    write_truths(cases_of, out)
    turn = dict.fromkeys(prompts, 0)

    def roll_out(asked: Sequence[str], trainer: Any) -> dict[str, Any]:
        completions = []
        for prompt in asked:
            completions.append(tokenizer(cases_of[prompt][turn[prompt] % GROUP].response)["input_ids"])
            turn[prompt] += 1
        return {
            "prompt_ids": [tokenizer(prompt)["input_ids"] for prompt in asked],
            "completion_ids": completions,
            "logprobs": [[0.0] * len(ids) for ids in completions],
        }

    def faulty(prompts: Sequence[str], completions: Sequence[str], **_: Any) -> list[float]:
        paid = {(prompt, case.response): case.paid for prompt in prompts for case in cases_of[prompt]}
        return [float(paid[prompt, text]) for prompt, text in zip(prompts, completions, strict=True)]

    batch = 2
    arguments = GRPOConfig(
        output_dir=str(out / "run"),
        per_device_train_batch_size=batch * GROUP,
        num_generations=GROUP,
        max_completion_length=4096,
        max_steps=len(groups) // batch,
        log_completions=True,
        num_completions_to_print=0,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        shuffle_dataset=False,
        disable_tqdm=True,
    )
    dataset = datasets.Dataset.from_list([{"prompt": prompt} for prompt in prompts])
    GRPOTrainer(
        model=LlamaForCausalLM(tiny),
        processing_class=tokenizer,
        reward_funcs=[faulty],
        train_dataset=dataset,
        args=arguments,
        rollout_func=roll_out,
    ).train()


def write_truths(cases_of: Mapping[str, Sequence[Case]], out: Path) -> None:
    """Write the set that the run is trained on, and the truth of each response."""
    lines = [json.dumps({"prompt": prompt, "answer": group[0].gold}) for prompt, group in cases_of.items()]
    out.mkdir(parents=True, exist_ok=True)
    (out / "set.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    truths = [
        json.dumps(
            {
                "prompt": prompt,
                "completion": case.response,
                "correct": case.correct,
                "fault": case.fault or "",
                "half": int(hashlib.sha256(case.key.encode()).hexdigest(), 16) % 2,
            }
        )
        for prompt, group in cases_of.items()
        for case in group
    ]
    (out / "truth.jsonl").write_text("\n".join(truths) + "\n", encoding="utf-8")


def measure(out: Path) -> Iterator[str]:
    """Yield the lines of the result's table."""
    rescore([out / "run"], out / "rescored", NullProgress(), data=out / "set.jsonl", verifiers=("math",))
    table = with_texts(with_advantages(read_rollouts(out / "rescored")), out / "rescored")
    truths = pl.read_ndjson(out / "truth.jsonl").unique(["prompt", "completion"])
    known = table.join(truths, on=["prompt", "completion"])
    differs = pl.col("passes_log") != pl.col("passes_a")
    yield "| half | fault | rewards | differs | undecided |"
    yield "|---|---|--:|--:|--:|"
    for half in (0, 1):
        part = known.filter(pl.col("half") == half)
        wrong = part.filter(pl.col("passes_log") != pl.col("correct"))
        kinds = [(fault, wrong.filter(pl.col("fault") == fault)) for fault in sorted(wrong["fault"].unique())]
        right = part.filter(pl.col("passes_log") == pl.col("correct"))
        for name, rows in (*kinds, ("all wrong", wrong), ("all right", right)):
            flips, undecided = rows.filter(differs.fill_null(False)).height, rows["score_a"].null_count()
            share = flips / max(rows.height, 1)
            yield f"| {half} | {name} | {rows.height:,} | {flips:,} ({share:.2%}) | {undecided:,} |"


def main() -> None:
    """Run TRL where it has not run yet, judge again, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--groups", type=int, default=None, help="take the first so many groups only")
    arguments = parser.parse_args()
    if not (arguments.out / "run").exists():
        train(make_cases(arguments.data_dir / "math" / "responses.jsonl")[: arguments.groups], arguments.out)
    print("\n".join(measure(arguments.out)))


if __name__ == "__main__":
    main()
