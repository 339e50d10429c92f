"""Why a list or a search of sessions found nothing: what narrowed it, what others hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lore.cli.arguments import AGENT_NAMES
from lore.cli.invocation import Invocation
from lore.cli.render import counted


def narrowed(inv: Invocation, names: tuple[str, ...]) -> str:
    """` with --since --agent`: those of the options ``names`` that were given."""
    flags = [f"--{name.replace('_', '-')}" for name in names if getattr(inv.options, name)]
    return f" with {' '.join(flags)}" if flags else ""


def elsewhere(
    inv: Invocation, said: str, names: tuple[str, ...], count: Callable[[dict[str, Any]], int]
) -> str:
    """``said`` and what to try: the agents there are, or the other workspaces. ``count`` tells
    how many sessions of all workspaces the same options find."""
    o = inv.options
    if o.agent and o.agent not in AGENT_NAMES:
        return f"{said}; agents are {', '.join(AGENT_NAMES)}"
    if o.everywhere or o.direct:
        return said
    found = count({name: getattr(o, name) or None for name in names})
    if not found:
        return f"{said} here or in another workspace"
    return f"{said} in this workspace; --everywhere finds {counted(found, 'session')} of others"
