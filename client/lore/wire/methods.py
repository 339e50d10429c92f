"""The method table: every wire name, its parameters, result and rules. The one home of names.

Imports nothing and is pure data: the daemon validates by it, the CLI, MCP server and
`PROTOCOL.md` are made from it. Parameter types: `text`, `int`, `number`, `bool`, `list`
(of text), `date` (ISO 8601 date or instant, or a phrase such as `yesterday`), `map`, `ops`
(text or list of maps), `any`.
"""


class Param:
    """One named parameter: wire type, whether required, aliases accepted, one line of doc."""

    __slots__ = ("aliases", "choices", "doc", "name", "required", "type")

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002 - the field's word
        doc: str,
        *,
        required: bool = False,
        aliases: "tuple[str, ...]" = (),
        choices: "tuple[str, ...]" = (),
    ) -> None:
        self.name, self.type, self.doc = name, type, doc
        self.required, self.aliases, self.choices = required, aliases, choices


class Method:
    """One callable: name, parameters, result in a line, and how the transport treats it.

    `idempotent` calls may be sent again after a dead socket; `deadline` names a class in
    `limits.DEADLINES`; `since` is the first protocol that has it.
    """

    __slots__ = (
        "aliases",
        "deadline",
        "doc",
        "idempotent",
        "mutates",
        "name",
        "params",
        "result",
        "since",
    )

    def __init__(
        self,
        name: str,
        doc: str,
        params: "tuple[Param, ...]",
        result: str,
        *,
        deadline: str = "quick",
        mutates: bool = False,
        idempotent: "bool | None" = None,
        aliases: "tuple[str, ...]" = (),
        since: int = 1,
    ) -> None:
        self.name, self.doc, self.params, self.result = name, doc, params, result
        self.deadline, self.mutates, self.since, self.aliases = deadline, mutates, since, aliases
        self.idempotent = (not mutates) if idempotent is None else idempotent


SCOPES = ("global", "workspace")
KINDS = ("fact", "decision", "observation", "preference", "assumption")
SEVERITIES = ("low", "medium", "high")
ROLES = ("user", "assistant", "tool", "summary", "context")

_workspace = Param("workspace", "text", "Path inside a workspace, or its id; default: from hello")
_scope = Param("scope", "text", "One scope only; default: both merged for reads", choices=SCOPES)
_limit = Param("limit", "int", "Most results, 1 to 200", aliases=("k",))
_since = Param("since", "date", "Only what is not older")
_until = Param("until", "date", "Only what is older")
_as_of = Param("as_of", "date", "Answer with what was valid then")
_known_at = Param("known_at", "date", "Answer with what was recorded by then")
_explain = Param("explain", "bool", "Return the parts of each score")
_everywhere = Param("everywhere", "bool", "All workspaces instead of the current one")
_agent = Param("agent", "text", "Only sessions of this agent, e.g. claude-code")
_tags = Param("tags", "list", "Free labels, order and case kept", aliases=("tag",))
_entities = Param("entities", "list", "`type:name` each; a bare name becomes `subject:name`")
_kind = Param("kind", "text", "What sort of statement", choices=KINDS)
_reason = Param("reason", "text", "Why, kept in the change log")
_id = Param("id", "text", "F3, global:F3, workspace:F3, fact:F3 or the uid", required=True)

_fact_params = (
    _tags,
    _entities,
    _kind,
    Param("scope", "text", "Default: workspace if there is one, else global", choices=SCOPES),
    Param("global", "bool", "Same as scope=global (Recursive's spelling)"),
    _workspace,
    Param("source", "text", "Free text: who or what produced it (agent, user, tool)"),
    Param("asserted_by", "text", "Who states it", aliases=("by",)),
    Param(
        "source_ref",
        "text",
        "Link to the original: URL, path, file:PATH, commit:SHA",
        aliases=("ref",),
    ),
    Param("valid_from", "date", "When it became true; default now"),
    Param("valid_to", "date", "When it stopped being true; absent while it holds"),
    Param("session_id", "text", "Session that states it"),
    Param("message_id", "text", "Message that states it"),
    Param("idempotency_key", "text", "The same key never states twice"),
)

