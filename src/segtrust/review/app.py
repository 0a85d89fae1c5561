"""The routes, each as thin as it can be. Imported where the desk is served."""

# Annotations are values here: FastAPI looks at them.
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import SQLAlchemyError
from starlette.routing import Match

from segtrust.errors import (
    OthersVerdictError,
    SegtrustError,
    UndoneVerdictError,
    UnknownNameError,
    UnknownVerdictError,
    UnsafeFileError,
)
from segtrust.review.answers import detail_of, entries_of, monitoring_of, run_of
from segtrust.review.desk import Desk, Page, Said
from segtrust.review.exporting import as_csv
from segtrust.review.models import (
    BudgetQuery,
    CaseDetail,
    CasePage,
    CaseQuery,
    EntryAnswer,
    EntryNumber,
    Minutes,
    MonitoringAnswer,
    Number,
    Problem,
    RunAnswer,
    Text,
    TileAsked,
    UndoBody,
    VerdictBody,
)
from segtrust.review.monitoring import Alarm
from segtrust.review.pictures import Layer
from segtrust.review.thresholds import Budget, Curve, ThresholdNumbers

__all__ = ["create_app"]

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {
        "model": Problem,
        "description": "The desk is not reached by this name, or a body that cannot be read.",
    },
    401: {"model": Problem, "description": "A token is needed."},
    403: {"model": Problem, "description": "Sent by another page, or a verdict of somebody else."},
    404: {"model": Problem, "description": "There is no such thing."},
    409: {"model": Problem, "description": "It cannot be done as things are."},
    413: {"model": Problem, "description": "Too large."},
    422: {"model": Problem, "description": "Not what was expected."},
    429: {"model": Problem, "description": "Too many requests."},
    503: {"model": Problem, "description": "The database does not answer."},
}
_STATUS: tuple[tuple[type[SegtrustError], int], ...] = (
    (UnknownNameError, 404),
    (UnknownVerdictError, 404),
    (OthersVerdictError, 403),
    (UndoneVerdictError, 409),
    (UnsafeFileError, 413),
    (SegtrustError, 409),
)
_MOST_ENTRIES = 1000
_PLAINLY = {
    "string_pattern_mismatch": "expected text without control characters, and of a name no space at its ends."
}
"""What is said instead of a pattern."""

_DISKS = {
    "disk is full": "is on a disk that is full. Make room",
    "no space left": "is on a disk that is full. Make room",
    "disk i/o error": "is on a disk that is full or fails. Make room, or mend it",
    "readonly": "cannot be written to. Change that",
}
"""What databases say of their disks, and what is said of it here."""

routes = APIRouter(prefix="/api", responses=_REFUSALS)


def _desk(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


TheDesk = Annotated[Desk, Depends(_desk)]
Structure = Annotated[Text | None, Query(description="All where none is given.")]


@routes.get("/run")
def run(desk: TheDesk) -> RunAnswer:
    """Say what is looked at."""
    return run_of(desk)


@routes.get("/cases", response_model=CasePage)
def cases(desk: TheDesk, asked: Annotated[CaseQuery, Query()]) -> Page:
    """Give a page of the worklist."""
    return desk.page(
        asked.rows(),
        threshold=asked.threshold,
        reviewer=asked.reviewer,
        window=(asked.offset, asked.limit),
        find=asked.find,
    )


@routes.get("/cases/{number}")
def case(
    desk: TheDesk, number: Number, threshold: Annotated[float | None, Query(allow_inf_nan=False)] = None
) -> CaseDetail:
    """Give a row with all that is known of it; decided by a threshold where one is given."""
    return detail_of(desk, number, threshold)


@routes.get(
    "/cases/{number}/tiles/{layer}/{slice}/{level}/{row}/{column}.png",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}},
)
def tile(desk: TheDesk, asked: Annotated[TileAsked, Depends()]) -> Response:
    """Draw a tile of a layer."""
    return Response(desk.tile(asked.place, asked.window), media_type="image/png")


