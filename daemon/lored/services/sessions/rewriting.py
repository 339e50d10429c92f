"""Optional: a model rewords the summary of a session that has gone quiet. Off by default.

What keeps it cheap and harmless:
- only sessions that grew while this daemon ran and ended within `FRESH_SECONDS`: indexing old
  transcripts never leads to a model call;
- one call at a time, each digest once, a daily token budget that survives restarts;
- after `FAILURES` errors in a row a pause that doubles, or as long as the endpoint asks; a
  hopeless error (wrong key) pauses until the settings change, that is until a restart;
- the model sees a digest (`core.rewording`), its answer is data: two bounded lines or nothing.
The deterministic summary is always there first and stays when anything fails.
"""

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from typing import Any, Final

import structlog

from lore.errors import Invalid
from lored.core import clock, rewording, summary
from lored.services.app import App
from lored.services.events import Event
from lored.services.moments import now, zone
from lored.services.sessions.completion import Endpoint, EndpointError
from lored.services.sessions.spending import Spending
from lored.store.sessions import rewording as stored

FRESH_SECONDS: Final = 86_400
"""An older session is history, however new it is to the index."""
WAITING: Final = 500
"""Sessions that wait to go quiet; the oldest are given up."""
FAILURES: Final = 3
PAUSE_SECONDS: Final = 300.0
PAUSE_MOST: Final = 21_600.0
HOPELESS_SECONDS: Final = 31_536_000.0
"""A year: until a restart, in effect."""
TRIES: Final = 3
"""For one session; then it keeps its deterministic summary."""
LOOK_SECONDS: Final = 600.0
"""Longest wait at a time; far deadlines are looked at again."""
LEAST_TURNS: Final = 2
"""Messages of the person; a single question needs no rewording."""

log = structlog.get_logger()

Name = tuple[str, str]
"""Agent and native id of a session."""


