r"""Commands on a data file: `truegold init` writes a configuration for it, `truegold look` only describes it.

truegold init umfrage.csv run.yaml

data      umfrage.csv: 20 records
columns   prompt Aufgabe; gold Ergebnis; solution Lösungsweg; verifier math
unused    Klasse

umfrage.csv:2
  prompt    Anna hat 3 Äpfel; sie bekommt 4 dazu. Wie viele hat sie?
  gold      7
  math      reads it as 7, and pays the response "\boxed{7}"

wrote run.yaml
next: truegold curate run.yaml --engine local
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.given_options import ONE_PATH
from truegold.flows.cli.options import GoldColumn, LastTurnOnly, PromptColumn
from truegold.flows.console import Terminal, errors, print_line
from truegold.verifiers import ConfigError, InputError

if TYPE_CHECKING:
    import polars as pl

    from truegold.pipeline.config.sources import FileSource
    from truegold.pipeline.sources.proposal import Proposal
    from truegold.pipeline.tables.rows import Row

STARTER = Path(__file__).parents[1] / "starter.yaml.txt"
"""The configuration that `truegold init` writes: short, commented, and valid once its names are filled in."""
TRAINING = "# ---- training\n"
"""The line of the starter that precedes the sections on training."""
SHOWN_ROWS, MAX_SHOWN, SUSPECTS = 3, 6, 10
"""`init` shows SHOWN_ROWS rows; if there are more kinds of golds, one of each kind, but at most MAX_SHOWN. `look` lists
at most SUSPECTS suspicious rows."""
CHARS = 160
"""Maximum number of characters of a text that are shown."""
LOOKED_AT = 2_000
"""Maximum number of rows that `look` flags without --limit."""
DEADLINE_S = 10.0
"""Seconds that a verifier may take for the gold of a row that is shown."""

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="JSONL, Parquet or CSV; or a folder of them.")]
VerifierName = Annotated[
    str | None, typer.Option("--verifier", help="The verifier of all rows; found by the golds if not given.")
]


def init(
    data: DataFile,
    path: Annotated[Path, typer.Argument(metavar="CONFIG", help="The file to write.")] = Path("run.yaml"),
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    verifier: VerifierName = None,
    last_turn_only: LastTurnOnly = False,
    train: Annotated[bool, typer.Option("--train", help="Write the sections of profile and training too.")] = False,
    model: Annotated[str, typer.Option(help="With --train: a checkpoint's folder or a hub name.")] = "Qwen/Qwen3-0.6B",
) -> None:
    """Read a data file, show how it is understood, and write a configuration for it."""
    from truegold.flows.config import YAML, run_name
    from truegold.pipeline.sources.data_files import is_named_as_data

    if data.suffix in YAML:
        raise ConfigError(
            f"{data} is not a data file.", f"The data come first: truegold init DATA {shlex.quote(str(data))}"
        )
    if is_named_as_data(path):
        raise ConfigError(f"{path} is data, not the configuration to write.", ONE_PATH)
    if not str(path).isprintable():
        raise ConfigError(f"{str(path)!r} has a line break or another invisible character.", "Give another name.")
    if path.exists():
        named = f"truegold init {shlex.quote(str(data))} NAME.yaml"
        raise ConfigError(f"{path} exists already.", f"Give another name: {named}")
    proposal = _propose(data, prompt_column, gold_column, verifier, last_turn_only)
    _show(proposal)
    starter, _, training = STARTER.read_text(encoding="utf-8").partition(TRAINING)
    # JSON texts are valid YAML.
    name, model_text = (json.dumps(text, ensure_ascii=False) for text in (run_name(path), model))
    settings = _yaml_section(_settings(proposal.source))
    text = (starter + training if train else starter).format(
        file=shlex.quote(str(path)), name=name, data=settings, model=model_text
    )
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    print_line(f"wrote {path}\nnext: truegold {'run' if train else 'curate'} {shlex.quote(str(path))} --engine local")


def _propose(data: Path, prompt: str | None, gold: str | None, verifier: str | None, last_turn_only: bool) -> Proposal:
    from truegold.pipeline.config.sources import Columns, FileSource
    from truegold.pipeline.curation.plan import check_settings
    from truegold.pipeline.sources.proposal import propose

    columns = Columns.model_validate({"prompt": prompt, "gold": gold})
    source = FileSource(path=str(data), columns=columns, verifier=verifier, last_turn_only=last_turn_only)
    check_settings(source, "data")
    proposal = propose(source)
    if not proposal.rows:
        lines = "\n  ".join(proposal.lines())
        raise InputError(
            f"{data}: none of the first {len(proposal.records)} records can be judged.\n  {lines}\n ",
            "Name other columns: --prompt-column COLUMN, --gold-column COLUMN.",
        )
    return proposal


def _show(proposal: Proposal) -> None:
    for line in chain(
        proposal.lines(), _cuts(proposal.rows), *map(_row_lines, proposal.shown_rows(SHOWN_ROWS, MAX_SHOWN))
    ):
        print_line(line)
    print_line("")


def _cuts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield lines on phrases that cleaning would cut from many of these prompts."""
    import polars as pl

    from truegold.pipeline.clean.stage import Cleaner, describe_cuts

    cleaner = Cleaner()
    edits = [
        (edit.before, edit.after)
        for row in rows
        for edit in cleaner.edits("prompt", row["prompt"], row["gold"], row["domain"])
        if edit.reason == "boilerplate"
    ]
    table = pl.LazyFrame(edits, schema={"before": pl.String, "after": pl.String}, orient="row")
    yield from (f"cut       {line}" for line in describe_cuts(table, len(rows)))


