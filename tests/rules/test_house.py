"""Rules of the house that a machine can check."""

import ast
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = sorted([*(ROOT / "daemon").rglob("*.py"), *(ROOT / "client").rglob("*.py")])
LONGEST_FILE = 350
"""Lines; one idea a file is 50-250, and beyond this a file holds several."""


def tracked(*patterns: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=False
    ).stdout.decode()
    if not names:  # an sdist has no git
        return [path for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", PRODUCT, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_idea_and_says_which(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= LONGEST_FILE
    if source.strip():
        docstring = ast.get_docstring(ast.parse(source))
        assert docstring, "a module begins with what it owns"


def test_names_that_say_nothing_are_not_used() -> None:
    empty = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert not [path for path in PRODUCT if empty & {path.stem, *path.parts[len(ROOT.parts) :]}]


def test_nothing_else_is_importable_beside_the_packages() -> None:
    for folder, package in (("daemon", "lored"), ("client", "lore")):
        found = {
            path.parts[0]
            for path in (one.relative_to(ROOT / folder) for one in (ROOT / folder).rglob("*.py"))
        }
        assert found == {package}


def test_no_path_of_a_developer_s_machine() -> None:
    pattern = re.compile(rb"(?<![\w./])/(work|farm|root)/|\.library\b")
    for path in tracked("*.py", "*.md", "*.toml", "*.sh", "*.service", "*.lua", ".ci/run"):
        if path != Path(__file__):
            assert not pattern.search(path.read_bytes()), path


def test_layers() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{ROOT / 'daemon'}:{ROOT / 'client'}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_method_has_a_handler_and_no_handler_is_unknown() -> None:
    from lore.wire.methods import METHODS
    from lored.rpc import handlers

    assert set(handlers.load()) == {method.name for method in METHODS}


def test_every_setting_stands_in_the_readme() -> None:
    from lored.services.settings import Settings

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for field in dataclasses.fields(Settings):
        assert f"`{field.name}`" in text, field.name
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            row = next(line for line in text.splitlines() if f"`{field.name}`" in line)
            assert f"{field.default:g}" in row.replace(",", "") or str(field.default) in row


def test_every_error_code_stands_in_the_protocol() -> None:
    from lore.errors import BY_CODE

    text = (ROOT / "client" / "PROTOCOL.md").read_text(encoding="utf-8")
    for code in BY_CODE:
        assert f"`{code}`" in text
