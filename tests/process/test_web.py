"""The web view as a real server over a real daemon: who comes in, what pages hold, what forms
change. The browser's part is in test_web_browser.py."""

import http.client
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from support import hostile
from support.daemon import RunningDaemon, make_home, remove_home, start_daemon
from support.web import Answer, Visitor, connect, serve

DATA = Path(__file__).parents[1] / "data" / "transcripts"
SAMPLES = ("claude/.claude", "codex/.codex", "recursive/.recursive")
CODEX = "019ed836-b1da-78f1-8a0c-e598363d10f4"

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
                      "\ufeff\U000e0000-\U000e007f]")  # fmt: skip


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A home with sessions of three agents, a hostile one, and a daemon that has read them."""
    home = make_home()
    for sample in SAMPLES:
        shutil.copytree(DATA / sample, home / "user" / Path(sample).name)
    hostile.write_transcript(home / "user")
    try:
        with start_daemon(home) as daemon:
            with connect(home) as client:
                client.call("index_wait", {"ticket": client.call("index")["ticket"]})
            yield daemon.home
    finally:
        remove_home(home)


@pytest.fixture(scope="module")
def shop(place: Path) -> Path:
    """A workspace whose very name is hostile, with hostile facts."""
    folder = place / "user" / "shop<img src=x onerror=window.pwned=1>"
    (folder / ".git").mkdir(parents=True)
    with connect(place) as client:
        hostile.state_facts(client, folder)
    return folder


@pytest.fixture(scope="module")
def visitor(place: Path, shop: Path) -> Iterator[Visitor]:
    """Somebody who came in with the link, to a view started in `shop`."""
    with serve(place, shop) as view:
        yield Visitor(view)


def workspace_id(place: Path, folder: Path) -> str:
    """The id of a workspace."""
    with connect(place) as client:
        return str(client.call("workspace", {"path": str(folder)})["id"])


# -- who comes in --------------------------------------------------------------------------


def test_the_link_works_once_and_gives_a_strict_cookie(place: Path, shop: Path) -> None:
    with serve(place, shop) as view:
        assert view.host.startswith("127.0.0.1:")
        assert view.ask("sessions").status == 403
        assert view.ask("enter?token=guess").status == 403
        assert view.ask("enter").status == 403
        entered = view.ask(f"enter?token={view.token}")
        assert entered.status == 200
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        # Cookies are sent to every port of a host: the random path keeps ours from others.
        assert f"path={view.base}" in cookie
        assert view.token not in entered.text
        again = view.ask(f"enter?token={view.token}")
        assert again.status == 403
        assert "set-cookie" not in again.headers
        name = entered.headers["set-cookie"].split(";")[0]
        assert view.ask("sessions", headers={"Cookie": name}).status == 200
        assert view.ask("sessions", headers={"Cookie": name + "x"}).status == 403
        assert view.ask("sessions", headers={"Cookie": "lore=;;=; lore"}).status == 403


def test_two_views_have_their_own_paths_and_cookies(visitor: Visitor, place: Path) -> None:
    with serve(place, place / "user") as other:
        assert other.base != visitor.view.base
        assert other.ask("sessions", headers={"Cookie": visitor.cookie}).status == 403


HOSTS = (
    *("evil.example", "evil.example:{port}", "127.0.0.1:{port}.evil.example", ""),
    *("127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", "[::1]:{port}"),
)


@pytest.mark.parametrize("host", HOSTS)
def test_another_host_is_refused(visitor: Visitor, host: str) -> None:
    port = visitor.view.host.split(":")[1]
    for path in ("sessions", "static/style.css", f"enter?token={visitor.view.token}"):
        answer = visitor.get(path, {"Host": host.format(port=port)})
        assert answer.status in (400, 403), path
        assert "set-cookie" not in answer.headers
    assert visitor.get("sessions", {"Host": f"localhost:{port}"}).status == 200


def test_nothing_is_below_another_path(visitor: Visitor) -> None:
    for path in ("/", "/sessions", "/static/style.css", "/enter?token=" + visitor.view.token):
        assert visitor.get(path).status == 404


def test_requests_that_another_site_caused_are_refused(visitor: Visitor) -> None:
    for site in ("cross-site", "same-site"):
        asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert visitor.get("sessions", asked).status == 403
        assert visitor.get("static/live.js", asked).status == 403
    assert visitor.get("sessions", {"Sec-Fetch-Site": "none"}).status == 200


def test_other_methods_are_refused(visitor: Visitor) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
        assert visitor.view.ask("sessions", method, {"Cookie": visitor.cookie}).status in (400, 405)
    assert visitor.post("sessions", {"csrf": visitor.csrf()}).status == 405


def test_a_form_needs_our_origin_and_the_token_of_its_session(visitor: Visitor) -> None:
    fields = {"csrf": visitor.csrf(), "place": "global", "text": "must never be stored"}
    wrong = [
        ({"csrf": ""}, {}),
        ({"csrf": "guess"}, {}),
        ({}, {"Origin": "http://evil.example"}),
        ({}, {"Origin": "http://127.0.0.1:1"}),
        ({}, {"Origin": "https://" + visitor.view.host}),
        ({}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}),
        ({}, {"Sec-Fetch-Site": "same-site"}),
        ({}, {"Cookie": "lore=guess"}),
    ]
    for more_fields, more_headers in wrong:
        answer = visitor.post("do/remember", fields | more_fields, more_headers)
        assert answer.status == 403, (more_fields, more_headers)
    del fields["csrf"]
    assert visitor.post("do/remember", fields).status == 403
    assert "must never be stored" not in visitor.get("facts?w=").page.text
    # Without any word about where it came from a form is refused, with one of the two it goes.
    csrf = visitor.csrf()
    silent = {"Cookie": visitor.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    body = f"csrf={csrf}&place=global&id=F99"
    assert visitor.view.ask("do/forget", "POST", silent, body).status == 403
    browser = silent | {"Origin": "null", "Sec-Fetch-Site": "same-origin"}
    assert visitor.view.ask("do/forget", "POST", browser, body).status == 303
    old = silent | {"Origin": f"http://{visitor.view.host}"}
    assert visitor.view.ask("do/forget", "POST", old, body).status == 303


def test_odd_forms_are_refused_and_harm_nothing(visitor: Visitor) -> None:
    csrf = visitor.csrf()
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert visitor.post("do/forget", {"csrf": csrf}, kind).status == 415
    assert visitor.post("do/forget", {"csrf": csrf, "text": "x" * 300_000}).status == 413
    assert visitor.post("do/forget", {str(n): "x" for n in range(100)}).status == 400
    assert "lacks its field" in visitor.do("forget").page.text
    assert "no such change" in visitor.do("explode").page.text
    for back in ("//evil.example", "https://evil.example/", "/\\evil.example", "../../x", "a\nb"):
        answer = visitor.post("do/forget", {"csrf": csrf, "back": back})
        assert re.fullmatch(visitor.view.base + r"[^/\\.][^\\\s]*", answer.headers["location"])


def test_headers_of_every_answer(visitor: Visitor) -> None:
    for path in (
        "sessions",
        "session?id=none",
        "static/style.css",
        "nope",
        "/",
        "static/../gate.py",
    ):
        answer = visitor.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "data:" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers
    assert visitor.get("sessions").headers["cache-control"] == "no-store"
    assert visitor.get("static/..%2fgate.py").status == 404


# -- what pages hold -----------------------------------------------------------------------


def pages(visitor: Visitor, place: Path, shop: Path) -> list[str]:
    """Every page there is, with and without what its form can ask."""
    shop_id = workspace_id(place, shop)
    return [
        "sessions",
        f"sessions?agent=claude-code&w={shop_id}&since=2020-01-01&subagents=1&status=completed",
        "sessions?q=zeppelin",
        f"session?id={hostile.SESSION}",
        f"session?id={hostile.SESSION}&from=2",
        f"session?id={CODEX}",
        "facts",
        "facts?w=",
        f"facts?w={shop_id}&superseded=1&kind=fact",
        "facts?q=zeppelin",
        "facts?valid_day=0&known_day=0",
        "facts?as_of=yesterday&known_at=2026-05-28",
        "entities",
        "entity?name=tool%3Azeppelin",
        f"cluster/{shop_id}/C1",
        f"fact/{shop_id}/F1",
        f"fact/{shop_id}/F2",
        "conflicts",
        "conflicts?status=all",
        "changes",
        "changes?w=",
        "search",
        "search?q=zeppelin&explain=1",
        "activity",
        f"activity?w={shop_id}",
        "status",
    ]


def assert_harmless(answer: Answer) -> None:
    """No element, attribute or character of stored text acts on the page."""
    for tag, attributes in answer.page.elements:
        assert tag not in ("iframe", "object", "embed", "base", "style", "img")
        if tag == "script":
            assert "/static/live.js" in attributes["src"]
        if tag == "meta":
            assert "http-equiv" not in attributes
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, attributes)
            assert name != "style"
            if name in ("href", "src", "action", "formaction"):
                assert re.match(r"/|#|https?://", value), value
    assert not _UNSHOWN.search(answer.text)
    assert "1337" not in answer.text  # 7*191: nothing stored is a template


def test_every_page_is_whole_and_harmless(visitor: Visitor, place: Path, shop: Path) -> None:
    for path in pages(visitor, place, shop):
        answer = visitor.get(path)
        assert answer.status == 200, (path, answer.page.text[-400:])
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.text.rstrip().endswith("</html>"), path
        assert_harmless(answer)
        assert len(answer.page.all("h1")) == 1, path
        assert answer.page.all("main"), path
        names = [attributes["id"] for _, attributes in answer.page.elements if "id" in attributes]
        assert len(names) == len(set(names)), path


def test_hostile_text_is_there_to_read(visitor: Visitor, place: Path, shop: Path) -> None:
    shop_id = workspace_id(place, shop)
    for path in (f"session?id={hostile.SESSION}", f"fact/{shop_id}/F1", "conflicts", "facts"):
        text = visitor.get(path).page.text
        assert hostile.SCRIPT in text, path
        assert "\\x1b[31mred" in text
        assert "\\u202etxt.exe" in text
        assert "\\U000e0068" in text
    reference = visitor.get(f"fact/{shop_id}/F1").page
    assert "javascript:window.pwned=1" in reference.text
    assert not [a for a in reference.all("a") if a.get("href", "").startswith("javascript")]


def test_web_addresses_alone_become_links(visitor: Visitor, place: Path) -> None:
    with connect(place) as client:
        made = client.call(
            "remember_fact",
            {"text": "Linked", "scope": "global", "source_ref": "https://example.org/a?b=<c>"},
        )
    page = visitor.get(f"fact/global/{made['fact']['id']}").page
    (link,) = [a for a in page.all("a") if a["href"].startswith("https://example.org")]
    assert link["href"] == "https://example.org/a?b=<c>"
    assert "noopener" in link["rel"]


def test_refusals_are_pages_too(visitor: Visitor) -> None:
    for path, status, words in (
        ("nope", 404, "no such page"),
        ("session?id=ffffffff", 404, "ffffffff"),
        ("session?id=", 400, ""),
        ("session?id=0", 409, "ambiguous"),
        ("session?id=" + CODEX + "&around=x", 400, "around"),
        ("session?id=" + CODEX + "&from=x", 400, "from"),
        ("fact/global/F999", 404, "F999"),
        ("fact/global/<script>", 400, "<script>"),
        ("cluster/global/C999", 404, "C999"),
        ("entity?name=tool:none", 404, "tool:none"),
        ("facts?w=ffffffffffff", 400, "ffffffffffff"),
        ("sessions?since=bogus", 400, "bogus"),
        ("facts?as_of=2026-02-30", 400, "2026-02-30"),
    ):
        answer = visitor.get(path.replace("<", "%3C").replace(">", "%3E"))
        assert answer.status == status, (path, answer.page.text)
        assert words in answer.page.text, path
        assert_harmless(answer)


def test_the_timeline_filters_and_goes_on(visitor: Visitor) -> None:
    first = visitor.get("sessions?subagents=1")
    agents = {span.get("class", "") for span in first.page.all("article")}
    assert any("session" in name for name in agents)
    only = visitor.get("sessions?agent=codex").page
    assert "codex" in only.text
    assert not [a for a in only.all("article") if "s-claude-code" in a.get("id", "")]
    none = visitor.get("sessions?until=2000-01-01")
    assert "No session fits." in none.page.text
    found = visitor.get("sessions?q=marketplace+plugin").page
    assert found.all("mark")
    assert [a for a in found.all("a") if "around=" in a.get("href", "")]


def test_a_link_leads_to_the_message(visitor: Visitor) -> None:
    found = visitor.get("search?q=marketplace+plugin&explain=1").page
    assert "score" in found.text
    link = next(a["href"] for a in found.all("a") if "around=" in a.get("href", ""))
    path, _, anchor = link.partition("#")
    page = visitor.get(path).page
    assert anchor in {a.get("id") for a in page.all("article")}
    asked = [a for a in page.all("article") if "asked" in a.get("class", "")]
    assert [a["id"] for a in asked] == [anchor]


def test_messages_come_in_pages(visitor: Visitor) -> None:
    page = visitor.get(f"session?id={CODEX}&from=5").page
    positions = [a for a in page.all("a") if a.get("rel") in ("prev", "next")]
    assert positions
    whole: set[str] = set()
    path: str | None = f"session?id={CODEX}"
    while path:
        page = visitor.get(path).page
        shown = {a["id"] for a in page.all("article") if a.get("id", "").startswith("m")}
        assert not shown & whole
        whole |= shown
        path = next((a["href"] for a in page.all("a") if a.get("rel") == "next"), None)
    with connect(visitor_home(visitor)) as client:
        told = client.call("session", {"id": CODEX})["session"]["message_count"]
    assert len(whole) == told


def visitor_home(visitor: Visitor) -> Path:
    """The home of the view that a visitor is at."""
    import psutil

    return Path(psutil.Process(visitor.view.process.pid).environ()["LORE_HOME"])


def test_time_travel_by_slider_and_by_date(place: Path, shop: Path) -> None:
    with connect(place) as client:
        for text, start, end in (
            ("Airship speed is 90", "2026-01-10", "2026-03-01"),
            ("Airship speed is 120", "2026-03-01", None),
        ):
            fact = {"text": text, "entities": ["tool:airship"], "scope": "global"}
            client.call(
                "remember_fact",
                fact | {"valid_from": start} | ({"valid_to": end} if end else {}),
            )

    with serve(place, shop) as view:
        visitor = Visitor(view)

        def shown(query: str) -> list[str]:
            text = visitor.get(f"entity?w=&name=tool:airship&{query}").page.text
            head = text[: text.index("History")]
            return [name for name in ("speed is 90", "speed is 120") if name in head]

        assert shown("") == ["speed is 120"]
        assert shown("as_of=2026-02-01") == ["speed is 90"]
        assert shown("as_of=2025-12-01") == []
        assert shown("known_at=2026-05-01") == []  # none of it had been written down
        sliders = visitor.get("entity?w=&name=tool:airship").page.all("input")
        ranges = [a for a in sliders if a.get("type") == "range"]
        assert [a["name"] for a in ranges] == ["valid_day", "known_day"]
        assert all(a["value"] == a["max"] for a in ranges)
        assert shown(f"valid_day={ranges[0]['max']}") == ["speed is 120"]
        # The sliders begin with what has been true for the longest time.
        assert shown("valid_day=10") == ["speed is 90"]
        assert shown("valid_day=100") == ["speed is 120"]
        assert shown("known_day=100") == []
        held = visitor.get("facts?w=&as_of=2026-02-01")
        assert 'value="2026-02-01"' in held.text
        assert "Back to now" in held.page.text


def test_plots_have_words_and_tables(visitor: Visitor) -> None:
    answer = visitor.get("activity")
    pictures = answer.page.all("svg")
    assert len(pictures) == 4
    ids = {a["id"] for _, a in answer.page.elements if "id" in a}
    for picture in pictures:
        assert picture["role"] == "img"
        assert set(picture["aria-labelledby"].split()) <= ids
    assert len(answer.page.all("table")) == 4
    assert "claude-code" in answer.page.text


def test_status_names_what_is_degraded(visitor: Visitor, place: Path) -> None:
    assert "claude-code" in visitor.get("status").page.text
    (place / "config").mkdir(exist_ok=True)
    text = visitor.get("status").page.text
    assert "All is well" in text or "Remedy:" in text


# -- what forms change ---------------------------------------------------------------------


@pytest.fixture
def disputed(place: Path) -> tuple[Path, str, str, str]:
    """A workspace of its own with two facts in conflict: folder, its id, the facts."""
    number = len(list((place / "user").glob("dispute*")))
    folder = place / "user" / f"dispute{number}"
    (folder / ".git").mkdir(parents=True)
    with connect(place, folder) as client:
        names = [
            client.call("remember_fact", {"text": text, "entities": ["tool:redis"]})["fact"]["id"]
            for text in ("TTL is 300", "TTL is 600")
        ]
        client.call(
            "apply",
            {
                "ops": [{"op": "conflict", "fact_a": names[0], "fact_b": names[1]}],
                "scope": "workspace",
            },
        )
    return folder, workspace_id(place, folder), names[0], names[1]


Disputed = tuple[Path, str, str, str]


def facts_of(place: Path, folder: Path) -> dict[str, dict[str, object]]:
    """The workspace's facts by id, whatever their state."""
    with connect(place, folder) as client:
        answer = client.call("facts", {"scope": "workspace", "include_superseded": True})
        return {fact["id"]: fact for fact in answer["facts"]}