def _row_lines(row: Row) -> Iterator[str]:
    """Yield the lines of a row: prompt, gold, and its verifier's reading of the gold."""
    from truegold.pipeline.tables.rows import row_place

    yield f"\n{row_place(row)}"
    yield f"  prompt    {_short(row['prompt'])}"
    if row["gold"] is not None:
        yield f"  gold      {_short(row['gold'])}"
    yield f"  {row['verifier']:<9} {_view(row)}"


def _view(row: Row) -> str:
    """Return the verifier's reading of a row's gold, or its verdict on the program that is the row's solution."""
    from truegold.pipeline.verify.gold_stage import examine_gold
    from truegold.verifiers import gold_response, resolve

    examined = examine_gold(row, DEADLINE_S)
    reasons = "; FLAGGED: " + ", ".join(flag["reason"] for flag in examined.flags) if examined.flags else ""
    if examined.verdict is None:
        return "nothing can be tried: there is neither gold nor a solution"
    if row["gold"] is None:
        outcome = "passes" if examined.verdict.passed else f"FAILS ({examined.verdict.reason})"
        return f"its own solution {outcome}{reasons}"
    response = _short(gold_response(resolve(row["verifier"]), row["gold"]) or row["gold"])
    reading = f"reads it as {_short(examined.reading)}, and " if examined.reading else ""
    pays = "pays" if examined.verdict.passed else f"DOES NOT PAY ({examined.verdict.reason})"
    return f'{reading}{pays} the response "{response}"{reasons}'


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= CHARS else f"{line[: CHARS - 1]}…"


def _settings(source: FileSource) -> dict[str, Any]:
    settings = {"path": source.path} | source.model_dump(exclude_defaults=True, exclude_none=True)
    for role, spec in settings.get("columns", {}).items():
        settings["columns"][role] = spec["column"] if spec.keys() == {"column"} else spec
    return settings


def _yaml_section(settings: dict[str, Any]) -> str:
    import yaml

    text = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, width=1000)
    return "".join(f"  {line}\n" for line in text.splitlines()).rstrip("\n")


def look(
    data: DataFile,
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    verifier: VerifierName = None,
    limit: Annotated[int, typer.Option(min=1, help="Take only this many rows, from the start.")] = LOOKED_AT,
    last_turn_only: LastTurnOnly = False,
) -> None:
    """Describe a data file: kinds of golds, lengths, languages, and the most suspicious rows. Writes nothing."""
    proposal = _propose(data, prompt_column, gold_column, verifier, last_turn_only)
    for line in proposal.lines():
        print_line(line)
    with tempfile.TemporaryDirectory(prefix="truegold-") as folder:
        rows, flags, dropped = _flag(proposal.source.model_copy(update={"limit": limit}), Path(folder) / "run")
    for line in chain(_summary(rows, flags, dropped), _suspects(rows, flags)):
        print_line(line)
    name = shlex.quote(str(data))
    next_step = f"next: truegold init {name}" if len(rows) else f"no row is left; mend the records of {name} first"
    print_line(f"nothing was written; {next_step}")


