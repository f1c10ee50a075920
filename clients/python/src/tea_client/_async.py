import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from ._drawing import Drawing
from ._errors import ConnectionFailed, RunFailed, ServerError, position_in
from ._event import Event, split_lines
from ._types import Node, Run, RunFile, RunQuestion, Source, Status, Workflow, WorkflowList

_SILENCE = 60.0  # the server sends something every 15 seconds
_PASSING = {429, 502, 503, 504}
_MIN_PAUSE, _MAX_PAUSE = 0.25, 10.0


class AsyncClient:
    """A client of `tea serve`.

    address is http://HOST:PORT, https://HOST:PORT or unix:PATH, by default TEA_HOST or
    http://localhost:8311. token_file is a file with the token, by default TEA_TOKEN_FILE, which is
    read for each request. Further options, such as verify and cert, are those of httpx. Close the
    client, or use it in a with statement.
    """

    def __init__(self, address: str | None = None, *, token_file: str | Path | None = None, **options: Any) -> None:
        address = address or os.environ.get("TEA_HOST") or "http://localhost:8311"
        self._token_file = token_file or os.environ.get("TEA_TOKEN_FILE")
        if address.startswith("unix:"):
            options.setdefault("transport", httpx.AsyncHTTPTransport(uds=address.removeprefix("unix:")))
            address = "http://localhost"
        options.setdefault("limits", httpx.Limits(max_connections=None))  # each stream needs one
        timeout = httpx.Timeout(_SILENCE, connect=10)
        self._http = httpx.AsyncClient(base_url=address, timeout=timeout, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def start(self, workflow: str, input: Mapping[str, Any] | None = None, *, key: str | None = None) -> str:
        """Starts a run and returns its id.

        The run is on the server's disk then. After a ConnectionFailed it may have started: repeat
        the request with the same key, which starts one run.
        """
        headers = {"Idempotency-Key": key} if key else {}
        body = {} if input is None else {"input": input}
        path = f"/v1/workflows/{quote(workflow, safe='')}/runs"
        return cast(str, (await self.request("POST", path, json=body, headers=headers))["id"])

    async def run(self, workflow: str, input: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Run:
        """Starts a run and waits for it: see start and wait."""
        return await self.wait(await self.start(workflow, input), timeout=timeout)

    async def get(self, id: str, *, state: bool = True) -> Run:
        """Returns a run, with its state."""
        return cast(Run, await self.request("GET", _path(id), params={"state": "true"} if state else {}))

    async def wait(self, id: str, *, timeout: float | None = None, check: bool = True) -> Run:
        """Waits until a run is done or asks something, and returns it with its state.

        It raises RunFailed after another end, unless check is false, and TimeoutError after
        timeout seconds; the run goes on then. It survives lost connections and restarts of the server.
        """
        end = None if timeout is None else time.monotonic() + timeout
        last, failed = 0, Event()
        while True:
            before = last
            async with aclosing(self._events(id, last, end, connected=last > 0)) as events:
                async for event in events:
                    last = event.seq
                    if event.type == "node_error":
                        failed = event
            run = await self._get(id, end, last > 0)
            if run["status"] not in ("queued", "running"):
                break
            if last == before:  # its next event is imminent
                await asyncio.sleep(_left(_MIN_PAUSE, end))
        if check and run["status"] not in ("done", "waiting"):
            raise RunFailed(run, failed.path, await self._position(id, failed))
        return run

    async def _get(self, id: str, end: float | None, connected: bool) -> Run:
        """Repeats get while the server cannot be reached, if it has been reached before."""
        pause = _MIN_PAUSE
        while True:
            try:
                timeout = httpx.Timeout(_left(_SILENCE, end), connect=_left(10, end))
                return cast(Run, await self.request("GET", _path(id), params={"state": "true"}, timeout=timeout))
            except (ConnectionFailed, ServerError) as error:
                if not connected or isinstance(error, ServerError) and error.status not in _PASSING:
                    raise
            await asyncio.sleep(_left(pause, end))
            pause = min(2 * pause, _MAX_PAUSE)

    async def _position(self, id: str, failed: Event) -> str | None:
        if found := position_in(failed.get("error", "")):
            return found
        try:
            source = await self.source(id)
        except (ConnectionFailed, ServerError):  # the position is unknown
            return None
        lines, path = source.get("lines", {}), re.sub(r"#\d+|\[\d+\]", "", failed.path or "")
        line = lines.get(path) or lines.get(failed.node or "")
        return f"{source['file']}:{line}" if line else None

    def events(self, id: str, *, after: int = 0) -> AsyncGenerator[Event, None]:
        """Returns the events of a run after a number, until it ends or waits.

        If the connection is lost or the server restarts, they continue after the last one. With the
        number of the last event of a waiting run, they are those after its answer.
        """
        return self._events(id, after, None)

    async def _events(self, id: str, last: int, end: float | None, connected: bool = False) -> AsyncGenerator[Event, None]:
        ended, pause = False, _MIN_PAUSE
        while not ended:
            try:
                headers = self._headers({"Accept": "text/event-stream", "Last-Event-ID": str(last)})
                timeout = httpx.Timeout(_left(_SILENCE, end), connect=10)
                async with self._http.stream("GET", _path(id) + "/events", headers=headers, timeout=timeout) as response:
                    if response.status_code >= 300:
                        await response.aread()
                        raise _refused(response)
                    if response.status_code == 204:
                        return
                    if not response.headers.get("content-type", "").startswith("text/event-stream"):
                        raise ConnectionFailed("the response is not a stream of events; check the address")
                    connected, rest = True, b""
                    async for chunk in response.aiter_bytes():
                        _left(_SILENCE, end)
                        lines, rest = split_lines(rest + chunk)
                        for event in map(Event.read, lines):
                            if event.seq > last:
                                last, pause, ended = event.seq, _MIN_PAUSE, event.type == "run_end"
                                yield event
            except httpx.TransportError as error:
                _left(_SILENCE, end)
                if not connected:
                    raise ConnectionFailed(f"the server does not answer: {error}") from error
            except ServerError as error:
                if not connected or error.status not in _PASSING:
                    raise
            if not ended:  # the connection is lost, or the server is stopping
                await asyncio.sleep(_left(pause, end))
                pause = min(2 * pause, _MAX_PAUSE)

    async def runs(
        self, *, workflow: str | None = None, status: Status | None = None, trigger: str | None = None,
        search: str | None = None, since: datetime | None = None, until: datetime | None = None,
    ) -> AsyncGenerator[Run, None]:
        """Returns runs, the newest first.

        search has words of the id, the workflow, the trigger or the error; since and until bound
        the time of acceptance. Pages are requested as they are needed.
        """
        filters = {
            "workflow": workflow, "status": status, "trigger": trigger, "q": search,
            "since": since and since.astimezone().isoformat(timespec="seconds"),
            "until": until and until.astimezone().isoformat(timespec="seconds"),
        }
        params = {"limit": "200"} | {name: value for name, value in filters.items() if value}
        while True:
            page = await self.request("GET", "/v1/runs", params=params)
            for run in page["runs"]:
                yield cast(Run, run)
            if not page.get("next"):
                return
            params["after"] = page["next"]

    async def questions(self) -> list[RunQuestion]:
        """Returns the questions that wait for a person, of all workflows."""
        return cast(list[RunQuestion], (await self.request("GET", "/v1/questions"))["questions"])

    async def answer(self, id: str, answers: Mapping[str, Any]) -> None:
        """Answers questions of a waiting run, by the question's id, path or node; the run continues."""
        await self.resume(id, answers=answers)

    async def resume(
        self, id: str, *, answers: Mapping[str, Any] | None = None, input: Mapping[str, Any] | None = None,
        retry_failed: bool = False, migrate: bool = False,
    ) -> None:
        """Continues a run that waits or has failed.

        input is merged into the state, retry_failed repeats failed branches, and migrate
        continues with the current version of the workflow.
        """
        body = {"answers": answers, "input": input, "retry_failed": retry_failed, "migrate": migrate}
        await self.request("POST", _path(id) + "/resume", json={name: value for name, value in body.items() if value})

    async def retry(self, id: str) -> None:
        """Runs the failed parts of a run again, also of a parked one."""
        await self.request("POST", _path(id) + "/retry")

    async def cancel(self, id: str) -> None:
        """Stops a run that is running, queued, parked or waiting."""
        await self.request("POST", _path(id) + "/cancel")

    async def fork(self, id: str, at: str, input: Mapping[str, Any] | None = None) -> str:
        """Copies a run up to a step, continues the copy and returns its id."""
        body = {"at": at} if input is None else {"at": at, "input": input}
        return cast(str, (await self.request("POST", _path(id) + "/fork", json=body))["id"])

    async def node(self, id: str, at: str) -> Node:
        """Returns the last execution of a node, by its name or path."""
        return cast(Node, await self.request("GET", _path(id) + "/node", params={"at": at}))

    async def source(self, id: str) -> Source:
        """Returns the text of the workflow with which a run began."""
        return cast(Source, await self.request("GET", _path(id) + "/source"))

    async def files(self, id: str) -> list[RunFile]:
        """Returns the files that a run has written."""
        return cast(list[RunFile], (await self.request("GET", _path(id) + "/files"))["files"])

    async def graph(self, id: str) -> Drawing:
        """Draws the workflow of a run with the statuses of its nodes, as SVG."""
        return Drawing(await self.request("GET", _path(id) + "/graph.svg"))

    async def workflows(self) -> WorkflowList:
        """Returns the workflows, and the files that cannot be loaded."""
        return cast(WorkflowList, await self.request("GET", "/v1/workflows"))

    async def workflow(self, name: str) -> Workflow:
        """Returns a workflow, with the schema of its input."""
        return cast(Workflow, await self.request("GET", f"/v1/workflows/{quote(name, safe='')}"))

    async def request(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Sends any request of the API and returns its answer: JSON, or text.

        options are those of httpx.Client.request. Error statuses raise ServerError.
        """
        try:
            response = await self._http.request(method, path, headers=self._headers(headers), **options)
        except httpx.TransportError as error:
            raise ConnectionFailed(f"the server does not answer: {error}") from error
        if response.status_code >= 300:
            raise _refused(response)
        if not response.headers.get("content-type", "").startswith("application/json"):
            return response.text
        return json.loads(response.content)

    def _headers(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        token = {"Authorization": f"Bearer {Path(self._token_file).read_text().strip()}"} if self._token_file else {}
        return dict(headers or {}) | token


def _path(id: str) -> str:
    return f"/v1/runs/{quote(id, safe='')}"


def _left(seconds: float, end: float | None) -> float:
    """Returns seconds, or the shorter time that is left; TimeoutError if none is."""
    left = seconds if end is None else min(seconds, end - time.monotonic())
    if left <= 0:
        raise TimeoutError("the run has not ended in time; it goes on")
    return left


def _refused(response: httpx.Response) -> ServerError:
    message = f"the server answered with status {response.status_code} {response.reason_phrase}"
    if response.headers.get("content-type", "").startswith("application/problem+json"):
        message = response.json().get("detail") or message
    after = response.headers.get("retry-after", "")
    return ServerError(response.status_code, message, int(after) if after.isdecimal() else 0)
