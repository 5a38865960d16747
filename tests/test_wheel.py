"""A wheel built from the tree, in environments that hold what its metadata asks for and nothing else.

An environment is made of links to the installed files of the packages that the wheel requires, those that they require,
and so on, as an installer would choose them. So a requirement that the metadata forgets is missing here too, and no
package index is needed.
"""

from __future__ import annotations

import json
import subprocess
import venv
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wheels import build_wheel

pytestmark = pytest.mark.wheel

SCRIPTED_RUN = """\
name: small
data: {path: train.jsonl, preset: gsm8k}
engine: {type: scripted, path: script.jsonl}
profile: {samples: 4}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the tree."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def add_requirements(package: Distribution, extras: set[str], closure: dict[str, Distribution]) -> None:
    """Add to `closure` every installed distribution that `package` with these extras requires, directly or not."""
    for text in package.requires or ():
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in (*extras, "")]
        if requirement.marker is not None and not any(map(requirement.marker.evaluate, environments)):
            continue
        name = canonicalize_name(requirement.name)
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        if name == "truegold":
            add_requirements(package, set(requirement.extras), closure)
        elif key not in closure:
            try:
                closure[key] = distribution(name)
            except PackageNotFoundError:  # It is a requirement of another platform, and its marker does not tell.
                continue
            add_requirements(closure[key], set(requirement.extras), closure)


def make_environment(wheel: Path, folder: Path, extras: set[str]) -> Path:
    """Make an environment with the wheel and what it requires; return its folder of programs."""
    venv.create(folder, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    closure: dict[str, Distribution] = {}
    add_requirements(Distribution.at(next(site.glob("truegold-*.dist-info"))), extras, closure)
    for package in closure.values():
        for file in package.files or ():
            target = site / file
            if ".." in file.parts or target.exists() or file.suffix == ".pth":
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(package.locate_file(file))).resolve())
    (folder / "bin" / "truegold").write_text(f"#!{folder}/bin/python\nfrom truegold.flows.cli import main\nmain()\n")
    (folder / "bin" / "truegold").chmod(0o755)
    return folder / "bin"


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command, which may fail, and return what it printed."""
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=500)


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of an environment without any extra."""
    return make_environment(wheel, tmp_path_factory.mktemp("core"), set())


def test_the_work_of_others_comes_with_its_licences(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    home = "truegold/pipeline/third_party/"
    libraries = {name.removeprefix(home).split("/")[0] for name in names if name.startswith(home)}
    assert libraries == {"katex", "tabulator"}
    licences = {name.partition(".dist-info/licenses/")[2] for name in names}
    assert {"LICENSE", "NOTICE"} <= licences
    for library in libraries:
        assert f"{home}{library}/LICENSE" in names and f"{home}{library}/ORIGIN.toml" in names
        assert f"pipeline/third_party/{library}/LICENSE" in licences


def test_the_core_is_light(core: Path, tmp_path: Path) -> None:
    heavy = ("prefect", "polars", "torch", "numpy", "pyarrow", "vllm", "transformers")
    code = f"import importlib.util as u; print([name for name in {heavy} if u.find_spec(name)])"
    assert run(core / "python", "-c", code, cwd=tmp_path).stdout == "[]\n"


def test_the_core_verifies_math_and_code(core: Path, tmp_path: Path) -> None:
    code = (
        "import truegold.verifiers as tv\n"
        "print(tv.verify('so \\\\boxed{0.5}', gold='1/2').score, tv.verify('\\\\boxed{0.6}', gold='1/2').score)\n"
        "print(tv.verify('\\\\boxed{\\\\int_0^1 (1-x) dx}', gold='\\\\int_0^1 x dx').score)\n"
        "for body in ('a + b', 'a - b'):\n"
        "    program = f'```python\\ndef add(a, b):\\n    return {body}\\n```'\n"
        "    print(tv.verify(program, verifier='code', tests=['assert add(1, 2) == 3']).score)\n"
    )
    done = run(core / "python", "-c", code, cwd=tmp_path)
    assert done.stdout.split() == ["1.0", "0.0", "1.0", "1.0", "0.0"], done.stderr


def test_a_command_that_lacks_its_extra_says_the_line_that_installs_it(core: Path, tmp_path: Path) -> None:
    assert run(core / "truegold", "verifiers", "list", cwd=tmp_path).returncode == 0
    for arguments in (("curate", "run.yaml"), ("dedup", "--data", "a.jsonl", "--out", "o"), ("diff", "a", "b")):
        done = run(core / "truegold", *arguments, cwd=tmp_path)
        assert done.returncode == 4, done.stderr
        assert "pip install 'truegold[curate]'" in done.stderr
        assert "Traceback" not in done.stderr
    done = run(core / "python", "-c", "from truegold import pipeline; pipeline.deduplicate", cwd=tmp_path)
    assert "SetupError" in done.stderr and "pip install 'truegold[curate]'" in done.stderr


def test_with_curate_a_run_needs_run_for_prefect(wheel: Path, tmp_path: Path) -> None:
    programs = make_environment(wheel, tmp_path / "env", {"curate"})
    write_run(tmp_path)
    done = run(programs / "truegold", "run", "run.yaml", cwd=tmp_path)
    assert done.returncode == 4 and "pip install 'truegold[run]'" in done.stderr, done.stderr
    done = run(programs / "truegold", "run", "run.yaml", "--engine", "local", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_with_run_it_runs_the_main_job_through_prefect(wheel: Path, tmp_path: Path) -> None:
    """Torch is not installed, so that a script stands where vLLM would, and nothing is trained."""
    programs = make_environment(wheel, tmp_path / "env", {"run"})
    write_run(tmp_path)
    done = run(programs / "truegold", "run", "run.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    stages = json.loads((tmp_path / "runs/small/manifest.json").read_text())["stages"]
    assert [stage["name"] for stage in stages][-4:] == ["profile", "select", "export", "report"]
    assert (tmp_path / "runs/small/report/index.html").stat().st_size > 10_000


def write_run(folder: Path) -> None:
    """Write a small run into a folder: its problems, the script that stands for a model, and its configuration."""
    problems = [
        {"question": f"Ann has {a} pens and buys {b} more. How many pens has she now?", "answer": f"#### {a + b}"}
        for a, b in [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12)]
    ]
    script = [
        {"prompt": problem["question"], "completions": [f"\\boxed{{{problem['answer'][5:]}}}", "\\boxed{0}"]}
        for problem in problems
    ]
    for name, entries in (("train", problems), ("script", script)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (folder / "run.yaml").write_text(SCRIPTED_RUN)
