"""The reasons that `flag.advise_only` may name: those of the flags that the stage `flag` gathers.

    advise_only: [prof]              there is no reason 'prof'. Did you mean 'proof'?
    advise_only: [suspect_gold]      comes from the profile, which is later

A user's own detector may flag for any reason, so that with one all names are taken.
"""

from __future__ import annotations

from truegold.pipeline.config.stages import FlagConfig, Step
from truegold.pipeline.flag.rules import BUILT_IN
from truegold.pipeline.tables.reasons import CONFLICTING_LABELS, GOLD_REASONS, POSSIBLE_TRANSLATION
from truegold.pipeline.verify.vet.records import NOT_VETTED
from truegold.verifiers import ConfigError
from truegold.verifiers.audit.suites.findings import VetReason
from truegold.verifiers.user_code import did_you_mean

EARLIER_REASONS = (CONFLICTING_LABELS, POSSIBLE_TRANSLATION, *GOLD_REASONS, NOT_VETTED, *map(str, VetReason))
"""The reasons of the stages before `flag`, whose flags it gathers."""


def check_reasons(config: FlagConfig) -> None:
    """Raise ConfigError for a reason in `advise_only` that no flag can have."""
    known = {*BUILT_IN, *EARLIER_REASONS}
    has_own = any(name not in BUILT_IN for name in config.detectors or ())
    for reason in config.advise_only:
        if reason in set(Step):
            raise ConfigError(
                f"flag.advise_only: {reason} is a language model's word, which only advises as it is.",
                "flag.model.blocks names those that hold rows back.",
            )
        if reason not in known and not has_own:
            hint = did_you_mean(reason, known) or f"There are: {', '.join(sorted(known))}."
            raise ConfigError(f"flag.advise_only: no flag of curation has the reason {reason!r}.", hint)
