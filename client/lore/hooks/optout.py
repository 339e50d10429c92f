"""Where hooks keep silent by the environment; by workspace: `lore.ignore`."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def switched_off(env: "Mapping[str, str]") -> bool:
    """Whether the environment says so; a caller that runs an agent for its own purposes sets
    `LORE_OFF=1`, so that the agent's hooks do not feed back."""
    return env.get("LORE_OFF", "") not in ("", "0")
