"""How the product is built: floors import downwards only, nothing imports in a circle, roots are short, names speak.

`docs/architecture.md` describes what is pinned here, `CONTRIBUTING.md` the rules for names and sentences.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import (
    FLOORS,
    ROOT,
    code_lines,
    find_circle,
    floors,
    folder_graphs,
    import_graph,
    source_files,
    syntax_tree,
)
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT_LIMITS = {"pipeline": (30, 5), "train": (10, 5)}
"""How many entries the root of a floor may have, and how many of them may be modules."""

HEAVY = {
    "prefect": {"flows"},
    "torch": {"train", "pipeline/engines", "verifiers/adapters/openrlhf.py", "verifiers/adapters/nemo_rl.py"},
    "deepspeed": {"train", "flows/cli/doctor.py"},
    "vllm": {"pipeline/engines"},
    "transformers": {"train", "pipeline/engines"},
}
"""Where packages may be imported that take seconds. (The doctor looks at DeepSpeed's accelerator; OpenRLHF
and NeMo-RL read tensors.)"""

CODE_LINES, FILES = 81_755, 508
"""The size of the product: lines of code without blank lines, comments and docstrings, and files. A change that has to
raise them says what for in its commit message."""
STAGES = (
    *("ingest", "clean", "decontaminate", "dedup", "verify", "flag", "profile", "select"),
    *("report", "export", "review"),
)
STAGE_NAMES = 5
"""How many names the stages of the pipeline import from each other."""
PIPELINE_FLOORS = 10
SAME_BASENAME = 3
"""How many files may have one name, those aside that every folder of their kind has."""
COMMON_BASENAMES = {"__init__.py", "stage.py", "base.py"}
BANNED_TURNS = re.compile(r"\b(?:whoever|whatever|what (?:becomes|became|comes|came) of)\b", re.IGNORECASE)

EMPTY_NAMES = {
    *("found", "place", "places", "at", "one", "own", "wanted", "said", "given", "of", "told", "number", "thing"),
    *("stuff", "offered", "theirs", "ours", "results", "items"),
}
"""Names that do not say what they hold."""


def benchmark_trees() -> Iterator[tuple[Path, ast.Module]]:
    """Yield the path of every file of the benchmarks and its syntax tree, but for the rows that others have written."""
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        if "kept" not in path.parts:
            yield path.relative_to(ROOT), syntax_tree(path)


def syntax_trees() -> Iterator[tuple[Path, ast.Module]]:
    """Yield the path of every file of the product, from the root of the repository, and its syntax tree."""
    for path in source_files():
        yield path.relative_to(ROOT), syntax_tree(path)


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every variable, attribute, argument, function and class that a file makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def without_docstring(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every public function, class and method that has no docstring."""
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
        if not ast.get_docstring(node) and not decorators & {"overload", "setter", "override"}:
            yield node.lineno, node.name
        if isinstance(node, ast.ClassDef):
            yield from without_docstring(node.body)


def test_no_file_imports_itself_by_way_of_others() -> None:
    assert find_circle(import_graph()) == []


def test_the_entries_of_every_folder_import_each_other_in_one_direction() -> None:
    circles = {folder: find_circle(graph) for folder, graph in folder_graphs(import_graph()).items()}
    assert {folder: circle for folder, circle in circles.items() if circle} == {}


def test_a_floor_imports_only_itself_and_the_floors_below() -> None:
    upward = [
        f"{importer} imports {imported}"
        for importer, targets in import_graph().items()
        for imported in targets
        if FLOORS.index(imported.split(".")[1]) > FLOORS.index(importer.split(".")[1])
    ]
    assert upward == []


def test_the_house_does_not_grow() -> None:
    paths = source_files()
    assert sum(map(code_lines, paths)) <= CODE_LINES
    assert len(paths) <= FILES


def test_stages_stand_side_by_side() -> None:
    names = set()
    for path, tree in syntax_trees():
        if path.parts[0] != "pipeline" or path.parts[1] not in STAGES:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("truegold.pipeline."):
                stage = str(node.module).split(".")[2]
                if stage in STAGES and stage != path.parts[1]:
                    names.update((path.parts[1], stage, alias.name) for alias in node.names)
    assert len(names) <= STAGE_NAMES, names
    assert max(floors(folder_graphs(import_graph())["truegold.pipeline"]).values()) <= PIPELINE_FLOORS


def test_few_files_share_a_name() -> None:
    counts = Counter(path.name for path in source_files())
    assert [name for name, count in counts.items() if count > SAME_BASENAME and name not in COMMON_BASENAMES] == []


