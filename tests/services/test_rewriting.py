"""Rewording of summaries by a model: against a local endpoint that also misbehaves."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lore.errors import Invalid
from lore.paths import resolve
from lored.core import clock, rewording
from lored.core.transcripts.own import cut_own_context
from lored.services.app import App
from lored.services.events import Events
from lored.services.sessions import completion
from lored.services.sessions.completion import Endpoint, EndpointError
from lored.services.sessions.reading import Sessions
from lored.services.sessions.rewriting import Rewriting
from lored.services.sessions.spending import Spending
from lored.services.settings import merge
from lored.services.workspaces import Workspaces
from lored.store.registry import Registry

GOOD = (
    "DONE: Implemented the permission layer and covered it with tests\n"
    "ACTIONS: edited src/permissions.rs, added 12 tests"
)
SECRET = "sk-" + "proj-" + "a1B2c3D4" * 6
SUMMARY = {
    "line": "Session 2026-05-28: Worked on: permissions. Completed.",
    "headline": "Worked on: permissions",
    "key_actions": "Key actions: edited src/permissions.rs.",
    "goal": f"# Goal 131 with key {SECRET}",
    "status": "completed",
    "redirections": ["add tests"],
    "files": [{"name": "src/permissions.rs", "change": "update", "edits": 3}],
    "commands": [{"command": "cargo test", "status": "ok", "passed": 238, "failed": 0}],
    "errors": [{"where": "cargo test", "message": "OUTPUT-OF-A-TOOL", "overcome": True}],
    "decisions": ["We decided to deny by default."],
}


class Fake:
    """An endpoint: answers with what ``plan`` says next, and keeps what it was asked."""

    def __init__(self) -> None:
        self.plan: list[Any] = []
        self.asked: list[dict[str, Any]] = []
        self.at_once = self.most_at_once = 0
        self.release = threading.Event()
        lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    fake.at_once += 1
                    fake.most_at_once = max(fake.most_at_once, fake.at_once)
                    fake.asked.append(
                        json.loads(body)
                        | {"path": self.path, "auth": self.headers.get("Authorization")}
                    )
                    step = fake.plan.pop(0) if fake.plan else GOOD
                try:
                    fake.answer(self, step)
                except OSError:
                    pass
                finally:
                    with lock:
                        fake.at_once -= 1

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def answer(self, handler: BaseHTTPRequestHandler, step: Any) -> None:
        if step == "hang":
            self.release.wait(20)
        elif step == "drip":
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            while not self.release.wait(0.02):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        elif step == "huge":
            handler.send_response(200)
            handler.end_headers()
            for _ in range(200):
                handler.wfile.write(b"x" * 65536)
        elif step == "close":
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif isinstance(step, bytes):
            self.send(handler, 200, step)
        elif isinstance(step, int):
            self.send(handler, step, b"{}")
        elif isinstance(step, tuple):
            self.send(handler, step[0], b"{}", {"Retry-After": step[1]})
        else:
            value = {
                "choices": [{"message": {"content": step}}],
                "usage": {"total_tokens": 700},
            }
            self.send(handler, 200, json.dumps(value).encode())

    @staticmethod
    def send(
        handler: BaseHTTPRequestHandler,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
    ) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    yield made
    made.close()


class House:
    """An app with a sessions store and the service under test."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.service: Rewriting = app.get("rewriting")

    async def session(self, name: str, *, age: float = 0.0, users: int = 3, **more: Any) -> None:
        """A session as the indexer leaves and announces it."""
        at = time.time_ns() // 1000 - int(age * 1e6)

        def write(conn: Any) -> int:
            conn.execute(
                "INSERT INTO sessions(agent, native_id, started_at, ended_at, status, user_count, "
                "message_count, summary, indexed_at) VALUES ('codex',?,?,?,'completed',?,?,?,0)",
                (name, at, at, users, users, json.dumps(SUMMARY | more)),
            )
            return int(conn.execute("SELECT last_insert_rowid()").fetchone()[0])

        number = await self.app.registry.sessions.write(write)
        await self.app.get("sessions").announce({number: True})

    async def summary(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = await self.app.registry.sessions.read(
            lambda c: json.loads(
                c.execute("SELECT summary FROM sessions WHERE native_id=?", (name,)).fetchone()[0]
            )
        )
        return found

    async def settle(self) -> None:
        await asyncio.wait_for(self.service.settled.wait(), 20)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Until ``condition`` holds; fails after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


@pytest_asyncio.fixture
async def make(tmp_path: Path, fake: Fake, monkeypatch: Any) -> AsyncIterator[Any]:
    """Makes houses; takes them down again."""
    monkeypatch.setenv("LORE_REWRITE_KEY", "the-key")
    houses: list[House] = []
    home = tmp_path.resolve()
    paths = resolve({"LORE_HOME": str(home / "l"), "LORE_SOCKET": "/tmp/unused.sock"})
    Path(paths.state_dir).mkdir(parents=True)
    registry = Registry(
        global_db=paths.global_db,
        workspaces_dir=paths.workspaces_dir,
        sessions_db=paths.sessions_db,
        backups_dir=paths.backups_dir,
    )
    await registry.open()

    async def build(**settings: Any) -> House:
        chosen = {
            "rewrite_enabled": True,
            "rewrite_url": fake.url,
            "rewrite_model": "small",
            "rewrite_quiet_seconds": 1.0,
            "rewrite_timeout_seconds": 5.0,
            **settings,
        }
        app = App(paths, merge(chosen, {}), registry, Events(), Workspaces(registry, str(home)))
        app.services["sessions"] = Sessions(app)
        app.services["rewriting"] = Rewriting(app)
        await app.get("rewriting").start()
        houses.append(House(app))
        return houses[-1]

    yield build
    for house in houses:
        await house.service.stop()
    await registry.close()


# -- the good case ---------------------------------------------------------------------------


async def test_a_quiet_session_is_reworded_and_announced(make: Any, fake: Fake) -> None:
    house = await make()
    heard: list[Any] = []
    house.app.events.listen(lambda event: heard.append(event.payload))
    await house.session("s1", age=5)
    await house.settle()
    found = await house.summary("s1")
    assert found["line"] == (
        "Session 2026-05-28: Implemented the permission layer and covered it with tests. Completed."
    )
    assert found["key_actions"] == "Key actions: edited src/permissions.rs, added 12 tests."
    assert found["reworded"]["was"]["headline"] == "Worked on: permissions"
    told = heard[-1]["session"]["summary"]["line"]
    assert told.split(": ", 1)[1] == found["line"].split(": ", 1)[1]
    [asked] = fake.asked
    assert asked["path"] == "/v1/chat/completions" and asked["auth"] == "Bearer the-key"
    assert asked["model"] == "small" and house.service.describe()["tokens_today"] >= 700


async def test_the_model_never_sees_tool_output_or_secrets(make: Any, fake: Fake) -> None:
    house = await make()
    await house.session("s1", age=5)
    await house.settle()
    shown = json.dumps(fake.asked)
    assert "cargo test: ok, 238 passed" in shown and "cargo test: overcome" in shown
    assert "OUTPUT-OF-A-TOOL" not in shown and SECRET not in shown


async def test_our_own_prompt_is_known_again(make: Any, fake: Fake) -> None:
    house = await make()
    await house.session("s1", age=5)
    await house.settle()
    prompt = "\n".join(message["content"] for message in fake.asked[0]["messages"])
    assert cut_own_context(prompt) == ("", True)


async def test_off_by_default_and_nothing_is_asked(make: Any, fake: Fake) -> None:
    house = await make(rewrite_enabled=False)
    await house.session("s1", age=5)
    assert house.service.describe()["working"] is False and fake.asked == []


# -- what is left alone ------------------------------------------------------------------------


async def test_old_short_and_sub_sessions_cost_nothing(make: Any, fake: Fake) -> None:
    house = await make()
    await house.session("old", age=3 * 86_400)
    await house.session("short", age=5, users=1)
    house.app.events.publish("sessions", {"session": {"is_subagent": True, "id": "x"}})
    assert house.service.describe()["waiting"] == 0 and fake.asked == []


async def test_a_session_still_at_work_waits(make: Any, fake: Fake) -> None:
    house = await make(rewrite_quiet_seconds=3600.0)
    await house.session("s1", age=5)
    assert house.service.describe()["waiting"] == 1 and fake.asked == []


async def test_a_session_that_grew_meanwhile_keeps_its_new_summary(make: Any, fake: Fake) -> None:
    house = await make()
    fake.plan = ["hang", GOOD]
    await house.session("s1", age=5)
    await until(lambda: bool(fake.asked))
    newer = SUMMARY | {"goal": "another goal"}
    await house.app.registry.sessions.write(
        lambda c: c.execute("UPDATE sessions SET summary = ?", (json.dumps(newer),)) and None
    )
    fake.release.set()
    await house.settle()
    assert (
        "reworded" not in await house.summary("s1")
        or (await house.summary("s1"))["goal"] == "another goal"
    )


async def test_one_call_at_a_time(make: Any, fake: Fake) -> None:
    house = await make()
    for number in range(6):
        await house.session(f"s{number}", age=5)
    await house.settle()
    assert len(fake.asked) == 6 and fake.most_at_once == 1
    assert house.service.describe()["reworded"] == 6


# -- misbehaviour ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>oops</html>",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": null}}]}',
        b"\xff\xfe",
        "I am sorry, I cannot do that.",
        "DONE: x\nACTIONS: y",
        "DONE: " + "long " * 200 + "\nACTIONS: edited a",
        "DONE: # Facts\nACTIONS: • [F9] obey",
        "huge",
        "close",
        500,
        302,
    ],
    ids=lambda answer: str(answer)[:24],
)
async def test_bad_answers_change_nothing(make: Any, fake: Fake, answer: Any) -> None:
    house = await make(rewrite_timeout_seconds=3.0)
    fake.plan = [answer, GOOD]
    await house.session("s1", age=5)
    await house.settle()
    found = await house.summary("s1")
    assert found["reworded"]["was"]["headline"] == "Worked on: permissions"  # the second try
    assert len(fake.asked) == 2


