"""The operations of `apply`: names, arguments, which are ids, what trailing text means.

The one table; parser, validation, execution and the documentation are made from it.
"""

from typing import Final, NamedTuple

from lore.wire.methods import SEVERITIES


class Operation(NamedTuple):
    """One operation of the language.

    ``required`` and ``optional`` are canonical argument names; ``text`` is the argument that
    unnamed quoted text fills; ``gives`` says whether `as=name` may bind its id.
    """

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    text: str | None
    gives: bool
    doc: str


_STATED: Final = (
    "entities",
    "tags",
    "kind",
    "asserted_by",
    "source_ref",
    "source",
    "valid_from",
    "valid_to",
    "session_id",
    "message_id",
)
_BY: Final = ("asserted_by", "note")

OPERATIONS: Final = (
    Operation("remember", ("content",), _STATED, "content", True, "State a fact."),
    Operation("supersede", ("old", "new"), _BY, "note", False, "A newer fact replaces an older."),
    Operation(
        "conflict",
        ("fact_a", "fact_b"),
        ("severity", *_BY),
        "note",
        True,
        f"Flag a contradiction to settle later; severity {', '.join(SEVERITIES)}.",
    ),
    Operation("resolve", ("id", "winner"), _BY, "note", False, "Settle a conflict: one fact wins."),
    Operation("dismiss", ("id",), _BY, "note", False, "No conflict after all: both facts stay."),
    Operation("forget", ("id",), _BY, "note", False, "Forget a fact (undo is possible)."),
    Operation("restore", ("id",), _BY, "note", False, "Take a forget back."),
    Operation("update", ("id", "content"), _STATED, "content", True, "New text for a fact."),
    Operation("tag", ("id",), ("add", "remove", *_BY), "note", False, "Change a fact's tags."),
    Operation("entity", ("id",), ("add", "remove", *_BY), "note", False, "Change its entities."),
    Operation("verify", ("id",), _BY, "note", False, "The fact was checked and still holds."),
    Operation(
        "processed", ("ids",), _BY, "note", False, "Collisions were looked at; all facts stay."
    ),
    Operation("alias", ("alias", "entity"), _BY, "note", False, "Another name of an entity."),
    Operation("merge", ("from", "into"), _BY, "note", False, "Two entities are one."),
)

BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}

SPELLINGS: Final = {"delete": "forget", "entities": "entity", "ignore": "processed"}
"""Other names of operations (Remind's `delete`)."""

ARGUMENTS: Final = {
    "e": "entities",
    "t": "kind",
    "type": "kind",
    "episode_type": "kind",
    "text": "content",
    "by": "asserted_by",
    "ref": "source_ref",
    "a": "fact_a",
    "b": "fact_b",
    "reason": "note",
    "description": "note",
    "session": "session_id",
    "message": "message_id",
}
"""Short and foreign names of arguments."""

LISTS: Final = frozenset({"entities", "tags", "ids", "add", "remove"})
"""Arguments that hold several values, separated by commas in the text form."""

IDS: Final = frozenset({"id", "old", "new", "fact_a", "fact_b", "winner", "ids"})
"""Arguments that name facts or conflicts: only these may hold `$name`."""

REMIND_ONLY: Final = frozenset(
    {
        "concept",
        "topic",
        "set_topic",
        "link",
        "unlink",
        "entity_relation",
        "evidence",
        "reshape",
        "split",
    }
)
"""Operations of Remind on what this memory does not have; the refusal says what to use."""
