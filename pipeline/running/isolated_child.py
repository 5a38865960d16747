"""The child side of `isolate`: `python -m truegold.pipeline.running.isolated_child SPEC.json PROGRESS_FD`.

A launcher puts arguments of its own in front. The environment names the rank; only rank 0 reports its progress.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from truegold.pipeline.running.aside import write_whole
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.pipeline.running.progress import NullProgress, PipeProgress, Progress
from truegold.pipeline.running.ranks import NO_PIPE
from truegold.verifiers.sandbox.errors import ERROR_TYPES, TruegoldError
from truegold.verifiers.sandbox.processes.lifetime import die_with_parent


def main() -> None:
    """Run the stage that the specification describes, and leave its report or its error as this rank's answer."""
    *_, path, descriptor = sys.argv
    spec = orjson.loads(Path(path).read_bytes())
    if spec["parent"] is not None:
        die_with_parent(spec["parent"])
    progress = _progress(int(descriptor))
    function, config_type = pkgutil.resolve_name(spec["fn"]), pkgutil.resolve_name(spec["config_type"])
    config = config_type.model_validate(spec["config"])
    inputs = {name: Path(path) for name, path in spec["inputs"].items()}
    try:
        with disk_errors_reported(Path(spec["out_dir"])):
            report = function(inputs, config, Path(spec["out_dir"]), progress)
        outcome: dict[str, Any] = {"report": asdict(report)}
    except TruegoldError as error:
        outcome = {"error": _known_type(error), "arguments": error.__reduce__()[1]}
    answer = Path(spec["answers"]) / f"answer-{int(os.environ.get('RANK', '0')):05d}.json"
    write_whole(answer, orjson.dumps(outcome, option=orjson.OPT_SERIALIZE_NUMPY))
    sys.stdout.flush()
    # The answer is written, and engines that are torn down at the interpreter's exit hang or crash now and then.
    os._exit(int("error" in outcome))


def _progress(pipe: int) -> Progress:
    if pipe == NO_PIPE:
        return NullProgress()
    # A child of this process that outlives it must not keep the parent waiting for the end of the pipe.
    os.set_inheritable(pipe, False)
    return PipeProgress(os.fdopen(pipe, "w", encoding="utf-8"))


def _known_type(error: TruegoldError) -> str:
    """Return the name of the nearest class that the parent knows: a stage may have its own kinds of an error."""
    return next(cls.__name__ for cls in type(error).__mro__ if cls.__name__ in ERROR_TYPES)


if __name__ == "__main__":
    main()