def state_of(place: Path, folder: Path, name: str) -> str:
    """The status of a conflict."""
    with connect(place, folder) as client:
        answer = client.call("conflicts", {"status": "all", "scope": "workspace"})
        return str({one["id"]: one["status"] for one in answer["conflicts"]}[name])


def send(visitor: Visitor, path: str, action: str, button: str) -> Answer:
    """Press the button on a page whose form goes to ``action``, as a browser would."""
    for form in visitor.get(path).page.forms():
        for one in form["buttons"]:
            target = one.get("formaction", form["action"])
            if target.endswith(action) and button in (one.get("value", ""), ""):
                pressed = {one["name"]: one["value"]} if "name" in one else {}
                relative = target.removeprefix(visitor.view.base)
                answer = visitor.post(relative, form["fields"] | pressed)
                assert answer.status == 303
                return visitor.get(answer.headers["location"])
    raise AssertionError(f"no button for {action} {button} on {path}")


def undo_notice(visitor: Visitor, page: Answer) -> Answer:
    """Press Undo in the notice of a page."""
    form = next(f for f in page.page.forms() if f["action"].endswith("do/undo"))
    answer = visitor.post("do/undo", form["fields"])
    assert answer.status == 303
    return visitor.get(answer.headers["location"])


def test_resolve_and_undo(visitor: Visitor, place: Path, disputed: Disputed) -> None:
    folder, where, first, second = disputed
    page = send(visitor, f"conflicts?w={where}", "do/resolve", second)
    assert f"{second} holds" in page.page.text
    assert state_of(place, folder, "conflict:1") == "resolved"
    assert facts_of(place, folder)[first]["superseded_by"] == second
    assert "resolved" in visitor.get(f"conflicts?w={where}&status=resolved").page.text
    undone = undo_notice(visitor, page)
    assert "is taken back" in undone.page.text
    assert state_of(place, folder, "conflict:1") == "open"
    assert facts_of(place, folder)[first]["active"]
    # The notice is shown once.
    assert "is taken back" not in visitor.get(f"conflicts?w={where}").page.text


