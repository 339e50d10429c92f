"""Side by side with Remind 0.12.4 from PyPI, on the same machine in the same run.

    python -m tests.bench --only remind [--size full]

Remind is installed into a scratch environment (or `LORE_REMIND_PYTHON` names a Python that has
it) and driven in one process through its own API, with an embedder that costs nothing, so that
no model is measured. Each side keeps its store on the same disk. Ours runs its whole pipeline
with its static vectors. Remind's store is filled through its own storage class, with the rows
that its `remember` would write (10,000 calls of it take hours): episodes, entities, mentions,
facts with vectors, and a cluster for each set of entities as its Jaccard rule makes them. What
is measured goes through its own API.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import bench_facts
from bench.contract import Row, complain, line, not_run

PACKAGE = "remind-mcp==0.12.4"
SIZES = {"smoke": (0,), "default": (0, 1_000), "full": (0, 1_000, 10_000)}
ROUNDS = 9
BAR = 100.0
"""At 10,000 facts; below that the ratio is shown without a bar."""

PEER = """
import asyncio, hashlib, json, statistics, sys, time
from datetime import datetime
import remind.interface as interface
from remind.apply import ApplyEngine
from remind.facts import create_fact_cluster
from remind.models import Entity, EntityType, Episode, Fact
from remind.providers.base import EmbeddingProvider
from remind.store import SQLAlchemyMemoryStore

KINDS = {kind.value for kind in EntityType}

class Free(EmbeddingProvider):
    dimensions, name, model = 384, "stub", "stub"
    async def embed(self, text):
        data = hashlib.sha256(text.encode()).digest()
        return [b / 255 for b in data] * 12
    async def embed_batch(self, texts):
        return [await self.embed(text) for text in texts]

async def timed(count, call):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)

class Filler:
    # Rows as `remember` of facts leaves them, many in a transaction.

    def __init__(self, store):
        self.store, self.free, self.serial = store, Free(), 0
        self.known, self.clusters, self.of_entity = set(), {}, {}

    async def add(self, batch):
        episodes, facts = [], []
        touched = set()
        for one in batch:
            self.serial += 1
            names = one["entities"]
            vector = await self.free.embed(one["text"])
            for name in names:
                if name not in self.known:
                    self.known.add(name)
                    kind, shown = name.split(":", 1)
                    kind = kind if kind in KINDS else "other"
                    entity = Entity(id=name, type=EntityType(kind), display_name=shown)
                    entity.embedding = await self.free.embed(name)
                    self.store.add_entity(entity)
            episode = Episode(id="e%07x" % self.serial, content=one["text"], entity_ids=names)
            episode.episode_type, episode.embedding = "fact", vector
            episode.consolidated, episode.consolidated_at = True, datetime.now()
            episodes.append(episode)
            cluster = self.cluster(names, one["text"])
            touched.add(cluster.id)
            facts.append(Fact(
                id="f%07x" % self.serial, cluster_id=cluster.id, statement=one["text"],
                entity_ids=names, source_episode_id=episode.id, embedding=vector,
            ))
        self.store.add_episodes_batch(episodes)
        for episode in episodes:
            for name in episode.entity_ids:
                self.store.add_mention(episode.id, name)
        self.store.add_facts_batch(facts)
        for one in touched:
            self.store.update_concept(self.clusters[one])

    def cluster(self, names, text):
        mine, best, found = set(names), 0.0, None
        for name in names:
            for one in self.of_entity.get(name, ()):
                theirs = set(one.entity_ids)
                value = len(mine & theirs) / len(mine | theirs)
                if value >= 0.5 and value > best:
                    best, found = value, one
        if found is None:
            found = create_fact_cluster(self.store, names, text)
            self.clusters[found.id] = found
            for name in names:
                self.of_entity.setdefault(name, []).append(found)
        else:
            found.specifics += "\\n" + text
        return found

