"""Choices and parameters that several methods share."""

from lore.wire.method import Param

SCOPES = ("global", "workspace")
KINDS = ("fact", "decision", "observation", "preference", "assumption")
SEVERITIES = ("low", "medium", "high")
ROLES = ("user", "assistant", "tool", "summary", "context")

WORKSPACE = Param("workspace", "text", "Path inside a workspace, or its id; default: from hello")
SCOPE = Param("scope", "text", "One scope only; default: both merged for reads", choices=SCOPES)
LIMIT = Param("limit", "int", "Most results, 1 to 200", aliases=("k",))
SINCE = Param("since", "date", "Only what is not older")
UNTIL = Param("until", "date", "Only what is older")
AS_OF = Param("as_of", "date", "Answer with what was valid then")
KNOWN_AT = Param("known_at", "date", "Answer with what was recorded by then")
EXPLAIN = Param("explain", "bool", "Return the parts of each score")
EVERYWHERE = Param("everywhere", "bool", "All workspaces instead of the current one")
AGENT = Param("agent", "text", "Only sessions of this agent, e.g. claude-code")
TAGS = Param("tags", "list", "Free labels, order and case kept", aliases=("tag",))
ENTITIES = Param("entities", "list", "`type:name` each; a bare name becomes `subject:name`")
KIND = Param("kind", "text", "What sort of statement", choices=KINDS)
REASON = Param("reason", "text", "Why, kept in the change log")
ID = Param("id", "text", "F3, global:F3, workspace:F3, fact:F3 or the uid", required=True)

FACT_PARAMS = (
    TAGS,
    ENTITIES,
    KIND,
    Param("scope", "text", "Default: workspace if there is one, else global", choices=SCOPES),
    Param("global", "bool", "Same as scope=global (Recursive's spelling)"),
    WORKSPACE,
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
