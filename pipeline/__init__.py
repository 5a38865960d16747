"""Finds the problems that are worth training on: rows, curation, profiling, selection and the report.

    from truegold import pipeline

    pipeline.deduplicate(frame).rows
    pipeline.curate(frame).report("report.html")

Each stage of a run has a folder here, named after it, whose function goes from files to a folder of files
(`truegold.pipeline.running.stage` runs and caches them). `docs/architecture.md` follows a row through them.
"""

from typing import TYPE_CHECKING, Any

from truegold.verifiers.extras import missing_extra

if TYPE_CHECKING:
    from truegold.pipeline.curation.api import (
        Curated,
        Deduplicated,
        Flags,
        Leaks,
        curate,
        deduplicate,
        find_flags,
        find_leaks,
    )

__all__ = ["Curated", "Deduplicated", "Flags", "Leaks", "curate", "deduplicate", "find_flags", "find_leaks"]


def __dir__() -> list[str]:
    """Name the public functions too, so that names can be completed."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Load the public functions when they are asked for: importing a module of this package should load nothing else.

    Raises SetupError if a package that curation needs is not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from truegold.pipeline.curation import api
    except ModuleNotFoundError as error:
        raise (missing_extra(error) or error) from error
    return getattr(api, name)
