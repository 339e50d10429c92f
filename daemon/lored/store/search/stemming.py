"""The stems that the text index itself makes, for weighing and measuring outside of it."""

import threading
from collections.abc import Sequence
from typing import Final

from lored.store.driver import sqlite

CACHED_STEMS: Final = 50_000
"""Stems remembered, about 6 MB; then all are dropped."""


class _Porter(threading.local):
    """FTS5's own porter, reached through a table in memory; one a thread."""

    def __init__(self) -> None:
        self._connection = sqlite.connect(":memory:", isolation_level=None)
        self._connection.execute(
            "CREATE VIRTUAL TABLE stems USING fts5("
            'word, tokenize="porter unicode61 remove_diacritics 2")'
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(stems, instance)")

    def stems(self, words: Sequence[str]) -> list[str]:
        """One per word."""
        run = self._connection.execute
        run("INSERT INTO stems(rowid, word) VALUES(1, ?)", (" ".join(words),))
        found: list[str] = [row[0] for row in run("SELECT term FROM terms ORDER BY offset")]
        run("DELETE FROM stems")
        if len(found) == len(words):
            return found
        if len(words) == 1:
            return found[:1] or list(words)
        # A word that FTS5 splits (a letter unknown to its Unicode tables) shifts the rest.
        return [self.stems([word])[0] for word in words]


class Stemmer:
    """The index's stemmer with what it said before, for all threads."""

    def __init__(self) -> None:
        self._porter = _Porter()
        self._known: dict[str, str] = {}

    def __call__(self, words: Sequence[str]) -> list[str]:
        """The stem of each word (letters and digits, lower case)."""
        known = self._known  # a full one is replaced, never emptied: others may be reading it
        new = [w for w in dict.fromkeys(words) if w not in known and not _ends_in_digit(w)]
        if new and len(known) + len(new) > CACHED_STEMS:
            known = self._known = {}
            new = [word for word in dict.fromkeys(words) if not _ends_in_digit(word)]
        if new:
            known.update(zip(new, self._porter.stems(new), strict=True))
        return [known.get(word, word) for word in words]


def _ends_in_digit(word: str) -> bool:
    """Whether ``word`` is its own stem beyond doubt: porter takes endings of letters away."""
    return word.isascii() and word[-1:].isdigit()


stem = Stemmer()
