"""The stems that the text index itself makes, for weighing and measuring outside of it."""

import threading
from collections.abc import Sequence
from typing import Final

from lored.store.driver import sqlite

CACHED_STEMS: Final = 50_000
"""Stems remembered, about 6 MB; then all are dropped."""


class Stemmer(threading.local):
    """FTS5's own porter, reached through a table in memory, and what it said; one a thread."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._connection = sqlite.connect(":memory:", isolation_level=None)
        self._connection.execute(
            "CREATE VIRTUAL TABLE stems USING fts5("
            'word, tokenize="porter unicode61 remove_diacritics 2")'
        )
        self._connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(stems, instance)")

    def __call__(self, words: Sequence[str]) -> list[str]:
        """The stem of each word (letters and digits, lower case)."""
        known = self._known
        new = [w for w in dict.fromkeys(words) if w not in known and not _ends_in_digit(w)]
        if new:
            if len(known) + len(new) > CACHED_STEMS:
                known.clear()
                new = [word for word in dict.fromkeys(words) if not _ends_in_digit(word)]
            self._learn(new)
        return [known.get(word, word) for word in words]

    def _learn(self, words: list[str]) -> None:
        run = self._connection.execute
        run("INSERT INTO stems(rowid, word) VALUES(1, ?)", (" ".join(words),))
        found = [row[0] for row in run("SELECT term FROM terms ORDER BY offset")]
        run("DELETE FROM stems")
        if len(found) == len(words):
            self._known.update(zip(words, found, strict=True))
            return
        # A word that FTS5 splits (a letter unknown to its Unicode tables) shifts the rest.
        for word in words:
            run("INSERT INTO stems(rowid, word) VALUES(1, ?)", (word,))
            row = run("SELECT term FROM terms ORDER BY offset LIMIT 1").fetchone()
            run("DELETE FROM stems")
            self._known[word] = row[0] if row else word


def _ends_in_digit(word: str) -> bool:
    """Whether ``word`` is its own stem beyond doubt: porter takes endings of letters away."""
    return word.isascii() and word[-1:].isdigit()


stem = Stemmer()
