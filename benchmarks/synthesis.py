"""Measures the value of feedback in synthesis, for a tiny model that is weak on one family of problems.

    python benchmarks/synthesis.py WORK_DIR [--rows 400] [--examples 60000] [--seed 0] [--json FILE] [--write PAGE.md]

The family has word problems whose last step is an invented verb, "zorps" or "blims". In the cold start, one verb means
adding and the other one subtracting in 985 of 1,000 examples; in the golds of the family they have the opposite
meaning. So the model has learnt a wrong meaning, and its right answers are rare. The cold start also teaches second
attempts: after a failed attempt and truegold's feedback, the model uses the other operation or corrects a slip. These
examples have other verbs, which mean adding and subtracting equally often, and no problem of the family. So a second
attempt only succeeds if the model reads which attempt was wrong.

Rows without a right answer in 16 samples are given to `synth` in four ways, with the same number of tokens: with
feedback, with failed attempts exchanged between rows, and by sampling the bare prompt again, at the profile's
temperature and at a higher one. Golds are 0 to 30, so many can be guessed. WORK_DIR keeps the model and the profile for
the next run.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import polars as pl
from publishing import publish, say

from truegold.pipeline.config.base import LaunchConfig, StageConfig
from truegold.pipeline.config.engines import VllmEngineConfig
from truegold.pipeline.config.stages import ProfileConfig
from truegold.pipeline.demo.problems import PEOPLE, THINGS, Pools, Problem, make_pools, wrong_by_a_little
from truegold.pipeline.running.isolation import call_isolated
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.select.stage import SELECTED_SCHEMA
from truegold.pipeline.tables.rows import KEY, ROW_SCHEMA, Row, row_id, write_rows
from truegold.synth.config import SynthConfig
from truegold.synth.strategies import fill
from truegold.synth.synthesis import describe_verdict
from truegold.train.config.models import OptimizerConfig, SftConfig, TinyModel

WRONG_MEANING = {"zorps": "+", "blims": "-"}
"""The family: what its verbs mean in nearly all examples of the cold start. The golds have the other operation."""
OPEN_VERBS = ("trups", "glims", "morfs", "velts", "quabs", "fints")
"""Verbs that mean one as often as the other."""
KNOWN_VERBS = {"+": "finds", "-": "loses"}
RARE = 0.015
"""How often the cold start has the family's right operation."""
ENGINE = VllmEngineConfig(dtype="float32", max_model_len=256, cpu_kv_cache_gib=1)
SAMPLES = 16
MAX_TOKENS = 32
TOKENS_PER_ROW = 320
"""The budget, for each row without a positive."""
ATTEMPTS = 24
STRATEGY_FILE = Path(__file__).with_name("synthesis_strategy.py")
SECOND_ATTEMPT = "{problem} {attempt} {feedback}"
"""As `synthesis_strategy` has it."""


@dataclass(frozen=True)
class Story:
    """A two-step problem in words, its last step by some verb."""

    problem: Problem
    verb: str
    person: int
    things: int

    def text(self) -> str:
        """Return the problem's text."""
        person, things = PEOPLE[self.person], THINGS[self.things]
        first = (
            f"gets {self.problem.numbers[1]} more"
            if self.problem.operations[0] == "+"
            else (f"gives away {self.problem.numbers[1]}")
        )
        return (
            f"{person.name} has {self.problem.numbers[0]} {things}. {person.pronoun.capitalize()} {first} and "
            f"{self.verb} {self.problem.numbers[2]}. How many {things} does {person.name} have now?"
        )


def _draw(problems: tuple[Problem, ...], verb: str, rng: random.Random) -> Story:
    return Story(rng.choice(problems), verb, rng.randrange(len(PEOPLE)), rng.randrange(len(THINGS)))


def _last_operation(problem: Problem, operation: str) -> Problem:
    return Problem(problem.operations[0] + operation, problem.numbers)


def _other(operation: str) -> str:
    return "-" if operation == "+" else "+"


def _both_ways(pools: Pools) -> tuple[Problem, ...]:
    """Return the problems whose answer is from 0 to 30 with both last operations."""
    valid = {(p.operations, p.numbers) for p in pools.two_steps}
    return tuple(p for p in pools.two_steps if (p.operations[0] + _other(p.operations[1]), p.numbers) in valid)


