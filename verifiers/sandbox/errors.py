"""Names what can go wrong for a user, in one vocabulary.

A bad row is data and never raises: it lands in a rejects file, a ledger or a verdict. These exceptions are for what
stops a command. Each carries one line that says what happened and, if there is one, the line that mends it; the command
line prints exactly that and exits with `exit_code`. Anything else that escapes is a bug, with its traceback.

    TruegoldError
    ├── ConfigError   2   the configuration or the command line
    ├── InputError    3   the data it was pointed at
    ├── SetupError    4   the machine: a package, a model, disk space, a server
    ├── GuardError    5   training stopped itself because going on would have been wrong
    └── Preempted     143 or 130   SIGTERM or SIGINT has ended a run, which goes on from there
"""

from __future__ import annotations

import signal


class TruegoldError(Exception):
    """A problem the user can act on: `message` says what happened, `hint` what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class ConfigError(TruegoldError):
    """The configuration or the command line is wrong."""

    exit_code = 2


class InputError(TruegoldError):
    """The data cannot be read or does not have the columns it needs."""

    exit_code = 3


class SetupError(TruegoldError):
    """The machine lacks something: a package, a model, a server, disk space."""

    exit_code = 4


class GuardError(TruegoldError):
    """A guard stopped the run because going on would have trained on something wrong."""

    exit_code = 5

    def __init__(self, message: str, hint: str | None = None, guard: str = "stop") -> None:
        super().__init__(message, hint)
        self.args = (message, hint, guard)
        self.guard = guard
        """The name of the guard that stopped it, as in the record of alarms."""


class Preempted(TruegoldError):
    """A signal asked the run to end: SIGTERM where the machine is needed (Slurm, a spot instance), SIGINT by Ctrl-C."""

    def __init__(self, message: str, hint: str | None = None, signal_number: int = signal.SIGTERM) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, int(signal_number))
        self.signal_number = int(signal_number)
        """The signal."""
        self.exit_code = 128 + self.signal_number


ERROR_TYPES: dict[str, type[TruegoldError]] = {
    cls.__name__: cls for cls in (TruegoldError, ConfigError, InputError, SetupError, GuardError, Preempted)
}
"""The classes by their names, by which an error travels from a child process to its parent."""
