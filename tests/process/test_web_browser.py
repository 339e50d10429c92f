"""The web view in a real browser: nothing stored acts, nothing complains, keys and live pages
work, no page is wider than its window. Skipped where there is no Chromium.

With LORE_SHOTS=FOLDER the pages are also photographed there, in light and dark, wide and narrow.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import browser, claude, hostile
from support.browser import Browser, Tab
from support.daemon import make_home, remove_home, start_daemon
from support.web import View, connect, serve

DATA = Path(__file__).parents[1] / "data" / "transcripts"
CODEX = "019ed836-b1da-78f1-8a0c-e598363d10f4"
PROGRAM = browser.find()

PALE = """(() => {
      const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return m; };
      const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
      const ground = (e) => { for (; e; e = e.parentElement) {
        const c = parse(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
      const bad = [];
      for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        if (!own || !e.checkVisibility() || e.closest('svg, dialog, option')) continue;
        const a = light(parse(getComputedStyle(e).color)), b = light(ground(e));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) bad.push(`${e.className || e.tagName} ${ratio.toFixed(2)}`);
      }
      return [...new Set(bad)];
    })()"""
"""Text with less than 4.5 to 1 against its ground, which WCAG AA asks for."""

NAMELESS = """[...document.querySelectorAll(
  'input:not([type=hidden]), select, textarea, button, a, summary, svg[role=img]')]
  .filter((e) => !(e.labels?.length || e.ariaLabel || e.getAttribute('aria-labelledby')
    || e.textContent.trim()))
  .map((e) => e.outerHTML.slice(0, 120))"""
"""Controls and pictures that a screen reader could only call by their kind."""

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def view() -> Iterator[View]:
    """A view over sessions of three agents, hostile ones, and facts with a history."""
    home = make_home()
    user = home / "user"
    for sample in ("claude/.claude", "codex/.codex", "recursive/.recursive"):
        shutil.copytree(DATA / sample, user / Path(sample).name)
    hostile.write_transcript(user)
    shop = user / "shop"
    (shop / ".git").mkdir(parents=True)
    try:
        with start_daemon(home), connect(home, shop) as client:
            client.call("index_wait", {"ticket": client.call("index")["ticket"]})
            hostile.state_facts(client, shop)
            for text, since in (("Redis TTL is 300 s", "2026-03-01"), ("Redis TTL is 600 s", None)):
                fact = {"text": text, "entities": ["tool:redis"], "kind": "decision"}
                client.call("remember_fact", fact | ({"valid_from": since} if since else {}))
            with serve(home, shop) as served:
                yield served
    finally:
        remove_home(home)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser, one for all tests."""
    assert PROGRAM is not None
    with browser.run(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def cookies(view: View, chromium: Browser) -> list[dict[str, object]]:
    """What the browser was given when it followed the link; the link leads on by itself."""
    tab = Tab(chromium)
    tab.open(view.link)
    tab.until("location.pathname.endsWith('/sessions') && document.readyState === 'complete'")
    assert tab.complaints() == []
    found: list[dict[str, object]] = tab.call("Network.getCookies", urls=[view.address("")])[
        "cookies"
    ]
    tab.close()
    (cookie,) = found
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    return found


@pytest.fixture
def tab(view: View, chromium: Browser, cookies: list[dict[str, object]]) -> Iterator[Tab]:
    """A tab that has come in; it must not have complained at the end."""
    opened = Tab(chromium)
    wanted = ("name", "value", "path", "httpOnly", "sameSite", "domain")
    for cookie in cookies:
        opened.call("Network.setCookie", **{name: cookie[name] for name in wanted})
    opened.look(width=1200, height=900)
    yield opened
    complaints = opened.complaints()
    opened.close()
    assert complaints == []


def home_of(view: View) -> Path:
    """The private home behind a view."""
    import psutil

    return Path(psutil.Process(view.process.pid).environ()["LORE_HOME"])


def shop_id(view: View) -> str:
    """The id of the workspace that the view was started in."""
    with connect(home_of(view)) as client:
        path = str(home_of(view) / "user" / "shop")
        return str(client.call("workspace", {"path": path})["id"])


def pages(view: View) -> list[tuple[str, str]]:
    """Name and address of every kind of page."""
    shop = shop_id(view)
    return [
        ("sessions", "sessions"),
        ("found", "sessions?q=marketplace+plugin"),
        ("session", f"session?id={CODEX}"),
        ("hostile", f"session?id={hostile.SESSION}"),
        ("facts", "facts"),
        ("entities", "entities"),
        ("entity", "entity?name=tool:redis"),
        ("cluster", f"cluster/{shop}/C1"),
        ("fact", f"fact/{shop}/F4"),
        ("hostile-fact", f"fact/{shop}/F1"),
        ("conflicts", "conflicts"),
        ("changes", "changes"),
        ("search", "search?q=zeppelin+redis&explain=1"),
        ("activity", "activity"),
        ("status", "status"),
        ("refused", "fact/global/F999"),
    ]


def test_every_page_in_both_schemes_and_widths(tab: Tab, view: View, tmp_path: Path) -> None:
    shots = os.environ.get("LORE_SHOTS")
    for name, path in pages(view):
        for width, dark in ((1200, False), (390, True)):
            tab.look(width=width, height=900, dark=dark)
            tab.open(view.address(path))
            tab.js("document.querySelectorAll('details').forEach((d) => { d.open = true })")
            assert tab.js("window.pwned") is None, name
            assert tab.js("document.documentElement.scrollWidth") <= width, (name, width)
            ground = tab.js("getComputedStyle(document.documentElement).backgroundColor")
            assert (ground == "rgb(20, 23, 26)") is dark, ground
            assert tab.js("document.querySelectorAll('main > *').length") >= 1
            assert tab.js(PALE) == [], (name, dark)
            assert tab.js(NAMELESS) == [], name
            if shots:
                height = min(tab.js("document.documentElement.scrollHeight"), 2400)
                tab.look(width=width, height=height, dark=dark)
                tab.shoot(Path(shots) / f"{name}-{width}{'-dark' if dark else ''}.png")
    # The one page that is refused says so in the log of the network; that is no complaint.
    ours = [line for line in tab.complaints() if "404" not in line]
    assert ours == []
    tab.forget()


def test_hostile_text_is_only_text(tab: Tab, view: View) -> None:
    tab.open(view.address(f"session?id={hostile.SESSION}"))
    assert tab.js("document.title").startswith("Please fix <script>") or tab.js(
        "document.body.innerText.includes('<script>window.pwned=1</script>')"
    )
    assert tab.js("document.querySelectorAll('img, iframe, main script').length") == 0
    # Every link that stored text could have made leads to our own pages.
    links = tab.js("[...document.querySelectorAll('a')].map((a) => a.protocol)")
    assert set(links) == {"http:"}
    assert tab.js("window.pwned") is None


def test_the_policy_stops_what_would_slip_through(tab: Tab, view: View) -> None:
    tab.open(view.address("sessions"))
    blocked = tab.js(
        "new Promise((done) => { document.addEventListener('securitypolicyviolation',"
        " (e) => done(e.violatedDirective), { once: true });"
        " const image = new Image(); image.src = 'http://127.0.0.1:9/x.png';"
        " setTimeout(() => done('nothing'), 20000) })"
    )
    assert blocked == "img-src"
    for attempt in (
        "document.body.innerHTML = '<img src=x onerror=window.pwned=1>'",
        "document.createElement('script').src = 'http://127.0.0.1:9/x.js'",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'pwned=1'}))",
        "setTimeout('window.pwned = 1', 0)",
    ):
        error = tab.js(f"(() => {{ try {{ {attempt} }} catch (error) {{ return error.name }} }})()")
        assert error == "TypeError", attempt
    assert tab.js("window.pwned") is None
    tab.forget()  # the violations were ours


