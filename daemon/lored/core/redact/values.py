"""Whether the value of `name = value` is a secret: names that promise one, values that are one.

Pure judgement without regard to position. A name alone proves nothing (`token: string`) and
a random-looking value alone neither (lock files are full of hashes): only both together do.
"""

import math
import re
from collections import Counter
from typing import Final

SECRET_STEMS: Final = ("pass", "pwd", "secret", "token", "key")
"""Lower-case stems; the scanner finds these and matches `ASSIGNMENT` at each."""

ASSIGNMENT: Final = re.compile(
    r"(?P<stem>pass(?:words?|wd|phrase|code)?|pwd|secrets?|tokens?|keys?)"
    r"(?P<rest>[\w.-]{0,40})"
    r"(?:\\*[\"'`])?\]?(?P<separator>\s{0,4}(?:=>|:=|==?|:)\s{0,4}|[ ]{1,2})"
    r"(?:(?P<quote>\\*[\"'`])(?P<quoted>[^\"'`\n\\]{4,500})(?=\\*[\"'`])"
    r"|(?P<bare>[^\s\"'`,;&|<>(){}\[\]\\]{6,500}))",
    re.IGNORECASE,
)
"""Matched at the stem. A separator of spaces counts only after a command-line flag."""

_KEY_OWNERS: Final = re.compile(
    r"(?:api|access|secret|private|signing|encryption|encrypt|auth|account|storage|master"
    r"|service|deploy|client|subscription|license|hmac|shared|session|webhook|ssh|rsa|admin"
    r"|consumer|write|read|ingest|anthropic|openai|app|application)[_.-]?$",
    re.IGNORECASE,
)
"""What stands before `key` when a key is a secret (a plain `key=` is any map's)."""

_HARMLESS_REST: Final = re.compile(
    r"^[_.-]?(?:s$|id|ids|name|names|type|types|count|counts|limit|limits|length|len|size|sizes"
    r"|field|fields|input|inputs|output|policy|path|paths|file|files|url|uri|endpoint|hash"
    r"|hashes|prefix|suffix|index|idx|pos|position|usage|used|total|max|min|budget|expir\w*|ttl"
    r"|at|by|env|var|ref|rotation|label|hint|error|errors|regex|pattern|reset|required|valid"
    r"|validator|validation|provider|manager|store|service|class|list|map|set|code|ring|board"
    r"|word|words|press|down|up|frame|frames|stroke|strokes|note|per\w*|iz\w*|ed|es|ing|ion"
    r"|through|port|ive|age|engers?|er|ers|able|facts?|version|fingerprint|algorithm|alg|format)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Continuations of the stem that make the name harmless (`token_count`, `passed`, `keyboard`)."""

_PLACEHOLDER: Final = re.compile(
    r"^\[redacted|\$\{|\$\(|\{\{|^[$%<]|%s|%\(|process\.env|environ|getenv|\.\.\.|…|\*{3}|x{4,}|X{4,}"
    r"|your[_-]?|_here$|change[_-]?me|placeholder|example|dummy|sample|redacted|insert[_-]"
    r"|^(?:string|str|text|bytes|none|null|nil|undefined|true|false|optional|required|secret"
    r"|password|passwd|pass|token|test|testing|default|empty|unset|missing|hidden|invalid|value"
    r"|admin|root|user|postgres|mysql|redis|guest|foo|bar|foobar|abc|any|unknown|self|this)$",
    re.IGNORECASE,
)
"""Values that stand for a secret and are none."""

_EXPRESSION: Final = re.compile(
    r"^(?:[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+|[A-Za-z_]+|[A-Z][A-Z0-9_]+|@\w+.*|/.*|~/.*|\./.*"
    r"|https?:.*|[\d.,_]+[%a-zA-Z]{0,2}|#[0-9a-fA-F]{3,8}|\w+(?:/\w+)+)$"
)
"""Unquoted values that are code, a type, a path or a number."""

_HEX: Final = re.compile(r"^[0-9a-fA-F]+$")
_RANDOM_CHARACTERS: Final = re.compile(r"^[A-Za-z0-9_\-+/=.~:!@#$%^&*?]+$")
_WORD_PIECES: Final = re.compile(r"[_\-./:=+]")

_BASE64: Final = re.compile(r"^(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+/]{32,}={0,2}$")
RAW_ENTROPY: Final = 4.2
"""Bits a character of 32 or more base64 characters that only randomness reaches: measured on
file paths of as many characters the highest is 4.0."""

HEX_ENTROPY: Final = 2.8
"""Bits a character from which a hexadecimal value counts as random; detect-secrets' default
limit is 3.0, ours is lower because the name is already suspicious."""

BASE64_ENTROPY: Final = 3.4
"""The same for wider alphabets (detect-secrets without regard to the name: 4.5)."""


def entropy(value: str) -> float:
    """Shannon entropy of the characters of ``value``, bits a character."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def is_placeholder(value: str) -> bool:
    """Whether ``value`` stands for a secret without being one (`${TOKEN}`, `changeme`)."""
    return len(set(value)) < 4 or _PLACEHOLDER.search(value) is not None


def names_secret(stem: str, rest: str, before: str) -> str | None:
    """The rule a name falls under: `password`, `secret`, or None for a harmless name.

    ``before`` are the characters that precede the stem, ``rest`` those that follow it.
    """
    kind = stem.lower()
    if _HARMLESS_REST.match(rest):
        return None
    if kind.startswith("key") and not _KEY_OWNERS.search(before):
        return None
    if kind.startswith("pass") or kind == "pwd":
        if kind == "pass" and before[-1:] not in ("_", "-", ".", '"', "'"):
            return None  # bypass, PASS: test_name
        return "password"
    return "secret"


def is_secret(rule: str, value: str, *, quoted: bool, env_style: bool) -> bool:
    """Whether ``value``, assigned to a name of ``rule``, is a real secret.

    ``quoted``: it stood in quotes; ``env_style``: `UPPER_NAME=value` without spaces, as in
    environment files.
    """
    if is_placeholder(value):
        return False
    if rule == "secret" and _BASE64.match(value) and entropy(value) >= RAW_ENTROPY:
        return True  # also with slashes, which would pass for a path
    if not quoted and _EXPRESSION.match(value):
        return env_style and _is_long_word(value)
    if any(c.isspace() for c in value):
        return False
    digit = any(c.isdigit() for c in value)
    letter = any(c.isalpha() for c in value)
    symbol = any(not c.isalnum() for c in value)
    if rule == "password":
        mixed = value != value.lower() and value != value.upper()
        return letter and len(value) >= 6 and (digit or (symbol and mixed)) and not _is_path(value)
    return letter and digit and is_random(value)


def is_random(value: str) -> bool:
    """Whether ``value`` looks drawn at random rather than written by a person."""
    if len(value) < 16 or not _RANDOM_CHARACTERS.match(value) or _is_path(value):
        return False
    if _HEX.match(value.replace("-", "")):
        return entropy(value) >= HEX_ENTROPY
    pieces = [piece for piece in _WORD_PIECES.split(value) if piece]
    words = sum(len(p) for p in pieces if p.isalpha() and (p.islower() or p.istitle()))
    return words * 2 < len(value) and entropy(value) >= BASE64_ENTROPY


def _is_path(value: str) -> bool:
    return value.startswith(("/", "./", "~/", "http:", "https:", "file:")) or "://" in value


def _is_long_word(value: str) -> bool:
    """`DB_PASSWORD=correcthorsebattery`: one long lower-case word of an environment file."""
    return len(value) >= 12 and value.isalpha() and value.islower()
