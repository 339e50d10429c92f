"""Text that tries to become something else on a page or a terminal, wherever text can stand."""

import json
from pathlib import Path

from lore.client import Client

SCRIPT = "<script>window.pwned=1</script>"
IMAGE = "\"'><img src=x onerror=window.pwned=1>"
CLOSERS = "</title></textarea></pre></style></svg><script>window.pwned=1</script>"
LINK = "[click](javascript:window.pwned=1) javascript:window.pwned=1"
TEMPLATE = "{{ 7*191 }} {% include '/etc/passwd' %}"
TERMINAL = "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x9b2J \x00nul \x7f"
TURNED = "\u202etxt.exe\u202c \u2066isolated\u2069 \u200fmark \u061carabic"
UNSEEN = "seen\U000e0068\U000e0069\ufeff"
ALL = " ".join((SCRIPT, IMAGE, CLOSERS, LINK, TEMPLATE, TERMINAL, TURNED, UNSEEN))
STATED = ALL.replace("\x00", "")
"""The daemon refuses NUL in facts; transcripts have it."""

SESSION = "0e511000-0000-4000-8000-000000000666"


def write_transcript(user: Path) -> None:
    """A Claude Code session with such text in every field that a page shows."""
    folder = user / ".claude" / "projects" / "-srv-evil"
    folder.mkdir(parents=True, exist_ok=True)
    shared = {
        "sessionId": SESSION,
        "cwd": f"/srv/{IMAGE}/{SCRIPT}".replace("</", "<"),
        "gitBranch": f"main{IMAGE}",
        "version": "2.1.0",
        "isSidechain": False,
        "userType": "external",
    }
    tool = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": f"Bash{IMAGE}",
        "input": {"command": f"pytest {ALL}", "description": ALL},
    }
    edit = {
        "type": "tool_use",
        "id": "toolu_2",
        "name": "Write",
        "input": {"file_path": f"/srv/evil/{IMAGE}.py", "content": ALL},
    }
    said = {
        "id": "msg_1",
        "model": f"claude{IMAGE}",
        "role": "assistant",
        "content": [
            {"type": "text", "text": f"I decided to use {ALL}\n```\n{ALL}\n```"},
            tool,
            edit,
        ],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    answered = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": ALL, "is_error": True},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": ALL * 40},
    ]
    records = [
        ("user", {"role": "user", "content": f"Please fix {ALL}"}),
        ("assistant", said),
        ("user", {"role": "user", "content": answered}),
        ("user", {"role": "user", "content": f"zeppelin {ALL}"}),
    ]
    lines = [
        json.dumps(
            {
                **shared,
                "type": kind,
                "message": message,
                "uuid": f"00000000-0000-4000-8000-{number:012d}",
                "parentUuid": None,
                "timestamp": f"2026-05-01T10:{number:02d}:00.000Z",
            }
        )
        for number, (kind, message) in enumerate(records)
    ]
    (folder / f"{SESSION}.jsonl").write_text("\n".join(lines) + "\n")


def state_facts(client: Client, workspace: Path) -> list[str]:
    """Two facts that stand against each other and are in conflict, hostile in every part."""
    names = []
    for end in ("one", "two"):
        made = client.call(
            "remember_fact",
            {
                "text": f"zeppelin {STATED} {end}",
                "entities": [f"tool:{IMAGE}", "tool:zeppelin"],
                "tags": [SCRIPT, f"t{IMAGE}"],
                "asserted_by": f"by {IMAGE}",
                "source": f"source {SCRIPT}",
                "source_ref": "javascript:window.pwned=1",
                "session_id": SESSION,
                "workspace": str(workspace),
            },
        )
        names.append(made["fact"]["id"])
    client.call(
        "apply",
        {
            "ops": [
                {
                    "op": "conflict",
                    "fact_a": names[0],
                    "fact_b": names[1],
                    "severity": "high",
                    "note": STATED,
                }
            ],
            "workspace": str(workspace),
            "scope": "workspace",
        },
    )
    return names
