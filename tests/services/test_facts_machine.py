"""The fact memory against a naive model, by random walks over real stores.

The model keeps facts in a list and compares every pair; the product must agree on what is
active, which cluster each fact is in, what collides with what and how often, after every
step, across undo and restarts, and its tallies must be what counting gives.
"""

import asyncio
import copy
import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from lore.errors import LoreError
from lored.core.clock import parse_instant
from support.memory import Memory, open_memory

FULL = os.environ.get("LORE_FULL") == "1"
NAMES = ("tool:a", "tool:b", "svc:c", "tool:d")
TEXTS = ("ttl is 300s", "ttl is 600s", "port is 1", "port is 2")
WINDOWS: tuple[dict[str, str], ...] = (
    {},
    {},
    {},
    {"valid_from": "2020-01-01T00:00Z"},
    {"valid_from": "2020-01-01T00:00Z", "valid_to": "2021-01-01T00:00Z"},
    {"valid_from": "2020-06-01T00:00Z", "valid_to": "2200-01-01T00:00Z"},
)
THRESHOLD = Fraction(1, 2)
EVER = 1 << 62


@dataclass
class Fact:
    text: str
    entities: frozenset[str]
    start: int
    end: int
    cluster: int = 0
    state: str = "active"
    successor: int | None = None


@dataclass
class Model:
    """Everything by brute force. Numbers are places in the list, from 1."""

    facts: list[Fact] = field(default_factory=list)
    clusters: list[frozenset[str]] = field(default_factory=list)
    conflicts: list[list[Any]] = field(default_factory=list)

    def assign(self, members: frozenset[str]) -> int:
        best, found = Fraction(0), 0
        for number, own in enumerate(self.clusters, 1):
            if members and own & members:
                value = Fraction(len(own & members), len(own | members))
                if value >= THRESHOLD and value > best:
                    best, found = value, number
        if found:
            return found
        self.clusters.append(members)
        return len(self.clusters)

    def collides(self, one: int, two: int) -> bool:
        a, b = self.facts[one - 1], self.facts[two - 1]
        if one == two or a.state != "active" or b.state != "active":
            return False
        if not (max(a.start, b.start) < min(a.end, b.end)):
            return False
        same = bool(a.entities) and a.entities == b.entities
        return same or (a.cluster == b.cluster and bool(a.entities & b.entities))

    def collisions(self, one: int) -> set[int]:
        return {n for n in range(1, len(self.facts) + 1) if self.collides(one, n)}


