"""Receipts of injections: what was put into which session's prompt, when and why.

A file of JSON lines in the state directory, bounded: when it has grown to twice
`RECEIPTS` lines it is rewritten with the newest half. Losing it loses history, no memory.
"""

import asyncio
import os
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

RECEIPTS: Final = 500
"""Kept at least; a busy day has about a hundred injections."""
SESSIONS: Final = 200
"""Sessions of which it is known what they were given."""

log = structlog.get_logger()


class Receipts:
    """The receipts of one daemon. `note` is quick; writing happens in a thread."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._lines = 0
        self._given: OrderedDict[str, set[str]] = OrderedDict()
        self._writing: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Read what was given before, so that a restart repeats nothing."""
        for receipt in await asyncio.to_thread(self._read):
            self._lines += 1
            self._remember(receipt)

    async def stop(self) -> None:
        """Wait for what is being written."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    def given(self, session_id: str | None) -> set[str]:
        """Keys (see `key`) of what a session was given already."""
        return self._given.get(session_id or "", set())

    def note(self, receipt: dict[str, Any]) -> None:
        """Keep a receipt: `at`, `client`, `session_id`, `bytes`, and a list per part."""
        self._remember(receipt)
        task = asyncio.get_running_loop().create_task(self._write(orjson.dumps(receipt) + b"\n"))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def latest(self, limit: int) -> list[dict[str, Any]]:
        """The newest receipts, newest first."""
        await asyncio.gather(*self._writing, return_exceptions=True)
        return (await asyncio.to_thread(self._read))[::-1][:limit]

    def _remember(self, receipt: dict[str, Any]) -> None:
        session_id = receipt.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            return
        known = self._given.setdefault(session_id, set())
        self._given.move_to_end(session_id)
        known.update(key(part, item) for part in ("facts", "episodes") for item in receipt[part])
        while len(self._given) > SESSIONS:
            self._given.popitem(last=False)

    async def _write(self, line: bytes) -> None:
        async with self._turn:
            try:
                self._lines = await asyncio.to_thread(self._append, line, self._lines + 1)
            except OSError as error:
                log.warning("receipt not written", error=str(error), path=str(self._path))

    def _append(self, line: bytes, lines: int) -> int:
        """Add a line; shorten the file when it is due. Returns how many lines it has."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
        if lines < 2 * RECEIPTS:
            return lines
        kept = self._path.read_bytes().splitlines(keepends=True)[-RECEIPTS:]
        with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
            file.writelines(kept)
        Path(file.name).replace(self._path)
        return len(kept)

    def _read(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError:
            return found
        for line in lines[-2 * RECEIPTS :]:
            try:
                receipt = orjson.loads(line)
            except ValueError:
                continue  # a line torn by a crash
            if isinstance(receipt, dict) and all(
                isinstance(receipt.get(part), list) for part in ("facts", "episodes")
            ):
                found.append(receipt)
        return found


def key(part: str, item: dict[str, Any]) -> str:
    """What identifies an injected thing: a fact by its uid, a session by its id."""
    return f"{part}:{item.get('uid') or item.get('id')}"
