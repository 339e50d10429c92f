"""Recall of facts (being completed)."""

from typing import Any


async def recall(app: Any, service: Any, call: Any, params: Any) -> Any:
    raise NotImplementedError
