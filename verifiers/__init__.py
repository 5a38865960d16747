"""Verifiers, which judge whether a model's response is right, such as `verify("so it is \\boxed{4}", gold="4")`."""

from truegold.verifiers.answers.choice import ChoiceVerifier
from truegold.verifiers.answers.format import FormatVerifier, LengthVerifier, TagReport, tag_tokens
from truegold.verifiers.answers.numeric import NumericVerifier
from truegold.verifiers.answers.text_match import ExactVerifier, RegexVerifier
from truegold.verifiers.code import CodeVerifier
from truegold.verifiers.decorator import verifier
from truegold.verifiers.extract import committed_answer
from truegold.verifiers.gold import gold_response, judges_solutions
from truegold.verifiers.math import MathVerifier, equivalent
from truegold.verifiers.registry import available, fingerprint, resolve, verify
from truegold.verifiers.reward import Reward, Term, compose
from truegold.verifiers.running.batch import BatchVerifier, Item, verify_batch
from truegold.verifiers.sandbox.errors import ConfigError, GuardError, InputError, SetupError, TruegoldError
from truegold.verifiers.verdict import Reason, Verdict, Verifier

__all__ = [
    "BatchVerifier", "ChoiceVerifier", "CodeVerifier", "ConfigError", "ExactVerifier", "FormatVerifier", "GuardError",
    "InputError", "Item", "LengthVerifier", "MathVerifier", "NumericVerifier", "Reason", "RegexVerifier", "Reward",
    "SetupError", "TagReport", "Term", "TruegoldError", "Verdict", "Verifier", "available", "committed_answer",
    "compose", "equivalent", "fingerprint", "gold_response", "judges_solutions", "resolve", "tag_tokens", "verifier",
    "verify", "verify_batch",
]  # fmt: skip
