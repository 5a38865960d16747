r"""Uses each part of the Python interface once, on rows that are small enough to read.

    pip install '.[curate]'
    python examples/python_api.py

The first part needs the light core alone (`pip install .`).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import truegold.verifiers as tv

# The response comes first, as with every verifier, and gold is named.
verdict = tv.verify("so the total is \\boxed{0.5}", gold="1/2")
print(verdict.score, verdict.reason, verdict.evidence["rung"])

# Programs are judged by tests, in a sandbox. The second test is wrong on purpose, so that this prints "mismatch".
program = "```python\ndef add(a, b):\n    return a + b\n```"
print(tv.verify(program, verifier="code", tests=["assert add(1, 2) == 3", "assert add(0, 0) == 1"]).reason)

# Two extracted answers are compared without a response around them.
print(tv.equivalent("x \\in [1, \\infty)", gold="x \\ge 1").score)

# Many rows are judged in worker processes, with deadlines that hold; the verdicts come in the order of the rows.
rows_to_judge = [tv.Item("\\boxed{7}", "7"), tv.Item("\\boxed{8}", "7"), tv.Item("no idea", "7")]
print([verdict.score for verdict in tv.verify_batch(rows_to_judge, workers=1)])


# A function is a verifier too; the score None says that it could not judge.
@tv.verifier(version="1")
def whole_number(response: str, gold: str) -> bool | None:
    """Judge by the last word, where gold is a whole number."""
    return response.rsplit(maxsplit=1)[-1].rstrip(".") == gold if gold.isdecimal() else None


print(tv.verify("It is 7.", "7", verifier=whole_number).score, tv.verify("It is 7.", "x", verifier=whole_number).score)


# From here on rows are curated. They may be frames of polars or pandas, a datasets.Dataset, dicts or a path.
from truegold import pipeline  # noqa: E402

ROWS = [
    {"id": "a", "question": "Tom has 3 red cars and buys 4 more. How many cars has he?", "answer": "7"},
    {"id": "b", "question": "Tom, who owned three red cars, buys 4 more. How many cars does he have?", "answer": "7"},
    {"id": "c", "question": "Tom has 5 red cars and buys 9 more. How many cars has he?", "answer": "14"},
    {"id": "d", "question": "Prove that the sum of two even numbers is even.", "answer": "proved"},
    {"id": "e", "question": "What is the area of a square of side 12?", "answer": "144"},
]

deduplicated = pipeline.deduplicate(ROWS)
print([row["id"] for row in deduplicated.rows], deduplicated.ledger["reason"].to_list())

flagged = pipeline.find_flags(ROWS, samples=[{"id": "e", "system": "some-model", "answer": "148"}])
print(flagged.flags.select("row", "reason").rows(), flagged.suspicion.select("id", "suspicion").rows()[-1])

leaks = pipeline.find_leaks(ROWS, against=[[{"id": "q9", "question": "What is the area of a square of side 12?"}]])
print([row["id"] for row in leaks.rows], leaks.matches.select("id", "against_id", "kind").rows())

curated = pipeline.curate(ROWS)
print(len(curated.rows), curated.dropped.select("source_row", "drop_reason").rows())
with tempfile.TemporaryDirectory() as folder:
    print(curated.report(Path(folder) / "report.html").name)
