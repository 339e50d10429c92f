"""`lore web` as a real process, and a visitor who speaks plain HTTP to it."""

import contextlib
import http.client
import json
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from lore import paths
from lore.client import Client
from support.cli import LORE
from support.daemon import environment

SECONDS = 60.0
"""For anything on a loaded machine; a page takes 20 ms on a quiet one."""


class View:
    """A running view: its process and the link that it printed."""

    def __init__(self, process: "subprocess.Popen[bytes]", link: str) -> None:
        self.process, self.link = process, link
        parts = urlsplit(link)
        self.host = parts.netloc
        self.base = parts.path.removesuffix("enter")
        self.token = parts.query.removeprefix("token=")

    def address(self, path: str) -> str:
        """The whole address of a page."""
        return f"http://{self.host}{self.base}{path}"

    def ask(
        self,
        path: str,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
    ) -> "Answer":
        """One request on a connection of its own; ``path`` may begin with `/` to leave the base."""
        connection = http.client.HTTPConnection(self.host, timeout=SECONDS)
        try:
            where = path if path.startswith("/") else self.base + path
            connection.putrequest(method, where, skip_host=bool(headers and "Host" in headers))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(None if body is None else body.encode("ascii"))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()


class Answer:
    """Status, headers and text of an answer."""

    def __init__(self, status: int, headers: Any, text: str) -> None:
        self.status, self.headers, self.text = status, headers, text
        self.page = Page()
        self.page.feed(text)


class Page(HTMLParser):
    """What stands in a page: elements with attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """All text, blanks as they are read."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        """Attributes of the elements of one name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def forms(self) -> list[dict[str, Any]]:
        """Each form as {action, fields, buttons}: what a browser would send."""
        found: list[dict[str, Any]] = []
        for tag, attributes in self.elements:
            if tag == "form" and attributes.get("method") == "dialog":
                continue  # sends nothing
            if tag == "form":
                found.append({"action": attributes.get("action"), "fields": {}, "buttons": []})
            elif found and tag == "input" and attributes.get("type") == "hidden":
                found[-1]["fields"][attributes["name"]] = attributes["value"]
            elif found and tag == "button":
                found[-1]["buttons"].append(attributes)
        return found


class Visitor:
    """A browser that came in: keeps the cookie, sends what browsers send."""

    def __init__(self, view: View) -> None:
        self.view = view
        entered = view.ask(f"enter?token={view.token}")
        assert entered.status == 200, entered.text
        self.cookie = entered.headers["set-cookie"].split(";")[0]

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A page."""
        return self.view.ask(path, headers={"Cookie": self.cookie, **(headers or {})})

    def post(
        self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A form as it stands."""
        sent = {
            "Cookie": self.cookie,
            "Origin": f"http://{self.view.host}",
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
            **(headers or {}),
        }
        return self.view.ask(path, "POST", sent, urlencode(fields))

    def csrf(self) -> str:
        """The token of this session's forms."""
        page = self.get("facts").page
        return next(form["fields"]["csrf"] for form in page.forms() if "csrf" in form["fields"])

    def do(self, deed: str, **fields: str) -> Answer:
        """Send a form and return the page that it leads back to."""
        answer = self.post(f"do/{deed}", {"csrf": self.csrf(), "back": "conflicts", **fields})
        assert answer.status == 303, answer.text
        return self.get(answer.headers["location"])


@contextlib.contextmanager
def serve(home: Path, cwd: Path, *words: str) -> Iterator[View]:
    """Run `lore web` until the block ends; it must still run then, and end well on SIGINT."""
    with open(home / "web-errors", "ab") as errors:
        process = subprocess.Popen(
            [*LORE, "web", "--json", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(home, {"LORE_DEBUG": "1"}),
            cwd=cwd,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (home / "web-errors").read_text()
        yield View(process, json.loads(line)["data"]["url"])
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert process.stdout is not None
        process.stdout.close()


def connect(home: Path, workspace: Path | None = None) -> Client:
    """A client of the daemon over ``home``, to see what the view changed."""
    return Client(
        where=paths.resolve(environment(home)),
        workspace=None if workspace is None else str(workspace),
        start=False,
    )
