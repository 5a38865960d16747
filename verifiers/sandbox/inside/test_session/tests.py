"""Plays the role `tests`: runs test code here, while the solution runs in a partner process (`serve.py`).

    {"code": "assert add(1, 2) == 3", "entry_point": "add", "modules": [], "prelude": "",
     "codecs": {}, "stop_first": true, "seed": 17, "numpy": false, "skipped": [], "probe": ""}

modules: further names under which the code imports the solution. skipped: tests that are skipped for every program.
continued: variables of the prelude that belong to the program (`suite/imports.py`). probe: the kind of object that
replaces the solution, if there is no program (below). The answer consists of the lines of `test_code/test_run.py`
and of these:

    {"not_loaded": [type, message]}     the program failed before any test
    {"bad_suite": [type, message]}      the test code or its prelude fails, and the solution is not the cause
    {"cannot_isolate": why}             the test code has to share a process with the solution; ignore other lines
    {"gone": why}                       the solution's process ended or sent an invalid answer; later tests failed

Expected values are only in this process. The solution's names stand for remote objects here (`session.py`). A name that
the test code does not define is looked up in this way:

    assert add(1, 2) == 3            a remote object for the solution's `add`
    from solution import add         the same object; `main`, `your_module`, `my_solution` ... mean the solution too
    math.isclose(add(1, 2), 3)       the module `math`, even if the solution defines `math`
    isclose(add(1, 2), 3)            `math.isclose` (`library_functions.py`)
    assert sum(10, 15) == 6          the built-in `sum`, unless it is the function under test

The entry point is the function under test. Without an entry point, a built-in function is under test if every assertion
calls it and no name is undefined. In `r = root(2)` and `assert abs(r - 1.41) < 0.01` the name `root` is undefined. So
`root` is the solution's, and `abs` is Python's.

Without a program, the test code is run to find tests whose outcome is the same for every program:

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

import ast
import builtins
import os
import sys
from functools import partial
from types import ModuleType
from typing import NoReturn

from ..program import PRELUDE_FILE, describe_error, run_source
from ..test_code import library_functions
from ..test_code.library_functions import SolutionFinder
from ..test_code.report import Report, SolutionWatch, describe_failure
from ..test_code.statements import FILE, Plan, plan_units
from ..test_code.test_run import run_code, seed_randomness
from ..wire.encoding import from_json, write_result
from ..wire.value_types import Value
from .remote_objects import CannotIsolate
from .session import ArgumentUse, NoSuchName, NotLoaded, Session, SolutionGone
from .shared_objects import shared_module
from .surroundings import TEST_MODULE, import_part, import_parts, use_figures_of_solution

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

    stand_in: the kind of object that each name gets: "use" (an object that notices every use), "function" (a function
    that notices calls) or "None" (None itself).
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
        """Whether no earlier test has used the solution. Later tests may depend on such a test."""

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


def run_tests(payload: bytes) -> None:
    """Run the test code of the payload, a line of JSON."""
    request = from_json(payload, len(payload))
    seed_randomness(request["seed"])
    # The solution writes to the shared folder and may replace links in it. So no module is loaded from there.
    sys.path[:] = [os.path.realpath(path) for path in sys.path if path]
    module = ModuleType(TEST_MODULE)
    module.__file__ = os.path.abspath(FILE)
    sys.modules[TEST_MODULE] = module
    try:
        plan = plan_units(request["code"])
        list(import_parts(plan.tree, ast.walk(plan.tree)))
        run_source(request["prelude"], PRELUDE_FILE, module.__dict__)
        for name in request.get("continued", ()):
            module.__dict__.pop(name, None)
    except BaseException as error:
        write_result({"bad_suite": describe_error(error)[:2]})
        return
    if request.get("probe"):
        probe = ProbeReport(ProbeSession(request["probe"]))
        _run_against_solution(request, plan, module.__dict__, probe.session, probe)
        probe.finish()
        return
    session = Session(module.__dict__, request["codecs"], _uses_numpy(request), ArgumentUse(plan.tree, FILE), plan.tree)
    report = Report(session, request["stop_first"], request.get("skipped", ()))
    try:
        session.wait_until_loaded()
        use_figures_of_solution(request["code"], session.library_function)
        _run_against_solution(request, plan, module.__dict__, session, report)
    except NotLoaded as error:
        write_result({"not_loaded": error.args[0]})
        report.total = max(report.total, len(plan.units), 1)
    except (SolutionGone, CannotIsolate):
        report.total += 1
    if session.isolation_problem is not None:
        write_result({"cannot_isolate": session.isolation_problem})
    elif session.broken_reason is not None:
        write_result({"gone": session.broken_reason})
    report.finish()


def _uses_numpy(request: dict[str, Value]) -> bool:
    code = request["code"]
    is_named = any(word in code for word in _WITH_NUMPY) or "numpy" in request["prelude"]
    return is_named or request.get("numpy", False) or library_functions.may_use_numpy(code)


_WITH_NUMPY = "numpy np. pandas matplotlib scipy torch cv2 PIL sklearn seaborn".split()
"""Words of test code that works with arrays."""


def _run_against_solution(
    request: dict[str, Value], plan: Plan, namespace: dict[str, Value], session: Session | ProbeSession, report: Report
) -> None:
    entry_point = request["entry_point"]
    names = SolutionNames(session, plan.tree, entry_point)
    namespace["__builtins__"] = names
    # The finder comes last, so that installed modules are found under their own names.
    make_module = partial(SolutionModule, names=names, session=session)
    sys.meta_path.append(SolutionFinder(make_module, request.get("modules", ()), entry_point, session.run_again))
    sys.modules["__main__"] = solution = SolutionModule("__main__", names, session)
    # `patch(f"{__name__}.helper")` means the solution's helper. Names that the test code does not contain, such as a
    # runner's `setUpModule`, never mean the solution's.
    namespace["__getattr__"] = lambda name: getattr(solution if name in request["code"] else object, name)
    candidate = None
    if entry_point:
        try:
            candidate = names["candidate"] = session.look_up_entry(entry_point)
        except (SolutionGone, CannotIsolate):
            raise
        except BaseException as error:
            report.total = max(len(plan.units), 1)
            missing = isinstance(error, NoSuchName)
            report.add_failure("entry point", None, NameError(str(error)) if missing else error)
            return
        if entry_point.isidentifier():
            names[entry_point] = candidate
    elif plan.check is not None:
        write_result({"bad_suite": ["ValueError", f"{plan.check}(candidate) needs an entry point"]})
        return
    run_code(plan, request["code"], namespace, candidate, report)


_MODULE_DATA = frozenset({"__version__", "__author__"})
"""Names with two underscores that are ordinary variables of a program."""


class SolutionNames(dict[str, Value]):
    """The built-in names of test code, and after them the solution's. It is the `__builtins__` of a namespace.

    A name that is not built in is searched in this order: modules that test code and solution share, library functions,
    names of the solution, and built-in functions that were removed because they may be under test.
    """

    def __init__(self, session: Session | ProbeSession, tree: ast.Module, entry_point: str | None) -> None:
        super().__init__(vars(builtins))
        self._session = session
        self._modules = _names_of_modules(tree)
        self.library = library_functions.library_names(tree, entry_point)
        for name in tested_builtins(tree, entry_point):
            self.pop(name, None)

    def __missing__(self, name: str) -> Value:
        return self.find(name)

    def find(self, name: str, of_solution: bool = False) -> Value:
        """Return the object of a name that is not built in. Raises KeyError if the name is not defined.

        of_solution: whether the name comes from `solution.name`. Library functions then come last.
        """
        if name.startswith("__") and name not in _MODULE_DATA:
            raise KeyError(name)
        shared = self._shared_module(name) or (None if of_solution else self._library_function(name))
        if shared is not None:
            return shared
        try:
            return self._solution_value(name)
        except NoSuchName:
            if (known := self._library_function(name) or getattr(builtins, name, None)) is not None:
                return known
            raise KeyError(name) from None

    def _shared_module(self, name: str) -> ModuleType | None:
        """Return the module of this name, or None if it lacks an attribute that the test code uses."""
        try:
            module = shared_module(name) if name in self._modules else None
        except LookupError:
            return None
        # `datetime.now()` needs the class `datetime`, which the solution imports too.
        has_all = module is not None and all(hasattr(module, attribute) for attribute in self._modules[name])
        return module if has_all else None

    def _library_function(self, name: str) -> Value | None:
        """Return the library function of this name and make it a built-in name, or return None."""
        if name not in self.library:
            return None
        try:
            self[name] = library_functions.library_function(name)
        except LookupError:
            return None
        return self[name]

    def _solution_value(self, name: str) -> Value:
        """Return the solution's object of a name. Functions and modules are cached. Raises NoSuchName."""
        value = self._session.look_up(name)
        # Without a program the object is callable and must not be inspected.
        if callable(value) or isinstance(value, ModuleType):
            self[name] = value
        for attribute in self._modules.get(name, ()) if not callable(value) and isinstance(value, ModuleType) else ():
            import_part(value, attribute)
        return value


