"""The curated set in the formats of trainers: one file each says what a record looks like there.

`FORMATS` has them by name; `pipeline.export.convert` writes and checks files of them.
"""

from truegold.pipeline.export.formats.base import ExportRow, Format
from truegold.pipeline.export.formats.inspect_samples import INSPECT
from truegold.pipeline.export.formats.nemo_gym import NEMO_GYM
from truegold.pipeline.export.formats.open_instruct import OPEN_INSTRUCT
from truegold.pipeline.export.formats.openrlhf import OPENRLHF
from truegold.pipeline.export.formats.plain import HF
from truegold.pipeline.export.formats.taskset import VERIFIERS
from truegold.pipeline.export.formats.trl import TRL
from truegold.pipeline.export.formats.verl import VERL

FORMATS: dict[str, Format] = {
    form.name: form for form in (TRL, VERL, OPENRLHF, OPEN_INSTRUCT, VERIFIERS, INSPECT, NEMO_GYM, HF)
}
"""Every format by its name."""

__all__ = ["FORMATS", "ExportRow", "Format"]