def test_dismiss_with_a_note(visitor: Visitor, place: Path, disputed: Disputed) -> None:
    folder, where, *_ = disputed
    page = visitor.do("dismiss", id="conflict:1", place=where, note="two caches <b>")
    assert "both facts stay" in page.page.text
    assert state_of(place, folder, "conflict:1") == "dismissed"
    changes = visitor.get(f"changes?w={where}").page.text
    assert "two caches <b>" in changes
    assert "lore-web" in changes


def test_supersede_flag_and_keep(visitor: Visitor, place: Path, disputed: Disputed) -> None:
    folder, where, _, second = disputed
    with connect(place, folder) as client:
        third = client.call("remember_fact", {"text": "TTL is 900", "entities": ["tool:redis"]})
        name = third["fact"]["id"]
    page = send(visitor, f"conflicts?w={where}", "do/supersede", f"{second} {name}")
    assert f"{name} replaces {second}" in page.page.text
    assert facts_of(place, folder)[second]["superseded_by"] == name
    undo_notice(visitor, page)
    assert facts_of(place, folder)[second]["active"]
    send(visitor, f"fact/{where}/{name}", "do/conflict", f"{second} {name}")
    assert state_of(place, folder, "conflict:2") == "open"
    with connect(place, folder) as client:
        fourth = client.call("remember_fact", {"text": "TTL is 1200", "entities": ["tool:redis"]})
    kept = fourth["fact"]["id"]
    send(visitor, f"fact/{where}/{kept}", "do/keep", "")
    with connect(place, folder) as client:
        pending = client.call("snapshot", {"scopes": ["pending"]})["pending"]
    assert kept not in [one["fact"]["id"] for one in pending["facts"]]


