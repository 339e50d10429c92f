"""What happens to files, one thing at a time: nothing is lost, nothing is doubled."""

import asyncio
import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
import zstandard

from lored.store.sessions import cursors
from support.claude import said, session_id, session_path
from support.indexer import indexer

ONE, TWO, THREE = session_id(1), session_id(2), session_id(3)
STATE = "SELECT offset, size, failures, gone_at IS NOT NULL, damage FROM files WHERE path = ?"


def lines(session: str, *numbers: int) -> bytes:
    return b"".join(said(session, f"word{number} of the day", number) for number in numbers)


def words(*numbers: int) -> list[str]:
    return [f"word{number} of the day" for number in numbers]


async def test_an_append_is_read_from_where_the_last_look_ended(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, *range(200)))
        await index.settle()
        assert await index.texts(ONE) == words(*range(200))
        before = index.bytes_read
        more = lines(ONE, 200, 201)
        with path.open("ab") as file:
            file.write(more)
        await index.settle(path)
        assert await index.texts(ONE) == words(*range(202))
        # The increment, and the hashes that prove that it is the same file.
        assert index.bytes_read - before < len(more) + 40_000
        summary = await index.one("SELECT summary FROM sessions WHERE native_id = ?", ONE)
        assert "word0 of the day" in summary
        assert await index.found("word201") == [ONE]


async def test_an_unfinished_line_is_not_taken_and_not_lost(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        torn = lines(ONE, 3)
        path.write_bytes(lines(ONE, 1, 2) + torn[:150])
        await index.settle()
        assert await index.texts(ONE) == words(1, 2)
        with path.open("ab") as file:
            file.write(torn[150:])
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3)
        assert (await index.rows(STATE, str(path)))[0][4] == "{}"


async def test_a_last_line_without_newline_is_taken_when_it_was_left_alone(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1, 2)[:-1])
        os.utime(path, (1_700_000_000, 1_700_000_000))
        await index.settle()
        await index.settle()
        assert await index.texts(ONE) == words(1, 2)
        with path.open("ab") as file:
            file.write(b"\n" + lines(ONE, 3))
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3)


async def test_a_shorter_file_forgets_nothing(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1, 2, 3, 4))
        await index.settle()
        path.write_bytes(lines(ONE, 1, 2))
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3, 4)
        dropped = await index.rows("SELECT position FROM messages WHERE flags & 2 ORDER BY 1")
        assert dropped == [(2,), (3,)]
        with path.open("ab") as file:
            file.write(lines(ONE, 5))
        await index.settle()
        assert sorted(await index.texts(ONE)) == words(1, 2, 3, 4, 5)


async def test_a_rewritten_file_ends_in_its_own_order(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 3, 4))
        await index.settle()
        draft = path.with_suffix(".tmp")
        draft.write_bytes(lines(ONE, 1, 2, 3, 4, 5))
        draft.rename(path)
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3, 4, 5)
        assert await index.one("SELECT count(*) FROM messages") == 5
        assert await index.one("SELECT message_count FROM sessions") == 5


async def test_a_rewrite_with_the_same_content_is_not_read_again(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, *range(300)))
        await index.settle()
        before = index.bytes_read
        draft = path.with_suffix(".tmp")
        shutil.copyfile(path, draft)
        draft.rename(path)
        await index.settle()
        assert index.bytes_read - before < 40_000
        assert await index.texts(ONE) == words(*range(300))


async def test_newer_content_of_a_rewritten_record_wins(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1) + said(ONE, "the oldish zebra", 2))
        await index.settle()
        assert await index.found("zebra") == [ONE]
        path.write_bytes(lines(ONE, 1) + said(ONE, "the newish giraffe", 2) + lines(ONE, 3))
        await index.settle()
        assert await index.texts(ONE) == ["word1 of the day", "the newish giraffe", *words(3)]
        assert await index.found("zebra") == []
        assert await index.found("giraffe") == [ONE]


