"""facts.jsonl written from what changed is the file that composing it from all facts gives."""

import asyncio
import contextlib
import json
import os
import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.errors import LoreError
from lored.services.exchange.mirror import Mirror
from support.memory import Memory, open_memory

FULL = os.environ.get("LORE_FULL") == "1"
STEPS = (
    "remember", "remember", "repeat", "supersede", "forget", "tag", "update", "undo", "edit",
    "erase", "conflict", "count",
)  # fmt: skip


async def step(memory: Memory, kind: str, chance: random.Random, path: Path, turn: int) -> None:
    """One change of the store, or of the file by another program."""
    number = chance.randint(1, turn + 1)
    other = chance.randint(1, turn + 1)
    if kind == "remember":
        await memory.remember_fact(text=f"fact {turn} — é", entities=[f"tool:{turn % 3}"])
    elif kind == "repeat":
        await memory.remember_fact(text=f"fact {number} — é", tags=[f"t{turn}"])
    elif kind == "supersede":
        await memory.apply_text(f"supersede old=F{number} new=F{other}")
    elif kind == "conflict":
        await memory.apply_text(f"conflict a=F{number} b=F{other}")
    elif kind == "forget":
        await memory.forget_fact(id=f"F{number}")
    elif kind == "erase":
        await memory.forget_fact(id=f"F{number}", hard=True)
    elif kind == "tag":
        await memory.apply_text(f"tag id=F{number} add=u{turn}")
    elif kind == "update":
        await memory.update_fact(id=f"F{number}", text=f"fact {turn} anew")
    elif kind == "undo":
        await memory.undo()
    elif kind == "count":
        await memory.recall_fact(query=f"fact {number}")
    elif path.exists():  # Recursive or a person: the last line changes its tags, one is damaged
        lines = path.read_text(encoding="utf-8").splitlines()
        record = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        record["tags"] = [f"by hand {turn}"]
        draft = path.with_suffix(".new")
        kept = "\n".join([*lines[:-1], "not a record", json.dumps(record)])
        draft.write_text(kept + chance.choice(("\n", "")), encoding="utf-8")
        draft.rename(path)


@settings(max_examples=60 if FULL else 8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kinds=st.lists(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3), max_size=8),
    seed=st.integers(0, 1 << 16),
)
def test_any_history_gives_the_file_that_composing_gives(kinds: list[list[str]], seed: int) -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name) / "ws"
            place.mkdir()
            path = place / ".recursive" / "memory" / "facts.jsonl"
            async with open_memory(Path(name) / "home", place) as memory:
                mirror = Mirror(memory.app)
                found = await memory.app.workspaces.resolve(str(place))
                assert found is not None
                workspace = found.id
                chance, turn = random.Random(seed), 0
                for together in kinds:
                    for kind in together:
                        with contextlib.suppress(
                            LoreError
                        ):  # no such fact, already forgotten, nothing to undo
                            await step(memory, kind, chance, path, turn)
                        turn += 1
                    await mirror.sync(workspace)
                    written = path.read_bytes() if path.exists() else b""
                    await mirror.verify(deep=False, fix=False)  # looks at everything
                    composed = path.read_bytes() if path.exists() else b""
                    assert written == composed

    asyncio.run(run())
