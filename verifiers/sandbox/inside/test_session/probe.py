"""Runs test code without a program, to find tests whose outcome is the same for every program.

    @unittest.skip("slow")
    def test_large(self): ...                      {"untouched": ["T.test_large", "skipped", "slow", "1"]}
    def test_sum():
        for a, b, c in []: assert add(a, b) == c   "idle", "line 2 asserts nothing"
    def test_on(path): assert add(1, 2) == 3       "failed", "the fixture path is not there"
    def test_one(): assert add(1, 0) == 1          (nothing)

Each name of the solution stands for an object whose first use ends the test. The events before this first use do not
depend on the program.
"""

from __future__ import annotations

from typing import NoReturn

from ..test_code.report import Report, SolutionWatch, describe_failure
from ..wire.encoding import write_result
from ..wire.value_types import Value

_SPECIAL_METHODS = """
__abs__ __add__ __aenter__ __aiter__ __and__ __await__ __bool__ __bytes__ __call__ __complex__ __contains__
__delattr__ __delitem__ __dir__ __enter__ __eq__ __float__ __floordiv__ __format__ __ge__ __getitem__ __gt__ __hash__
__index__ __int__ __invert__ __iter__ __le__ __len__ __lt__ __matmul__ __mod__ __mro_entries__ __mul__ __ne__ __neg__
__next__ __or__ __pos__ __pow__ __radd__ __rand__ __repr__ __reversed__ __rfloordiv__ __rmatmul__ __rmod__ __rmul__
__ror__ __round__ __rpow__ __rsub__ __rtruediv__ __rxor__ __setattr__ __setitem__ __str__ __sub__ __truediv__ __xor__
""".split()
"""Special methods by which test code uses an object without naming an attribute."""


class Touched(BaseException):
    """The test code used an object of the solution."""


class ProbeSession(SolutionWatch):
    """A stand-in for a solution, which defines every name.

    stand_in: the kind of object that each name gets. "use" is an object that notices every use, "function" a function
    that notices calls, and "None" is None.
    """

    touched = False
    """Whether an object of the solution was used in the current test."""

    def __init__(self, stand_in: str) -> None:
        self._stand_in = stand_in

    def _use(self, *args: Value, **kwargs: Value) -> None:
        self.touched = True
        raise Touched

    run_again = _use

    def look_up(self, name: str) -> Value:
        """Return the object that stands for a name of the solution."""
        if self._stand_in == "None":
            return None
        return self._use if self._stand_in == "function" else _NAME_CLASS(self)

    look_up_entry = look_up

    def public_names(self) -> list[str]:
        """Return no names, because they depend on the solution."""
        return []


def _touch(name: Value, *args: Value, **kwargs: Value) -> NoReturn:
    object.__getattribute__(name, "session").touched = True
    raise Touched


def _ask(name: Value, attribute: str) -> NoReturn:
    if object.__getattribute__(name, "session").is_collecting:
        raise AttributeError(attribute)
    _touch(name)


class _Name:
    """An object for a name of the solution."""

    def __init__(self, session: ProbeSession) -> None:
        object.__setattr__(self, "session", session)


_NAME_CLASS: type[_Name] = type("Name", (_Name,), {**dict.fromkeys(_SPECIAL_METHODS, _touch), "__getattribute__": _ask})


class ProbeReport(Report):
    """Writes the outcome of each test that did not use the solution."""

    def __init__(self, session: ProbeSession) -> None:
        super().__init__(session, False)
        self.session = session
        self._is_first = True
        """Whether no earlier test has used an object of the solution. A later test may depend on such an earlier
        test."""

    def begin(self) -> None:
        """Note that a test begins."""
        super().begin()
        self._is_first = self._is_first and not self.session.touched
        self.session.touched = False

    def expect_failure(self, test: str) -> None:
        """Report that the suite expects a test to fail."""
        self._write(test, "skipped", "it is expected to fail")

    def add_success(self, test: str, first_assertion: int | None = None) -> None:
        """Report a test that passed."""
        if first_assertion is not None and not self._held:
            self._write(test, "idle", f"line {first_assertion} asserts nothing")
        elif self._is_first:
            self._write(test, "passed", "it uses nothing of the program")

    def add_failure(self, test: str, line: str | None, error: BaseException | str | None) -> None:
        """Report a test that failed."""
        fixture = getattr(error, "argname", None)
        if fixture is not None and type(error).__name__ == "FixtureLookupError":
            self._write(test, "failed", f"the fixture {fixture} is not there")
        elif self._is_first and not isinstance(error, Touched):
            self._write(test, "failed", ": ".join(describe_failure(error)))

    def add_skip(self, test: str, reason: str, tests: int = 1) -> None:
        """Report skipped tests."""
        self._write(test, "skipped", reason, tests)

    def _write(self, test: str, outcome: str, why: str, tests: int = 1) -> None:
        if not self.session.touched:
            write_result({"untouched": [test, outcome, why, str(tests)]})
