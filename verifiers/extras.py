"""Which of truegold's extras brings a package that is missing.

`pip install truegold` brings the verifiers and the command line alone; what curation, runs and training need comes with
extras, and whoever lacks one is told the line that installs it.
"""

from __future__ import annotations

from importlib.util import find_spec

from truegold.verifiers.errors import SetupError

EXTRA_PACKAGES = {
    "curate": "jinja2 joblib markupsafe numpy orjson polars py3langid pyarrow pydantic pydantic_core scipy xxhash yaml",
    "run": "prefect",
    "train": "accelerate deepspeed gguf huggingface_hub peft safetensors tensorboard tokenizers torch transformers",
    "hub": "datasets",
    "ray": "prefect_ray ray",
}
"""The packages that each extra brings, by the names they are imported by. vLLM is not here: which of its builds is
right, the engine says."""


def require(package: str) -> None:
    """Raise SetupError where a package is not installed; nothing is imported."""
    if find_spec(package) is None:
        error = ModuleNotFoundError(f"No module named {package!r}", name=package)
        raise missing_extra(error) or error


def missing_extra(error: ModuleNotFoundError) -> SetupError | None:
    """Return the error for a user whose installation lacks an extra; None where the package belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRA_PACKAGES.items():
        if package in packages.split():
            return SetupError(f"This needs the package {package!r}.", f"Install it: pip install 'truegold[{extra}]'.")
    return None
