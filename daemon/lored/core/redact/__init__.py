"""Secrets out of text, before it is stored: `redact` replaces them, `scan` only reports.

Pure. What counts as a secret: keys whose shape names the issuer (`shapes`), values assigned
to names that promise a secret (`values`), credentials in addresses and headers, private
keys (`scanner`). A replaced secret becomes `[redacted:<rule>]`, which no rule matches, so
that redacting twice changes nothing.
"""

from lored.core.redact.scanner import Finding, find

__all__ = ["Finding", "redact", "scan"]


def scan(text: str) -> list[Finding]:
    """The secrets of ``text`` in order: rule, place and a hint, never the secret whole."""
    return find(text)


def redact(text: str) -> tuple[str, dict[str, int]]:
    """``text`` with each secret replaced by `[redacted:<rule>]`, and how many of each rule.

    Clean text comes back as the very same object with an empty map.
    """
    found = find(text)
    if not found:
        return text, {}
    counts: dict[str, int] = {}
    pieces: list[str] = []
    at = 0
    for item in found:
        pieces += (text[at : item.start], f"[redacted:{item.rule}]")
        at = item.end
        counts[item.rule] = counts.get(item.rule, 0) + 1
    pieces.append(text[at:])
    return "".join(pieces), counts
