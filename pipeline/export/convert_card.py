"""The card of a set in a trainer's format: what it is, whose it is, and which files `datasets` reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from truegold.pipeline.export.formats.base import Format
from truegold.pipeline.export.markdown import markdown_table
from truegold.pipeline.export.tables import NOT_STATED
from truegold.verifiers import fingerprint

ORIGINS_SHOWN = 20


def render_card(out_dir: Path, form: Format, written: Mapping[str, Any], curated_card: Path) -> str:
    """Return the card as the text of a README.md; `curated_card` is that of the set it was made of, if there is one."""
    splits: Mapping[Path, int] = written["splits"]
    licenses = [name for name in written["licenses"] if name != NOT_STATED]
    files = [{"split": path.stem, "path": path.relative_to(out_dir).as_posix()} for path in splits]
    head: dict[str, Any] = {
        "configs": [{"config_name": "default", "data_files": files}],
        "tags": ["truegold", "reinforcement-learning", "verifiable-rewards"],
    }
    if licenses:
        head["license"] = licenses[0] if len(written["licenses"]) == 1 else "other"
    rows = [(path.relative_to(out_dir).as_posix(), count) for path, count in splits.items()]
    verifiers = [(fingerprint(name), count) for name, count in written["verifiers"].most_common()]
    parts = [
        f"---\n{yaml.safe_dump(head, sort_keys=True, allow_unicode=True)}---",
        f"# {out_dir.resolve().name}",
        f"Written by truegold for {form.title}.",
        markdown_table(("file", "rows"), rows),
        "## Licences",
        markdown_table(("licence", "rows"), written["licenses"].most_common()),
        "## Origins",
        markdown_table(("origin", "rows"), written["origins"].most_common(ORIGINS_SHOWN)),
        "## Verifiers",
        markdown_table(("verifier", "rows"), verifiers),
    ]
    if curated_card.is_file():
        body = curated_card.read_text(encoding="utf-8").split("---\n", 2)[-1]
        parts += ["# The set it was made of", body.replace("\n## ", "\n### ").replace("\n# ", "\n## ")]
    return "\n\n".join(parts) + "\n"