class Rewriting:
    """The service ``rewriting``."""

    def __init__(self, app: App) -> None:
        self._app = app
        settings = app.settings
        self._spending = Spending(
            app.paths.state_dir + "/rewriting.json", settings.rewrite_daily_tokens
        )
        self._due: OrderedDict[Name, float] = OrderedDict()
        self._tries: dict[Name, int] = {}
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._endpoint: Endpoint | None = None
        self._unlisten: Any = None
        self._failures = 0
        self._paused_until = 0.0
        self._error: str | None = None
        self._done = 0
        self.settled = asyncio.Event()
        """Set whenever no session is due; for tests and orderly ends."""

    async def start(self) -> None:
        """Listen for sessions, when it is switched on and can work."""
        settings = self._app.settings
        if not settings.rewrite_enabled:
            return
        try:
            self._endpoint = Endpoint(
                settings.rewrite_url,
                settings.rewrite_model,
                os.environ.get(settings.rewrite_key_env) or None,
            )
        except Invalid as error:
            self._say(error.message)
            return
        await asyncio.to_thread(self._spending.load)
        health = self._app.services.get("health")
        if health is not None:
            health.observers.append(lambda: {"rewriting": self.describe()})
        self._unlisten = self._app.events.listen(self._hear)
        self._task = asyncio.create_task(self._run(), name="rewording of summaries")

    async def stop(self) -> None:
        """Give up a call under way and end."""
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        if self._endpoint is not None:
            self._endpoint.stop()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def describe(self) -> dict[str, Any]:
        """For `status`."""
        left = self._paused_until - time.monotonic()
        found: dict[str, Any] = {
            "enabled": self._app.settings.rewrite_enabled,
            "working": self._task is not None,
            "waiting": len(self._due),
            "reworded": self._done,
            "tokens_today": self._spending.today(self._day()),
            "tokens_daily": self._app.settings.rewrite_daily_tokens,
        }
        if left > 0:
            found["paused_seconds"] = round(left)
        if self._error is not None:
            found["error"] = self._error
        return found

    # -- which session, when -------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        """A session was added or grew: it is due when it has been quiet long enough."""
        if event.topic != "sessions":
            return
        brief: Any = event.payload.get("session")
        if not isinstance(brief, dict) or brief.get("is_subagent"):
            return
        ended = clock.parse_instant(brief.get("ended_at"))
        age = FRESH_SECONDS if ended is None else (now() - ended) / clock.SECOND
        if age >= FRESH_SECONDS or brief.get("user_count", 0) < LEAST_TURNS:
            return
        name = (str(brief["agent"]), str(brief["id"]))
        wait = max(self._app.settings.rewrite_quiet_seconds - max(age, 0.0), 0.0)
        self._due[name] = time.monotonic() + wait
        self._due.move_to_end(name)
        while len(self._due) > WAITING:
            self._due.popitem(last=False)
        self.settled.clear()
        self._arrived.set()

    async def _run(self) -> None:
        while True:
            wait = self._next_in()
            if wait is None or wait > 0:
                if wait is None:
                    self.settled.set()
                self._arrived.clear()
                look = LOOK_SECONDS if wait is None else min(wait, LOOK_SECONDS)
                # Not wait_for: before Python 3.12 it loses a cancellation that comes together
                # with the event.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(look):
                        await self._arrived.wait()
                continue
            name = min(self._due, key=self._due.__getitem__)
            del self._due[name]
            try:
                await self._reword(name)
            except Exception as error:
                log.error("rewording failed", session=name[1], exc_info=error)
            if name not in self._due:
                self._tries.pop(name, None)

    def _next_in(self) -> float | None:
        """Seconds until the next session may be taken, None when none waits."""
        if not self._due:
            return None
        return max(min(self._due.values()), self._paused_until) - time.monotonic()

    # -- one session -----------------------------------------------------------------------------

    async def _reword(self, name: Name) -> None:
        database = self._app.registry.sessions
        found = await database.read(lambda conn: stored.summary_of(conn, *name))
        if found is None or self._endpoint is None:
            return
        number, before = found
        if not before.get("goal") or "reworded" in before:
            return
        shown = rewording.digest(before)
        cost = len((rewording.INSTRUCTIONS + shown).encode()) // 4 + rewording.ANSWER_TOKENS
        day = self._day()
        if not self._spending.allows(day, cost):
            self._say("the daily token budget is used up; it starts again tomorrow")
            return
        seconds = self._app.settings.rewrite_timeout_seconds
        self._spending.add(day, cost)
        try:
            answer = await asyncio.to_thread(
                self._endpoint.ask,
                rewording.INSTRUCTIONS,
                shown,
                most_tokens=rewording.ANSWER_TOKENS,
                seconds=seconds,
            )
            words = rewording.read_answer(answer.text)
            if words is None:
                raise EndpointError("the answer is not two lines DONE and ACTIONS")
        except EndpointError as error:
            self._fail(name, error)
            return
        finally:
            await asyncio.to_thread(self._spending.save)
        self._spending.add(day, answer.tokens - cost)
        await asyncio.to_thread(self._spending.save)
        self._failures = 0
        self._say(None)
        after = {
            **before,
            "headline": words.headline,
            "key_actions": words.key_actions,
            "reworded": {
                "model": self._app.settings.rewrite_model,
                "at": clock.to_wire(now()),
                "digest": rewording.mark(shown),
                "was": {
                    "headline": before.get("headline"),
                    "key_actions": before.get("key_actions"),
                },
            },
        }
        line = before.get("line", "")
        started = line[len("Session ") :][:10] if line.startswith("Session ") else ""
        after["line"] = summary.session_line(after, started)
        if await database.write(lambda conn: stored.replace(conn, number, before, after)):
            self._done += 1
            await self._app.get("sessions").announce({number: False})

    def _fail(self, name: Name, error: EndpointError) -> None:
        """Count a failure; pause when there were too many, or when the endpoint says so; have the
        session tried again."""
        self._failures += 1
        log.warning("summary not reworded", error=str(error), failures=self._failures)
        pause = error.retry_after or 0.0
        if error.hopeless:
            pause = HOPELESS_SECONDS
        elif self._failures >= FAILURES:
            pause = max(pause, PAUSE_SECONDS * 2.0 ** min(self._failures - FAILURES, 10))
        if not error.hopeless:
            pause = min(pause, PAUSE_MOST)
        self._paused_until = max(self._paused_until, time.monotonic() + pause)
        if pause:
            self._say(f"the endpoint failed: {error}")
        self._tries[name] = self._tries.get(name, 0) + 1
        if not error.hopeless and self._tries[name] < TRIES and name not in self._due:
            self._due[name] = time.monotonic()

    def _say(self, problem: str | None) -> None:
        """The problem in `status`, None to take it back."""
        self._error = problem
        health = self._app.services.get("health")
        if health is not None:
            health.set_standing(
                "rewriting",
                None if problem is None else f"summaries are not reworded: {problem}",
                "summaries stay as they are; check rewrite_* in config.toml, then: lore restart",
            )

    @staticmethod
    def _day() -> str:
        return clock.from_micros(now()).astimezone(zone()).strftime("%Y-%m-%d")
