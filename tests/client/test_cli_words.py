"""What people read: folders and not ids, what there was and not what there was not."""

import json
from pathlib import Path

import pytest

from support.cli import Lore
from support.daemon import RunningDaemon


@pytest.fixture
def place(daemon: RunningDaemon, home: Path) -> Lore:
    """The command in a workspace with a fact."""
    folder = home / "user" / "shop"
    (folder / ".git").mkdir(parents=True)
    lore = Lore(home, folder)
    lore("remember", "the till opens at nine", "-e", "thing:till")
    return lore


def test_a_workspace_is_named_by_its_folder(place: Lore) -> None:
    folder = str(place.cwd)
    name = place.json("workspace")["id"]
    for words in (["verify"], ["maintain"], ["status"], ["doctor"]):
        out = place(*words).out
        assert folder in out and name not in out, words
    refused = place("apply", "supersede old=F1 new=F9", code=3).err
    assert f"no fact F9 in the facts of workspace {folder}" in refused
    assert place("export", "--format", "markdown").out.count(f"# The facts of workspace {folder}")


def test_an_import_says_what_there_was(place: Lore, home: Path) -> None:
    file = home / "facts.jsonl"
    fact = {"id": "F1", "text": "the till opens at ten", "tags": ["thing:till"]}
    file.write_text(json.dumps(fact) + "\n" + "this is no record\n")
    out = place("import", str(file)).out.splitlines()
    assert out[0] == "1 fact read as recursive:", out
    assert out[1] == "  1 taken in", out
    assert out[2].startswith("not taken in: 1") and ": 0" not in "\n".join(out)
    assert out[-1].startswith("lore undo B")


def test_a_proof_is_words_and_figures(place: Lore) -> None:
    out = place("forget", "F1", "--hard").out
    assert "{" not in out and "[" not in out
    assert "removed: " in out and "facts 1" in out
    assert " kB" in out or " MB" in out


def test_counts_of_nothing_say_so(place: Lore) -> None:
    out = place("snapshot", "stats").out
    assert "global: nothing" in out and "workspace: facts 1, " in out
