"""Measures the likelihood ratios of a model's verdicts, on problems that are known to be sound or ill-posed.

    {"problem": "A square has sides 3 and 4. What is its area?", "ill_posed": true}      a line of `known`

    verdict                    of 60 ill-posed   of 60 sound   ratio
    model_missing_condition           31              0         63       this verdict speaks for a fault
    sound                             12             55          .22     this verdict speaks against one
    undecided                          5              2          2.2

Each share has a Beta posterior with Jeffreys' prior (1961, Theory of Probability, chapter 3). The ratio divides the two
posterior means. So even a verdict that no sound problem got is not certain. If 5 % of the rows are expected to be
ill-posed, a ratio of 63 gives a confidence of .77. A ratio is valid for one model and one set of prompts, and only if
the known problems are like the rows.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from truegold.pipeline.config.stages import Fault
from truegold.pipeline.flag.fault_questions import PROMPTS_DIGEST
from truegold.pipeline.rates import Beta
from truegold.pipeline.sources.data_files import MAX_ROW_BYTES, open_file
from truegold.pipeline.sources.records import LOOK_AHEAD, Record, sample_values
from truegold.verifiers import ConfigError, InputError
from truegold.verifiers.columns import find_column, text_of

MEASURED_FILE = "asked_model.json"
"""The file with a model's measurement: its name, a digest of the prompts, and the counts of its verdicts."""
LABEL = "ill_posed"
"""The column of known problems with true or false."""
FAULTY = "faulty"
"""The outcome for any kind of fault."""
JEFFREYS = Beta(0.5, 0.5)
Z_90 = 1.645
"""The normal quantile of a two-sided 90 % interval."""
MIN_KNOWN = 10
"""The minimum number of ill-posed problems, and of sound problems, for a measurement."""


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """The counts of a model's verdicts on ill-posed and on sound problems."""

    name: str
    ill_posed: Mapping[str, int]
    sound: Mapping[str, int]

    def counts(self, verdict: str) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (verdicts, problems) for ill-posed and for sound problems.

        A kind of fault that never occurred gets the counts of all kinds together.
        """
        sides = self.ill_posed, self.sound
        verdicts = [verdict]
        if verdict in set(Fault) and not any(side.get(verdict) for side in sides):
            verdicts = list(Fault)
        ill_posed, sound = ((sum(side.get(name, 0) for name in verdicts), sum(side.values())) for side in sides)
        return ill_posed, sound

    def ratio(self, verdict: str) -> tuple[float, float, float]:
        """Return the likelihood ratio of a verdict, and the ends of its 90 % interval."""
        return likelihood_ratio(*self.counts(verdict))

    def outcomes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the counts of each outcome for ill-posed and for sound problems. Every fault counts as FAULTY."""
        sides = []
        for side in (self.ill_posed, self.sound):
            counts: Counter[str] = Counter()
            for verdict, count in side.items():
                counts[FAULTY if verdict in set(Fault) else verdict] += count
            sides.append(dict(counts))
        return sides[0], sides[1]

    def confidence(self, verdict: str, prior: float) -> float:
        """Return the probability that a problem with this verdict is ill-posed; `prior` is the expected share."""
        odds = self.ratio(verdict)[0] * prior / (1 - prior)
        return odds / (1 + odds)

    def shown(self, verdict: str) -> dict[str, Any]:
        """Return the measurement of a verdict for a flag's evidence."""
        ratio, low = (float(f"{value:.3g}") for value in self.ratio(verdict)[:2])
        ill_posed, sound = map(list, self.counts(verdict))
        return {"ratio": ratio, "at_least": low, "ill_posed": ill_posed, "sound": sound}

    def save(self, path: Path) -> None:
        """Write the measurement with the ratio of each verdict."""
        ratios = {verdict: self.shown(verdict) for verdict in sorted({*self.ill_posed, *self.sound})}
        measured = {"model": self.name, "prompts": PROMPTS_DIGEST, "verdicts": ratios}
        path.write_text(json.dumps(measured, indent=1) + "\n")


def likelihood_ratio(ill_posed: tuple[float, float], sound: tuple[float, float]) -> tuple[float, float, float]:
    """Return the ratio of two shares, and the ends of its 90 % interval by the normal approximation of its logarithm.

    `ill_posed` and `sound` are (hits, total). Both may be fractional.
    """
    from scipy.special import polygamma

    shares = [Beta(JEFFREYS.a + hits, JEFFREYS.b + total - hits) for hits, total in (ill_posed, sound)]
    logs = [float(polygamma(0, share.a) - polygamma(0, share.a + share.b)) for share in shares]
    spread = math.sqrt(sum(float(polygamma(1, share.a) - polygamma(1, share.a + share.b)) for share in shares))
    low, high = (math.exp(logs[0] - logs[1] + side * Z_90 * spread) for side in (-1, 1))
    return shares[0].mean / shares[1].mean, low, high


def load_measured(path: Path, name: str) -> MeasuredModel:
    """Read the measurement of the model `name`. Raises ConfigError if the file is about another model or prompts."""
    try:
        measured = json.loads(path.read_bytes())
        counts = [
            {verdict: int(shown[side][0]) for verdict, shown in measured["verdicts"].items()}
            for side in ("ill_posed", "sound")
        ]
        model, prompts = measured["model"], measured["prompts"]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(f"{path} is not a valid {MEASURED_FILE} ({error}).") from error
    if model != name:
        raise ConfigError(f"{path} measures the model {model}, not {name}.", "Name known problems instead.")
    if prompts != PROMPTS_DIGEST:
        raise ConfigError(f"{path} was measured with other prompts.", "Name known problems instead.")
    return MeasuredModel(name, counts[0], counts[1])


def count_verdicts(name: str, verdicts: Iterable[tuple[bool, str]]) -> MeasuredModel:
    """Return the measurement from pairs of (is ill-posed, verdict). Raises InputError if there are too few."""
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for is_ill_posed, verdict in verdicts:
        counts[not is_ill_posed][verdict] += 1
    few = min(counter.total() for counter in counts)
    if few < MIN_KNOWN:
        raise InputError(
            f"The model judged {counts[0].total()} ill-posed and {counts[1].total()} sound known problems.",
            f"At least {MIN_KNOWN} of each are needed.",
        )
    return MeasuredModel(name, counts[0], counts[1])


def read_known(path: Path) -> Iterator[tuple[str, str | None, bool]]:
    """Yield prompt, gold and label of each known problem. Raises InputError for a record without a label."""
    records = [record for record in open_file(path, "auto", MAX_ROW_BYTES).records if isinstance(record, Record)]
    samples: Sequence[Mapping[str, Any]] = sample_values(islice(records, LOOK_AHEAD))
    prompt, gold = find_column("prompt", samples), find_column("gold", samples, exclude=[LABEL])
    if prompt is None:
        raise InputError(f"{path} has no column with problems.", "Call it prompt, problem or question.")
    for record in records:
        truth = record.values.get(LABEL)
        if not isinstance(truth, bool):
            raise InputError(f"{path}, record {record.row_number}: {LABEL} is neither true nor false.")
        answer = None if gold is None else record.values.get(gold)
        yield text_of(record.values.get(prompt)) or "", None if answer is None else text_of(answer), truth
