"""A gate's outcome for machines: JUnit, which CI shows as tests, and SARIF, which code hosts show beside lines."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from truegold.pipeline.curation.gate.checks import DESCRIPTIONS
from truegold.pipeline.curation.gate.gate import Gated
from truegold.pipeline.text.shown import visible

SHOWN = 50
"""A failing test names so many rows."""
SARIF_RESULTS = 5_000
"""Code hosts refuse files with many more."""


def junit(gated: Gated) -> bytes:
    """Return the outcome as JUnit's XML: one test for each check."""
    suite = ElementTree.Element(
        "testsuite", name=f"truegold gate {gated.data}", tests=str(len(gated.checks)), failures=str(len(gated.failed))
    )
    for check in gated.checks:
        case = ElementTree.SubElement(suite, "testcase", classname="truegold.gate", name=str(check))
        violations = [violation for violation in gated.violations if violation.check is check]
        lines = [f"{violation.source}:{violation.row or ''}: {violation.message}" for violation in violations]
        more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        text = visible("\n".join([*lines[:SHOWN], *more]))
        if gated.fails(check):
            message = gated.tally(check)
            ElementTree.SubElement(case, "failure", message=message, type=str(check)).text = text
        elif text:
            ElementTree.SubElement(case, "system-out").text = text
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def sarif(gated: Gated) -> dict[str, Any]:
    """Return the outcome as SARIF 2.1.0: one result for each violation, an error where its check fails."""
    order = list(gated.checks)
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "truegold gate",
                        "rules": [
                            {"id": str(check), "shortDescription": {"text": DESCRIPTIONS[check]}} for check in order
                        ],
                    }
                },
                "results": [
                    {
                        "ruleId": str(violation.check),
                        "ruleIndex": order.index(violation.check),
                        "level": "error" if gated.fails(violation.check) else "note",
                        "message": {"text": visible(violation.message)},
                        "locations": [
                            {
                                "physicalLocation": {
                                    "artifactLocation": {"uri": gated.data.as_posix()},
                                    **({"region": {"startLine": violation.row}} if violation.row else {}),
                                }
                            }
                        ],
                    }
                    for violation in gated.violations[:SARIF_RESULTS]
                ],
            }
        ],
    }
