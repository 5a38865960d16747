"""Commands on verifiers: `truegold verifiers list`, `show`, `check`, `audit`, `audit-judge`, `propose`, and a service.

A verifier has to keep a contract of several rules, called lines (`truegold.verifiers.verdict`). Exit codes:

    check, audit   6   a line of the contract is broken
    check          2   a line could not be checked, because the verifier judges none of the answers that were tried
    audit          6   a line could not be checked, because no gold answer of the data earns the full score
    audit          7   the verifier makes more errors than `--max-fp` or `--max-fn` allow
    audit-judge    7   the second opinion accepts a wrong response

Lines that do not apply to a verifier are skipped and do not change the exit code. `serve-verifier` gives verdicts and
runs programs over HTTP.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegold.flows.cli.given_options import CarefulCommand
from truegold.flows.cli.options import DeadlineS, GoldColumn, PromptColumn, Workers
from truegold.flows.cli.review_commands import listen
from truegold.flows.console import Terminal, describe_seconds, errors, print_line
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.verifiers import ConfigError, InputError, TruegoldError, Verifier, available, fingerprint, resolve
from truegold.verifiers.extras import require
from truegold.verifiers.gold import check_template
from truegold.verifiers.rates import Rate
from truegold.verifiers.registry import find_option_mistakes
from truegold.verifiers.running.batch import DEADLINE_S

if TYPE_CHECKING:
    from truegold.verifiers.audit.contract import CheckResult

BROKEN_CONTRACT = 6
TOO_MANY_ERRORS = 7
TELL_AFTER_S, LONG_S = 2.0, 300.0
"""A measurement shows its remaining time after TELL_AFTER_S seconds, with a hint if more than LONG_S seconds remain."""
MEASURING_SHARE = 0.7
"""The share of `--seconds` for measuring rates. The rest is for checking the contract."""
MAX_NAMED = 20
"""Maximum number of skipped rows that are listed one by one. Further rows are counted."""

verifiers_app = typer.Typer(help="List, show, check and audit verifiers.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[
    str,
    typer.Argument(help="A name, or an import string: pkg.module:object, path/to/file.py:object.", show_default=False),
]
MaxRate = Annotated[float | None, typer.Option(min=0.0, max=1.0, help="The highest share of errors: 0.01 is 1 %.")]
OptionsJson = Annotated[
    str, typer.Option("--args", metavar="JSON", help="The verifier's arguments, as in verifier_args.")
]

GoldResponse = Annotated[
    str | None,
    typer.Option(
        metavar="TEMPLATE",
        help="A right response, such as 'The answer is {gold}' or '\\boxed{{{gold}}}'; else the form is found.",
        show_default=False,
    ),
]

TOKEN = "TRUEGOLD_SERVICE_TOKEN"
"""The environment variable with the token that clients of the service send."""
PORT = 8630


@verifiers_app.command("list", cls=CarefulCommand)
def list_() -> None:
    """List every verifier that needs no import string."""
    for name, origin in available().items():
        try:
            verifier = resolve(name)
            line = f"{name:<14} {verifier.version:<8} {origin:<10} {_first_line(verifier)}"
        except TruegoldError as error:  # One broken plugin must not hide the others.
            line = f"{name:<14} {'-':<8} {origin:<10} cannot be loaded: {error.message}"
        print_line(line.rstrip())


@verifiers_app.command(cls=CarefulCommand)
def show(name: Name) -> None:
    """Show a verifier's version, fingerprint and documentation."""
    verifier = resolve(name)
    print_line(f"name         {verifier.name}")
    print_line(f"version      {verifier.version}")
    print_line(f"fingerprint  {fingerprint(name)}")
    print_line(f"from         {available().get(name, 'an import string')}")
    for text in _documentation(verifier):
        print_line(f"\n{text}")


@verifiers_app.command(cls=CarefulCommand)
def check(
    name: Name,
    gold: Annotated[list[str] | None, typer.Option(help="A gold answer that it can judge; may be repeated.")] = None,
    options_json: OptionsJson = "{}",
    cpu_s: Annotated[float, typer.Option(min=0.01, help="CPU seconds that one verdict may take.")] = 1.0,
    gold_response: GoldResponse = None,
) -> None:
    """Check every line of a verifier's contract. Exit code 6 if one is broken."""
    from truegold.verifiers.audit import check as run_check
    from truegold.verifiers.audit.contract import find_unchecked

    options = _read_options(name, options_json)
    if gold_response is not None:
        check_template(gold_response)
    with Terminal(errors).stage("check") as terminal:
        on_verdicts = _Verdicts(terminal, "trying")
        checked = run_check(
            name, golds=gold or (), info=options, cpu_s=cpu_s, gold_response=gold_response, on_verdicts=on_verdicts
        )
    marks = {True: "ok", False: "FAILED", None: "skipped"}
    for line in checked:
        detail = "" if line.ok else f"  {line.detail}"
        print_line(f"{marks[line.ok]:<8} {line.name}{detail}")
        for finding in line.findings:
            print_line(f"           {_printable(finding)}")
    if any(line.ok is False for line in checked):
        raise typer.Exit(BROKEN_CONTRACT)
    if unchecked := find_unchecked(checked):
        raise ConfigError(
            f"{len(unchecked)} of {len(checked)} lines of the contract could not be checked: {name} judges none of the "
            f"{'answers given' if gold else 'standard answers'}.",
            f"Give answers that it is made for: truegold verifiers check {name} --gold ANSWER",
        )


