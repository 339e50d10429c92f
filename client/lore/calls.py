"""Every method of the table as a Python method: `client.remember_fact(text="...")`.

At run time the methods are looked up in the table on first use, which costs a shim nothing;
their signatures for people and type checkers are in calls.pyi, generated from the same table
by `python -m lore.wire.document`. `import_` stands for `import`, `global_` for `global`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Calls:
    """Mix-in for a class with `call(method, params, *, timeout)`, blocking or not."""

    def __getattr__(self, name: str) -> "Any":
        from lore.wire.methods import BY_NAME

        method = BY_NAME.get(name.rstrip("_"))
        if method is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        call = self.call

        def caller(*, timeout: "float | None" = None, **named: object) -> object:
            params = {key.rstrip("_"): value for key, value in named.items() if value is not None}
            return call(name.rstrip("_"), params, timeout=timeout)

        caller.__name__ = caller.__qualname__ = name
        caller.__doc__ = method.doc
        return caller


class AsyncCalls(Calls):
    """The same for a client whose `call` is a coroutine: `await client.ping()`."""
