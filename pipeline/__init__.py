"""Curates, profiles and selects the problems that are worth training on, and reports on them.

    from truegold import pipeline

    pipeline.deduplicate(frame).rows
    pipeline.curate(frame).report("report.html")

A run consists of stages. The code of each stage is in the subfolder of its name. A stage reads files and writes a
folder of files; `truegold.pipeline.running.stage` runs it and caches that folder. `docs/architecture.md` follows a row
through the stages.
"""

import sys
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
    """Return the names of the module, including the public functions, for tab completion."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public function on first use, so that `import truegold.pipeline` loads no other module.

    Raises SetupError if a package that curation needs is not installed.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    try:
        from truegold.pipeline.curation import api
    except ModuleNotFoundError as error:
        raise (missing_extra(error) or error) from error
    return getattr(api, name)
