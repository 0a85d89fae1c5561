"""``segtrust review``."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segtrust._optional import require
from segtrust.cli.options import with_options
from segtrust.errors import ParameterError

if TYPE_CHECKING:
    from segtrust.review.desk import Opening
    from segtrust.review.server import Serving

__all__ = ["REVIEW_EPILOG", "review"]

REVIEW_EPILOG = (
    "Examples:\n\n  segtrust review --demo\n\n"
    "  segtrust review triage/ --policy policy.json --reviewer Ann\n\n"
    "  segtrust review evaluation/ --host 0.0.0.0 --database postgresql://desk@db/verdicts\n\n"
    "Exit codes: 0 stopped by Ctrl-C, 2 an error."
)
_ACCESS = "Who can reach it"
_DEMO = Path("segtrust-review-demo")


def _option(*names: str, panel: str, help: str, **more: object) -> object:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)  # type: ignore[arg-type]


@dataclass
class ReviewFlags:
    """What is reviewed."""

    policy: Annotated[
        Path | None, typer.Option(help="The policy that decides, as `segtrust calibrate` writes it.")
    ] = None
    predictor: Annotated[
        str, typer.Option(help="Which model made the maps; the promise holds for the policy's own.")
    ] = ""
    database: Annotated[
        str,
        typer.Option(
            envvar="SEGTRUST_DATABASE",
            show_envvar=True,
            help="Where verdicts go: postgresql://…; RUN/verdicts.sqlite unless given.",
        ),
    ] = ""
    name: Annotated[
        str, typer.Option(help="Of the run, in a database that several share; that of its folder else.")
    ] = ""
    reviewer: Annotated[str, typer.Option(help="Name to begin with; the page can change it.")] = ""
    minutes: Annotated[float, typer.Option(min=0.0, max=1440.0, help="That a review takes.")] = 5.0


@dataclass
class AccessFlags:
    """Who can reach the desk."""

    host: Annotated[
        str, _option(panel=_ACCESS, help="Where to listen; beyond this machine a token is needed.")
    ] = "127.0.0.1"
    port: Annotated[int, _option(panel=_ACCESS, min=0, max=65535, help="0 is one that is free.")] = 8765
    token: Annotated[
        str,
        _option(
            panel=_ACCESS,
            envvar="SEGTRUST_TOKEN",
            show_envvar=True,
            help="That everybody must know; one is made up where it is needed and not given.",
        ),
    ] = ""
    allow_host: Annotated[
        list[str] | None,
        _option(panel=_ACCESS, help="A name that the desk is reached by, as through a proxy; several times."),
    ] = None

    def serving(self) -> Serving:
        """Say where the desk listens, and to whom."""
        from segtrust.review.server import Serving

        return Serving(self.host, self.port, self.token, tuple(self.allow_host or ()))


@with_options
def review(
    what: ReviewFlags,
    access: AccessFlags,
    run: Annotated[
        Path | None, typer.Argument(help="A folder of `evaluate` or `triage`, or a table of scores.")
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    api_only: Annotated[
        bool, typer.Option("--api-only", help="Serve the interface without the page.")
    ] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Review the embedded data, in ./segtrust-review-demo.")
    ] = False,
) -> None:
    """Look at deferred cases and decide on them, in the browser.

    The run may still be going on. Verdicts are kept with reviewer, time and policy; nothing is overwritten.
    """
    for package in ("fastapi", "uvicorn", "sqlalchemy"):
        require(package, extra="review")
    from segtrust.review.desk import open_desk
    from segtrust.review.server import page_files, serve

    static = None if api_only else page_files()
    opening = _demo(what) if demo else _opening(run, what)
    desk = open_desk(opening, reviewer=what.reviewer, minutes=what.minutes)
    serve(
        desk, access.serving(), static, lambda addresses: _announce(addresses, open_browser and not api_only)
    )


def _opening(run: Path | None, what: ReviewFlags) -> Opening:
    from segtrust.review.desk import Opening

    if run is None:
        raise ParameterError("run: expected a folder of `evaluate` or `triage`, or --demo; got none.")
    return Opening(run, what.policy, what.predictor, what.database, what.name)


def _announce(addresses: list[str], opens: bool) -> None:
    address, *others = addresses
    typer.echo(f"The review desk is at {address}")
    for each in others:
        typer.echo(f"For others: {each}")
    typer.echo("Stop it with Ctrl-C.")
    if opens and _has_display():
        import webbrowser

        webbrowser.open(address)


def _has_display() -> bool:
    """Tell whether there is a browser with pictures; one of text would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _demo(what: ReviewFlags) -> Opening:
    """Judge the embedded cases, certify a threshold on those in distribution, and open the others beside."""
    from segtrust.demo.nuclei import PREDICTOR, prepare_run
    from segtrust.review.desk import Opening

    typer.echo("Scoring the embedded cases …")
    policy = prepare_run(_DEMO)
    return Opening(_DEMO, policy, PREDICTOR, what.database, what.name or "demo")
