"""Names the extra of truegold that installs a missing package.

`pip install truegold` installs only the verifiers and the command line. Curation, runs and training need extras; an
error names the command that installs the missing extra.
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
"""The packages of each extra, by their import names. The error for vLLM, which names a build, is in the engine."""


def require(package: str, extra: str | None = None) -> None:
    """Raise SetupError if `package` is not installed, and name the extra to install. The package is not imported."""
    if find_spec(package) is None:
        error = ModuleNotFoundError(f"No module named {package!r}", name=package)
        raise (_not_installed(package, extra) if extra else missing_extra(error)) or error


def missing_extra(error: ModuleNotFoundError) -> SetupError | None:
    """Return the SetupError for a failed import, or None if the missing package does not belong to an extra."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in _EXTRA_PACKAGES.items():
        if package in packages.split():
            return _not_installed(package, extra)
    return None


def _not_installed(package: str, extra: str) -> SetupError:
    return SetupError(f"This needs the package {package!r}.", f"Install it: pip install 'truegold[{extra}]'.")


def check_torch_builds() -> None:
    """Raise SetupError if torch and torchvision are builds for different devices.

    A CPU build has "+cpu" in its version. vLLM for CPUs requires torchvision. A package index without CPU builds
    installs torchvision's CUDA build, and then transformers cannot be imported. This function imports none of them.
    """
    try:
        torch, torchvision = version("torch"), version("torchvision")
    except PackageNotFoundError:
        return
    if torch.partition("+")[2] != torchvision.partition("+")[2]:
        raise SetupError(
            f"torchvision {torchvision} is not built for torch {torch}, so that transformers cannot be imported.",
            "Run pip uninstall -y torchvision torchaudio torchcodec: truegold does not need them.",
        )
