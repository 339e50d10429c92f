"""Clients that change facts until the daemon dies, and a model that knows what must be there.

A `Writer` does one call at a time on facts of its own (each text begins with its name), notes
what is acknowledged, and keeps the one call whose answer never came. After a restart `check`
compares the store with the model: what was acknowledged is there once, what was not is there
whole or not at all; then the open call is repeated with its key, or dropped.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from support.wire import Hangup, RawClient, Refusal

# fmt: off
WORDS = (
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "heron", "indigo", "juniper",
    "krill", "lagoon", "marble", "nickel", "ochre", "plover", "quartz", "raven", "sable", "tundra",
    "umber", "viola", "willow", "xenon", "yarrow", "zephyr",
)
# fmt: on

ACTIVE, SUPERSEDED, FORGOTTEN, ABSENT = "active", "superseded", "forgotten", "absent"


@dataclass
class Step:
    """A call and what it does: text -> (state before, state after)."""

    method: str
    params: dict[str, Any]
    effect: dict[str, tuple[str, str]] = field(default_factory=dict)


def state_of(fact: dict[str, Any]) -> str:
    """The state of a fact on the wire, as the model names it."""
    if fact["active"]:
        return ACTIVE
    return SUPERSEDED if fact.get("superseded_by") else FORGOTTEN


PATIENCE_SECONDS = 60.0
"""For what is refused as too early or too much at once: a loaded machine takes its time."""


def patiently(ask: Callable[[], Any]) -> Any:
    """Ask until it is not refused as retriable any more."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except Refusal as refusal:
            if not refusal.wire["retryable"] or time.monotonic() > end:
                raise


def all_facts(client: RawClient, **where: Any) -> list[dict[str, Any]]:
    """Every fact of a scope, also those that do not hold any more."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {}
    while True:
        asked = {**page, **where}
        answer = patiently(
            partial(client.call, "facts", include_superseded=True, limit=200, **asked)
        )
        found += answer["facts"]
        if not answer.get("next"):
            return found
        page = {"after": answer["next"]}


class Writer:
    """One client; ``where`` are the parameters that name its scope."""

    def __init__(self, name: str, seed: int, **where: Any) -> None:
        self.name, self.where = name, where
        self.chance = random.Random(seed)
        self.states: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.open: Step | None = None
        self.acknowledged = 0
        self._number = 0

    def text(self) -> str:
        """A statement that nobody has made yet."""
        self._number += 1
        return f"{self.name} {self._number}: " + " ".join(self.chance.choices(WORDS, k=5))

    def key(self) -> str:
        """A fresh idempotency key."""
        return f"{self.name}-{self.chance.getrandbits(60):x}"

    def step(self) -> Step:
        """The next call."""
        active = [text for text, state in self.states.items() if state == ACTIVE]
        kind = self.chance.random()
        if kind < 0.5 or len(active) < 3:
            text = self.text()
            return Step("remember_fact", {"text": text}, {text: (ABSENT, ACTIVE)})
        old = self.chance.choice(active)
        if kind < 0.65:
            text = self.text()
            return Step(
                "update_fact",
                {"id": self.ids[old], "text": text},
                {old: (ACTIVE, SUPERSEDED), text: (ABSENT, ACTIVE)},
            )
        if kind < 0.75:
            return Step("forget_fact", {"id": self.ids[old]}, {old: (ACTIVE, FORGOTTEN)})
        one, two = self.text(), self.text()
        lines = [
            f'remember as=one "{one}"',
            f'remember "{two}"',
            f"supersede old={self.ids[old].partition(':')[2]} new=$one",
        ]
        return Step(
            "apply",
            {"ops": "\n".join(lines)},
            {one: (ABSENT, ACTIVE), two: (ABSENT, ACTIVE), old: (ACTIVE, SUPERSEDED)},
        )

    def do(self, client: RawClient, step: Step) -> None:
        """Call, and take the effect over once it is acknowledged."""
        if step.method != "forget_fact":
            step.params.setdefault("idempotency_key", self.key())
        self.open = step
        answer = client.call(step.method, **step.params, **self.where)
        self.open = None
        self.acknowledged += 1
        self.settle(step, answer)

    def settle(self, step: Step, answer: dict[str, Any]) -> None:
        """The step has happened."""
        made = [text for text, (before, _) in step.effect.items() if before == ABSENT]
        if step.method == "apply":
            ids = [one["id"] for one in answer["results"] if one["op"] == "remember"]
        else:
            ids = [answer[part]["id"] for part in ("fact", "new") if part in answer and made]
        for text, name in zip(made, ids, strict=True):
            self.ids[text] = f"{self.where['scope']}:{name}"
        self.states |= {text: after for text, (_, after) in step.effect.items()}

    def run(self, path: str, ended: threading.Event) -> None:
        """Call until the daemon is gone or ``ended`` is set."""
        try:
            with RawClient(path, 30) as client:
                client.hello()
                while not ended.is_set():
                    step = self.step()
                    self.do(client, step)
                    if step.method == "remember_fact" and self.chance.random() < 0.1:
                        again = client.call("remember_fact", **step.params, **self.where)
                        (text,) = step.effect
                        assert self.ids[text].endswith(":" + again["fact"]["id"])
        except (Hangup, OSError):
            pass

    def check(self, client: RawClient) -> None:
        """Compare the store with the model; settle the call that was open."""
        found: dict[str, dict[str, Any]] = {}
        for fact in all_facts(client, **self.where):
            if fact["text"].startswith(self.name + " "):
                assert fact["text"] not in found, f"twice: {fact['text']}"
                found[fact["text"]] = fact
        seen = {text: state_of(fact) for text, fact in found.items()}
        step, self.open = self.open, None
        expected = dict(self.states)
        if step is not None:
            now = {text: seen.get(text, ABSENT) for text in step.effect}
            before = {text: pair[0] for text, pair in step.effect.items()}
            after = {text: pair[1] for text, pair in step.effect.items()}
            assert now in (before, after), f"half of {step}: {now}"
            expected |= {text: state for text, state in now.items() if state != ABSENT}
        assert seen == expected
        self.states = expected
        self.ids |= {text: f"{self.where['scope']}:{fact['id']}" for text, fact in found.items()}
        if step is not None and self.chance.random() < 0.5:
            self._repeat(client, step, happened=now == after)

    def _repeat(self, client: RawClient, step: Step, *, happened: bool) -> None:
        """Send a call again: with a key it counts once, without one it is refused."""
        try:
            self.do(client, step)
        except Refusal as refusal:
            self.open = None
            assert happened and step.method == "forget_fact", refusal.wire