def test_correct_a_fact(visitor: Visitor, place: Path, disputed: Disputed) -> None:
    folder, where, first, _ = disputed
    page = visitor.do("update", id=first, place=where, text="TTL is 301")
    new = next(n for n, f in facts_of(place, folder).items() if f["text"] == "TTL is 301")
    assert f"{new} replaces {first}" in page.page.text
    forgotten = send(visitor, f"fact/{where}/{new}", "do/forget", "")
    assert "is forgotten" in forgotten.page.text
    assert "Take the forgetting back" in visitor.get(f"fact/{where}/{new}").page.text
    send(visitor, f"fact/{where}/{new}", "do/restore", "")
    assert facts_of(place, folder)[new]["active"]
    send(visitor, f"fact/{where}/{new}", "do/verify", "")
    assert "verified_at" in facts_of(place, folder)[new]
    refused = visitor.do("supersede", old=new, new=new, place=where)
    assert "failed" in refused.text
    stated = visitor.do(
        "remember", place=where, text="日本 <i>", entities="tool:redis, a", tags="x,y"
    )
    assert "is remembered" in stated.page.text
    made = next(f for f in facts_of(place, folder).values() if f["text"] == "日本 <i>")
    assert made["tags"] == ["x", "y"]
    assert made["entities"] == ["tool:redis", "a"]
    assert "says that already" in visitor.do("remember", place=where, text="日本 <i>").page.text


