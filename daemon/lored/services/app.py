"""The house as handlers see it: every service of one daemon, wired by `lored.main`.

Only names and types; building and closing belong to the composition root.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lored.services.operations import Operation, Operations

if TYPE_CHECKING:
    from lore.paths import Paths
    from lored.services.events import Events
    from lored.services.settings import Settings
    from lored.services.workspaces import Workspaces
    from lored.store.registry import Registry


@dataclass(slots=True)
class Call:
    """One request as a handler sees it: who asks and with which defaults."""

    request_id: str
    client: str = "anonymous"
    workspace: str | None = None
    """Default workspace path or id of the connection."""
    session_id: str | None = None
    connection: Any = None
    """For the session namespace (hello, cancel, subscribe, drain), and whose it is."""
    operation: Operation | None = None
    """The long operation that it runs, if it is one."""


@dataclass(slots=True)
class App:
    """All services. Types are those of the service modules."""

    paths: "Paths"
    settings: "Settings"
    registry: "Registry"
    events: "Events"
    workspaces: "Workspaces"
    services: dict[str, Any] = field(default_factory=dict)
    """By name: facts, triage, snapshots, mirror, importing, sessions, indexing, recall, context,
    forget, health, backup, embedding. Use `get`."""
    operations: Operations = field(init=False)

    def __post_init__(self) -> None:
        self.operations = Operations(self.events)

    def get(self, name: str) -> Any:
        """The service ``name``; an error that names it when it is not wired."""
        try:
            return self.services[name]
        except KeyError:
            raise RuntimeError(f"service {name!r} is not wired in lored.main") from None
