"""The command line `truegold`.

Exit codes:

    0   done                                           6   a verifier breaks its contract
    1   a bug, with its traceback                      7   a verifier or a judge makes more errors than allowed
    2   a mistake in the configuration or command      8   a data set fails a check of `truegold gate`
    3   bad data                                     130   interrupted (SIGINT)
    4   something that the machine lacks             143   preempted (SIGTERM)
    5   a training guard stopped the run
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version as installed_version
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from truegold.flows.cli.data_commands import init, look
from truegold.flows.cli.doctor import doctor
from truegold.flows.cli.file_commands import decontaminate, dedup, flag, rescore, verify
from truegold.flows.cli.given_options import ONE_PATH, CarefulCommand
from truegold.flows.cli.look_commands import clean, diff, explain, report, template
from truegold.flows.cli.options import describe_extra, describe_unknown, options_of
from truegold.flows.cli.review_commands import decide, review
from truegold.flows.cli.run_commands import PHASE_COMMANDS, demo, part, phase_command, plan, push, train
from truegold.flows.cli.set_commands import export, gate, testcases_app
from truegold.flows.cli.verifier_commands import serve_verifier, verifiers_app
from truegold.flows.console import errors, print_line, with_options_of
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.verifiers import TruegoldError
from truegold.verifiers.extras import missing_extra
from truegold.verifiers.sandbox.errors import Preempted


class PlainGroup(TyperGroup):
    """The group of all commands. It describes mistakes on the command line in plain words."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the command line names."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            if "pydantic" in sys.modules:  # Otherwise the words are Typer's own.
                from truegold.pipeline.config.mistakes import plain_words

                error.message = plain_words(error.message)
            if (asked := sys.argv[1:2]) and "No such command" in error.message and asked[0] in OTHER_NAMES:
                error.message = f"No such command {asked[0]!r}. Type: truegold {OTHER_NAMES[asked[0]]}"
            group = getattr(self.commands.get("".join(asked)), "commands", {})
            if group and "No such command" in error.message and "Did you mean" not in error.message:
                error.message += f" There are: {', '.join(f'truegold {asked[0]} {name}' for name in group)}"
            unknown = str(getattr(error, "option_name", "")) if "No such option" in error.message else ""
            if unknown and asked and (here := describe_unknown(unknown, self._command(ctx), sys.argv[1:], self._all())):
                error.message, error.possibilities = f"No such option: {unknown}. {here}", []
            option = next(iter(getattr(getattr(error, "param", None), "opts", ())), "")
            if option in ("--data", "--input") and (files := list(filter(os.path.isfile, sys.argv[2:]))):
                error.message += f"The file is named by this option: {option} {files[0]}"
            if error.message.endswith(" is not readable."):
                error.message += " Allow it: chmod u+r FILE"
            is_extra = "unexpected extra argument" in error.message
            if is_extra and "--set" in self._options(ctx) and (how := describe_extra(sys.argv[1:])) is not None:
                error.message += f". {how}"
            elif is_extra and "--run" in self._options(ctx):
                error.message += f". The run is named by its option: truegold {sys.argv[1]} ... --run RUN"
            elif is_extra and all(map(os.path.exists, sys.argv[2:4])):
                error.message += f". {ONE_PATH}"
            raise
        except TruegoldError as error:
            options = self._options(ctx)
            error.message = with_options_of(options, error.message)
            error.hint = error.hint and with_options_of(options, error.hint)
            if "does not exist" in error.message and "--set" in options:
                error.hint = describe_extra(sys.argv[1:3]) or error.hint
            error.args = (error.message, error.hint)
            raise

    def _command(self, ctx: Any) -> Any:
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        return getattr(command, "commands", {}).get((sys.argv[2:] or [""])[0], command)

    def _options(self, ctx: Any) -> set[str]:
        return options_of(self._command(ctx))

    def _all(self) -> dict[str, Any]:
        """Return every command by its name, such as `testcases vet`."""
        below = {
            f"{name} {part}": each
            for name, c in self.commands.items()
            for part, each in getattr(c, "commands", {}).items()
        }
        return {**self.commands, **below}


UsageError: Any = typer.BadParameter.__base__
"""The class of mistakes on the command line, which has no public name."""

app = typer.Typer(
    cls=PlainGroup,
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

RUN, LOOK, FILES, SETUP = "A run", "Look at a run", "Work on one file", "Verifiers and this machine"
"""The groups of commands, in the order of the help."""

INTERRUPTED, PREEMPTED = 130, 143
OTHER_NAMES = {
    **{"help": "--help, or truegold COMMAND --help", "version": "--version", "serve": "serve-verifier"},
    **{"ui": "review RUN", "leaks": "decontaminate", "judge": "verify", "check": "verifiers check, or truegold gate"},
}
"""Names that other programs give to commands, and what to type here."""
RESUMED = ("train", "demo", "flag", "testcases", "part")
"""Commands that keep their finished stages when they are interrupted. The commands of the phases do so too."""

COMMANDS: tuple[tuple[str, tuple[Callable[..., None], ...]], ...] = (
    (RUN, (train, push, init, plan, demo, part)),
    (LOOK, (report, explain, diff, review, decide, clean, template)),
    (FILES, (look, verify, flag, dedup, decontaminate, export, rescore, gate)),
    (SETUP, (doctor, serve_verifier)),
)
"""The commands of each group, in the order of the help. The code below adds phases, `testcases` and `verifiers`."""


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print_line(f"truegold {installed_version('truegold')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Makes sure gold is true before anyone spends GPU hours on it."""


for _name, (_until, _help) in PHASE_COMMANDS.items():
    app.command(_name, cls=CarefulCommand, help=_help, rich_help_panel=RUN)(phase_command(_until))
for _group, _commands in COMMANDS:
    for _command in _commands:
        app.command(cls=CarefulCommand, rich_help_panel=_group)(_command)
app.add_typer(testcases_app, name="testcases", rich_help_panel=FILES)
app.add_typer(verifiers_app, name="verifiers", rich_help_panel=SETUP)


def main() -> None:
    """Run the command line. Errors that the user can act on are one line; bugs have a traceback."""
    is_preempted = Event()

    def interrupt(signum: int, frame: object) -> None:
        is_preempted.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    # A shell script ignores SIGINT in the processes that it starts with `&`.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with disk_errors_reported(Path.cwd()):
            app()
    except Preempted as error:
        errors.print(str(error), markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except TruegoldError as error:
        _fail(str(error), error.exit_code)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        _fail(str(missing), missing.exit_code)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            keeps_stages = bool({*RESUMED, *PHASE_COMMANDS} & set(sys.argv[1:2]))
            how = "preempted" if is_preempted.is_set() else "interrupted"
            errors.print(f"{how}; the same command {'goes on from here' if keeps_stages else 'begins anew'}.")
            sys.exit(PREEMPTED if is_preempted.is_set() else INTERRUPTED)
        raise


def _fail(message: str, code: int) -> None:
    # The message may quote data with control characters, which a terminal would obey.
    shown = "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in message)
    errors.print(f"error: {shown}", markup=False, soft_wrap=True, style="red")
    sys.exit(code)