def _feedback(answer: int) -> str:
    evidence = {"answer": str(answer)}
    return describe_verdict("mismatch", str(answer), evidence, "en", is_program=False, is_cut=False)


def _second_attempt(text: str, failed: str, answer: int) -> str:
    return fill(SECOND_ATTEMPT, {"problem": text, "attempt": failed, "feedback": _feedback(answer)})


def _examples(count: int, rng: random.Random) -> Iterator[dict[str, str]]:
    """Yield the cold start: a fifth each of ordinary problems, of open verbs and of the family, the rest second
    attempts."""
    problems = _both_ways(make_pools(held_out=False))
    for index in range(count):
        kind = index % 5
        operation = rng.choice("+-")
        if kind == 0:
            story = _draw(problems, KNOWN_VERBS[operation], rng)
            yield _as_example(story.text(), story, operation)
        elif kind == 1:
            story = _draw(problems, rng.choice(OPEN_VERBS), rng)
            yield _as_example(story.text(), story, operation)
        elif kind == 2:
            verb = rng.choice(tuple(WRONG_MEANING))
            wrong = WRONG_MEANING[verb]
            story = _draw(problems, verb, rng)
            yield _as_example(story.text(), story, _other(wrong) if rng.random() < RARE else wrong)
        else:
            yield _second_example(problems, operation, rng)


def _second_example(problems: tuple[Problem, ...], operation: str, rng: random.Random) -> dict[str, str]:
    """Return a second attempt: at an open verb with the other operation, or one time in four at an ordinary one after a
    slip."""
    if rng.random() < 0.25:
        story = _draw(problems, KNOWN_VERBS[operation], rng)
        right = _last_operation(story.problem, operation)
        slip = wrong_by_a_little(right.answer, rng)
        return _as_example(_second_attempt(story.text(), right.working(slip), slip), story, operation)
    story = _draw(problems, rng.choice(OPEN_VERBS), rng)
    failed = _last_operation(story.problem, _other(operation))
    return _as_example(_second_attempt(story.text(), failed.working(), failed.answer), story, operation)


def _as_example(prompt: str, story: Story, operation: str) -> dict[str, str]:
    return {"prompt": prompt, "completion": _last_operation(story.problem, operation).working()}


