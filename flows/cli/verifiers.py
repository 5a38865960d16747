"""The commands `truegold verifiers ...`: list, show, check and audit the verifiers of this installation.

Exit codes are those of `truegold`, and one more: 6, `check` found that the verifier breaks its contract. A line that
could not be checked, for want of a gold answer that fits, breaks nothing.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from truegold.verifiers import ConfigError, InputError, TruegoldError, Verifier, available, fingerprint, resolve

if TYPE_CHECKING:
    from truegold.pipeline.ingest.records import Record, Reject

BROKEN_CONTRACT = 6
MAX_ROW_BYTES = 64 * 2**20
"""A longer line is not read into memory."""
MAX_NAMED = 20
"""Bad rows named one by one; the rest are counted."""

verifiers_app = typer.Typer(help="List, show, check and audit verifiers.", no_args_is_help=True, rich_markup_mode=None)
output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Name = Annotated[
    str,
    typer.Argument(help="A name, or an import string: pkg.module:object, path/to/file.py:object.", show_default=False),
]
Info = Annotated[str, typer.Option("--args", metavar="JSON", help="The verifier's arguments, as in verifier_args.")]


@verifiers_app.command("list")
def list_() -> None:
    """Every verifier that needs no import string."""
    for name, origin in available().items():
        try:
            found = resolve(name)
            line = f"{name:<14} {found.version:<8} {origin:<10} {_first_line(found)}"
        except TruegoldError as error:  # one broken plugin must not hide the others
            line = f"{name:<14} {'-':<8} {origin:<10} cannot be loaded: {error.message}"
        output.print(line.rstrip(), markup=False, soft_wrap=True)


@verifiers_app.command()
def show(name: Name) -> None:
    """A verifier's version, fingerprint and documentation."""
    found = resolve(name)
    output.print(f"name         {found.name}", markup=False, soft_wrap=True)
    output.print(f"version      {found.version}", markup=False, soft_wrap=True)
    output.print(f"fingerprint  {fingerprint(name)}", markup=False, soft_wrap=True)
    output.print(f"from         {available().get(name, 'an import string')}", markup=False, soft_wrap=True)
    for text in _documentation(found):
        output.print(f"\n{text}", markup=False, soft_wrap=True)


@verifiers_app.command()
def check(
    name: Name,
    gold: Annotated[list[str] | None, typer.Option(help="A gold answer it is made for; may be repeated.")] = None,
    args: Info = "{}",
    cpu_s: Annotated[float, typer.Option(min=0.01, help="CPU seconds that one verdict may take.")] = 1.0,
) -> None:
    """Try every line of a verifier's contract; exit code 6 where one is broken."""
    from truegold.verifiers.audit import check as run_check

    results = run_check(name, golds=gold or (), info=_info(args), cpu_s=cpu_s)
    marks = {True: "ok", False: "FAILED", None: "skipped"}
    for result in results:
        detail = "" if result.ok else f"  {result.detail}"
        output.print(f"{marks[result.ok]:<8} {result.name}{detail}", markup=False, soft_wrap=True)
        for finding in result.findings:
            output.print(f"           {_printable(finding)}", markup=False, soft_wrap=True)
    if any(result.ok is False for result in results):
        raise typer.Exit(BROKEN_CONTRACT)