@verifiers_app.command("audit", cls=CarefulCommand)
def audit_(
    name: Name,
    data: Annotated[
        Path, typer.Option(help="JSONL, Parquet or CSV with a column of gold answers.", show_default=False)
    ],
    gold_column: Annotated[str | None, typer.Option(help="The column of gold answers; else found by its name.")] = None,
    output_dir: Annotated[Path, typer.Option("--output", help="The folder for the verifier card.")] = Path(),
    limit: Annotated[int, typer.Option(min=1, help="Distinct golds to measure; of more, a sample is drawn.")] = 500,
    seed: Annotated[int, typer.Option(help="The seed of this sample.")] = 0,
    options_json: OptionsJson = "{}",
    gold_response: GoldResponse = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Draw fewer golds and answers if it would take longer.", show_default=False),
    ] = None,
    max_fp: MaxRate = None,
    max_fn: MaxRate = None,
) -> None:
    """Measure a verifier's errors on your gold answers and write its card.

    Exit code 6 if its contract is broken or could not be checked. Exit code 7 if it accepts wrong answers or gaming
    more often than --max-fp, or refuses golds or right answers more often than --max-fn.
    """
    import datetime

    from truegold.pipeline.problems import read_golds
    from truegold.verifiers.audit import Card, as_json, audit, check, markdown
    from truegold.verifiers.audit.audit_report import summary_lines

    verifier, options = resolve(name), _read_options(name, options_json)
    if gold_response is not None:
        check_template(gold_response)
    with disk_errors_reported(output_dir):
        output_dir.mkdir(parents=True, exist_ok=True)
    skipped: dict[str, int] = {}

    def report_skipped(row: str, reason: str) -> None:
        skipped[reason] = skipped.get(reason, 0) + 1
        if sum(skipped.values()) <= MAX_NAMED:
            print_line(f"skipped {row}: {reason}", errors)

    golds = list(read_golds(data, gold_column, report_skipped))
    if (more := sum(skipped.values()) - MAX_NAMED) > 0:
        print_line(f"skipped {more} more rows", errors)
    if not golds:
        raise InputError(f"{data}: no row has a gold answer.", "Name the column: --gold-column COLUMN")
    with disk_errors_reported(output_dir), Terminal(errors).stage("audit") as terminal:
        began = time.monotonic()
        report = audit(
            name,
            golds,
            info=options,
            limit=limit,
            seed=seed,
            gold_response=gold_response,
            seconds=None if seconds is None else MEASURING_SHARE * seconds,
            on_verdicts=_Verdicts(
                terminal,
                "measuring",
                hint=f"a sample is drawn that fits into {seconds:g} s"
                if seconds
                else "--seconds 600 measures a sample",
            ),
        )
        left_s = math.inf if seconds is None else max(0.0, began + seconds - time.monotonic())
        checked = check(
            name,
            golds=report.passing,
            info=options,
            gold_response=gold_response,
            seconds=left_s,
            on_verdicts=_Verdicts(terminal, "checking the contract"),
        )
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        card = Card(report, checked, fingerprint(name), data.name, today, _first_line(verifier), skipped)
        (output_dir / "verifier_card.md").write_text(markdown(card), encoding="utf-8")
        (output_dir / "verifier_card.json").write_text(json.dumps(as_json(card), indent=1) + "\n", encoding="utf-8")
    for line in summary_lines(report):
        print_line(line)
    is_kept, outcome = _judge_contract(checked)
    print_line(f"contract: {outcome}")
    print_line(f"card: {output_dir / 'verifier_card.md'}")
    exceeded = [
        *_exceeded("--max-fp", max_fp, {"wrong answers accepted": report.false_positives, "gaming paid": report.gamed}),
        *_exceeded(
            "--max-fn", max_fn, {"gold refused": report.identity.rate, "right answers refused": report.false_negatives}
        ),
    ]
    for line in exceeded:
        print_line(line, errors)
    if not is_kept:
        raise typer.Exit(BROKEN_CONTRACT)
    if exceeded:
        raise typer.Exit(TOO_MANY_ERRORS)


