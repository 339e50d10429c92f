"""The shape of one method and one parameter of the table. Pure data, imports nothing."""


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
