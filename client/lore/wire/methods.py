"""The method table: every wire name, its parameters, result and rules. The one home of names.

Pure data: the daemon validates by it; the CLI, the MCP server and `PROTOCOL.md` are made from
it. Parameter types: `text`, `int`, `number`, `bool`, `list` (of text), `date` (ISO 8601 date or
instant, or a phrase such as `yesterday`), `map`, `ops` (text or list of maps), `any`.
"""

from lore.wire.method import Method, Param
from lore.wire.parameters import KINDS, ROLES, SCOPES, SEVERITIES
from lore.wire.tables import care, facts, indexing, session, sessions

__all__ = [
    "BY_NAME",
    "KINDS",
    "METHODS",
    "ROLES",
    "SCOPES",
    "SEVERITIES",
    "Method",
    "Param",
    "is_idempotent",
]

METHODS: "tuple[Method, ...]" = (
    *session.METHODS,
    *facts.METHODS,
    *sessions.METHODS,
    *indexing.METHODS,
    *care.METHODS,
)

BY_NAME: "dict[str, Method]" = {m.name: m for m in METHODS}
for _m in METHODS:
    for _alias in _m.aliases:
        BY_NAME[_alias] = _m


def is_idempotent(name: str) -> bool:
    """Whether `name` may be sent twice; an unknown method may not."""
    method = BY_NAME.get(name)
    return method is not None and method.idempotent
