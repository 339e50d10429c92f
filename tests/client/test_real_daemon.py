"""Both clients, and clients in other languages, against a real daemon."""

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest

from lore import Client, errors
from lore.aio import Client as AsyncClient
from lore.wire.document import protocol_page
from support.daemon import RunningDaemon, start_daemon

EXAMPLES = dict(re.findall(r"```(\w+)\n(.*?)```", protocol_page(), re.S))


@pytest.fixture
def project(home: Path) -> Path:
    made = home / "user" / "project"
    (made / ".git").mkdir(parents=True)
    return made


def test_facts_through_the_blocking_client(daemon: RunningDaemon, project: Path) -> None:
    with Client(where=daemon.paths, workspace=str(project)) as client:
        told = client.remember_fact(text="The build uses tox", tags=["build"])
        assert told["created"] is True
        found = client.recall_fact(query="tox")
        assert [fact["text"] for fact in found["facts"]] == ["The build uses tox"]
        with pytest.raises(errors.NotFound, match="F99"):
            client.fact(id="F99")
        with pytest.raises(errors.Invalid, match="txet"):
            client.call("remember_fact", {"txet": "x"})
        with pytest.raises(errors.LoreError):
            client.call("no_such_method")
    with Client(where=daemon.paths) as elsewhere:  # no workspace: global facts only
        assert elsewhere.recall_fact(query="tox")["facts"] == []


async def test_many_calls_at_once(daemon: RunningDaemon, project: Path) -> None:
    async with AsyncClient(where=daemon.paths, workspace=str(project)) as client:
        told = await asyncio.gather(
            *(client.remember_fact(text=f"Statement {n} about topic{n}") for n in range(40))
        )
        assert len({answer["fact"]["id"] for answer in told}) == 40
        found = await asyncio.gather(
            *(client.recall_fact(query=f"topic{n}", limit=1) for n in range(40))
        )
        assert [one["facts"][0]["text"] for one in found] == [
            f"Statement {n} about topic{n}" for n in range(40)
        ]


async def test_two_processes_share_one_memory(daemon: RunningDaemon, project: Path) -> None:
    code = (
        "import sys; from lore import Client\n"
        "print(Client(workspace=sys.argv[1]).remember_fact(text='Said by another')['fact']['id'])"
    )
    async with AsyncClient(where=daemon.paths, workspace=str(project)) as client:
        async with contextlib.aclosing(client.events(["facts"], workspace=str(project))) as events:
            waiting = asyncio.create_task(anext(events))
            await client.ping()  # after it the subscription stands: requests begin in order
            other = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", code, str(project)],
                env=daemon.env,
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
            event = await asyncio.wait_for(waiting, 20)
        assert event["topic"] == "facts"
        assert event["fact"]["text"] == "Said by another"
        assert event["fact"]["id"] == other.stdout.strip()


def test_events_through_the_blocking_client(daemon: RunningDaemon, project: Path) -> None:
    with (
        Client(where=daemon.paths, workspace=str(project)) as listener,
        Client(where=daemon.paths, workspace=str(project)) as speaker,
    ):
        events = listener.events(["facts"], workspace=str(project), timeout=20)
        for n in range(5):
            speaker.remember_fact(text=f"Event {n} concerns subject{n}")
        assert [next(events)["fact"]["text"] for _ in range(5)] == [
            f"Event {n} concerns subject{n}" for n in range(5)
        ]
        assert listener.ping()["pong"] is True


@pytest.fixture
def default_paths(home: Path) -> Iterator[RunningDaemon]:
    """A daemon at the paths the examples name, below a home directory of its own."""
    runtime = home / "runtime"
    runtime.mkdir(mode=0o700)
    with start_daemon(home, {"LORE_HOME": "", "XDG_RUNTIME_DIR": str(runtime)}) as running:
        yield running


def run_example(running: RunningDaemon, project: Path, command: list[str]) -> str:
    done = subprocess.run(
        command,
        cwd=project,
        env=running.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_examples_of_the_protocol_page(
    default_paths: RunningDaemon, project: Path, tmp_path: Path
) -> None:
    with Client(where=default_paths.paths, workspace=str(project)) as client:
        client.remember_fact(text="Tests run with tox")
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES["python"])
    out = run_example(default_paths, project, [sys.executable, str(script)])
    assert re.fullmatch(r"F\d+  Tests run with tox\n", out)


@pytest.mark.skipif(not shutil.which("nvim"), reason="needs nvim")
def test_the_neovim_example(default_paths: RunningDaemon, project: Path, tmp_path: Path) -> None:
    script = tmp_path / "example.lua"
    script.write_text(EXAMPLES["lua"])
    command = ["nvim", "--headless", "--clean", "-c", f"luafile {script}", "-c", "qall!"]
    out = run_example(default_paths, project, command)
    assert re.search(r"remembered F\d+", out)
    assert re.search(r"F\d+  Tests run with tox", out)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_node_example(default_paths: RunningDaemon, project: Path, tmp_path: Path) -> None:
    modules = Path(os.environ.get("LORE_NODE_MODULES", "node_modules")).absolute()
    if not (modules / "@msgpack" / "msgpack").is_dir():
        pytest.skip("needs LORE_NODE_MODULES, a folder with @msgpack/msgpack")
    with Client(where=default_paths.paths, workspace=str(project)) as client:
        client.remember_fact(text="Tests run with tox")
    (tmp_path / "node_modules").symlink_to(modules)
    script = tmp_path / "example.mjs"
    script.write_text(EXAMPLES["js"])
    out = run_example(default_paths, project, ["node", str(script)])
    assert re.fullmatch(r"F\d+  Tests run with tox\n", out)


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_node_example_without_a_package(
    default_paths: RunningDaemon, project: Path, tmp_path: Path
) -> None:
    long = "Tests run with tox, " + "ünicode and 日本語 " * 400 + "to the end"
    with Client(where=default_paths.paths, workspace=str(project)) as client:
        client.remember_fact(text="Tests run with tox")
        client.remember_fact(text=long)
    script = tmp_path / "example.mjs"
    script.write_text(EXAMPLES["javascript"])
    out = run_example(default_paths, project, ["node", str(script)]).splitlines()
    assert {line.split("  ", 1)[1] for line in out} == {"Tests run with tox", long}


VALUES = [
    *(None, True, False, 0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32, 2**53 - 1),
    *(-1, -32, -33, -128, -129, -32_769, -(2**31) - 1, -(2**53) + 1, 1.5, -0.25),
    *("", "é" * 15, "x" * 31, "x" * 32, "x" * 255, "x" * 256, "x" * 65_536),
    *(
        [],
        [1] * 15,
        [1] * 16,
        [1] * 65_536,
        {},
        {str(n): n for n in range(16)},
        {"a": {"b": [None]}},
    ),
]


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_the_messagepack_of_the_node_example(tmp_path: Path) -> None:
    codec = EXAMPLES["javascript"].split("\nconst state")[0]
    script = tmp_path / "codec.mjs"
    script.write_text(
        codec + "\nconst whole = readFileSync(0);\nconst [values, end] = unpack(whole);\n"
        "if (end !== whole.length) throw new Error('bytes left');\n"
        "for (let n = 0; n < 64; n += 1) {\n"
        "  try { unpack(whole.subarray(0, n)); throw new Error('not whole'); }\n"
        "  catch (error) { if (!(error instanceof RangeError)) throw error; }\n}\n"
        "process.stdout.write(pack(values));\n"
    )
    done = subprocess.run(
        ["node", str(script)], input=msgpack.packb(VALUES), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert msgpack.unpackb(done.stdout) == VALUES
