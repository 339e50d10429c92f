"""The table of places: where each agent keeps its sessions by default, what moves them, and
which of the files there are transcripts or say something about one."""

from typing import Final

from lored.core.transcripts.place import FILE, Place

_PACKED: Final = r"(?:\.zst|\.gz)?"
_VSCODE_HOSTS: Final = (
    "Code",
    "Code - Insiders",
    "VSCodium",
    "Cursor",
    "Windsurf",
    "Antigravity",
    "Kiro",
    "Trae",
)


def _vscode_places() -> tuple[Place, ...]:
    """Task folders of Cline and its forks in the global storage of every editor that hosts
    them."""
    users = [f"{base}/{host}/User" for host in _VSCODE_HOSTS for base in _HOST_BASES]
    users += [f"{server}/data/User" for server in (".vscode-server", ".cursor-server")]
    return tuple(
        Place(
            agent,
            f"{user}/globalStorage/{extension}",
            ("tasks/*/*.json",),
            ((r"tasks/[^/]+/(?:ui|claude)_messages\.json", agent),),
            r"tasks/[^/]+/(?:api_conversation_history|history_item)\.json",
        )
        for user in users
        for agent, extension in _EXTENSIONS
    )


_HOST_BASES: Final = (".config", "Library/Application Support")
_EXTENSIONS: Final = (
    ("cline", "saoudrizwan.claude-dev"),
    ("roo-code", "rooveterinaryinc.roo-cline"),
    ("kilo-code", "kilocode.kilo-code"),
)

_CLAUDE: Final = (
    (rf"projects/[^/]+/(?:[^/]+/subagents/(?:.*/)?agent-)?[^/]+\.jsonl{_PACKED}", "claude-code"),
)
_CLAUDE_GLOBS: Final = ("projects/**/*.jsonl*", "projects/**/agent-*.meta.json", "history.jsonl")
_CLAUDE_SIDE: Final = r"history\.jsonl|projects/(?:.*/)?agent-[^/]+\.meta\.json"
_CODEX: Final = (
    (rf"(?:sessions/(?:.*/)?|archived_sessions/)rollout-[^/]+\.jsonl{_PACKED}", "codex"),
)
_CODEX_GLOBS: Final = (
    "sessions/**/rollout-*.jsonl*",
    "archived_sessions/rollout-*.jsonl*",
    "session_index.jsonl",
    "history.jsonl",
)
_CODEX_SIDE: Final = r"session_index\.jsonl|history\.jsonl"
_ANTIGRAVITY: Final = (
    (r"brain/[^/]+/\.system_generated/logs/transcript(?:_full)?\.jsonl", "antigravity"),
)
_ANTIGRAVITY_GLOBS: Final = (
    "brain/*/.system_generated/logs/transcript*.jsonl",
    "cache/last_conversations.json",
    "history.jsonl",
)
_ANTIGRAVITY_SIDE: Final = r"cache/last_conversations\.json|history\.jsonl"
_RECURSIVE: Final = (
    (rf"(?:.*/)?transcript\.jsonl{_PACKED}", "recursive"),
    (r"(?:.*/)?sessions/(?:[^/]+/)?\d{4}-\d\d-\d\dT[^/]+\.json", "recursive-file"),
)
_KIRO: Final = ((r"data\.sqlite3", "kiro"),)
_PI: Final = ((rf"sessions/[^/]+/[^/]+\.jsonl{_PACKED}", "pi"),)

