"""Files grow, shrink, are rewritten, renamed, compressed, deleted and forked, in every order:
the index must end as one made from scratch, and hold everything that was ever readable.

Two indexers serve all examples (starting a worker costs more than reading); each example has
a folder and session ids of its own.
"""

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.claude import said, session_id, session_path
from support.daemon import make_home, remove_home
from support.indexer import Index, indexer

FULL = os.environ.get("LORE_FULL") == "1"
FILES = 3


class Pair:
    """Two indexers: one sees every step, the other only ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.homes = [make_home(), make_home()]
        self.stack = AsyncExitStack()
        self.live, self.scratch = self.loop.run_until_complete(self._open())
        self.numbers = itertools.count()

    async def _open(self) -> list[Index]:
        return [await self.stack.enter_async_context(indexer(home)) for home in self.homes]

    def close(self) -> None:
        self.loop.run_until_complete(self.stack.aclose())
        self.loop.close()
        for home in self.homes:
            remove_home(home)


async def held(index: Index, session: str) -> list[tuple[str, str, int]]:
    """(record key, text, flags) of a session in order."""
    rows = await index.rows(
        "SELECT position, id, record_key, text, flags FROM (SELECT m.position, m.id, "
        "m.record_key, m.text, m.flags FROM messages m JOIN sessions s ON s.id = m.session "
        "WHERE s.native_id = ?1 UNION ALL SELECT l.position, m.id, m.record_key, m.text, m.flags "
        "FROM message_links l JOIN messages m ON m.id = l.message "
        "JOIN sessions s ON s.id = l.session WHERE s.native_id = ?1) ORDER BY 1, 2",
        session,
    )
    return [(row[2], row[3], row[4]) for row in rows]


class Machine(RuleBasedStateMachine):
    """One example: up to `FILES` sessions in one folder."""

    pair: Pair

    def __init__(self) -> None:
        super().__init__()
        self.example = next(self.pair.numbers)
        self.slug = f"-ex-{self.example}"
        self.words = itertools.count()
        self.content: dict[int, list[bytes]] = {}
        self.rest: dict[int, bytes] = {}
        self.packed: set[int] = set()
        self.present: set[int] = set()
        self.ever: dict[int, dict[str, str]] = {}
        self.shared: set[int] = set()

    # -- the model ----------------------------------------------------------------------------

    def session(self, number: int) -> str:
        return session_id(self.example * 10 + number)

    def path(self, number: int, user: Path | None = None) -> Path:
        path = session_path(user or self.pair.live.user, self.session(number), self.slug)
        return path.with_name(path.name + ".zst") if number in self.packed else path

    def line(self, number: int) -> bytes:
        count = next(self.words)
        role = "assistant" if count % 3 == 2 else "user"
        return said(self.session(number), f"thing {count} was said", count, role=role)

    def write(self, number: int) -> None:
        data = b"".join(self.content[number]) + self.rest.get(number, b"")
        if number in self.packed:
            data = zstandard.ZstdCompressor().compress(b"".join(self.content[number]))
        path = self.path(number)
        draft = path.with_name("draft")
        draft.write_bytes(data)
        draft.rename(path)
        self.present.add(number)

    # -- what happens -------------------------------------------------------------------------

    @rule(number=st.integers(0, FILES - 1), count=st.integers(1, 4))
    def append(self, number: int, count: int) -> None:
        if number in self.packed:
            self.path(number).unlink(missing_ok=True)
            self.packed.discard(number)
            self.content.setdefault(number, []).extend(self.line(number) for _ in range(count))
            self.write(number)
            return
        lines = [self.line(number) for _ in range(count)]
        new = number not in self.present
        torn = self.rest.pop(number, b"")
        if torn:  # the line that was begun is finished now
            lines[0] = self.begun
        self.content.setdefault(number, []).extend(lines)
        if new:
            self.write(number)
        else:
            with self.path(number).open("ab") as file:
                file.write(b"".join(lines)[len(torn) :])

    @precondition(lambda self: self.present - self.packed and not self.rest)
    @rule(data=st.data(), cut=st.integers(1, 200))
    def begin_a_line(self, data: st.DataObject, cut: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.present - self.packed)))
        self.begun = self.line(number)
        self.rest[number] = self.begun[:cut]
        with self.path(number).open("ab") as file:
            file.write(self.rest[number])

    @precondition(lambda self: self.present)
    @rule(data=st.data(), keep=st.integers(0, 5))
    def shorten(self, data: st.DataObject, keep: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.present)))
        self.rest.pop(number, None)
        self.content[number] = self.content[number][:keep]
        self.write(number)

    @precondition(lambda self: self.present)
    @rule(data=st.data(), at=st.integers(0, 5))
    def insert(self, data: st.DataObject, at: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.present)))
        self.rest.pop(number, None)
        self.content[number].insert(at, self.line(number))
        self.write(number)

    @precondition(lambda self: self.present - self.packed and not self.rest)
    @rule(data=st.data())
    def compress(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.present - self.packed)))
        plain = self.path(number)
        self.packed.add(number)
        self.write(number)
        plain.unlink()

    @precondition(lambda self: self.present and not self.rest)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.present)))
        self.path(number).unlink()
        self.present.discard(number)

    @precondition(lambda self: self.present and 9 not in self.content)
    @rule(data=st.data(), keep=st.integers(1, 5))
    def fork(self, data: st.DataObject, keep: int) -> None:
        """A new session repeats the beginning of another one with its keys."""
        number = data.draw(st.sampled_from(sorted(self.present)))
        lines = self.content[number][:keep]
        old, new = self.session(number).encode(), self.session(9).encode()
        self.content[9] = [line.replace(old, new) for line in lines] + [self.line(9)]
        self.shared |= {9, number}
        self.write(9)

    @rule()
    def look(self) -> None:
        """The index is brought up to date; what was readable now must never be lost."""
        self.pair.loop.run_until_complete(self.pair.live.settle())
        for number in self.present:
            rows = self.pair.loop.run_until_complete(held(self.pair.live, self.session(number)))
            known = {key for key, _, _ in rows}
            assert len(known) == len(rows), "a message twice"
            assert len(rows) >= len(self.content[number])
            self.ever.setdefault(number, {}).update({key: text for key, text, _ in rows})

    @invariant()
    def nothing_fails(self) -> None:
        rows = self.pair.loop.run_until_complete(
            self.pair.live.rows(
                "SELECT path, error FROM files WHERE failures > 0 AND path LIKE ?",
                f"%/{self.slug}/%",
            )
        )
        assert rows == []

    # -- the end ------------------------------------------------------------------------------

    def teardown(self) -> None:
        self.look()
        user = self.pair.scratch.user
        for number in self.present:
            target = self.path(number, user)
            shutil.copy2(self.path(number), target)
        self.pair.loop.run_until_complete(self.compare())
        for one in (self.pair.live.user, user):
            shutil.rmtree(one / ".claude" / "projects" / self.slug, ignore_errors=True)

    async def compare(self) -> None:
        live, scratch = self.pair.live, self.pair.scratch
        await scratch.settle()
        same = True
        for number in self.content:
            session = self.session(number)
            mine, fresh = await held(live, session), await held(scratch, session)
            wanted = {key for key, _, _ in fresh}
            same &= len(mine) == len(fresh)
            if number in self.present:
                assert [row[:2] for row in mine if row[0] in wanted] == [row[:2] for row in fresh]
                if fresh:  # an emptied file tells nothing anew
                    told = await self.summary(live, session)
                    anew = await self.summary(scratch, session)
                    if "goal" not in anew:  # a title once known stands in for the request
                        told = {name: told[name] for name in anew if name not in ("line", "text")}
                        anew = {name: anew[name] for name in told}
                    assert told == anew
            found = {key: text for key, text, _ in mine}
            for key, text in self.ever.get(number, {}).items():
                assert found.get(key) == text, "what was known is lost"
            counted = await live.rows(
                "SELECT message_count FROM sessions WHERE native_id = ?", session
            )
            assert counted in ([(len(mine),)], [])
        # Who knows messages that no file holds any more may know better which is older.
        if same and self.shared:
            await self.compare_lineage()

    async def compare_lineage(self) -> None:
        """Who owns shared messages does not depend on the order of reading."""
        sql = (
            "SELECT m.record_key, s.native_id FROM messages m JOIN sessions s ON s.id = m.session "
            "WHERE m.id IN (SELECT message FROM message_links) AND s.native_id IN (?, ?, ?, ?) "
            "ORDER BY 1"
        )
        names = [self.session(number) for number in (0, 1, 2, 9)]
        fresh = dict(await self.pair.scratch.rows(sql, *names))
        mine = dict(await self.pair.live.rows(sql, *names))
        assert {key: owner for key, owner in mine.items() if key in fresh} == fresh

    @staticmethod
    async def summary(index: Index, session: str) -> dict[str, Any]:
        """Without the model: once known it stays known, also when no record names it any more."""
        rows = await index.rows("SELECT summary FROM sessions WHERE native_id = ?", session)
        found: dict[str, Any] = json.loads(rows[0][0]) if rows else {}
        found.pop("model", None)
        return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


@pytest.mark.timeout(900 if FULL else 180)
def test_every_order_of_changes_ends_as_from_scratch(pair: Pair) -> None:
    Machine.pair = pair
    Machine.TestCase.settings = settings(
        max_examples=200 if FULL else 20,
        stateful_step_count=25 if FULL else 12,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=not FULL,
    )
    Machine.TestCase().runTest()
