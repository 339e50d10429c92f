"""What is kept of a text: bounds, base64, terminal noise, titles, our own blocks."""

import base64
import random

import pytest

from lored.core.transcripts.own import cut_own_context, is_own_call
from lored.core.transcripts.records import MESSAGE_CHARS
from lored.core.transcripts.stamps import instant
from lored.core.transcripts.texts import (
    excerpt,
    flat_text,
    keep,
    keep_output,
    title_of,
)

BLOB = base64.b64encode(random.Random(1).randbytes(3_000)).decode()


def test_a_long_text_keeps_both_ends() -> None:
    text = "start " + "word " * 20_000 + "end"
    kept, dropped = keep(text)
    assert kept.startswith("start ") and kept.endswith("end")
    assert len(kept) < MESSAGE_CHARS + 100
    assert dropped == len(text) - (len(kept) - len(f"\n[… {dropped} bytes left out …]\n"))
    assert keep("日本" * MESSAGE_CHARS)[1] == 3 * MESSAGE_CHARS


@pytest.mark.parametrize(
    "text",
    [
        f"see data:image/png;base64,{BLOB} here",
        f"see {BLOB} here",
        "see " + "\n".join(BLOB[i : i + 76] for i in range(0, len(BLOB), 76)) + " here",
        "see " + BLOB.encode().hex() + " here",
        f"see data:image/png;base64,{BLOB[:120]} here",
    ],
)
def test_binary_data_becomes_a_marker(text: str) -> None:
    kept, dropped = keep(text)
    assert kept.startswith("see [") and kept.endswith("here") and len(kept) < 60
    assert dropped > 60


@pytest.mark.parametrize(
    "text",
    [
        "x " + "-" * 30,
        "https://example.com/" + "/".join(["long-path-segment"] * 15),
        "a/very/long/directory/name/without/any/file/ending/" * 5,
        "这是一段没有空格的中文文字" * 40,
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "\n".join(f"src/components/dashboard/widgets/panel_number_{i}_of_many_x" for i in range(9)),
    ],
)
def test_words_stay(text: str) -> None:
    assert keep(text) == (text, 0)


def test_output_is_made_readable() -> None:
    assert keep_output("\x1b[31mred\x1b[0m\a ok") == ("red ok", 0)
    compact = "{" + ",".join(f'"key{i}":{i}' for i in range(60)) + "}"
    folded, _ = keep_output(compact)
    assert folded.replace("\n", "") == compact
    assert max(map(len, folded.split())) <= 130
    assert len(excerpt("e" * 9_000)) == 2_000


def test_flat_text() -> None:
    blocks = [{"type": "text", "text": "a"}, "b", None, {"type": "image", "source": {}}, 3]
    assert flat_text(blocks) == "a\nb"
    assert flat_text({"output": [{"text": "x"}]}) == "x"
    assert flat_text(None) == "" and flat_text({"n": 1}) == ""
    deep: object = "x"
    for _ in range(50):
        deep = [deep]
    assert flat_text(deep) == ""


def test_titles() -> None:
    assert title_of("\n  fix it\nnow") == "fix it"
    assert title_of("   ") is None
    assert title_of("[[ ## user_query ## ]]\nadd a retry") == "add a retry"
    assert title_of("Implement the following plan:\n\n# Fix the login\n") == "Fix the login"
    assert title_of("Implement the following plan:") == "Implement the following plan:"
    assert len(title_of("w" * 300) or "") == 80


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-05-28T10:00:00.123Z", "2026-05-28T10:00:00.123Z"),
        ("2026-05-28T12:00:00+02:00", "2026-05-28T10:00:00Z"),
        (1779962400, "2026-05-28T10:00:00Z"),
        (1779962400000, "2026-05-28T10:00:00Z"),
        ("2026-99-28T10:00:00Z", None),
        ("[trimmed for fixture]", None),
        (None, None),
        (True, None),
        (float("nan"), None),
        (-5, None),
        ({"a": 1}, None),
    ],
)
def test_instants(value: object, text: str | None) -> None:
    assert instant(value) == text


def test_our_blocks_are_cut_and_nothing_else() -> None:
    facts = "# Facts\n• [F1] use uv  [tags: py]\n• [F22] deploy on Fridays\n"
    recall = (
        "# Episodic recall\nSession 2026-05-28: Implemented Goal 131 (permissions). Completed.\n"
        "Key actions: edited src/permissions.rs, added 12 tests.\n"
    )
    for text in (facts, recall, facts + "\n" + recall, f"before\n{facts}\n{recall}\nafter"):
        short, cut = cut_own_context(text)
        assert cut and "[F1]" not in short and "Key actions" not in short
    assert cut_own_context(f"before\n{facts}\nafter")[0].split() == ["before", "after"]
    mine = "# Facts\nThe build is broken.\n# Episodic recall\nis a word of mine\n"
    assert cut_own_context(mine) == (mine, False)


@pytest.mark.parametrize(
    ("tool", "command", "own"),
    [
        ("mcp__lore__recall_fact", None, True),
        ("mcp__lored__sessions", None, True),
        ("lore.context", None, True),
        ("mcp_lore_recall", None, True),
        ("lore_remember", None, True),
        ("mcp__plugin_lore_lore__triage", None, True),
        ("mcp__explore__recall", None, False),
        ("folklore_recall", None, False),
        ("episodic_recall", None, True),
        ("Bash", "lore recall 'x' | head", True),
        ("Bash", "cd /p; ~/.local/bin/lore session 5 --json", True),
        ("Bash", "python -m lore facts", True),
        ("Bash", "LORE_OFF= ; time lore facts", True),
        ("Bash", "cat lore/recall.md", False),
        ("Bash", "grep lore recall.md", False),
        ("Bash", "git log --grep 'lore recall'", False),
        ("mcp__github__sessions", None, False),
        ("mcp__memory__recall", None, False),
        ("Read", None, False),
    ],
)
def test_our_own_calls(tool: str, command: str | None, own: bool) -> None:
    assert is_own_call(tool, {}, command) is own
