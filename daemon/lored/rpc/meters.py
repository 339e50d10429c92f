"""The metrics of the wire: requests, times, clients, queues."""

from lored.rpc.counters import BUCKETS
from lored.rpc.server import Server
from lored.services.care.openmetrics import Page


def meter_server(server: Server, page: Page) -> None:
    """Add everything `Counters` and the lanes know."""
    counters = server.dispatcher.counters
    page.counter(
        "lored_requests",
        "Answered requests by method and outcome",
        [
            ({"method": method, "outcome": outcome}, count)
            for (method, outcome), count in counters.answered().items()
        ],
    )
    page.histogram(
        "lored_request_seconds",
        "From arrival to answer",
        BUCKETS,
        [
            ({"method": method}, row, counters.seconds[method])
            for method, row in counters.buckets.items()
        ],
    )
    page.gauge("lored_clients", "Open connections", [({}, server.clients)])
    page.gauge("lored_subscriptions", "Open subscriptions", [({}, len(server.subscriptions))])
    for name, doc, value in (
        ("lored_connections", "Connections since the start", counters.connections),
        ("lored_connections_refused", "Foreign uid or too many", counters.refused),
        ("lored_connections_broken", "Closed for bytes that are no messages", counters.broken),
        ("lored_connections_overrun", "Aborted because the client did not read", counters.overrun),
        ("lored_events_lost", "Events that did not fit a queue", counters.events_lost),
    ):
        page.counter(name, doc, [({}, value)])
    for state in ("running", "waiting"):
        page.gauge(
            f"lored_lane_{state}",
            f"Requests {state} by class",
            [
                ({"class": name}, lane.depth[state])
                for name, lane in server.dispatcher.lanes.items()
            ],
        )
