"""Every method of the wire and the function that answers it, one module a namespace."""

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


def _merge() -> dict[str, Handler]:
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


HANDLERS = _merge()
