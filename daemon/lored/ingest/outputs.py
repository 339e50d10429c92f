"""What the index is given of a tool's output."""

from typing import Final

from lored.core.tokens import clean, index_form

TOOL_INDEXED_CHARS: Final = 2_000
"""Of a tool's output, how much is indexed: outputs are most of the bytes, and all of their
words would be a third of the disk bar."""


def output_form(text: str) -> str:
    """The words that the index is given for a tool's output: of its beginning and its end, and
    without the parts of camelCase words, of which code is full."""
    if len(text) > TOOL_INDEXED_CHARS:
        half = TOOL_INDEXED_CHARS // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return clean(text) if text.isascii() else index_form(text)