def test_changes_are_listed_and_taken_back(
    visitor: Visitor, place: Path, disputed: Disputed
) -> None:
    folder, where, first, _ = disputed
    visitor.do("forget", id=first, place=where)
    page = visitor.get(f"changes?w={where}")
    assert "TTL is 300" in page.page.text
    undo_notice(visitor, page)  # the first Undo on the page is that of the newest batch
    assert facts_of(place, folder)[first]["active"]
    assert "undone" in visitor.get(f"changes?w={where}").page.text


# -- what changes under an open page -------------------------------------------------------


def stream_at(visitor: Visitor, path: str) -> http.client.HTTPResponse:
    """The open stream of a page's address."""
    connection = http.client.HTTPConnection(visitor.view.host, timeout=60)
    connection.request("GET", path, headers={"Cookie": visitor.cookie})
    stream = connection.getresponse()
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.readline() == b"retry: 2000\n"
    return stream


def until_told(stream: http.client.HTTPResponse, topic: str) -> None:
    lines = [b""]
    while topic.encode() not in lines[-1].split():
        lines.append(stream.readline().strip())
        assert len(lines) < 20
    assert lines[-1].startswith(b"data: ") and lines[-2] == b"event: change"


def test_the_stream_says_what_changed(visitor: Visitor, place: Path) -> None:
    stream = stream_at(visitor, visitor.view.base + "events?topics=facts+nonsense")
    until_told(stream, "facts")  # without a mark the page may be of any age
    with connect(place) as client:
        client.call("remember_fact", {"text": "Heard of on the stream", "scope": "global"})
    until_told(stream, "facts")
    stream.close()
    assert visitor.view.ask("events?topics=facts").status == 403