@verifiers_app.command(cls=CarefulCommand)
def propose(
    data: Annotated[Path, typer.Option(help="JSONL, Parquet or CSV: problems with gold.", show_default=False)],
    prompt_column: PromptColumn = None,
    gold_column: GoldColumn = None,
    output: Annotated[
        Path | None, typer.Option(help="The file for the proposal and its reasons.", show_default=False)
    ] = None,
) -> None:
    """Propose options of `math` for a set of golds, such as how measured values are rounded. Prints JSON."""
    from truegold.pipeline.problems import ProblemColumns
    from truegold.pipeline.verify.measured_golds import propose_options

    columns = ProblemColumns(prompt_column, gold_column, spelling="--{role}-column COLUMN")
    proposal = propose_options(data, columns)
    if output is not None:
        with disk_errors_reported(output):
            output.write_text(json.dumps(proposal, indent=1) + "\n", encoding="utf-8")
    example = f", such as {proposal['example']}" if proposal["example"] else ""
    print_line(
        f"{proposal['reason']}{example}",
        errors,
    )
    print_line(json.dumps(proposal["verifier_args"]))


@verifiers_app.command("audit-judge", cls=CarefulCommand)
def audit_judge_(
    opinion: Annotated[
        str, typer.Argument(help="A YAML file with a model, or a verifier such as math_verify.", show_default=False)
    ],
    data: Annotated[
        Path, typer.Option(help="Responses of the policy: a profile's folder, or a file.", show_default=False)
    ],
    output_dir: Annotated[Path, typer.Option("--output", help="The folder for audit.json.")] = Path("judge_audit"),
) -> None:
    """Audit a second opinion before a training uses it as reward (train.reward.second_opinion).

    The opinion judges at least 200 responses of the policy that rules could not read, each against a gold that the
    response does not answer, and hostile responses. Exit code 7 if it accepts one.
    """
    from truegold.flows.config import read_opinion
    from truegold.pipeline.judge.audit import audit_judge, read_unread, write_audit
    from truegold.pipeline.judge.opinions import SecondOpinion

    config = read_opinion(opinion)
    with disk_errors_reported(output_dir), Terminal(errors).stage("audit") as terminal:
        terminal.start("reading the policy's responses")
        unread = read_unread(data)
        heard = SecondOpinion(config, output_dir / "replies")
        try:
            audit = audit_judge(unread, heard, terminal)
        finally:
            heard.facts(terminal)
            heard.close()
        names = sorted({item.verifier for item, _ in unread})
        record = write_audit(audit, config, names, data.name, output_dir)
    print_line(
        f"paid: {record['paid']} of {audit.unread} unread responses beside a gold that they do not answer and "
        f"{audit.hostile} hostile ones\nright by their own gold: {record['raised']} of {len(unread)}; read them in "
        f"{output_dir / 'raised.jsonl'}\naudit: {output_dir / 'audit.json'}"
    )
    if not audit.passed:
        raise typer.Exit(TOO_MANY_ERRORS)


class _Verdicts:
    """Shows the progress of a measurement. After TELL_AFTER_S it prints the remaining time, with a hint if long."""

    def __init__(self, terminal: Terminal, label: str, hint: str | None = None) -> None:
        self._terminal, self._label, self._hint = terminal, label, hint
        self._first, self._so_far, self._total, self._is_told = 0.0, 0, 0, False
        terminal.start(label)

    def __call__(self, so_far: int, total: int) -> None:
        if total != self._total:
            self._total, self._so_far = total, 0
            self._terminal.start(self._label, total)
        # The first verdict includes the start of the process.
        self._first = self._first or time.monotonic()
        elapsed, left = time.monotonic() - self._first, total - so_far
        if not self._is_told and elapsed > TELL_AFTER_S and total:
            self._is_told = True
            verdict_s = elapsed / (so_far - 1)
            left_s = verdict_s * left
            pace = f"{verdict_s:.1f} s a verdict, about {describe_seconds(left_s)} for {left:,} more"
            hint = f"; {self._hint}" if self._hint and left_s > LONG_S else ""
            self._terminal.note(f"{self._label}: {pace}{hint}")
        self._terminal.advance(so_far - self._so_far)
        self._so_far = so_far


