"""Facts through real daemons: many processes at once, kill -9, an editor, transcripts."""

import json
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.claude import said, session_id, session_path
from support.daemon import RunningDaemon, start_daemon
from support.wire import RawClient, Refusal

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from support.wire import RawClient
client = RawClient(sys.argv[2])
client.hello()
for number in range(25):
    answer = client.call(
        "remember_fact", text=f"fact {number} of {sys.argv[3]}",
        entities=[f"tool:t{number % 5}"], scope="global",
    )
    print(answer["fact"]["id"], flush=True)
"""


def test_eight_processes_lose_nothing_and_make_no_cluster_twice(home: Path) -> None:
    tests = str(Path(__file__).parents[1])
    with start_daemon(home) as daemon:
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, tests, daemon.socket, str(n)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(8)
        ]
        names = [line for one in writers for line in one.communicate(timeout=90)[0].split()]
        assert all(one.returncode == 0 for one in writers)
        assert len(names) == len(set(names)) == 200
        with daemon.connect() as client:
            client.hello()
            assert client.call("facts", limit=1)["total"] == 200
            clusters = client.call("clusters", limit=200)["clusters"]
            assert sorted(one["active_count"] for one in clusters) == [40] * 5


def test_what_was_acknowledged_survives_kill(home: Path) -> None:
    names = []
    with start_daemon(home, may_be_dead=True) as daemon, daemon.connect() as client:
        client.hello()
        for number in range(40):
            answer = client.call(
                "remember_fact", text=f"fact {number}", entities=["tool:x"], scope="global"
            )
            names.append((answer["fact"]["id"], answer["collision_count"]))
        daemon.kill()
    assert [count for _, count in names] == list(range(40))
    with start_daemon(home) as daemon, daemon.connect() as client:
        client.hello()
        assert client.call("facts", limit=1)["total"] == 40
        answer = client.call("remember_fact", text="fact 40", entities=["tool:x"], scope="global")
        assert (answer["fact"]["id"], answer["collision_count"]) == ("F41", 40)
        found = client.call("recall_fact", query="fact 7")["facts"]
        assert found[0]["text"] == "fact 7"


def test_another_client_hears_and_catches_up(daemon: RunningDaemon, client: RawClient) -> None:
    with daemon.connect() as other:
        other.hello()
        other.call("subscribe", topics=["facts", "conflicts"])
        start = client.call("remember_fact", text="TTL is 300s", entities=["tool:redis"])
        client.call("remember_fact", text="TTL is 600s", entities=["tool:redis"])
        client.call("apply", ops="conflict a=F1 b=F2")
        while len(other.events) < 3:
            other.read()
        seen = [(event["topic"], event["action"]) for _, event in other.events]
        assert seen == [("facts", "remembered"), ("facts", "remembered"), ("conflicts", "opened")]
        changes = other.call("changes", since=start["revision"])["changes"]
    kinds = {(one["kind"], one["op"]) for one in changes}
    assert ("fact", "conflict") in kinds and ("conflict", "conflict") in kinds


BAD: tuple[tuple[str, dict[str, object], str], ...] = (
    ("remember_fact", {"text": ""}, "invalid"),
    ("remember_fact", {"text": "x" * 70_000}, "limit"),
    ("remember_fact", {"text": "x", "scope": "gobal"}, "invalid"),
    ("remember_fact", {"text": "x", "workspace": "/does/not/exist"}, "invalid"),
    ("remember_fact", {"text": "x", "tags": [1]}, "invalid"),
    ("remember_fact", {"text": "x", "colour": "red"}, "invalid"),
    ("remember_fact", {"txt": "x"}, "invalid"),
    ("remember", {"content": "x", "episode_type": "banana"}, "invalid"),
    ("fact", {"id": "F99"}, "not_found"),
    ("fact", {"id": "banana"}, "invalid"),
    ("update_fact", {"id": "F99", "text": "x"}, "not_found"),
    ("apply", {"ops": "supersede old=F1"}, "invalid"),
    ("apply", {"ops": [["x"]]}, "invalid"),
    ("snapshot", {"scopes": []}, "invalid"),
    ("recall_fact", {"query": "x", "limit": 0}, "invalid"),
    ("recall_fact", {"query": "x", "as_of": "whenever"}, "invalid"),
    ("undo", {}, "not_found"),
    ("log", {"id": "F99"}, "not_found"),
    ("clusters", {"id": "C99"}, "not_found"),
    ("entities", {"merge": ["a"]}, "invalid"),
    ("changes", {"since": "?"}, "invalid"),
    ("forget_fact", {"id": "F1", "hard": True}, "not_found"),
)


def test_bad_input_is_named_and_changes_nothing(client: RawClient) -> None:
    for method, params, code in BAD:
        with pytest.raises(Refusal) as caught:
            client.call(method, **params)
        assert caught.value.code == code, (method, params, caught.value)
        assert client.call("facts", include_superseded=True)["total"] == 0


@pytest.mark.skipif(shutil.which("nvim") is None, reason="nvim is not installed")
def test_an_editor_without_any_plugin(daemon: RunningDaemon, home: Path) -> None:
    """Neovim's own RPC calls: state, recall, and read an error."""
    script = home / "script.vim"
    script.write_text(
        f"""
let c = sockconnect('pipe', '{daemon.socket}', {{'rpc': v:true}})
let r = rpcrequest(c, 'remember_fact', {{'text': 'TTL is 300s', 'entities': ['tool:redis']}})
let f = rpcrequest(c, 'recall_fact', {{'query': 'ttl'}})
let said = [r.fact.id, f.facts[0].text]
try
  call rpcrequest(c, 'fact', {{'id': 'F99'}})
catch
  call add(said, v:exception)
endtry
call writefile(said, '{home}/said')
qall!
"""
    )
    subprocess.run(
        ["nvim", "--clean", "--headless", "-S", str(script)],
        capture_output=True,
        timeout=60,
        check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
    )
    said = (home / "said").read_text()
    assert said.startswith("F1\nTTL is 300s\n")
    assert "not_found: no fact F99" in said