async def test_a_change_in_the_middle_of_the_same_size_is_seen(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1) + said(ONE, "x" * 40 + " apple", 2) + lines(ONE, 3))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        await index.settle()
        path.write_bytes(lines(ONE, 1) + said(ONE, "x" * 40 + " lemon", 2) + lines(ONE, 3))
        os.utime(path, (1_700_000_100, 1_700_000_100))
        await index.settle()
        assert await index.found("lemon") == [ONE]
        assert await index.found("apple") == []


async def test_a_renamed_file_takes_its_cursor_along(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, *range(300)))
        await index.settle()
        before = index.bytes_read
        moved = session_path(index.user, ONE, "-srv-elsewhere")
        path.rename(moved)
        await index.settle()
        assert index.bytes_read - before < 40_000
        assert await index.one("SELECT path FROM files WHERE session IS NOT NULL") == str(moved)
        assert await index.texts(ONE) == words(*range(300))


@pytest.mark.parametrize("ending", [".zst", ".gz"])
async def test_a_compressed_file_is_the_same_session(home: Path, ending: str) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        content = lines(ONE, *range(100))
        path.write_bytes(content)
        await index.settle()
        packed = (
            zstandard.ZstdCompressor().compress(content)
            if ending == ".zst"
            else gzip.compress(content)
        )
        target = path.with_name(path.name + ending)
        target.write_bytes(packed)
        await index.settle()  # beside its plain form it is not read
        assert await index.one("SELECT count(*) FROM files WHERE session IS NOT NULL") == 1
        path.unlink()
        await index.settle()
        assert await index.texts(ONE) == words(*range(100))
        assert await index.one("SELECT path FROM files WHERE session IS NOT NULL") == str(target)
        # The agent resumes: it is written out plain again, and goes on.
        target.unlink()
        path.write_bytes(content + lines(ONE, 100))
        await index.settle()
        assert await index.texts(ONE) == words(*range(101))
        assert await index.one("SELECT count(*) FROM messages") == 101


@pytest.mark.parametrize("noticed", [False, True])
async def test_written_out_plain_and_changed_it_is_read_anew(home: Path, noticed: bool) -> None:
    """Also when a look found the compressed form missing before the plain one came."""
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        packed = path.with_name(path.name + ".zst")
        packed.write_bytes(zstandard.ZstdCompressor().compress(lines(ONE, 1, 2, 3)))
        await index.settle()
        packed.unlink()
        if noticed:
            await index.settle()
            assert (await index.rows(STATE, str(packed)))[0][3] == 1
        path.write_bytes(lines(ONE, 0, 1, 2, 3))
        await index.settle()
        assert await index.texts(ONE) == words(0, 1, 2, 3)
        summary = await index.one("SELECT summary FROM sessions")
        assert '"goal":"word0' in summary and '"headline":"Word0' in summary
        assert await index.rows("SELECT path FROM files WHERE session > 0") == [(str(path),)]


async def test_a_number_of_an_inode_used_again_disturbs_nobody(home: Path) -> None:
    """Between two looks a file is deleted and another session's takes its inode."""
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1, 2, 3))
        await index.settle()
        told = "SELECT summary, fold, positions, message_count FROM sessions WHERE native_id = ?"
        before = await index.rows(told, ONE)
        other = session_path(index.user, TWO)
        path.rename(other)
        with other.open("r+b") as file:
            file.write(lines(TWO, *range(10)))
        await index.settle()
        assert await index.texts(TWO) == words(*range(10))
        assert await index.rows(told, ONE) == before
        assert await index.texts(ONE) == words(1, 2, 3)
        assert (await index.rows(STATE, str(path)))[0][3] == 1
        path.write_bytes(lines(ONE, 0, 1, 2, 3))
        await index.settle()
        assert await index.texts(ONE) == words(0, 1, 2, 3)
        assert '"goal":"word0' in (await index.rows(told, ONE))[0][0]