async def main(folder, sizes, rounds, given):
    store = SQLAlchemyMemoryStore("sqlite:///" + folder + "/remind.db")
    memory = interface.MemoryInterface(Free(), store)
    engine = ApplyEngine(store, Free())
    serial = iter(given)
    async def remember():
        one = next(serial)
        await memory.remember(one["text"], episode_type="fact", entities=one["entities"])
    async def recall():
        await memory.recall(next(serial)["text"][:60], k=10)
    async def apply():
        ops = []
        for _ in range(10):
            one = next(serial)
            entities = ",".join(one["entities"])
            ops.append('remember t=fact e=%s "%s"' % (entities, one["text"]))
        await engine.apply("\\n".join(ops))
    reached = 0
    filler = Filler(store)
    for size in sizes:
        while reached < size:
            batch = [next(serial) for _ in range(min(500, size - reached))]
            await filler.add(batch)
            reached += len(batch)
        found = {"remember": await timed(rounds, remember), "recall": await timed(rounds, recall)}
        try:
            found["apply of 10"] = await timed(max(3, rounds // 3), apply)
        except Exception as error:
            found["apply_error"] = repr(error)[:200]
        reached += rounds + 10 * max(3, rounds // 3)
        print(json.dumps([size, found]), flush=True)

given = json.load(open(sys.argv[4]))
asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), given))
"""


def peer_python(folder: Path) -> str:
    """A Python with Remind. Raises RuntimeError with the reason when it cannot be had."""
    named = os.environ.get("LORE_REMIND_PYTHON")
    if named:
        return named
    complain(f"... installing {PACKAGE} into a scratch environment")
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(folder / "venv")], capture_output=True, text=True
    )
    if made.returncode:
        raise RuntimeError(f"no scratch environment: {made.stdout[-200:]}{made.stderr[-200:]}")
    python = str(folder / "venv" / "bin" / "python")
    got = subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", PACKAGE],
        capture_output=True,
        text=True,
        timeout=900,
    )
    if got.returncode:
        raise RuntimeError(f"{PACKAGE} cannot be installed: {got.stderr.strip()[-200:]}")
    return python


def theirs(folder: Path, sizes: tuple[int, ...], facts: list[dict[str, Any]]) -> dict[int, Any]:
    """Remind's figures by size, in milliseconds."""
    python = peer_python(folder)
    given, script = folder / "given.json", folder / "peer.py"
    given.write_text(json.dumps(facts))
    script.write_text(PEER)
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, str(script), str(folder), json.dumps(sizes), str(ROUNDS), str(given)],
        capture_output=True,
        text=True,
        env=env,
        cwd=folder,
        timeout=14_400,
    )
    if done.returncode:
        raise RuntimeError(f"Remind failed: {done.stderr.strip().splitlines()[-1][:200]}")
    found = [json.loads(one) for one in done.stdout.splitlines() if one.startswith("[")]
    return {int(size): figures for size, figures in found}


def rows(size: str) -> list[Row]:
    """For the table."""
    sizes = SIZES[size]
    if size == "smoke" and not os.environ.get("LORE_REMIND_PYTHON"):
        return [not_run("beside Remind 0.12.4", "not installed for a smoke run")]
    corpus = bench_facts.Corpus(7, busy=False)
    facts = [corpus.fact(number) for number in range(max(sizes) + 500 * len(sizes))]
    with tempfile.TemporaryDirectory(prefix="lore-bench-") as name:
        try:
            peer = theirs(Path(name), sizes, facts)
        except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
            return [not_run("beside Remind 0.12.4", str(error))]
    ours = asyncio.run(
        bench_facts.run([max(count, 1) for count in sizes], 50, busy=False, model="static")
    )
    found = []
    for count in sizes:
        for call in ("remember", "recall", "apply of 10"):
            their, our = peer[count].get(call), ours[max(count, 1)][call]["p50"]
            what = f"Remind 0.12.4 / ours, {call}, {count:,} facts"
            if their is None:
                found.append(not_run(what, peer[count].get("apply_error", "no figure")))
                continue
            note = f"p50 {their:.1f} ms and {our:.2f} ms"
            bar = BAR if count >= 10_000 else None
            found.append(Row(what, their / our, "x", bar, "high", note))
    return found


if __name__ == "__main__":
    for row in rows(sys.argv[1] if len(sys.argv) > 1 else "default"):
        print(line(row, 58))
