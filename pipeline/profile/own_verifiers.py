"""Audits the verifiers that are not built in, before a profile judges samples with them.

    checks.py:loose    accepts 37 of 40 right answers and 33 of 41 wrong ones   J .12 (-.05 to .29)    warning
    checks.py:swapped  accepts 2 of 40 right answers and 39 of 41 wrong ones    J -.90 (-.96 to -.77)  error

Youden's J is the share of right answers that are accepted, minus the share of wrong ones that are accepted. If a
verifier accepts wrong answers, its pass rates say nothing about the model. The audit works like
`truegold verifiers audit`, on a few golds of the rows with the verifier's most frequent arguments. Verifiers of
programs are audited by their test suites instead (`vet_tests`).
"""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from truegold.pipeline.running.progress import Progress
from truegold.verifiers import ConfigError, judges_solutions, resolve
from truegold.verifiers.audit.audit_report import NEAR_ZERO_J, AuditReport, audit
from truegold.verifiers.registry import BUILT_IN

GOLDS = 20
SECONDS = 30.0
"""The time limit of an audit, which is enough for about 1,500 quick verdicts."""
MOST_GAMED = 0.05
"""The largest share of responses without an answer that may be accepted; above it a policy learns to write them."""


def audit_own_verifiers(rows: Path, progress: Progress) -> dict[str, float | None]:
    """Return Youden's J of each verifier that is not built in, and print what is wrong with it.

    J is None if it could not be measured, because no right and wrong answers can be made from the golds. Raises
    ConfigError if a verifier prefers wrong answers, or accepts no gold.
    """
    known = pl.scan_parquet(rows).filter(pl.col("gold").is_not_null()).select("verifier", "verifier_args", "gold")
    names = known.select("verifier").unique().collect(engine="streaming")["verifier"].to_list()
    measured: dict[str, float | None] = {}
    for name in sorted(set(names) - BUILT_IN.keys()):
        if judges_solutions(resolve(name)):
            continue
        progress.start(f"auditing {name}")
        its_golds = known.filter(pl.col("verifier") == name).collect(engine="streaming")
        arguments = its_golds["verifier_args"].value_counts(sort=True)["verifier_args"][0]
        chosen = its_golds.filter(pl.col("verifier_args") == arguments)["gold"].to_list()
        report = audit(name, chosen, info=orjson.loads(arguments), limit=GOLDS, seconds=SECONDS)
        youden = report.youden
        measured[name] = None if youden is None else round(youden.j, 4)
        if (refused := _why_refused(report)) is not None:
            raise ConfigError(
                f"The verifier {name} fails its audit: {refused}",
                f"Its pass rates would mean nothing. See its errors: truegold verifiers audit {name} --data DATA",
            )
        if youden is not None and youden.low < NEAR_ZERO_J:
            progress.note(
                f"the verifier {name} fails its audit: it accepts {_share(1 - (report.false_negatives.share or 0.0))} "
                f"of the right answers and {_share(report.false_positives.share)} of the wrong ones that are made of "
                f"{report.audited} golds; truegold verifiers audit {name} --data DATA shows them"
            )
        if report.gamed.share is not None and report.gamed.share > MOST_GAMED:
            progress.note(
                f"the verifier {name} fails its audit: it accepts {_share(report.gamed.share)} of the responses that "
                "commit to nothing"
            )
    return measured


def _why_refused(report: AuditReport) -> str | None:
    refused = report.identity.rate
    if refused.share == 1.0:
        return f"it accepts none of {refused.judged} golds."
    youden = report.youden
    return youden.meaning if youden is not None and youden.high < 0 else None


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"
