"""The Markdown of `trainer.py`'s results. Makes nothing up and counts nothing else than the results do."""

from __future__ import annotations

from statistics import median
from typing import Any

from math_tables import table

OURS = "truegold"
COMMANDS = """```
python3.11 -m venv PEER
PEER/bin/pip install torch==2.13.0 transformers==5.19.0 trl==1.16.0
python benchmarks/trainer.py GSM8K_TRAIN.jsonl --peer-python PEER/bin/python --write docs/benchmarks.md
```"""
Results = dict[str, Any]


def report(results: Results) -> str:
    parts = [_head(results)]
    for name, runs in results["runs"].items():
        if any(runs.values()):
            parts += [f"### {_title(results['settings'][name])}", _table(results, name)]
    return "\n\n".join(parts)


def summary(results: Results, name: str, trainer: str) -> dict[str, float]:
    """One trainer in one setting: of time, medians over the measured steps of all runs; of memory, the most."""
    setting, runs = results["settings"][name], results["runs"][name][trainer]
    steps = [step for run in runs for step in run["steps"][results["warm_up"] :]]
    wall = median(step["wall_s"] for step in steps)
    completions = setting["prompts"] * setting["group"]
    tokens = median(step["tokens"] for step in steps)
    phases = {phase: median(step["phases"][phase] for step in steps) for phase in steps[0]["phases"]}
    return {
        "completions_per_s": completions / wall,
        "tokens_per_s": completions * tokens / wall,
        "tokens": tokens,
        "wall_s": wall,
        "fastest_s": min(step["wall_s"] for step in steps),
        "slowest_s": max(step["wall_s"] for step in steps),
        "cpu_s": median(step["cpu_s"] for step in steps),
        **phases,
        "first_s": median(run["steps"][0]["wall_s"] for run in runs),
        "load_s": median(run["load_s"] for run in runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "load": max(run["load_average"] for run in runs),
    }


def _title(setting: dict[str, Any]) -> str:
    return (
        f"{setting['prompts']} prompts x {setting['group']} completions of {setting['tokens']} tokens,"
        f" {setting['dtype']}"
    )


def _head(results: Results) -> str:
    said = [
        "SmolLM2-135M-Instruct on GSM8K's first prompts, one trainer after another in a process of its own, on",
        f"{results['machine']}, {results['threads']} thread(s) each.",
        "All take the same steps: same checkpoint, prompts in the same order, lengths, AdamW,",
        "temperature 1, no KL penalty, a reward that costs nothing. A step is generation, reward, update and, in",
        f"{OURS}, weight sync and probe; the first one and loading stand apart. Seconds are medians over the measured",
        "steps of all runs. Peak memory is of the process and its children at one moment (RSS), loading included,",
        "saving not. Load: the machine's load average at the end; above the number of threads the seconds are those",
        "of a busy machine, and CPU seconds say more.",
    ]
    versions = [
        f"{trainer}: " + ", ".join(f"{name} {one}" for name, one in sorted(found.items()))
        for trainer, found in results["versions"].items()
        if trainer in (OURS, "TRL")
    ]
    return "\n".join([*said, "", COMMANDS, "", "; ".join(versions) + "."])


def _table(results: Results, name: str) -> str:
    header = [
        "trainer",
        "completions/s",
        "completion tokens/s",
        "tokens each",
        "s a step (fastest–slowest)",
        "CPU s a step",
        "rollout s",
        "update s",
        "sync s",
        "first step s",
        "loading s",
        "peak MB",
        "load",
    ]
    rows = []
    found = {trainer: summary(results, name, trainer) for trainer, runs in results["runs"][name].items() if runs}
    for trainer, one in found.items():
        ours = found.get(OURS)
        times = f" (1/{ours['completions_per_s'] / one['completions_per_s']:.2f})" if ours and trainer != OURS else ""
        spent = f" ({one['cpu_s'] / ours['cpu_s']:.2f} x)" if ours and trainer != OURS else ""
        rows.append(
            [
                trainer,
                f"{one['completions_per_s']:.2f}{times}",
                f"{one['tokens_per_s']:.0f}",
                f"{one['tokens']:.0f}",
                f"{one['wall_s']:.1f} ({one['fastest_s']:.1f}–{one['slowest_s']:.1f})",
                f"{one['cpu_s']:.1f}{spent}",
                f"{one['rollout']:.1f}",
                f"{one['update']:.1f}",
                f"{one['sync']:.1f}" if "sync" in one else "-",
                f"{one['first_s']:.1f}",
                f"{one['load_s']:.0f}",
                f"{one['peak_mb']:,.0f}",
                f"{one['load']:.1f}",
            ]
        )
    return table(header, rows)
