"""Runs truegold and Math-Verify on a new corpus, and counts their errors by labels of blind readers.

    python benchmarks/first_contact.py judge ROWS.jsonl VERDICTS.jsonl
    python benchmarks/first_contact.py count ROWS.jsonl VERDICTS.jsonl --labels READER_1.jsonl READER_2.jsonl \
        --corpus "owner/name: kind" [--commit HASH] [--append benchmarks/first_contact.jsonl]

ROWS has `id`, `question`, `gold`, `response`, and, where they apply, `verifier` (math), `verifier_args`, `options` and
the corpus's own `label` (true, false). `judge` comes first and looks at no label. A reader's file has `id` and `label`:
"right", "wrong", "meaning" (no rule can decide) or "gold" (gold is wrong or unclear); readers see neither verdicts nor
the corpus's name. `raw` counts by the corpus's own labels, `cleaned` by what both readers call right or wrong, with
their agreement as Cohen's kappa. The lists of corpora, fixed before the first was run: `first_contact.md`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from truegold.verifiers import verify

Row = dict[str, Any]
_BARE_NUMBER = re.compile(r"[-+$\\{}()\s\d.,%^]*\d[-+$\\{}()\s\d.,%^]*")
MATH_VERIFY_S = 5


def read(path: Path) -> list[Row]:
    """Rows of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def math_verify(row: Row) -> bool:
    """Math-Verify's verdict with its default extraction, gold in a box; a letter is boxed too."""
    from math_verify import parse
    from math_verify import verify as compare

    try:
        gold = parse("\\boxed{%s}" % row["gold"], parsing_timeout=MATH_VERIFY_S)  # noqa: UP031
        answer = parse(row["response"], parsing_timeout=MATH_VERIFY_S)
        return bool(compare(gold, answer, timeout_seconds=MATH_VERIFY_S))
    except Exception:  # a peer that raises has refused
        return False


def judge(rows: Iterable[Row]) -> Iterable[Row]:
    """Score and reason of truegold, and Math-Verify's verdict, row by row."""
    for row in rows:
        verifier, arguments = row.get("verifier") or "math", dict(row.get("verifier_args") or {})
        if row.get("options"):
            arguments["options"] = row["options"]
        verdict = verify(row["response"], row["gold"], verifier=verifier, problem=row.get("question"), **arguments)
        reason = str(verdict.reason) if verdict.reason else ""
        extracted = str(verdict.extracted)[:300]
        yield {
            "id": row["id"], "score": verdict.score, "reason": reason, "extracted": extracted,
            "math_verify": math_verify(row),
        }  # fmt: skip


def counts(truths: Iterable[tuple[bool | None, Row, Row]]) -> dict[str, Any]:
    """Return the numbers of right responses that fail and wrong ones that pass, for truegold and Math-Verify."""
    tally: Counter[str] = Counter()
    for right, row, verdict in truths:
        if right is None:
            continue
        tally["right" if right else "wrong"] += 1
        if not right:
            tally["wrong_not_numbers"] += not _BARE_NUMBER.fullmatch(str(row["gold"]))
            tally["wrong_paid"] += verdict["score"] == 1
            tally["math_verify_paid"] += verdict["math_verify"]
            continue
        tally["right_refused"] += verdict["score"] != 1
        tally["right_none"] += verdict["score"] is None
        tally["right_unread"] += verdict["reason"] == "unread"
        tally["math_verify_refused"] += not verdict["math_verify"]
    names = ("right", "right_refused", "right_none", "right_unread", "wrong", "wrong_not_numbers", "wrong_paid",
             "math_verify_refused", "math_verify_paid")  # fmt: skip
    return {name: tally[name] for name in names}


def kappa(first: list[str], second: list[str]) -> float:
    """Cohen's kappa of two readers."""
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / len(first)
    shares = [Counter(labels) for labels in (first, second)]
    chance = sum(shares[0][label] * shares[1][label] for label in shares[0]) / len(first) ** 2
    return round((agreed - chance) / (1 - chance), 3) if chance < 1 else 1.0


def count(arguments: argparse.Namespace) -> dict[str, Any]:
    """The line of a corpus."""
    rows, verdicts = read(arguments.rows), {verdict["id"]: verdict for verdict in read(arguments.verdicts)}
    commit = arguments.commit or subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    line: dict[str, Any] = {
        "date": datetime.now(tz=UTC).date().isoformat(), "corpus": arguments.corpus, "kind": "responses",
        "truegold": commit, "rows": len(rows), "unread": sum(v["reason"] == "unread" for v in verdicts.values()),
    }  # fmt: skip
    if any(row.get("label") is not None for row in rows):
        line["raw"] = counts((row.get("label"), row, verdicts[row["id"]]) for row in rows)
    if arguments.labels:
        readers = [{label["id"]: label["label"] for label in read(path)} for path in arguments.labels]
        read_by_all = [row for row in rows if all(row["id"] in reader for reader in readers)]
        labelled = [[reader[row["id"]] for row in read_by_all] for reader in readers]
        truths = [{"right": True, "wrong": False}.get(labels[0]) if len(set(labels)) == 1 else None
                  for labels in zip(*labelled, strict=True)]  # fmt: skip
        line["readers"] = {"rows": len(read_by_all), "readers": len(readers),
                           **dict(Counter(labelled[0]).most_common())}  # fmt: skip
        if len(readers) == 2:
            line["readers"]["kappa"] = kappa(labelled[0], labelled[1])
        line["cleaned"] = counts(zip(truths, read_by_all, (verdicts[row["id"]] for row in read_by_all), strict=True))
    if arguments.note:
        line["note"] = arguments.note
    return line


def main(argv: list[str]) -> int:
    """Judge, or count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("judge", "count"))
    parser.add_argument("rows", type=Path)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--labels", type=Path, nargs="*")
    parser.add_argument("--corpus", default="")
    parser.add_argument("--commit")
    parser.add_argument("--note")
    parser.add_argument("--append", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.what == "judge":
        with arguments.verdicts.open("w", encoding="utf-8") as out:
            out.writelines(json.dumps(verdict, ensure_ascii=False) + "\n" for verdict in judge(read(arguments.rows)))
        return 0
    text = json.dumps(count(arguments), ensure_ascii=False)
    print(text)
    if arguments.append:
        with arguments.append.open("a", encoding="utf-8") as out:
            out.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