def test_what_changed_before_the_page_listened_is_told(visitor: Visitor, place: Path) -> None:
    earlier = stream_at(visitor, visitor.view.base + "events?topics=facts")
    until_told(earlier, "facts")
    address = re.search(r'data-events="([^"]+)"', visitor.get("facts?w=").text)
    assert address is not None
    with connect(place) as client:
        client.call("remember_fact", {"text": "Stated in the gap", "scope": "global"})
    until_told(earlier, "facts")
    late = stream_at(visitor, unescape(address[1]))
    until_told(late, "facts")
    for stream in (earlier, late):
        stream.close()


def test_a_page_that_draws_itself_anew_leaves_the_notice(visitor: Visitor) -> None:
    answer = visitor.post("do/forget", {"csrf": visitor.csrf(), "place": "global", "id": "F999"})
    location = answer.headers["location"]
    assert "F999" not in visitor.get(location, {"X-Lore-Live": "1"}).page.text
    assert "F999" in visitor.get(location).page.text


def test_the_daemon_may_go_and_come_back(home: Path) -> None:
    with start_daemon(home, may_be_dead=True) as daemon, serve(home, home / "user") as view:
        visitor = Visitor(view)
        assert visitor.get("status").status == 200
        daemon.stop()
        gone = visitor.get("status")
        assert gone.status == 503
        assert "lore up" in gone.page.text
        assert_harmless(gone)
        with start_daemon(home):
            assert visitor.get("status").status == 200


def test_without_a_daemon_the_command_says_so(home: Path) -> None:
    from support.cli import Lore

    done = Lore(home)("web", code=4)
    assert "lore up" in done.err
    assert done.out == ""


def test_the_command_line(daemon: RunningDaemon) -> None:
    from support.cli import Lore

    lore = Lore(daemon.home)
    assert "--idle" in lore("web", "--idle", "0", code=2).err
    assert "daemon" in lore("web", "--direct", code=2).err
    assert "--port" in lore("web", "--port", "70000", code=3).err
    assert "ffffffffffff" in lore("web", "-C", "ffffffffffff", code=3).err
    with serve(daemon.home, daemon.home / "user") as view:
        port = view.host.split(":")[1]
        assert port in lore("web", "--port", port, code=3).err
