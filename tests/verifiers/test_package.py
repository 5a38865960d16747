"""The package as a whole: what importing it loads, and the worked example."""

import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from truegold.verifiers import SetupError, Verifier, extras, resolve

ROOT = Path(__file__).parents[2]


def run(code: str, cwd: Path) -> str:
    """Run code in a new interpreter and return what it prints."""
    return subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=cwd, check=True, capture_output=True, text=True
    ).stdout


def test_importing_it_loads_nothing_heavy_and_starts_nothing(tmp_path):
    heavy = [
        "torch",
        "sympy",
        "math_verify",
        "pydantic",
        "polars",
        "numpy",
        "multiprocessing",
        "prefect",
        "asyncio",
        "re2",
    ]
    code = f"import sys, truegold.verifiers as v; v.resolve('math'); print([m for m in {heavy} if m in sys.modules])"
    assert run(code, tmp_path) == "[]\n"


def test_integrals_alone_need_sympy_and_sympy_never_enters_the_process(tmp_path):
    code = (
        "import sys; from truegold.verifiers import equivalent; from truegold.verifiers.math import worker\n"
        "assert equivalent('0.5', gold='1/2').passed and worker._worker.child is None\n"
        "assert equivalent('1+x', gold='x+1').passed and equivalent('1-cos(x)^2', gold='sin(x)^2').passed\n"
        "assert worker._worker.child is None\n"
        "assert equivalent('\\\\int_0^1 (1-x) dx', gold='\\\\int_0^1 x dx').passed\n"
        "assert worker._worker.child is not None\n"
        "print('sympy' in sys.modules)"
    )
    assert run(code, tmp_path) == "False\n"


def test_built_ins_fulfil_the_contract():
    for name in ("choice", "exact", "format", "length", "math", "numeric", "regex"):
        assert isinstance(resolve(name), Verifier)


def test_the_example_verifier():
    unit_price = resolve(f"{ROOT / 'examples' / 'custom_verifier.py'}:unit_price")
    assert unit_price("\\boxed{$2.5 per kg}", "2.50 USD/kg").score == 1.0
    assert unit_price("\\boxed{$2.5 per g}", "2.50 USD/kg").score == 0.5
    assert unit_price("no idea", "2.50 USD/kg").score == 0.0
    assert unit_price("\\boxed{$2.5 per kg}", "cheap").score is None


def test_the_example_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "custom_verifier.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1.0", "0.5", "0.0"]


@pytest.mark.parametrize(
    ("torch", "torchvision", "is_refused"),
    [
        ("2.13.0+cpu", "0.28.0", True),
        ("2.13.0", "0.28.0+cpu", True),
        ("2.13.0+cpu", "0.28.0+cpu", False),
        ("2.13.0", "0.28.0", False),
        ("2.13.0+cpu", None, False),
    ],
)
def test_a_torchvision_of_another_torch_is_one_line(
    torch: str, torchvision: str | None, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        known = {"torch": torch, "torchvision": torchvision}[name]
        if known is None:
            raise PackageNotFoundError(name)
        return known

    monkeypatch.setattr(extras, "version", version)
    with pytest.raises(SetupError, match="pip uninstall") if is_refused else nullcontext():
        extras.check_torch_builds()
