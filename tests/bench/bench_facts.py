"""Facts at 100 / 10,000 / 100,000: what each call costs, and whether that grows.

    python tests/bench/bench_facts.py [--sizes 100 10000] [--rounds 200] [--busy] [--model M]

One store is grown from size to size by the product's own pipeline. At each size the calls of
the services are timed in this process (no socket), in turns with a bare commit
(`synchronous=FULL`, one small row, same disk, same driver), so that a busy machine weighs on
both alike. ``--busy`` puts every fact on one entity: one cluster holds them all. The model
is the static table; `--model minilm` adds the process of the shipped model, whose filling in
of vectors then runs beside the measurement.

Bars: remember p50 within 1.5x of the bare commit; remember and recall at the largest size
within 1.5x of the smallest; recall p50 5 ms, p99 20 ms; apply of 10 under 30 ms.
"""

import argparse
import asyncio
import itertools
import json
import random
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.contract import Row
from lored.core import ids
from lored.core.facts import Statement, check
from lored.services import moments
from lored.store import driver
from lored.store.facts.log import Batch
from lored.store.facts.pipeline import Given, place
from support.memory import Memory, open_memory

BATCH = 2_000
WORDS = (
    "cache", "ttl", "timeout", "retry", "limit", "port", "host", "region", "bucket", "queue",
    "worker", "deploy", "rollback", "schema", "index", "migration", "token", "secret", "rate",
    "budget", "quota", "latency", "memory", "thread", "process", "build", "test", "branch",
    "release", "version", "flag", "feature", "user", "session", "cookie", "header", "proxy",
    "gateway", "cluster", "shard", "replica", "backup", "restore", "snapshot", "log", "metric",
    "alert", "trace", "span", "dashboard",
)  # fmt: skip
VERBS = ("is", "must be", "was raised to", "defaults to", "should never exceed", "falls back to")


