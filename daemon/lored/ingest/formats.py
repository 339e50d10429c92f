"""Formats beyond our own: installed packages and mappings of the configuration, registered the
same way in daemon and worker."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from lored.core.transcripts import register, register_entry_points, unregister
from lored.core.transcripts.generic import Generic

_registered: list[str] = []
_mappings: list[Any] = []


@cache
def register_packages() -> dict[str, str]:
    """`register_entry_points`, once a process: a second time every name would be taken."""
    return register_entry_points()


def register_all(mappings: Iterable[Any]) -> dict[str, str]:
    """Register formats of packages and of ``mappings`` (`sources.custom`); again with other
    mappings replaces those. Returns name -> why a format cannot be used."""
    problems = dict(register_packages())
    wanted = list(mappings)
    if wanted == _mappings:
        return problems
    for name in _registered:
        unregister(name)
    _registered.clear()
    _mappings[:] = wanted
    for index, mapping in enumerate(wanted):
        name = f"sources.custom {index + 1}"
        try:
            if not isinstance(mapping, dict):
                raise ValueError("must be a table")
            parser = Generic(mapping)
        except ValueError as error:
            problems[name] = str(error)
            continue
        if register(parser.agent, parser, parser.places):
            _registered.append(parser.agent)
        else:
            problems[name] = f"{parser.agent} is the name of another format"
    return problems
