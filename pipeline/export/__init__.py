"""The curated set as a folder that `datasets.load_dataset` reads, with its data card. `export` is the stage."""

from truegold.pipeline.export.stage import export

__all__ = ["export"]