PLACES: Final[tuple[Place, ...]] = (
    Place(
        "recursive",
        ".recursive",
        ("workspaces/*/sessions/**/*", "workspaces/*/path.txt"),
        _RECURSIVE,
        r"(?:.*/)?(?:\.meta\.json|cost\.json|path\.txt)",
        (("RECURSIVE_HOME", ""),),
    ),
    Place(
        "recursive",
        "",
        ("**/*",),
        _RECURSIVE,
        r"(?:.*/)?(?:\.meta\.json|cost\.json)",
        (("RECURSIVE_SESSIONS_DIR", ""),),
    ),
    Place(
        "claude-code",
        ".claude",
        _CLAUDE_GLOBS,
        _CLAUDE,
        _CLAUDE_SIDE,
        (("CLAUDE_CONFIG_DIR", ""),),
    ),
    Place(
        "claude-code",
        ".config/claude",
        _CLAUDE_GLOBS,
        _CLAUDE,
        _CLAUDE_SIDE,
        (("XDG_CONFIG_HOME", "claude"),),
    ),
    Place("codex", ".codex", _CODEX_GLOBS, _CODEX, _CODEX_SIDE, (("CODEX_HOME", ""),)),
    Place(
        "codex",
        "Library/Developer/Xcode/CodingAssistant/codex",
        _CODEX_GLOBS,
        _CODEX,
        _CODEX_SIDE,
    ),
    Place(
        "gemini-cli",
        ".gemini",
        ("tmp/*/chats/**/*.json*", "tmp/*/.project_root"),
        (
            (rf"tmp/[^/]+/chats/(?:[^/]+/)?[^/]+\.jsonl{_PACKED}", "gemini-cli"),
            (r"tmp/[^/]+/chats/[^/]+\.json", "gemini-cli-document"),
        ),
        r"tmp/[^/]+/\.project_root",
        (("GEMINI_CLI_HOME", ".gemini"),),
    ),
    Place(
        "antigravity",
        ".gemini/antigravity-cli",
        _ANTIGRAVITY_GLOBS,
        _ANTIGRAVITY,
        _ANTIGRAVITY_SIDE,
    ),
    Place(
        "antigravity", ".gemini/antigravity", _ANTIGRAVITY_GLOBS, _ANTIGRAVITY, _ANTIGRAVITY_SIDE
    ),
    Place(
        "antigravity",
        ".gemini/antigravity-ide",
        _ANTIGRAVITY_GLOBS,
        _ANTIGRAVITY,
        _ANTIGRAVITY_SIDE,
    ),
    Place(
        "opencode",
        ".local/share/opencode",
        (
            "opencode*.db",
            "storage/session/*/*.json",
            "storage/message/*/*.json",
            "storage/part/*/*.json",
        ),
        (
            (r"opencode(?:-[\w.-]+)?\.db", "opencode"),
            (r"storage/session/[^/]+/ses_[^/]+\.json", "opencode-tree"),
            (r"storage/message/[^/]+/msg_[^/]+\.json", "opencode-tree"),
            (r"storage/part/[^/]+/prt_[^/]+\.json", "opencode-tree"),
        ),
        None,
        (("XDG_DATA_HOME", "opencode"),),
    ),
    Place(
        "opencode",
        "",
        ("*.db", "*.sqlite"),
        ((r"[^/]*opencode[^/]*\.(?:db|sqlite3?)", "opencode"),),
        None,
        (("OPENCODE_DB", FILE),),
    ),
    Place(
        "copilot-cli",
        ".copilot",
        (
            "session-state/*/events.jsonl*",
            "session-state/*.jsonl*",
            "session-state/*/workspace.yaml",
            "history-session-state/*.jsonl*",
        ),
        (
            (
                rf"(?:session-state/(?:[^/]+/events|[^/]+)|history-session-state/[^/]+)\.jsonl{_PACKED}",
                "copilot-cli",
            ),
        ),
        r"session-state/[^/]+/workspace\.yaml",
        (("COPILOT_HOME", ""),),
    ),
    Place("pi", ".pi/agent", ("sessions/*/*.jsonl*",), _PI, None, (("PI_CODING_AGENT_DIR", ""),)),
    Place("pi", ".omp/agent", ("sessions/*/*.jsonl*",), _PI),
    Place(
        "qwen-code",
        ".qwen",
        ("projects/*/chats/**/*.jsonl*", "tmp/*/chats/*.json"),
        (
            (rf"projects/[^/]+/chats/(?:[^/]+/)*[^/]+\.jsonl{_PACKED}", "qwen-code"),
            (r"tmp/[^/]+/chats/[^/]+\.json", "qwen-code-document"),
        ),
        None,
        (("QWEN_HOME", ""),),
    ),
    Place(
        "goose",
        ".local/share/goose/sessions",
        ("sessions.db", "*.jsonl"),
        ((r"sessions\.db", "goose"), (rf"[^/]+\.jsonl{_PACKED}", "goose-log")),
        None,
        (("GOOSE_PATH_ROOT", "data/sessions"), ("XDG_DATA_HOME", "goose/sessions")),
    ),
    *_vscode_places(),
    Place(
        "cline",
        ".cline/data",
        ("tasks/*/*.json", "sessions/*/*.json"),
        (
            (r"tasks/[^/]+/(?:ui|claude)_messages\.json", "cline"),
            (r"sessions/[^/]+/[^/]+\.messages\.json", "cline-sessions"),
        ),
        r"tasks/[^/]+/(?:api_conversation_history|history_item)\.json"
        r"|sessions/([^/]+)/\1\.json",
        (("CLINE_DIR", "data"),),
    ),
    Place(
        "aider",
        "",
        ("*.md",),
        ((r"(?:.*/)?[^/]*aider[^/]*history[^/]*\.md", "aider"),),
        None,
        (("AIDER_CHAT_HISTORY_FILE", FILE),),
    ),
    Place(
        "cursor",
        ".cursor",
        ("projects/*/agent-transcripts/**/*.jsonl*",),
        ((rf"projects/[^/]+/agent-transcripts/(?:.*/)?[^/]+\.jsonl{_PACKED}", "cursor"),),
    ),
    Place(
        "amp",
        ".local/share/amp/threads",
        ("T-*.json",),
        ((r"T-[^/]+\.json", "amp"),),
        None,
        (("XDG_DATA_HOME", "amp/threads"),),
    ),
    Place(
        "droid",
        ".factory",
        ("sessions/**/*.jsonl*", "sessions/**/*.settings.json"),
        ((rf"sessions/(?:[^/]+/)*[^/]+\.jsonl{_PACKED}", "droid"),),
        r"sessions/(?:[^/]+/)*[^/]+\.settings\.json",
    ),
    Place(
        "kiro",
        ".local/share/kiro-cli",
        ("data.sqlite3",),
        _KIRO,
        None,
        (("XDG_DATA_HOME", "kiro-cli"),),
    ),
    Place("kiro", "Library/Application Support/kiro-cli", ("data.sqlite3",), _KIRO),
    Place(
        "kiro",
        ".local/share/amazon-q",
        ("data.sqlite3",),
        _KIRO,
        None,
        (("XDG_DATA_HOME", "amazon-q"),),
    ),
    Place(
        "kiro",
        ".kiro",
        ("sessions/**/*.json",),
        ((r"sessions/(?:.*/)?[^/]+\.json", "kiro-document"),),
    ),
)