def _flag(source: FileSource, run_dir: Path) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the rows of a source, their flags, and the rows that are dropped.

    Flags come from verifiers (on golds), from rules, and from equal problems with different golds.
    """
    import polars as pl

    from truegold.pipeline.config.stages import CurationConfig, VetTestsConfig
    from truegold.pipeline.curation.api import run_stages
    from truegold.pipeline.curation.plan import curation_stages
    from truegold.pipeline.tables.ledger import DROPPED_FILE, FLAGS_FILE

    config = CurationConfig(data=source, vet_tests=VetTestsConfig(enabled=False))
    stages = [stage for stage in curation_stages(config) if stage.name != "settle"]
    run_dir.parent.mkdir(exist_ok=True)
    with Terminal(errors).stage("look") as terminal:
        run_stages(stages, run_dir, terminal)
    dropped = [pl.read_parquet(run_dir / stage.name / DROPPED_FILE) for stage in stages[1:]]
    return (
        pl.read_parquet(run_dir / "clean" / "rows.parquet"),
        pl.read_parquet(run_dir / "flag" / FLAGS_FILE),
        pl.concat(dropped),
    )


def _summary(rows: pl.DataFrame, flags: pl.DataFrame, dropped: pl.DataFrame) -> Iterator[str]:
    """Yield lines on lengths, languages, kinds of golds, flags and drops, and on tests that only a run executes."""
    notes = [json.loads(meta).get("truegold", {}) for meta in rows["meta"]]
    yield f"looked at {len(rows):,} rows"
    fallen = f"dropped   {_counted(dropped['drop_reason']) or 'none'}"
    if not len(rows):
        yield fallen
        return
    for name, column in (("prompts", "prompt"), ("solutions", "solution")):
        lengths = rows[column].drop_nulls().str.len_chars().sort()
        if len(lengths):
            median, long = lengths[len(lengths) // 2], lengths[len(lengths) * 95 // 100]
            yield f"{name:<9} {median:,} characters (median), 95 % have at most {long:,}, the longest {lengths[-1]:,}"
    yield f"languages {_counted(note.get('language', 'und') for note in notes)}"
    absent = ["tests" if verifier == "code" else "none" for verifier in rows["verifier"]]
    kinds = [note.get("gold_type", other) for note, other in zip(notes, absent, strict=True)]
    yield f"golds     {_counted(kinds)}; judged by {_counted(rows['verifier'])}"
    held = flags.filter("blocks").select("source", "source_row").n_unique() if len(flags) else 0
    yield f"flags     {_counted(flags['reason']) or 'none'}"
    yield fallen
    yield f"held      {held:,} of {len(rows):,} rows would wait for a person"
    if programs := (rows["verifier"] == "code").sum():
        yield f"not run   the tests of {programs:,} programs, by which `truegold curate` drops rows and mends others"


def _counted(names: Any) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in Counter(names).most_common())


def _suspects(rows: pl.DataFrame, flags: pl.DataFrame) -> Iterator[str]:
    """Yield lines on the most suspicious rows, those with the most reliable flags first."""
    key = ["source", "source_row"]
    texts: dict[Sequence[Any], tuple[str, str | None]] = {
        (source, row): (prompt, gold) for source, row, prompt, gold in rows.select(*key, "prompt", "gold").rows()
    }
    worst = flags.sort("blocks", "confidence", descending=True, nulls_last=True).unique(key, maintain_order=True)
    if len(worst):
        yield f"\nthe most suspicious of {len(worst):,} flagged rows:" if len(worst) > SUSPECTS else "\nflagged rows:"
    for flag in worst.head(SUSPECTS).iter_rows(named=True):
        prompt, gold = texts[flag["source"], flag["source_row"]]
        suggestion = f"; suggested {_short(flag['suggestion'])}" if flag["suggestion"] else ""
        sure = f" (right in {flag['confidence']:.0%} of such rows)" if flag["confidence"] is not None else ""
        yield f"  {flag['source']}:{flag['source_row']}  {flag['reason']}{sure}"
        yield f"    {_short(prompt)}\n    gold {_short(gold or '-')}{suggestion}"
    if len(worst):
        yield ""
