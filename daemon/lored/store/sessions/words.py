"""The words of one batch on their way into the text index.

They are written at the end of the batch: only then it is known what a tool's output is the
output of, which stands before it (`core.outputs`). Functions take the connection of the
running transaction.
"""

from collections.abc import Callable

from lored.core.outputs import after_deed
from lored.store.driver import Connection
from lored.store.search import text


class Words:
    """Collects what the index gets; the last word on a message counts."""

    def __init__(self) -> None:
        self._forms: dict[int, tuple[str, str]] = {}
        self._deeds: dict[int, bytes] = {}

    def put(self, message: int, words: str, context: str) -> None:
        """Index a message (row id) by its index form and its context form."""
        self._forms[message] = (words, context)

    def drop(self, conn: Connection, message: int) -> None:
        """Take a message out of the index."""
        self._forms.pop(message, None)
        text.remove_messages(conn, [message])

    def after(self, message: int, action: bytes) -> None:
        """Say which action (key) the message is the output of."""
        self._deeds[message] = action

    def save(self, conn: Connection, deed: Callable[[bytes], str]) -> None:
        """Write all of it; the messages have rows by now. ``deed``: the line of an action."""
        rows = []
        for number, (words, context) in self._forms.items():
            action = self._deeds.get(number)
            if action is not None:
                words = after_deed(deed(action), words)
            rows.append((number, words, context))
        if rows:
            text.index_messages(conn, rows)
