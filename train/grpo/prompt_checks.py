"""Checks that prompts are written as they were before: in the profile, and in the run that a checkpoint is of.

    profile        <|im_start|>user What is 1+1? ...          sampled, and its pass rates measured
    training now   <|im_start|>system You are ... user ...    stopped: the pass rates are those of another prompt

A chat template or a tokenizer that does something else after an update of a library would go unnoticed otherwise.
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
"""A dialogue with all that templates are known to change: thoughts of earlier turns, and one before a tool call."""
COMPARED = 64
"""How many rows are compared: a difference is one of template or tokenizer, and shows in every row."""


def compare_with_profile(
    rows: Sequence[Row], samples: Path | None, encoder: ChatEncoder, guards_off: Collection[str]
) -> None:
    """Compare the token ids of the first rows' prompts with those that the profile sampled from, if there is one.

    samples: the profile's. Raises GuardError if a prompt differs: pass rates, the selection and the limit of tokens
    would be those of other prompts.
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
            "Give train and profile the same chat and model, and profile again; or put `prompts` into "
            "train.guards.off where this is meant.",
            PROMPTS,
        )


def digest_prompts(rows: Sequence[Row], encoder: ChatEncoder, template: TurnTemplate | None) -> str:
    """Return a digest of the prompts of rows and, where answers are dialogues (`template`), of each prompt in
    `DIALOGUE`."""
    ids = [tuple(encode_row(encoder, row)) for row in rows]
    texts = [text for length in range(1, len(DIALOGUE) + 1, 2) if (text := _rendered(template, DIALOGUE[:length]))]
    return hashlib.sha256(json.dumps([ids, texts]).encode()).hexdigest()


def _rendered(template: TurnTemplate | None, messages: Sequence[Message]) -> str | None:
    """Return the text of messages, or the template's reason to refuse them; None without a template."""
    if template is None:
        return None
    try:
        return template.render(messages)
    except ConfigError as error:
        # A refusal is compared like a text: it must not change either.
        return str(error)


def check_prompts_have_stayed(before: str | None, now: str, guards_off: Collection[str]) -> None:
    """Raise GuardError if prompts are written otherwise than in the run that wrote the checkpoint.

    before: the checkpoint's digest, None for one that has none.
    """
    if before is None or before == now or PROMPTS in guards_off:
        return
    raise GuardError(
        "The prompts of this training are written otherwise than when it was stopped: the chat template or the "
        "tokenizer does something else now, as after an update of a library.",
        "Go on with the versions that it began with, or begin again in another run; or put `prompts` into "
        "train.guards.off where this is meant.",
        PROMPTS,
    )


def check_exported(
    folder: Path, engine: TrainingEngine, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder
) -> None:
    """Compare an exported checkpoint with the weights in training, and the prompts that it writes with those of the
    training. Raises GuardError if they differ."""
    engine.check_export(folder)
    refuse_export(folder, _export_differs(folder, chat, rows, encoder))


def _export_differs(folder: Path, chat: ChatConfig, rows: Sequence[Row], encoder: ChatEncoder) -> str | None:
    """Return why an exported checkpoint does not write the prompts of rows as the training did, or None if it does."""
    try:
        exported = load_encoder(folder, chat)
    except Exception as error:
        return f"its tokenizer cannot be loaded ({str(error).strip().splitlines()[0][:200]})"
    compared = rows[:COMPARED]
    if exported.stop_token_ids != encoder.stop_token_ids:
        return f"it ends completions with {exported.stop_token_ids}, and the training did with {encoder.stop_token_ids}"
    is_same = digest_prompts(compared, exported, None) == digest_prompts(compared, encoder, None)
    return None if is_same else "its tokenizer or chat template writes other prompts"


def _text_around(encoder: ChatEncoder, ids: tuple[int, ...], position: int) -> str:
    """Return the text of some tokens before and after a position."""
    text = encoder.tokenizer.decode(ids[max(position - 3, 0) : position + 5], skip_special_tokens=False)
    return f"{text!r}"


def check_prompts(prompts: Sequence[Sequence[int]], bos: int | None) -> None:
    """Raise InputError if a prompt begins with two BOS tokens: one of its text and one of the tokenizer."""
    doubled = sum(bos is not None and list(ids[:2]) == [bos, bos] for ids in prompts)
    if doubled:
        raise InputError(
            f"Double BOS: {doubled} of {len(prompts)} prompts begin with two BOS tokens.",
            "Take the BOS token out of the prompts' text, or set chat.use_template: false.",
        )
