"""Whether training puts its problems to the model as the profile did."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path

import polars as pl

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.pipeline.rows import Row
from truegold.train.guards.table import PROMPTS
from truegold.verifiers import GuardError

COMPARED = 64
"""How many rows are compared: a difference is one of template or tokenizer, and shows in every row."""


def compare_with_profile(
    rows: Sequence[Row], samples: Path | None, encoder: ChatEncoder, guards_off: Collection[str]
) -> None:
    """Compare the token ids of the first rows' prompts with those that the profile sampled from, where there is one.

    samples: the profile's. Raises GuardError where a prompt differs: pass rates, the selection and the limit of tokens
    would be those of other prompts, and what is learnt is not what will be asked.
    """
    if samples is None or PROMPTS in guards_off:
        return
    compared = list(islice(rows, COMPARED))
    profiled = (
        pl.scan_parquet(samples)
        .filter(pl.col("id").is_in([row["id"] for row in compared]) & (pl.col("sample") == 0))
        .select("id", "prompt_ids")
        .collect()
    )
    ids_of = {row_id: tuple(prompt_ids) for row_id, prompt_ids in profiled.iter_rows()}
    for row in compared:
        before, now = ids_of.get(row["id"]), tuple(encoder.encode(row["prompt"]))
        if before is None or before == now:
            continue
        position = next((index for index, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), None)
        if position is None:
            position = min(len(before), len(now))
        raise GuardError(
            f"The prompt of {row['source']}:{row['source_row']} has {len(now)} tokens, and had {len(before)} in the "
            f"profile. From token {position} on they differ: {_shown(encoder, before, position)} in the profile, "
            f"{_shown(encoder, now, position)} now.",
            "Give train and profile the same chat and model, and profile again; or put `prompts` into "
            "train.guards.off where this is meant.",
            PROMPTS,
        )


def _shown(encoder: ChatEncoder, ids: tuple[int, ...], position: int) -> str:
    """Return the text from a little before the position on."""
    text = encoder.tokenizer.decode(ids[max(position - 3, 0) : position + 5], skip_special_tokens=False)
    return f"{text!r}"
