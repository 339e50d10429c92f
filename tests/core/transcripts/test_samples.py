"""Every sample of every agent: nothing lost in silence, nothing stored that must not be."""

import re
from collections import Counter

import msgpack
import pytest

from lored.core.transcripts import PARSERS, parser_for
from lored.core.transcripts.records import (
    MESSAGE_CHARS,
    OUTPUT_EXCERPT_CHARS,
    Action,
    Compaction,
    Damage,
    Message,
)
from support.transcripts import Sample, all_samples, content, messages, read, strings

FOUND = all_samples()
SMALL = [sample for sample in FOUND if "/storage/part/" in str(sample.path)]
ALL = [sample for sample in FOUND if sample not in SMALL] + SMALL[:20]
"""Of hundreds of one-part files, twenty."""
SILENT = ("rollout-2025-10-31", "session-2026-02-03T04-09", "/storage/")
"""Sessions in which nothing was said, and files that hold less than a message."""
STATE_BYTES = 300_000
"""Bound of a parser's state: what waits in it is bounded by name in each parser."""
LOST = {
    # file name (a part of it) -> damage that stands in the file itself
    "pi-test-session-uuid": {"json": 1},  # a line of prose, put there by its author
    "2025-11-21T00-38-43Z": {"torn": 1},  # the process was killed while it wrote
}
MADE_BY_TESTS = (
    "opencode", "kiro", "kilo", "recursive-file", "qwen-code-", "gemini-cli-", "goose-",
)  # fmt: skip
WRAPPERS = (
    "<system-reminder>",
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "Caveat: The messages below",
    "<bash-",
    "<ide_",
    "<task-notification>",
    "<teammate-message",
    "<ci-monitor-event>",
    "<user-prompt-submit-hook>",
    "<scheduled-task",
    "[Request interrupted",
    "[Image",
    "Base directory for this skill:",
    "This session is being continued from",
    "<persisted-output>",
    "<tool_use_error>",
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions",
    "<collaboration_mode>",
    "<apps_instructions>",
    "<skills_instructions>",
    "<plugins_instructions>",
    "<personality_spec>",
    "<model_switch>",
    "<app-context>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<recommended_plugins>",
    "<goal_context>",
    "<codex_internal_context>",
    "<hook_prompt",
    "<user_shell_command>",
    "# Files mentioned by the user",
    "# Context from my IDE setup",
    "<session_context>",
    "System: Please continue.",
    "<USER_REQUEST>",
    "<ADDITIONAL_METADATA>",
    "<user_query>",
    "<external_links>",
    "<user_info>",
    "<attached_files>",
    "<environment_details>",
    "<task>",
    "<feedback>",
    "<qwen:",
    "# Facts\n",
    "# Episodic recall\n",
)
BLOB = re.compile(r"[A-Za-z0-9+/=]{300,}")


def readable(sample: Sample) -> str:
    return str(sample)


@pytest.mark.parametrize("sample", ALL, ids=readable)
def test_a_sample_is_read_without_loss(sample: Sample) -> None:
    records = [record for found in read(sample).values() for record in found]
    lost = Counter(r.reason for r in records if isinstance(r, Damage) and r.lost)
    expected = next((known for name, known in LOST.items() if name in str(sample.path)), {})
    assert lost == expected
    if not any(name in str(sample.path) for name in SILENT) and sample.path.name != "journal.jsonl":
        assert messages(records)
    for record in records:
        for text in strings(record):
            text.encode("utf-8")
            assert "\0" not in text
    for message in messages(records):
        assert message.text.strip()
        assert len(message.text) < MESSAGE_CHARS + 200
        if message.role == "user":
            assert not message.text.lstrip().startswith(WRAPPERS), message.text[:80]
        assert (
            len(message.text) <= 200
            or not message.text.isascii()
            or " " in message.text
            or ("\n" in message.text)
        ), message.text[:300]
        runs = [run for run in BLOB.findall(message.text) if re.search(r"[A-Z].*[a-z].*\d", run)]
        assert not [run for run in runs if run.count("/") * 10 < len(run)], runs[0][:200]
    for record in records:
        if isinstance(record, Action):
            assert len(record.output_excerpt or "") <= OUTPUT_EXCERPT_CHARS
            assert record.kind and record.tool
        if isinstance(record, Message | Action | Compaction):
            assert record.key


@pytest.mark.parametrize("sample", ALL, ids=readable)
def test_a_stop_at_any_line_changes_nothing(sample: Sample) -> None:
    parser = parser_for(sample.agent, str(sample.path))
    if not hasattr(parser, "parse"):
        return
    assert read(sample, packed=True) == read(sample)


@pytest.mark.parametrize("sample", ALL, ids=readable)
def test_the_state_stays_small(sample: Sample) -> None:
    parser = parser_for(sample.agent, str(sample.path))
    if not hasattr(parser, "parse"):
        return
    state = parser.begin(str(sample.path))
    offset = 0
    for line in content(sample.path).split(b"\n"):
        list(parser.parse(state, line, offset))
        offset += len(line) + 1
    assert len(msgpack.packb(state)) < STATE_BYTES


def test_every_agent_has_a_sample() -> None:
    without = set(PARSERS) - {sample.agent for sample in ALL}
    made_by_tests = {
        name
        for name in without
        if name.startswith(
            ("opencode", "kiro", "kilo", "recursive-file", "qwen-code-", "gemini-cli-", "goose-")
        )
    }
    assert without - made_by_tests <= {"cline-sessions"}


def test_keys_tell_messages_apart() -> None:
    """Two messages of one file with one key say the same, unless the later replaces."""
    for sample in ALL:
        if "trimmed" in content(sample.path)[:200_000].decode("utf-8", "replace"):
            continue  # ids were blanked there
        seen: dict[str, str] = {}
        for found in read(sample).values():
            for record in found:
                if isinstance(record, Message) and not record.replaces:
                    before = seen.setdefault(record.key, record.text)
                    assert before == record.text, (sample, record.key)
