"""The unit files: accepted by systemd without a word, complete in the README, sane for launchd."""

import configparser
import plistlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lored.runtime import refusal

SYSTEMD = Path(__file__).parents[2] / "systemd"
README = (SYSTEMD / "README.md").read_text(encoding="utf-8")
UNITS = ("lored.socket", "lored.service", "lored.service.d/hardening.conf")


def options(name: str) -> list[str]:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(SYSTEMD / name)
    return [
        f"{key}={value}"
        for section in parser.sections()
        for key, value in parser[section].items()
        if key not in ("Description", "Documentation")
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_every_line(home: Path) -> None:
    units = home / "units"
    shutil.copytree(SYSTEMD, units)
    service = units / "lored.service"
    service.write_text(service.read_text().replace("%h/.local/bin/lored", "/bin/true"))

    def verify() -> str:
        done = subprocess.run(
            ["systemd-analyze", "--user", "verify", service, units / "lored.socket"],
            env={"XDG_RUNTIME_DIR": str(home), "HOME": str(home), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return f"{done.returncode} {done.stdout}{done.stderr}"

    assert verify().strip() == "0"
    drop_in = units / "lored.service.d" / "hardening.conf"
    drop_in.write_text(drop_in.read_text() + "NoSuchOption=1\n")
    assert "NoSuchOption" in verify()  # else the drop-in was never read


@pytest.mark.parametrize("name", UNITS)
def test_every_option_is_explained(name: str) -> None:
    assert options(name)
    assert [option for option in options(name) if f"`{option}`" not in README] == []


def test_permanent_refusals_are_not_restarted() -> None:
    prevented = next(o for o in options("lored.service") if o.startswith("RestartPrevent"))
    codes = {int(code) for code in prevented.partition("=")[2].split()}
    assert codes == {refusal.BAD_STORE, refusal.ALREADY_RUNNING, refusal.BAD_SETUP}


def test_every_exit_code_is_documented() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", README, re.MULTILINE)}
    assert documented == {value for value in vars(refusal).values() if isinstance(value, int)}


def test_launchd_property_list() -> None:
    with open(SYSTEMD / "com.lored.lored.plist", "rb") as file:
        plist = plistlib.load(file)
    assert plist["Label"] == "com.lored.lored"
    assert plist["Sockets"]["Listeners"]["SockPathMode"] == 0o600
    assert plist["Umask"] == 0o077
    assert plist["ProgramArguments"][-1] == "run"
