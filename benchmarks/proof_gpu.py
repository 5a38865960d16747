"""Makes the data of the proof on a GPU (`proof_gpu.yaml`): half of GSM8K labelled by a weaker model, and leaks.

    python benchmarks/proof_gpu.py runs/weak/profile/samples.parquet gsm8k_train.jsonl gsm8k_platinum.jsonl proof_gpu

The samples are a profile's of all rows of gsm8k_train.jsonl (`id, question, answer`) by the weaker model. Source B is
every other row, with that model's most frequent answer for gold. Source A is the rest with GSM8K's golds and, as leaks
with the golds that GSM8K had, half of GSM8K-Platinum's problems (`question, gold_original, gold_platinum, status`).
Written are `raw-A.jsonl` and `raw-B.jsonl`, `oracle-A.jsonl` (without the leaks) and `oracle-B.jsonl` (with right golds
alone), and the halves of Platinum, `leaked.jsonl` and `clean.jsonl`, with its golds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from proof_concentrated import most_frequent
from proof_training import Record, read_lines, write_lines

from truegold.verifiers import equivalent


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samples", type=Path)
    parser.add_argument("train", type=Path)
    parser.add_argument("platinum", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    answers = most_frequent(arguments.samples)
    sound: list[Record] = []
    labelled: list[Record] = []
    for line, row in enumerate(read_lines(arguments.train), 1):
        if line % 2:
            sound.append({"question": row["question"], "answer": row["answer"]})
        elif answers.get(line) is not None:
            labelled.append({"question": row["question"], "answer": answers[line], "truth": row["answer"]})
    known = [row for row in read_lines(arguments.platinum) if row["status"] != "rejected"]
    halves = {"leaked": known[::2], "clean": known[1::2]}
    leaks = [{"question": row["question"], "answer": row["gold_original"]} for row in halves["leaked"]]
    tables = {
        "raw-A": sound + leaks,
        "raw-B": labelled,
        "oracle-A": sound,
        "oracle-B": [row for row in labelled if equivalent(row["answer"], gold=row["truth"]).passed],
    }
    for name, half in halves.items():
        tables[name] = [{"question": row["question"], "answer": row["gold_platinum"]} for row in half]
    for name, rows in tables.items():
        write_lines(arguments.out / f"{name}.jsonl", rows)
        print(f"{name}: {len(rows):,} rows")


if __name__ == "__main__":
    _main()
