"""The calls of the review page: what they store and say, and that hostile ones get one clear line and nothing else."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

from truegold.pipeline.review.app import ReviewSession, make_app
from truegold.pipeline.review.decisions import Decision, append_decision, load_decisions
from truegold.pipeline.review.request_guard import MAX_BODY, SAFE_HEADERS, loopback_hosts
from truegold.pipeline.review.review_measures import status_lines
from truegold.pipeline.review.reviewed_run import ReviewedRun, ReviewQueue, draw_at_random, second_look
from truegold.pipeline.tables.rows import read_rows, row_id, write_rows
from truegold.verifiers import InputError

TOKEN = "a-token-of-some-length"
STORY = "Ann has {} pens and buys {} more at the shop. How many pens has she now?"
PROBLEMS = [(STORY.format(n, n + 1), str(2 * n + 1)) for n in range(1, 13)]
YES_NO = [(f"Is the sum of {n} odd numbers even?", "yes") for n in (2, 4, 6, 8)]
IDS = [row_id(*problem) for problem in (*PROBLEMS, *YES_NO)]


@pytest.fixture(scope="module")
def run_dir(curate, tmp_path_factory) -> Path:
    """A profiled run: every sample answers 5 but one, which answers 3, the gold of the first row."""
    folder = tmp_path_factory.mktemp("review")
    script = folder / "script.jsonl"
    completions = [*["So \\boxed{5}"] * 3, "So \\boxed{3}"]
    lines = [{"prompt": prompt, "completions": completions} for prompt, _ in (*PROBLEMS, *YES_NO)]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines))
    engine = {"type": "scripted", "path": str(script)}
    profile = {"samples": 4, "first_samples": None}
    return curate(folder, [*PROBLEMS, *YES_NO], "profile", engine=engine, profile=profile, data={"heldout": 0})


@pytest.fixture
def run(run_dir, tmp_path) -> ReviewedRun:
    """The run with decisions in a folder of its own."""
    return ReviewedRun.open(run_dir, tmp_path / "decisions")


def connect(run: ReviewedRun, reviewer: str = "ann", queue=None) -> TestClient:
    """Return a client that knows the token."""
    session = ReviewSession(run, reviewer, queue or ReviewQueue(), lambda: "<p>the page</p>")
    app = make_app(session, loopback_hosts(8620), TOKEN)
    return TestClient(
        app, base_url="http://127.0.0.1:8620", headers={"X-Truegold-Token": TOKEN}, raise_server_exceptions=False
    )


def decide(client: TestClient, row: str, decision: str, **more: object) -> dict:
    """Post a decision that has to be taken."""
    answer = client.post("/api/decisions", json={"id": row, "decision": decision, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["decision"]


def test_a_decision_is_in_its_reviewers_file_when_the_call_answers(run):
    client = connect(run)
    made = decide(client, IDS[0], "fix", gold="4", note="2+2", drawn="random:3")
    (line,) = (run.folder / "ann.jsonl").read_text().splitlines()
    assert {**json.loads(line), "stale": False, "blind": False} == made
    assert (made["gold"], made["note"], made["drawn"], made["reviewer"]) == ("4", "2+2", "random:3", "ann")
    seen = client.get("/api/decisions").json()
    assert (seen["reviewer"], [entry["id"] for entry in seen["decisions"]], seen["others"]) == ("ann", [IDS[0]], [])
    samples = client.get(f"/api/rows/{IDS[0]}").json()["detail"]["samples"]
    assert [sample["text"] for sample in samples] == [f"So \\boxed{{{answer}}}" for answer in (5, 3, 5, 5)]


def test_a_decision_keeps_what_the_samples_of_its_row_said(run, run_dir):
    made = [decide(connect(run), name, "keep", drawn="random:3") for name in IDS[:2]]
    # The golds are 3 and 5; of four samples one says 3.
    assert [each["passes"] for each in made] == [1, 3]
    table = pl.read_parquet(run_dir / "profile" / "suspicion.parquet")
    known = dict(table.select("row_id", "suspicion").iter_rows())
    assert [each["suspicion"] for each in made] == [known[name] for name in IDS[:2]]
    assert load_decisions(run.folder)[IDS[0]][0].suspicion == known[IDS[0]]


def test_what_a_row_s_samples_said_of_another_gold_is_not_kept(run, run_dir, tmp_path):
    shutil.copytree(run_dir, tmp_path / "fixed")
    path = tmp_path / "fixed" / "profile" / "rows.parquet"
    rows = [{**row, "gold": "4"} if row["id"] == IDS[0] else row for row in read_rows(path)]
    write_rows(path, rows)
    fixed = ReviewedRun.open(tmp_path / "fixed", run.folder)
    made = [decide(connect(fixed), name, "keep", drawn="random:3") for name in IDS[:2]]
    assert "passes" not in made[0] and made[1]["passes"] == 3


def test_an_undo_gives_back_what_stood_before(run):
    client = connect(run)
    decide(client, IDS[0], "keep")
    decide(client, IDS[0], "drop")
    assert client.post("/api/undo", json={"id": IDS[0]}).json()["decision"]["decision"] == "keep"
    assert client.post("/api/undo", json={"id": IDS[0]}).json() == {"decision": None}
    assert client.post("/api/undo", json={"id": IDS[0]}).json() == {"decision": None}
    assert client.get("/api/decisions").json()["decisions"] == []
    assert len((run.folder / "ann.jsonl").read_text().splitlines()) == 4, "an undo of nothing writes nothing"


def test_a_note_decides_nothing_and_outlives_a_decision_that_is_undone(run):
    client = connect(run)
    decide(client, IDS[0], "note", note="which year?")
    known = client.get("/api/decisions").json()
    assert (known["decisions"], known["notes"]) == ([], {IDS[0]: "which year?"})
    decide(client, IDS[0], "keep", note="1998")
    client.post("/api/undo", json={"id": IDS[0]})
    known = client.get("/api/decisions").json()
    assert (known["decisions"], known["notes"]) == ([], {IDS[0]: "1998"})
    decide(client, IDS[0], "note", note="1998")
    assert len((run.folder / "ann.jsonl").read_text().splitlines()) == 3, "a note that is sent twice stands once"
    decide(client, IDS[0], "note")
    assert client.get("/api/decisions").json()["notes"] == {IDS[0]: ""}
    assert connect(run, "bob").get("/api/decisions").json()["notes"] == {}


def test_a_new_gold_is_read_by_the_verifier_and_put_to_the_samples(run):
    client = connect(run)
    read = client.post("/api/reading", json={"id": IDS[0], "gold": "5.0"}).json()
    assert (read["readable"], read["reading"], read["verdict"]) == (True, "5", "match")
    assert (read["passes_before"], read["passes_after"], read["judged"]) == (1, 3, 4)
    assert read["changes"] == [
        {"answer": "5", "votes": 3, "before": 0.0, "after": 1.0},
        {"answer": "3", "votes": 1, "before": 1.0, "after": 0.0},
    ]
    assert read["message"] is None
    unread = client.post("/api/reading", json={"id": IDS[0], "gold": "see the picture"}).json()
    assert (unread["readable"], "gold_unmatchable" in unread["message"]) == (False, True)
    assert client.post("/api/reading", json={"id": IDS[0], "gold": " "}).json()["readable"] is False
    assert not run.folder.exists(), "to read a gold decides nothing"


def test_two_tabs_that_post_at_once_corrupt_nothing(run):
    tabs = [connect(run), connect(run)]

    def settle(tab: TestClient, rows: list[str]) -> None:
        for row in rows:
            decide(tab, row, "keep", note="x" * 3_000)

    threads = [threading.Thread(target=settle, args=(tab, IDS)) for tab in tabs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (run.folder / "ann.jsonl").read_text().splitlines()
    assert len(lines) == 2 * len(IDS)
    assert {json.loads(line)["id"] for line in lines} == set(IDS)
    assert len(tabs[0].get("/api/decisions").json()["decisions"]) == len(IDS)


@pytest.mark.parametrize(
    ("headers", "status", "line"),
    [
        ({"X-Truegold-Token": "wrong"}, 401, "token is missing or wrong"),
        ({"X-Truegold-Token": ""}, 401, "token is missing or wrong"),
        ({"Host": "evil.example"}, 403, "not the address of the review app"),
        ({"Host": "127.0.0.1:9"}, 403, "not the address of the review app"),
        ({"Host": "127.0.0.1:8620.evil.example"}, 403, "not the address of the review app"),
        ({"Origin": "https://evil.example"}, 403, "another site"),
        ({"Origin": "null"}, 403, "another site"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "another site"),
        ({"Content-Type": "text/plain"}, 415, "Content-Type must be application/json"),
        ({"Content-Length": str(MAX_BODY + 1)}, 413, "larger than"),
        ({"Content-Length": "-1"}, 413, "larger than"),
    ],
)
def test_a_stranger_is_refused_before_anything_is_read(headers, status, line, run):
    body = json.dumps({"id": IDS[0], "decision": "drop"})
    answer = connect(run).post("/api/decisions", content=body, headers={"Content-Type": "application/json", **headers})
    assert (answer.status_code, line in answer.json()["error"]) == (status, True)
    assert all(answer.headers[name] == value for name, value in SAFE_HEADERS.items())
    assert not run.folder.exists()


@pytest.mark.parametrize(
    ("content", "status", "line"),
    [
        ("{half", 400, "not JSON"),
        ("[]", 400, "the request: must be a section"),
        ("[" * 5_000, 400, "not JSON"),
        ('{"id": "\ud800", "decision": "keep"}'.encode("utf-8", "surrogatepass"), 400, "not JSON"),
        ({"decision": "keep"}, 400, "id: is missing"),
        ({"id": "0" * 20, "decision": "keep"}, 404, "No row of"),
        ({"id": "../../etc/passwd", "decision": "keep"}, 404, "No row of"),
        ({"id": "x" * 65, "decision": "keep"}, 400, "id: must have at most 64"),
        ({"id": 7, "decision": "keep"}, 400, "id: must be a text"),
        (
            {"id": IDS[0], "decision": "delete"},
            400,
            "decision: must be 'keep', 'drop', 'fix', 'unsure' or 'note'",
        ),
        ({"id": IDS[0], "decision": "undo"}, 400, "decision: must be"),
        ({"id": IDS[0], "decision": "fix"}, 400, "a fix needs the right gold"),
        ({"id": IDS[0], "decision": "keep", "gold": "3"}, 400, "gold: given with keep"),
        ({"id": IDS[0], "decision": "fix", "gold": "9" * 20_001}, 400, "gold: must have at most"),
        ({"id": IDS[0], "decision": "keep", "reviewer": "bob"}, 400, "reviewer: is unknown"),
        ({"id": IDS[0], "decision": "keep", "drawn": "lucky"}, 400, "drawn: must have the form"),
        ({"id": IDS[0], "decision": "keep", "seen": "0" * 20}, 409, "has changed since it was shown. Reload the page."),
        (b"x" * (MAX_BODY + 1), 413, "larger than"),
    ],
)
def test_what_is_no_decision_is_one_line_and_nothing_is_written(content, status, line, run):
    body = json.dumps(content) if isinstance(content, dict) else content
    answer = connect(run).post("/api/decisions", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, line in answer.json()["error"]) == (status, True), answer.text
    assert not run.folder.exists()


def test_a_body_in_pieces_is_bounded_too(run):
    pieces = (b"x" * 100_000 for _ in range(20))
    answer = connect(run).post("/api/decisions", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/api/nothing", 404),
        ("/api/rows/zzz", 404),
        ("/../x/report/index.html", 404),
        ("/.x/report/index.html", 404),
    ],
)
def test_an_unknown_address_is_one_line(path, status, run):
    answer = connect(run).get(path)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


def test_the_page_and_the_report_open_by_the_address_alone(run):
    client = connect(run)
    del client.headers["X-Truegold-Token"]
    assert client.get("/").status_code == 401
    assert client.get("/", params={"token": "wrong"}).status_code == 401
    assert client.get("/", params={"token": TOKEN}).text == "<p>the page</p>"
    assert client.get("/small/report/index.html", params={"token": TOKEN}).text.startswith("<!doctype html>")
    assert client.get("/other/report/index.html", params={"token": TOKEN}).status_code == 404
    assert client.get("/api/decisions", params={"token": TOKEN}).status_code == 401, "a call needs the header"


def test_a_random_draw_is_the_same_again_and_a_longer_one_begins_with_it(run):
    few, many = draw_at_random(run, 2, 7, "all"), draw_at_random(run, 16, 7, "all")
    assert (few.drawn, many.keys[:2], len(many.keys)) == ("random:7", few.keys, 16)
    assert draw_at_random(run, 16, 8, "all").keys != many.keys
    flagged = {key[0] for key in draw_at_random(run, 99, 0, "flagged").keys}
    assert set(IDS[-4:]) <= flagged < set(IDS), "rules flag yes and no, and the profile rows that agree on 5"
    client = connect(run, queue=few)
    decide(client, few.keys[0][0], "keep")
    answer = client.get("/api/decisions").json()
    assert (answer["progress"], answer["decisions"][0]["drawn"]) == ({"decided": 1, "total": 2}, "random:7")


def test_a_blind_second_look_shows_nothing_of_the_first_until_it_is_done(run):
    first = connect(run)
    for row, word in zip(IDS[-4:], ("drop", "drop", "keep", "keep"), strict=True):
        decide(first, row, word)
    queue = second_look(run, "ann", 1)
    assert {key[0] for key in queue.keys} == set(IDS[-4:])
    second = connect(run, "bob", queue)
    for row, word in zip(IDS[-4:-1], ("drop", "keep", "keep"), strict=True):
        decide(second, row, word)
    answer = second.get("/api/decisions").json()
    assert (answer["others"], answer["agreement"], answer["precision"]) == ([], None, [])
    decide(second, IDS[-1], "keep")
    answer = second.get("/api/decisions").json()
    # ann drop, drop, keep, keep; bob drop, keep, keep, keep: .75 agree, .5 * .25 + .5 * .75 = .5 by chance.
    agreement = answer["agreement"]
    assert (agreement["pairs"], agreement["agreed"], agreement["kappa"], agreement["blind"]) == (4, 3, 0.5, True)
    with pytest.raises(InputError, match="carl has decided about no row"):
        second_look(run, "carl", 1)


def test_the_status_says_what_waits_and_how_often_flags_were_right(run):
    assert next(status_lines(run)) == "waiting   4 rows: held_for_review 4"
    client = connect(run)
    decide(client, IDS[-1], "keep", drawn="random:1")
    decide(client, IDS[-2], "drop")
    lines = list(status_lines(run))
    assert lines[:2] == ["waiting   2 rows: held_for_review 2", "decided   2 rows: 1 drop, 1 keep"]
    assert (
        lines[-1].split()
        == "yes_no_answer 1 of 2, 0.50 [0.09, 0.91] 0 of 1, 0.00 [0.00, 0.79] blocks needs 20 rows".split()
    )
    shown = client.get("/api/decisions").json()["precision"]
    assert [(entry["reason"], entry["right"], entry["decided"], entry["tier"]) for entry in shown] == [
        ("yes_no_answer", 1, 2, "blocks")
    ]


def test_decisions_about_what_changed_are_marked_stale(run):
    line = {"id": IDS[0], "decision": "drop", "reviewer": "ann", "seen": "0" * 20, "at": "2026-02-03T12:00:00Z"}
    append_decision(run.folder, Decision.model_validate(line))
    answer = connect(run).get("/api/decisions").json()
    assert [entry["stale"] for entry in answer["decisions"]] == [True]
    assert "stale     1 rows that have changed since, 0 that are not in the data any more" in list(status_lines(run))


def test_a_broken_file_of_decisions_is_one_line(run):
    run.folder.mkdir()
    (run.folder / "ann.jsonl").write_text('{"id": "a"}\n')
    answer = connect(run).get("/api/decisions")
    assert (answer.status_code, "ann.jsonl, line 1: decision: is missing" in answer.json()["error"]) == (400, True)


def test_a_full_disk_is_one_line_and_the_decision_is_not_there(run, monkeypatch):
    def refuse(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("truegold.pipeline.review.decisions.os.fsync", refuse)
    answer = connect(run).post("/api/decisions", json={"id": IDS[0], "decision": "keep"})
    assert (answer.status_code, "No space left" in answer.json()["error"]) == (507, True)
    assert load_decisions(run.folder) == {}
