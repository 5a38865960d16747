"""Commands to decide about the rows of a run: `truegold review` in a browser, `truegold decide` from a terminal.

    truegold review runs/gsm8k                        the most suspicious rows first
    truegold review runs/gsm8k --random 100 --seed 7  a random sample, which measures how often flags are right
    truegold review runs/gsm8k --second ann           ann's rows without her decisions, for Cohen's kappa
    truegold review runs/gsm8k --status               a summary in the terminal

    truegold decide 9f0c21 keep
    truegold decide train.jsonl:17 fix=16 --note "she keeps 3 eggs" --reviewer ann
    truegold decide 9f0c21 undo

Each decision is a line of decisions/REVIEWER.jsonl. It is written to disk before the page shows the next row. So the
server may be killed at any time, and the same command resumes the review. The next `truegold curate` applies decisions.
"""

from __future__ import annotations

import errno
import getpass
import os
import secrets
import shlex
import socket
import subprocess
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import quote

import typer

from truegold.flows.console import errors, print_line
from truegold.verifiers import ConfigError, InputError, SetupError
from truegold.verifiers.extras import require

if TYPE_CHECKING:
    from truegold.pipeline.review.app import ReviewSession
    from truegold.pipeline.review.reviewed_run import ReviewedRun, ReviewQueue

