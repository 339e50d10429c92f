"""`reindex` on a real daemon."""

from pathlib import Path

import pytest

from lore import Client, errors
from support.daemon import start_daemon


def test_text_and_vectors_anew(home: Path) -> None:
    with start_daemon(home) as running, Client(where=running.paths, start=False) as client:
        client.remember_fact(text="the parser lives in src/parser.rs", scope="global")
        before = client.recall_fact(query="parser")["facts"]
        answer = client.reindex(text=True, timeout=60)
        assert answer["accepted"] and answer["facts_stores"] == 1
        after = client.recall_fact(query="parser")["facts"]
        assert [fact["id"] for fact in after] == [fact["id"] for fact in before] == ["F1"]
        assert client.verify(timeout=60)["ok"]
        with pytest.raises(errors.Invalid, match="no-such-model"):
            client.reindex(model="no-such-model")
