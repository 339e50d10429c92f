"""Where the roots of sessions come from."""

from pathlib import Path

from lored.services.indexing.sources import Sources
from lored.services.settings import Settings


def test_only_an_agents_own_variable_says_that_it_is_there(tmp_path: Path) -> None:
    """A root that the environment names and that is missing is a warning; `XDG_DATA_HOME` is set
    on many machines and says nothing about one agent."""
    env = {"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/codex"}
    roots = Sources(str(tmp_path / "sources.json"), Settings(), env, "/home/x").roots()
    origins = {root.spec.path: root.origin for root in roots}
    assert origins["/d/opencode"] == origins["/c/claude"] == "default"
    assert origins["/codex"] == "environment"
