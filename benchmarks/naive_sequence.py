"""Measures the error in log-probabilities if all turns of a dialogue are put into one sequence, on a real model.

    python benchmarks/naive_sequence.py MODEL GSM8K_TRAIN.jsonl [--dialogues 8] [--json FILE] [--write PAGE.md]

MODEL: a checkpoint, such as the folder `model/checkpoint` of a run on SmolLM2. GSM8K_TRAIN.jsonl: JSON Lines with
`question`, `solution` and `answer`. A dialogue has three turns with worked solutions as thoughts. With a template like
Qwen3's, it has three problems, or one problem and two follow-up questions with the same thought. With a template like
Kimi's, it has two calls of a calculator, which the solutions contain, and the answer.

Log-probabilities of each turn are computed in the context that the template renders, and after all earlier text,
earlier thoughts included. Reported is the difference on tokens of later turns, whose contexts differ. `outside` is the
share of tokens with a ratio outside of 0.8 to 1.28, which PPO's clip would clip before any update.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from publishing import publish, say

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

CALCULATION = re.compile(r"<<([^=>]+)=([^>]+)>>")
TURNS = 3
HEAD = """SmolLM2-135M-Instruct, GSM8K: the log-probability of a token of a later turn in one sequence of all turns
less that in the context which the template made, in nats; the share of tokens whose ratio is outside of 0.8 to 1.28.

```
python benchmarks/naive_sequence.py MODEL GSM8K_TRAIN.jsonl --dialogues 6 --write benchmarks/results/naive_sequence.md
```

"""


def solution_of(record: Mapping[str, Any]) -> str:
    """Return a worked solution without the calculator's marks and the answer's line."""
    return CALCULATION.sub("", str(record["solution"])).partition("####")[0].strip()


def other_problems(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the turns of a dialogue in which each problem is followed by another one."""
    for record, following in pairwise([*records, {"question": "Thank you."}]):
        text = f"<think>\n{solution_of(record)}\n</think>\n\nIt is {record['answer']}."
        yield text, [{"role": "user", "content": following["question"]}]


def questions_back(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the turns of a dialogue with questions back: what the model writes, and the messages that follow."""
    record, thought = records[0], solution_of(records[0])
    for text, question in (
        (f"It is {record['answer']}.", "Are you sure?"),
        (f"Yes, it is {record['answer']}.", "Explain it in a sentence."),
        (thought.splitlines()[-1], "Thank you."),
    ):
        yield f"<think>\n{thought}\n</think>\n\n{text}", [{"role": "user", "content": question}]


def calculator_calls(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the turns of a dialogue in which the first two lines are calculated by calls."""
    record = records[0]
    lines = solution_of(record).splitlines()
    for index, (expression, value) in enumerate(CALCULATION.findall(str(record["solution"]))[: TURNS - 1]):
        arguments = json.dumps({"expression": expression})
        yield (
            f"<think>{lines[index]}</think><|tool_calls_section_begin|><|tool_call_begin|>functions.calculate:{index}"
            f"<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>",
            [{"role": "tool", "content": value}],
        )
    yield f"<think>{lines[-1]}</think>It is {record['answer']}.", [{"role": "user", "content": "Thank you."}]


def compare(model: Any, template: Any, question: str, turns: Sequence[Any]) -> list[float]:
    """Return how log-probabilities of all later turns' tokens differ: in one sequence less in the real context."""
    from truegold.pipeline.engines.base import Completion
    from truegold.train.turns.dialogue import Dialogue

    dialogue = Dialogue(template, [{"role": "user", "content": question}])
    naive: tuple[int, ...] = ()
    differences: list[float] = []
    for text, following in turns:
        prompt = dialogue.prompt()
        between: Sequence[int] = ()
        if naive:
            last = dialogue.messages[-1]
            written = f"\n<|im_start|>{last['role']}\n{last['content']}<|im_end|>\n<|im_start|>assistant\n"
            between = template.tokenizer(written, add_special_tokens=False)["input_ids"]
        naive = (*naive, *between) or prompt
        ids = (*template.tokenizer(text, add_special_tokens=False)["input_ids"], template.stop_token_ids[0])
        if between:
            real, joined = (logprobs_behind(model, context, ids) for context in (prompt, naive))
            differences += (joined - real).tolist()
        naive = (*naive, *ids)
        dialogue.add_completion(Completion(ids, (0.0,) * len(ids), "stop"), version=0)
        dialogue.messages += following
    return differences


def logprobs_behind(model: Any, context: Sequence[int], ids: Sequence[int]) -> Any:
    """Return the log-probabilities of tokens behind a context. Shape [tokens]."""
    import torch

    with torch.no_grad():
        logits = model(torch.tensor([[*context, *ids]])).logits[0, len(context) - 1 : -1].log_softmax(-1)
    return logits.gather(1, torch.tensor(ids).unsqueeze(1)).squeeze(1)


def _report(measured: Mapping[str, Mapping[str, float]]) -> str:
    lines = ["| template | tokens | mean difference | largest | outside 0.8 to 1.28 |", "|---" * 5 + "|"]
    for name, row in measured.items():
        cells = [name, f"{row['tokens']:,}", f"{row['mean']:.3f}", f"{row['largest']:.2f}", f"{row['outside']:.1%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("data", type=Path, metavar="GSM8K_TRAIN.jsonl")
    parser.add_argument("--dialogues", type=int, default=8)
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM
    from turn_templates import KIMI, QWEN3, turn_template

    records = [json.loads(line) for line in arguments.data.open(encoding="utf-8")]
    records = [record for record in records if len(CALCULATION.findall(record["solution"])) >= TURNS - 1]
    model = AutoModelForCausalLM.from_pretrained(str(arguments.model), dtype=torch.float32).eval()
    measured = {}
    for name, chat_template, turns in (
        ("like Qwen3's, other problems", QWEN3, other_problems),
        ("like Qwen3's, questions back", QWEN3, questions_back),
        ("like Kimi's, tool calls", KIMI, calculator_calls),
    ):
        template = turn_template(arguments.model, chat_template)
        differences: list[float] = []
        for first in range(0, TURNS * arguments.dialogues, TURNS):
            chosen = records[first : first + TURNS]
            differences += compare(model, template, chosen[0]["question"], list(turns(chosen)))
        values = np.array(differences)
        measured[name] = {
            "tokens": len(values),
            "mean": float(np.abs(values).mean()),
            "largest": float(np.abs(values).max()),
            "outside": float(((values < np.log(0.8)) | (values > np.log(1.28))).mean()),
        }
        say(f"{name}: {measured[name]}")
    publish(measured, HEAD + _report(measured), arguments.json, arguments.write, "One sequence of all turns")


if __name__ == "__main__":
    _main()
