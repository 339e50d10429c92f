"""Subscribers hear of the changes of a store in the order of their commits."""

import asyncio
from pathlib import Path
from typing import Any

from lored.store.facts import rows
from support.memory import Memory, open_memory


async def _log_order(memory: Memory) -> list[int]:
    """F-numbers of the change log, oldest first, one for each entry about a fact."""

    def read(conn: Any) -> list[int]:
        entries = conn.execute(
            "SELECT l.id, x.subject FROM change_log l JOIN change_subjects x ON x.entry = l.id"
            " WHERE x.kind = 0 ORDER BY l.id, x.subject"
        ).fetchall()
        numbers = rows.numbers_of(conn, sorted({fact for _, fact in entries}))
        return [numbers[fact] for _, fact in entries]

    return await memory.app.registry.global_.read(read)


async def test_events_come_in_the_order_of_commits(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        for number in range(30):
            await memory.remember_fact(text=f"fact {number}", entities=[f"tool:t{number % 7}"])
        before = len(await _log_order(memory))
        memory.events.clear()

        def change(number: int) -> Any:
            which = number % 5
            if which == 0:
                return memory.apply_text(f'remember e=tool:x "stated in batch {number}"')
            if which == 1:
                return memory.remember_fact(text=f"stated alone {number}", entities=["tool:x"])
            if which == 2:
                return memory.forget_fact(id=f"F{number % 30 + 1}")
            if which == 3:
                return memory.verify_fact(id=f"F{number % 30 + 1}")
            return memory.apply_text(f"tag id=F{number % 30 + 1} add=again{number}")

        await asyncio.gather(*map(change, range(30)))
        told = [event.payload["fact"]["id"] for event in memory.events if event.topic == "facts"]
        logged = (await _log_order(memory))[before:]
        assert told == [f"F{number}" for number in logged]
        assert len(told) == 30


async def test_an_undo_is_told_between_its_neighbours(tmp_path: Path) -> None:
    async with open_memory(tmp_path / "home") as memory:
        for number in range(3):
            await memory.remember_fact(text=f"fact {number}", entities=["tool:x"])
        batch = (await memory.apply_text("tag id=F1 add=one", "tag id=F2 add=two"))["batch"]
        memory.events.clear()
        await asyncio.gather(
            memory.remember_fact(text="before", entities=["tool:y"]),
            memory.undo(id=batch),
            memory.remember_fact(text="after", entities=["tool:y"]),
        )
        told = [(event.payload["action"], event.payload["fact"]["id"]) for event in memory.events]
        news = [("remembered", "F4"), ("updated", "F1"), ("updated", "F2"), ("remembered", "F5")]
        assert sorted(told) == sorted(news)
        undone = [told.index(("updated", name)) for name in ("F1", "F2")]
        assert undone[1] - undone[0] in (1, -1)
        assert told.index(("remembered", "F4")) < told.index(("remembered", "F5"))
