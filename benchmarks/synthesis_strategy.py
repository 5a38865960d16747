"""The strategy of `benchmarks/synthesis.py`: the failed attempt and its feedback, in the few words that a model of 0.4M
parameters knows."""

from truegold.synth.strategies import Strategy

SECOND_ATTEMPT = "{problem} {attempt} {feedback}"
STRATEGY = Strategy("second_attempt", "1", answer={"en": SECOND_ATTEMPT, "zh": SECOND_ATTEMPT})
