"""Long lists in portions that one SQL statement takes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 500
"""Values bound to one statement: far below SQLite's bound (32,766), and prepared once."""


def portions(values: Iterable[T]) -> Iterator[list[T]]:
    """``values`` in lists of at most `AT_ONCE`, in their order."""
    rest = iter(values)
    while part := list(islice(rest, AT_ONCE)):
        yield part