class SolutionModule(ModuleType):
    """The module that `import solution` returns."""

    def __init__(self, name: str, names: SolutionNames, session: Session | ProbeSession) -> None:
        super().__init__(name)
        self.__dict__["_truegold"] = (names, session)
        self.__path__ = []

    def __getattr__(self, name: str) -> Value:
        names, session = self.__dict__["_truegold"]
        if name == "__all__":
            return [name for name in session.public_names() if _may_be_imported(name, names)]
        try:
            return names.find(name, of_solution=True)
        except KeyError:
            raise AttributeError(f"the program does not define {name!r}") from None


def _may_be_imported(name: str, names: SolutionNames) -> bool:
    """Return whether `from solution import *` may import a name.

    The import must not replace a name of the test code. It must not replace a function of Python or of a library,
    unless that function is under test.
    """
    taken = (vars(builtins).keys() & names.keys()) | names.library | vars(sys.modules[TEST_MODULE]).keys()
    return name.isidentifier() and name not in taken


def tested_builtins(tree: ast.Module, entry_point: str | None) -> set[str]:
    """Return the built-in names that mean a function of the solution: `sum` of `assert sum(10, 15) == 25`."""
    if entry_point is not None:
        return {entry_point} & vars(builtins).keys()
    called = [set(library_functions.called_names(node)) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    if not called or library_functions.unknown_names(tree):
        return set()
    innermost = [_innermost_names(node) for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return set.intersection(*called, *innermost)


def _innermost_names(tree: ast.AST) -> set[str]:
    """Return the functions whose arguments contain no call: `f` of `sorted(f(1))`."""
    innermost = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            below = [each for argument in node.args for each in ast.walk(argument)]
            if not any(isinstance(each, ast.Call) for each in below):
                innermost.add(node.func.id)
    return innermost


def _names_of_modules(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names of which only attributes are used, with these attributes: {"math": {"pi"}} for `math.pi`."""
    attribute_of = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.setdefault(node.id, set()).add(attribute_of.get(id(node)))
    return {name: {str(each) for each in attributes} for name, attributes in used.items() if None not in attributes}
