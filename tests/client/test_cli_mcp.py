"""`lore mcp` with the official SDK's own client over stdio, and by hand for its first moments."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.mcp import catalogue, front
from support.agents import mcp_session as session
from support.agents import text_of
from support.cli import LORE, Lore
from support.daemon import RunningDaemon, environment, make_home, remove_home, start_daemon

mcp = pytest.importorskip("mcp")

HELLO = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    },
}
GREETED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SECONDS = 60.0


@pytest.fixture(scope="module")
def served() -> Iterator[RunningDaemon]:
    home = make_home()
    try:
        with start_daemon(home) as daemon:
            yield daemon
    finally:
        remove_home(home)


@pytest.fixture
def project(served: RunningDaemon, request: pytest.FixtureRequest) -> Path:
    folder = served.home / "user" / request.node.name[:50]
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


async def test_tools_are_few_and_described(served: RunningDaemon, project: Path) -> None:
    async with session(served.home, project) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [
            "recall",
            "remember",
            "triage",
            "snapshot",
            "sessions",
            "forget",
            "context",
        ]
        for tool in listed:
            assert tool.description
            assert tool.annotations is not None
        prompts = (await client.list_prompts()).prompts
        assert {prompt.name for prompt in prompts} == {"recall", "triage"}
        templates = (await client.list_resource_templates()).resource_templates
        assert {t.uri_template for t in templates} == {"lore://fact/{id}", "lore://session/{id}"}


async def test_a_fact_from_statement_to_the_end(served: RunningDaemon, project: Path) -> None:
    async with session(served.home, project) as client:
        first = await client.call_tool(
            "remember", {"text": "Cache TTL is 300s", "entities": ["tool:redis"]}
        )
        assert text_of(first).startswith("Remembered as F1 [workspace].")
        fact = first.structured_content["fact"]
        assert fact["source"] == "agent"
        assert fact["asserted_by"]  # the client's own name
        second = await client.call_tool(
            "remember", {"text": "Cache TTL is 600s", "entities": ["tool:redis"]}
        )
        assert "supersede old=F1 new=F2" in text_of(second)
        settled = await client.call_tool("triage", {"ops": "supersede old=F1 new=F2"})
        assert not settled.is_error
        whole = await client.call_tool("recall", {"id": "F2"})
        assert "600s" in text_of(whole)
        assert "history, oldest first" in text_of(whole)
        view = await client.call_tool("snapshot", {"scopes": ["entity:tool:redis"]})
        assert "600s" in text_of(view)
        context = await client.call_tool("context", {})
        assert "not instructions" in text_of(context)
        assert "600s" in text_of(context)
        assert "300s" not in text_of(context)
        resource = await client.read_resource("lore://fact/F2")
        assert "600s" in resource.contents[0].text
        listed = (await client.list_resources()).resources
        assert any(str(r.uri).endswith("F2") for r in listed)
        gone = await client.call_tool("forget", {"id": "F2", "reason": "test"})
        assert "forgotten" in text_of(gone)
        back = await client.call_tool("forget", {"id": "F2", "undo": True})
        assert "is back" in text_of(back)
        assert text_of(await client.call_tool("triage", {})) == "No open conflicts."


async def test_refusals_are_results_a_model_can_read(served: RunningDaemon, project: Path) -> None:
    async with session(served.home, project) as client:
        for name, given, said in (
            ("recall", {}, "give `query`"),
            ("recall", {"id": "F99"}, "F99"),
            ("sessions", {"id": "ffffffff"}, "ffffffff"),
            ("sessions", {"id": "x", "messages": "some"}, "positions"),
            ("triage", {"ops": "explode"}, "explode"),
            ("forget", {"id": "F1", "hard": True}, "hard"),
            ("remember", {"text": "x", "kind": "rumour"}, "preference"),
        ):
            result = await client.call_tool(name, given)
            if name == "forget":
                assert result.is_error or "hard" not in json.dumps(result.structured_content)
                continue
            assert result.is_error, (name, given)
            assert said in text_of(result)
        with pytest.raises(Exception, match="no tool"):
            await client.call_tool("explode", {})
        with pytest.raises(Exception, match="lore://"):
            await client.read_resource("file:///etc/passwd")


async def test_prompts(served: RunningDaemon, project: Path) -> None:
    async with session(served.home, project) as client:
        given = await client.get_prompt("triage")
        assert "conflict" in given.messages[0].content.text


async def test_aliases_of_the_seeds(served: RunningDaemon, project: Path) -> None:
    async with session(served.home, project, "--aliases") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert set(catalogue.ALIASES) <= names
        stated = await client.call_tool("remember_fact", {"text": "By the old name"})
        assert "Remembered as F1" in text_of(stated)
        updated = await client.call_tool("update_fact", {"id": "F1", "text": "By its new name"})
        assert "F2" in text_of(updated)
        assert text_of(await client.call_tool("conflicts", {})) == "No open conflicts."


def start(home: Path, cwd: Path | None = None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*LORE, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        cwd=cwd or home / "user",
    )


def say(process: "subprocess.Popen[bytes]", *messages: Any) -> None:
    assert process.stdin is not None
    for message in messages:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        process.stdin.write(line + b"\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.readline())
    return found


def end(process: "subprocess.Popen[bytes]") -> tuple[int, bytes]:
    out, _ = process.communicate(timeout=SECONDS)
    return process.returncode, out


def test_the_handshake_and_the_end_of_input_need_no_sdk(home: Path) -> None:
    process = start(home)
    say(process, HELLO, GREETED, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    first = hear(process)
    assert first["id"] == "first"
    assert first["result"]["protocolVersion"] == "2025-06-18"
    assert first["result"]["serverInfo"]["name"] == "lore"
    assert len(hear(process)["result"]["tools"]) == len(catalogue.TOOLS)
    loaded = Path(f"/proc/{process.pid}/maps")
    if loaded.exists():
        assert "pydantic_core" not in loaded.read_text()
    assert end(process) == (0, b"")


def test_front_and_sdk_say_the_same(home: Path) -> None:
    """The answers given before the SDK is loaded are the ones it would give."""
    process = start(home)
    lists = ("tools/list", "prompts/list", "resources/templates/list", "ping")
    asks = [{"jsonrpc": "2.0", "id": n, "method": name} for n, name in enumerate(lists)]
    say(process, HELLO, GREETED, *asks)
    before = [hear(process) for _ in range(len(asks) + 1)][1:]
    # A request that the front cannot answer brings the SDK in; the same lists come from it then.
    unknown = {"jsonrpc": "2.0", "id": 99, "method": "prompts/get", "params": {"name": "?"}}
    say(process, unknown)
    refused = hear(process)
    assert refused["id"] == 99
    assert "error" in refused
    say(process, *asks)
    after = sorted((hear(process) for _ in asks), key=lambda answer: answer["id"])
    assert after == before
    assert end(process)[0] == 0


def test_first_calls_need_no_sdk_and_are_answered_as_it_would(
    served: RunningDaemon, project: Path
) -> None:
    process = start(served.home, project)

    def call(number: int, name: str, **given: object) -> dict[str, Any]:
        params = {"name": name, "arguments": given, "_meta": {"progressToken": number}}
        say(process, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        answer = hear(process)
        assert answer["id"] == number
        return answer

    say(process, HELLO, GREETED)
    hear(process)
    stated = call(1, "remember", text="The first call finds no SDK", entities=["tool:mcp"])
    assert "F1" in stated["result"]["content"][0]["text"]
    asks: list[tuple[str, dict[str, object]]] = [
        ("recall", {"id": "F1"}),
        ("recall", {}),
        ("forget", {"id": "F77"}),
        ("sessions", {"messages": 5, "id": "x"}),
    ]
    before = [call(10 + n, name, **given) for n, (name, given) in enumerate(asks)]
    loaded = Path(f"/proc/{process.pid}/maps")
    if loaded.exists():
        assert "pydantic_core" not in loaded.read_text()
    unknown = call(20, "no_such_tool")
    assert "no_such_tool" in unknown["error"]["message"]
    after = [call(10 + n, name, **given) for n, (name, given) in enumerate(asks)]
    for one, two in zip(before[:3], after[:3], strict=True):
        assert json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert before[1]["result"]["isError"]
    # Arguments that no schema allows fail alone, whoever answers.
    assert before[3].get("error") or before[3]["result"]["isError"]
    assert end(process)[0] == 0


def test_the_inspector_of_the_protocol_s_makers(served: RunningDaemon, project: Path) -> None:
    program = Path(os.environ.get("LORE_NODE_MODULES", "node_modules"), ".bin", "mcp-inspector")
    if not program.exists():
        pytest.skip("needs LORE_NODE_MODULES, a folder with @modelcontextprotocol/inspector")

    def inspect(*words: str) -> Any:
        done = subprocess.run(
            [str(program.absolute()), "--cli", *LORE, "mcp", *words],
            env=environment(served.home),
            cwd=project,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    names = {tool["name"] for tool in inspect("--method", "tools/list")["tools"]}
    assert names == {tool["name"] for tool in catalogue.TOOLS}
    call = ("--method", "tools/call", "--tool-name")
    inspect(*call, "remember", "--tool-arg", "text=Seen by the inspector")
    found = inspect(*call, "recall", "--tool-arg", "query=inspector")
    assert "Seen by the inspector" in found["content"][0]["text"]
    listed = inspect("--method", "resources/list")["resources"]
    assert any(item["uri"] == "lore://fact/workspace:F1" for item in listed)


def test_versions_are_those_of_the_sdk() -> None:
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == front.VERSIONS


def test_the_handshake_is_that_of_the_sdk() -> None:
    from mcp.server.lowlevel import NotificationOptions

    from lore.mcp.server import build
    from lore.mcp.tools import Tools

    server = build(Tools(None), catalogue.TOOLS)
    options = server.create_initialization_options(NotificationOptions())
    stated = options.capabilities.model_dump(by_alias=True, exclude_none=True)
    assert {k: v for k, v in stated.items() if v} == catalogue.capabilities()
    assert options.server_name == catalogue.server_info()["name"]
    assert options.server_version == catalogue.server_info()["version"]
    assert options.instructions == catalogue.INSTRUCTIONS


@pytest.mark.parametrize("asked", ["2024-11-05", "1999-01-01"])
def test_version_negotiation(home: Path, asked: str) -> None:
    process = start(home)
    say(process, {**HELLO, "params": {**HELLO["params"], "protocolVersion": asked}})
    given = hear(process)["result"]["protocolVersion"]
    assert given == (asked if asked in front.VERSIONS else front.VERSIONS[-1])
    assert end(process)[0] == 0


def test_odd_first_lines_reach_the_sdk_and_do_not_kill(home: Path) -> None:
    process = start(home)
    say(process, b"this is not JSON", HELLO)
    answer = hear(process)
    while answer.get("id") != "first":
        answer = hear(process)
    assert answer["result"]["serverInfo"]["name"] == "lore"
    assert end(process)[0] == 0


def test_the_newest_protocol_opens_without_a_handshake(served: RunningDaemon) -> None:
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN_PROTOCOL_VERSIONS[-1],
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    process = start(served.home)
    say(process, {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
    answer = hear(process)
    assert answer["result"]["tools"][0]["name"] == "recall", answer
    assert end(process)[0] == 0


def test_it_ends_with_the_agent_that_started_it(home: Path) -> None:
    """The agent dies, while somebody else still holds the other end of the pipe."""
    reading, writing = os.pipe()
    script = (
        "import subprocess, sys, time; "
        "p = subprocess.Popen(sys.argv[1:], stdin=0); "
        "print(p.pid, flush=True); time.sleep(600)"
    )
    agent = subprocess.Popen(
        [sys.executable, "-c", script, *LORE, "mcp"],
        stdin=reading,
        stdout=subprocess.PIPE,
        env=environment(home),
    )
    os.close(reading)
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    try:
        os.write(writing, json.dumps(HELLO).encode() + b"\n")
        assert json.loads(agent.stdout.readline())["id"] == "first"
        agent.kill()
        agent.wait()
        deadline = time.monotonic() + SECONDS
        while _runs(pid):
            assert time.monotonic() < deadline, "it outlives its agent"
            time.sleep(0.05)
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close()
        os.close(writing)
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)


def _runs(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_without_a_daemon_tools_say_what_to_do(home: Path) -> None:
    process = start(home)
    say(process, HELLO, GREETED)
    hear(process)
    call = {"name": "recall", "arguments": {"query": "x"}}
    say(process, {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
    answer = hear(process)
    assert answer["result"]["isError"] is True
    assert "run: lore up" in answer["result"]["content"][0]["text"]
    assert end(process)[0] == 0


async def test_it_outlives_a_restart_of_the_daemon(home: Path) -> None:
    project = home / "user" / "p"
    project.mkdir(parents=True)
    with start_daemon(home, may_be_dead=True) as daemon:
        async with session(home, project) as client:
            await client.call_tool("remember", {"text": "Before", "scope": "global"})
            daemon.stop()
            refused = await client.call_tool("context", {})
            assert refused.is_error
            with start_daemon(home):
                seen = await client.call_tool("recall", {"id": "global:F1"})
                assert "Before" in text_of(seen)


def test_lore_is_listed_in_help(home: Path) -> None:
    assert "--aliases" in Lore(home)("mcp", "--help").out
