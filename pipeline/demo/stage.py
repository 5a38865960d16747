"""Stage `make_data`: generates school-maths word problems for the demo, with planted and labelled defects.

It writes four files:

    raw.jsonl       {"question": "Tom has 12 apples. He buys 9 more and gives away 5. How many apples does
                     Tom have now?", "solution": "12+9=21-5=16 \\boxed{16}", "answer": "16", "planted": null}
    heldout.jsonl   the same columns, all clean; its calculations do not occur in raw.jsonl and sft.jsonl
    sft.jsonl       {"prompt": "Tom has 12 apples. ...", "completion": "12+9=21-5=16 \\boxed{16}"}
    planted.json    the number of planted rows of each kind in raw.jsonl

`planted` names the defect of a row. Detectors never read this column; the report uses it to score them. A copy always
comes after the row that it repeats. The last tenth of sft.jsonl is contaminated: half of its final values are wrong by
1 to 3. A model that is trained on this file in order first learns the arithmetic, and then learns mistakes that RL can
correct quickly.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

from truegold.pipeline.config.sources import DemoSource
from truegold.pipeline.demo.planted import COPIES, FRESH, RawRow, ToldProblem, clean_row, conflicting_pair, wrong_gold
from truegold.pipeline.demo.problems import (
    PERSON_STORIES,
    STORIES,
    Pools,
    make_pools,
    pick_telling,
    tell,
    wrong_by_a_little,
)
from truegold.pipeline.running.progress import Progress
from truegold.pipeline.running.stage import StageReport, stage_function

KIND_SHARE = 0.03
"""The planted rows of each kind, as a share of the number of clean problems."""
WRONG_GOLD_SHARE = 0.05
"""The rows with a wrong gold, the most harmful defect, as a share of the number of clean problems."""
CONTAMINATED_SHARE = 0.1
"""The share of the SFT file, at its end, in which half of the final values are wrong."""


@stage_function(version=1)
def make_demo_data(inputs: Mapping[str, Path], config: DemoSource, out_dir: Path, progress: Progress) -> StageReport:
    """Write all four files, which depend only on the configuration and its seed."""
    rows = _raw_rows(config, random.Random(f"raw {config.seed}"))
    heldout = _clean_items(make_pools(held_out=True), config.heldout_problems, random.Random(f"heldout {config.seed}"))
    _write_lines(out_dir / "raw.jsonl", iter(rows))
    _write_lines(out_dir / "heldout.jsonl", map(clean_row, heldout))

    progress.start("demo data", config.sft_examples)
    _write_lines(out_dir / "sft.jsonl", _sft_examples(config, random.Random(f"sft {config.seed}"), progress))

    planted = Counter(str(row["planted"]) for row in rows if row["planted"] is not None)
    content = orjson.dumps(dict(planted), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2)
    (out_dir / "planted.json").write_bytes(content + b"\n")
    return StageReport(
        rows_in=0,
        rows_out=len(rows),
        counts={f"planted:{kind}": count for kind, count in sorted(planted.items())},
        facts={"clean": config.problems, "heldout": len(heldout), "sft_examples": config.sft_examples},
    )


def _write_lines(path: Path, rows: Iterator[RawRow]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(orjson.dumps(row) + b"\n")


def _clean_items(pools: Pools, count: int, rng: random.Random) -> list[ToldProblem]:
    """Return problems with distinct texts. Their numbers are distinct, too, until the pool is used up."""
    by_text: dict[str, ToldProblem] = {}
    for problem in pools.draw(rng):
        item = ToldProblem(problem, pick_telling(rng))
        by_text.setdefault(tell(item.problem, item.telling), item)
        if len(by_text) == count:
            break
    return list(by_text.values())


def _raw_rows(config: DemoSource, rng: random.Random) -> list[RawRow]:
    """Return the clean and the planted rows, shuffled."""
    per_kind = max(2, round(config.problems * KIND_SHARE))
    wrong_golds = max(2, round(config.problems * WRONG_GOLD_SHARE))
    pairs = per_kind // 2
    fresh_problems = wrong_golds + pairs + per_kind * len(FRESH)
    unused = iter(_clean_items(make_pools(held_out=False), config.problems + fresh_problems, rng))
    clean = [next(unused) for _ in range(config.problems)]

    rows = [clean_row(item) for item in clean]
    rows += [wrong_gold(next(unused), rng, solution_agrees=index % 2 == 0) for index in range(wrong_golds)]
    rows += [row for _ in range(pairs) for row in conflicting_pair(next(unused), rng)]
    for make in FRESH.values():
        rows += [make(next(unused), rng) for _ in range(per_kind)]

    originals: dict[int, int] = {}
    for kind, originals_of_kind in _rows_to_repeat(clean, per_kind, rng).items():
        for original in originals_of_kind:
            originals[len(rows)] = original
            rows.append(COPIES[kind](clean[original], rng))
    return _shuffle(rows, originals, rng)


def _rows_to_repeat(clean: list[ToldProblem], per_kind: int, rng: random.Random) -> dict[str, list[int]]:
    """Return the indices of the clean rows to copy, by kind of copy. A row is copied only once."""
    order = list(range(len(clean)))
    rng.shuffle(order)
    chosen: dict[str, list[int]] = {}
    for kind in COPIES:
        fitting = [row for row in order if kind != "rephrased" or clean[row].telling.story in PERSON_STORIES]
        chosen[kind] = fitting[:per_kind]
        order = [row for row in order if row not in set(chosen[kind])]
    return chosen


def _shuffle(rows: list[RawRow], originals: Mapping[int, int], rng: random.Random) -> list[RawRow]:
    """Return the rows in random order, each copy after its original.

    `originals` maps the index of each copy to the index of its original.
    """
    order = list(range(len(rows)))
    rng.shuffle(order)
    position = {row: index for index, row in enumerate(order)}
    for copy, original in originals.items():
        if position[copy] < position[original]:
            order[position[copy]], order[position[original]] = original, copy
    return [rows[row] for row in order]


def _sft_examples(config: DemoSource, rng: random.Random, progress: Progress) -> Iterator[RawRow]:
    """Yield examples with worked solutions. Half of the examples in the contaminated end are wrong."""
    count = config.sft_examples
    contaminated = round(count * CONTAMINATED_SHARE)
    wrong = set(rng.sample(range(count - contaminated, count), contaminated // 2))
    for index, problem in zip(range(count), make_pools(held_out=False).draw(rng), strict=False):
        final = wrong_by_a_little(problem.answer, rng) if index in wrong else None
        yield {"prompt": tell(problem, pick_telling(rng, STORIES)), "completion": problem.working(final)}
        progress.advance()