def test_resolve_and_undo_in_the_browser(tab: Tab, view: View) -> None:
    tab.open(view.address("conflicts"))
    assert tab.js("document.querySelectorAll('.conflict').length") == 1
    tab.js("document.querySelector('.conflict input[name=note]').value = 'checked with <ops>'")
    tab.go("document.querySelector('.conflict button[name=winner]').click()")
    assert "is settled" in tab.js("document.querySelector('.notice').innerText")
    assert tab.js("document.querySelectorAll('.conflict').length") == 0
    with connect(home_of(view), home_of(view) / "user" / "shop") as client:
        (conflict,) = client.call("conflicts", {"status": "resolved"})["conflicts"]
        assert conflict["resolution"] == "checked with <ops>" or conflict["winner"]
    tab.go("document.querySelector('.notice button').click()")
    assert tab.js("document.querySelectorAll('.conflict').length") == 1


def test_a_page_draws_itself_anew(tab: Tab, view: View) -> None:
    home = home_of(view)
    tab.open(view.address("facts?w="))
    with connect(home) as client:
        client.call("remember_fact", {"text": "Seen at once", "scope": "global"})
    tab.until("document.querySelector('#facts').innerText.includes('Seen at once')")
    # A session that an agent is just writing.
    tab.open(view.address("sessions"))
    user = home / "user"
    session = claude.session_id(4711)
    said = claude.said(session, "Grow the beanstalk", 1)
    claude.session_path(user, session).write_bytes(said)
    tab.until("document.querySelector('#timeline').innerText.includes('beanstalk')")
    assert tab.js("document.querySelectorAll('#timeline .fresh').length") >= 1
    tab.js("document.querySelector('#timeline article a').focus()")
    held = tab.js("document.activeElement.closest('article').id")
    with open(claude.session_path(user, session), "ab") as file:
        file.write(claude.said(session, "It grows <b>fast</b>", 2, role="assistant"))
    tab.until(
        f"[...document.querySelectorAll('#timeline article')]"
        f".some((a) => a.id.includes('{session}') && a.innerText.includes('2 messages'))"
    )
    assert tab.js("document.activeElement.closest('article')?.id") == held


