"""The command `truegold demo`: the main job on a data set that is made on the spot.

pip install 'truegold[run]'         truegold demo --quick    curation alone, in under a minute, on any machine
pip install 'truegold[train,cpu]'   truegold demo            profiling and training as well, on a CPU
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from truegold.flows.cli.running import AsJson, DryRun, EngineChoice, EngineOption, Overrides, run_until
from truegold.pipeline.running.stage_table import Phase
from truegold.verifiers import SetupError

DEMO = Path(__file__).parents[1] / "demo.yaml"
"""The demo's configuration, which is packaged."""
HEAVY = ("torch", "vllm", "deepspeed", "transformers")
"""What the whole demo imports."""
QUICK = ("name=demo-quick", "model=null", "sft=null", "train=null", "data.problems=600", "data.sft_examples=64")
"""What is otherwise where nothing is profiled or trained."""


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Curate alone: under a minute, no model needed.")] = False,
    set_: Overrides = None,
    engine: EngineOption = EngineChoice.PREFECT,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Try it: the main job on problems with planted defects, made on the spot."""
    from truegold.flows.config import load_config

    missing = [name for name in HEAVY if find_spec(name) is None]
    if missing and not quick:
        raise SetupError(
            f"The whole demo samples and trains a model; {', '.join(missing)} is not installed.",
            "pip install 'truegold[train,cpu]' (or [train,gpu] with a GPU); truegold demo --quick only curates.",
        )
    config = load_config(DEMO, [*(QUICK if quick else ()), *(set_ or ())])
    run_until(
        Phase.CURATE if quick else Phase.REPORT, config, EngineChoice.LOCAL if quick else engine, dry_run, as_json
    )
