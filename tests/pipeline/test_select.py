"""Selection by what the profile knows: candidates, proportions, quotas, the reserve, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from numbered_rows import make_row
from pydantic import ValidationError
from tables import rows

from truegold.pipeline.config.stages import SelectConfig
from truegold.pipeline.rates import Beta, Mixture
from truegold.pipeline.running.progress import NullProgress
from truegold.pipeline.running.stage import StageReport
from truegold.pipeline.select import ordered, stage
from truegold.pipeline.select.stage import select
from truegold.pipeline.tables.ledger import FLAG_SCHEMA, flag_record
from truegold.pipeline.tables.reasons import CHECK_SCHEMA, SUSPICION_SCHEMA, LabelCheck
from truegold.pipeline.tables.rows import PROFILE_SCHEMA, ROW_SCHEMA, Row, write_rows
from truegold.verifiers import InputError

PRIOR = Beta(1.0, 1.0)


@dataclass(frozen=True)
class Problem:
    """A profiled problem, by what selection reads of it."""

    passes: int
    judged: int = 8
    domain: str = "math"
    source: str = "train.jsonl"
    split: str = "train"
    suspicion: float | None = 0.0
    blocks: bool = False
    is_flagged: bool = False
    truncated: float = 0.0
    posterior: Sequence[dict[str, float]] | None = None
    """What is known of the pass rate; by the prior Beta(1, 1) where it is left out."""


class Notes(NullProgress):
    """Keeps what a stage says to its user."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, message: str) -> None:
        self.lines.append(message)


def run_select(
    folder: Path,
    problems: Sequence[Problem],
    notes: Notes | None = None,
    checks: Sequence[LabelCheck] = (),
    **config: Any,
) -> StageReport:
    """Select among problems, numbered from 1, with the prior Beta(1, 1)."""
    rows: list[Row] = []
    profile, suspicion, flags, open_flags = [], [], [], []
    for number, problem in enumerate(problems, 1):
        row: Row = {**make_row(number, problem.split), "domain": problem.domain, "source": problem.source}
        known = PRIOR.after(problem.judged, problem.passes)
        reference = {name: row[name] for name in ("id", "source", "source_row")}  # type: ignore[literal-required]
        summary: dict[str, Any] = {**reference, "split": problem.split, "n": problem.judged, "judged": problem.judged}
        summary |= {"passes": problem.passes, "truncated": problem.truncated}
        if problem.judged:
            posterior = (
                [{"weight": 1.0, "a": known.a, "b": known.b}] if problem.posterior is None else problem.posterior
            )
            summary |= {"posterior": posterior, "pass_rate": problem.passes / problem.judged}
        rows.append(row)
        profile.append(summary)
        suspicion.append(
            {**reference, "id": str(number), "row_id": row["id"], "suspicion": problem.suspicion, "tier": "keep"}
        )
        if problem.blocks:
            flags.append(flag_record(row, "suspect_gold", detector="profile", evidence={}))
        if problem.is_flagged:
            open_flags.append(flag_record(row, "missing_quantity", detector="missing_quantity", evidence={}))
    names = ("rows", "profile", "flags", "suspicion", "open_flags", "checks")
    inputs = {name: folder / f"{name}.parquet" for name in names}
    write_rows(inputs["checks"], checks, CHECK_SCHEMA)
    write_rows(inputs["open_flags"], open_flags, FLAG_SCHEMA)
    write_rows(inputs["rows"], rows, ROW_SCHEMA)
    write_rows(inputs["profile"], profile, PROFILE_SCHEMA)
    write_rows(inputs["suspicion"], suspicion, SUSPICION_SCHEMA)
    write_rows(inputs["flags"], flags, FLAG_SCHEMA)
    out = folder / "select"
    out.mkdir(exist_ok=True)
    return select(inputs, SelectConfig.model_validate({"zero_share": 1.0, **config}), out, notes or Notes())


def selected(folder: Path) -> pl.DataFrame:
    """Return the selected rows."""
    return pl.read_parquet(folder / "select" / "selected.parquet")


def dropped(folder: Path) -> dict[int, str]:
    """Return the reasons of the dropped rows by their number."""
    table = pl.read_parquet(folder / "select" / "dropped.parquet").sort("source_row")
    return dict(table.select("source_row", "drop_reason").iter_rows())


