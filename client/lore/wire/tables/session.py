"""The conversation itself: hello, events, drain."""

from lore.wire.method import Method, Param
from lore.wire.parameters import LIMIT, REASON, WORKSPACE

METHODS: "tuple[Method, ...]" = (
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
        "version, protocol, instance, revision, limits; starting (true) while the daemon still "
        "opens its stores: calls wait for that, and only then does their deadline begin",
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
            WORKSPACE,
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
            WORKSPACE,
            LIMIT,
        ),
        "changes[], revision, fresh (store replaced: resync)",
    ),
    Method(
        "drain",
        "Finish and exit, so that a newer daemon can start.",
        (REASON,),
        "draining",
        mutates=True,
    ),
)
