"""Tests the client with a real `tea serve`: pytest, with tea in PATH."""

import asyncio
import socket
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tea_client import AsyncClient, Client, ConnectionFailed, RunFailed, ServerError, TeaError

FLOWS = {
    "ask": """
state_schema: {n: {type: int, required: true}}
nodes:
  - {name: first, run: 'return {m = state.n + 1}'}
  - {name: q, uses: human.ask, with: {question: "Go on?", choices: ["yes", "no"]}, output: {answer: "{{ result.answer }}"}}
""",
    "many": """
initial_state: {i: 0}
nodes: [{name: l, type: while_loop, condition: state.i < 300, max_iterations: 1000, body: [{name: x, run: 'return {i = state.i + 1}'}]}]
""",
    "slow": "nodes: [{name: a, run: 'return {}'}, {name: s, uses: time.sleep, with: {seconds: 3}}, {name: z, run: 'return {z = 1}'}]\n",
    "boom": "nodes:\n  - {name: ok, run: 'return {}'}\n  - name: outer\n    uses: file.read\n    with: {path: gone.txt}\n",
    "lua": "nodes:\n  - name: a\n    run: |\n      local x = 1\n      error('no')\n",
}


class Server:
    def __init__(self, dir: Path) -> None:
        self.dir = dir
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        for name, text in FLOWS.items():
            (dir / f"{name}.yaml").write_text(f"name: {name}\n{text}")
        (dir / "broken.yaml").write_text("name: broken\nnodes: [{name: a, uses: file.raed}]\n")
        (dir / "token").write_text("0123456789abcdef0123\n")
        (dir / "tokens").write_text("run 0123456789abcdef0123\n")
        (dir / "tokens").chmod(0o600)
        self.start()

    def start(self) -> None:
        command = ["tea", "serve", ".", "--listen", self.url.removeprefix("http://"), "--token-file", "tokens", "-c", "served"]
        self.process = subprocess.Popen(command, cwd=self.dir, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr
        log = ""
        for line in self.process.stderr:
            log += line
            if "serving at" in line:
                return
        pytest.fail(f"the server has not started: {log}")

    def restart(self, kill: bool = True) -> None:
        self.stop(kill)
        self.start()

    def stop(self, kill: bool = True) -> None:
        if kill:
            self.process.kill()
        self.process.terminate()
        self.process.communicate()

    def client(self, **options: Any) -> Client:
        return Client(self.url, token_file=self.dir / "token", **options)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("serve"))
    yield server
    server.stop()


