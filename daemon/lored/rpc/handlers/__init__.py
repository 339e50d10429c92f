"""Every method of the wire and the function that answers it, one module a namespace.

Loading them all loads most of the daemon: so it is a function, and the conversation itself
(session.py) can be had before.
"""

from lored.rpc.dispatch import Handler


def load() -> dict[str, Handler]:
    """Method name -> handler. Raises `RuntimeError` for a method with two."""
    from lored.rpc.handlers import (
        care,
        context,
        facts,
        indexing,
        portability,
        recall,
        session,
        sessions,
        triage,
        upkeep,
        workspaces,
    )

    merged: dict[str, Handler] = {}
    for namespace in (
        session,
        care,
        upkeep,
        workspaces,
        facts,
        triage,
        sessions,
        indexing,
        recall,
        context,
        portability,
    ):
        for method, handler in namespace.HANDLERS.items():
            if method in merged:
                raise RuntimeError(f"two handlers for {method}")
            merged[method] = handler
    return merged
