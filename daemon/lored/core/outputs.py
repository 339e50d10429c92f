"""What is searched of a tool's output: the words of it, after what was done.

An output seldom says what it is the output of: `12 passed` answers "which tests ran" only
beside the command. So the command (else the file, pattern or address) counts as its first
line, in the index and where texts are measured; what is stored and shown stays as it was.
Coding history, tune half: message R@10 79.0 -> 84.0. Pure.
"""

from typing import Final

from lored.core.tokens import clean, index_form

TOOL_INDEXED_CHARS: Final = 2_000
"""Of a tool's output, how much is indexed: outputs are most of the bytes, and all of their
words would be a third of the disk bar."""

DEED_CHARS: Final = 500
"""Of what was done: whole scripts in a command found less (R@10 82.4 against 83.2)."""

FORM: Final = 1
"""Version of what the index holds of an output; a store of another one is brought up to it in
the background (`services.search.reindexing`)."""


def output_form(text: str) -> str:
    """The words that the index is given for a tool's output: of its beginning and its end, and
    without the parts of camelCase words, of which code is full."""
    if len(text) > TOOL_INDEXED_CHARS:
        half = TOOL_INDEXED_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return clean(text) if text.isascii() else index_form(text)


def deed_line(command: str | None, target: str | None) -> str:
    """What an action did, to stand before its output; empty when it is not known."""
    return (command or target or "")[:DEED_CHARS]


def after_deed(deed: str, words: str) -> str:
    """The index form ``words`` of an output, with the words of its ``deed_line`` before it."""
    return f"{index_form(deed)}\n{words}" if deed else words
