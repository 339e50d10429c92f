"""A facts store that is damaged where there is no facts.jsonl: its rows are read one by one."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from process.faults.test_damage import emptied, header, middle, truncated
from support.daemon import make_home, remove_home, start_daemon
from support.history import all_facts
from support.wire import RawClient

BEFORE, AFTER = 150, 300
"""Facts before and after the backup."""
ENV = {"LORE_MIRROR_ENABLED": "0", "LORE_INDEX_ENABLED": "0"}


def text_of(number: int) -> str:
    return f"fact {number}: port {5000 + number} serves tenant {number * 7}"


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """A stopped home: 150 facts, a backup, 300 more, and changes of what the backup has."""
    home = make_home()
    try:
        with start_daemon(home, ENV) as daemon, daemon.connect(60) as client:
            client.hello()

            def state(numbers: range) -> None:
                asked = [
                    client.send(
                        "remember_fact",
                        text=text_of(number),
                        scope="global",
                        tags=["port"],
                        entities=[f"tenant:{number * 7}"],
                    )
                    for number in numbers
                ]
                for one in asked:
                    client.wait(one)

            for start in range(0, BEFORE, 25):
                state(range(start, start + 25))
            client.call("backup")
            client.call("update_fact", id="global:F3", text="the third is another one now")
            client.call("forget_fact", id="global:F4")
            client.call("forget_fact", id="global:F5", hard=True)
            for start in range(BEFORE, BEFORE + AFTER, 25):
                state(range(start, start + 25))
        shutil.copytree(home / "data", home / "whole")
        yield home
    finally:
        remove_home(home)


def recovered(home: Path, damage: Callable[[Path], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    """All facts by id after the damage and a start, and the degraded mode that tells of it."""
    shutil.rmtree(home / "data")
    shutil.copytree(home / "whole", home / "data")
    damage(home / "data" / "global.db")
    with start_daemon(home, ENV) as daemon, daemon.connect(60) as client:
        client.hello()
        facts = all_facts(client, scope="global")
        modes = client.call("status")["degraded"]
        assert client.call("verify", deep=True)["ok"]
        assert client.call("remember_fact", text="and on it goes", scope="global")["created"]
        assert "defect" not in daemon.log()
    (told,) = [one for one in modes if one["name"] == "recovery"]
    return {fact["id"]: fact for fact in facts}, told


def assert_as_stated(facts: dict[str, Any]) -> None:
    """What is there says what was stated, under its own number; the erased one is gone."""
    for name, fact in facts.items():
        number = int(name[1:]) - 1
        number -= number > BEFORE  # the replacement of F3 took a number
        if fact["text"] != "the third is another one now":
            assert fact["text"] == text_of(number), fact
            assert fact["entities"] == [f"tenant:{number * 7}"] and fact["tags"] == ["port"]
    assert text_of(4) not in {fact["text"] for fact in facts.values()}


def test_without_its_header_every_row_comes_back(stopped: Path) -> None:
    facts, told = recovered(stopped, header)
    assert_as_stated(facts)
    assert len(facts) == BEFORE + AFTER  # one replaced, one erased
    assert facts["F3"]["superseded_by"] == "F151" and not facts["F3"]["active"]
    assert facts["F151"]["active"] and facts["F4"]["state"] == "forgotten"
    assert "restored from" in told["reason"] and "every row was readable" in told["reason"]


@pytest.mark.parametrize(
    ("damage", "least"), [(middle, AFTER // 4), (truncated, 0)], ids=["middle", "truncated"]
)
def test_around_bad_pages_the_rows_come_back(
    stopped: Path, damage: Callable[[Path], None], least: int
) -> None:
    facts, told = recovered(stopped, damage)
    assert_as_stated(facts)
    assert {f"F{n}" for n in range(1, BEFORE + 1)} - set(facts) == {"F5"}
    assert len(facts) >= BEFORE - 1 + least, "of the later ones those on good pages"
    assert "salvaged from the damaged file" in told["reason"]


def test_without_a_backup_the_rows_alone_are_the_store(stopped: Path) -> None:
    def both(path: Path) -> None:
        header(path)
        shutil.rmtree(path.parent / "backups")

    facts, told = recovered(stopped, both)
    assert_as_stated(facts)
    assert len(facts) == BEFORE + AFTER and "begun anew" in told["reason"]


def test_of_nothing_nothing_is_salvaged(stopped: Path) -> None:
    facts, told = recovered(stopped, emptied)
    assert len(facts) == BEFORE - 1 and "0 facts" in told["reason"]


def test_conflicts_and_other_names_come_back_with_their_facts(home: Path) -> None:
    """Flagged, settled and named after the backup: without it they were lost."""

    def about(client: RawClient) -> dict[str, Any]:
        found = client.call("conflicts", scope="global", status="all")["conflicts"]
        keys = ("id", "status", "severity", "note")
        named = client.call("recall_fact", query="mail", entities=["service:post"], scope="global")
        return {
            "conflicts": [{key: one.get(key) for key in keys} for one in found],
            "named": sorted(fact["id"] for fact in named["facts"]),
        }

    with start_daemon(home, ENV) as daemon, daemon.connect(60) as client:
        client.hello()
        for number in range(6):
            client.call(
                "remember_fact",
                text=f"mail goes through relay {number}",
                entities=["service:mail"],
                scope="global",
            )
        client.call("apply", ops="conflict a=F1 b=F2 severity=high", scope="global")
        client.call("backup")
        ops = "\n".join(
            (
                "resolve id=conflict:1 winner=F1",
                "conflict a=F3 b=F4 severity=low",
                "alias alias=service:post entity=service:mail",
            )
        )
        client.call("apply", ops=ops, scope="global")
        before = about(client)
        assert len(before["conflicts"]) == 2 and before["named"]
    header(home / "data" / "global.db")
    with start_daemon(home, ENV) as daemon, daemon.connect(60) as client:
        client.hello()
        assert [one for one in client.call("status")["degraded"] if one["name"] == "recovery"]
        assert about(client) == before
        assert client.call("verify", deep=True)["ok"]
