"""Events: topics, order, bounds, and what a slow reader is told."""

import pytest

from lore.wire import limits
from support.daemon import RunningDaemon
from support.wire import RawClient, Refusal


def test_events_come_in_order_after_the_answer(odd: RunningDaemon, odd_client: RawClient) -> None:
    with odd.connect() as listener:
        listener.hello()
        answer = listener.call("subscribe", topics=["facts"])
        assert answer["revision"].count(":") == 1
        odd_client.call("test.publish", count=50, bytes=10)
        got = [listener.wait_event(lambda name, _: name == "event") for _ in range(50)]
        assert [event["n"] for event in got] == list(range(50))
        assert [event["seq"] for event in got] == list(range(1, 51))
        assert {event["subscription"] for event in got} == {answer["subscription"]}
        assert {event["topic"] for event in got} == {"facts"}
        assert "workspace" not in got[0]


def test_other_topics_and_ended_subscriptions_are_silent(odd_client: RawClient) -> None:
    client = odd_client
    client.call("subscribe", topics=["sessions"])
    gone = client.call("subscribe", topics=["facts"])["subscription"]
    assert client.call("unsubscribe", subscription=gone) == {"unsubscribed": gone}
    client.call("test.publish", count=3, bytes=1)
    client.call("ping")
    assert [params for name, params in client.events if params.get("topic") == "facts"] == []
    with pytest.raises(Refusal) as refusal:
        client.call("unsubscribe", subscription=gone)
    assert refusal.value.code == "not_found"


def test_wrong_topics_and_too_many_subscriptions(odd_client: RawClient) -> None:
    for topics in (["fatcs"], []):
        with pytest.raises(Refusal) as refusal:
            odd_client.call("subscribe", topics=topics)
        assert refusal.value.code == "invalid"
        assert "facts" in refusal.value.wire["data"]["topics"]
    for _ in range(limits.SUBSCRIPTIONS):
        odd_client.call("subscribe", topics=["facts"])
    with pytest.raises(Refusal) as refusal:
        odd_client.call("subscribe", topics=["facts"])
    assert refusal.value.code == "limit"


def test_a_slow_reader_learns_how_much_it_lost(odd: RunningDaemon, odd_client: RawClient) -> None:
    with odd.connect() as listener:
        listener.hello()
        subscription = listener.call("subscribe", topics=["facts"])["subscription"]
        total = 3000
        for _ in range(total // 100):  # 3 MB: more than socket buffers and queue hold
            odd_client.call("test.publish", count=100, bytes=1000)
        seen = 0
        while True:
            name = ""

            def any_event(found: str, _: object) -> bool:
                nonlocal name
                name = found
                return True

            params = listener.wait_event(any_event)
            if name == "events.lost":
                break
            seen += 1
            assert params["seq"] == seen
        assert params["subscription"] == subscription and params["count"] == total - seen
        assert seen > limits.SUBSCRIPTION_EVENTS and ":" in params["revision"]
        odd_client.call("test.publish", count=1, bytes=1)
        after = listener.wait_event(lambda found, _: found == "event")
        assert after["seq"] == total + 1


def test_a_loss_that_could_not_be_told_is_told_later(
    odd: RunningDaemon, odd_client: RawClient
) -> None:
    with odd.connect() as listener:
        listener.hello()
        listener.call("subscribe", topics=["facts"])
        odd_client.call("test.overload", seconds=1)
        for _ in range(30):
            odd_client.call("test.publish", count=100, bytes=1000)
        listener.call("ping")  # answered when all that was queued is read
        listener.call("ping")
        odd_client.call("test.overload", seconds=0)
        assert not any(name == "events.lost" for name, _ in listener.events)
        read = sum(name == "event" for name, _ in listener.events)
        odd_client.call("test.publish", count=1, bytes=1)
        told = listener.wait_event(lambda name, _: name == "events.lost")
        assert read + told["count"] == 3001