def test_a_public_class_has_its_name_alone() -> None:
    homes: dict[str, list[str]] = {}
    for path, tree in syntax_trees():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_opens_with_a_question_word() -> None:
    opening = re.compile(r"(?:What|Which|Whether|Who|Whose)\b")
    assert [str(path) for path, tree in syntax_trees() if opening.match(ast.get_docstring(tree) or "")] == []


def test_changed_lines_are_in_plain_words() -> None:
    """Lines changed since the last commit but one, and those not committed yet."""
    command = ["git", "diff", "-U0", "HEAD~1", "--", *FLOORS, "docs", "README.md", "CONTRIBUTING.md"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git does not say what was changed: {error}")
    added = [line for line in done.stdout.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert [line for line in added if BANNED_TURNS.search(line)] == []


@pytest.mark.parametrize("floor", ROOT_LIMITS)
def test_the_root_of_a_floor_is_short(floor: str) -> None:
    entries = [path for path in (ROOT / floor).iterdir() if path.name != "__pycache__"]
    most_entries, most_modules = ROOT_LIMITS[floor]
    assert len(entries) <= most_entries
    assert len([path for path in entries if path.suffix == ".py"]) <= most_modules


def test_heavy_packages_are_imported_where_they_belong() -> None:
    misplaced = []
    for path, tree in syntax_trees():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                homes = HEAVY.get(name.split(".")[0])
                if homes is not None and not any(str(path).startswith(home) for home in homes):
                    misplaced.append(f"{path} imports {name}")
    assert misplaced == []


def test_names_say_what_they_hold() -> None:
    empty = [
        f"{path}:{line} {name}"
        for path, tree in (*syntax_trees(), *benchmark_trees())
        for line, name in bound_names(tree)
        if name.strip("_").lower() in EMPTY_NAMES
    ]
    assert empty == []


def test_whatever_is_public_has_a_docstring() -> None:
    trees = [*syntax_trees(), *benchmark_trees()]
    bare = [f"{path}:{line} {name}" for path, tree in trees for line, name in without_docstring(tree.body)]
    assert bare == []
    assert [str(path) for path, tree in trees if not ast.get_docstring(tree)] == []


def test_no_conditional_expression_is_nested() -> None:
    nested = [
        f"{path}:{node.lineno}"
        for path, tree in (*syntax_trees(), *benchmark_trees())
        for node in ast.walk(tree)
        if isinstance(node, ast.IfExp)
        if any(isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node)
    ]
    assert nested == []


def test_the_package_is_made_of_the_floors() -> None:
    links = {path.name: path.resolve() for path in (ROOT / "src" / "truegold").iterdir()}
    assert links == {floor: ROOT / floor for floor in FLOORS}


def test_the_repository_is_on_no_import_path() -> None:
    """There `import verifiers` and `import train` would be the product's, and not what users have installed."""
    assert ROOT not in {Path(folder or ".").resolve() for folder in sys.path}
    unsafe = re.compile(r"""sys\.executable,\s*["'](?:-c|-m["'], ["']truegold)""")
    scripts = [path for folder in ("tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in scripts if unsafe.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("truegold.pipeline", {"torch", "polars", "pydantic"}),
        ("truegold.pipeline.profile", {"torch", "transformers", "vllm", "prefect"}),
        ("truegold.flows.cli", {"torch", "transformers", "vllm", "prefect", "polars", "sympy", "pydantic"}),
        ("truegold.flows.plan", {"torch", "transformers", "vllm", "prefect", "deepspeed"}),
    ],
)
def test_importing_stays_light_and_works_from_anywhere(tmp_path: Path, module: str, unwanted: set[str]) -> None:
    script = f"import sys, json, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert not unwanted & set(json.loads(done.stdout))


def test_the_repository_does_not_shadow_a_package_named_verifiers() -> None:
    """Stages run in child processes from the user's working directory, which may be the root of the repository."""
    script = "import importlib.util; spec = importlib.util.find_spec('verifiers'); print(spec and spec.origin)"
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert str(ROOT) not in done.stdout


def test_the_lock_is_what_the_extras_ask_for() -> None:
    """What is set up from the lock and what pip resolves from the extras are held by the same bounds."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lines = (ROOT / "requirements" / "cpu-lock.txt").read_text().splitlines()
    locked = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    wrong = [
        f"{extra}: {requirement} but {locked[canonicalize_name(requirement.name)]}"
        for extra, names in extras.items()
        for requirement in map(Requirement, names)
        if requirement.name != "truegold"
        and canonicalize_name(requirement.name) in locked
        and not requirement.specifier.contains(locked[canonicalize_name(requirement.name)], prereleases=True)
    ]
    assert wrong == []