@routes.get(
    "/cases/{number}/volumes/{layer}.nii",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def volume(desk: TheDesk, number: Number, layer: Layer) -> Response:
    """Give a layer of a volume as NIfTI."""
    return Response(desk.volume(number, layer), media_type="application/octet-stream")


@routes.get("/threshold")
def threshold(
    desk: TheDesk,
    value: Annotated[float, Query(allow_inf_nan=False)],
    structure: Structure = None,
    minutes: Annotated[Minutes | None, Query()] = None,
) -> ThresholdNumbers:
    """Say what a threshold does."""
    return desk.numbers(structure).at_threshold(value, desk.minutes if minutes is None else minutes)


@routes.get("/curve")
def curve(desk: TheDesk, structure: Structure = None) -> Curve:
    """Give coverage and risk at all thresholds."""
    return desk.numbers(structure).drawn()


@routes.get("/budget")
def budget(desk: TheDesk, asked: Annotated[BudgetQuery, Query()]) -> Budget:
    """Say what so many reviews catch."""
    minutes = desk.minutes if asked.minutes is None else asked.minutes
    return desk.numbers(asked.structure).with_budget(asked.per_day * asked.days, minutes)


@routes.get("/monitoring")
def monitoring(desk: TheDesk, structure: Structure = None) -> MonitoringAnswer:
    """Say whether the threshold still holds."""
    return monitoring_of(desk, structure)


@routes.get("/alarms")
def alarms(desk: TheDesk) -> list[Alarm]:
    """Say for which policies the new cases are not like those of the calibration."""
    return desk.alarms()


@routes.get("/verdicts")
def verdicts(desk: TheDesk, after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0) -> list[EntryAnswer]:
    """Give the entries later than a number, oldest first, up to 1,000."""
    return entries_of(desk, desk.store.entries(after, _MOST_ENTRIES))


@routes.post("/verdicts")
def decide(desk: TheDesk, body: VerdictBody) -> EntryAnswer:
    """Write down a verdict."""
    said = Said(body.verdict, body.comment, body.reviewer, body.request or "")
    return entries_of(desk, [desk.decide(body.number, said, body.meant())])[0]


@routes.post("/verdicts/{entry}/undo")
def undo(desk: TheDesk, entry: EntryNumber, body: UndoBody) -> EntryAnswer:
    """Take a verdict back."""
    return entries_of(desk, [desk.store.undo(entry, body.reviewer)])[0]


@routes.get("/export.json")
def export_json(desk: TheDesk) -> list[EntryAnswer]:
    """Give the whole log."""
    return entries_of(desk, desk.store.entries())


@routes.get("/export.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
def export_csv(desk: TheDesk) -> Response:
    """Give the whole log as a table."""
    entries = [each.model_dump(mode="json") for each in entries_of(desk, desk.store.entries())]
    name = {"content-disposition": 'attachment; filename="verdicts.csv"'}
    return Response(as_csv(entries), media_type="text/csv", headers=name)


def create_app(desk: Desk, static: Path | None = None) -> FastAPI:
    """Make the application of a desk; with the page, where its built files are given."""

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        Thread(target=desk.warm_up, daemon=True).start()
        yield
        desk.close()

    app = FastAPI(
        title="segtrust review desk",
        lifespan=closing,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.desk = desk
    app.include_router(routes)
    app.add_exception_handler(SegtrustError, _refused)
    app.add_exception_handler(405, _other_method)
    app.add_exception_handler(RequestValidationError, _not_expected)
    app.add_exception_handler(SQLAlchemyError, _without_database)
    if static is not None:
        app.mount("/", StaticFiles(directory=static, html=True))
    return app


def _refused(_: Request, error: Exception) -> JSONResponse:
    status = next(code for kind, code in _STATUS if isinstance(error, kind))
    return _problem(status, str(error))


def _other_method(request: Request, _: Exception) -> JSONResponse:
    """Say which methods a path has, of all routes that share it."""
    found = [each for each in routes.routes if isinstance(each, APIRoute)]
    sharing = [each for each in found if each.matches(request.scope)[0] is not Match.NONE]
    answer = _problem(405, "Method Not Allowed")
    answer.headers["allow"] = ", ".join(sorted({name for each in sharing for name in each.methods or ()}))
    return answer


def _not_expected(_: Request, error: Exception) -> JSONResponse:
    """Say what is wrong in words, without what was sent."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    told = [
        f"{'.'.join(map(str, each['loc'][1:])) or 'body'}: {_PLAINLY.get(each['type'], each['msg'])}"
        for each in found
    ]
    return _problem(422, "; ".join(told))


def _without_database(_: Request, error: Exception) -> JSONResponse:
    """Say that nothing was kept, and of a disk why; what else a database says may hold names of machines."""
    said = str(getattr(error, "orig", None) or error).lower()
    for told, why in _DISKS.items():
        if told in said:
            return _problem(503, f"Nothing was kept: the database of verdicts {why}, and send it again.")
    return _problem(503, f"The database of verdicts does not answer ({type(error).__name__}). Try again.")


def _problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail.encode("utf-8", "replace").decode()}, status)