def test_rows_whose_groups_would_hardly_teach_are_dropped_as_too_hard_or_too_easy(tmp_path: Path) -> None:
    problems = [
        Problem(4),
        Problem(0, judged=64),
        Problem(64, judged=64),
        Problem(3, blocks=True),
        Problem(0, judged=0),
        Problem(4, split="heldout"),
    ]
    report = run_select(tmp_path, problems)
    assert selected(tmp_path)["source_row"].to_list() == [1]
    assert dropped(tmp_path) == {2: "too_hard", 3: "too_easy", 4: "held_for_review", 5: "unjudged"}
    assert pl.read_parquet(tmp_path / "select" / "heldout.parquet")["source_row"].to_list() == [6]
    assert sorted(pl.read_parquet(tmp_path / "select" / "after.parquet")["source_row"]) == [1, 6]
    assert report.rows_in == 6


def test_a_row_that_is_either_easy_or_hopeless_is_judged_by_both(tmp_path: Path) -> None:
    either = [{"weight": 0.5, "a": 0.002, "b": 200.0}, {"weight": 0.5, "a": 200.0, "b": 0.002}]
    between = [{"weight": 1.0, "a": 5.0, "b": 5.0}]
    known = Mixture.from_components(either)
    assert known is not None and known.mean == pytest.approx(0.5)
    run_select(tmp_path, [Problem(4, posterior=either), Problem(4, posterior=between)])
    assert selected(tmp_path)["source_row"].to_list() == [2]
    assert dropped(tmp_path)[1] in ("too_easy", "too_hard")


def test_a_row_that_failed_a_few_times_is_not_taken_for_one_that_never_passes(tmp_path: Path) -> None:
    run_select(tmp_path, [Problem(0), Problem(8)])
    table = selected(tmp_path).sort("source_row")
    # Beta(1, 9): 1 - B(1, 17)/B(1, 9) - B(9, 9)/B(1, 9) = 1 - 9/17 - 0.00004.
    assert table["pass_rate"].to_list() == pytest.approx([0.1, 0.9])
    assert table["posterior"].to_list() == [
        [{"weight": 1.0, "a": 1.0, "b": 9.0}],
        [{"weight": 1.0, "a": 9.0, "b": 1.0}],
    ]
    assert run_select(tmp_path, [Problem(0), Problem(8)], min_teaching=0.4705).rows_out == 2
    with pytest.raises(InputError):
        run_select(tmp_path, [Problem(0), Problem(8)], min_teaching=0.4706)


def test_worth_counts_only_what_teaches_a_right_label(tmp_path: Path) -> None:
    run_select(tmp_path, [*[Problem(4, suspicion=0.75)] * 5, *[Problem(4)] * 5], max_rows=5)
    assert sorted(selected(tmp_path)["source_row"]) == [6, 7, 8, 9, 10]


def test_a_row_of_which_no_answer_was_read_has_no_suspicion(tmp_path: Path) -> None:
    run_select(tmp_path, [Problem(0, suspicion=None), Problem(4, suspicion=0.25)])
    assert selected(tmp_path).sort("source_row")["suspicion"].to_list() == [0.0, 0.25]


def test_rows_without_enough_passes_or_out_of_range_are_dropped(tmp_path: Path) -> None:
    run_select(tmp_path, [Problem(0), Problem(4), Problem(7)], min_passes=1, max_pass_rate=0.6)
    assert dropped(tmp_path) == {1: "too_few_passes", 3: "outside_band"}


def reserve(folder: Path) -> list[int]:
    """Return the numbers of the rows in reserve, in their order."""
    rows: list[int] = pl.read_parquet(folder / "select" / "reserve.parquet")["source_row"].to_list()
    return rows


