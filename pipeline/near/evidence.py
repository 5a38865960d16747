"""Why two texts are what a table calls them: their measures and the quantities that only one of them has, as JSON.

    {"score":4.2,"words":0.81,"question":0.93,"quantities":0.75,"only_here":["5"],"only_there":["9"]}

- `score` is the log-odds of the same problem.
- `words`, `question` and `quantities` are overlaps in [0, 1] (`compare.Measures`); `quantities` is 1/2 for one shared
  quantity and nothing else.
- `only_here` has quantities and formulas of this text that the other has not, `only_there` those of the other text.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from truegold.pipeline.near.arrays import Floats, Ints
from truegold.pipeline.near.compare import Comparer
from truegold.pipeline.near.features import Features
from truegold.pipeline.text.quantities import SPELLING_MARGIN

MAX_SHOWN = 8
"""Quantities named on either side; a text may hold thousands."""
MAX_CHARS = 40
"""Characters shown of each quantity; a formula may have thousands."""


def describe_pairs(features: Features, comparer: Comparer, here: Ints, there: Ints, score: Floats) -> pl.Series:
    """Return the evidence of each pair (here[i], there[i]) as a JSON text."""
    measures = comparer.measure(here, there)
    frame = pl.DataFrame(
        {
            "score": score.astype(np.float64),
            "words": measures.words.astype(np.float64),
            "question": measures.asked.astype(np.float64),
            "quantities": measures.numbers.astype(np.float64),
        }
    ).with_columns(pl.all().round(2))
    frame = frame.with_columns(
        _missing_quantities(features, comparer, here, there, "only_here"),
        _missing_quantities(features, comparer, there, here, "only_there"),
    )
    return frame.select(pl.struct(pl.all()).struct.json_encode().alias("evidence"))["evidence"]


def _missing_quantities(features: Features, comparer: Comparer, left: Ints, right: Ints, name: str) -> pl.Series:
    """Return for each pair the quantities that only the left text has, as they are shown."""
    pair, codes = comparer.missing_quantities(left, right, SPELLING_MARGIN)
    distinct, back = np.unique(codes, return_inverse=True)
    # The stem of a quantity has a sign before it.
    shown = pl.Series([features.stems[code][1 : MAX_CHARS + 1] for code in distinct.tolist()], dtype=pl.String)
    shown_by_pair = (
        pl.DataFrame({"pair": pair, name: shown.gather(back)}).group_by("pair").agg(pl.col(name).head(MAX_SHOWN))
    )
    pairs = pl.DataFrame({"pair": np.arange(len(left))})
    return pairs.join(shown_by_pair, on="pair", how="left", maintain_order="left")[name].fill_null([])
