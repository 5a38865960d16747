"""Writes pages of tables of benchmarks into `benchmarks/results/`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def say(line: str) -> None:
    """Print the progress of a benchmark to stderr."""
    print(line, file=sys.stderr, flush=True)


def publish(figures: Any, text: str, numbers: Path | None, page: Path | None, title: str) -> None:
    """Print the text; write the figures as JSON and the text as a page with this title, where asked for."""
    if numbers:
        numbers.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n")
    if page:
        page.write_text(f"# {title}\n\n{text.strip()}\n")
    print(text)
