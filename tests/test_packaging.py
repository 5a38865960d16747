"""The house: packages are complete, floors import downwards only, and heavy packages stay out of where they are not
needed."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ["verifiers", "pipeline", "synth", "train", "flows"]

HEAVY = {
    "prefect": {"flows"},
    "torch": {"train", "pipeline/engines"},  # for types there
    "deepspeed": {"train", "flows"},  # the doctor looks at its accelerator
    "vllm": {"pipeline/engines"},
    "transformers": {"train", "pipeline/engines"},
}


def source_files() -> list[Path]:
    return [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def imported_modules(path: Path, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_every_folder_with_code_is_a_package_in_pyproject() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    present = {"truegold." + ".".join(path.parent.relative_to(ROOT).parts) for path in source_files()}
    assert listed == present


def test_static_tools_see_every_floor() -> None:
    links = {path.name: path.resolve() for path in (ROOT / "typings" / "truegold").iterdir()}
    assert links == {floor: ROOT / floor for floor in FLOORS}


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_floor_imports_only_itself_and_the_floors_below(path: Path) -> None:
    floor = path.relative_to(ROOT).parts[0]
    allowed = FLOORS[: FLOORS.index(floor) + 1]
    for module in imported_modules(path):
        if module.startswith("truegold."):
            assert module.split(".")[1] in allowed, f"{path.name} imports {module}"


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_heavy_packages_are_imported_where_they_belong(path: Path) -> None:
    place = str(path.relative_to(ROOT).parent)
    for module in imported_modules(path):
        homes = HEAVY.get(module.split(".")[0])
        assert homes is None or any(place.startswith(home) for home in homes), f"{place} imports {module}"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("truegold.verifiers", {"torch", "sympy", "math_verify", "pydantic", "polars", "numpy"}),
        ("truegold.pipeline.profile.stage", {"torch", "transformers", "vllm", "prefect"}),
        ("truegold.flows.cli", {"torch", "transformers", "vllm", "prefect", "polars", "sympy"}),
        ("truegold.flows.plan", {"torch", "transformers", "vllm", "prefect", "deepspeed"}),
    ],
)
def test_importing_stays_light_and_works_from_anywhere(tmp_path: Path, module: str, unwanted: set[str]) -> None:
    script = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not unwanted & set(json.loads(done.stdout))


@pytest.mark.parametrize("package", ["truegold.verifiers", "truegold.pipeline.engines"])
def test_public_names_are_sorted_and_exist(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name)


def test_our_folder_does_not_shadow_the_verifiers_package(tmp_path: Path) -> None:
    """Stages run in processes of their own from wherever the user stands, our repository root included."""
    script = "import importlib.util; spec = importlib.util.find_spec('verifiers'); print(spec and spec.origin)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert str(ROOT) not in done.stdout