def test_what_is_being_typed_stays(tab: Tab, view: View) -> None:
    tab.open(view.address("conflicts"))
    tab.js("document.querySelector('.conflict input[name=note]').focus()")
    for key in "jk?":
        tab.press(key)
    assert tab.js("document.activeElement.value") == "jk?"
    shop = home_of(view) / "user" / "shop"
    with connect(home_of(view), shop) as client:
        for text in ("Sled is red", "Sled is blue"):
            client.call("remember_fact", {"text": text, "entities": ["thing:sled"]})
    tab.until("document.querySelector('#inbox').innerText.includes('Sled is blue')")
    assert tab.js("document.activeElement.value") == "jk?"


def test_keys(tab: Tab, view: View) -> None:
    tab.open(view.address("sessions"))
    item = "document.activeElement.closest('[data-item]')"
    items = "[...document.querySelectorAll('[data-item]')]"
    tab.press("j")
    assert tab.js(f"{items}.indexOf({item})") == 0
    tab.press("j")
    assert tab.js(f"{items}.indexOf({item})") == 1
    tab.press("k")
    assert tab.js(f"{items}.indexOf({item})") == 0
    ring = tab.js("getComputedStyle(document.activeElement).outlineStyle")
    assert ring == "solid"
    tab.press("/")
    assert tab.js("document.activeElement.id") == "find"
    tab.js("document.activeElement.blur()")
    tab.press("?")
    assert tab.js("document.getElementById('keys').open")
    tab.go("document.querySelector('#keys button').click(); location.reload()")
    # The first stop of the tabulator leads past the navigation.
    tab.press("Tab")
    assert tab.js("document.activeElement.className") == "skip"
    assert tab.js("document.activeElement.getBoundingClientRect().top") >= 0


def test_the_slider_travels(tab: Tab, view: View) -> None:
    tab.open(view.address("entity?name=tool:redis"))
    assert "300" in tab.js("document.querySelector('#facts').innerText")
    tab.js(
        "(() => { const s = document.getElementById('valid_day'); s.value = 0;"
        " s.dispatchEvent(new Event('input', { bubbles: true }));"
        " s.dispatchEvent(new Event('change', { bubbles: true })) })()"
    )
    tab.until("location.search.includes('valid_day=0')")
    assert tab.js("document.querySelector('output[for=valid_day]').textContent") != ""


def test_it_works_without_scripts(tab: Tab, view: View) -> None:
    tab.look(width=1200, height=900, script=False)
    tab.open(view.address("sessions?agent=codex"))
    tab.look(width=1200, height=900)
    text = tab.js("document.body.innerText")
    assert "codex" in text
    assert tab.js("document.querySelectorAll('form.filters button').length") == 1
