"""Checks that the token ids of prompts have not changed since the profile, or since the run was stopped.

    profile     <|im_start|>user What is 1+1? ...          pass rates were measured with this prompt
    training    <|im_start|>system You are ... user ...    error: the pass rates do not hold for this prompt

The checks find, for example, a chat template or tokenizer that was changed by a library update.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from itertools import islice, zip_longest
from pathlib import Path

import polars as pl

from truegold.pipeline.config.engines import ChatConfig
from truegold.pipeline.engines.chat import ChatEncoder, encode_row, load_encoder
from truegold.pipeline.tables.rows import Row
from truegold.train.guards.table import PROMPTS
from truegold.train.model.engine import TrainingEngine
from truegold.train.model.export_check import refuse_export
from truegold.train.turns.environment import Message
from truegold.train.turns.template import TurnTemplate
from truegold.verifiers import ConfigError, GuardError, InputError

DIALOGUE: tuple[Message, ...] = (
    {"role": "user", "content": "3+4?"},
    {"role": "assistant", "content": "Seven.", "reasoning_content": "three and four"},
    {"role": "user", "content": "Sure?"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "let me see",
        "tool_calls": [{"id": "functions.add:0", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "7", "name": "add", "tool_call_id": "functions.add:0"},
)
"""A dialogue with the parts that chat templates treat differently: thinking in earlier turns and before a tool call."""
COMPARED = 64
"""The number of compared rows. A few are enough, because a changed template or tokenizer changes all prompts."""


def compare_with_profile(
    rows: Sequence[Row], samples: Path | None, encoder: ChatEncoder, guards_off: Collection[str]
) -> None:
    """Raise GuardError if the prompts of the first rows have other token ids than in the profile.

    With other prompts, the profile's pass rates, the selection and the limit of tokens would not hold. samples: the
    samples of the profile; without them nothing is compared.
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
        before, now = ids_of.get(row["id"]), tuple(encode_row(encoder, row))
        if before is None or before == now:
            continue
        pairs = enumerate(zip_longest(before, now))
        position = next(index for index, (old, new) in pairs if old != new)
        raise GuardError(
            f"The prompt of {row['source']}:{row['source_row']} has {len(now)} tokens, and had {len(before)} in the "
            f"profile. From token {position} on they differ: {_text_around(encoder, before, position)} in the profile, "
            f"{_text_around(encoder, now, position)} now.",
            "Set the same chat and model for train and profile, and profile again; or, if the difference is intended, "
            "add `prompts` to train.guards.off.",
            PROMPTS,
        )


def digest_prompts(rows: Sequence[Row], encoder: ChatEncoder, template: TurnTemplate | None) -> str:
    """Return a digest of the prompts of rows, and with a `template` of dialogues also of each prompt in `DIALOGUE`."""
    ids = [tuple(encode_row(encoder, row)) for row in rows]
    texts = [text for length in range(1, len(DIALOGUE) + 1, 2) if (text := _rendered(template, DIALOGUE[:length]))]
    return hashlib.sha256(json.dumps([ids, texts]).encode()).hexdigest()


def _rendered(template: TurnTemplate | None, messages: Sequence[Message]) -> str | None:
    """Return the rendered text of messages, or the template's error message; None without a template."""
    if template is None:
        return None
    try:
        return template.render(messages)
    except ConfigError as error:
        # An error is compared like a text, because it must not change either.
        return str(error)


def check_prompts_have_stayed(before: str | None, now: str, guards_off: Collection[str]) -> None:
    """Raise GuardError if the digest of prompts differs from the one in the checkpoint.

    before: the digest in the checkpoint, or None if it has none.
    """
    if before is None or before == now or PROMPTS in guards_off:
        return
    raise GuardError(
        "The prompts of this training have changed since it was stopped: the chat template or the tokenizer gives "
        "other tokens now, for example after an update of a library.",
        "Install the library versions that the run began with, or start a new run; or, if the change is intended, add "
        "`prompts` to train.guards.off.",
        PROMPTS,
    )


def check_exported(
    folder: Path, engine: TrainingEngine, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder
) -> None:
    """Raise GuardError if an exported checkpoint has other weights, or writes other prompts, than the training."""
    engine.check_export(folder)
    refuse_export(folder, _export_differs(folder, chat, rows, encoder))


def _export_differs(folder: Path, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder) -> str | None:
    """Return the reason why an exported checkpoint writes other prompts than the training, or None if all are equal."""
    try:
        exported = load_encoder(folder, chat)
    except Exception as error:
        return f"its tokenizer cannot be loaded ({str(error).strip().splitlines()[0][:200]})"
    compared = rows[:COMPARED]
    if exported.stop_token_ids != encoder.stop_token_ids:
        return f"its stop tokens are {exported.stop_token_ids}, the training's are {encoder.stop_token_ids}"
    is_same = digest_prompts(compared, exported, None) == digest_prompts(compared, encoder, None)
    return None if is_same else "its tokenizer or chat template writes other prompts"


def _text_around(encoder: ChatEncoder, ids: tuple[int, ...], position: int) -> str:
    """Return the quoted text of a few tokens before and after a position."""
    text = encoder.tokenizer.decode(ids[max(position - 3, 0) : position + 5], skip_special_tokens=False)
    return f"{text!r}"


def check_prompts(prompts: Sequence[Sequence[int]], bos: int | None) -> None:
    """Raise InputError if a prompt begins with two BOS tokens: one from its text and one from the tokenizer."""
    doubled = sum(bos is not None and list(ids[:2]) == [bos, bos] for ids in prompts)
    if doubled:
        raise InputError(
            f"Double BOS: {doubled} of {len(prompts)} prompts begin with two BOS tokens.",
            "Remove the BOS token from the prompts' text, or set chat.use_template: false.",
        )