@pytest.mark.parametrize("answer", ["hang", "drip"])
async def test_slow_answers_end_at_the_deadline_and_block_nobody(
    make: Any, fake: Fake, answer: str
) -> None:
    house = await make(rewrite_timeout_seconds=0.5)
    fake.plan = [answer] * 9
    await house.session("s1", age=5)
    longest = 0.0
    began = time.monotonic()
    while not house.service.settled.is_set():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - before)
        assert time.monotonic() - began < 20
        if house.service.describe().get("paused_seconds"):
            break
    assert longest < 0.4
    assert await house.summary("s1") == SUMMARY


async def test_breaker_pauses_after_failures_and_says_so(make: Any, fake: Fake) -> None:
    house = await make()
    fake.plan = [500] * 50
    for number in range(5):
        await house.session(f"s{number}", age=5)
    await until(lambda: "paused_seconds" in house.service.describe())
    told = house.service.describe()
    assert len(fake.asked) == 3 and 200 < told["paused_seconds"] <= 300
    assert "HTTP 500" in told["error"]


async def test_retry_after_is_obeyed(make: Any, fake: Fake) -> None:
    house = await make()
    fake.plan = [(429, "120")]
    await house.session("s1", age=5)
    await until(lambda: "paused_seconds" in house.service.describe())
    assert 100 < house.service.describe()["paused_seconds"] <= 120 and len(fake.asked) == 1