async def test_a_compressed_file_met_first_is_read_whole(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        frames = [zstandard.ZstdCompressor().compress(lines(ONE, n)) for n in range(3)]
        path.with_name(path.name + ".zst").write_bytes(b"".join(frames))
        await index.settle()
        assert await index.texts(ONE) == words(0, 1, 2)


async def test_a_cut_compressed_file_keeps_what_it_has_and_is_tried_again(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        target = path.with_name(path.name + ".zst")
        packed = zstandard.ZstdCompressor().compress(lines(ONE, *range(50)))
        target.write_bytes(packed[:-20])
        answer = await index.settle()
        assert answer["failed"] == 1
        status = await index.indexing.status()
        root = next(r for r in status["roots"] if r["agent"] == "claude-code")
        assert root["quarantined"] == 1 and "compressed file" in root["failing"][0]["error"]
        target.write_bytes(packed)
        await index.settle(force=True)
        assert await index.texts(ONE) == words(*range(50))


async def test_a_deleted_file_stays_in_memory(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1, 2))
        await index.settle()
        path.unlink()
        await index.settle()
        assert (await index.rows(STATE, str(path)))[0][3] == 1
        assert await index.texts(ONE) == words(1, 2)
        path.write_bytes(lines(ONE, 1, 2, 3))
        await index.settle()
        assert (await index.rows(STATE, str(path)))[0][3] == 0
        assert await index.texts(ONE) == words(1, 2, 3)


async def test_a_root_that_vanishes_as_a_whole_is_not_taken_for_deletion(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1))
        await index.settle()
        root = index.user / ".claude"
        root.rename(index.user / "unmounted")
        await index.settle()
        assert (await index.rows(STATE, str(path)))[0][3] == 0


async def test_a_new_parser_version_reads_again_without_doubling(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1, 2, 3))
        await index.settle()
        summary = await index.one("SELECT summary FROM sessions")
    async with indexer(home) as index:
        await index.app.registry.sessions.write(
            lambda c: c.execute("UPDATE files SET parser_version = 0")
        )
        cursor = index.indexing.roots[("claude-code", str(index.user / ".claude"))].cursors
        for one in cursor.values():
            one.parser_version = 0
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3)
        assert await index.one("SELECT count(*) FROM messages") == 3
        assert await index.one("SELECT summary FROM sessions") == summary
        assert await index.one("SELECT parser_version > 0 FROM files WHERE session > 0") == 1


async def test_a_session_in_two_files_is_one_session_in_order(home: Path) -> None:
    """Claude Code continues a session under another folder when its directory moves."""
    async with indexer(home) as index:
        first = session_path(index.user, ONE)
        first.write_bytes(lines(ONE, 1, 2))
        os.utime(first, (1_700_000_000, 1_700_000_000))
        second = session_path(index.user, ONE, "-srv-moved")
        second.write_bytes(lines(ONE, 3, 4))
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3, 4)
        assert '"goal": "word1' in (await index.one("SELECT summary FROM sessions")).replace(
            '":"', '": "'
        )
        first.write_bytes(lines(ONE, 0, 1, 2))
        await index.settle()
        assert sorted(await index.texts(ONE)) == words(0, 1, 2, 3, 4)


async def test_a_fork_is_stored_once_and_seen_in_both(home: Path) -> None:
    shared = [said(ONE, f"shared {n}", n, key=f"key-{n}") for n in range(3)]
    copied = [line.replace(ONE.encode(), TWO.encode()) for line in shared]
    async with indexer(home) as index:
        # The fork is newer, so it is read first; the origin owns the messages all the same.
        original = session_path(index.user, ONE)
        original.write_bytes(b"".join(shared) + said(ONE, "only in one", 5))
        os.utime(original, (1_700_000_000, 1_700_000_000))
        session_path(index.user, TWO).write_bytes(b"".join(copied) + said(TWO, "only in two", 60))
        await index.settle()
        assert await index.one("SELECT count(*) FROM messages") == 5
        assert await index.texts(ONE) == ["shared 0", "shared 1", "shared 2", "only in one"]
        assert await index.texts(TWO) == ["shared 0", "shared 1", "shared 2", "only in two"]
        owners = await index.rows(
            "SELECT DISTINCT s.native_id FROM messages m JOIN sessions s ON s.id = m.session "
            "WHERE m.record_key LIKE 'key-%'"
        )
        assert owners == [(ONE,)]
        assert await index.rows("SELECT native_id, forked_from FROM sessions ORDER BY 1") == [
            (ONE, None),
            (TWO, ONE),
        ]
        assert await index.rows("SELECT message_count FROM sessions") == [(4,), (4,)]


