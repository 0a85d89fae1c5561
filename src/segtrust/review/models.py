"""What comes in and goes out, as the interface describes it."""

# Annotations are values here: FastAPI and pydantic look at them.
from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from segtrust.io import Window
from segtrust.policy import Decision
from segtrust.review.audit import Audit
from segtrust.review.entries import Entry, Verdict
from segtrust.review.monitoring import Agreement, Drift, MartingaleCourse
from segtrust.review.pictures import Layer, Plane, Slices, TilePlace
from segtrust.review.worklist import Query as RowQuery, Sort, VerdictFilter

__all__ = [
    "BudgetQuery",
    "CaseDetail",
    "CasePage",
    "CaseQuery",
    "CaseRow",
    "EntryAnswer",
    "EntryNumber",
    "FailedCase",
    "LossAnswer",
    "MonitoringAnswer",
    "Number",
    "PolicyAnswer",
    "Problem",
    "RunAnswer",
    "TargetAnswer",
    "TileAsked",
    "UndoBody",
    "VerdictBody",
    "ViewAnswer",
]

_LARGEST = 2**31 - 1
_CONTROLS = r"\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069"
"""Characters that are no text, or that turn the direction of the text around them."""
_NAME = rf"^[^\s{_CONTROLS}]([^{_CONTROLS}]*[^\s{_CONTROLS}])?$"
_TEXT = rf"^([^{_CONTROLS}]|[\n\t])*$"


