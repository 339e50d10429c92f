"""The verbs of `lore`: name, the module that runs it, one line of help, by group. Pure data.

Modules are loaded only when their verb is called (or for completions).
"""

from __future__ import annotations

from lore.cli.arguments import Verb

GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "the daemon",
        (
            ("up", "up", "start the memory, index the agents' sessions, show what it found"),
            ("down", "daemon", "stop the daemon after it has finished what is in flight"),
            ("restart", "daemon", "stop the daemon and start it again"),
            ("status", "daemon", "what the daemon does, holds and lacks"),
            ("top", "top", "what the daemon does, from moment to moment"),
            ("logs", "daemon", "the daemon's log"),
            ("ping", "ping", "ask the daemon for a sign of life"),
            ("doctor", "doctor", "prove that everything is sound, or say what is not"),
        ),
    ),
    (
        "facts",
        (
            ("remember", "facts", "state a fact"),
            ("recall", "recall", "find facts and past sessions"),
            ("facts", "facts", "list facts, newest first"),
            ("fact", "facts", "show one fact with its history and origin"),
            ("update", "facts", "replace a fact by a new text"),
            (
                "forget",
                "forget",
                "forget a fact, a session, a workspace's sessions, or what holds some words",
            ),
            ("undo", "facts", "take back the last change, or a named one"),
            ("history", "facts", "what a fact replaced and what replaced it"),
        ),
    ),
    (
        "triage",
        (
            ("apply", "triage", "run a batch of triage operations, all or nothing"),
            ("snapshot", "triage", "several views of the facts at once"),
            ("conflicts", "triage", "facts that contradict each other"),
            ("clusters", "triage", "facts grouped by what they are about"),
            ("entities", "triage", "the things that facts are about"),
        ),
    ),
    (
        "past sessions",
        (
            ("sessions", "sessions", "past sessions of every agent, newest first"),
            ("session", "sessions", "one session: summary, actions, messages"),
        ),
    ),
    (
        "agents",
        (
            ("context", "agents", "the text that an agent gets at the start of a session"),
            ("hook", "agents", "what an agent's hooks run; never fails, never takes long"),
            ("mcp", "agents", "serve the memory to an agent over MCP on stdio"),
            ("install", "install", "connect the agents on this machine to the memory"),
            ("uninstall", "install", "undo exactly what `install` wrote"),
        ),
    ),
    (
        "transcripts",
        (
            ("index", "indexing", "look for new transcript text now"),
            ("sources", "indexing", "where sessions are read from"),
            ("exclude", "indexing", "rules for what is never read"),
            ("redact", "indexing", "look for secrets in what is stored"),
            ("reindex", "indexing", "compute the search indexes anew"),
            ("workspace", "workspace", "which workspace a path belongs to, and why"),
        ),
    ),
    (
        "care",
        (
            ("export", "care", "write the facts as JSONL or Markdown"),
            ("import", "care", "take facts in from another memory"),
            ("backup", "care", "copy the precious stores"),
            ("restore", "care", "put a backup back"),
            ("verify", "care", "check stores, indexes and mirror"),
            ("maintain", "care", "optimise, expire and back up now"),
            ("metrics", "care", "counters and gauges as OpenMetrics text"),
            ("bench", "bench", "measure this memory on this machine"),
        ),
    ),
    (
        "the wire",
        (
            ("call", "raw", "call a method of the wire as it is"),
            ("watch", "raw", "show events as they happen"),
            ("web", "web", "look at the memory in a browser, on this machine only"),
            ("completions", "completions", "completions for bash, zsh or fish"),
        ),
    ),
)

MODULES: dict[str, str] = {name: module for _, verbs in GROUPS for name, module, _ in verbs}
ABOUT: dict[str, str] = {name: about for _, verbs in GROUPS for name, _, about in verbs}


def load(name: str) -> Verb:
    """The verb ``name``, from its module."""
    from importlib import import_module

    module = import_module("lore.cli." + MODULES[name])
    found: Verb = next(verb for verb in module.VERBS if verb.name == name)
    return found


def overview() -> str:
    """The text of `lore --help`."""
    lines = ["usage: lore VERB [ARGUMENTS]   (lore VERB --help tells more)", ""]
    for group, verbs in GROUPS:
        lines.append(f"{group}:")
        lines.extend(f"  {name:12} {about}" for name, _, about in verbs)
        lines.append("")
    lines += [
        "exit codes: 0 done, 1 nothing found, 2 usage, 3 refused, 4 no daemon, 5 internal",
        "first steps: lore up; lore remember 'the API limit is 100'; lore recall limit",
    ]
    return "\n".join(lines)