T = TypeVar("T")
TOKEN = "TRUEGOLD_REVIEW_TOKEN"
"""The environment variable that sets the token in the page's address, so that a restart does not change it."""
MIN_TOKEN = 16
"""Minimum number of characters of a token. Shorter tokens can be guessed."""
PORT = 8620
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine can reach."""
GUIDELINES = "guidelines.md"
"""The file in the folder of decisions that is shown next to the rows."""

RUNS = Path("runs")
"""The folder of runs that is searched if no run is named."""
ACTIONS = ("keep", "drop", "fix", "unsure", "undo")

Reviewer = Annotated[
    str | None, typer.Option("--reviewer", help="Your name; if not given, git's user.name or the login.")
]
DecisionsFolder = Annotated[
    Path | None,
    typer.Option("--decisions", help="The folder of decisions; if not given, that of the run's configuration."),
]


def review(
    run_dir: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    reviewer: Reviewer = None,
    random: Annotated[
        int | None, typer.Option("--random", min=1, metavar="N", help="Read N random rows; see --seed and --among.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The seed that selects and orders the rows.")] = 0,
    among: Annotated[str, typer.Option(help="Draw among `flagged` rows or `all`.")] = "flagged",
    second: Annotated[
        str | None, typer.Option("--second", metavar="REVIEWER", help="Read this reviewer's rows, decisions hidden.")
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="A text shown next to the rows; guidelines.md of the decisions if not given.")
    ] = None,
    decisions: DecisionsFolder = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 127.0.0.1 is this machine alone.")] = LOOPBACK[0],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = PORT,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Print decisions and waiting rows, and stop.")] = False,
) -> None:
    """Decide about rows in a browser, by keyboard, the most suspicious first: keep, drop, or fix gold."""
    require("starlette")
    require("uvicorn")
    from truegold.pipeline.review.app import ReviewSession
    from truegold.pipeline.review.review_measures import status_lines
    from truegold.pipeline.review.reviewed_run import ReviewedRun

    run = ReviewedRun.open(run_dir, decisions)
    if status:
        for line in status_lines(run):
            print_line(line)
        return
    name = reviewer or default_reviewer()
    if second is not None and second == name:
        raise ConfigError(f"{name} has decided these rows.", "Say who reads them this time: --reviewer NAME.")
    queue = _draw(run, random, seed, among, second)
    text = _read_guidelines(guidelines, run)
    token = _token()
    session = ReviewSession(run, name, queue, lambda: _page(session, token, text))
    with listen(host, port) as listener:
        _serve(session, token, listener, host, open_)


def _draw(run: ReviewedRun, random: int | None, seed: int, among: str, second: str | None) -> ReviewQueue:
    from truegold.pipeline.review.reviewed_run import ReviewQueue, draw_at_random, second_look

    if among not in ("flagged", "all"):
        raise ConfigError(f"--among {among}: rows are drawn among `flagged` ones or `all`.")
    if second is not None and random is not None:
        raise ConfigError("--random and --second both say which rows to read.", "Leave one of them out.")
    if second is not None:
        return second_look(run, second, seed)
    if random is None:
        return ReviewQueue()
    return draw_at_random(run, random, seed, "all" if among == "all" else "flagged")


def _read_guidelines(path: Path | None, run: ReviewedRun) -> str | None:
    if path is None and (run.folder / GUIDELINES).is_file():
        path = run.folder / GUIDELINES
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}).") from None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises ConfigError or SetupError if that is impossible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ConfigError(
                f"--host {host} is not an address of this machine ({error.strerror}).",
                "127.0.0.1 is this machine alone, 0.0.0.0 all its addresses.",
            ) from None
        raise SetupError(
            f"Port {port} of {host} is not available: {error.strerror}.",
            "Name another one: --port NUMBER; --port 0 takes a free one.",
        ) from None
    listener.listen(128)
    return listener


def _token() -> str:
    if (token := os.environ.get(TOKEN)) is None:
        return secrets.token_urlsafe(24)
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"{TOKEN} is not a token.",
            f'Take {MIN_TOKEN} characters or more, such as those of python -c "import secrets; '
            'print(secrets.token_urlsafe(24))".',
        )
    return token


def _serve(session: ReviewSession, token: str, listener: socket.socket, host: str, open_: bool) -> None:
    import uvicorn

    from truegold.pipeline.review.app import make_app
    from truegold.pipeline.review.request_guard import loopback_hosts

    run, port = session.run, listener.getsockname()[1]
    errors.print("making the page")
    session.page()
    shown = f"[{host}]" if ":" in host else host
    hosts = loopback_hosts(port)
    if host not in LOOPBACK:
        hosts |= {f"{called}:{port}" for called in (shown, socket.gethostname(), socket.getfqdn())}
        errors.print(
            f"warning: {host} is open to the network; anyone with the address below can decide.", style="yellow"
        )
        shown = socket.getfqdn() if host in ("0.0.0.0", "::") else shown
    address = f"http://{shown}:{port}/?token={quote(token)}"
    print_line(f"review of {run.run_dir} by {session.reviewer}: {address}")
    print_line(f"decisions: {run.folder}")
    print_line("Ctrl+C ends it; every decision is on the disk.")
    if open_:
        webbrowser.open(address)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(session, hosts, token), log_level="warning", access_log=False, lifespan="off", server_header=False
        )
    )
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    print_line(f"The next `{run.curate_command}` of {run.run_dir} acts on what was decided.")


def _page(session: ReviewSession, token: str, guidelines: str | None) -> str:
    from truegold.pipeline.report import ReviewSettings, open_page

    queue = session.queue
    settings = ReviewSettings(session.reviewer, token, guidelines, queue.blind, queue.keys, queue.drawn)
    return open_page(session.run.run_dir, settings)


def decide(
    row: Annotated[
        str, typer.Argument(help="A row's id, its first 6 digits or more, source:row, or the source's own id.")
    ],
    action: Annotated[str, typer.Argument(metavar="keep|drop|fix=GOLD|unsure|undo", help="The decision.")],
    note: Annotated[str | None, typer.Option("--note", help="The reason, for later readers.")] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="The run's directory; the newest in `runs` that has the row if not given."),
    ] = None,
    reviewer: Reviewer = None,
    decisions: DecisionsFolder = None,
) -> None:
    """Decide about a row: keep it, drop it, fix its gold, or undo your last decision on it."""
    from truegold.pipeline.review.decisions import DecisionKind, reviewer_file
    from truegold.pipeline.review.gold_reading import read_gold
    from truegold.pipeline.tables.rows import row_key

    word, equals, gold = action.partition("=")
    if action == "fix":
        raise ConfigError("A fix needs the right gold.", f"truegold decide {shlex.quote(row)} fix=GOLD")
    if row in ACTIONS and word not in ACTIONS:
        raise ConfigError("The row comes before the decision.", f"truegold decide {shlex.quote(action)} {row}")
    if word not in ACTIONS or (equals and word != "fix"):
        raise ConfigError(f"{action!r} is not a decision.", "Type keep, drop, fix=GOLD, unsure or undo.")
    name = reviewer or default_reviewer()
    reviewed, row_id = find_row(run, row, decisions)
    kind = DecisionKind(word)
    before = reviewed.standing(row_id, name)
    if kind is DecisionKind.UNDO and before is None:
        raise InputError(f"{name} has no decision about {row_id} to take back.")
    made = reviewed.decide(row_id, kind, name, gold=gold or None, note=note)
    subject = reviewed.rows_of(row_id)[0]
    file = reviewer_file(reviewed.folder, name)
    print_line(f"{row_id}  {_describe_decision(made.decision, made.gold)}  by {name}  in {file}")
    if (why := reviewed.why_dropped(row_id)) is not None and kind in (DecisionKind.KEEP, DecisionKind.FIX):
        print_line(f"It was dropped ({why}), and comes back.")
    if kind is DecisionKind.UNDO:
        stands = reviewed.standing(row_id, name)
        print_line(f"what stands now: {_describe_decision(stands.decision, stands.gold) if stands else 'nothing'}")
    if kind is DecisionKind.FIX:
        if made.gold != gold:
            print_line(f"{gold} is written {made.gold}: its source has decimal commas")
        read = read_gold(subject, made.gold or "", reviewed.responses(row_key(subject)))
        if read.reading is not None:
            samples = f"; of {read.judged} samples {read.passes_after} pass, {read.passes_before} did"
            print_line(f"read as {read.reading}{samples if read.judged else ''}")
        if read.message is not None:
            print_line(f"note: {read.message}", errors)
    print_line(f"The next `{reviewed.curate_command}` of {reviewed.run_dir} acts on it.")


def default_reviewer() -> str:
    """Return the user's name in git, or else the login name."""
    try:
        answer = subprocess.run(["git", "config", "user.name"], capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return getpass.getuser()
    return answer.stdout.strip() or getpass.getuser()


def _describe_decision(decision: str, gold: str | None) -> str:
    return decision if gold is None else f"{decision} {gold}"


def find_row(run: Path | None, row: str, decisions: Path | None) -> tuple[ReviewedRun, str]:
    """Return the run that has a row, and the row's id."""
    from truegold.pipeline.review.reviewed_run import ReviewedRun

    if run is not None:
        reviewed = ReviewedRun.open(run, decisions)
        return reviewed, reviewed.resolve(row)

    def resolve(run_dir: Path) -> tuple[ReviewedRun, str]:
        reviewed = ReviewedRun.open(run_dir, decisions)
        return reviewed, reviewed.resolve(row)

    return first_that_has(runs_by_age(), resolve)


def runs_by_age() -> list[Path]:
    """Return the folders of the runs, the newest first. Raises InputError if there are none."""
    manifests = sorted(RUNS.glob("*/manifest.json"), key=lambda path: -path.stat().st_mtime)
    if not manifests:
        raise InputError(
            f"There is no run in {RUNS.absolute()}.",
            "Curate first: truegold curate RUN.yaml. A run elsewhere: --run PATH",
        )
    return [manifest.parent for manifest in manifests]


def first_that_has(run_dirs: Sequence[Path], look: Callable[[Path], T]) -> T:
    """Return the result of `look` for the first run that has the row.

    If no run has it, raise InputError. If a run rejected the row, or has rows of the same source, its error is raised.
    """
    from truegold.pipeline.report.explain import NoSuchRowError, RejectedError

    problems: list[InputError] = []
    for run_dir in run_dirs:
        try:
            return look(run_dir)
        except InputError as error:
            problems.append(error)
    for kind in (RejectedError, NoSuchRowError):
        for problem in problems:
            if isinstance(problem, kind):
                raise problem
    if len(problems) == 1:
        raise problems[0]
    raise InputError(
        f"None of {len(problems)} runs has such a row. The newest one: {problems[0].message}", problems[0].hint
    )