def _digits(value: str | int) -> str | int:
    """Refuse what pydantic would take for a whole number: ``+0.0``, say."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise ValueError("Input should be a whole number")
    return value


# Bounds come before the check of the digits: the description has lost those that come after.
Whole = Annotated[int, Field(ge=0, le=_LARGEST), BeforeValidator(_digits)]
WholePath = Annotated[Whole, Path()]
Number = Annotated[Whole, Path(description="Of a row, as `GET /api/cases` gives it.")]
EntryNumber = Annotated[Whole, Path(description="Of an entry, as `GET /api/verdicts` gives it.")]
Request = Annotated[str, Field(min_length=16, max_length=64, pattern=r"^[0-9A-Za-z-]+$")]
Reviewer = Annotated[str, Field(min_length=1, max_length=100, pattern=_NAME)]
Text = Annotated[str, Field(max_length=1000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Minutes = Annotated[float, Field(ge=0.0, le=1440.0, allow_inf_nan=False)]


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str


class CaseQuery(BaseModel):
    """Which rows, in which order."""

    offset: int = Field(0, ge=0, le=_LARGEST)
    limit: int = Field(100, ge=0, le=500)
    sort: Sort = Sort.WORKLIST
    descending: bool = False
    set: Text | None = None
    group: Text | None = None
    structure: Text | None = None
    decision: Decision | None = None
    verdict: VerdictFilter | None = None
    search: Text = ""
    threshold: Finite | None = None
    reviewer: Text = ""
    find: int | None = Field(None, ge=0, le=_LARGEST, description="A row whose place in the list is told.")

    def rows(self) -> RowQuery:
        """Give the part that chooses and sorts."""
        names = ("sort", "descending", "set", "group", "structure", "decision", "verdict", "search")
        return RowQuery(**{name: getattr(self, name) for name in names})


class CaseRow(BaseModel):
    """A row of the worklist."""

    number: int
    case: str
    structure: str
    set: str
    group: str
    confidence: float | None
    margin: float | None
    decision: Decision | None
    dice: float | None
    digest: str
    verdict: Verdict | None


class CasePage(BaseModel):
    """A page of the worklist."""

    total: int
    rows: list[CaseRow]
    place: int | None = Field(
        None, description="Of the row that was to be found; null where it is not there."
    )


class EntryAnswer(BaseModel):
    """An entry of the log."""

    id: int
    time: str
    reviewer: str
    number: int | None = Field(description="Of the row; null where it is no longer in the table.")
    set: str
    case: str
    structure: str
    verdict: Verdict | None = Field(description="Null for an undo.")
    comment: str
    policy: str
    digest: str = Field(description="Of map and mask that were looked at; empty where none is known.")
    confidence: float | None
    decision: str
    undoes: int | None
    holds: bool

    @classmethod
    def of(cls, entry: Entry, number: int | None, holds: bool) -> "EntryAnswer":
        """Say the same of an entry."""
        values = {**vars(entry), **vars(entry.seen), "verdict": entry.verdict or None}
        del values["seen"]
        return cls(**values, number=number, holds=holds)


class ViewAnswer(BaseModel):
    """How a case can be looked at."""

    dimensions: int
    shape: list[int]
    spacing_mm: list[float] | None
    layers: list[Layer]
    levels: int
    tile: int
    plane: Plane
    slices: Slices
    window: Window | None
    note: str = Field(description="Why something is not shown; empty where all is.")


class CaseDetail(CaseRow):
    """A row with all that is known of it."""

    scores: dict[str, float]
    history: list[EntryAnswer]
    view: ViewAnswer | None
    problem: str | None


class TargetAnswer(BaseModel):
    """What a policy promises."""

    risk: float
    below_dice: float | None
    text: str


class PolicyAnswer(BaseModel):
    """A policy."""

    threshold: float
    standing: str
    text: str
    digest: str
    probability: float
    targets: list[TargetAnswer]


class FailedCase(BaseModel):
    """A case that gave no result."""

    case: str
    kind: str
    reason: str


class LossAnswer(BaseModel):
    """What the losses of the cases are."""

    name: str | None = Field(description="Short name of the risk, or a column; null if unknown.")
    label: str
    unit: str


class RunAnswer(BaseModel):
    """What is looked at."""

    title: str
    estimator: str
    estimators: list[str]
    structures: list[str]
    sets: list[str]
    groups: list[str]
    rows: int
    finished: bool
    stopped: bool
    failures: int
    failed: list[FailedCase]
    has_truth: bool
    has_loss: bool
    loss: LossAnswer
    policies: dict[str, PolicyAnswer]
    reviewers: list[str]
    reviewer: str
    minutes: float
    version: int
    instance: str = Field(
        description="Another one when the desk was started anew; numbers of rows are then others."
    )


class MonitoringAnswer(BaseModel):
    """Whether the threshold still holds."""

    reference: list[float]
    new: list[float]
    left_out: int
    drift: Drift | None
    martingale: MartingaleCourse | None
    agreement: Agreement
    audit: Audit | None = Field(description="Audit of accepted cases; null without a policy.")


class BudgetQuery(BaseModel):
    """How many reviews there are."""

    per_day: int = Field(ge=0, le=1_000_000)
    days: int = Field(1, ge=1, le=10_000)
    minutes: Minutes | None = None
    structure: Text | None = None


class VerdictBody(BaseModel):
    """A verdict."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(ge=0, le=_LARGEST)
    verdict: Verdict
    comment: str = Field("", max_length=4000, pattern=_TEXT)
    reviewer: Reviewer
    set: Text | None = None
    case: Text | None = Field(
        None, description="Where given, the verdict is refused if the row is that of another case, or map."
    )
    structure: Text | None = None
    digest: Text | None = None
    request: Request | None = Field(
        None, description="Made up by who sends it. Sent again, the verdict is not written again."
    )

    def meant(self) -> dict[str, str]:
        """Give what the reviewer looked at, as far as it is said."""
        told = {name: getattr(self, name) for name in ("set", "case", "structure", "digest")}
        return {name: value for name, value in told.items() if value is not None}


class UndoBody(BaseModel):
    """Who takes a verdict back."""

    model_config = ConfigDict(extra="forbid")
    reviewer: Reviewer


@dataclass(frozen=True)
class TileAsked:
    """Which tile, and how grey values are stretched."""

    number: Number
    layer: Layer
    slice: WholePath
    level: WholePath
    row: WholePath
    column: WholePath
    low: Annotated[float | None, Query(allow_inf_nan=False)] = None
    high: Annotated[float | None, Query(allow_inf_nan=False)] = None

    @property
    def place(self) -> TilePlace:
        """Which tile."""
        return TilePlace(self.number, self.layer, self.slice, self.level, self.row, self.column)

    @property
    def window(self) -> tuple[float, float] | None:
        """From which value to which; ``None`` for the usual one."""
        return None if self.low is None or self.high is None else (self.low, self.high)
