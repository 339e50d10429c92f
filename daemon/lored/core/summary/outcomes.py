"""What a command's output says: tests passed and failed, the telling error line, the commit.

Reads the excerpt that the records carry (head and tail of the output). Owns the result lines
of the common test programs; each pattern was written from the program's documented output or
seen in real transcripts.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from lored.core.summary.state import MESSAGE_CHARS, flat


class Tests(NamedTuple):
    """Counts of one run. ``unit`` is `tests`, or `packages` where only those are reported."""

    passed: int
    failed: int
    unit: str = "tests"


_PYTEST: Final = re.compile(
    r"^=*\s*((?:\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?"
    r"|rerun)(?:, )?)+) in [\d.]+s",
    re.MULTILINE,
)
_COUNT: Final = re.compile(r"(\d+) (passed|failed|errors?)\b")
_CARGO: Final = re.compile(r"test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed")
_NEXTEST: Final = re.compile(r"(\d+) tests? run: (\d+) passed(?: \([^)]*\))?(?:, (\d+) failed)?")
_JEST: Final = re.compile(r"^\s*Tests:?\s+((?:\d+ \w+(?:,| \|)? ?)+)", re.MULTILINE)
_TSCOUNT: Final = re.compile(r"(\d+) (passed|failed)")
_BUN: Final = re.compile(
    r"^\s*(\d+) pass\s*\n(?:\s*\d+ (?:skip|todo)\s*\n)*\s*(\d+) fail", re.MULTILINE
)
_MOCHA: Final = re.compile(
    r"^\s*(\d+) passing\b(?:(?:.|\n){0,400}?^\s*(\d+) failing\b)?", re.MULTILINE
)
_UNITTEST: Final = re.compile(
    r"^Ran (\d+) tests? in [\d.]+s\s+(OK|FAILED)(?: \(([^)]*)\))?", re.MULTILINE
)
_EXAMPLES: Final = re.compile(r"(\d+) (?:examples?|tests?)(?:, \d+ assertions)?, (\d+) failures?")
_PHPUNIT: Final = re.compile(r"OK \((\d+) tests?,")
_PHPUNIT_BAD: Final = re.compile(
    r"^Tests: (\d+), Assertions: \d+(?:, Errors: (\d+))?(?:, Failures: (\d+))?", re.MULTILINE
)
_DOTNET: Final = re.compile(r"Failed:\s+(\d+), Passed:\s+(\d+)")
_MAVEN: Final = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+)")
_GRADLE: Final = re.compile(r"(\d+) tests completed, (\d+) failed")
_CTEST: Final = re.compile(r"\d+% tests passed, (\d+) tests failed out of (\d+)")
_TAP: Final = re.compile(
    r"^\s*[#ℹ] pass (\d+)\s*\n(?:(?:.|\n){0,100}?)^\s*[#ℹ] fail (\d+)", re.MULTILINE
)
_DENO: Final = re.compile(r"(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed")
_SWIFT: Final = re.compile(r"Executed (\d+) tests?, with (\d+) failures?")
_PLAYWRIGHT: Final = re.compile(
    r"^\s*(?:(\d+) failed\s*\n(?:.*\n){0,30}?)?\s*(\d+) passed \([\d.]+m?s?\)", re.MULTILINE
)
_GO_CASE: Final = re.compile(r"^--- (PASS|FAIL): ", re.MULTILINE)
_GO_PACKAGE: Final = re.compile(
    r"^(ok|FAIL)\s+\S+[\t ]+(?:[\d.]+s|\(cached\)|\[build failed\])", re.MULTILINE
)
_GOTESTSUM: Final = re.compile(r"^DONE (\d+) tests(?:, (\d+) failures?)?", re.MULTILINE)

_EXCEPTION: Final = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception|Panic|Interrupt)\b: ?.+", re.MULTILINE
)
_ERROR: Final = re.compile(
    r"^.*(?:\berror(?:\[\w+\])?:|\bError:|\bERROR\b|\bfatal:|\bFATAL\b|\bpanic(?:ked)?\b|^FAILED\b"
    r"|\bFAIL\b|✗|×"
    r"|Traceback|\bnot found\b|No such file|[Pp]ermission denied|[Cc]annot\b|[Uu]ndefined\b"
    r"|unexpected|[Ff]ailed\b"
    r"|错误|失败|エラー).*$",
    re.MULTILINE,
)
_WRAPPER: Final = re.compile(
    r"^\s*(?:npm (?:error|ERR!)|failed in sandbox|error Command failed"
    r"|make(?:\[\d+\])?: \*\*\*|ELIFECYCLE"
    r"|error: script"
    r"|error: Recipe|\[?ERROR\]? ?(?:command|task|script)|mise ERROR|exit status)",
    re.IGNORECASE,
)
"""What a runner says about the program it ran: true of any failure, telling of none."""
_EXIT_LINE: Final = re.compile(
    r"^\s*(?:Exit code:? \d+|Command exited with code \d+|Process exited .*|\[…\]|<[\w-]+>"
    r"|Waiting for the debugger.*|Debugger attached\.)\s*$",
    re.MULTILINE,
)
_COMMIT: Final = re.compile(r"^\[[^\]\n]{1,200} ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_SUBJECT: Final = re.compile(r"\s-\w*m\s*([\"'])\s*(.+?)\s*(?:\1|…|$)")
_MISSING: Final = re.compile(
    r"(?:command )?not found\s*$|is not recognized as|No module named (?:pytest|tox|mypy|ruff)\b"
    r"|Missing script:|Script not found|no such (?:sub)?command|Cannot find module 'node:"
    r"|unrecognized subcommand",
    re.MULTILINE,
)
_REFUSED: Final = re.compile(
    r"doesn't want to (?:proceed|take this action)|\buser (?:rejected|denied|declined|cancell?ed"
    r"|aborted|refused)"
    r"|rejected by (?:the )?user|denied by (?:the )?user|aborted by (?:the )?user|^(?:Command"
    r"|Operation|Tool call|Tool) (?:was )?(?:aborted|cancell?ed|interrupted)"
    r"|Request interrupted by user|^aborted\b|cancelled by user",
    re.IGNORECASE | re.MULTILINE,
)


def read_tests(output: str) -> Tests | None:
    """Counts of the test run whose output this is; None when no known result line is in it."""
    for reader in _READERS:
        found = reader(output)
        if found is not None:
            return found
    return None


def read_error(output: str) -> str:
    """The one line that tells what went wrong: the last exception of a traceback, else the first
    line that speaks of an error, else the last line."""
    text = _EXIT_LINE.sub("", output)
    exceptions = _EXCEPTION.findall(text)
    if exceptions:
        return flat(exceptions[-1].strip(), MESSAGE_CHARS)
    telling = [m[0] for m in _ERROR.finditer(text)]
    if telling:
        own = [line for line in telling if not _WRAPPER.match(line)]
        return flat((own or telling)[0].strip(" =-*>"), MESSAGE_CHARS)
    lines = [line for line in text.splitlines() if line.strip()]
    return flat(lines[-1].strip(), MESSAGE_CHARS) if lines else ""


def read_commit(output: str) -> tuple[str, str] | None:
    """(short id, subject) of the commit that `git commit` reports."""
    match = _COMMIT.search(output)
    return (match[1], flat(match[2], 120)) if match else None


def read_subject(label: str) -> str:
    """The subject in a `git commit -m` command line, empty when it is not there in full."""
    match = _SUBJECT.search(label)
    return flat(match[2].strip(), 120) if match and "$(" not in match[2] else ""


def could_not_run(output: str) -> bool:
    """Whether the program itself was missing: that says nothing about the work."""
    return _MISSING.search(output) is not None


def was_refused(output: str) -> bool:
    """Whether the person stopped or refused the call: no error of the work."""
    return _REFUSED.search(output[:600]) is not None


_Reader = Callable[[str], Tests | None]


def _number(text: str | None) -> int:
    return int(text) if text else 0


def _words(pattern: re.Pattern[str], counts: re.Pattern[str], output: str) -> Tests | None:
    found = pattern.findall(output)
    if not found:
        return None
    passed = failed = 0
    seen = False
    for number, word in counts.findall(found[-1]):
        seen = True
        if word == "passed":
            passed += int(number)
        else:
            failed += int(number)
    return Tests(passed, failed) if seen else None


def _cargo(output: str) -> Tests | None:
    found = _CARGO.findall(output)
    if not found:
        return None
    return Tests(sum(int(p) for p, _ in found), sum(int(f) for _, f in found))


def _unittest(output: str) -> Tests | None:
    match = _UNITTEST.search(output)
    if not match:
        return None
    bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", match[3] or ""))
    return Tests(max(int(match[1]) - bad, 0), bad)


def _maven(output: str) -> Tests | None:
    found = _MAVEN.findall(output)
    if not found:
        return None
    run, failures, errors = (int(n) for n in found[-1])
    return Tests(max(run - failures - errors, 0), failures + errors)


def _go(output: str) -> Tests | None:
    total = _GOTESTSUM.search(output)
    if total:
        bad = _number(total[2])
        return Tests(int(total[1]) - bad, bad)
    packages = _GO_PACKAGE.findall(output)
    if packages:
        return Tests(packages.count("ok"), packages.count("FAIL"), "packages")
    cases = _GO_CASE.findall(output)
    return Tests(cases.count("PASS"), cases.count("FAIL")) if cases else None


def _pair(pattern: re.Pattern[str], passed: int, failed: int) -> _Reader:
    def read(output: str) -> Tests | None:
        match = pattern.search(output)
        return Tests(_number(match[passed]), _number(match[failed])) if match else None

    return read


def _total(pattern: re.Pattern[str], total: int, *bad: int) -> _Reader:
    def read(output: str) -> Tests | None:
        match = pattern.search(output)
        if not match:
            return None
        failed = sum(_number(match[group]) for group in bad)
        return Tests(max(_number(match[total]) - failed, 0), failed)

    return read


_READERS: Final[tuple[_Reader, ...]] = (
    lambda output: _words(_PYTEST, _COUNT, output),
    _cargo,
    _pair(_NEXTEST, 2, 3),
    _pair(_DENO, 1, 2),
    lambda output: _words(_JEST, _TSCOUNT, output),
    _pair(_BUN, 1, 2),
    _pair(_MOCHA, 1, 2),
    _unittest,
    _total(_EXAMPLES, 1, 2),
    _pair(_DOTNET, 2, 1),
    _maven,
    _total(_GRADLE, 1, 2),
    _total(_CTEST, 2, 1),
    _pair(_TAP, 1, 2),
    _total(_SWIFT, 1, 2),
    _total(_PHPUNIT, 1),
    _total(_PHPUNIT_BAD, 1, 2, 3),
    _pair(_PLAYWRIGHT, 2, 1),
    _go,
)