@pytest.fixture
def tea(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


def test_a_run_asks_and_ends(tea: Client) -> None:
    id = tea.start("ask", {"n": 1}, key="k")
    assert tea.start("ask", {"n": 1}, key="k") == id
    run = tea.wait(id, timeout=30)
    assert run["status"] == "waiting" and run["pending"][0]["choices"] == ["yes", "no"]
    assert [q["pending"]["question"] for q in tea.questions() if q["run_id"] == id] == ["Go on?"]
    with pytest.raises(ServerError) as refused:
        tea.answer(id, {"q": "maybe"})
    assert (refused.value.status, refused.value.type) == (422, "validation_error")
    last = list(tea.events(id))[-1].seq
    tea.answer(id, {"q": "yes"})
    assert tea.wait(id)["state"] == {"n": 1, "m": 2, "answer": "yes"}
    after = list(tea.events(id, after=last))
    assert after[0].seq == last + 1 and after[-1].type == "run_end"
    assert tea.node(id, "first")["status"] == "done" and tea.graph(id).startswith("<svg") and tea.files(id) == []
    assert tea.wait(tea.fork(id, "first", {"n": 5}))["state"]["n"] == 5


def test_runs_are_filtered(tea: Client) -> None:
    ids = [tea.start("ask", {"n": n}) for n in range(3)]
    for id in ids:
        tea.wait(id)
    tea.cancel(ids[0])
    assert {run["id"] for run in tea.runs(workflow="ask", status="waiting")} >= set(ids[1:])
    assert ids[0] not in [run["id"] for run in tea.runs(workflow="ask", status="waiting")]
    assert [run["id"] for run in tea.runs(search=ids[1])] == [ids[1]]
    assert list(tea.runs(until=datetime.now() - timedelta(hours=1))) == []
    assert ids[2] in [run["id"] for run in tea.runs(since=datetime.now() - timedelta(hours=1))]


@pytest.mark.parametrize(("workflow", "kind", "path", "position"), [
    ("boom", "not_found", "outer", "boom.yaml:4"),
    ("lua", "internal_error", "a", "lua.yaml:6"),
])
def test_a_failure_has_a_position(tea: Client, workflow: str, kind: str, path: str, position: str) -> None:
    with pytest.raises(RunFailed) as failed:
        tea.run(workflow)
    assert (failed.value.type, failed.value.path, Path(failed.value.position or "").name) == (kind, path, position)
    assert tea.wait(failed.value.run["id"], check=False)["status"] == "failed"


def test_refused_requests(tea: Client, server: Server) -> None:
    calls: list[tuple[Callable[[], object], int]] = [
        (lambda: tea.start("gone"), 404), (lambda: tea.get("gone"), 404), (lambda: tea.start("ask"), 422)]
    for call, status in calls:
        with pytest.raises(ServerError) as refused:
            call()
        assert refused.value.status == status
    (problem,) = tea.workflows()["problems"]
    mistake = TeaError("validation_error", problem["detail"])
    assert (mistake.position, mistake.hint) == (f"{problem['file']}:2:25", 'did you mean "file.read"?')
    (server.dir / "other").write_text("0123456789abcdef3210")
    with Client(server.url, token_file=server.dir / "other") as stranger, pytest.raises(ServerError) as refused:
        stranger.workflows()
    assert refused.value.type == "permission_denied"
    with Client("http://127.0.0.1:1") as nobody, pytest.raises(ConnectionFailed):
        nobody.wait("x")


def test_wait_has_a_timeout(tea: Client) -> None:
    id = tea.start("slow")
    with pytest.raises(TimeoutError):
        tea.wait(id, timeout=0.3)
    assert tea.wait(id)["state"] == {"seconds": 3.0, "z": 1}


class Broken(httpx.HTTPTransport):
    """Connections that break after so many bytes of a stream, also in the middle of a line."""

    opened = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if request.url.path.endswith("/events"):
            self.opened += 1
            response.stream = Cut(response.stream)
        return response


class Cut(httpx.SyncByteStream):
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[bytes]:
        left = 20_001
        for chunk in self.stream:
            yield chunk[:left]
            left -= len(chunk)
            if left < 0:
                raise httpx.ReadError("cut")

    def close(self) -> None:
        self.stream.close()


def test_events_continue_after_a_lost_connection(tea: Client, server: Server) -> None:
    id = tea.start("many")
    tea.wait(id)
    whole = list(tea.events(id))
    broken = Broken()
    with server.client(transport=broken) as client:
        assert list(client.events(id)) == whole and len(whole) > 600
    assert broken.opened > 1


@pytest.mark.parametrize(("kind", "text"), [
    ("text/html", "<h1>It works</h1>"), ("text/event-stream", "data: {\n\n"), ("text/event-stream", "data: null\n\n"),
])
def test_an_address_that_is_not_teas(kind: str, text: str) -> None:
    requests = 0

    def respond(_: httpx.Request) -> httpx.Response:
        nonlocal requests
        requests += 1
        return httpx.Response(200 if requests < 3 else 404, text=text, headers={"Content-Type": kind})

    with Client("http://other.example", transport=httpx.MockTransport(respond)) as client:
        with pytest.raises(ConnectionFailed):
            list(client.events("x"))
        with pytest.raises(ConnectionFailed):
            client.wait("x")
    assert requests == 2


class Proxy(httpx.HTTPTransport):
    """Refuses the first requests for a run and its source."""

    refused = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/source"):
            raise httpx.ConnectError("lost")
        if not request.url.path.endswith("/events") and self.refused < 2:
            self.refused += 1
            return httpx.Response(503)
        return super().handle_request(request)


def test_wait_survives_answers_of_a_proxy(tea: Client, server: Server) -> None:
    for workflow, status in (("ask", "waiting"), ("many", "done")):
        proxy = Proxy()
        with server.client(transport=proxy) as client:
            id = tea.start(workflow, {"n": 1})
            assert client.wait(id, timeout=10)["status"] == status and proxy.refused == 2
    with server.client(transport=Proxy()) as client, pytest.raises(RunFailed):
        client.wait(tea.start("boom"), timeout=10)


@pytest.mark.parametrize("kill", [True, False])
def test_wait_survives_a_restart(server: Server, kill: bool) -> None:
    async def main() -> None:
        streams: list[httpx.Response] = []
        seen: list[int] = []

        async def hook(response: httpx.Response) -> None:
            if response.url.path.endswith("/events"):
                streams.append(response)

        async with AsyncClient(server.url, token_file=server.dir / "token", event_hooks={"response": [hook]}) as tea:
            id = await tea.start("slow")

            async def watch() -> None:
                async for event in tea.events(id):
                    seen.append(event.seq)

            watching = asyncio.create_task(watch())
            waiting = [asyncio.create_task(tea.wait(id, timeout=60)) for _ in range(20)]
            while len(streams) < 21 or not seen:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.restart, kill)
            assert [(await run)["state"] for run in waiting] == [{"seconds": 3.0, "z": 1}] * 20
            await watching
            assert seen == sorted(set(seen)) and seen[0] == 1

    asyncio.run(main())
