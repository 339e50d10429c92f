"""Every bound of the wire, each with its reason. Both sides import these."""

REQUEST_BYTES = 1 << 20
"""One request. Facts are kilobytes; a batch of 1,000 operations is 100 to 200 KB."""

RESPONSE_BYTES = 8 << 20
"""One response; longer results are paged with `next`."""

DEPTH = 32
"""Nesting of one message, itself included; real ones nest 8 deep. Bounds recursion."""

CONTAINER_ENTRIES = 10_000
"""Entries of one array or map in a request: the decoder reserves 8 bytes for each at once."""

VALUES = 100_000
"""Values in one request, containers included: bounds its decoding to about 50 ms."""

INFLIGHT_REQUESTS = 32
"""Unanswered requests of one client; then the daemon stops reading from it."""

UNREAD_OUTPUT_BYTES = 8 << 20
"""Unread output of one client; then it is disconnected, since the memory is ours."""

CLIENTS = 256
"""Open connections; the load bar is 200 clients, and each costs a buffer of at most 9 MiB."""

HELLO_SECONDS = 5.0
"""A connection that sends nothing at all is closed after this."""

SUBSCRIPTION_EVENTS = 256
"""Events waiting for one subscription; then `events.lost` and a resync by revision."""

SUBSCRIPTIONS = 32
"""Subscriptions of one connection."""

READ_BYTES = 64 << 10
"""Bytes taken from a socket at once."""

INTEGER_MAX = (1 << 53) - 1
"""Largest integer that JavaScript and Lua clients keep exact."""

DEADLINES = {"quick": 2.0, "search": 5.0, "write": 10.0, "long": 600.0}
"""Server-side seconds per method class."""

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
"""Range of protocol versions spoken by this release (N and N-1)."""
