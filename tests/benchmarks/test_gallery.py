"""The gallery: decisions that two readers' words make, and the page of a set. Its set here is tiny."""

from __future__ import annotations

import json
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import gallery  # noqa: E402
import gallery_again  # noqa: E402
import pytest  # noqa: E402
from flag_readings import Curated, draw, draw_unflagged, write  # noqa: E402
from gallery_runs import Findings, reviewed  # noqa: E402

from truegold.pipeline import curate  # noqa: E402
from truegold.pipeline.review.decisions import load_decisions  # noqa: E402

STORY = "Ann has {} eggs in her basket and buys {} more. How many eggs has she now?"
ASKED = [f"Is the square of every number above {number} positive?" for number in (3, 5)]
EGGS = {
    **{"title": "Eggs", "runs": ["eggs"], "verifier": "math", "texts": True, "licence": "MIT", "origin": "Hens"},
    **{"leaks": [], "compared": "nothing", "command": "truegold curate eggs.jsonl", "examples": [], "commit": "0"},
}


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two questions of yes or no and six sums, one of which has a wrong gold, curated; drawn for readers."""
    rows = [{"question": STORY.format(n, n * n), "answer": str(n + n * n + (n == 4))} for n in range(2, 8)]
    rows += [{"question": asked, "answer": "yes"} for asked in ASKED]
    curate(rows, work_dir=tmp_path / "eggs")
    monkeypatch.setattr(gallery, "sets", lambda: {"eggs": EGGS})
    monkeypatch.setattr(gallery, "DOCS", tmp_path)
    run = Curated("eggs", tmp_path / "eggs" / "run")
    drawn = [*draw([run], {"yes_no_answer": 5}, pooled=False, seed=1), *draw_unflagged([run], rows=9, seed=1)]
    for name in ("parts", "items", "keys"):
        (tmp_path / name).mkdir()
    write(drawn, tmp_path / "parts" / "a.jsonl", tmp_path / "parts" / "a.key")
    gallery.main([
        *("mix", str(tmp_path / "parts" / "a.jsonl"), "--keys", str(tmp_path / "parts" / "a.key")),
        *("--seed", "3", "--name", "eggs", "--to", str(tmp_path)),
    ])  # fmt: skip
    return tmp_path


def say(folder, reader, word):
    """Write what a reader says of each item, `word(item)` being its label, fit and so on."""
    shown = [json.loads(line) for line in (folder / "items" / "eggs_1.jsonl").read_text().splitlines()]
    write_lines(folder / "labels" / reader / "eggs_1.jsonl", [{"item": row["item"], **word(row)} for row in shown])


def honest(row, gold="20"):
    """Say the truth: one question cannot be checked, the other one (above 5) is fine, and 4 + 16 is 20."""
    is_asked, is_wrong = row["problem"] == ASKED[0], row["problem"] == STORY.format(4, 16)
    fit = "unmatchable_gold" if is_asked else "wrong_gold" if is_wrong else "fine"
    label = fit if "labels" in row else "yes" if row["problem"] in ASKED else "no"
    return {"label": label, "fit": fit, "why": f"{fit}.", **({"gold": gold} if is_wrong else {})}


def test_items_are_numbered_anew_with_their_keys(folder):
    shown, hidden = (
        [json.loads(line) for line in (folder / part / "eggs_1.jsonl").read_text().splitlines()]
        for part in ("items", "keys")
    )
    assert [row["item"] for row in shown] == [row["item"] for row in hidden] == list(range(10))
    assert {row["problem"] for row in shown if hidden[row["item"]]["reason"] == "unflagged"} == {
        STORY.format(n, n * n) for n in range(2, 8)
    }


def test_what_both_readers_say_is_decided_and_applies(folder):
    say(folder, "a", honest)
    say(folder, "b", lambda row: honest(row, gold="20.0"))
    gallery.main(["decide", "eggs", str(folder), "--at", "2026-11-26T12:00:00Z"])
    path = folder / "eggs.decisions.jsonl"
    words = {decisions[0].decision: decisions[0] for decisions in load_decisions(path).values()}
    assert sorted(words) == ["drop", "fix", "keep"]
    assert words["drop"].note == "yes_no_answer; two readers: unmatchable_gold. unmatchable_gold."
    assert words["fix"].gold == "20"
    rows = [{"question": STORY.format(4, 16), "answer": 21}, *({"question": p, "answer": "yes"} for p in ASKED)]
    curated = curate(rows, decisions=str(path))
    assert dict(curated.rows.select("prompt", "gold").rows()) == {STORY.format(4, 16): "20", ASKED[1]: "yes"}
    written = gallery.page("eggs", folder).rpartition("## Decisions")[2]
    assert all(words in written for words in ("1 drop", "1 fix", "1 keep", "truegold curate eggs.jsonl"))


def test_what_one_reader_alone_calls_unfit_waits(folder):
    say(folder, "a", honest)
    assert {line["decision"] for line in gallery.decide("eggs", folder, "2026-11-26T12:00:00Z")} == set()
    say(folder, "b", lambda row: {**honest(row), "label": "unclear", "fit": None})
    assert {(line["decision"], line["note"]) for line in gallery.decide("eggs", folder, "2026-11-26T12:00:00Z")} == {
        ("unsure", "yes_no_answer; two readers: unmatchable_gold, unclear. unmatchable_gold."),
        ("unsure", "unflagged; two readers: wrong_gold, unclear. wrong_gold."),
    }


def test_a_row_whose_gold_is_one_of_several_right_ones_is_dropped(folder, monkeypatch):
    say(folder, "a", honest)
    say(folder, "b", honest)
    (fixed,) = (line for line in gallery.decide("eggs", folder, "2026-11-26T12:00:00Z") if line["decision"] == "fix")
    monkeypatch.setattr(gallery, "sets", lambda: {"eggs": EGGS | {"dropped": [fixed["id"]]}})
    again = {line["id"]: line for line in gallery.decide("eggs", folder, "2026-11-26T12:00:00Z")}[fixed["id"]]
    assert (again["decision"], "gold" in again) == ("drop", False)


def test_readings_are_kept_without_texts_and_count_alike(folder):
    say(folder, "a", honest)
    say(folder, "b", honest)
    gallery.main(["keep", str(folder)])
    kept = gallery.kept_readings(folder / "readings.jsonl")
    heard = gallery.readings(folder, ["eggs"])
    assert "eggs in her basket" not in (folder / "readings.jsonl").read_text()
    assert [(r.key["id"], r.yes, r.unfit) for r in kept] == [(r.key["id"], r.yes, r.unfit) for r in heard]


def test_the_published_index_has_the_counts_of_the_published_readings():
    docs = BENCHMARKS.parent / "docs" / "gallery"
    index = (docs / "README.md").read_text("utf-8")
    kept = gallery.kept_readings(docs / "readings.jsonl")
    for name, settings in gallery.sets().items():
        if "review" in settings:
            continue  # Others have read it.
        heard = [r for r in gallery.standing(kept) if r.key["corpus"] in {*settings["runs"], *settings["leaks"]}]
        (line,) = (line for line in index.splitlines() if line.startswith(f"| [{settings['title']}]")
                   and line.count("|") > 6)  # fmt: skip
        assert gallery.read_cell(gallery.blocking(heard)) in line
        unflagged = gallery.read_cell([r for r in heard if r.key["reason"] == gallery.UNFLAGGED])
        assert unflagged in line
        decided = load_decisions(docs / f"{name}.decisions.jsonl")
        assert f"{sum(d[0].decision == 'drop' for d in decided.values())} drop" in line


def test_notes_have_no_text_where_the_licence_does_not_allow_it(folder, monkeypatch):
    monkeypatch.setattr(gallery, "sets", lambda: {"eggs": EGGS | {"texts": False}})
    say(folder, "a", lambda row: {**honest(row), "why": row["problem"]})
    say(folder, "b", honest)
    lines = gallery.decide("eggs", folder, "2026-11-26T12:00:00Z")
    assert {line["note"] for line in lines} == {
        "yes_no_answer; two readers: fine", "yes_no_answer; two readers: unmatchable_gold",
        "unflagged; two readers: wrong_gold",
    }  # fmt: skip
    assert "Ann" not in gallery.page("eggs", folder)


def test_the_page_counts_what_was_found_and_read(folder):
    assert "| yes_no_answer | held back | 2 | not read |  |" in gallery.page("eggs", folder)
    say(folder, "a", honest)
    say(folder, "b", honest)
    text = gallery.page("eggs", folder)
    assert "| eggs | 8 | 6 |" in text
    assert "| yes_no_answer | held back | 2 | 2 of 2 (0.34 to 1.00) | 0 of 2 |" in text
    assert "both readers call unfit 1 of 6 (0.03 to 0.56): wrong_gold 1." in text


def test_a_reading_stands_while_the_run_says_the_same(folder):
    findings = Findings(folder, ["eggs"], [])
    (row,) = [place[1:3] for place in findings.blocks][:1]
    key = {"corpus": "eggs", "source": row[0], "source_row": row[1], "id": "", "blocks": False, "control": False}
    renewed = {reason: findings.renew({**key, "reason": reason}) for reason in ("yes_no_answer", "proof", "unflagged")}
    assert {reason: (r["stands"], r["blocks"]) for reason, r in renewed.items()} == {
        "yes_no_answer": (True, True), "proof": (False, False), "unflagged": (False, False),
    }  # fmt: skip
    assert not findings.renew({**key, "reason": "yes_no_answer", "control": True})["stands"]


def test_findings_are_counted_against_a_review_by_others(folder):
    write_lines(folder / "review.jsonl", [{"status": "bad" if n in (2, 6) else "ok"} for n in range(8)])
    review = {"file": str(folder / "review.jsonl"), "column": "status", "fine": "ok"}
    tables = reviewed(EGGS | {"review": review}, folder)
    assert tables["reasons"] == [("yes_no_answer", "left out or held back", 2, "1 (0.09 to 0.91)", "bad 1")]
    assert tables["kinds"] == [("ok", 6, 1, 0, 0, 5), ("bad", 2, 1, 0, 0, 1)]


def test_decided_rows_and_controls_are_asked_the_same_and_counted(folder, monkeypatch):
    monkeypatch.setattr(gallery_again, "DOCS", folder)
    monkeypatch.setattr(gallery_again, "sets", lambda: {"eggs": EGGS})
    say(folder, "a", honest)
    say(folder, "b", honest)
    gallery.main(["decide", "eggs", str(folder), "--at", "2026-11-26T12:00:00Z"])
    gallery.main(["keep", str(folder)])
    drawn = gallery_again.draw(folder, 3, seed=1)
    assert sorted(str(key["decision"]) for _, key in drawn) == ["None", "None", "None", "drop", "fix", "keep"]
    assert not {"decision", "id", "control"} & {field for shown, _ in drawn for field in shown}
    keys = [{"item": index, **key} for index, (_, key) in enumerate(drawn)]
    right = [{"item": key["item"], "label": key["expected"]} for key in keys]
    wrong = [{**label, "label": "unclear"} for label in right]
    assert "| all | 3 of 3 (0.44 to 1.00) | 3 | 3 of 3 (0.44 to 1.00) | 3 |" in gallery_again.count(
        keys, [right, right]
    )
    assert "| all | 0 of 3 (0.00 to 0.56) | 3 | 0 of 3 (0.00 to 0.56) | 3 |" in gallery_again.count(
        keys, [right, wrong]
    )
