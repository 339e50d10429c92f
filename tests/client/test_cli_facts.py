"""The fact verbs against a real daemon: text and JSON forms, exit codes, errors."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cli import Lore
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon


@pytest.fixture(scope="module")
def served() -> Iterator[RunningDaemon]:
    """One daemon for all tests here; each works in a project of its own."""
    home = make_home()
    try:
        with start_daemon(home) as daemon:
            yield daemon
    finally:
        remove_home(home)


@pytest.fixture
def lore(served: RunningDaemon, request: pytest.FixtureRequest) -> Lore:
    """`lore` in a fresh git project."""
    folder = served.home / "user" / "p" / request.node.name.replace("/", "_")[-60:]
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return Lore(served.home, folder)


def test_remember_and_read_back(lore: Lore) -> None:
    said = lore("remember", "Cache", "TTL", "is", "300s", "-e", "tool:redis", "-t", "cache").out
    assert said.startswith("F1 remembered (workspace, cluster C1")
    fact = lore.json(
        "remember",
        "Retries back off to 30 s",
        "-e",
        "concept:retry",
        "--kind",
        "decision",
        "--by",
        "alice",
        "--ref",
        "https://example.org/pull/42",
        "--valid-from",
        "2026-05-01",
    )["fact"]
    assert (fact["id"], fact["kind"], fact["asserted_by"]) == ("F2", "decision", "alice")
    listed = lore("facts").out
    assert "F1" in listed
    assert "decision" in listed
    assert "by alice" in listed
    assert "https://example.org/pull/42" in listed
    assert "from 2026-05-01" in listed
    assert [f["id"] for f in lore.json("facts", "-t", "cache")["facts"]] == ["F1"]
    assert lore("facts", "-t", "nothing", code=1).out == ""
    assert "no fact fits these options" in lore("facts", "-t", "nothing", code=1).err


def test_an_exact_duplicate_is_no_new_fact(lore: Lore) -> None:
    lore("remember", "The same thing")
    assert "F1 already known" in lore("remember", "The same thing").out


def test_standard_input_and_odd_text(lore: Lore) -> None:
    text = "日本語 \x1b[2J and 'quotes' and\ntwo lines"
    fact = lore.json("remember", "-", stdin=text + "\n")["fact"]
    assert fact["text"] == text
    shown = lore("fact", "F1").out
    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
    assert "日本語" in shown


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize("words", [("remember", "-"), ("apply", "-"), ("call", "ping", "-")])
def test_bytes_that_are_not_utf8_are_refused_in_every_locale(
    lore: Lore, words: tuple[str, ...], errors: str
) -> None:
    locale = {"PYTHONIOENCODING": f"utf-8:{errors}"}
    done = lore(*words, stdin="bad \udcff byte", code=3, env=locale)
    assert "standard input: not valid UTF-8 at byte 4" in done.err


def test_a_file_of_operations_that_is_not_utf8_is_refused(lore: Lore, tmp_path: Path) -> None:
    path = tmp_path / "operations"
    path.write_bytes(b'remember t=fact "\xff"')
    assert "operations: not valid UTF-8 at byte 17" in lore("apply", str(path), code=3).err


def test_operations_as_json_in_one_word(lore: Lore) -> None:
    ops = '[{"op": "remember", "t": "fact", "content": "By list"}]'
    assert "F1 remembered" in lore("apply", ops).out
    assert "'': No such file" in lore("apply", "", code=2).err


def test_text_that_looks_like_flags(lore: Lore) -> None:
    assert lore.json("remember", "-t", "x", "--", "--flag", "means", "x")["fact"]["text"] == (
        "--flag means x"
    )
    assert lore.json("remember", "--", "-1 is invalid")["fact"]["text"] == "-1 is invalid"
    mixed = lore.json("remember", "-t", "a", "Cache", "TTL", "-e", "tool:redis", "is", "300s")
    assert mixed["fact"]["text"] == "Cache TTL is 300s"


def test_collisions_come_with_commands_that_work(lore: Lore) -> None:
    lore("remember", "Cache TTL is 300s", "-e", "tool:redis")
    done = lore("remember", "Cache TTL is 600s", "-e", "tool:redis").out
    assert "1 fact is about the same thing" in done
    command = next(line.strip() for line in done.splitlines() if "supersede" in line)
    assert command.startswith("lore apply '")
    assert "lore undo" in lore("apply", command.removeprefix("lore apply ").strip("'")).out
    assert [f["text"] for f in lore.json("facts")["facts"]] == ["Cache TTL is 600s"]
    assert len(lore.json("facts", "--all")["facts"]) == 2
    history = lore("history", "F2").out
    assert history.index("300s") < history.index("600s")


def test_scopes_and_ambiguity(home: Path) -> None:
    with start_daemon(home):
        lore = Lore(home, home / "user" / "project")
        subprocess.run(["git", "init", "-q", str(lore.cwd)], check=True)
        lore("remember", "Here")
        lore("remember", "--global", "Everywhere")
        done = lore("fact", "F1", code=3)
        assert "global:F1" in done.err
        assert lore("fact", "F1", "--json", code=3).error["code"] == "ambiguous"
        assert "Here" in lore("fact", "workspace:F1").out
        assert "Everywhere" in lore("fact", "F1", "--global").out
        assert "Everywhere" in lore("fact", "global:F1").out
        listed = lore("facts").out
        assert "global:F1" in listed
        assert "workspace:F1" in listed
        assert "Here" not in lore("facts", "--global").out


def test_update_forget_and_back(lore: Lore) -> None:
    lore("remember", "The port is 80", "-e", "service:web")
    assert "F2 replaces F1" in lore("update", "F1", "The port is 8080").out
    assert "forgotten" in lore("forget", "F2", "--reason", "gone").out
    assert lore("facts", code=1).out == ""
    assert "is back" in lore("forget", "--undo", "F2").out
    assert "8080" in lore("facts").out
    hard = lore("forget", "F2", "--hard").out
    assert "removed for good" in hard
    assert "8080" not in lore("facts", "--all", code=None).out


def test_undo_and_the_change_log(lore: Lore) -> None:
    lore("remember", "One")
    lore("remember", "Two")
    assert "taken back" in lore("undo").out
    assert [f["text"] for f in lore.json("facts")["facts"]] == ["One"]
    log = lore("history").out
    assert log.strip()
    assert lore.json("history")["entries"]


def test_operations_read_as_sentences(lore: Lore) -> None:
    old = lore.json("remember", "The queue is RabbitMQ", "-e", "tool:queue")["fact"]["id"]
    new = lore.json("remember", "The queue is NATS", "-e", "tool:queue")["fact"]["id"]
    opened = lore("apply", "conflict", f"fact_a={old}", f"fact_b={new}", "severity=high").out
    assert f"opened between {old} and {new}, high severity" in opened
    assert f"{new} replaces {old}" in lore("apply", f"supersede old={old} new={new}").out
    assert lore("snapshot", "nonsense", code=3).out.startswith("# nonsense")


def test_triage_batches(lore: Lore, tmp_path: Path) -> None:
    lore("remember", "Timeout is 5 s", "-e", "service:api")
    lore("remember", "Timeout is 9 s", "-e", "service:api")
    ops = 'conflict fact_a=F1 fact_b=F2 severity=high\nremember "Both were read from the docs"'
    dry = lore("apply", "-", "--dry-run", stdin=ops)
    assert "dry run" in dry.out
    assert lore("conflicts", code=1).out == ""
    path = tmp_path / "ops.txt"
    path.write_text(ops)
    lore("apply", str(path))
    shown = lore("conflicts").out
    assert "high severity" in shown
    assert "Timeout is 5 s" in shown
    assert "Timeout is 9 s" in shown
    name = lore.json("conflicts")["conflicts"][0]["id"]
    assert f"lore apply 'resolve id={name}" in shown
    assert "conflict" in lore("facts").out
    lore("apply", f"resolve id={name} winner=F2")
    assert lore("conflicts", code=1).err.startswith("no conflicts")
    ended = lore("conflicts", "--all").out
    assert "resolved" in ended and "by lore" in ended and " holds" in ended
    failed = lore("apply", "supersede old=F1 new=F99", code=3)
    assert "F99" in failed.err


def test_views_of_groups(lore: Lore) -> None:
    lore("remember", "Redis 7 is used", "-e", "tool:redis")
    lore("remember", "Redis runs on port 6379", "-e", "tool:redis")
    clusters = lore("clusters").out
    assert "C1" in clusters
    assert "(2 facts)" in clusters
    assert "6379" in lore("clusters", "C1").out
    assert "tool:redis" in lore("entities").out
    assert lore.json("entities", "--suggest", "redis is slow")
    snapshot = lore("snapshot", "entity:tool:redis", "conflicts").out
    assert "6379" in snapshot
    assert "entity:tool:redis" in json.dumps(lore.json("snapshot", "entity:tool:redis"))
    assert lore("snapshot").out.strip()


def test_time_travel(lore: Lore) -> None:
    lore("remember", "Rate limit is 10", "--valid-from", "2026-01-01", "-e", "api:limit")
    lore("update", "F1", "Rate limit is 20", "--valid-from", "2026-06-01")
    assert "is 10" in lore("facts", "--as-of", "2026-03-01").out
    assert "is 20" in lore("facts").out
    assert "is 20" in lore("facts", "--as-of", "2026-06-02").out
    bad = lore("facts", "--as-of", "whenever", code=3)
    assert "whenever" in bad.err
    assert "2026-05-28" in bad.err


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("fact", "F99"), "not_found", "F99"),
        (("fact", "nonsense id"), "invalid", "nonsense"),
        (("update", "F99", "x"), "not_found", "F99"),
        (("forget", "F99"), "not_found", "F99"),
        (("clusters", "C99"), "not_found", "C99"),
        (("apply", "explode id=1"), "invalid", "explode"),
        (("facts", "--limit", "100000"), "invalid", "limit"),
        (("recall", "x", "--limit", "0"), "invalid", "limit"),
        (("recall", "x", "--since", "someday"), "invalid", "someday"),
        (("recall", "x", "--as-of", "someday"), "invalid", "someday"),
        (("remember", "x", "--valid-from", "2026-02-31"), "invalid", "2026-02-31"),
        (("call", "no_such_method"), "invalid", "no_such_method"),
        (("call", "facts", '{"colour": "red"}'), "invalid", "colour"),
    ],
)
def test_errors_name_the_object(lore: Lore, words: tuple[str, ...], code: str, named: str) -> None:
    done = lore(*words, code=3)
    assert named in done.err
    assert done.out == ""
    assert lore(*words, "--json", code=3).error["code"] == code


def test_no_colour_in_pipes_and_colour_on_a_terminal(lore: Lore) -> None:
    lore("remember", "Coloured", "-e", "x:y")
    assert "\x1b" not in lore("facts").out
    code, shown = lore.on_terminal("facts")
    assert code == 0
    assert "\x1b[" in shown
    _, plain = lore.on_terminal("facts", env={"NO_COLOR": "1"})
    assert "\x1b" not in plain
    assert "Coloured" in plain


def test_pages(lore: Lore) -> None:
    for number in range(5):
        lore("remember", f"Fact number {number}", "-t", "n")
    first = lore("facts", "-n", "2")
    assert "goes on" in first.err
    after = lore.json("facts", "-n", "2")["next"]
    assert len(lore.json("facts", "-n", "200", "--after", after)["facts"]) >= 3


def test_another_workspace_by_path_and_by_id(lore: Lore, served: RunningDaemon) -> None:
    lore("remember", "Only here")
    explained = lore.json("workspace")
    assert explained["root"] == str(lore.cwd)
    other = Lore(served.home, served.home / "user")
    assert "Only here" in other("-C", str(lore.cwd), "facts").out
    assert "Only here" in other("-C", explained["id"], "facts").out
    assert "Only here" not in other("facts", code=None).out
    assert explained["id"] in lore("workspace", "list").out
    assert str(lore.cwd) in lore("workspace", "explain", str(lore.cwd)).out
    missing = other("-C", "0123456789ab", "facts", code=3)
    assert "0123456789ab" in missing.err


def test_export_and_import(lore: Lore, served: RunningDaemon, tmp_path: Path) -> None:
    lore("remember", "Carried over", "-t", "keep")
    path = tmp_path / "facts.jsonl"
    lore("export", "-o", str(path))
    assert "Carried over" in path.read_text()
    assert lore("export").out == path.read_text()
    folder = lore.cwd.parent / (lore.cwd.name + "-other")
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    other = Lore(served.home, folder)
    other("import", str(path), "--dry-run")
    other("facts", code=None)
    done = other.json("import", str(path))
    assert "Carried over" in other("facts").out, done


def test_raw_calls(lore: Lore) -> None:
    lore("remember", "Raw")
    found = json.loads(lore("call", "facts", '{"limit": 1}').out)
    assert found["facts"][0]["text"] == "Raw"
    assert json.loads(lore("call", "facts", "-", stdin='{"limit": 1}').out) == found
    assert lore.json("call", "ping")["pong"] is True
    assert "remember_fact" in lore("call").out
