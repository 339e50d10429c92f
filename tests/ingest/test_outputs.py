"""A tool's output is found by what was done, however it came into the store."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lored.core.tokens import parse_query
from lored.services.care.redaction import Redaction
from lored.services.search.reindexing import Reindexing
from lored.store.driver import Connection
from lored.store.search import episodes, messages
from lored.store.search.columns import Columns
from lored.store.search.messages import Scope
from support.claude import said, session_id, session_path
from support.indexer import Index, indexer
from support.transcripts import SAMPLES

ONE = session_id(1)
CALL = "toolu_01AbCdEfGhIjKlMnOpQrStUv"


def called(number: int, command: str) -> bytes:
    """The line of a call."""
    line = json.loads(said(ONE, "", number, role="assistant"))
    given = {"command": command}
    line["message"]["content"] = [
        {"type": "tool_use", "id": CALL, "name": "Bash", "input": given},
    ]
    return json.dumps(line).encode() + b"\n"


def answered(number: int, output: str) -> bytes:
    """The line of its result."""
    line = json.loads(said(ONE, "", number))
    line["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": CALL, "content": output, "is_error": False}
    ]
    return json.dumps(line).encode() + b"\n"


async def words(index: Index) -> list[tuple[Any, ...]]:
    """Everything that the text index holds: term, message, column, offset."""

    def read(conn: Connection) -> list[tuple[Any, ...]]:
        conn.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.held"
            " USING fts5vocab(main, message_stems, instance)"
        )
        return [tuple(row) for row in conn.execute("SELECT * FROM temp.held ORDER BY 1, 2, 3, 4")]

    return await index.app.registry.sessions.write(read)


async def as_before(index: Index) -> None:
    """The store as a release left it that did not index what was done."""

    def change(conn: Connection) -> None:
        rows = conn.execute("SELECT id, text FROM messages WHERE role = 2").fetchall()
        for number, text in rows:
            assert isinstance(text, str)
            conn.execute(
                "INSERT OR REPLACE INTO message_stems(rowid, text, ctx) VALUES(?, ?, '')",
                (number, text),
            )
        conn.execute("DELETE FROM meta WHERE key = 'text_form'")

    await index.app.registry.sessions.write(change)


async def test_an_output_is_found_by_its_command_and_shown_as_it_was(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(said(ONE, "please check it", 1) + called(2, "make frobnicate"))
        await index.settle()
        with path.open("ab") as file:  # the call is known from the reading before
            file.write(answered(3, "12 passed"))
        await index.settle()
        assert await index.texts(ONE) == ["please check it", "12 passed"]
        found = await index.app.registry.sessions.read(
            lambda c: messages.search(
                c, Columns(), parse_query("what came of frobnicate"), {}, None, Scope(), 5
            )
        )
        hit = next(hit for hit in found.hits if hit.text == "12 passed")
        assert hit.deed == "make frobnicate" and "frobnicate" in hit.fit.matched
        shown = episodes.shown(hit, explain=False)
        assert (shown["text"], shown["deed"]) == ("12 passed", "make frobnicate")


async def test_a_store_of_before_is_brought_up_where_it_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lored.store.sessions import retexting

    monkeypatch.setattr(retexting, "PORTION", 1)
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(called(2, "make frobnicate") + answered(3, "12 passed"))
        await index.settle()
        right = await words(index)
        await as_before(index)
        assert await words(index) != right
        for _ in range(2):  # the second finds nothing to do
            work = Reindexing(index.app, begin_seconds=0)
            await work.start()
            await work.caught_up()
            await work.stop()
            assert await words(index) == right
            assert await index.one("SELECT value FROM meta WHERE key = 'text_form'") == 1
        assert await index.rows("SELECT 1 FROM meta WHERE key = 'text_form_after'") == []


async def test_the_index_made_anew_is_the_one_that_reading_made(home: Path) -> None:
    async with indexer(home) as index:
        shutil.copytree(SAMPLES, index.user, dirs_exist_ok=True)
        for folder in sorted(SAMPLES.iterdir()):
            if folder.is_dir():
                shutil.copytree(folder, index.user, dirs_exist_ok=True)
        await index.settle()
        right = await words(index)
        assert len(right) > 1_000
        assert (await Reindexing(index.app).run(index.call, model=None, text=True, wait=False))[
            "messages"
        ] > 50
        again = await words(index)
        other = set(again) ^ set(right)
        assert not other, sorted(other)[:20]


async def test_a_secret_leaves_the_words_of_the_output_with_its_command(home: Path) -> None:
    secret = "sk-" + "proj-" + "a1B2c3D4" * 6
    async with indexer(home, redact_enabled=False) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(called(2, "make frobnicate") + answered(3, "12 passed"))
        await index.settle()

        def leak(conn: Connection) -> None:
            conn.execute("UPDATE actions SET command = ?", (f"make frobnicate KEY={secret}",))

        await index.app.registry.sessions.write(leak)
        await Reindexing(index.app).run(index.call, model=None, text=True, wait=False)
        inside = secret.rsplit("-", 1)[-1]
        assert await index.found(inside) == [ONE]
        await Redaction(index.app).run(index.call, fix=True)
        assert await index.found(inside) == [] and await index.found("frobnicate") == [ONE]
