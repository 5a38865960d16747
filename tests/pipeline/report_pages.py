"""What the tests of the report share: a report made of a run's folder, and its page as a browser would read it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import ReportConfig
from truegold.pipeline.report import report
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport


class Page(HTMLParser):
    """The tags, scripts and text that a browser would make of the page; raises where a tag is not closed."""

    VOID = ("meta", "input", "br", "img", "link")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag, which is closed at once."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep text and scripts."""
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)

    @property
    def visible_text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.text).split())


def unpack(packed: str) -> Any:
    """Return what the page unpacks."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def shown_rows(html: str) -> list[dict[str, Any]]:
    """Return the rows of the page in its order, each with the columns of the table and its detail."""
    packed = dict(re.findall(r'<script type="text/plain" id="(index|block-\d+)">([^<]*)</script>', html))
    index = unpack(packed.pop("index"))
    details = [
        detail for name in sorted(packed, key=lambda name: int(name.split("-")[1])) for detail in unpack(packed[name])
    ]
    rows = []
    for position in range(index["rows"]):
        row = {name: values[position] for name, values in index["columns"].items()}
        for name, known in index["names"].items():
            if isinstance(row[name], list):
                row[name] = [known[code] for code in row[name]]
            elif row[name] is not None:
                row[name] = known[row[name]]
        rows.append(row | {"detail": details[position]})
    return rows


def run_report(folder: Path, stages: Iterable[str], **settings: Any) -> tuple[StageReport, str, dict[str, Any]]:
    """Report on these stages of the run in `folder`; return the stage's report, the page and the numbers."""
    names = tuple(stages)
    out = folder / "report"
    out.mkdir(exist_ok=True)
    inputs = {name: folder / name / "stage.json" for name in names}
    stage_report = report(inputs, ReportConfig(name=folder.name, stages=names, **settings), out, NullProgress())
    return (
        stage_report,
        (out / "index.html").read_text(encoding="utf-8"),
        json.loads((out / "summary.json").read_bytes()),
    )
