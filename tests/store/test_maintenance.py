"""Checks and care of a store file with everything in it that a release makes."""

from pathlib import Path

import pytest

from lored.store import maintenance
from lored.store.database import Database
from lored.store.pragmas import StoreKind


@pytest.mark.parametrize("kind", list(StoreKind))
async def test_a_fresh_store_is_sound_and_can_be_cared_for(kind: StoreKind, tmp_path: Path) -> None:
    """The views that read term counts (fts5vocab) are no text indexes and take no commands."""
    store = await Database.open(str(tmp_path / "x.db"), kind, backups_dir=str(tmp_path))
    try:
        for deep in (False, True):
            assert await store.write_raw(lambda c, deep=deep: maintenance.check(c, deep=deep)) == []
        await store.write(maintenance.optimize)
        await store.write(maintenance.repair)
    finally:
        await store.close()
