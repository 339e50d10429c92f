"""The command line itself: words, usage errors, help, completions. No daemon."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lore.cli import completions, manual, table
from lore.cli.arguments import AGENT_NAMES, GLOBALS, Usage, build
from lore.cli.dispatch import EXIT_BY_CODE, split
from lore.errors import BY_CODE
from lore.wire.methods import METHODS
from support.cli import LORE, Lore
from support.daemon import environment


@pytest.fixture
def lore(home: Path) -> Lore:
    return Lore(home)


def test_global_flags_may_stand_before_the_verb() -> None:
    assert split(["-C", "x", "--json", "facts", "-n", "3"]) == (
        "facts",
        ["-C", "x", "--json", "-n", "3"],
    )
    assert split(["--workspace=x", "facts"]) == ("facts", ["--workspace=x"])
    assert split([]) == ("help", [])
    assert split(["help", "recall"]) == ("recall", ["--help"])
    with pytest.raises(Usage, match="did you mean 'recall'"):
        split(["recal", "x"])
    with pytest.raises(Usage, match="--tag"):
        split(["--tag", "x", "remember"])


def test_every_verb_loads_and_its_help_has_an_example() -> None:
    for name in table.MODULES:
        verb = table.load(name)
        assert verb.name == name
        assert verb.examples, name
        text = build(verb, table.ABOUT[name]).format_help()
        assert "examples:" in text
        for arg in verb.args:
            assert arg.help, (name, arg.names)


def test_no_flag_means_two_things_in_a_verb() -> None:
    for name in table.MODULES:
        flags = [n for arg in (*table.load(name).args, *GLOBALS) for n in arg.names]
        assert len(flags) == len(set(flags)), name


def test_the_designed_verbs_are_all_there() -> None:
    designed = (
        "up down restart status logs ping doctor remember recall facts fact update forget undo "
        "history apply snapshot conflicts clusters entities sessions session context hook mcp "
        "install uninstall index sources exclude redact reindex workspace export import backup "
        "restore verify maintain metrics bench call watch completions"
    )
    assert set(designed.split()) <= set(table.MODULES)


def test_completions_know_every_agent_that_can_be_read() -> None:
    from lored.core.transcripts import PARSERS

    assert set(AGENT_NAMES) == {parser.agent for parser in PARSERS.values()}


def test_every_wire_code_has_an_exit_code() -> None:
    assert set(EXIT_BY_CODE) == set(BY_CODE)


def test_help_lists_all_verbs(lore: Lore) -> None:
    text = lore("--help").out
    for name in table.MODULES:
        assert f"  {name} " in text
    assert lore("help", "recall").out == lore("recall", "--help").out
    assert lore("--version").out.startswith("lore 0.")
    assert lore().out == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("recal",), "did you mean 'recall'"),
        (("recall",), "what to look for"),
        (("recall", "x", "--limit", "many"), "--limit"),
        (("remember", "x", "--kind", "rumour"), "rumour"),
        (("fact", "F1", "--everywhere"), "no use for --everywhere"),
        (("sessions", "--global"), "no use for --global"),
        (("session", "x", "--messages", "a-b"), "positions"),
        (("-C", "/does/not/exist", "recall", "x"), "no such path"),
        (("index", "/does/not/exist"), "no such file"),
        (("import", "/does/not/exist"), "no such file"),
        (("apply", "/does/not/exist"), "No such file"),
        (("sources", "--add", "codex"), "AGENT=PATH"),
        (("call", "ping", "[1]"), "JSON object"),
        (("call", "ping", "{"), "not JSON"),
        (("call", "hello"), "one connection"),
        (("watch", "weather"), "unknown topic"),
        (("install", "hal9000"), "unknown agent"),
        (("restore", "/does/not/exist"), "no such backup"),
        (("completions", "tcsh"), "tcsh"),
    ],
)
def test_usage_errors_name_the_word_and_exit_2(
    lore: Lore, words: tuple[str, ...], said: str
) -> None:
    done = lore(*words, code=2)
    assert done.out == ""
    assert said in done.err
    assert done.err.startswith("lore: ")
    assert "--help`" in done.err
    error = lore(*words, "--json", code=2).error
    assert error["code"] == "usage"
    assert said in error["message"]


def test_without_a_daemon_calls_say_how_to_start_one(lore: Lore) -> None:
    for words in (("ping",), ("ping", "--timeout", "1"), ("status",), ("facts",), ("up",)):
        done = lore(*words, code=4)
        assert done.out == ""
        assert "run: lore up" in done.err, words
        assert str(lore.home / "run" / "lore.sock") in done.err
    assert lore("facts", "--json", code=4).error["code"] == "unavailable"
    assert "was not running" in lore("down").out


def test_a_foreign_socket_directory_is_named(lore: Lore) -> None:
    (lore.home / "run").mkdir(mode=0o777)
    os.chmod(lore.home / "run", 0o777)
    done = lore("ping", code=4)
    assert "chmod 700" in done.err


def test_a_dead_socket_file_is_as_good_as_none(lore: Lore) -> None:
    import socket

    (lore.home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(lore.home / "run" / "lore.sock"))
    assert "run: lore up" in lore("ping", code=4).err


def test_a_listener_that_says_nothing_costs_the_timeout_only(lore: Lore) -> None:
    import socket

    (lore.home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(lore.home / "run" / "lore.sock"))
        mute.listen(4)
        done = lore("ping", "--timeout", "0.3", code=4)
    assert "does not answer" in done.err


def test_logs_without_a_log(lore: Lore) -> None:
    assert "journalctl" in lore("logs", code=2).err


def test_logs_show_the_end(lore: Lore) -> None:
    state = lore.home / "state"
    state.mkdir()
    (state / "lored.log").write_text("".join(f"line {n} \x1b[31m\n" for n in range(5000)))
    assert lore("logs", "-l", "2").out == "line 4998 \\x1b[31m\nline 4999 \\x1b[31m\n"
    assert len(lore.json("logs")["lines"]) == 50


def test_logs_follow_through_a_rotation_until_interrupted(lore: Lore) -> None:
    state = lore.home / "state"
    state.mkdir()
    log = state / "lored.log"
    log.write_text("old\n")
    process = subprocess.Popen(
        [*LORE, "logs", "-l", "1", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(lore.home),
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "old\n"
        with log.open("a") as file:
            file.write("first\nsec")
            file.flush()
            assert process.stdout.readline() == "first\n"
            file.write("ond\n")
        assert process.stdout.readline() == "second\n"
        log.rename(state / "lored.log.1")
        log.write_text("third\n")
        assert process.stdout.readline() == "third\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_reader_that_goes_away_is_no_error(lore: Lore) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" | head -c 1', "sh", *LORE, "--help"],
        capture_output=True,
        env={**os.environ, "LORE_HOME": str(lore.home), "LORE_NO_SPAWN": "1"},
        check=True,
    )
    assert done.stderr == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has it")
def test_an_output_that_is_full_is_no_defect(lore: Lore) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" > /dev/full', "sh", *LORE, "--help"],
        capture_output=True,
        env={**os.environ, "LORE_HOME": str(lore.home), "LORE_NO_SPAWN": "1"},
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, b"lore: No space left on device\n")


def test_a_terminal_that_is_not_utf8_gets_escapes(lore: Lore) -> None:
    state = lore.home / "state"
    state.mkdir()
    (state / "lored.log").write_text("日本\n", encoding="utf-8")
    done = lore("logs", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.out == "\\u65e5\\u672c\n"
    as_json = lore("logs", "--json", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert as_json.data["lines"] == ["日本"]


def test_completions_parse_and_offer_verbs_flags_and_choices() -> None:
    script = completions.bash()
    subprocess.run(["bash", "-n", "-c", script], check=True)

    def offered(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        run = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _lore; "
        printed = 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", script + run + printed], capture_output=True, text=True, check=True
        )
        return set(done.stdout.split())

    assert offered("lore", "rec") == {"recall"}
    assert {"--tag", "--kind", "--json"} <= offered("lore", "remember", "--")
    assert offered("lore", "remember", "--kind", "d") == {"decision"}
    assert "codex" in offered("lore", "sessions", "--agent", "")
    assert offered("lore", "-C", "/tmp", "se") >= {"session", "sessions"}
    assert {m.name for m in METHODS} <= offered("lore", "call", "")
    assert offered("lore", "completions", "") >= {"bash", "zsh", "fish"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completions_of_other_shells_parse(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    text = completions.zsh() if shell == "zsh" else completions.fish()
    for name in table.MODULES:
        assert name in text
    if program is None:
        pytest.skip(f"{shell} is not installed here")
    path = tmp_path / "script"
    path.write_text(text)
    subprocess.run([program, "-n", str(path)], check=True)


def test_json_errors_are_one_line(lore: Lore) -> None:
    lines = lore("fact", "--json", code=2).err.splitlines()
    assert len(lines) == 1
    json.loads(lines[0])


def test_the_manual_page_is_sound_and_names_every_verb_and_flag() -> None:
    page = manual.page()
    for name in table.MODULES:
        verb = table.load(name)
        assert f'.SS "lore {name}' in page
        for arg in verb.args:
            assert all(word.replace("-", "\\-") in page for word in arg.names)
        for example in verb.examples:
            assert example.replace("\\", "\\e").replace("-", "\\-") in page
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww", "-z"], input=page.encode(), capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
