"""Stage `well_posed`: a language model, where one is named, is asked in steps whether problems can be answered."""

from truegold.pipeline.flag.well_posed.stage import well_posed

__all__ = ["well_posed"]
