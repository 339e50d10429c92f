"""`lore`: the thin client of the memory daemon `lored`.

`Client` (blocking) and the errors are loaded on first use, so that `import lore` costs
nothing in a shim. The asyncio client is `lore.aio.Client`.
"""

TYPE_CHECKING = False  # not from typing: that import costs as much as a whole call

__version__ = "0.2.0"

if TYPE_CHECKING:
    from lore.client import Client as Client
    from lore.errors import LoreError as LoreError

__all__ = ["Client", "LoreError", "__version__"]


def __getattr__(name: str) -> object:
    if name == "Client":
        from lore.client import Client

        return Client
    if name == "LoreError":
        from lore.errors import LoreError

        return LoreError
    raise AttributeError(f"module 'lore' has no attribute {name!r}")
