"""A call whose answer was lost is sent again with its key and answers as it did."""

from pathlib import Path

import pytest

from lore.errors import Conflict
from support.memory import open_memory


async def test_an_update_sent_twice_happens_once_also_after_a_restart(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as memory:
        old = (await memory.remember_fact(text="The cache lives 300 s"))["fact"]
        change = {"id": old["id"], "text": "The cache lives 600 s", "idempotency_key": "once"}
        first = await memory.update_fact(**change)
        again = await memory.update_fact(**change)
        assert again["new"] == first["new"] and again["old"]["superseded_by"] == first["new"]["id"]
        assert len([one for one in memory.events if one.payload.get("action") == "updated"]) == 1
    async with open_memory(tmp_path) as memory:
        later = await memory.update_fact(**change)
        assert later["new"]["id"] == first["new"]["id"]
        with pytest.raises(Conflict, match="another request"):
            await memory.update_fact(**{**change, "text": "The cache lives 900 s"})
        with pytest.raises(Conflict, match="superseded already"):
            await memory.update_fact(**{**change, "idempotency_key": "other"})
        assert len((await memory.facts(include_superseded=True))["facts"]) == 2