def ordinary_rows(count: int, *, held_out: bool, rng: random.Random) -> list[Row]:
    """Return rows whose verbs mean what they say."""
    problems = _both_ways(make_pools(held_out=held_out))
    operations = "+-" * (count // 2)
    stories = [_draw(problems, KNOWN_VERBS[operation], rng) for operation in operations]
    numbered = enumerate(zip(stories, operations, strict=True), 1)
    return [_row(story, operation, line, held_out=held_out) for line, (story, operation) in numbered]


def family_rows(count: int, *, held_out: bool, rng: random.Random) -> list[Row]:
    """Return rows of the family, half of each verb, with the golds that the cold start hardly ever has."""
    problems = _both_ways(make_pools(held_out=held_out))
    rows: list[Row] = []
    for index in range(count):
        verb = tuple(WRONG_MEANING)[index % 2]
        rows.append(_row(_draw(problems, verb, rng), _other(WRONG_MEANING[verb]), index + 1, held_out=held_out))
    return rows


def _row(story: Story, operation: str, line: int, *, held_out: bool) -> Row:
    gold = str(_last_operation(story.problem, operation).answer)
    return {
        "id": row_id(story.text(), gold),
        "prompt": story.text(),
        "gold": gold,
        "domain": "math",
        "verifier": "math",
        "verifier_args": "{}",
        "solution": None,
        "source": story.verb,
        "source_row": line,
        "split": "heldout" if held_out else "train",
        "meta": "{}",
    }


class Meter:
    """The CPU and wall seconds since it was made, of child processes that have ended."""

    def __init__(self) -> None:
        self._cpu, self._wall = _cpu_seconds(), time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return both."""
        return {"cpu_s": round(_cpu_seconds() - self._cpu, 1), "wall_s": round(time.perf_counter() - self._wall, 1)}


def _cpu_seconds() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sampled_tokens(trained: Path) -> int:
    """Return the tokens of all completions of a training."""
    completions = pl.scan_parquet(trained / "completions" / "step-*.parquet")
    return int(completions.select(pl.col("token_ids").list.len().sum()).collect().item())


def run_stage(work: Path, name: str, function: str, inputs: Mapping[str, Path], config: StageConfig) -> Path:
    """Run a stage into WORK_DIR/NAME, unless it is there already, and return its folder."""
    folder, unfinished = work / name, work / f"{name}.unfinished"
    if folder.exists():
        return folder
    say(f"{name} ...")
    unfinished.mkdir(exist_ok=True)
    scratch = unfinished / "scratch"
    report = call_isolated(
        function, inputs, config, unfinished, NullProgress(), work / f"{name}.log", LaunchConfig(), scratch
    )
    (unfinished / "report.json").write_text(json.dumps(report))
    unfinished.rename(folder)
    return folder


def cold_start(work: Path, examples: Iterator[Mapping[str, str]], seed: int) -> Path:
    """Return the checkpoint of a tiny model that has learnt from examples of prompt and completion."""
    texts = work / "sft.jsonl"
    if not texts.exists():
        texts.write_text("".join(f"{json.dumps(example)}\n" for example in examples))
    model = run_stage(work, "model", "truegold.train.model.checkpoints:build_tiny", {"texts": texts}, TinyModel())
    optimizer = OptimizerConfig(lr=3e-3, warmup_steps=20, schedule="linear", dtype="float32", micro_batch_tokens=8192)
    config = SftConfig(batch_size=64, optimizer=optimizer, seed=seed)
    inputs = {"model": model / "checkpoint", "data": texts}
    return run_stage(work, "sft", "truegold.train.sft:sft", inputs, config) / "checkpoint"


def profile_rows(work: Path, name: str, rows: list[Row], model: Path) -> Path:
    """Return the folder of a profile with 16 samples of every row."""
    table = work / f"{name}-rows.parquet"
    write_rows(table, rows)
    config = ProfileConfig(engine=ENGINE, samples=SAMPLES, first_samples=None, max_tokens=MAX_TOKENS)
    return run_stage(work, name, "truegold.pipeline.profile:profile", {"rows": table, "model": model}, config)


def exchange_attempts(samples: Path, out: Path, seed: int) -> Path:
    """Write the samples with the failed completions of each row given to another one."""
    table = pl.read_parquet(samples)
    rows = table.select(KEY).unique(maintain_order=True)
    order = list(range(rows.height))
    random.Random(seed).shuffle(order)
    keys = list(rows.iter_rows())
    # Everybody gets the samples of the next one in a random circle: nobody keeps his own.
    following = {keys[order[i]]: keys[order[(i + 1) % len(order)]] for i in range(len(order))}
    moved = [following[key] for key in table.select(KEY).iter_rows()]
    columns = [pl.Series(name, [key[index] for key in moved]) for index, name in enumerate(KEY)]
    table.with_columns(columns).write_parquet(out)
    return out


def prepare(work: Path, rows: int, examples: int, seed: int) -> tuple[Path, Path]:
    """Return the checkpoint of the cold start and the folder of the family's profile; write the rows that never pass
    into hard.parquet, and none.parquet without rows."""
    work.mkdir(parents=True, exist_ok=True)
    model = cold_start(work, _examples(examples, random.Random(f"sft {seed}")), seed)
    made = family_rows(rows, held_out=False, rng=random.Random(f"rows {seed}"))
    profiled = profile_rows(work, "profile", list({row["id"]: row for row in made}.values()), model)
    hopeless = pl.read_parquet(profiled / "profile.parquet").filter(pl.col("passes") == 0)
    every = pl.read_parquet(profiled / "rows.parquet")
    hard = every.join(hopeless.select(KEY), on=KEY, how="semi", maintain_order="left")
    write_rows(work / "hard.parquet", hard.to_dicts(), ROW_SCHEMA)
    write_rows(work / "none.parquet", [], SELECTED_SCHEMA)
    return model, profiled


def measure(work: Path, model: Path, profiled: Path, arms: Mapping[str, tuple[str, Path]]) -> dict[str, Any]:
    """Return what each arm makes of the rows without a positive."""
    profile = pl.read_parquet(profiled / "profile.parquet")
    hard = pl.read_parquet(work / "hard.parquet")
    figures: dict[str, Any] = {
        "rows": profile.height,
        "pass_rate": float(profile["passes"].sum() / profile["judged"].sum()),
        "without_positive": hard.height,
        "budget_tokens": TOKENS_PER_ROW * hard.height,
        "arms": {},
    }
    for name, (strategy, samples) in arms.items():
        config = SynthConfig(
            engine=ENGINE,
            strategies=(strategy,),
            budget_tokens=figures["budget_tokens"],
            attempts=ATTEMPTS,
            positives=1,
            max_tokens=MAX_TOKENS,
            round_rows=10_000,
        )
        inputs = {"hard": work / "hard.parquet", "selected": work / "none.parquet", "model": model, "samples": samples}
        inputs |= {table: profiled / f"{table}.parquet" for table in ("profile", "suspicion")}
        folder = run_stage(work, f"synth-{name}", "truegold.synth:synth", inputs, config)
        figures["arms"][name] = _arm_figures(folder, hard.height)
    return figures


def _arm_figures(folder: Path, rows: int) -> dict[str, Any]:
    report = json.loads((folder / "report.json").read_text())
    attempts = pl.read_parquet(folder / "attempts.parquet")
    distilled = pl.read_parquet(folder / "distilled.parquet")
    tokens, positives = int(attempts["tokens"].sum()), distilled.height
    dropped = attempts.filter(pl.col("dropped").is_not_null()).group_by("dropped").len().sort("dropped")
    return {
        "with_positive": distilled.select(KEY).n_unique() / rows if positives else 0.0,
        "attempts": attempts.height,
        "right": attempts.filter(pl.col("score") == 1.0).height,
        "by_chance": sum(line["by_chance"] for line in report["facts"]["strategies"]),
        "tokens": tokens,
        "tokens_per_positive": tokens / positives if positives else None,
        "geometric_weight": float(distilled["geometric_weight"].median()) if positives else None,  # type: ignore[arg-type]
        "sequence_weight": float(distilled["sequence_weight"].median()) if positives else None,  # type: ignore[arg-type]
        "dropped": dict(dropped.iter_rows()),
    }


def _report(figures: Mapping[str, Any]) -> str:
    lines = [
        f"{figures['rows']} problems of the family, pass rate {figures['pass_rate']:.1%}; "
        f"{figures['without_positive']} without a right answer in {SAMPLES} samples. Budget "
        f"{figures['budget_tokens']:,} tokens.",
        "",
        "| | rows with a positive | attempts | right | at the rows' pass rates | tokens | tokens per positive "
        "| median weights: geometric, sequence |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in figures["arms"].items():
        per_positive = "–" if arm["tokens_per_positive"] is None else f"{arm['tokens_per_positive']:.0f}"
        weights = "–"
        if arm["geometric_weight"] is not None:
            weights = f"{arm['geometric_weight']:.2f}, {arm['sequence_weight']:.3f}"
        lines.append(
            f"| {name} | {arm['with_positive']:.1%} | {arm['attempts']:,} | {arm['right']} | {arm['by_chance']:.0f} "
            f"| {arm['tokens']:,} | {per_positive} "
            f"| {weights} |"
        )
    dropped = {name: arm["dropped"] for name, arm in figures["arms"].items() if arm["dropped"]}
    return "\n".join([*lines, "", f"Right attempts that guards dropped: {json.dumps(dropped) if dropped else 'none'}."])


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, metavar="WORK_DIR")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--examples", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="keep the figures here")
    parser.add_argument("--write", type=Path, help="write the table into this Markdown file")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    model, profiled = prepare(work, arguments.rows, arguments.examples, arguments.seed)
    samples = profiled / "samples.parquet"
    exchanged = exchange_attempts(samples, work / "exchanged.parquet", arguments.seed)
    arms = {
        "feedback": (f"{STRATEGY_FILE}:STRATEGY", samples),
        "feedback of other rows": (f"{STRATEGY_FILE}:STRATEGY", exchanged),
        "the bare prompt again": ("resample", samples),
        "the bare prompt at temperature 1.3": ("hotter", samples),
    }
    figures = measure(work, model, profiled, arms)
    publish(figures, _report(figures), arguments.json, arguments.write, "Positives for rows that never pass")


if __name__ == "__main__":
    _main()
