"""Says which of truegold's extras brings a package that is missing.

`pip install truegold` brings the verifiers and the command line alone; what curation, runs and training need comes with
extras, and an error names the line that installs a missing one.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from truegold.verifiers.sandbox.errors import SetupError

_EXTRA_PACKAGES = {
    "curate": "ftfy jinja2 joblib markupsafe numpy orjson polars py3langid pyarrow pydantic pydantic_core scipy xxhash"
    " yaml",
    "review": "starlette uvicorn",
    "run": "prefect",
    "train": "accelerate deepspeed gguf huggingface_hub peft safetensors tensorboard tokenizers torch transformers",
    "hub": "datasets",
    "places": "fsspec gcsfs s3fs",
    "ray": "ray",
}
"""The packages that each extra brings, by the names they are imported by. vLLM is not among them, because the engine
says which of its builds is right."""


def require(package: str, extra: str | None = None) -> None:
    """Raise SetupError if `package` is not installed, which `extra` brings. Nothing is imported."""
    if find_spec(package) is None:
        error = ModuleNotFoundError(f"No module named {package!r}", name=package)
        raise (_not_installed(package, extra) if extra else missing_extra(error)) or error


def missing_extra(error: ModuleNotFoundError) -> SetupError | None:
    """Return the error to raise where an extra is not installed, or None if the missing package belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in _EXTRA_PACKAGES.items():
        if package in packages.split():
            return _not_installed(package, extra)
    return None


def _not_installed(package: str, extra: str) -> SetupError:
    return SetupError(f"This needs the package {package!r}.", f"Install it: pip install 'truegold[{extra}]'.")


def check_torch_builds() -> None:
    """Raise SetupError if torchvision was built for another kind of torch than is installed.

    A build for CPUs has "+cpu" in its version. vLLM for CPUs requires torchvision. A package index without CPU builds
    installs the CUDA build, with which transformers cannot be imported. Nothing is imported.
    """
    try:
        torch, torchvision = version("torch"), version("torchvision")
    except PackageNotFoundError:
        return
    if torch.partition("+")[2] != torchvision.partition("+")[2]:
        raise SetupError(
            f"torchvision {torchvision} is not built for torch {torch}, and transformers cannot be imported beside it.",
            "pip uninstall -y torchvision torchaudio torchcodec: nothing here needs them.",
        )
