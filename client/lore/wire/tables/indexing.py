"""Injection, transcripts and workspaces."""

from lore.wire.method import Method, Param
from lore.wire.parameters import WORKSPACE

METHODS: "tuple[Method, ...]" = (
    Method(
        "context",
        "Text for an agent's prompt in the seeds' form, within a budget.",
        (
            WORKSPACE,
            Param("budget_bytes", "int", "Most bytes, default 1024"),
            Param("budget_tokens", "int", "Most tokens (4 bytes each)"),
            Param("parts", "list", "facts, episodes; default both"),
            Param("query", "text", "What the prompt is about"),
            Param("session_id", "text", "Session that receives it"),
        ),
        "text, receipt per part",
        deadline="search",
        idempotent=True,
    ),
    Method(
        "index",
        "Look for new transcript text now.",
        (
            Param("paths", "list", "Only these files or folders"),
            Param("force", "bool", "Read again from the start"),
        ),
        "accepted, ticket",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "index_wait",
        "Wait until all that was present at the call is searchable.",
        (Param("ticket", "text", "From `index`"),),
        "done, files, sessions, messages",
        deadline="long",
    ),
    Method("index_status", "Progress, roots, damage, queue.", (), "state, progress, roots[]"),
    Method(
        "sources",
        "Session roots: agent, path, mode, counts, lag, warnings.",
        (
            Param("enable", "text", "Agent to switch on"),
            Param("disable", "text", "Agent to switch off"),
            Param("add", "text", "Another root, AGENT=PATH"),
            Param("remove", "text", "Root to drop, AGENT=PATH"),
        ),
        "roots[]",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "exclude",
        "Rules for what is never read.",
        (
            Param("add", "text", "path:GLOB, workspace:PATH or agent:NAME"),
            Param("remove", "text", "Rule to drop"),
        ),
        "rules[]",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "redact",
        "Scan stored text for secrets; optionally remove them.",
        (Param("fix", "bool", "Replace what is found"),),
        "found[] (never the secret), removed",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "reindex",
        "Compute vectors or text index anew, resumable.",
        (
            Param("model", "text", "Embedder to change to"),
            Param("text", "bool", "Rebuild the text index"),
            Param("wait", "bool", "Answer when the vectors are there, too"),
        ),
        "accepted, messages, vectors",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "workspace",
        "Identity of a workspace and how it was found.",
        (
            Param("path", "text", "Any path in it"),
            Param("action", "text", "What to do", choices=("explain", "list", "alias", "split")),
            Param("target", "text", "For alias: the workspace whose memory this path joins"),
        ),
        "id, root, how, worktree, aliases[] or workspaces[] (with facts, sessions, last_at)",
        deadline="write",
        idempotent=True,
    ),
)
