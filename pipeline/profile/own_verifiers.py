"""Audits verifiers that are not built in before a profile judges samples with them.

    checks.py:loose    pays 37 of 40 right answers and 33 of 41 wrong ones   J .12 (-.05 to .29)   warned of
    checks.py:swapped  pays 2 of 40 right answers and 39 of 41 wrong ones    J -.90 (-.96 to -.77) refused

Pass rates by a verifier that takes wrong answers for right ones say nothing of the model. The audit is that of
`truegold verifiers audit`, on a few golds of the rows and with their most frequent arguments; verifiers of programs are
audited by their suites (`vet_tests`).
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
"""An audit of this many golds takes so long at most: some 1,500 verdicts, where they are quick."""
MOST_GAMED = 0.05
"""The largest share of responses without an answer that may be accepted; above it a policy learns to write them."""


def audit_own_verifiers(rows: Path, progress: Progress) -> dict[str, float | None]:
    """Return Youden's J of each verifier of the rows that is not built in, and note what is wrong with them.

    None stands for a verifier of which nothing could be told: no gold has a form of which right and wrong answers are
    made. Raises ConfigError for one that prefers wrong answers, or by which no gold is right.
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
                f"Pass rates by it say nothing; see what it errs on: truegold verifiers audit {name} --data DATA",
            )
        if youden is not None and youden.low < NEAR_ZERO_J:
            progress.note(
                f"the verifier {name} fails its audit: it pays {_share(1 - (report.false_negatives.share or 0.0))} of "
                f"the right answers and {_share(report.false_positives.share)} of the wrong ones that are made of "
                f"{report.audited} golds; truegold verifiers audit {name} --data DATA shows them"
            )
        if report.gamed.share is not None and report.gamed.share > MOST_GAMED:
            progress.note(
                f"the verifier {name} fails its audit: it pays {_share(report.gamed.share)} of the responses that "
                "commit to nothing"
            )
    return measured


def _why_refused(report: AuditReport) -> str | None:
    refused = report.identity.rate
    if refused.share == 1.0:
        return f"none of {refused.judged} golds is right by it."
    youden = report.youden
    return youden.meaning if youden is not None and youden.high < 0 else None


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share:.0%}"
