"""The curated set in the formats of trainers and environments: one function each makes a record.

`FORMATS` has them by name; `pipeline.export.convert` writes and checks files of them.
"""

from truegold.pipeline.export.formats.base import ExportRow, Format
from truegold.pipeline.export.formats.environments import INSPECT, NEMO_GYM, VERIFIERS
from truegold.pipeline.export.formats.trainers import HF, OPEN_INSTRUCT, OPENRLHF, TRL, VERL

FORMATS: dict[str, Format] = {
    form.name: form for form in (TRL, VERL, OPENRLHF, OPEN_INSTRUCT, VERIFIERS, INSPECT, NEMO_GYM, HF)
}
"""Every format by its name."""

__all__ = ["FORMATS", "ExportRow", "Format"]
