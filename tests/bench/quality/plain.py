"""What needs no memory program: the words of the question against the raw messages.

`Fts` is FTS5 as one would set it up in an afternoon (porter stems, all words of the question
OR-ed, bm25). `Grep` is `grep -i` for each word of more than two letters, lines counted as they
match, messages ordered by how many different words they hold, then by how many lines do.
"""

import re
import sqlite3
from collections.abc import Sequence

from .memories import Memory

_WORD = re.compile(r"\w+")


class Fts:
    """Plain FTS5 over the raw words."""

    def __init__(self, memory: Memory) -> None:
        self._session_of = memory.session_of
        self._keys = list(self._session_of)
        self._conn = sqlite3.connect(":memory:")
        self._conn.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize=porter)")
        texts = [turn.text for session in memory.sessions for turn in session.turns]
        self._conn.executemany("INSERT INTO said(text) VALUES(?)", [(text,) for text in texts])

    def find(self, question: str, limit: int) -> tuple[list[str], list[str]]:
        """(turn keys, their sessions), best first."""
        words = _WORD.findall(question)
        if not words:
            return [], []
        wanted = " OR ".join(f'"{word}"' for word in words)
        rows = self._conn.execute(
            "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said) LIMIT ?", (wanted, limit)
        ).fetchall()
        turns = [self._keys[row - 1] for (row,) in rows]
        return turns, [self._session_of[key] for key in turns]

    def close(self) -> None:
        """Forget it."""
        self._conn.close()


class Grep:
    """Words found in lines."""

    def __init__(self, memory: Memory) -> None:
        self._session_of = memory.session_of
        self._texts = [turn.text.lower() for session in memory.sessions for turn in session.turns]
        self._keys: Sequence[str] = list(self._session_of)

    def find(self, question: str, limit: int) -> tuple[list[str], list[str]]:
        """(turn keys, their sessions), best first; the newest of equals, as it comes last."""
        words = {word.lower() for word in _WORD.findall(question) if len(word) > 2}
        ranked = []
        for place, text in enumerate(self._texts):
            there = [word for word in words if word in text]
            if there:
                lines = text.splitlines()
                count = sum(word in line for word in there for line in lines)
                ranked.append((-len(there), -count, -place))
        turns = [self._keys[-place] for _, _, place in sorted(ranked)[:limit]]
        return turns, [self._session_of[key] for key in turns]

    def close(self) -> None:
        """Nothing to end."""
