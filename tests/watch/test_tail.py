"""Lines from bytes: any content, any chunking, constant memory."""

import gzip
import os
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lored.watch.sources import BrokenStream, PlainSource, open_source
from lored.watch.tail import ELIDE_BYTES, RUN_KEPT, Line, Lines

KEEP = 4 << 20


class Pieces:
    """A source that gives what it is told to."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = [piece for piece in pieces if piece]
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def skip(self) -> int:
        return 0

    def head(self, size: int) -> bytes:
        return b""

    def move(self, offset: int, before: int) -> bytes | None:
        return b""

    def before(self, offset: int, size: int) -> bytes | None:
        return None

    def stat(self) -> os.stat_result:
        return os.stat("/")

    def close(self) -> None:
        return


def collect(pieces: list[bytes], keep: int = KEEP) -> tuple[list[Line], Lines]:
    lines = Lines(Pieces(pieces), 0, keep)
    return list(lines), lines


@given(
    st.lists(
        st.sampled_from([b"", b"a", b"{}", b"\r", b"x\xff\x00y", b"\xe2\x80\xa8"]), max_size=12
    ),
    st.booleans(),
    st.data(),
)
def test_any_chunking_gives_the_same_lines(
    parts: list[bytes], ended: bool, data: st.DataObject
) -> None:
    content = b"\n".join(parts) + (b"\n" if ended and parts else b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    edges = [0, *cuts, len(content)]
    pieces = [content[a:b] for a, b in pairwise(edges)]
    whole, _ = collect([content])
    cut, after = collect(pieces)

    def told(lines: list[Line]) -> list[bytes]:
        """Without NULs: pieces of nothing else are dropped, wherever they stand."""
        return [data for line in lines if (data := line.data.replace(b"\0", b""))]

    assert told(cut) == told(whole)
    *complete, rest = content.split(b"\n")
    assert after.end == sum(len(part) + 1 for part in complete)
    assert after.reached == len(content)
    assert after.rest.replace(b"\0", b"") == rest.replace(b"\0", b"")
    for line in whole:
        assert content[line.offset : line.end - 1] == line.data


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 400_000), st.booleans()), min_size=1, max_size=6))
def test_a_giant_run_becomes_small_and_the_rest_stays(sizes: list[tuple[int, bool]]) -> None:
    body = b"".join(
        (b"A" * size if run else b'", "k": "' + b"word " * (size // 5)) for size, run in sizes
    )
    line = b'{"a": "' + b"x y " * (ELIDE_BYTES // 4) + body + b'"}'
    pieces = [line[i : i + 100_001] for i in range(0, len(line), 100_001)]
    found, after = collect([*pieces, b"\n{}\n"])
    assert len(found) == 2 and found[1].data == b"{}"
    assert found[0].end == len(line) + 1 == found[1].offset
    assert found[0].data.count(b'"k"') == line.count(b'"k"')
    assert found[0].data.count(b"word ") == line.count(b"word ")
    assert after.rest == b""


def test_a_line_beyond_the_limit_is_counted_not_kept() -> None:
    found, _ = collect([b"ab " * 100_000] * 30 + [b"\nnext\n"], keep=1 << 20)
    assert [len(line.data) for line in found] == [1 << 20, 4]
    assert found[0].end == 30 * 300_000 + 1


def test_memory_stays_small_for_a_line_of_any_length() -> None:
    tracemalloc.start()
    try:
        lines = Lines(Pieces([b"A" * (256 << 10)] * 800 + [b"\n"]), 0, KEEP)
        assert [line.end for line in lines] == [800 * (256 << 10) + 1]
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_runs_just_below_the_length_do_not_cost_their_square() -> None:
    line = b"w " * (ELIDE_BYTES // 2) + (b"A" * 4_000 + b" ") * 1_000 + b"\n"
    pieces = [line[i : i + (256 << 10)] for i in range(0, len(line), 256 << 10)]
    found, _ = collect(pieces, keep=8 << 20)
    assert found[0].data == line[:-1]  # ends at once, not after minutes


def test_holes_of_a_sparse_file_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n')
        file.truncate(10 << 30)
        file.seek(10 << 30)
        file.write(b'\n{"b": 2}\n')
    source = PlainSource(str(path))
    try:
        lines = Lines(source, 0, KEEP)
        found = [line for line in lines if line.data.strip(b"\0")]
        assert [line.data.strip(b"\0") for line in found] == [b'{"a": 1}', b'{"b": 2}']
        assert found[-1].end == (10 << 30) + 10
        assert lines.nul_bytes > (9 << 30)
        assert source.bytes_read < 8 << 20
    finally:
        source.close()


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_a_source_shows_its_beginning_and_moves(tmp_path: Path, ending: str) -> None:
    content = bytes(range(256)) * 2_000
    path = tmp_path / f"f{ending}"
    packed = {"": content, ".gz": gzip.compress(content)}
    path.write_bytes(packed.get(ending) or zstandard.ZstdCompressor().compress(content))
    source = open_source(str(path))
    try:
        assert source.head(4_096) == content[:4_096]
        assert source.move(300_000, 4_096) == content[300_000 - 4_096 : 300_000]
        rest = b""
        while piece := source.read(10_000):
            rest += piece
        assert rest == content[300_000:]
        assert source.head(100) == content[:100]
    finally:
        source.close()


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty head"])
def test_a_damaged_stream_says_so(tmp_path: Path, ending: str, damage: str) -> None:
    content = os.urandom(50_000)
    data = (
        gzip.compress(content) if ending == ".gz" else zstandard.ZstdCompressor().compress(content)
    )
    broken = {
        "cut": data[:-30],
        "garbage": data[:5_000] + b"\xff" * 200 + data[5_200:],
        "empty head": b"\0" * 10,
    }
    path = tmp_path / f"f{ending}"
    path.write_bytes(broken[damage])
    source = open_source(str(path))
    try:
        with pytest.raises(BrokenStream):
            while source.read(10_000):
                continue
            raise BrokenStream if damage == "garbage" else AssertionError
    finally:
        source.close()


def test_a_bomb_is_given_piece_by_piece(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as writer:
        for _ in range(256):
            writer.write(b"A" * (1 << 20))
    source = open_source(str(path))
    tracemalloc.start()
    try:
        assert list(Lines(source, 0, KEEP)) == []
        assert tracemalloc.get_traced_memory()[1] < 96 << 20
    finally:
        tracemalloc.stop()
        source.close()


def test_the_kept_part_of_a_run_is_short() -> None:
    line = b"w " * (ELIDE_BYTES // 2) + b"A" * 100_000 + b'"\n'
    found, _ = collect([line])
    # One piece: nothing was kept before it, so nothing is cut from it.
    assert found[0].data == line[:-1]
    found, _ = collect([line[: ELIDE_BYTES + 4], line[ELIDE_BYTES + 4 :]])
    assert len(found[0].data) <= ELIDE_BYTES + 4 + RUN_KEPT + 1
