"""The child side of `isolate`: `python -m truegold.pipeline.worker SPEC.json PROGRESS_FD`."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.disk import full_disk_told
from truegold.pipeline.progress import PipeProgress
from truegold.verifiers import TruegoldError
from truegold.verifiers.lifetime import die_with_parent


def load_object(spec: str) -> object:
    module, _, name = spec.partition(":")
    return getattr(importlib.import_module(module), name)


def main() -> None:
    spec = orjson.loads(Path(sys.argv[1]).read_bytes())
    die_with_parent(spec["parent"])
    pipe = int(sys.argv[2])
    os.set_inheritable(pipe, False)  # a child of ours that outlives us must not keep the parent waiting for its end
    progress = PipeProgress(os.fdopen(pipe, "w", encoding="utf-8"))
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
    Path(spec["answer"]).write_bytes(orjson.dumps(outcome, option=orjson.OPT_SERIALIZE_NUMPY))
    sys.stdout.flush()
    os._exit(0)  # the answer is written; engines torn down at interpreter exit hang or crash now and then


def _describe(error: TruegoldError) -> dict[str, Any]:
    return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


if __name__ == "__main__":
    main()
