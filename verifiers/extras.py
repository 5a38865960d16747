"""Which of truegold's extras brings a package that is missing.

`pip install truegold` brings the verifiers and the command line alone; what curation, runs and training need comes with
extras, and whoever lacks one is told the line that installs it.
"""

from __future__ import annotations

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


def missing_extra(error: ModuleNotFoundError) -> SetupError | None:
    """Return the error for a user whose installation lacks an extra; None where the package belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRA_PACKAGES.items():
        if package in packages.split():
            return SetupError(f"This needs the package {package!r}.", f"Install it: pip install 'truegold[{extra}]'.")
    return None
