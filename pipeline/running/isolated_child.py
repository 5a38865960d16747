"""The child side of `isolate`: `python -m truegold.pipeline.running.isolated_child SPEC.json PROGRESS_FD`.

A launcher puts its own arguments in front. The environment names the rank; only rank 0 tells its progress.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.running.disk import full_disk_told
from truegold.pipeline.running.progress import NullProgress, PipeProgress, Progress
from truegold.pipeline.running.ranks import NO_PIPE
from truegold.verifiers import TruegoldError
from truegold.verifiers.processes.lifetime import die_with_parent


def load_object(spec: str) -> object:
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name)


def main() -> None:
    *_, path, descriptor = sys.argv
    spec = orjson.loads(Path(path).read_bytes())
    if spec["parent"] is not None:
        die_with_parent(spec["parent"])
    progress = _progress(int(descriptor))
    function = load_object(spec["fn"])
    config_type = load_object(spec["config_type"])
    config = config_type.model_validate(spec["config"])  # type: ignore[attr-defined]
    inputs = {name: Path(path) for name, path in spec["inputs"].items()}
    try:
        with full_disk_told(Path(spec["out_dir"])):
            report = function(inputs, config, Path(spec["out_dir"]), progress)  # type: ignore[operator]
        outcome: dict[str, Any] = {"report": asdict(report)}
    except TruegoldError as error:
        outcome = _describe(error)
    answer = Path(spec["answers"]) / f"answer-{int(os.environ.get('RANK', '0')):05d}.json"
    answer.with_suffix(".tmp").write_bytes(orjson.dumps(outcome, option=orjson.OPT_SERIALIZE_NUMPY))
    answer.with_suffix(".tmp").replace(answer)
    sys.stdout.flush()
    os._exit(
        int("error" in outcome)
    )  # the answer is written; engines torn down at interpreter exit hang or crash now and then


def _progress(pipe: int) -> Progress:
    if pipe == NO_PIPE:
        return NullProgress()
    os.set_inheritable(pipe, False)  # a child of ours that outlives us must not keep the parent waiting for its end
    return PipeProgress(os.fdopen(pipe, "w", encoding="utf-8"))


def _describe(error: TruegoldError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


if __name__ == "__main__":
    main()
