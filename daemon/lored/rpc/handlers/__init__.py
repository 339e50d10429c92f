"""Every method of the wire and the function that answers it, one module a namespace.

Loading them all loads most of the daemon: so it is a function, and the conversation itself
(session.py) can be had before.
"""

import importlib

from lored.rpc.dispatch import Handler

_NAMESPACES = (
    "session",
    "care",
    "upkeep",
    "workspaces",
    "facts",
    "triage",
    "sessions",
    "indexing",
    "recall",
    "context",
    "portability",
)


def load() -> dict[str, Handler]:
    """Method name -> handler. Raises `RuntimeError` for a method with two."""
    merged: dict[str, Handler] = {}
    for name in _NAMESPACES:
        try:
            found = importlib.import_module(f"{__name__}.{name}").HANDLERS
        except ImportError:
            continue
        for method, handler in found.items():
            if method in merged:
                raise RuntimeError(f"two handlers for {method}")
            merged[method] = handler
    return merged
