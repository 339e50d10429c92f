"""Calm walks: what has been quiet is taken as it was, for a while; what is new is seen at once."""

import os
from pathlib import Path

from lored.ingest.discover import CALM_WALKS, RootSpec, Walker
from lored.ingest.exclusion import Exclusion
from support.claude import said, session_id, session_path

OLD = (1_700_000_000, 1_700_000_000)


def test_a_quiet_folder_is_looked_at_by_every_fifth_calm_walk(tmp_path: Path) -> None:
    quiet = session_path(tmp_path, session_id(1), "-srv-old")
    busy = session_path(tmp_path, session_id(2), "-srv-new")
    for path in (quiet, busy):
        path.write_bytes(said(session_id(1), "one", 1))
    for path in (quiet, quiet.parent):
        os.utime(path, OLD)
    root = str(tmp_path / ".claude")
    walker = Walker(RootSpec("claude-code", root, ("projects/**/*.jsonl",)), Exclusion.parse([]))

    def sizes(*, calm: bool) -> tuple[int, int]:
        files = walker.walk(60.0, calm=calm).files
        return files[str(quiet)].size, files[str(busy)].size

    before = sizes(calm=False)
    for path in (quiet, busy):
        with path.open("ab") as file:
            file.write(b"\n")
    os.utime(quiet, OLD)
    for _ in range(CALM_WALKS):
        assert sizes(calm=True) == (before[0], before[1] + 1)
    assert sizes(calm=True) == (before[0] + 1, before[1] + 1)
    # A file that comes or goes changes its folder.
    other = quiet.with_name(f"{session_id(3)}.jsonl")
    other.write_bytes(b"{}\n")
    assert str(other) in walker.walk(60.0, calm=True).files
    quiet.unlink()
    assert str(quiet) not in walker.walk(60.0, calm=True).files
    # Whoever asks for everything gets it.
    assert sizes_of(walker, busy) == busy.stat().st_size


def sizes_of(walker: Walker, path: Path) -> int:
    return walker.walk(60.0).files[str(path)].size
