"""Bounds of one connection that are the daemon's own (those of the wire: `lore.wire.limits`)."""

from typing import Final

PIECE: Final = 4096
"""Bytes decoded at a time: at most some 700 of the shortest requests."""

AHEAD: Final = 32
"""Decoded requests kept while none can be begun, so that a `cancel` behind them is seen."""

SOFT_OUTPUT_BYTES: Final = 256 << 10
"""Unread output from which no further request of this client is begun."""

CLOSE_SECONDS: Final = 3.0
"""Time to flush after the last answer; a client that does not read is then aborted."""
