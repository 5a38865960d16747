"""Prompts of a training are compared with those of its profile, and with those before it was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from turn_templates import CHATML, KIMI, QWEN3, turn_template

from truegold.train.grpo.start_checks import check_prompts_have_stayed, compare_with_profile, digest_prompts
from truegold.verifiers import GuardError
from truegold.verifiers.conversation import Message

ROWS: Any = [
    {"id": f"r{index}", "prompt": f"ab{index}", "source": "a.jsonl", "source_row": index} for index in range(3)
]


class Letters:
    """Encodes each character as its code point; `ending` is lost by a broken template."""

    def __init__(self, ending: str = "?") -> None:
        self.tokenizer: Any = self
        self._ending = ending

    def encode(self, prompt: str, context: Sequence[Message] = ()) -> tuple[int, ...]:
        return tuple(map(ord, prompt + self._ending))

    def decode(self, ids: tuple[int, ...], **_: object) -> str:
        return "".join(map(chr, ids))


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """The samples of a profile of the first two rows."""
    encoder = Letters()
    records = [
        {"id": row["id"], "sample": sample, "prompt_ids": encoder.encode(row["prompt"])}
        for row in ROWS[:2]
        for sample in range(2)
    ]
    pl.DataFrame(records).write_parquet(tmp_path / "samples.parquet")
    return tmp_path / "samples.parquet"


def test_equal_prompts_pass_and_rows_without_samples_are_not_compared(samples: Path) -> None:
    encoder: Any = Letters()
    compare_with_profile(ROWS, samples, encoder, guards_off=())


@pytest.mark.parametrize(("ending", "difference"), [("", r"'ab0\?' in the profile, 'ab0' now"), ("!", r"'ab0!' now")])
def test_another_ending_stops_the_training_and_is_shown(samples: Path, ending: str, difference: str) -> None:
    encoder: Any = Letters(ending)
    with pytest.raises(GuardError, match=rf"a.jsonl:0 .*{difference}") as stopped:
        compare_with_profile(ROWS, samples, encoder, guards_off=())
    assert stopped.value.guard == "prompts"


def test_the_comparison_can_be_turned_off_and_needs_a_profile(samples: Path) -> None:
    encoder: Any = Letters("!")
    compare_with_profile(ROWS, samples, encoder, guards_off=["prompts"])
    compare_with_profile(ROWS, None, encoder, guards_off=())


def test_a_template_that_changes_between_two_starts_of_a_training_stops_it(tiny_model: Path) -> None:
    encoder: Any = Letters()
    digests = {
        digest_prompts(ROWS, Letters("!"), None),  # type: ignore[arg-type]
        digest_prompts(ROWS, encoder, None),
        *(digest_prompts(ROWS, encoder, turn_template(tiny_model, text)) for text in (CHATML, QWEN3, KIMI)),
    }
    # The last three write a single question in the same way, and the past in three.
    assert len(digests) == 5
    before, now = sorted(digests)[:2]
    check_prompts_have_stayed(now, now, ())
    check_prompts_have_stayed(before, now, ["prompts"])
    check_prompts_have_stayed(None, now, ())
    with pytest.raises(GuardError, match="prompts of this training have changed since it was stopped") as stopped:
        check_prompts_have_stayed(before, now, ())
    assert stopped.value.guard == "prompts"
