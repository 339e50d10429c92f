"""Instants of the wire as a person reads them: local zone, and how long ago. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

_STEPS = ((3600, 60, "min"), (86_400, 3600, "h"))


def local(instant: str) -> datetime | None:
    """ISO text of the wire as an aware datetime in the local zone; None when it is not one."""
    try:
        moment = datetime.fromisoformat(instant)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone()
    except (OverflowError, OSError):
        return moment


def day(instant: str | None) -> str:
    """`2026-05-28` in the local zone; empty for nothing."""
    moment = local(instant) if instant else None
    return moment.strftime("%Y-%m-%d") if moment else instant or ""


def stamp(instant: str | None) -> str:
    """`2026-05-28 05:41` in the local zone; empty for nothing."""
    moment = local(instant) if instant else None
    return moment.strftime("%Y-%m-%d %H:%M") if moment else instant or ""


def ago(instant: str | None, now: datetime | None = None) -> str:
    """How long ago in one unit (`5 min ago`, `yesterday`, `3 weeks ago`), by the local calendar.

    Days are counted by calendar, not by 24 hours: a session of this morning is never shown as
    one day old. Instants ahead read `in 5 min`.
    """
    moment = local(instant) if instant else None
    if moment is None:
        return instant or ""
    now = (now or datetime.now(UTC)).astimezone()
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now"
    days = (now.date() - moment.date()).days
    for limit, unit, word in _STEPS:
        if abs(seconds) < limit and (days == 0 or abs(seconds) < 6 * 3600):
            return _phrase(int(abs(seconds) // unit), word, seconds)
    if abs(days) == 1:
        return "yesterday" if days > 0 else "tomorrow"
    for limit, unit, word in ((14, 1, "day"), (60, 7, "week"), (730, 30, "month")):
        if abs(days) < limit:
            count = abs(days) // unit
            return _phrase(count, word if count == 1 else word + "s", days)
    return _phrase(abs(days) // 365, "years", days)


def _phrase(count: int, word: str, sign: float) -> str:
    return f"{count} {word} ago" if sign > 0 else f"in {count} {word}"


def seconds(duration: float) -> str:
    """A duration: `0.3 s`, `45 s`, `12 min`, `3 h 20 min`."""
    if duration < 10:
        return f"{duration:.1f} s"
    if duration < 90:
        return f"{duration:.0f} s"
    minutes = round(duration / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest and hours < 24 else f"{hours} h"


def size(count: float) -> str:
    """Bytes with a decimal unit: `512 B`, `1.4 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