@pytest.mark.parametrize("first", [ONE, TWO])
async def test_what_a_fork_repeats_with_its_own_time_keeps_the_first_one(
    home: Path, first: str
) -> None:
    sessions = {ONE: 0, TWO: 60}
    async with indexer(home) as index:
        for session in sorted(sessions, key=lambda name: name != first):
            minute = sessions[session]
            shared = [said(session, f"shared {n}", minute + n, key=f"key-{n}") for n in range(2)]
            own = said(session, f"only in {session}", minute + 5)
            session_path(index.user, session).write_bytes(b"".join(shared) + own)
            await index.settle()
        instants = await index.rows(
            "SELECT strftime('%H:%M', at / 1000000, 'unixepoch') FROM messages "
            "WHERE record_key LIKE 'key-%' ORDER BY record_key"
        )
        assert instants == [("00:00",), ("00:01",)]


async def test_hostile_bytes_cost_only_themselves(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(
            lines(ONE, 1)
            + b"\0" * 300_000
            + lines(ONE, 2)
            + b"[1, 2]\n\n\xff\xfe\n"
            + lines(ONE, 3)[:-1]
            + lines(ONE, 4)
            + b'{"a": "'
            + b"A" * (3 << 20)
            + b'"}\n'
            + lines(ONE, 5)
        )
        await index.settle()
        assert await index.texts(ONE) == words(1, 2, 3, 4, 5)
        damage = (await index.rows(STATE, str(path)))[0][4]
        assert "glued" in damage and "nul" in damage


async def test_a_link_is_read_only_within_its_root(home: Path) -> None:
    """Links of folders are followed, links of files only to places in the same root."""
    async with indexer(home) as index:
        outside = home / "outside"
        outside.mkdir()
        (home / "secret.jsonl").write_bytes(lines(ONE, 1))
        (outside / f"{TWO}.jsonl").write_bytes(lines(TWO, 2))
        path = session_path(index.user, ONE)
        path.symlink_to(home / "secret.jsonl")
        await index.settle(path)
        await index.settle()
        (path.parent.parent / "-srv-linked").symlink_to(outside)
        kept = index.user / ".claude" / "kept.jsonl"
        kept.write_bytes(lines(THREE, 3))
        session_path(index.user, THREE).symlink_to(kept)
        await index.settle()
        told = await index.rows("SELECT native_id FROM sessions ORDER BY 1")
        assert [row[0] for row in told if row[0] in (ONE, TWO, THREE)] == [TWO, THREE]
        root = (await index.indexing.status())["roots"][0]
        assert any("1 files are links that lead out" in one for one in root["warnings"])


async def test_what_is_not_utf_8_as_a_name_is_said(home: Path) -> None:
    async with indexer(home) as index:
        path = session_path(index.user, ONE)
        path.write_bytes(lines(ONE, 1))
        odd = os.fsencode(path.parent) + b"/\xff\xfe.jsonl"
        with open(odd, "wb") as file:
            file.write(lines(TWO, 1))
        await index.settle()
        root = next(
            r for r in (await index.indexing.status())["roots"] if r["agent"] == "claude-code"
        )
        assert any("not UTF-8" in warning for warning in root["warnings"])
        assert await index.texts(ONE) == words(1)


async def test_an_inode_used_again_says_nothing_about_a_file_that_was_not_read(home: Path) -> None:
    """Met in the long form of test_machine.py: while one session was to be read from its start,
    the other was packed and got the inode number of the first one's file. With nothing read
    there was nothing to tell the two apart by, so the packed one was read from its start too,
    and its summary counted what was said before twice."""
    async with indexer(home) as index:
        paths = [session_path(index.user, session_id(number)) for number in (1, 2)]
        for number, path in enumerate(paths, 1):
            lines = [
                said(session_id(number), f"thing {n}", n, role="assistant" if n % 2 else "user")
                for n in range(4)
            ]
            path.write_bytes(b"".join(lines))
        await index.settle()
        first, second = paths
        name = str(second)
        await index.app.registry.sessions.write(lambda c: cursors.reset(c, name))
        await index.indexing.reload([name])
        draft = first.with_name("draft")
        data = zstandard.ZstdCompressor().compress(first.read_bytes())
        second.rename(draft)
        draft.write_bytes(data)
        draft.rename(first.with_name(first.name + ".zst"))
        first.unlink()
        await index.settle()
        told = await index.one("SELECT summary FROM sessions WHERE native_id = ?", session_id(1))
        assert json.loads(told)["counts"]["messages"] == 4


async def test_a_rule_taken_back_while_its_file_is_read_bars_nothing(home: Path) -> None:
    async with indexer(home) as index:
        place = index.user / "client"
        place.mkdir()
        await index.settle()
        await index.indexing.change_rules(add=f"workspace:{place}", remove=None)
        await index.settle()
        path = session_path(index.user, ONE)
        path.write_bytes(said(ONE, "hush", 1, cwd=str(place)))
        ticket = await index.indexing.index([str(path)], force=False)
        while index.indexing.current is None:  # at the latest when the ticket is kept
            await asyncio.sleep(0)
        await index.indexing.change_rules(add=None, remove=f"workspace:{place}")
        await index.indexing.wait(ticket)
        await index.settle()
        assert await index.texts(ONE) == ["hush"]


@pytest.mark.parametrize("rule", ["workspace:{}", "path:*/projects/*"])
async def test_nothing_is_stored_once_a_rule_stands(home: Path, rule: str) -> None:
    """Also not of a file whose reading began before it."""
    async with indexer(home) as index:
        place = index.user / "client"
        place.mkdir()
        await index.settle()
        path = session_path(index.user, ONE)
        path.write_bytes(b"".join(said(ONE, f"hush {n}", n, cwd=str(place)) for n in range(3_000)))
        ticket = await index.indexing.index([str(path)], force=False)
        while index.indexing.current is None:  # at the latest when the ticket is kept
            await asyncio.sleep(0)
        await index.indexing.change_rules(add=rule.format(place), remove=None)
        count = "SELECT count(*) FROM messages"
        stored = await index.one(count)
        await index.indexing.wait(ticket)
        await index.settle()
        assert await index.one(count) == stored < 3_000


async def test_a_root_is_not_missing_before_it_was_looked_at(home: Path) -> None:
    async with indexer(home) as index:
        await index.settle()
        assert {root.mode for root in index.indexing.roots.values()} == {"missing"}
        index.indexing.looking.make_roots()
        assert {root.mode for root in index.indexing.roots.values()} == {"starting"}


async def test_what_is_only_named_is_no_session_that_was_read(home: Path) -> None:
    async with indexer(home) as index:
        named = index.user / ".codex" / "session_index.jsonl"
        named.parent.mkdir()
        line = {"id": TWO, "thread_name": "tidy up", "updated_at": "2026-05-28T10:00:00Z"}
        named.write_text(json.dumps(line) + "\n")
        session_path(index.user, ONE).write_bytes(lines(ONE, 1))
        done = await index.settle()
        assert (done["files"], done["sessions"], done["messages"]) == (2, 1, 1)


async def test_a_folder_that_no_path_can_name_hides_no_session(home: Path) -> None:
    async with indexer(home) as index:
        await index.indexing.change_rules(add=f"workspace:{index.user}/client", remove=None)
        session_path(index.user, ONE).write_bytes(said(ONE, "heard", 1, cwd="/tmp/a\0b"))
        done = await index.settle()
        assert (done["failed"], await index.texts(ONE)) == (0, ["heard"])


async def test_content_that_the_store_refuses_holds_up_no_other_file(home: Path) -> None:
    async with indexer(home) as index:
        refusing = (
            "CREATE TRIGGER refuse BEFORE INSERT ON sessions WHEN new.native_id = '%s' "
            "BEGIN SELECT raise(ABORT, 'no'); END"
        )
        await index.app.registry.sessions.write(lambda c: c.execute(refusing % TWO))
        for session in (ONE, TWO, THREE):
            session_path(index.user, session).write_bytes(lines(session, 1))
        done = await index.settle()
        assert (done["files"], done["failed"]) == (3, 1)
        assert [await index.texts(one) for one in (ONE, TWO, THREE)] == [words(1), [], words(1)]
