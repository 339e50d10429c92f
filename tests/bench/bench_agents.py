"""What an agent waits for: its hooks, and its MCP server from the start to the first answers.

    python tests/bench/bench_agents.py [rounds]

Whole processes, with a bare interpreter in the same turns, so that a busy machine weighs on
all alike. Bars: a hook 150 ms at p95, with a daemon and without; the MCP server's tools listed
150 ms after its start at the median. The first tool call, which loads the official SDK, has no
bar: it is printed as it is.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

from bench.contract import Row
from support.daemon import environment, make_home, remove_home, start_daemon

HOOK_MS, MCP_MS = 150.0, 150.0
LORE = str(Path(sys.executable).parent / "lore")
BARE = [sys.executable, "-I", "-c", "pass"]
HOOK = [LORE, "hook", "claude-code", "session-start"]
OPENING = (
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
)


def run(words: list[str], env: dict[str, str], cwd: str) -> float:
    """Milliseconds of one process that is given an event."""
    began = time.perf_counter()
    given = json.dumps({"cwd": cwd, "session_id": "bench"}).encode()
    subprocess.run(words, input=given, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) * 1000


def converse(env: dict[str, str], cwd: str) -> dict[str, float]:
    """One MCP server: milliseconds to the list of tools and of two tool calls, MiB resident."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [LORE, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    found: dict[str, float] = {}
    try:

        def ask(*messages: dict[str, Any], answers: int = 1) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))
            process.stdin.flush()
            for _ in range(answers):
                process.stdout.readline()

        def mib() -> float:
            return float(psutil.Process(process.pid).memory_info().rss) / 2**20

        ask(*OPENING, answers=2)
        found["tools_ms"] = (time.perf_counter() - began) * 1000
        found["idle_mib"] = mib()
        call = {"name": "context", "arguments": {}}
        for number, name in ((2, "first_call_ms"), (3, "second_call_ms")):
            began = time.perf_counter()
            ask({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
            found[name] = (time.perf_counter() - began) * 1000
        found["loaded_mib"] = mib()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(30)
    return found


def p95(times: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(times, n=20)[18]


def measure(rounds: int = 40) -> dict[str, Any]:
    """All figures in milliseconds and the verdicts."""
    home = make_home()
    times: dict[str, list[float]] = {"bare": [], "hook": [], "hook_absent": []}
    talks: list[dict[str, float]] = []
    project = home / "user" / "project"
    try:
        project.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        env, cwd = environment(home), str(project)
        with start_daemon(home):
            subprocess.run(
                [LORE, "remember", "The cache lives for 300 s"],
                env=env,
                cwd=cwd,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            run(HOOK, env, cwd)
            for _ in range(rounds):
                times["bare"].append(run(BARE, env, cwd))
                times["hook"].append(run(HOOK, env, cwd))
            talks = [converse(env, cwd) for _ in range(max(rounds // 8, 1))]
        for _ in range(rounds):
            times["hook_absent"].append(run(HOOK, env, cwd))
    finally:
        remove_home(home)
    mcp = {name: round(statistics.median(t[name] for t in talks), 1) for name in talks[0]}
    worst = max(p95(times["hook"]), p95(times["hook_absent"]))
    return {
        "figure": "hook p95 / MCP tools listed, ms",
        "value": [round(worst, 1), mcp["tools_ms"]],
        "bar": [HOOK_MS, MCP_MS],
        "ok": worst <= HOOK_MS and mcp["tools_ms"] <= MCP_MS,
        "p50_ms": {name: round(statistics.median(found), 1) for name, found in times.items()},
        "p95_ms": {name: round(p95(found), 1) for name, found in times.items()},
        "mcp": mcp,
        "rounds": rounds,
        "load": round(os.getloadavg()[0], 1),
    }


def rows(size: str) -> list[Row]:
    """For the table."""
    found = measure({"smoke": 2}.get(size, 40))
    hook, tools = found["value"]
    p95_ms, mcp = found["p95_ms"], found["mcp"]
    return [
        Row(
            "hook p95, whole process",
            hook,
            "ms",
            HOOK_MS,
            note=f"p95 {p95_ms['hook']} ms with a daemon, {p95_ms['hook_absent']} without, "
            f"bare Python {p95_ms['bare']}; p50 {found['p50_ms']['hook']}, n={found['rounds']}",
        ),
        Row(
            "MCP server: start to list of tools, p50",
            tools,
            "ms",
            MCP_MS,
            note=f"first call {mcp['first_call_ms']} ms, second {mcp['second_call_ms']} ms, "
            f"{mcp['idle_mib']} MiB idle",
        ),
    ]


if __name__ == "__main__":
    result = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
    print(json.dumps(result, indent=2))
    sys.exit(0 if result["ok"] else 1)
