"""config.toml and the environment become `Settings`; the only reader of the file.

Merging and checking are `services.settings`; this adds the disk. A missing file means the
defaults. Every failure is one sentence that names the file.
"""

import os
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from lore import realms
from lore.errors import Invalid
from lored.runtime.logs import LEVELS
from lored.services import settings
from lored.services.settings import Settings

CONFIG_BYTES: Final = 1 << 20
"""Largest file read; a real one has a few hundred bytes, a mistaken link may be a disk image."""


def read(path: str) -> dict[str, Any]:
    """The parsed file, or {} when there is none. Raises `Invalid`."""
    try:
        with open(path, "rb") as file:
            raw = file.read(CONFIG_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Invalid(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > CONFIG_BYTES:
        raise Invalid(f"{path}: larger than {CONFIG_BYTES} bytes; is it the right file?")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Invalid(f"{path}: not UTF-8 at byte {error.start}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Invalid(f"{path}: {error}") from None


def load(path: str, env: Mapping[str, str] | None = None) -> Settings:
    """The settings in force: defaults, then the file at ``path``, then ``env`` (default: the
    process's own). Raises `Invalid` that names the file if the fault is there."""
    found = read(path)
    try:
        settings.merge(found, {})
    except Invalid as error:
        raise Invalid(f"{path}: {error.message.removeprefix('config.toml: ')}") from None
    try:
        realms.parse(found.get("realms", {}))
    except Invalid as error:
        raise Invalid(f"{path}: {error.message}") from None
    merged = settings.merge(found, dict(os.environ if env is None else env))
    if merged.log_level not in LEVELS:
        raise Invalid(f"setting log_level: {merged.log_level!r} is none of {', '.join(LEVELS)}")
    return merged