def test_by_default_a_tenth_of_the_selection_may_never_have_passed_and_the_others_wait(tmp_path: Path) -> None:
    notes = Notes()
    problems = [*[Problem(4)] * 18, *[Problem(0)] * 6]
    report = run_select(tmp_path, problems, notes, zero_share=SelectConfig().zero_share)
    assert report.rows_out == 20
    assert Counter(dropped(tmp_path).values()) == {"in_reserve": 4}
    assert report.facts["reserve"] == len(reserve(tmp_path)) == 4
    assert notes.lines == [
        "4 rows that never passed are above the limit select.zero_share (0.1): 4 are at the end of the reserve, 0 that "
        "rules advise against are dropped"
    ]
    ledger = pl.read_parquet(tmp_path / "select" / "ledger.parquet").filter(reason="in_reserve")
    assert [json.loads(evidence)["over_zero_share"] for evidence in ledger["evidence"]] == [True] * 4


def test_rows_beyond_the_share_follow_all_others_in_the_reserve(tmp_path: Path) -> None:
    problems = [*[Problem(4)] * 9, *[Problem(0, suspicion=number / 10) for number in range(4)]]
    run_select(tmp_path, problems, zero_share=0.1, max_rows=5, target=[{"up_to": 1}])
    waiting = reserve(tmp_path)
    # Of 9 rows that pass and one that does not, 5 are selected; the worthiest of the others come first.
    assert sorted(waiting[:-3]) == sorted({*range(1, 11)} - {*selected(tmp_path)["source_row"]})
    assert waiting[-3:] == [11, 12, 13]
    ledger = pl.read_parquet(tmp_path / "select" / "ledger.parquet").filter(reason="in_reserve").sort("source_row")
    marked = [json.loads(evidence).get("over_zero_share") for evidence in ledger["evidence"]]
    assert marked[-3:] == [True] * 3
    assert set(marked[:-3]) == {None}


def test_of_rows_that_never_passed_the_flagged_ones_come_last_and_do_not_wait(tmp_path: Path) -> None:
    run_select(
        tmp_path,
        [*[Problem(4)] * 3, Problem(0, is_flagged=True), Problem(0, suspicion=0.5), Problem(1, is_flagged=True)],
        zero_share=0.2,
    )
    assert dropped(tmp_path) == {4: "over_zero_share"}
    assert reserve(tmp_path) == []


def test_rows_that_never_passed_make_up_at_most_their_share(tmp_path: Path) -> None:
    run_select(tmp_path, [Problem(4), Problem(3), *[Problem(0)] * 6, Problem(0, judged=64)], zero_share=0.5)
    assert selected(tmp_path).height == 4
    hard = sorted(pl.read_parquet(tmp_path / "select" / "hard.parquet")["source_row"])
    assert hard == sorted([*reserve(tmp_path), 9])
    assert Counter(dropped(tmp_path).values()) == {"in_reserve": 4, "too_hard": 1}


def test_where_nothing_ever_passed_all_rows_wait_and_the_share_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="None of 3 profiled rows is left") as caught:
        run_select(tmp_path, [Problem(0)] * 3, zero_share=0.1)
    assert "select.zero_share" in str(caught.value.hint)
    assert run_select(tmp_path, [Problem(0)] * 3, zero_share=0.1, may_be_empty=True).rows_out == 0
    assert sorted(reserve(tmp_path)) == [1, 2, 3]


def checked(right: int, at_fault: int, suspicion: float = 0.1, passes: int = 0) -> list[LabelCheck]:
    """Return decisions about so many rows."""
    faults = [*[False] * right, *[True] * at_fault]
    return [{"id": "", "passes": passes, "suspicion": suspicion, "at_fault": fault} for fault in faults]


@pytest.mark.parametrize(
    ("checks", "is_trusted"),
    [
        ([], False),
        (checked(18, 2), True),
        (checked(19, 0), False),
        (checked(17, 3), False),
        (checked(18, 2) + checked(0, 9, suspicion=0.5), True),
        (checked(10, 0) + checked(30, 0, suspicion=0.5), False),
        (checked(10, 0) + checked(30, 0, passes=1), False),
    ],
)
def test_suspicion_bounds_rows_that_never_passed_where_reviewers_have_shown_it_right(
    tmp_path: Path, checks: list[LabelCheck], is_trusted: bool
) -> None:
    unsuspected = [Problem(0, suspicion=0.49)] * 9
    doubtful = [*[Problem(0, suspicion=0.5)] * 3, *[Problem(0, is_flagged=True)] * 3]
    problems = [*[Problem(4)] * 9, *unsuspected, *doubtful]
    report = run_select(tmp_path, problems, checks=checks, zero_share=0.1)
    # 9 rows that pass take one that does not; 18 that are as good as such take two.
    assert report.rows_out == (20 if is_trusted else 10)
    record = report.facts["label_checks"]
    assert record["is_trusted"] == is_trusted
    assert record["suspected"] + record["others"] == sum(not check["passes"] for check in checks)


