"""The web app of `truegold review`: serves the page on which reviewers decide about rows, and its API.

    request                                         effect or answer
    GET  /?token=T                                  the page
    GET  /api/decisions                             the decisions, reviewers' agreement, and the precision of flags
    POST /api/decisions                             stores a decision before it answers
         {"id": "9f0c...", "decision": "fix", "gold": "16"}
         {"id": "9f0c...", "decision": "note", "note": "12+9?"}
    POST /api/undo     {"id": "9f0c..."}            undoes the last decision about the row
    POST /api/reading  {"id": "9f0c...", "gold": "16"}
                                                    how the verifier reads this gold, and the new scores of samples
    GET  /api/rows/ID?source=S&source_row=N         the texts of a row, not shortened
    GET  /NAME/report/index.html?token=T            the report of another run in the same folder

Every request reads decisions from the files. So several tabs and `truegold decide` always show the same decisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from truegold.pipeline.config.mistakes import plain_words
from truegold.pipeline.config.stages import SettleConfig
from truegold.pipeline.report.page_rows import whole_texts
from truegold.pipeline.review.decisions import MAX_GOLD, MAX_NOTE, Decision, DecisionKind
from truegold.pipeline.review.gold_reading import read_gold
from truegold.pipeline.review.request_guard import MAX_BODY, AsgiApp, RequestGuard, error_response
from truegold.pipeline.review.review_measures import FlagPrecision, measure_agreement, measure_flags
from truegold.pipeline.review.reviewed_run import ReviewedRun, ReviewQueue, StaleRowError, UnknownRowError
from truegold.pipeline.running.disk import disk_errors_reported
from truegold.pipeline.tables.rows import row_key
from truegold.verifiers import InputError, SetupError, TruegoldError

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""The name of a run's folder. Names such as "..", which lead out of the folder of runs, do not match."""
MAX_ROW_DIGITS = 18
"""The maximum number of digits of a row number. Such a number fits in 64 bits."""
_STATUS: dict[type[Exception], int] = {UnknownRowError: 404, StaleRowError: 409, SetupError: 507}
"""The HTTP status for some errors. Other errors of truegold have the status 400."""


class _Body(BaseModel):
    """The base of request bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RowBody(_Body):
    """A reference to a row."""

    id: str = Field(min_length=1, max_length=64)
    source: str | None = None
    source_row: int | None = None

    @property
    def source_key(self) -> tuple[str, int] | None:
        """The source and the row number, or None if the request does not have both."""
        return None if self.source is None or self.source_row is None else (self.source, self.source_row)


class DecisionBody(RowBody):
    """A decision about a row."""

    decision: Literal["keep", "drop", "fix", "unsure", "note"]
    gold: Annotated[str, Field(max_length=MAX_GOLD)] | None = None
    note: Annotated[str, Field(max_length=MAX_NOTE)] | None = None
    seen: str | None = None
    drawn: Annotated[str, Field(pattern=r"^(suspicious|random:\d{1,19})$")] | None = None


class GoldBody(RowBody):
    """A gold that a reviewer is typing, for a row."""

    gold: str = Field(max_length=MAX_GOLD)


BodyType = TypeVar("BodyType", bound=_Body)


@dataclass
class ReviewSession:
    """One reviewer's work on a run."""

    run: ReviewedRun
    reviewer: str
    queue: ReviewQueue
    make_page: Callable[[], str]
    """A function that renders the page."""
    _page: tuple[int, str] | None = None
    """The cached page, with the time of the run's last change."""

    def page(self) -> str:
        """Return the page, rendered again if the run has changed."""
        changed = (self.run.run_dir / "manifest.json").stat().st_mtime_ns
        if self._page is None or self._page[0] != changed:
            # While the run is being made again, flags may be missing. The old page is kept.
            with suppress(InputError):
                self.run = replace(ReviewedRun.open(self.run.run_dir, self.run.folder), further=self.run.further)
                self._page = (changed, self.make_page())
        return self._page[1] if self._page else self.make_page()

    def decisions(self) -> dict[str, Any]:
        """Return the decisions and measures. A blind reviewer gets no decisions of others, and no signs of them."""
        decisions = self.run.decisions()
        review = self.run.weigh()
        stale = {decision for standing in review.standings.values() for decision in standing.stale}
        all_decisions = list(chain.from_iterable(decisions.values()))
        mine = [decision for decision in all_decisions if decision.reviewer == self.reviewer]
        others = [decision for decision in all_decisions if decision.reviewer != self.reviewer]
        progress = self._progress(mine)
        # A blind reviewer sees measures only after the last row. Others' decisions stay hidden, because the reviewer
        # may go back to a row.
        sees_measures = not self.queue.blind or progress is None or progress["decided"] == progress["total"]
        agreement = measure_agreement(decisions)
        measured = measure_flags(self.run.decided_flags(decisions), review.agreed, review.conflicts)
        return {
            "reviewer": self.reviewer,
            "decisions": [_shown(decision, stale) for decision in mine],
            "notes": self.run.notes(self.reviewer),
            "others": [_shown(decision, stale) for decision in others] if not self.queue.blind else [],
            "agreement": asdict(agreement[0]) if agreement and sees_measures else None,
            "precision": [_shown_precision(entry) for entry in measured] if sees_measures else [],
            "progress": progress,
        }

    def _progress(self, mine: list[Decision]) -> dict[str, int] | None:
        if self.queue.keys is None:
            return None
        ids = {key[0] for key in self.queue.keys}
        return {"decided": len(ids & {decision.id for decision in mine}), "total": len(ids)}

    def decide(self, body: DecisionBody) -> dict[str, Any]:
        """Store a decision."""
        with disk_errors_reported(self.run.folder):
            made = self.run.decide(
                body.id,
                DecisionKind(body.decision),
                self.reviewer,
                gold=body.gold,
                note=body.note,
                seen=body.seen,
                drawn=body.drawn or self.queue.drawn,
                blind=self.queue.blind,
                source_key=body.source_key,
            )
        return {"decision": _shown(made, set())}

    def undo(self, body: RowBody) -> dict[str, Any]:
        """Undo the reviewer's last decision about a row. Return the decision before it, which is valid again."""
        self.run.rows_of(body.id)
        if self.run.standing(body.id, self.reviewer) is not None:
            with disk_errors_reported(self.run.folder):
                self.run.decide(body.id, DecisionKind.UNDO, self.reviewer)
        stands = self.run.standing(body.id, self.reviewer)
        return {"decision": None if stands is None else _shown(stands, set())}

    def read(self, body: GoldBody) -> dict[str, Any]:
        """Return the effects of a proposed gold."""
        row = self.run.row_of(body.id, body.source_key)
        return asdict(read_gold(row, self.run.as_meant(row, body.gold), self.run.responses(row_key(row))))

    def texts(self, body: RowBody) -> dict[str, Any]:
        """Return the whole texts of any row on the page, including rows that were dropped before review."""
        texts = whole_texts(self.run.files, body.id, body.source_key, is_blind=self.queue.blind)
        if texts is None:
            raise UnknownRowError(f"No row of {self.run.run_dir} has the id {body.id!r}.")
        return texts


