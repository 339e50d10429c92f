"""Status, checks, backups, import and export."""

from lore.wire.method import Method, Param
from lore.wire.parameters import SCOPE, WORKSPACE

METHODS: "tuple[Method, ...]" = (
    Method(
        "status",
        "Everything about the daemon, with degraded modes and remedies.",
        (),
        "pid, version, protocol, socket, stores, roots, queues, operations[], memory, degraded[]",
        # Its parts are asked at once, each with a bound of its own; a busy machine needs them all.
        deadline="write",
    ),
    Method("health", "ok or the reasons why not; proves loop and writers.", (), "ok, reasons[]"),
    Method("metrics", "Counters and gauges as OpenMetrics text.", (), "text"),
    Method(
        "verify",
        "Check stores, indexes, mirror and sources.",
        (
            Param("deep", "bool", "Compare with the transcripts"),
            Param("fix", "bool", "Repair what can be repaired"),
        ),
        "checks[], ok",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "backup",
        "Copy the precious stores now.",
        (Param("path", "text", "Folder; default: ours"),),
        "files[], left_out[]",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "restore",
        "Put a backup back; what is there now is set aside.",
        (Param("path", "text", "Backup folder", required=True),),
        "restored[], set_aside[]",
        deadline="long",
        mutates=True,
    ),
    Method(
        "export",
        "Facts (and sessions) as JSONL or Markdown.",
        (
            Param("format", "text", "Form", choices=("jsonl", "markdown")),
            SCOPE,
            WORKSPACE,
            Param("after", "text", "Page"),
        ),
        "text, facts (on this page), total (on the first), next",
        deadline="long",
    ),
    Method(
        "import",
        "Take facts in from another memory.",
        (
            Param("path", "text", "File or folder", required=True),
            Param(
                "format",
                "text",
                "Form; default: found out",
                choices=("recursive", "remind", "markdown", "jsonl"),
            ),
            Param("dry_run", "bool", "Only say what would come"),
            SCOPE,
            WORKSPACE,
        ),
        "created, merged, problems[], collisions[]",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    Method(
        "maintain",
        "Vacuum, optimise, expire, back up when due.",
        (),
        "steps[]",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
)