def test_rows_that_never_passed_have_their_share_of_the_selection_itself(tmp_path: Path) -> None:
    never = [*[Problem(0)] * 10, *[Problem(0, is_flagged=True)] * 10]
    passing = [Problem(3 + number % 5) for number in range(180)]
    run_select(tmp_path, [*never, *passing], target="balanced", max_rows=40, zero_share=0.1)
    rows = selected(tmp_path)["source_row"].to_list()
    assert len(rows) == 40
    assert len([row for row in rows if row <= 20]) == 4
    assert not [row for row in rows if 10 < row <= 20]
    reserve = pl.read_parquet(tmp_path / "select" / "reserve.parquet")["source_row"].to_list()
    assert len([row for row in reserve if row <= 20]) == 16


def test_of_a_band_the_rows_that_passed_are_taken_where_others_would_be_too_many(tmp_path: Path) -> None:
    hard = [*[Problem(0, suspicion=0.0)] * 10, *[Problem(1, suspicion=0.9)] * 10]
    run_select(tmp_path, [*hard, *[Problem(3), Problem(5), Problem(7)] * 30], max_rows=40, zero_share=0.1)
    bands = Counter((selected(tmp_path)["pass_rate"] * 4).cast(pl.Int64))
    assert bands == {0: 10, 1: 10, 2: 10, 3: 10}
    assert (selected(tmp_path)["source_row"] <= 10).sum() == 4


@pytest.mark.parametrize("zero_share", [0.1, 1.0])
def test_a_band_without_rows_leaves_its_share_to_the_others_and_is_named(tmp_path: Path, zero_share: float) -> None:
    notes = Notes()
    problems = [Problem(0), *[Problem(passes) for passes in [3] * 40 + [5] * 60]]
    report = run_select(tmp_path, problems, notes, target="balanced", zero_share=zero_share, min_teaching=0)
    taken = Counter((selected(tmp_path)["pass_rate"] * 4).cast(pl.Int64))
    assert taken == ({0: 1, 1: 7, 2: 7} if zero_share == 0.1 else {0: 1, 1: 1, 2: 1})
    (empty,) = [demand for demand in report.facts["demands"] if not demand["available"]]
    assert not empty["is_met"]
    assert any(line.startswith("pass rates 0.75 to 1: 0 of") for line in notes.lines)
    assert any("rows in reserve: all rows of pass rates 0 to 0.25 are selected" in line for line in notes.lines)


def test_without_max_rows_an_empty_band_does_not_empty_the_others(tmp_path: Path) -> None:
    run_select(tmp_path, [Problem(passes) for passes in [1] * 40 + [3] * 60 + [5] * 50], target="balanced")
    assert Counter((selected(tmp_path)["pass_rate"] * 4).cast(pl.Int64)) == {0: 40, 1: 40, 2: 40}


def test_quotas_without_max_rows_take_the_worthiest_of_all_bands(tmp_path: Path) -> None:
    code = [Problem(4, source="code")] * 50
    others = [Problem(passes, suspicion=0.5 * (index % 2)) for passes in (1, 3, 5, 7) for index in range(250)]
    run_select(tmp_path, [*code, *others], quotas={"source:code": 0.2})
    table = selected(tmp_path)
    assert (table["source"] == "code").sum() == 50
    rest = table.filter(pl.col("source") != "code")
    assert 198 <= rest.height <= 202
    # Rows of 3 and 5 passes are worth most, and there are 250 whose label is not suspicious.
    assert rest["suspicion"].to_list() == [0.0] * rest.height
    assert set(rest["pass_rate"].round(1)) == {0.4, 0.6}


