"""The behaviours of Remind's own suites, restated for facts (the pure ones are in
`tests/core/test_clusters.py` and `test_triage_language.py`; numbers as there).

Where we depart from them the test says so: facts are the only kind of memory here, tags stand
for topics, clusters for concepts, undecided collisions for unprocessed episodes.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from lore.errors import Conflict, Invalid, NotFound
from support.memory import Memory, open_memory


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with open_memory(tmp_path / "home", folder) as opened:
        yield opened


async def two(memory: Memory) -> tuple[str, str]:
    """Two facts about one thing."""
    one = await memory.remember_fact(text="Cache TTL is 300s", entities=["tool:redis"])
    other = await memory.remember_fact(text="Cache TTL is 600s", entities=["tool:redis"])
    return one["fact"]["id"], other["fact"]["id"]


async def test_a_first_fact_opens_a_cluster_about_its_entities(memory: Memory) -> None:
    answer = await memory.remember_fact(  # B11, B12, B13, B17
        text="Primary in eu-1", entities=["tool:Redis", "concept:Caching"]
    )
    assert answer["created"] and answer["cluster"]["created"]
    assert "redis" in answer["cluster"]["title"].lower()
    assert "caching" in answer["cluster"]["title"].lower()
    assert answer["fact"]["text"] == "Primary in eu-1"
    assert answer["fact"]["entities"] == ["tool:Redis", "concept:Caching"]
    assert answer["collisions"] == []
    shown = (await memory.clusters(id=answer["cluster"]["id"]))["clusters"][0]
    assert shown["type"] == "fact_cluster"
    assert {name.lower() for name in shown["entities"]} == {"tool:redis", "concept:caching"}


async def test_the_second_fact_about_it_joins_and_collides(memory: Memory) -> None:
    one = await memory.remember_fact(text="Cache TTL is 300s", entities=["tool:redis"])
    answer = await memory.remember_fact(  # B14, B18, B19, B21
        text="Cache TTL is 600s",
        entities=["tool:redis"],
        asserted_by="alice",
        source_ref="https://github.com/org/repo/pull/42",
    )
    assert not answer["cluster"]["created"]
    assert answer["cluster"]["id"] == one["cluster"]["id"]
    assert [item["fact"]["text"] for item in answer["collisions"]] == ["Cache TTL is 300s"]
    assert answer["fact"]["asserted_by"] == "alice"
    assert answer["fact"]["source_ref"] == "https://github.com/org/repo/pull/42"


async def test_another_entity_in_the_cluster_does_not_collide(memory: Memory) -> None:  # B15
    await memory.remember_fact(text="a", entities=["t:a", "t:b"])
    one = await memory.remember_fact(text="b", entities=["t:a"])
    other = await memory.remember_fact(text="c", entities=["t:b"])
    assert one["cluster"]["id"] == other["cluster"]["id"]
    assert [item["fact"]["text"] for item in other["collisions"]] == ["a"]


async def test_a_collision_leaves_something_undecided(memory: Memory) -> None:  # B20, B47, B60
    assert (await memory.snapshot(scopes=["pending"]))["pending"] == {
        "count": 0,
        "facts": [],
        "entities": [],
    }
    _, second = await two(memory)
    pending = (await memory.snapshot(scopes=["pending"]))["pending"]
    assert pending["count"] == 1
    assert pending["facts"][0]["fact"]["id"] == second
    assert pending["entities"] == ["tool:redis"]
    await memory.apply_text(f"processed ids={second}")
    assert (await memory.snapshot(scopes=["pending"]))["pending"]["count"] == 0


async def test_a_pair_that_is_undecided_is_listed_once(memory: Memory) -> None:
    for text in ("ttl is 100", "ttl is 200", "ttl is 300"):
        await memory.remember_fact(text=text, entities=["tool:redis"])
    pending = (await memory.snapshot(scopes=["pending"]))["pending"]
    pairs = {
        (item["fact"]["text"], other["fact"]["text"])
        for item in pending["facts"]
        for other in item["collisions"]
    }
    assert pending["count"] == 2
    assert pairs == {
        ("ttl is 300", "ttl is 200"),
        ("ttl is 300", "ttl is 100"),
        ("ttl is 200", "ttl is 100"),
    }


async def test_topics_are_tags(memory: Memory) -> None:  # B46, B67: a departure
    with pytest.raises(Invalid, match="facts, tags and entities"):
        await memory.apply_text('topic "Architecture Decisions"')
    await memory.remember_fact(text="We use SQLite", tags=["Architecture Decisions"])
    view = (await memory.snapshot(scopes=["topic:architecture-decisions"]))[
        "topic:architecture-decisions"
    ]
    assert (view["name"], view["fact_count"]) == ("Architecture Decisions", 1)


async def test_a_dry_run_changes_nothing(memory: Memory) -> None:  # B48
    answer = await memory.apply_text('remember e=tool:a "x"', dry_run=True)
    assert (answer["success"], answer["ops_executed"]) == (True, 1)
    answer = await memory.apply_text('remember e=tool:a "x"', 'remember e=tool:a "y"', dry_run=True)
    assert answer["ops_executed"] == 2
    assert answer["results"][1]["collision_count"] == 1
    assert (await memory.facts())["total"] == 0
    assert (await memory.log())["entries"] == []


async def test_resolving_keeps_the_winner(memory: Memory) -> None:  # B49, B51
    one, other = await two(memory)
    await memory.apply_text(f"conflict fact_a={one} fact_b={other} severity=high")
    await memory.apply_text(f'resolve id=conflict:1 winner={other} "measured"')
    found = (await memory.conflicts(status="resolved"))["conflicts"][0]
    assert (found["winner"], found["resolution"]) == (other, "measured")
    assert not found["fact_a"]["active"] and found["fact_b"]["active"]
    with pytest.raises(Conflict, match="not open"):
        await memory.apply_text(f"resolve id=conflict:1 winner={other}")


async def test_dismissing_keeps_both(memory: Memory) -> None:  # B50
    one, other = await two(memory)
    await memory.apply_text(f"conflict a={one} b={other}", "dismiss id=1")
    found = (await memory.conflicts(status="dismissed"))["conflicts"][0]
    assert found["fact_a"]["active"] and found["fact_b"]["active"]
    with pytest.raises(Conflict, match="not open"):
        await memory.apply_text("dismiss id=conflict:1")


async def test_a_failing_operation_undoes_the_batch(memory: Memory) -> None:  # B52
    with pytest.raises(NotFound) as caught:
        await memory.apply(
            ops=[
                {"op": "remember", "content": "x"},
                {"op": "forget", "id": "F99"},
                {"op": "remember", "content": "y"},
            ]
        )
    error = caught.value.data["errors"][0]  # type: ignore[index]
    assert (error["index"], error["op"]) == (1, "forget")
    assert (await memory.facts(include_superseded=True))["total"] == 0


async def test_delete_hides_and_restore_brings_back(memory: Memory) -> None:  # B53
    one, _ = await two(memory)
    await memory.apply_text(f"delete id={one}")
    assert one not in [fact["id"] for fact in (await memory.facts())["facts"]]
    await memory.apply_text(f"restore id={one}")
    assert one in [fact["id"] for fact in (await memory.facts())["facts"]]


async def test_views_and_their_values(memory: Memory) -> None:  # B54, B55, B56, B68, B69
    await two(memory)
    scopes = [
        "pending", "conflicts", "stats", "entity:tool:redis", "recent:10", "query:cache ttl",
        "concept:C1", "no such view",
    ]  # fmt: skip
    answer = await memory.snapshot(scopes=scopes)
    assert answer["scopes"] == scopes
    assert answer["timestamp"].endswith("Z")
    assert all(scope in answer for scope in scopes[:-1])
    assert answer["query:cache ttl"]["count"] == 2
    assert "unknown scope" in answer["error:no such view"]["error"]


async def test_a_fact_in_wire_form(memory: Memory) -> None:  # B57, B58, B59
    answer = await memory.remember_fact(text="x", entities=["t:a"], asserted_by="bob")
    fact = answer["fact"]
    assert fact["active"] and fact["asserted_by"] == "bob"
    assert fact["cluster"] == answer["cluster"]["id"] == "C1"
    for key in ("id", "scope", "uid", "kind", "created_at", "valid_from", "access_count"):
        assert key in fact
    assert None not in fact.values()


async def test_the_conflicts_view(memory: Memory) -> None:  # B61
    assert (await memory.snapshot(scopes=["conflicts"]))["conflicts"]["count"] == 0
    one, other = await two(memory)
    await memory.apply_text(f"conflict a={one} b={other}")
    view = (await memory.snapshot(scopes=["conflicts"]))["conflicts"]
    assert view["count"] == 1
    assert view["conflicts"][0]["fact_a"]["text"] == "Cache TTL is 300s"


@pytest.mark.parametrize(
    "scope",
    ["entity:tool:none", "concept:C99", "topic:none", "recent:no", "conflicts:odd", "entity:",
     "cluster:banana", "query:"],
)  # fmt: skip
async def test_what_is_not_there_is_an_entry(memory: Memory, scope: str) -> None:  # B62
    assert "error" in (await memory.snapshot(scopes=[scope]))[scope]


async def test_the_entity_view(memory: Memory) -> None:  # B63
    await memory.remember_fact(text="x", entities=["Tool:Redis"])
    for scope in ("entity:tool:redis", "entity:Redis"):
        view = (await memory.snapshot(scopes=[scope]))[scope]
        assert view["entities"][0]["id"] == "tool:redis"
        assert view["fact_count"] == len(view["facts"]) == 1


async def test_the_cluster_view(memory: Memory) -> None:  # B64
    one, other = await two(memory)
    await memory.apply_text(f"supersede old={one} new={other}")
    view = (await memory.snapshot(scopes=["concept:C1"]))["concept:C1"]
    assert view["title"]
    assert [fact["id"] for fact in view["active_facts"]] == [other]
    assert [fact["id"] for fact in view["superseded_facts"]] == [one]


async def test_the_recent_view(memory: Memory) -> None:  # B65
    for number in range(15):
        await memory.remember_fact(text=f"fact {number}")
    for count in (10, 5):
        view = (await memory.snapshot(scopes=[f"recent:{count}"]))[f"recent:{count}"]
        assert view["count"] == count
    assert view["facts"][0]["text"] == "fact 14"


async def test_the_stats_view_has_true_counts(memory: Memory) -> None:  # B66
    stats = (await memory.snapshot(scopes=["stats"]))["stats"]
    assert not any(stats[key] for key in ("facts", "superseded", "open_conflicts", "pending"))
    one, other = await two(memory)
    for number in range(23):
        await memory.remember_fact(text=f"d{number}", kind="decision", entities=["t:x"])
    await memory.apply_text(f"conflict a={one} b={other}")
    stats = (await memory.snapshot(scopes=["stats"]))["stats"]
    assert stats["facts"] == 25
    assert stats["kind_decision"] == 23
    assert stats["open_conflicts"] == 1
    assert stats["pending"] == 22  # all but the first decision; the pair is flagged
    assert (await memory.snapshot(scopes=["pending"]))["pending"]["count"] == 22


async def test_printed_commands_work_as_printed(memory: Memory) -> None:
    one, other = await two(memory)
    answer = await memory.remember_fact(text="Cache TTL is 900s", entities=["tool:redis"])
    third = answer["fact"]["id"]
    commands = {item["fact"]["id"]: item["commands"] for item in answer["collisions"]}
    await memory.apply_text(commands[one][0])
    await memory.apply_text(commands[other][1])
    found = (await memory.facts())["facts"]
    assert [fact["id"] for fact in found] == [third, other]
    assert all(fact["conflicts"] == ["conflict:1"] for fact in found)
    text = (await memory.snapshot(scopes=["conflicts"], format="text"))["text"]
    line = next(line for line in text.splitlines() if line.strip().startswith("resolve "))
    await memory.apply_text(line)
    assert (await memory.facts())["total"] == 1


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("supersede old=F1 new=F1", Conflict, "itself"),
        ("supersede old=F1 new=F99", NotFound, "no fact F99"),
        ("supersede old=fact:abc new=F1", Invalid, "is not the id"),
        ("conflict a=F1 b=F2 severity=banana", Invalid, "low, medium or high"),
        ("conflict a=F1 b=F1", Conflict, "itself"),
        ("resolve id=conflict:99 winner=F1", NotFound, "conflict:99"),
        ("tag id=F1 remove=none", NotFound, "has no none"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    memory: Memory, line: str, kind: type[Exception], message: str
) -> None:
    await two(memory)
    before = await memory.facts(include_superseded=True)
    with pytest.raises(kind, match=message) as caught:
        await memory.apply_text("# first", line)
    assert "line 2" in str(caught.value)
    assert await memory.facts(include_superseded=True) == before


async def test_a_winner_from_outside_and_a_circle_are_refused(memory: Memory) -> None:
    one, other = await two(memory)
    third = (await memory.remember_fact(text="port is 1", entities=["t:x"]))["fact"]["id"]
    await memory.apply_text(f"conflict a={one} b={other}")
    with pytest.raises(Conflict, match="no side"):
        await memory.apply_text(f"resolve id=1 winner={third}")
    await memory.apply_text(f"supersede old={one} new={other}")
    with pytest.raises(Conflict, match=f"superseded already by {other}"):
        await memory.apply_text(f"supersede old={other} new={one}")
    with pytest.raises(Conflict, match="superseded already"):
        await memory.apply_text(f"supersede old={one} new={third}")


async def test_superseding_resolves_the_open_conflict_of_the_pair(memory: Memory) -> None:
    one, other = await two(memory)
    await memory.apply_text(f"conflict a={one} b={other}", f"supersede old={one} new={other}")
    assert (await memory.conflicts())["conflicts"] == []
    assert (await memory.conflicts(status="resolved"))["conflicts"][0]["winner"] == other


async def test_facts_with_equal_entities_in_two_clusters_collide(memory: Memory) -> None:
    """Remind misses these (research): P joins {a}, then {a,s,p} opens a nearer cluster, Q joins
    that one, and P and Q contradict each other unseen."""
    await memory.remember_fact(text="0", entities=["t:a"])
    p = await memory.remember_fact(text="P", entities=["t:a", "t:s"])
    await memory.remember_fact(text="wide", entities=["t:a", "t:s", "t:p"])
    q = await memory.remember_fact(text="Q", entities=["t:s", "t:a"])
    assert p["cluster"]["id"] != q["cluster"]["id"]
    found = {item["fact"]["text"]: item for item in q["collisions"]}
    assert found["P"]["similarity"] == 1.0
    assert "another cluster" in found["P"]["why"]


async def test_names_bind_ids_within_a_batch(memory: Memory) -> None:
    await two(memory)
    answer = await memory.apply_text(
        'remember e=tool:redis as=new by=alice "Cache TTL is 900s"',
        "supersede old=F1 new=$new",
        'conflict a=F2 b=$new as=c "which is it"',
        "resolve id=$c winner=$new",
    )
    assert answer["ids"] == {"new": "F3", "c": "conflict:1"}
    assert [fact["id"] for fact in (await memory.facts())["facts"]] == ["F3"]
    assert (await memory.log())["entries"][0]["batch"] == answer["batch"]