def _judge_contract(checked: Sequence[CheckResult]) -> tuple[bool, str]:
    """Return whether all lines of the contract were checked and hold, and the line to print."""
    from truegold.verifiers.audit.contract import NO_TIME, find_unchecked

    broken = [line.name for line in checked if line.ok is False]
    if broken:
        return False, f"BROKEN: {', '.join(broken)}"
    if unchecked := find_unchecked(checked):
        return False, f"NOT CHECKED: {len(unchecked)} of {len(checked)} lines, for want of a gold that passes"
    if left_out := [line.name for line in checked if line.detail == NO_TIME]:
        return True, f"kept as far as there was time; not checked: {', '.join(left_out)}"
    return True, "kept"


def _exceeded(option: str, most: float | None, rates: Mapping[str, Rate]) -> Iterator[str]:
    """Yield a line for each rate above the limit, and for each rate without any verdict."""
    if most is None:
        return
    for name, rate in rates.items():
        if rate.share is None:
            yield f"{option}: {name}: nothing was judged"
        elif rate.share > most:
            yield f"{option}: {name}: {100 * rate.share:.2f} % exceeds {100 * most:g} %"


def _read_options(name: str, text: str) -> dict[str, Any]:
    try:
        options = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--args is not JSON: {error}.", """Such as --args '{"decimals": 2}'.""") from error
    if not isinstance(options, dict):
        raise ConfigError(f"--args is not a JSON object: {text[:40]}.", """Such as --args '{"decimals": 2}'.""")
    if mistakes := find_option_mistakes(name, options):
        raise ConfigError(f"--args: {' '.join(mistakes)}", f"truegold verifiers show {name} describes them.")
    return options


def _first_line(verifier: Verifier) -> str:
    """Return a description of a verifier: the first line of its docstring, or else of its module's."""
    inner = getattr(verifier, "inner", verifier)
    described = inspect.getdoc(inner) or next(iter(_documentation(verifier)), "")
    return described.partition("\n")[0]


def _documentation(verifier: Verifier) -> list[str]:
    """Return the docstrings of a verifier and its module, the more general one first.

    A module of truegold is about one verifier, so its docstring comes first. A user's module may hold several.
    """
    inner = getattr(verifier, "inner", verifier)  # The registry wraps imported verifiers.
    module = inspect.getmodule(getattr(inner, "function", type(inner)))
    texts = [inspect.getdoc(inner), inspect.getdoc(module) if module else None]
    return [text for text in (texts if inner is not verifier else texts[::-1]) if text]


def _printable(text: str) -> str:
    """Return a text without characters that a terminal would obey or cannot print."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def serve_verifier(
    host: Annotated[
        str, typer.Option(help="The address to listen on; beyond loopback it needs a token or --allow.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = PORT,
    workers: Workers = 0,
    queue: Annotated[
        int, typer.Option(min=1, help="Responses and programs that may wait; further ones are refused (429).")
    ] = 4096,
    max_mb: Annotated[int, typer.Option(min=1, help="A larger request is refused (413).")] = 16,
    deadline_s: DeadlineS = DEADLINE_S,
    request_s: Annotated[
        float, typer.Option(min=0.001, help="Seconds for a request, including its wait in the queue (503).")
    ] = 300.0,
    token_file: Annotated[
        Path | None, typer.Option(help=f"A file with the token that clients send; else {TOKEN} of the environment.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="NETWORK", help="Clients from here need no token: 10.0.0.0/8; may be repeated."),
    ] = None,
    verifier: Annotated[
        list[str] | None, typer.Option(help="A verifier of yours that requests may name; may be repeated.")
    ] = None,
) -> None:
    """Give verdicts and run programs over HTTP: /verify, /run_code, /test_program."""
    for package in ("starlette", "uvicorn"):
        require(package, "serve")
    import uvicorn

    from truegold.verifiers.service import Settings, make_app
    from truegold.verifiers.service.app import check_access, read_networks

    try:
        token = (token_file.read_text(encoding="utf-8") if token_file else os.environ.get(TOKEN, "")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {token_file} cannot be read: {error}.") from error
    if token_file is not None and not token:
        raise ConfigError(f"{token_file} is empty.", "Write the token into it.")
    for name in verifier or ():
        resolve(name)
    settings = Settings(
        token or None,
        read_networks(allow or ()),
        workers,
        queue,
        max_mb * 2**20,
        deadline_s=deadline_s,
        request_s=request_s,
        verifiers=tuple(verifier or ()),
    )
    check_access(host, settings.token, settings.networks)
    admitted = ["with a token" if token else "without a token", *(f"from {each}" for each in settings.networks)]
    with listen(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}"
        print_line(f"truegold serves verdicts on {address} ({', '.join(admitted)})", errors)
        # With proxy headers, a client could pretend to have another address.
        options = uvicorn.Config(make_app(settings), log_level="warning", access_log=False, proxy_headers=False)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(options).run(sockets=[listener])
