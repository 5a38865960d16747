"""A report to give away: nothing of the rows' texts in it, or nothing that names somebody or opens something."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_pages import Page, shown_rows, unpack
from tables import rows

from truegold.flows.cli.app import main
from truegold.pipeline.report.sharing import Redactor, SharedTexts, shared_page
from truegold.pipeline.review.decisions import DecisionKind
from truegold.pipeline.review.reviewed_run import ReviewedRun
from truegold.pipeline.tables.rows import row_id

SECRETS = ("zelda@quux.example", "https://intra.quux.example/x?y=1", "10.20.30.44", "sk-abcdEFGH1234567890", "Zebulon")
STORY = "Zebulon has {} quills and buys {} more. How many quills has Zebulon now? "
PROBLEMS = [(STORY.format(n, n + 1), str(2 * n + 1)) for n in range(1, 8)]
PROBLEMS += [(STORY.format(9, 9) + f"Write to {SECRETS[0]} ({SECRETS[1]}, {SECRETS[2]}), key {SECRETS[3]}.", "18")]
PROBLEMS += [("Is the quagga number of Zebulon even?", "yes"), ("Hi", "Zebulon's quill")]
PROBLEMS += [("A quagga eats 6 apples and 9 plums. How many fruits?", gold) for gold in ("15", "16", "quincunx")]
WORDS = ("quill", "quagga", "quincunx", "Zebulon")


@pytest.fixture(scope="module")
def run_dir(curate, tmp_path_factory) -> Path:
    """A profiled run whose every table has words that stand nowhere else, with a decision."""
    folder = tmp_path_factory.mktemp("shared")
    script = folder / "script.jsonl"
    completions = ["Zebulon counts quills: \\boxed{77 quills}"] * 4
    script.write_text(
        "".join(json.dumps({"prompt": prompt, "completions": completions}) + "\n" for prompt, _ in PROBLEMS)
    )
    sections = {
        "engine": {"type": "scripted", "path": str(script)},
        "profile": {"samples": 4, "first_samples": None},
        "data": {"heldout": 0},
    }
    run_dir = curate(folder, PROBLEMS, "profile", **sections)
    asked = row_id(*PROBLEMS[8])
    ReviewedRun.open(run_dir).decide(asked, DecisionKind.KEEP, "Petronella", note="quill pen")
    return curate(folder, PROBLEMS, "profile", **sections)


def everything(html: str) -> str:
    """Return all that a page holds: its text, its scripts, and what it unpacks."""
    page = Page(html)
    packed = re.findall(r'<script type="text/plain" id="[\w-]+">([^<]*)</script>', html)
    assert packed, "nothing was packed, so that nothing was looked into"
    return (
        page.visible_text
        + "".join(json.dumps(unpack(text), ensure_ascii=False) for text in packed)
        + "".join(page.scripts)
    )


def test_a_page_without_texts_has_none_of_any_table(run_dir):
    html = shared_page(run_dir, SharedTexts.NONE)
    whole = everything(html)
    assert [word for word in (*WORDS, *SECRETS, "Petronella", str(run_dir.parent)) if word in whole] == []
    rows = shown_rows(html)
    assert len(rows) == len(PROBLEMS)
    assert {row["prompt"] for row in rows} >= {f"({len(PROBLEMS[0][0].strip()):,} characters)"}
    assert any(flag["reason"] == "yes_no_answer" for row in rows for flag in row["detail"].get("flags", ()))


def test_a_redacted_page_has_texts_and_no_names_addresses_or_keys(run_dir):
    whole = everything(shared_page(run_dir, SharedTexts.REDACTED))
    assert [word for word in (*SECRETS, "Petronella", str(run_dir.parent)) if word in whole] == []
    assert "[name 1] has 1 quills and buys 2 more" in whole
    assert "Write to [e-mail] ([URL], [IP]), key [key]." in whole


def test_nothing_can_be_decided_on_a_page_that_was_given_away(run_dir):
    assert {row["seen"] for row in shown_rows(shared_page(run_dir, SharedTexts.REDACTED))} == {None}


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["--share", "out.html", "--texts", "some"], 2, "--texts some: the texts of rows are left out"),
        (["--share", "."], 2, "--share . is a folder. Name a file in it"),
        (["--share", "missing/out.html"], 4, "missing"),
        (["--share", "/dev/null"], 2, "/dev/null is not a file but a device"),
    ],
)
def test_a_mistake_is_one_line(arguments, code, line, run_dir, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["truegold", "report", str(run_dir), *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    message = capsys.readouterr().err
    assert (stop.value.code, line in message, "Traceback" in message) == (code, True, False), message


def test_the_command_writes_one_file(run_dir, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["truegold", "report", str(run_dir), "--share", str(tmp_path / "out.html")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    assert "report to be shared: " in capsys.readouterr().out


@rows(
    "text, redacted",
    [
        ("mail a.b+c@d-e.co.uk now", "mail [e-mail] now"),
        ("see www.x.org/a?b=c, or ftp://x/y", "see [URL], or [URL]"),
        ("at 192.168.0.1:8080", "at [IP]:8080"),
        ("fe80::1 and 2001:db8:0:0:0:0:0:1", "[IP] and [IP]"),
        ("hf_abcdefghijklmnop AKIAABCDEFGHIJKLMNOP", "[key] [key]"),
        ("ghp_abcdefghijkl0123 xoxb-1234567890-ab", "[key] [key]"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [key]"),
        ("api_key=abc123def456", "[key]"),
        ('{"password": "hunter22hunter"}', '{"[key]"}'),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbg", "[key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[key]"),
        ("/home/zebulon/data.jsonl", "[home]/data.jsonl"),
        ("1.2.3 is a version, 3:4 a ratio, 12:30:45 a time", "1.2.3 is a version, 3:4 a ratio, 12:30:45 a time"),
        ("x@y has no dot, f(x) = 3.14, 5:3::10:6", "x@y has no dot, f(x) = 3.14, 5:3::10:6"),
    ],
)
def test_what_opens_something_is_taken_out_and_mathematics_stays(text, redacted):
    assert Redactor()(text) == redacted


def test_a_name_has_the_same_number_in_all_texts():
    redact = Redactor.for_texts(["Tom has 3 pens. He gives Ann one.", "Will Ann pay? Each may. Ann will."])
    assert redact("Tom and Ann; He, Each, Will") == "[name 1] and [name 2]; He, Each, Will"


@given(st.text(max_size=300))
def test_redaction_ends_on_any_text(text):
    Redactor(["Ann"])(text)