def _shown(decision: Decision, stale: set[Decision]) -> dict[str, Any]:
    line = decision.model_dump(mode="json", exclude_none=True, by_alias=True)
    return line | {"stale": decision in stale}


def _shown_precision(entry: FlagPrecision) -> dict[str, Any]:
    tiers = {True: "blocks", False: "advises", None: None}
    suggested = tiers[entry.tier(SettleConfig().min_decisions)]
    return asdict(entry) | {"tier": tiers[entry.blocks], "suggested_tier": suggested}


def make_app(session: ReviewSession, hosts: frozenset[str], token: str) -> AsgiApp:
    """Return the app. Requests must have one of these hosts, and the token (`RequestGuard`)."""

    async def show_page(request: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(session.page))

    async def show_report(request: Request) -> Response:
        name = request.path_params["name"]
        path = session.run.run_dir.parent / name / "report" / "index.html"
        if not _RUN_NAME.fullmatch(name) or not path.is_file():
            return error_response(404, f"There is no report of a run {name!r} here.")
        return FileResponse(path, media_type="text/html; charset=utf-8")

    async def show_decisions(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(session.decisions))

    async def show_row(request: Request) -> Response:
        row = request.query_params.get("source_row", "")
        body = RowBody(
            id=request.path_params["row_id"],
            source=request.query_params.get("source"),
            source_row=int(row) if row.isdecimal() and len(row) <= MAX_ROW_DIGITS else None,
        )
        return JSONResponse(await run_in_threadpool(session.texts, body))

    routes = [
        Route("/", show_page),
        Route("/{name}/report/index.html", show_report),
        Route("/api/decisions", show_decisions),
        Route("/api/decisions", _json_endpoint(DecisionBody, session.decide), methods=["POST"]),
        Route("/api/undo", _json_endpoint(RowBody, session.undo), methods=["POST"]),
        Route("/api/reading", _json_endpoint(GoldBody, session.read), methods=["POST"]),
        Route("/api/rows/{row_id}", show_row),
    ]
    explained = {TruegoldError: _explain, HTTPException: _explain_http, Exception: _explain_bug}
    app = Starlette(routes=routes, exception_handlers=explained)
    return RequestGuard(app, hosts, token)


def _json_endpoint(kind: type[BodyType], answer: Callable[[BodyType], dict[str, Any]]) -> Callable[[Request], Any]:
    """Return an endpoint that validates a JSON body of this kind and answers with JSON."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "The request is not JSON: its Content-Type must be application/json.")
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_BODY:
                raise HTTPException(413, f"The request is larger than {MAX_BODY:,} bytes.")
        try:
            body = kind.model_validate(orjson.loads(content))
        except orjson.JSONDecodeError as error:
            raise HTTPException(400, f"The request is not JSON: {error}.") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "the request"
            raise HTTPException(400, f"{field}: {plain_words(first['msg'])}.") from None
        return JSONResponse(await run_in_threadpool(answer, body))

    return endpoint


async def _explain_bug(request: Request, error: Exception) -> Response:
    return error_response(500, f"truegold has a bug: {type(error).__name__}. Its traceback is in the terminal.")


async def _explain(request: Request, error: Exception) -> Response:
    assert isinstance(error, TruegoldError)
    return error_response(_STATUS.get(type(error), 400), str(error))


async def _explain_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, str(error.detail))