METHODS: "tuple[Method, ...]" = (
    # -- session ---------------------------------------------------------------------------
    Method(
        "hello",
        "Open the conversation: who calls, which protocol, which defaults.",
        (
            Param("client", "text", "Name of the client program", required=True),
            Param("version", "text", "Its version"),
            Param("protocol", "any", "[min, max] it speaks", required=True),
            Param("errors", "text", "Error form", choices=("pair", "map")),
            Param("ordered", "bool", "Answer in the order of the requests (Neovim)"),
            Param("workspace", "text", "Default workspace path of this connection"),
            Param("session_id", "text", "Default session of this connection's statements"),
        ),
        "version, protocol, instance, revision, limits",
    ),
    Method("ping", "Prove that daemon and loop live.", (), "pong, version, protocol"),
    Method(
        "cancel",
        "Stop a request of this connection.",
        (Param("id", "int", "Its message id", required=True),),
        "cancelled",
    ),
    Method(
        "subscribe",
        "Receive `event` notifications.",
        (
            Param("topics", "list", "facts, sessions, conflicts, progress, status", required=True),
            _workspace,
        ),
        "subscription, revision",
        mutates=True,
        idempotent=False,
    ),
    Method(
        "unsubscribe",
        "End a subscription.",
        (Param("subscription", "text", "Its id", required=True),),
        "unsubscribed",
        mutates=True,
    ),
    Method(
        "changes",
        "What changed in the fact stores since a revision.",
        (
            Param("since", "text", "Revision from hello, an answer or an event", required=True),
            _workspace,
            _limit,
        ),
        "changes[], revision, fresh (store replaced: resync)",
    ),
    Method(
        "drain",
        "Finish and exit, so that a newer daemon can start.",
        (_reason,),
        "draining",
        mutates=True,
    ),
    # -- facts -----------------------------------------------------------------------------
    Method(
        "remember_fact",
        "State a fact.",
        (
            Param(
                "text", "text", "The statement, kept verbatim", required=True, aliases=("content",)
            ),
            *_fact_params,
        ),
        "fact, cluster, created, collisions[], related[], revision",
        deadline="write",
        mutates=True,
    ),
    Method(
        "remember",
        "State a fact or a note (Remind's and Recursive's spelling).",
        (
            Param("content", "text", "The statement", required=True, aliases=("text",)),
            Param(
                "episode_type",
                "text",
                "`fact` (default) or another kind of note",
                aliases=("type", "t"),
            ),
            *_fact_params,
        ),
        "as remember_fact",
        deadline="write",
        mutates=True,
    ),
    Method(
        "recall_fact",
        "Find facts by words and meaning.",
        (
            Param("query", "text", "Words; absent: most recently used first"),
            _tags,
            _entities,
            _kind,
            _scope,
            _workspace,
            _as_of,
            _known_at,
            Param("include_superseded", "bool", "Also facts that were replaced or forgotten"),
            _limit,
            _explain,
        ),
        "facts[] (scope and score on each), conflicts[] that touch them, mode",
        deadline="search",
    ),
    Method(
        "update_fact",
        "Replace a fact by a new text; the old one is superseded.",
        (
            _id,
            Param("text", "text", "The new statement", required=True, aliases=("new_text",)),
            *_fact_params,
        ),
        "old, new, collisions[]",
        deadline="write",
        mutates=True,
    ),
    Method(
        "forget_fact",
        "Forget a fact; `hard` removes every byte of it and proves that.",
        (
            _id,
            _scope,
            _workspace,
            Param("hard", "bool", "Remove the text everywhere, no undo"),
            Param("undo", "bool", "Take a soft forget back"),
            _reason,
        ),
        "fact, forgotten, proof when hard",
        deadline="long",
        mutates=True,
        aliases=("forget",),
    ),
    Method(
        "verify_fact",
        "Say that a fact still holds (its file or commit was checked).",
        (_id, _scope, _workspace),
        "fact",
        deadline="write",
        mutates=True,
    ),
    Method(
        "fact",
        "One fact with its history, conflicts and origin.",
        (_id, _scope, _workspace),
        "fact, history[], conflicts[], session",
    ),
    Method(
        "fact_history",
        "The chain of a fact: what it replaced and what replaced it.",
        (_id, _scope, _workspace),
        "history[] oldest first, log[]",
    ),
    Method(
        "facts",
        "List facts, newest first.",
        (
            _scope,
            _workspace,
            _tags,
            _entities,
            _kind,
            _since,
            _until,
            _as_of,
            _known_at,
            Param("include_superseded", "bool", "Also replaced and forgotten ones"),
            Param("after", "text", "Page: the `next` of the answer before"),
            _limit,
        ),
        "facts[], total, next",
    ),
    Method(
        "apply",
        "Run a batch of triage operations, all or nothing.",
        (
            Param("ops", "ops", "Text, one op a line, or a list of maps", required=True),
            Param("dry_run", "bool", "Check and report, change nothing"),
            _workspace,
            _scope,
            Param("idempotency_key", "text", "The same key never runs twice"),
        ),
        "results[] one per op, ids bound to names, batch",
        deadline="write",
        mutates=True,
    ),
    Method(
        "undo",
        "Take back a batch or one operation of the change log.",
        (
            Param("id", "text", "Log entry or batch; default: the last of this workspace"),
            _workspace,
            _scope,
        ),
        "undone[]",
        deadline="write",
        mutates=True,
    ),
    Method(
        "log",
        "The change log: who did what and when.",
        (
            _scope,
            _workspace,
            Param("id", "text", "Only entries about this fact or conflict"),
            _since,
            _limit,
        ),
        "entries[]",
    ),
    Method(
        "snapshot",
        "Several views of the facts in one call.",
        (
            Param(
                "scopes",
                "list",
                "entity:..., cluster:..., conflicts, recent:N, stats, pending, "
                "workspace, query:...",
                required=True,
            ),
            _as_of,
            _known_at,
            _workspace,
            Param("format", "text", "Form of the answer", choices=("json", "text")),
        ),
        "timestamp, scopes, one key per scope, text",
        deadline="search",
    ),
    Method(
        "conflicts",
        "Conflicts by state.",
        (
            Param("status", "text", "State", choices=("open", "resolved", "dismissed", "all")),
            _scope,
            _workspace,
            _limit,
        ),
        "conflicts[]",
    ),
    Method(
        "clusters",
        "Fact clusters with their facts.",
        (Param("id", "text", "One cluster (C4)"), _scope, _workspace, _limit),
        "clusters[]",
    ),
    Method(
        "entities",
        "Entities with counts, aliases and suggestions for a text.",
        (
            _scope,
            _workspace,
            Param("text", "text", "Suggest known entities for this text"),
            Param("merge", "list", "[from, into]: join two entities"),
            Param("alias", "list", "[alias, entity]: another name of an entity"),
            _limit,
        ),
        "entities[] or suggestions[]",
        deadline="write",
        idempotent=True,
    ),
    # -- sessions --------------------------------------------------------------------------
    Method(
        "episodic_recall",
        "Find what happened in past sessions.",
        (
            Param("query", "text", "Words"),
            _since,
            _until,
            _workspace,
            _everywhere,
            _agent,
            Param("session_id", "text", "Only this session (a unique prefix will do)"),
            Param("file", "text", "Only sessions and messages that touched this path"),
            Param("command", "text", "Only where such a command ran"),
            Param("commit", "text", "Only sessions that made this commit"),
            Param("failed", "bool", "Only failed actions"),
            Param("role", "text", "Only messages of this role", choices=ROLES),
            _limit,
            Param(
                "context_messages",
                "int",
                "Neighbours on each side, 0 to 10",
                aliases=("context_lines",),
            ),
            Param("deep", "bool", "Rerank the best with token vectors (slower)"),
            _explain,
        ),
        "sessions[] with excerpts[], mode, degraded[]",
        deadline="search",
    ),
    Method(
        "episodic_recall_summary",
        "The block about the last session or sessions.",
        (_workspace, Param("last", "int", "How many sessions, 1 to 20")),
        "text, sessions[]",
    ),
    Method(
        "recall",
        "Facts and sessions together.",
        (
            Param("query", "text", "Words", required=True),
            _as_of,
            _known_at,
            _since,
            _until,
            _workspace,
            _everywhere,
            _agent,
            Param("file", "text", "Path touched"),
            Param("command", "text", "Command run"),
            Param("parts", "list", "facts, sessions; default both"),
            _limit,
            Param("deep", "bool", "Rerank the best with token vectors"),
            _explain,
        ),
        "facts[], conflicts[], sessions[], mode, degraded[]",
        deadline="search",
    ),
    Method(
        "sessions",
        "Past sessions, newest first.",
        (
            _workspace,
            _everywhere,
            _agent,
            _since,
            _until,
            Param("status", "text", "completed, failed, interrupted, active"),
            Param("file", "text", "Path touched"),
            Param("command", "text", "Command run"),
            Param("commit", "text", "Commit made"),
            Param("failed", "bool", "With failed actions"),
            Param("subagents", "bool", "Also sessions of subagents"),
            Param("after", "text", "Page: the `next` of the answer before"),
            _limit,
        ),
        "sessions[], total, next",
    ),
    Method(
        "session",
        "One session: summary, actions, lineage, facts stated in it.",
        (Param("id", "text", "Session id or unique prefix", required=True),),
        "session",
    ),
    Method(
        "session_messages",
        "A span of messages of one session.",
        (
            Param("id", "text", "Session id or unique prefix", required=True),
            Param("from", "int", "First position, from 0"),
            Param("to", "int", "Last position"),
            Param("around", "text", "Message id in the middle"),
            _limit,
        ),
        "messages[], next",
    ),
    Method(
        "forget_session",
        "Forget sessions and all that was derived from them.",
        (
            Param("id", "text", "Session id or unique prefix"),
            Param("query", "text", "Sessions that match"),
            Param("path", "text", "Workspace path"),
            Param("facts", "bool", "Also the facts stated in them"),
            Param("dry_run", "bool", "Only say what would go"),
        ),
        "sessions[], removed counts, proof",
        deadline="long",
        mutates=True,
    ),
    # -- injection -------------------------------------------------------------------------
    Method(
        "context",
        "Text for an agent's prompt in the seeds' form, within a budget.",
        (
            _workspace,
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
    # -- indexing --------------------------------------------------------------------------
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
        ),
        "accepted",
        deadline="long",
        mutates=True,
        idempotent=True,
    ),
    # -- workspaces ------------------------------------------------------------------------
    Method(
        "workspace",
        "Identity of a workspace and how it was found.",
        (
            Param("path", "text", "Any path in it"),
            Param("action", "text", "What to do", choices=("explain", "list", "alias", "split")),
            Param("target", "text", "For alias: the workspace whose memory this path joins"),
        ),
        "id, root, how, worktree, aliases[] or workspaces[]",
        deadline="write",
        idempotent=True,
    ),
    # -- care ------------------------------------------------------------------------------
    Method(
        "status",
        "Everything about the daemon, with degraded modes and remedies.",
        (),
        "pid, version, protocol, socket, stores, roots, queues, memory, degraded[]",
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
        "files[]",
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
            _scope,
            _workspace,
            Param("after", "text", "Page"),
        ),
        "text, next",
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
            _scope,
            _workspace,
        ),
        "created, merged, kept_malformed, collisions[]",
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

BY_NAME: "dict[str, Method]" = {m.name: m for m in METHODS}
for _m in METHODS:
    for _alias in _m.aliases:
        BY_NAME[_alias] = _m


def is_idempotent(name: str) -> bool:
    """Whether `name` may be sent twice; an unknown method may not."""
    method = BY_NAME.get(name)
    return method is not None and method.idempotent