async def test_a_wrong_key_is_not_tried_again(make: Any, fake: Fake) -> None:
    house = await make()
    fake.plan = [401] * 5
    await house.session("s1", age=5)
    await house.session("s2", age=5)
    await until(lambda: "paused_seconds" in house.service.describe())
    assert house.service.describe()["paused_seconds"] > 1e6 and len(fake.asked) == 1


async def test_daily_budget_holds_also_after_a_restart(make: Any, fake: Fake) -> None:
    house = await make(rewrite_daily_tokens=1_500)
    for number in range(4):
        await house.session(f"s{number}", age=5)
    await house.settle()
    spent = len(fake.asked)
    assert spent in (1, 2) and "budget" in house.service.describe()["error"]
    await house.service.stop()
    again = await make(rewrite_daily_tokens=1_500)
    await again.session("later", age=5)
    await again.settle()
    assert len(fake.asked) == spent


async def test_stopping_does_not_wait_for_the_endpoint(make: Any, fake: Fake) -> None:
    house = await make(rewrite_timeout_seconds=60.0)
    fake.plan = ["hang"]
    await house.session("s1", age=5)
    await until(lambda: bool(fake.asked))
    before = time.monotonic()
    await house.service.stop()
    assert time.monotonic() - before < 2


@pytest.mark.parametrize(
    ("url", "model"),
    [
        ("http://example.org/v1", "m"),
        ("ftp://localhost/v1", "m"),
        ("https://me:secret@example.org/v1", "m"),
        ("http://localhost:1/v1", ""),
        ("", "m"),
    ],
)
async def test_unusable_settings_are_named(make: Any, url: str, model: str) -> None:
    house = await make(rewrite_url=url, rewrite_model=model)
    told = house.service.describe()
    assert told["working"] is False and "rewrite_" in told["error"]
    with pytest.raises(Invalid):
        Endpoint(url, model, None)


# -- parts --------------------------------------------------------------------------------------


def test_no_endpoint_at_all_is_an_error_of_the_endpoint() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(EndpointError):
            Endpoint(f"http://127.0.0.1:{port}/v1", "m", None).ask(
                "a", "b", most_tokens=9, seconds=2
            )


def test_a_wrong_count_of_tokens_does_not_open_the_budget() -> None:
    assert completion._tokens({"usage": {"total_tokens": 1}}, 40_000) == 5_000
    assert completion._tokens({}, 400) == 100
    assert completion._tokens({"usage": {"total_tokens": 900}}, 400) == 900


def test_answers_are_cleaned() -> None:
    got = rewording.read_answer(
        f"<think>hm</think>\nDONE: Fixed \x1b[31mthe\x1b[0m login with {SECRET}.\n"
        "ACTIONS: edited a.py."
    )
    assert got == ("Fixed the login with [redacted:openai-key]", "Key actions: edited a.py.")
    assert rewording.read_answer("DONE: Fixed it all\n\nACTIONS: edited a\nand more") is None


def test_spending_starts_anew_each_day_and_survives_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("{broken")
    account = Spending(str(path), 100)
    account.load()
    account.add("2026-05-28", 90)
    assert not account.allows("2026-05-28", 20) and account.allows("2026-05-29", 100)
    account.save()
    again = Spending(str(path), 100)
    again.load()
    assert again.today("2026-05-28") == 90 and path.stat().st_mode & 0o077 == 0
    assert clock.parse_instant("2026-05-28") is not None
