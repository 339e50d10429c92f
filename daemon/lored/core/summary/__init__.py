"""The summary of a session as a fold: current at every append, never re-reading the file.

`begin` gives a state, `fold` takes records into it at the cost of those records, `render`
makes the summary. Deterministic, no model. The state is a map of plain values that
MessagePack holds, bounded (`state.STATE_BYTES`), and any split of the same records gives the
same state.
"""

from lored.core.summary.fold import fold
from lored.core.summary.lines import session_line
from lored.core.summary.render import current_status, render, settled_status
from lored.core.summary.state import VERSION, begin

__all__ = ["VERSION", "begin", "current_status", "fold", "render", "session_line", "settled_status"]