class Corpus:
    """Facts as teams state them: a few busy entities and a long tail of rare ones; words by
    Zipf's law, so that a question has common words and rare ones."""

    def __init__(self, seed: int, *, busy: bool) -> None:
        self._random = random.Random(seed)
        self._busy = busy
        self._words = [*WORDS, *(one + two for one in WORDS for two in WORDS)]
        self._random.shuffle(self._words)
        self._weights = list(itertools.accumulate(1 / (n + 2) for n in range(len(self._words))))

    def _pick(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def fact(self, number: int) -> dict[str, Any]:
        """The parameters of `remember_fact` for the ``number``-th fact."""
        pick = self._random
        many = max(40, number // 3)
        subject = pick.randrange(40) if pick.random() < 0.1 else pick.randrange(many)
        words = self._pick(8)
        entities = [f"tool:service-{subject}"]
        if self._busy:
            entities = ["tool:redis"]
        elif pick.random() < 0.4:
            entities.append(f"file:src/{words[0]}/{words[1]}_{subject % 50}.py")
        text = (
            f"The {words[0]} {words[1]} of service-{subject} {pick.choice(VERBS)} "
            f"{pick.randrange(1, 10_000)} when the {words[2]} {words[3]} of {words[4]} in "
            f"src/{words[5]}/{words[6]}.py is {pick.choice(('on', 'off'))}, see POL-{number}"
        )
        return {"text": text, "entities": entities, "tags": [words[0], words[7]]}

    def query(self) -> str:
        """A question as an agent would put it."""
        words = self._pick(3)
        subject = self._random.randrange(40)
        return f"what is the {words[0]} {words[1]} of service-{subject} when {words[2]} is off"


class BareCommit:
    """The least that a durable write costs here: one row, one FULL commit."""

    def __init__(self, folder: Path) -> None:
        self._conn = driver.connect(str(folder / "bare.db"), read_only=False)
        self._conn.execute("PRAGMA journal_mode=WAL")
        self._conn.execute("PRAGMA synchronous=FULL")
        self._conn.execute("CREATE TABLE rows(id INTEGER PRIMARY KEY, text TEXT)")

    def __call__(self) -> None:
        self._conn.execute("BEGIN IMMEDIATE")
        self._conn.execute("INSERT INTO rows(text) VALUES('Cache TTL is 300s')")
        self._conn.execute("COMMIT")


async def grow(memory: Memory, corpus: Corpus, start: int, end: int) -> None:
    """Place facts ``start`` to ``end`` in the global store, a batch a transaction."""
    facts = memory.app.get("facts")
    database = memory.app.registry.global_
    for first in range(start, end, BATCH):
        given = [corpus.fact(number) for number in range(first, min(first + BATCH, end))]
        made = facts.vectors([one["text"] for one in given])

        def write(conn: Any, given: Any = given, made: Any = made) -> None:
            batch = Batch(conn, now=moments.now(), actor="bench")
            for one, vector in zip(given, made, strict=True):
                place(
                    conn,
                    batch,
                    check(Statement(one["text"], one["tags"], one["entities"])),
                    rules=facts.rules,
                    uid=ids.make_uid(batch.now, secrets.token_bytes(10)),
                    vector=vector,
                    given=Given(exact=True),
                )

        await database.write(write)
    await database.checkpoint()


async def timed(call: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """Milliseconds of one call, and of processor time of this process meanwhile."""
    began, spent = time.perf_counter(), time.process_time()
    await call()
    return (time.perf_counter() - began) * 1e3, (time.process_time() - spent) * 1e3


async def measure(memory: Memory, corpus: Corpus, bare: BareCommit, size: int, rounds: int) -> Any:
    """Figures at one size, in milliseconds."""
    serial = iter(range(size * 10 + 1, size * 10 + 10_000_000))
    last = await memory.remember_fact(**corpus.fact(next(serial)))
    known_at = last["fact"]["created_at"]
    name = last["fact"]["entities"][0]
    found: dict[str, list[tuple[float, float]]] = {}

    def ops(count: int) -> str:
        lines = []
        for _ in range(count):
            one = corpus.fact(next(serial))
            lines.append(f'remember e={",".join(one["entities"])} "{one["text"]}"')
        return "\n".join(lines)

    async def commit() -> None:
        bare()

    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "bare commit": commit,
        "remember": lambda: memory.remember_fact(**corpus.fact(next(serial))),
        "recall": lambda: memory.recall_fact(query=corpus.query()),
        "recall as_of": lambda: memory.recall_fact(query=corpus.query(), as_of=known_at),
    }
    for call in calls.values():
        await call()
    for _ in range(rounds):
        for label, call in calls.items():
            found.setdefault(label, []).append(await timed(call))
    for _ in range(max(5, rounds // 10)):
        found.setdefault("apply of 10", []).append(await timed(lambda: memory.apply(ops=ops(10))))
        found.setdefault("snapshot entity", []).append(
            await timed(lambda: memory.snapshot(scopes=[f"entity:{name}"]))
        )
        found.setdefault("fact", []).append(await timed(lambda: memory.fact(id=last["fact"]["id"])))
    return {
        label: {
            "p50": round(statistics.median(wall for wall, _ in values), 3),
            "p99": round(sorted(wall for wall, _ in values)[int(len(values) * 0.99)], 3),
            "cpu": round(statistics.median(cpu for _, cpu in values), 3),
        }
        for label, values in found.items()
    }


async def run(sizes: list[int], rounds: int, *, busy: bool, model: str) -> dict[int, Any]:
    """Grow one store through ``sizes`` and measure at each."""
    results: dict[int, Any] = {}
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        folder = Path(name)
        bare = BareCommit(folder)
        corpus = Corpus(7, busy=busy)
        async with open_memory(folder / "home", embed=True, embed_model=model) as memory:
            reached = 0
            for size in sizes:
                began = time.perf_counter()
                await grow(memory, corpus, reached, size)
                rate = (size - reached) / (time.perf_counter() - began)
                print(f"{size} facts placed, {rate:.0f} a second", file=sys.stderr)
                reached = size
                results[size] = await measure(memory, corpus, bare, size, rounds)
    return results


def verdicts(results: dict[int, Any]) -> list[tuple[str, float, float]]:
    """(what, figure, bar) for each bar."""
    low, high = min(results), max(results)
    found = []
    for size in (low, high):
        figures = results[size]
        ratio = figures["remember"]["p50"] / figures["bare commit"]["p50"]
        found.append((f"remember / bare commit at {size}", ratio, 1.5))
    if high > low:
        for call in ("remember", "recall"):
            ratio = results[high][call]["p50"] / results[low][call]["p50"]
            found.append((f"{call} at {high} / at {low}", ratio, 1.5))
    found.append((f"recall p50 ms at {high}", results[high]["recall"]["p50"], 5.0))
    found.append((f"recall p99 ms at {high}", results[high]["recall"]["p99"], 20.0))
    found.append((f"apply of 10 ms at {high}", results[high]["apply of 10"]["p50"], 30.0))
    return found


def rows(size: str) -> list[Row]:
    """For the table: 100, 10,000 and 100,000 facts."""
    sizes = [20, 100] if size == "smoke" else [100, 10_000, 100_000]
    results = asyncio.run(run(sizes, 5 if size == "smoke" else 200, busy=False, model="static"))
    low, high = sizes[0], sizes[-1]
    found = []
    for count in sizes:
        at = results[count]
        remember, bare = at["remember"]["p50"], at["bare commit"]["p50"]
        note = (
            f"p50 {remember} ms, p99 {at['remember']['p99']}, processor {at['remember']['cpu']}; "
            f"bare FULL commit {bare} ms, processor {at['bare commit']['cpu']}"
        )
        name = f"remember_fact / bare durable commit, {count:,} facts"
        found.append(Row(name, remember / bare, "x", 1.5, note=note))
    for call in ("remember", "recall"):
        ratio = results[high][call]["p50"] / results[low][call]["p50"]
        few, many = results[low][call], results[high][call]
        note = (
            f"p50 {few['p50']} ms and {many['p50']} ms; processor {few['cpu']} and {many['cpu']} ms"
        )
        found.append(Row(f"{call}: {high:,} facts / {low:,}", ratio, "x", 1.5, note=note))
    at = results[high]
    found += [
        Row(f"recall_fact p50, {high:,} facts", at["recall"]["p50"], "ms", 5.0,
            note=f"processor {at['recall']['cpu']} ms"),
        Row(f"recall_fact p99, {high:,} facts", at["recall"]["p99"], "ms", 20.0),
        Row(f"recall_fact as_of p50, {high:,} facts", at["recall as_of"]["p50"], "ms"),
        Row(f"apply of 10, {high:,} facts", at["apply of 10"]["p50"], "ms", 30.0,
            note=f"processor {at['apply of 10']['cpu']} ms"),
        Row(f"snapshot of one entity, {high:,} facts", at["snapshot entity"]["p50"], "ms"),
    ]  # fmt: skip
    return found


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--busy", action="store_true", help="all facts about one entity")
    parser.add_argument("--model", default="static")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    results = asyncio.run(
        run(sorted(chosen.sizes), chosen.rounds, busy=chosen.busy, model=chosen.model)
    )
    bars = verdicts(results)
    if chosen.json:
        print(json.dumps({"sizes": results, "bars": bars}))
        return
    labels = list(next(iter(results.values())))
    print("ms (p50 / p99)".ljust(20), *(f"{size:>18,}" for size in results))
    for label in labels:
        cells = (f"{r[label]['p50']:8.2f} /{r[label]['p99']:8.2f}" for r in results.values())
        print(label.ljust(20), *cells)
    for what, figure, bar in bars:
        print(f"{what:40} {figure:8.2f}  bar {bar:5.1f}  {'ok' if figure <= bar else 'MISSED'}")


if __name__ == "__main__":
    main()