def test_what_has_the_quota_0_is_no_candidate(tmp_path: Path) -> None:
    problems = [*[Problem(4, source="a")] * 3, *[Problem(4, source="b")] * 3]
    run_select(tmp_path, problems, quotas={"source:b": 0}, max_rows=10)
    assert set(selected(tmp_path)["source"]) == {"a"}
    assert set(dropped(tmp_path).values()) == {"zero_quota"}


def test_the_reserve_has_the_rest_in_the_order_in_which_it_would_follow(tmp_path: Path) -> None:
    passes = [1] * 6 + [3] * 6 + [5] * 6 + [7] * 2
    run_select(tmp_path, [Problem(count) for count in passes], max_rows=8)
    bands = Counter((selected(tmp_path)["pass_rate"] * 4).cast(pl.Int64))
    assert bands == {0: 2, 1: 2, 2: 2, 3: 2}
    reserve = pl.read_parquet(tmp_path / "select" / "reserve.parquet")
    assert (reserve["pass_rate"] * 4).cast(pl.Int64).to_list()[:6] == [0, 1, 2, 0, 1, 2]
    assert set(dropped(tmp_path).values()) == {"in_reserve"}


def test_the_same_seed_selects_the_same_rows_and_another_one_does_not(tmp_path: Path) -> None:
    choices = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        run_select(tmp_path / name, [Problem(4)] * 40, max_rows=10, seed=seed)
        choices.append(selected(tmp_path / name)["source_row"].to_list())
    assert choices[0] == choices[1] != choices[2]


def test_quotas_that_cross_are_met_to_the_row(tmp_path: Path) -> None:
    kinds = [("algebra", "a", 30), ("algebra", "b", 200), ("geometry", "a", 200), ("geometry", "b", 10)]
    problems = [Problem(4, domain=domain, source=source) for domain, source, rows in kinds for _ in range(rows)]
    report = run_select(tmp_path, problems, max_rows=100, quotas={"domain:algebra": 0.7, "source:a": 0.5})
    table = selected(tmp_path)
    assert (table["domain"] == "algebra").sum() == 70
    assert (table["source"] == "a").sum() == 50
    assert [demand["is_met"] for demand in report.facts["demands"] if ":" in demand["name"]] == [True, True]


def test_quotas_are_met_before_a_histogram_that_nobody_asked_for(tmp_path: Path) -> None:
    # Alone in the lowest quarter, all code would be taken for it.
    kinds = [("geometry", [6, 7, 3], 42), ("code", [1], 25), ("algebra", [7, 5, 3], 200), ("other", [4], 30)]
    problems = [Problem(rates[n % len(rates)], domain=domain) for domain, rates, rows in kinds for n in range(rows)]
    quotas = {"domain:geometry": 0.5, "domain:code": 0.2, "domain:algebra": 0.3}
    run_select(tmp_path, problems, max_rows=100, quotas=quotas)
    # 8 of the 50 rows of geometry are missing, which is no other quota's loss.
    assert Counter(selected(tmp_path)["domain"]) == {"geometry": 42, "code": 20, "algebra": 30, "other": 8}
    report = run_select(tmp_path, problems, max_rows=100, quotas=quotas, target="balanced")
    # A target that is asked for counts as much as a quota: 5 rows more are 5 rows fewer that the quarter misses.
    assert selected(tmp_path)["domain"].to_list().count("code") == 25
    assert {demand["name"]: demand["rows"] for demand in report.facts["demands"]}["pass rates 0 to 0.25"] == 25


def test_of_a_histogram_that_nobody_asked_for_quotas_leave_what_they_can(tmp_path: Path) -> None:
    kinds = [("algebra", 1, 30), ("algebra", 5, 90), ("geometry", 3, 200), ("geometry", 7, 200)]
    problems = [Problem(passes, domain=domain) for domain, passes, rows in kinds for _ in range(rows)]
    run_select(tmp_path, problems, max_rows=100, quotas={"domain:algebra": 0.5})
    assert Counter((selected(tmp_path)["pass_rate"] * 4).cast(pl.Int64)) == {0: 25, 1: 25, 2: 25, 3: 25}


def test_a_quota_that_cannot_be_met_is_named_with_what_there_is(tmp_path: Path) -> None:
    notes = Notes()
    problems = [Problem(4, domain="algebra")] * 10 + [Problem(4, domain="geometry")] * 200
    run_select(tmp_path, problems, notes, max_rows=100, quotas={"domain:algebra": 0.5})
    assert (selected(tmp_path)["domain"] == "algebra").sum() == 10
    assert "domain:algebra: 10 of 100 selected rows, not 50.0%; there are 10 such rows" in notes.lines


