"""Other memories into a real daemon, and ours out and in again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore import Client, errors
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="module")
def shared() -> Iterator[RunningDaemon]:
    made = make_home()
    try:
        with start_daemon(made, {"LORE_MIRROR_ENABLED": "0"}) as running:
            yield running
    finally:
        remove_home(made)


@pytest.fixture
def client(shared: RunningDaemon, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A connection whose workspace is fresh for each test."""
    folder = shared.home / "user" / str(abs(hash(request.node.name)))
    folder.mkdir()
    with Client(where=shared.paths, workspace=str(folder), start=False, timeout=60) as connected:
        yield connected


def bring(client: Client, path: Path, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.call("import", {"path": str(path), **more})
    return found


@pytest.mark.parametrize("name", ["remind-0.12.db", "remind-0.14"])
def test_remind(client: Client, name: str) -> None:
    done = bring(client, DATA / "remind" / name)
    assert done["format"] == "remind" and done["created"] == 6 and done["conflicts"] == 1
    facts = client.facts(scope="workspace", include_superseded=True)["facts"]
    by_text = {fact["text"]: fact for fact in facts}
    ttl = by_text["Cache TTL is 300s"]
    assert ttl["entities"] == ["tool:redis"] and ttl["asserted_by"] == "alice"
    assert ttl["source_ref"] == "https://example.org/pull/42"
    assert by_text["We decided to use uvloop"]["kind"] == "decision"
    assert by_text["saw a timeout today"]["kind"] == "observation"
    (conflict,) = client.conflicts(status="open", scope="workspace")["conflicts"]
    assert conflict["severity"] == "high" and conflict["note"] == "which one"
    assert {conflict["fact_a"]["text"], conflict["fact_b"]["text"]} == {
        "API rate limit is 100 req/s",
        "API rate limit is 200 req/s",
    }
    if name == "remind-0.12.db":
        assert ttl["superseded_by"] == by_text["Cache TTL is 600s"]["id"]
        assert ttl["valid_to"] == by_text["Cache TTL is 600s"]["valid_from"]
    again = bring(client, DATA / "remind" / name)
    assert again["created"] == 0 and again["already_there"] == 7


def test_a_dry_run_tells_the_same_and_keeps_nothing(client: Client) -> None:
    path = DATA / "recursive" / "facts-supersede-chain.jsonl"
    told = bring(client, path, dry_run=True)
    assert told["dry_run"] and client.facts(scope="workspace")["total"] == 0
    done = bring(client, path)
    assert (done["created"], done["collision_count"]) == (7, told["collision_count"])
    pairs = {
        frozenset((one["fact"]["text"][:12], other["fact"]["text"][:12]))
        for one in done["collisions"]
        for other in one["collisions"]
    }
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    text = {line["id"]: line["text"][:12] for line in lines}
    assert frozenset((text["F2"], text["F5"])) in pairs
    assert frozenset((text["F9"], text["F12"])) in pairs


def test_numbers_that_are_free_are_kept(client: Client, tmp_path: Path) -> None:
    """Texts and people refer to them (`see F7`)."""
    path = DATA / "recursive" / "facts-supersede-chain.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    taken = client.remember_fact(text="ours came first")["fact"]["id"]
    assert taken == "F1"
    bring(client, path)
    facts = client.facts(scope="workspace", include_superseded=True)["facts"]
    ids = {fact["text"]: fact["id"] for fact in facts}
    assert ids.pop("ours came first") == "F1"
    assert ids == {line["text"]: line["id"] for line in lines}
    other = tmp_path / "facts.jsonl"
    other.write_text(json.dumps({**lines[0], "text": "the same number, another fact"}) + "\n")
    bring(client, other)
    assert client.fact(id="F13")["fact"]["text"] == "the same number, another fact"


def test_many_sayings_of_one_text_keep_within_the_bound_of_labels(
    client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "memories"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02}.md").write_text(f"# a{number}\n\n## b{number}\n\nAlways so.\n")
    done = bring(client, folder)
    assert done["created"] == 1 and done["merged"] == 24
    assert len(done["problems"]) == 15 and "a fact may have 50" in done["problems"][0]
    (fact,) = client.facts(scope="workspace")["facts"]
    assert len(fact["tags"]) == 50


def test_markdown(client: Client, tmp_path: Path) -> None:
    client.remember_fact(text="Deploys go through Argo", tags=["deploys"])
    client.remember_fact(text="The cache lives for 300s", entities=["tool:redis"])
    memory = tmp_path / "CLAUDE.md"
    memory.write_text(
        "---\nname: x\n---\n# Project\n\nUse tabs.\n\n## Deploys\n- Deploy by hand\n"
        "  on Fridays\n- [ ] never on Monday\n- Redis keeps for 600s\n\n```sh\nmake\n```\n"
    )
    done = bring(client, memory)
    assert done["format"] == "markdown"
    facts = {fact["text"]: fact for fact in client.facts(scope="workspace")["facts"]}
    assert "Deploy by hand\non Fridays" in facts and "never on Monday" in facts
    assert facts["Use tabs."]["tags"] == ["project"]
    assert facts["never on Monday"]["tags"] == ["project", "deploys"]
    assert facts["Use tabs."]["source_ref"] == f"file:{memory}"
    assert not any("make" in text for text in facts)
    assert facts["Redis keeps for 600s"]["entities"] == ["tool:redis"], "a name known here"
    against = {
        (one["fact"]["text"], other["fact"]["text"])
        for one in done["collisions"]
        for other in one["collisions"]
    }
    assert ("Redis keeps for 600s", "The cache lives for 300s") in against
    assert ("never on Monday", "Deploys go through Argo") in against, "half of the tags"
    theirs = {text for text in facts if facts[text].get("source") == "markdown"}
    assert not [pair for pair in against if theirs.issuperset(pair)], "one document"
    pending = client.snapshot(scopes=["pending"])["pending"]
    assert pending["count"] == done["collision_count"] == len(done["collisions"])


def test_export_comes_back_whole(client: Client, shared: RunningDaemon, tmp_path: Path) -> None:
    first = client.remember_fact(
        text="one", entities=["tool:a"], tags=["x"], valid_from="2024-01-01"
    )
    client.update_fact(id="workspace:" + first["fact"]["id"], text="two")
    client.remember_fact(text="three", kind="decision", asserted_by="bob")
    text, after = "", None
    while True:
        page = client.export(scope="workspace", **({"after": after} if after else {}))
        text += page["text"]
        after = page.get("next")
        if after is None:
            break
    saved = tmp_path / "export.jsonl"
    saved.write_text(text)
    other = shared.home / "user" / "elsewhere"
    other.mkdir()
    with Client(where=shared.paths, workspace=str(other), start=False) as there:
        assert bring(there, saved)["created"] == 3
        kept = (
            "text",
            "entities",
            "tags",
            "kind",
            "asserted_by",
            "valid_from",
            "valid_to",
            "state",
        )
        want = client.facts(scope="workspace", include_superseded=True)["facts"]
        have = there.facts(scope="workspace", include_superseded=True)["facts"]
        assert [{k: f.get(k) for k in kept} for f in have] == [
            {k: f.get(k) for k in kept} for f in want
        ]
    shown = client.export(scope="workspace", format="markdown")["text"]
    assert "two" in shown and "one" not in shown.replace("# One", "")


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("empty.md", b"", None),
        ("not.db", b"SQLite format 3\0 but torn", errors.Invalid),
        ("x.jsonl", b"\xff\xfe\n[1]\n{torn\n", errors.Invalid),
        ("notes.txt", b"first\nsecond\n", errors.Invalid),
    ],
)
def test_bad_input(
    client: Client, tmp_path: Path, name: str, data: bytes, error: type[Exception] | None
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    if error is None:
        assert bring(client, path)["created"] == 0
    else:
        with pytest.raises(error, match=re.escape(name)):
            bring(client, path)
    with pytest.raises(errors.NotFound, match="nowhere"):
        bring(client, tmp_path / "nowhere")
    with pytest.raises(errors.Invalid, match="absolute"):
        client.call("import", {"path": "relative"})


def test_two_lines_with_one_id_are_two_facts(client: Client, tmp_path: Path) -> None:
    both = tmp_path / "facts.jsonl"
    parts = [DATA / "recursive" / f"facts-id-collision-branch-{name}.jsonl" for name in "ab"]
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    done = bring(client, both)
    assert done["created"] == 2 and any("twice" in one for one in done["problems"])
    assert client.facts(scope="workspace", include_superseded=True)["total"] == 2
