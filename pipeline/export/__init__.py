"""Stage `export`: writes the curated set as a folder for `datasets.load_dataset`, with its data card."""

from truegold.pipeline.export.stage import export

__all__ = ["export"]
