"""Markdown tables of the results of `trainer.py`. All numbers are taken from the results."""

from __future__ import annotations

from statistics import median
from typing import Any

from math_tables import table

TRUEGOLD = "truegold"
COMMANDS = """```
python3.11 -m venv PEER
PEER/bin/pip install torch==2.13.0 transformers==5.19.0 trl==1.16.0
python benchmarks/trainer.py GSM8K_TRAIN.jsonl --peer-python PEER/bin/python --write benchmarks/results/trainer.md
```"""
Figures = dict[str, Any]


def report(figures: Figures) -> str:
    """Return the report as Markdown."""
    parts = [_head(figures)]
    for name, runs in figures["runs"].items():
        if any(runs.values()):
            parts += [f"## {_title(figures['settings'][name])}", _table(figures, name)]
    return "\n\n".join(parts)


def summary(figures: Figures, name: str, trainer: str) -> dict[str, float]:
    """Sum up one trainer in one setting: of time, medians over the measured steps of all runs; of memory, the most."""
    setting, runs = figures["settings"][name], figures["runs"][name][trainer]
    steps = [step for run in runs for step in run["steps"][figures["warm_up"] :]]
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
    model = setting.get("model", "SmolLM2")
    completions = f"{setting['group']} completions of {setting['tokens']} tokens"
    return f"{model}: {setting['prompts']} prompts x {completions}, {setting['dtype']}"


def _head(figures: Figures) -> str:
    sentences = [
        "SmolLM2-135M-Instruct on GSM8K's first prompts, the tiny model (0.4M random parameters) on sums:",
        "one trainer after another in a process of its own, on",
        f"{figures['machine']}, {figures['threads']} thread(s) each.",
        "All take the same steps: same checkpoint, prompts in the same order, lengths, AdamW,",
        "temperature 1, no KL penalty, a reward that costs nothing. A step is generation, reward, update and, in",
        "truegold, weight sync and probe; the first one and loading stand apart. Seconds are medians over the measured",
        "steps of all runs. Peak memory is of the process and its children at one moment (RSS), loading included,",
        "saving not; a process that has just been started shares its parent's memory, which is counted once. Load: the",
        "machine's load average at the end; above the number of threads the seconds are those of a busy machine, and",
        "CPU seconds say more.",
    ]
    versions = [
        f"{trainer}: " + ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
        for trainer, packages in figures["versions"].items()
        if trainer in (TRUEGOLD, "TRL")
    ]
    return "\n".join([*sentences, "", COMMANDS, "", "; ".join(versions) + "."])


def _table(figures: Figures, name: str) -> str:
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
    summaries = {trainer: summary(figures, name, trainer) for trainer, runs in figures["runs"][name].items() if runs}
    for trainer, figure in summaries.items():
        reference = summaries.get(TRUEGOLD)
        times = (
            f" (1/{reference['completions_per_s'] / figure['completions_per_s']:.2f})"
            if reference and trainer != TRUEGOLD
            else ""
        )
        spent = f" ({figure['cpu_s'] / reference['cpu_s']:.2f} x)" if reference and trainer != TRUEGOLD else ""
        rows.append(
            [
                trainer,
                f"{figure['completions_per_s']:.2f}{times}",
                f"{figure['tokens_per_s']:.0f}",
                f"{figure['tokens']:.0f}",
                f"{figure['wall_s']:.1f} ({figure['fastest_s']:.1f}–{figure['slowest_s']:.1f})",
                f"{figure['cpu_s']:.1f}{spent}",
                f"{figure['rollout']:.1f}",
                f"{figure['update']:.1f}",
                f"{figure['sync']:.1f}" if "sync" in figure else "-",
                f"{figure['first_s']:.1f}",
                f"{figure['load_s']:.0f}",
                f"{figure['peak_mb']:,.0f}",
                f"{figure['load']:.1f}",
            ]
        )
    return table(header, rows)