def test_without_max_rows_quotas_decide_how_many_rows_are_selected(tmp_path: Path) -> None:
    problems = [Problem(4, domain="algebra")] * 10 + [Problem(4, domain="geometry")] * 200
    run_select(tmp_path, problems, quotas={"domain:algebra": 0.25})
    domains = Counter(selected(tmp_path)["domain"])
    assert domains["algebra"] == 10
    assert 30 <= domains["geometry"] <= 32


def test_a_quota_of_something_that_does_not_exist_names_what_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="domain:algebar, but no row of domain:algebar") as caught:
        run_select(tmp_path, [Problem(4, domain="algebra")], quotas={"domain:algebar": 0.25})
    assert "domain:algebra." in str(caught.value.hint)


def test_shares_that_no_selection_can_have_are_refused_unless_its_size_is_set(tmp_path: Path) -> None:
    problems = [*[Problem(4, domain="algebra")] * 40, *[Problem(4, domain="geometry")] * 40]
    quotas = {"domain:algebra": 0.2, "domain:geometry": 0.3}
    with pytest.raises(InputError, match=r"Every row has a quota by its domain, and they add up to 0\.5") as caught:
        run_select(tmp_path, problems, quotas=quotas)
    assert "max_rows" in str(caught.value.hint)
    assert run_select(tmp_path, problems, quotas=quotas, max_rows=20).rows_out == 20


def test_thirds_that_are_written_with_three_digits_take_all_rows(tmp_path: Path) -> None:
    problems = [Problem(4, domain=domain) for domain in ("algebra", "geometry", "number") for _ in range(600)]
    quotas = dict.fromkeys(("domain:algebra", "domain:geometry", "domain:number"), 0.333)
    assert run_select(tmp_path, problems, quotas=quotas).rows_out == 1800


def test_quotas_that_contradict_each_other_select_no_handful_of_rows(tmp_path: Path) -> None:
    problems = [*[Problem(4, domain="algebra")] * 40, *[Problem(4, domain="geometry", source="web.jsonl")] * 40]
    with pytest.raises(InputError, match="No selection has all the demanded shares"):
        run_select(tmp_path, problems, quotas={"domain:algebra": 0.9, "source:web.jsonl": 0.5})


def test_a_target_of_bands_is_met_and_keeps_out_what_has_no_share(tmp_path: Path) -> None:
    bands = [{"up_to": 0.3, "share": 0.25}, {"up_to": 0.6, "share": 0.75}, {"up_to": 1, "share": 0}]
    run_select(tmp_path, [Problem(passes) for passes in [1] * 10 + [4] * 60 + [6] * 10], target=bands)
    taken = Counter(selected(tmp_path)["pass_rate"].round(1))
    assert taken == {0.2: 10, 0.5: pytest.approx(30, abs=2)}
    assert Counter(dropped(tmp_path).values()) == {"in_reserve": 60 - taken[0.5], "outside_band": 10}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("open-r1", [0.3, 0.55]),
        ("skywork", [0.07, 0.3, 0.55, 0.8, 0.9]),
        ("balanced", [0.07, 0.3, 0.55, 0.8]),
        ("curriculum", [0.8, 0.55, 0.3]),
    ],
)
def test_named_targets(tmp_path: Path, target: str, expected: list[float]) -> None:
    rates = [0.07, 0.3, 0.55, 0.8, 0.9, 0.97]
    run_select(tmp_path, [Problem(round(rate * 100) - 1, judged=98) for rate in rates], target=target, min_teaching=0)
    taken = selected(tmp_path)["pass_rate"].to_list()
    assert (taken if target == "curriculum" else sorted(taken)) == pytest.approx(expected)


def test_a_selection_of_nothing_is_a_clear_error(tmp_path: Path) -> None:
    expected = r"None of 2 profiled rows is left.*1 too_easy, 1 too_hard"
    with pytest.raises(InputError, match=expected) as caught:
        run_select(tmp_path, [Problem(64, judged=64), Problem(0, judged=64)])
    assert "easier source" in str(caught.value.hint)
    assert "SFT" in str(caught.value.hint)


