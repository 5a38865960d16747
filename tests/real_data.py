"""Where tests find real data, which is no part of the repository.

    for line in real_data("curation/gsm8k_train.jsonl").open(): ...

TRUEGOLD_DATA names the folder; without it `../shared/data` beside the repository is looked into. Nobody needs to have
it: a test whose file is absent is skipped and says which file that is.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("TRUEGOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real_data(name: str) -> Path:
    """Return the path of a file of real data; skip the test where it is absent."""
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"needs real data: {path} is absent; set TRUEGOLD_DATA to the folder that holds it")
    return path
