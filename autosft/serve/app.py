"""The routes: each reads its campaign, renders one page, and writes nothing; acts go through the library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from autosft.errors import AutosftError, CampaignError
from autosft.serve import content, rows
from autosft.serve.folders import campaigns
from autosft.serve.render import render
from autosft.serve.security import REPORT_POLICY, Gate, guard

STATIC = {"serve.css": "text/css", "serve.js": "text/javascript"}
_LOOK_EVERY_S = 1.0


def create_app(root: Path, gate: Gate) -> Any:
    """Return the ASGI application.

    Args:
        root: A campaign's folder, or one that holds campaigns.
        gate: Who may look and act.

    Raises:
        CampaignError: There is no campaign.
    """
    campaigns(root)  # refuse an empty folder before a port is opened
    app = FastAPI(title="autosft", docs_url=None, redoc_url=None, openapi_url=None)
    guard(app, gate)

    @app.exception_handler(AutosftError)
    async def _wrong(request: Request, error: AutosftError) -> Response:
        page = render("error.html.j2", title="Not found", text=str(error), name=None, tab="")
        return HTMLResponse(page, status_code=404 if isinstance(error, CampaignError) else 500)

    def folder(name: str) -> Path:
        found = campaigns(root).get(name)
        if found is None:
            raise CampaignError(f"there is no campaign {name[:80]!r}")
        return found

    def show(template: str, name: str, tab: str, values: dict[str, Any]) -> HTMLResponse:
        shared = {"name": name, "tab": tab, "acts": gate.acts, "act_token": gate.act_token}
        return HTMLResponse(render(template, **{**values, **shared}))

    @app.get("/")
    def home() -> Response:
        found = campaigns(root)
        if len(found) == 1:
            return RedirectResponse(f"/c/{next(iter(found))}/", status_code=303)
        return HTMLResponse(render("home.html.j2", campaigns=content_of(found), name=None, tab=""))

    @app.get("/static/{file}")
    def static(file: str) -> Response:
        if file not in STATIC:
            return PlainTextResponse("no such file\n", status_code=404)
        data = (files("autosft.serve") / "static" / file).read_bytes()
        if file == "serve.css":  # on top of the report's, so that charts look the same
            data = (files("autosft.report") / "templates" / "page.css").read_bytes() + data
        return Response(data, media_type=STATIC[file])

    @app.get("/c/{name}/")
    def overview(name: str) -> Response:
        return show("overview.html.j2", name, "overview", content.overview(folder(name)))

    @app.get("/c/{name}/round/{number}")
    def one_round(name: str, number: int) -> Response:
        return show("round.html.j2", name, "overview", content.round_page(folder(name), number))

    @app.get("/c/{name}/leaves")
    def leaves(name: str) -> Response:
        return show("leaves.html.j2", name, "leaves", content.leaves_page(folder(name)))

    @app.get("/c/{name}/rows")
    def some_rows(
        name: str,
        round: str = "",
        source: str = "",
        leaf: str = "",
        origin: str = "",
        search: str = "",
        page: int = 1,
    ) -> Response:
        number = int(round) if round.isdigit() else None
        view = rows.rows_page(
            folder(name),
            number=number,
            source=source,
            leaf=leaf,
            origin=origin,
            search=search[:200],
            page=page,
        )
        return show("rows.html.j2", name, "rows", view)

    @app.get("/c/{name}/row/{row_id}")
    def one_row(name: str, row_id: str, round: str = "") -> Response:
        number = int(round) if round.isdigit() else None
        return show("row.html.j2", name, "rows", rows.row_page(folder(name), row_id, number))

    @app.get("/c/{name}/transcripts")
    def exchanges(name: str) -> Response:
        return show(
            "transcripts.html.j2", name, "transcripts", {"exchanges": content.transcripts(folder(name))}
        )

    @app.get("/c/{name}/transcripts/{key}")
    def exchange(name: str, key: str) -> Response:
        return show(
            "transcript.html.j2", name, "transcripts", {"exchange": content.transcript(folder(name), key)}
        )

    @app.get("/c/{name}/runs")
    def all_runs(name: str) -> Response:
        return show("runs.html.j2", name, "runs", {"runs": content.runs(folder(name))})

    @app.get("/c/{name}/log/{file}")
    def log(name: str, file: str) -> Response:
        return show("log.html.j2", name, "runs", {"file": file, "text": content.log_text(folder(name), file)})

    @app.get("/c/{name}/report")
    def report(name: str) -> Response:
        from autosft.meta.views_report import campaign_report
        from autosft.report.page import render_page

        found = HTMLResponse(render_page(campaign_report(folder(name))))
        found.headers["Content-Security-Policy"] = REPORT_POLICY
        return found

    @app.get("/c/{name}/events")
    async def events(name: str, request: Request) -> Response:
        from sse_starlette import EventSourceResponse

        response: Response = EventSourceResponse(changes(folder(name), request.is_disconnected))
        return response

    @app.post("/c/{name}/act/{what}")
    def act(
        name: str,
        what: str,
        token: Annotated[str, Form()] = "",
        reason: Annotated[str, Form()] = "",
        number: Annotated[int, Form()] = -1,
    ) -> Response:
        if not gate.may_act(token):
            return PlainTextResponse("acts need the page's own token\n", status_code=403)
        if what not in ACTS:
            return PlainTextResponse("no such act\n", status_code=404)
        try:
            ACTS[what](folder(name), reason, number)
        except AutosftError as error:
            return HTMLResponse(
                render("error.html.j2", title="Not done", text=str(error), name=name, tab=""), status_code=409
            )
        return RedirectResponse(f"/c/{name}/", status_code=303)

    return app


async def changes(out: Path, gone: Callable[[], Any]) -> AsyncIterator[dict[str, str]]:
    """Yield an event whenever the campaign's folder says something new."""
    known = ""
    while not await gone():
        now = await asyncio.to_thread(content.stamp, out)
        if now != known:
            known = now
            yield {"event": "change", "data": str(abs(hash(now)))}
        await asyncio.sleep(_LOOK_EVERY_S)


def content_of(found: dict[str, Path]) -> list[dict[str, Any]]:
    """Return the status of several campaigns; one that cannot be read says why."""
    from autosft.meta import views

    shown = []
    for name, path in found.items():
        try:
            shown.append({"name": name, **views.status(path), "error": None})
        except AutosftError as error:
            shown.append({"name": name, "error": str(error)})
    return shown


def _approve(out: Path, reason: str, number: int) -> None:
    from autosft.meta.approval import judge

    judge(out, approve=True, reason=reason, by="live page")


def _reject(out: Path, reason: str, number: int) -> None:
    from autosft.meta.approval import judge

    judge(out, approve=False, reason=reason, by="live page")


def _pause(out: Path, reason: str, number: int) -> None:
    from autosft.meta.approval import hold

    hold(out, by="live page")


def _resume(out: Path, reason: str, number: int) -> None:
    from autosft.meta.approval import release

    release(out)


def _invalidate(out: Path, reason: str, number: int) -> None:
    from autosft.meta.operate import invalidate

    invalidate(out, number, reason)


ACTS: dict[str, Callable[[Path, str, int], None]] = {
    "approve": _approve,
    "reject": _reject,
    "pause": _pause,
    "resume": _resume,
    "invalidate": _invalidate,
}
