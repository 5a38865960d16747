"""Before the first step: how many tokens a completion may have, how evaluation samples, and what would quietly spoil a
run. The rollouts' own sampling has nothing to check: only temperature can be set (`grpo_config`)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from truegold.pipeline.engines.chat import ChatEncoder
from truegold.train.config.grpo import GrpoConfig
from truegold.verifiers import InputError

LENGTH_QUANTILE = 0.995
LENGTH_MARGIN = 1.25
"""A completion may be so many times as long as the longest right ones of the profile."""
FALLBACK_MAX_TOKENS = 512

THINK_TAGS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<|thinking|>", "<|begin_of_thought|>")


@dataclass(frozen=True)
class EvalSampling:
    """How held-out rows are sampled. source: where that comes from."""

    temperature: float
    top_p: float
    top_k: int
    source: str


def max_tokens(configured: int | None, samples: Path | None, longest: int) -> tuple[int, str]:
    """The longest completion of a rollout, and why.

    samples: the profile's. longest: prompt plus completion that the engine takes. What is right has been said within
    the 99.5 % quantile of right lengths; a completion that rambles on past 1.25 times that costs time and teaches
    length.
    """
    if configured is not None:
        return configured, "configured"
    if samples is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: there is no profile"
    right = pl.scan_parquet(samples).filter((pl.col("score") == 1.0) & (pl.col("finish_reason") == "stop"))
    lengths = right.select(pl.col("token_ids").list.len().quantile(LENGTH_QUANTILE, "higher")).collect()
    quantile: float | None = lengths.item()
    if quantile is None:
        return min(FALLBACK_MAX_TOKENS, longest - 1), "default: the profile has no right completion"
    derived = math.ceil(LENGTH_MARGIN * quantile)
    return min(derived, longest - 1), f"{LENGTH_MARGIN} x {quantile:.0f}, the 99.5 % quantile of right completions"


def eval_sampling(config: GrpoConfig, model: Path) -> EvalSampling:
    """The configured settings; for those left open the ones of the checkpoint's generation_config.json, else plain
    sampling at temperature 1."""
    official = _generation_config(model)
    greedy = official.get("do_sample") is False
    card = {
        "temperature": 0.0 if greedy else official.get("temperature"),
        "top_p": None if greedy else official.get("top_p"),
        "top_k": None if greedy else official.get("top_k"),
    }
    given = {"temperature": config.eval_temperature, "top_p": config.eval_top_p, "top_k": config.eval_top_k}
    used = {name: value if value is not None else card[name] for name, value in given.items()}
    by_card = any(given[name] is None and card[name] is not None for name in given)
    source = "generation_config.json" if by_card else "configured" if any(given.values()) else "default"
    temperature, top_p, top_k = used["temperature"], used["top_p"], used["top_k"]
    return EvalSampling(
        1.0 if temperature is None else float(temperature),
        1.0 if top_p is None else float(top_p),
        0 if top_k is None else int(top_k),
        source,
    )


def sampling_facts(config: GrpoConfig, tokens: tuple[int, str], evaluation: EvalSampling) -> dict[str, object]:
    """What the run's record keeps of both."""
    temperature = config.temperature if isinstance(config.temperature, float) else config.temperature.model_dump()
    rollout = {"temperature": temperature, "top_p": 1.0, "max_tokens": tokens[0], "max_tokens_from": tokens[1]}
    return {"rollout": rollout, "evaluation": asdict(evaluation)}


def warnings(config: GrpoConfig, encoder: ChatEncoder) -> list[str]:
    """What would quietly spoil a run: think tags that the tokenizer or the chat template has its own way with."""
    tokenizer = encoder.tokenizer
    prompt = tokenizer.decode(encoder.encode("1+1=?"))
    asked = prompt + json.dumps([term.args for term in config.reward])
    found = []
    vocabulary = [tag for tag in THINK_TAGS if _pieces(tokenizer, tag) == 1]
    for tag in THINK_TAGS:
        if tag not in asked:
            continue
        pieces = _pieces(tokenizer, tag)
        if pieces > 1:
            instead = (
                f"Tags that are one token for it: {', '.join(vocabulary)}." if vocabulary else "It has no such tag."
            )
            found.append(f"{tag} is {pieces} tokens for this tokenizer: the model has to learn to spell it. {instead}")
        if prompt.rstrip().endswith(tag) and any(tag in json.dumps(term.args) for term in config.reward):
            found.append(
                f"The chat template opens {tag} itself, so that no completion has it: a reward that asks for the "
                "opening tag refuses all of them."
            )
    return found


def check_prompts(prompts: Sequence[Sequence[int]], bos: int | None) -> None:
    """Raises InputError where a prompt begins with two BOS tokens: one of its text and one of the tokenizer."""
    doubled = sum(bos is not None and list(ids[:2]) == [bos, bos] for ids in prompts)
    if doubled:
        raise InputError(
            f"Double BOS: {doubled} of {len(prompts)} prompts begin with two BOS tokens.",
            "Take the BOS token out of the prompts' text, or set chat.use_template: false.",
        )


def _pieces(tokenizer: object, tag: str) -> int:
    return len(tokenizer(tag, add_special_tokens=False)["input_ids"])  # type: ignore[operator]


def _generation_config(model: Path) -> dict[str, float | bool | None]:
    path = model / "generation_config.json"
    if not path.exists():
        return {}
    try:
        found: dict[str, float | bool | None] = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON ({error}).") from error
    return found
