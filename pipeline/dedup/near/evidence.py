"""Why two texts are what they are said to be: their measures and the quantities that only one of them has, as JSON.

    {"score":4.2,"words":0.81,"question":0.93,"quantities":0.75,"only_here":["5"],"only_there":["9"]}

score: log-odds of the same problem. words, question, quantities: overlaps in [0, 1] (`compare.Measures`); quantities is
1/2 for one shared quantity and nothing else. only_here: quantities and formulas of this text that the other has not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from truegold.pipeline.dedup.near.compare import Comparer
from truegold.pipeline.dedup.near.features import Features
from truegold.pipeline.dedup.near.quantities import SPELLING
from truegold.pipeline.dedup.near.sparse import Floats, Ints

MAX_SHOWN = 8
"""Quantities named on either side; a text may hold thousands."""
MAX_CHARS = 40


@dataclass(frozen=True)
class Witness:
    """Tells the evidence of pairs of texts."""

    features: Features
    comparer: Comparer

    def tell(self, here: Ints, there: Ints, score: Floats) -> pl.Series:
        """One JSON text for each pair."""
        measures = self.comparer.measure(here, there)
        frame = pl.DataFrame(
            {
                "score": score.astype(np.float64),
                "words": measures.words.astype(np.float64),
                "question": measures.asked.astype(np.float64),
                "quantities": measures.numbers.astype(np.float64),
            }
        ).with_columns(pl.all().round(2))
        frame = frame.with_columns(self._only(here, there, "only_here"), self._only(there, here, "only_there"))
        return frame.select(pl.struct(pl.all()).struct.json_encode().alias("evidence"))["evidence"]

    def _only(self, one: Ints, other: Ints, name: str) -> pl.Series:
        pair, codes = self.comparer.only(one, other, SPELLING)
        distinct, back = np.unique(codes, return_inverse=True)
        shown = pl.Series([self.features.stems[code][1 : MAX_CHARS + 1] for code in distinct.tolist()], dtype=pl.String)
        found = (
            pl.DataFrame({"pair": pair, name: shown.gather(back)}).group_by("pair").agg(pl.col(name).head(MAX_SHOWN))
        )
        pairs = pl.DataFrame({"pair": np.arange(len(one))})
        return pairs.join(found, on="pair", how="left", maintain_order="left")[name].fill_null([])
