"""What the verifier of a run is worth, where it was audited: `truegold verifiers audit NAME ... --output RUN`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from truegold.pipeline.tables.run_files import RunFiles

VERIFIER_CARD = "verifier_card.json"


@dataclass(frozen=True)
class Share:
    """A rate of the card with its 95 % interval; None where nothing was judged."""

    name: str
    share: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class VerifierCard:
    """The headlines of the card that lies in the run's folder."""

    name: str
    date: str
    rates: tuple[Share, ...]
    j: float | None
    """Youden's J; None where the audit could not tell."""
    low: float | None
    high: float | None
    meaning: str


def read_verifier_card(files: RunFiles) -> VerifierCard | None:
    """Return the card; None where the run's folder has none."""
    path = files.folders["ingest"].parent / VERIFIER_CARD
    if not path.exists():
        return None
    card: dict[str, Any] = orjson.loads(path.read_bytes())
    youden = card.get("youden") or {}
    rates = [
        Share(name, rate.get("rate"), rate.get("low"), rate.get("high"))
        for name, rate in card.get("summary", {}).items()
    ]
    name = f"{card['verifier']['name']} {card['verifier']['version']}"
    return VerifierCard(
        name=name,
        date=str(card.get("date", "")),
        rates=tuple(rates),
        j=youden.get("j"),
        low=youden.get("low"),
        high=youden.get("high"),
        meaning=str(youden.get("meaning", "")),
    )
