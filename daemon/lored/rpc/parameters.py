"""Parameters of a call against the method table: names, aliases, types, choices.

Pure. The codec has already refused text that is not UTF-8, integers beyond 2^53 and nesting
beyond the limit, so only shape is checked here. A parameter that is nil is absent.
"""

import difflib
from typing import Any, Final

from lore.errors import Invalid
from lore.wire.methods import METHODS, Method, Param

_KINDS: Final = {
    "text": "text",
    "date": "a date as text",
    "int": "an integer",
    "number": "a number",
    "bool": "true or false",
    "list": "a list of texts",
    "map": "a map",
    "ops": "text or a list of maps",
}

_PATHS: Final = frozenset({"path", "paths", "workspace", "target", "file"})
"""Parameters that are paths, by name."""


class Form:
    """The parameters of one method, prepared for checking."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self._by_name: dict[str, Param] = {}
        for param in method.params:
            for name in (param.name, *param.aliases):
                self._by_name.setdefault(name, param)
        self._required = tuple(param for param in method.params if param.required)

    def read(self, given: dict[str, Any]) -> dict[str, Any]:
        """The checked parameters under their canonical names. Raises `Invalid`."""
        found: dict[str, Any] = {}
        for name, value in given.items():
            if value is None:
                continue
            param = self._by_name.get(name)
            if param is None:
                raise self._unknown(name)
            if param.name in found:
                raise Invalid(
                    f"{self.method.name}: {param.name} is given twice ({name} is its alias)",
                    {"parameter": param.name},
                )
            found[param.name] = self._checked(param, value)
        for param in self._required:
            if param.name not in found:
                raise Invalid(
                    f"{self.method.name}: parameter {param.name} is missing: {param.doc}",
                    {"parameter": param.name},
                )
        return found

    def _unknown(self, name: str) -> Invalid:
        near = difflib.get_close_matches(name, self._by_name, 1)
        if near:
            hint = f"did you mean {near[0]}?"
        elif self.method.params:
            hint = "it takes " + ", ".join(param.name for param in self.method.params)
        else:
            hint = "it takes none"
        return Invalid(
            f"{self.method.name}: unknown parameter {name[:80]}; {hint}", {"parameter": name[:80]}
        )

    def _checked(self, param: Param, value: Any) -> Any:
        kind, wanted = type(value), param.type
        if wanted in ("text", "date"):
            fits = kind is str
        elif wanted == "int":
            fits = kind is int
        elif wanted == "number":
            fits = kind is int or kind is float
        elif wanted == "bool":
            fits = kind is bool
        elif wanted == "list":
            if kind is str:
                value, kind = [value], list  # one tag, as Recursive's tools write it
            fits = kind is list and all(type(item) is str for item in value)
        elif wanted == "map":
            fits = kind is dict
        elif wanted == "ops":
            fits = kind is str or (kind is list and all(type(item) is dict for item in value))
        else:
            fits = True
        if not fits:
            raise Invalid(
                f"{self.method.name}: {param.name} must be {_KINDS[wanted]}",
                {"parameter": param.name},
            )
        if param.name in _PATHS and value is not None and "\0" in "".join(value):
            # Python's own path functions raise here or do not, by release.
            raise Invalid(
                f"{self.method.name}: {param.name}: no path holds a NUL character",
                {"parameter": param.name},
            )
        if param.choices and value not in param.choices:
            raise Invalid(
                f"{self.method.name}: {param.name} must be one of {', '.join(param.choices)}",
                {"parameter": param.name, "choices": list(param.choices)},
            )
        return value


FORMS: Final = {method.name: Form(method) for method in METHODS}
"""By canonical method name."""