def called(session: str, text: str, number: int, at: str, *entities: str) -> bytes:
    """A line of Claude Code in which the model asks to remember ``text``."""
    item = json.loads(said(session, "Noted.", number, role="assistant"))
    item["timestamp"] = at
    item["message"]["content"].append(
        {
            "type": "tool_use",
            "id": f"toolu_01{number:020d}",
            "name": "mcp__memory__remember_fact",
            "input": {"text": text, "entities": list(entities)},
        }
    )
    return json.dumps(item).encode() + b"\n"


def tied(client: RawClient, name: str) -> dict[str, Any]:
    """The fact, once its session is known."""
    end = time.monotonic() + 60
    while True:
        answer = client.call("fact", id=name)
        if "session_id" in answer["fact"]:
            return answer
        assert time.monotonic() < end, "the fact was not tied to its session"
        time.sleep(0.05)


def test_a_call_in_a_transcript_ties_the_fact_to_its_message(home: Path) -> None:
    """In both orders: the fact first, and the line of the call first."""
    one = session_id(1)
    path = session_path(home / "user", one)
    path.write_bytes(said(one, "Please note how long the cache lives.", 1))
    now = datetime.now(UTC).isoformat()
    with start_daemon(home) as daemon, daemon.connect() as client:
        client.hello()
        client.call("remember_fact", text="Cache TTL is 300s", scope="global")
        with open(path, "ab") as file:
            file.write(called(one, "Cache TTL is 300s", 2, now))
            file.write(called(one, "The port is 6380", 3, now))
        answer = tied(client, "F1")
        assert answer["session"]["id"] == one
        fact = answer["fact"]
        around = client.call("session_messages", id=one, around=fact["message_id"], limit=1)
        assert around["messages"][0]["text"].startswith("Noted.")
        later = client.call("remember_fact", text="The port is 6380", scope="global")
        assert later["fact"]["session_id"] == one
        listed = client.call("session", id=one)["session"]["facts"]
        assert [item["text"] for item in listed] == ["Cache TTL is 300s", "The port is 6380"]


def test_a_session_shows_where_it_says_otherwise_than_memory(home: Path) -> None:
    """Calls of another memory's tools: nothing of ours holds what they state."""
    one, early = session_id(1), "2026-05-01T00:00:00.000Z"
    path = session_path(home / "user", one)
    path.write_bytes(
        called(one, "The cache lives 300 s", 1, early, "tool:redis")
        + called(one, "The queue is called jobs", 2, early)
        + called(one, "nginx listens on 8080", 3, early, "tool:nginx")
        + called(one, "The key is sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY", 4, early)
    )
    with start_daemon(home) as daemon, daemon.connect() as client:
        client.hello()

        def state(text: str, entity: str) -> str:
            answer = client.call("remember_fact", text=text, entities=[entity], scope="global")
            name: str = answer["fact"]["id"]
            return name

        redis = state("The cache lives 600 s", "tool:redis")
        queue = state("Jobs go through the queue of Postgres", "topic:queue")
        state("nginx listens on 8080", "tool:nginx")
        client.call("index_wait")
        session = client.call("session", id=one)["session"]
        said = {item["text"]: item for item in session["statements"]}
        assert list(said) == ["The cache lives 300 s", "The queue is called jobs"]
        against = [[c["fact"]["id"] for c in item["collisions"]] for item in said.values()]
        assert against == [[redis], [queue]]
        assert said["The cache lives 300 s"]["message_id"]
        # Nothing was remembered by looking.
        assert client.call("facts")["total"] == 3
        # The fact that the session did state, and what replaced it since.
        (fact,) = session["facts"]
        client.call("update_fact", id=fact["id"], new_text="nginx listens on 9090")
        (fact,) = client.call("session", id=one)["session"]["facts"]
        assert fact["successor"]["text"] == "nginx listens on 9090"