class FactMachine(RuleBasedStateMachine):
    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory(prefix="lore-machine-")
        self.stack = AsyncExitStack()
        self.model = Model()
        self.history: list[Model] = []

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @initialize()
    def open(self) -> None:
        self.memory: Memory = self.run(
            self.stack.enter_async_context(open_memory(Path(self.folder.name)))
        )

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.loop.close()
        self.folder.cleanup()

    def change(self) -> None:
        """Called before each change that the product accepts."""
        self.history.append(copy.deepcopy(self.model))

    def fact(self, number: int) -> Fact:
        return self.model.facts[number - 1]

    # -- steps -----------------------------------------------------------------------------

    @rule(
        target=numbers,
        text=st.sampled_from(TEXTS),
        names=st.lists(st.sampled_from(NAMES), max_size=4),
        window=st.sampled_from(WINDOWS),
    )
    def remember(self, text: str, names: list[str], window: dict[str, str]) -> int:
        answer = self.run(self.memory.remember_fact(text=text, entities=names, **window))
        shown = answer["fact"]
        number = int(shown["id"][1:])
        start = parse_instant(shown["valid_from"]) or 0
        end = parse_instant(shown.get("valid_to")) or EVER
        before = copy.deepcopy(self.model)
        if answer["created"]:
            assert number == len(self.model.facts) + 1
            assert not any(self._same(n, text, window, start, end) for n in self._known())
            members = frozenset(names)
            self.model.facts.append(Fact(text, members, start, end, self.model.assign(members)))
        else:
            known = self.fact(number)
            assert (known.text, known.state) == (text, "active")
            merged = known.entities | frozenset(names)
            if merged != known.entities:
                known.entities, known.cluster = merged, self.model.assign(merged)
            assert start <= known.start and end >= known.end
            known.start, known.end = start, end
            if before != self.model:
                self.history.append(before)
        if answer["created"]:
            self.history.append(before)
        assert answer["cluster"]["id"] == f"C{self.fact(number).cluster}"
        found = {int(one["fact"]["id"][1:]) for one in answer["collisions"]}
        assert found == self.model.collisions(number)
        assert answer["collision_count"] == len(found)
        return number

    def _known(self) -> range:
        return range(1, len(self.model.facts) + 1)

    def _same(self, n: int, text: str, window: dict[str, str], start: int, end: int) -> bool:
        known = self.fact(n)
        overlap = max(known.start, start) < min(known.end, end)
        return known.text == text and known.state == "active" and overlap

    def attempt(self, *lines: str) -> bool:
        try:
            self.run(self.memory.apply_text(*lines))
        except LoreError:
            return False
        return True

    @rule(old=numbers, new=numbers)
    def supersede(self, old: int, new: int) -> None:
        a, b = self.fact(old), self.fact(new)
        allowed = old != new and a.state == b.state == "active"
        assert self.attempt(f"supersede old=F{old} new=F{new}") == allowed
        if allowed:
            self.change()
            self._close(old, new)
            for conflict in self.model.conflicts:
                if set(conflict[:2]) == {old, new} and conflict[2] == "open":
                    conflict[2] = "resolved"

    def _close(self, old: int, new: int) -> None:
        a = self.fact(old)
        a.state, a.successor = "superseded", new
        a.end = min(a.end, max(a.start, self.fact(new).start))

    @rule(number=numbers)
    def forget(self, number: int) -> None:
        allowed = self.fact(number).state in ("active", "superseded")
        assert self.attempt(f"forget id=F{number}") == allowed
        if allowed:
            self.change()
            self.fact(number).state = "forgotten"
            for conflict in self.model.conflicts:
                if number in conflict[:2] and conflict[2] == "open":
                    conflict[2] = "dismissed"

    @rule(number=numbers)
    def restore(self, number: int) -> None:
        fact = self.fact(number)
        allowed = fact.state == "forgotten"
        assert self.attempt(f"restore id=F{number}") == allowed
        if allowed:
            self.change()
            self.fact(number).state = "active" if fact.successor is None else "superseded"

    @rule(one=numbers, two=numbers)
    def flag(self, one: int, two: int) -> None:
        allowed = one != two and self.fact(one).state == self.fact(two).state == "active"
        allowed &= not any(
            set(c[:2]) == {one, two} and c[2] == "open" for c in self.model.conflicts
        )
        assert self.attempt(f"conflict a=F{one} b=F{two}") == allowed
        if allowed:
            self.change()
            self.model.conflicts.append([one, two, "open"])

    @rule(data=st.data(), winner=st.sampled_from((0, 1)), dismiss=st.booleans())
    def settle(self, data: Any, winner: int, dismiss: bool) -> None:
        if not self.model.conflicts:
            return
        number = data.draw(st.integers(1, len(self.model.conflicts)))
        conflict = self.model.conflicts[number - 1]
        won, lost = conflict[winner], conflict[1 - winner]
        allowed = conflict[2] == "open" and (dismiss or self.fact(won).state == "active")
        line = f"dismiss id={number}" if dismiss else f"resolve id={number} winner=F{won}"
        assert self.attempt(line) == allowed
        if allowed:
            self.change()
            conflict = self.model.conflicts[number - 1]
            conflict[2] = "dismissed" if dismiss else "resolved"
            if not dismiss and self.fact(lost).state == "active":
                self._close(lost, won)

    @rule(number=numbers, add=st.sampled_from(NAMES), remove=st.booleans())
    def relabel(self, number: int, add: str, remove: bool) -> None:
        entities = self.fact(number).entities
        changed = entities - {add} if remove else entities | {add}
        word = "remove" if remove else "add"
        allowed = not remove or add in entities
        assert self.attempt(f"entity id=F{number} {word}={add}") == allowed
        if changed != entities:
            self.change()
            fact = self.fact(number)
            fact.entities, fact.cluster = changed, self.model.assign(changed)

    @rule(target=numbers, number=numbers)
    def update(self, number: int) -> int:
        old = self.fact(number)
        text = f"{old.text} (corrected {len(self.model.facts)})"
        allowed = old.state == "active"
        try:
            answer = self.run(self.memory.update_fact(id=f"F{number}", text=text))
        except LoreError:
            assert not allowed
            return number
        assert allowed
        self.change()
        shown = answer["new"]
        start = parse_instant(shown["valid_from"]) or 0
        self.model.facts.append(
            Fact(text, old.entities, start, EVER, self.model.assign(old.entities))
        )
        new = len(self.model.facts)
        self._close(number, new)
        for conflict in self.model.conflicts:
            if set(conflict[:2]) == {number, new} and conflict[2] == "open":
                conflict[2] = "resolved"
        found = {int(one["fact"]["id"][1:]) for one in answer["collisions"]}
        assert found == self.model.collisions(new)
        return new

    @rule(bad=st.sampled_from(("forget id=F9999", "supersede old=F1 new=F9999")))
    def all_or_nothing(self, bad: str) -> None:
        assert not self.attempt('remember e=tool:a "never"', "tag id=F1 add=never", bad)

    @rule()
    def undo(self) -> None:
        if not self.history:
            return
        self.run(self.memory.undo())
        last, made = self.history.pop(), self.model
        # Numbers and clusters are never given again: what was made stays, forgotten.
        for fact in made.facts[len(last.facts) :]:
            last.facts.append(copy.copy(fact))
            last.facts[-1].state = "forgotten"
        last.clusters = made.clusters
        for conflict in made.conflicts[len(last.conflicts) :]:
            last.conflicts.append([*conflict[:2], "dismissed"])
        self.model = last

    @rule()
    def restart(self) -> None:
        self.run(self.stack.aclose())
        self.stack = AsyncExitStack()
        self.open()

    # -- what must hold --------------------------------------------------------------------

    @invariant()
    def agrees_with_the_model(self) -> None:
        if not hasattr(self, "memory"):
            return
        listed = self.run(self.memory.facts(include_superseded=True, limit=200))["facts"]
        assert len(listed) == len(self.model.facts)
        active = set()
        for shown in listed:
            number = int(shown["id"][1:])
            fact = self.fact(number)
            assert shown["state"] == fact.state, number
            assert set(shown["entities"]) == fact.entities
            assert shown["cluster"] == f"C{fact.cluster}"
            assert (parse_instant(shown.get("valid_to")) or EVER) == fact.end
            if shown["active"]:
                active.add(number)
        current = {int(f["id"][1:]) for f in self.run(self.memory.facts(limit=200))["facts"]}
        assert current == active
        assert all(self.fact(number).state == "active" for number in current)
        conflicts = self.run(self.memory.conflicts(status="all", limit=200))["conflicts"]
        assert [c["status"] for c in reversed(conflicts)] == [c[2] for c in self.model.conflicts]

    @invariant()
    def counts_are_what_counting_gives(self) -> None:
        if not hasattr(self, "memory"):
            return
        database = self.memory.app.registry.global_
        counted = (
            "SELECT cluster, core, count(*) FROM facts WHERE state = 0 AND valid_to IS NULL"
            " AND set_id IS NOT NULL GROUP BY cluster, core ORDER BY 1, 2",
            "SELECT cluster, core, facts FROM cluster_tallies ORDER BY 1, 2",
            "SELECT set_id, cluster, count(*) FROM facts WHERE state = 0 AND valid_to IS NULL"
            " AND set_id IS NOT NULL GROUP BY set_id, cluster ORDER BY 1, 2",
            "SELECT set_id, cluster, facts FROM set_tallies ORDER BY 1, 2",
        )
        one, two, three, four = self.run(
            database.read(lambda c: [c.execute(sql).fetchall() for sql in counted])
        )
        assert one == two
        assert three == four


FactMachine.TestCase.settings = settings(
    max_examples=200 if FULL else 12,
    stateful_step_count=60 if FULL else 25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestFactMachine = FactMachine.TestCase
