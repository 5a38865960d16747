"""Problems for trainings of an untrained model: it gets them right by chance, about every other time."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from numbered_rows import plain_row

VERIFIER = '''
from truegold.verifiers import verifier


@verifier(version="1")
def parity(response: str, gold: str) -> bool:
    """An untrained model passes it about every other time."""
    return sum(map(ord, response)) % 2 == 0
'''


def write_parity_problems(model: Path, folder: Path, trained: int, heldout: int) -> dict[str, Path]:
    """Write rows to train on, others that are held out, and their verifier; return a training's inputs."""
    verifier = folder / "parity.py"
    verifier.write_text(VERIFIER)
    problems = [
        plain_row(f"What is {index}+{index + 1}?", "1", id=f"p{index}", verifier=f"{verifier}:parity", pass_rate=0.5)
        for index in range(trained + heldout)
    ]
    inputs = {name: folder / f"{name}.parquet" for name in ("rows", "heldout")}
    pl.DataFrame(problems[:trained]).write_parquet(inputs["rows"])
    pl.DataFrame(problems[trained:]).write_parquet(inputs["heldout"])
    return {"model": model, **inputs, "reserve": inputs["rows"]}