@verifiers_app.command("audit")
def audit_(
    name: Name,
    data: Annotated[
        Path, typer.Option(help="JSONL, Parquet or CSV with a column of gold answers.", show_default=False)
    ],
    gold_column: Annotated[str, typer.Option(help="The column of gold answers.")] = "gold",
    output_dir: Annotated[Path, typer.Option("--output", help="Where the verifier card is written.")] = Path(),
    limit: Annotated[int, typer.Option(min=1, help="Of more distinct golds so many are drawn.")] = 500,
    seed: Annotated[int, typer.Option(help="Which golds are drawn.")] = 0,
    args: Info = "{}",
) -> None:
    """Measure a verifier's errors on your gold answers and write its card."""
    import datetime

    from truegold.flows.console import Terminal
    from truegold.pipeline.running.disk import full_disk_told
    from truegold.verifiers.audit import Card, as_json, audit, check, markdown
    from truegold.verifiers.audit.card import summary_lines

    found, info = resolve(name), _info(args)
    skipped: dict[str, int] = {}
    golds = list(_golds(data, gold_column, skipped))
    if not golds:
        raise InputError(f"{data}: no row has a gold answer in column {gold_column!r}.", "Name it: --gold-column NAME")
    with full_disk_told(output_dir), Terminal(errors).stage("audit") as terminal:
        terminal.start("measuring", min(limit, len(set(golds))))
        report = audit(name, golds, info=info, limit=limit, seed=seed, on_gold=terminal.advance)
        terminal.start("checking the contract")
        results = check(name, golds=report.passing, info=info)
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        card = Card(report, results, fingerprint(name), data.name, today, _first_line(found), skipped)
        output_dir.mkdir(parents=True, exist_ok=True)
        (output_dir / "verifier_card.md").write_text(markdown(card), encoding="utf-8")
        (output_dir / "verifier_card.json").write_text(json.dumps(as_json(card), indent=1) + "\n", encoding="utf-8")
    for line in summary_lines(report):
        output.print(line, markup=False, soft_wrap=True)
    broken = [result.name for result in results if result.ok is False]
    output.print(f"contract: {'kept' if not broken else 'BROKEN: ' + ', '.join(broken)}", markup=False, soft_wrap=True)
    output.print(f"card: {output_dir / 'verifier_card.md'}", markup=False, soft_wrap=True)


def _golds(path: Path, column: str, skipped: dict[str, int]) -> Iterator[str]:
    """The gold answers of a file. Bad rows are named, skipped and counted in `skipped`."""
    from truegold.pipeline.ingest.readers import open_file

    source = open_file(path, "auto", MAX_ROW_BYTES)
    seen_column = False
    for record in source.records:
        gold, problem = _gold_of(record, column)
        seen_column = seen_column or gold is not None or problem == "empty gold"
        if gold is not None:
            yield gold
            continue
        if not seen_column and problem == "no gold column":
            raise InputError(
                f"{path}, {source.unit} {record.number}: there is no column {column!r}; it has {_columns(record)}.",
                "Name the column of gold answers: --gold-column NAME",
            )
        skipped[problem] = skipped.get(problem, 0) + 1
        if sum(skipped.values()) <= MAX_NAMED:
            errors.print(f"skipped {source.unit} {record.number}: {problem}", markup=False, soft_wrap=True)
    if (more := sum(skipped.values()) - MAX_NAMED) > 0:
        errors.print(f"skipped {more} more rows", markup=False)


def _gold_of(record: Record | Reject, column: str) -> tuple[str | None, str]:
    """The gold answer of one record, or None and why there is none."""
    from truegold.pipeline.ingest.columns import text_of
    from truegold.pipeline.ingest.records import Reject

    if isinstance(record, Reject):
        return None, record.reason
    if column not in record.values:
        return None, "no gold column"
    return text_of(record.values[column]), "empty gold"


def _columns(record: Record | Reject) -> str:
    return ", ".join(getattr(record, "values", ())) or "none"


def _info(text: str) -> dict[str, Any]:
    try:
        info = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--args is not JSON: {error}.", """Such as --args '{"decimals": 2}'.""") from error
    if not isinstance(info, dict):
        raise ConfigError(f"--args is no JSON object: {text[:40]}.", """Such as --args '{"decimals": 2}'.""")
    return info


def _first_line(found: Verifier) -> str:
    return next(iter(_documentation(found)), "").partition("\n")[0]


def _documentation(found: Verifier) -> list[str]:
    """Its own docstring and that of its module, the more general one first: a module of ours is about one verifier."""
    inner = getattr(found, "inner", found)  # an imported verifier is wrapped by the registry
    module = inspect.getmodule(getattr(inner, "function", type(inner)))
    texts = [inspect.getdoc(inner), inspect.getdoc(module) if module else None]
    return [text for text in (texts if inner is not found else texts[::-1]) if text]


def _printable(text: str) -> str:
    """Without what a terminal would obey or cannot write."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
