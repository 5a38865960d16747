"""Defines errors that a user can act on.

These exceptions stop a command. Each has a message that says what happened, and may have a hint that says what to do.
The command line prints both and exits with `exit_code`. Any other exception is a bug and is shown with its traceback.
A bad row does not stop a command: it goes to a rejects file, a ledger or a verdict.

    error             exit_code    raised for
    TruegoldError
    ├── ConfigError   2            a mistake in the configuration or on the command line
    ├── InputError    3            data that cannot be used
    ├── SetupError    4            something that the machine lacks: a package, a model, disk space, a server
    ├── GuardError    5            training that failed one of its own checks (a guard)
    └── Preempted     143 or 130   a run that SIGTERM or SIGINT ended; starting it again resumes it
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
    """The data cannot be read or lacks columns."""

    exit_code = 3


class SetupError(TruegoldError):
    """The machine lacks something: a package, a model, a server, disk space."""

    exit_code = 4


class GuardError(TruegoldError):
    """A guard, which is a check during training, stopped the run."""

    exit_code = 5

    def __init__(self, message: str, hint: str | None = None, guard: str = "stop") -> None:
        super().__init__(message, hint)
        self.args = (message, hint, guard)
        self.guard = guard
        """The name of the guard."""


class Preempted(TruegoldError):
    """A signal asked the run to end: SIGTERM from Slurm or a spot instance, SIGINT from Ctrl-C."""

    def __init__(self, message: str, hint: str | None = None, signal_number: int = signal.SIGTERM) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, int(signal_number))
        self.signal_number = int(signal_number)
        """The number of the signal."""
        self.exit_code = 128 + self.signal_number


ERROR_TYPES: dict[str, type[TruegoldError]] = {
    cls.__name__: cls for cls in (TruegoldError, ConfigError, InputError, SetupError, GuardError, Preempted)
}
"""Error classes by name. A child process sends the name of an error to its parent."""