def test_a_selection_of_nothing_is_none_where_positives_are_to_be_made(tmp_path: Path) -> None:
    report = run_select(tmp_path, [Problem(0, judged=64)] * 3, may_be_empty=True)
    assert report.rows_out == 0
    assert pl.read_parquet(tmp_path / "select" / "hard.parquet").height == 3
    hopeless = [Problem(0, judged=400)] * 12
    assert run_select(tmp_path, hopeless, min_teaching=0, may_be_empty=True).rows_out == 12


def test_a_selection_that_would_hardly_teach_is_refused_with_what_would_help(tmp_path: Path) -> None:
    problems = [Problem(0, judged=400, truncated=1.0)] * 12
    expected = r"groups of 8 .* 12 selected rows, 2\.0% are expected to teach, 98\.0% to be all wrong"
    with pytest.raises(InputError, match=expected) as caught:
        run_select(tmp_path, problems, min_teaching=0)
    assert "raise profile.max_tokens" in str(caught.value.hint)
    assert run_select(tmp_path, problems, min_teaching=0, min_teaching_share=0).rows_out == 12


def test_a_selection_says_what_share_of_its_groups_is_expected_to_teach(tmp_path: Path) -> None:
    shares = [
        run_select(tmp_path, [Problem(4)] * 6, group_size=size).facts["expected_teaching_share"] for size in (2, 16)
    ]
    # Beta(5, 5): 1 - 2 * (5 * 6) / (10 * 11) for pairs.
    assert shares[0] == pytest.approx(0.4545, abs=1e-4)
    assert shares[1] > 0.95


@rows(
    "section, message",
    [
        ({"quotas": {"colour:red": 0.5}}, "domain:NAME"),
        ({"quotas": {"domain:a": 1.5}}, "share from 0 to 1"),
        ({"quotas": {"domain:a": 0.7, "domain:b": 0.6}}, "add up to more than 1"),
        ({"target": [{"up_to": 0.5, "share": 1}]}, "go up to 1"),
        ({"target": [{"up_to": 0.5, "share": 0.2}, {"up_to": 1, "share": 0.2}]}, "add up to 1"),
        ({"target": "unheard-of"}, "balanced"),
        ({"min_pass_rate": 0.8, "max_pass_rate": 0.2}, "below"),
        ({"bands": 4}, "moved to target"),
    ],
)
def test_what_cannot_be_meant_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SelectConfig.model_validate(section)


def test_of_no_rows_none_is_selected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="None of 0 profiled rows"):
        run_select(tmp_path, [])
    assert run_select(tmp_path, [], may_be_empty=True).rows_out == 0


@pytest.mark.parametrize("table", ["profile", "suspicion"])
def test_tables_of_another_profile_are_refused(tmp_path: Path, table: str) -> None:
    problems = [Problem(4), Problem(3), Problem(5)]
    run_select(tmp_path, problems)
    names = ("rows", "profile", "flags", "suspicion")
    inputs = {name: tmp_path / f"{name}.parquet" for name in names}
    whole = pl.read_parquet(inputs[table])
    for other in (whole.reverse(), whole.head(2), pl.concat([whole, whole])):
        other.write_parquet(inputs[table])
        with pytest.raises(InputError, match=rf"{table}.parquet has other rows than .*rows.parquet"):
            select(inputs, SelectConfig(), tmp_path / "select", NullProgress())


def test_rows_are_selected_in_one_order_however_many_are_sorted_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [Problem(number % 9, suspicion=number % 7 / 10) for number in range(90)]
    run_select(tmp_path, problems, max_rows=40)
    first, waiting = selected(tmp_path), reserve(tmp_path)
    monkeypatch.setattr(ordered, "STRETCH_ROWS", 7)
    monkeypatch.setattr(stage, "BLOCK_ROWS", 11)
    monkeypatch.setattr(stage, "read_batches", lambda path: pq.read_table(path).to_batches(5))
    run_select(tmp_path, problems, max_rows=40)
    assert selected(tmp_path).equals(first)
    assert reserve(tmp_path) == waiting
