"""The generated files are current, complete, and their examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lore.aio import Client as AsyncClient
from lore.calls import Calls
from lore.client import Client
from lore.errors import BY_CODE
from lore.wire import document, limits
from lore.wire.methods import BY_NAME, METHODS


def test_the_committed_files_are_current() -> None:
    for path, text in document.outputs().items():
        assert Path(path).read_text(encoding="utf-8") == text, "run python -m lore.wire.document"


def test_check_names_what_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "client" / "lore").mkdir(parents=True)
    monkeypatch.setattr(document, "_CLIENT_DIR", str(tmp_path / "client"))
    assert document.main(["--check"]) == 1
    assert document.main([]) == 0
    assert document.main(["--check"]) == 0
    (tmp_path / "client" / "PROTOCOL.md").write_text("old")
    assert document.main(["--check"]) == 1
    (tmp_path / "pyproject.toml").unlink()
    assert document.main([]) == 2


def test_everything_stands_in_the_page() -> None:
    page = document.protocol_page()
    for method in METHODS:
        assert f"### {method.name}\n" in page
        for param in method.params:
            assert f"`{param.name}`" in page
    for code in BY_CODE:
        assert f"| `{code}` |" in page
    for name in vars(limits):
        if name.isupper() and name not in ("DEADLINES", "PROTOCOL_MIN"):
            assert f"| `{name}` |" in page, f"{name} needs its reason in a string below it"
    for name in limits.DEADLINES:
        assert f"| `{name}` |" in page


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_no_method_is_hidden_by_an_attribute_of_the_client(kind: type[Calls]) -> None:
    own = {name for base in kind.__mro__ for name in vars(base)}
    assert not own & set(BY_NAME)


def test_examples_with_a_library_are_about_ten_lines_and_python_compiles() -> None:
    examples = dict(re.findall(r"```(\w+)\n(.*?)```", document.protocol_page(), re.S))
    alone = examples.pop("javascript")  # brings its own MessagePack
    assert "npm" not in alone and "@msgpack" not in alone
    assert set(examples) == {"lua", "js", "python"}
    for text in examples.values():
        assert text.count("\n") <= 11
    compile(examples["python"], "PROTOCOL.md", "exec")


def test_the_hot_path_loads_neither_typing_nor_dataclasses_nor_asyncio() -> None:
    """What `lore ping` and hooks load; each of these costs as much as a whole call."""
    code = (
        "import sys; from lore import client; "
        "print(*{'typing', 'dataclasses', 'asyncio', 'socket', 'enum', 'json', 're', 'inspect', "
        "'lore.wire.methods', 'subprocess', 'argparse'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
