"""How stored values read on pages: escapes, links, folding, marks, colours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from lore.web import reading
from support import hostile

ENVIRONMENT = reading.environment()


def render(source: str, **values: object) -> str:
    """A template's text with the view's own environment."""
    return ENVIRONMENT.from_string(source).render(**values)


def test_whatever_a_template_prints_is_cleaned_and_escaped() -> None:
    text = render("<p title='{{ t }}'>{{ t }}</p>", t=hostile.ALL)
    assert "<script>" not in text
    assert "<img" not in text
    assert text.count("'") == 2  # quotes of stored text do not end the attribute
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
    assert "\u202e" not in text
    assert "\\U000e0068" in text
    assert "{{ 7*191 }}" in text  # shown, not computed


@given(st.text())
def test_nothing_acts_whatever_the_text(text: str) -> None:
    shown = render("{{ t }}{% macro m(x) %}{{ x }}{% endmacro %}{{ m(t) }}", t=text)
    assert "<" not in shown
    assert not any((ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert not any(c in shown for c in "\u202a\u202e\u2066\u2069\u2028\ufeff\U000e0041")


def test_plain_values_stay_as_they_are() -> None:
    assert render("{{ a }}|{{ b }}|{{ c }}", a=None, b=7, c="日本\r\nzwei") == "|7|日本\nzwei"
    assert reading.shown(Markup("<b>")) == Markup("<b>")


@pytest.mark.parametrize(
    ("text", "is_link"),
    [
        ("https://example.org/a?b=c#d", True),
        ("http://localhost:8080/", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("java\nscript:alert(1)", False),
        (" https://example.org", False),
        ("https://example.org/ x", False),
        ("https://", False),
        ("https://[::1", False),
        ("//example.org", False),
        ("data:text/html,<script>", False),
        ("file:///etc/passwd", False),
        ("src/cache.py", False),
        ("", False),
        (None, False),
    ],
)
def test_only_whole_web_addresses_are_links(text: str | None, is_link: bool) -> None:
    assert reading.link(text) == text if is_link else reading.link(text) is None


def test_fences_make_blocks() -> None:
    assert reading.blocks("one") == [("text", "one")]
    assert reading.blocks("a\n```py\nx = 1\n```\nb") == [
        ("text", "a"),
        ("code", "x = 1"),
        ("text", "b"),
    ]
    assert reading.blocks("```\nnever closed") == [("code", "never closed")]
    assert reading.blocks("  ```\nin\n  ```") == [("code", "in")]
    assert reading.blocks("") == []
    assert reading.blocks("not ``` a fence") == [("text", "not ``` a fence")]


@given(st.text(alphabet=st.sampled_from("a`~\n "), max_size=200))
def test_blocks_lose_no_word(text: str) -> None:
    assert "".join(p for _, p in reading.blocks(text)).count("a") <= text.count("a")
    if "```" not in text and "~~~" not in text:
        assert "".join(part for _, part in reading.blocks(text)) == text.strip("\n")


@given(st.text(max_size=4000), st.sampled_from(["", "user", "tool"]))
def test_folding_keeps_all_text(text: str, role: str) -> None:
    head, rest = reading.folded(text, role)
    assert head + rest == text
    assert len(head) <= reading.LONG_TEXT
    assert head or not text


def test_noise_is_folded_sooner() -> None:
    text = "word " * 250
    assert reading.folded(text, "assistant") == (text, "")
    assert len(reading.folded(text, "tool")[0]) <= reading.LONG_NOISE


@given(st.text(max_size=300), st.lists(st.text(max_size=5), max_size=4))
def test_marks_cover_the_text(text: str, words: list[str]) -> None:
    parts = reading.marked(text, words)
    assert "".join(part for _, part in parts) == text


def test_marks_and_clips() -> None:
    assert reading.marked("Cache of caches", ["cache", "caches"]) == [
        (True, "Cache"),
        (False, " of "),
        (True, "caches"),
    ]
    assert reading.marked("a.b", ["."]) == [(False, "a"), (True, "."), (False, "b")]
    assert reading.clipped("short", ["x"]) == "short"
    long = "before " * 400 + "needle" + " after" * 400
    clip = reading.clipped(long, ["Needle"])
    assert "needle" in clip
    assert clip.startswith("… ")
    assert clip.endswith(" …")
    assert len(clip) <= reading.EXCERPT + 4


def test_headlines_say_only_what_was_done() -> None:
    def session(line: str, title: str = "") -> dict[str, object]:
        return {"summary": {"line": line}, "title": title}

    line = "Session 2026-05-28: Implemented Goal 131 (permissions). Completed."
    assert reading.headline(session(line)) == "Implemented Goal 131 (permissions)."
    assert reading.headline(session("Session: Asked. In progress.")) == "Asked."
    assert reading.headline(session("", "A title")) == "A title"
    assert reading.headline({}) == "Nothing was said"
    assert reading.deeds("Key actions: edited a.py.") == "Edited a.py."


def test_agents_keep_their_colours() -> None:
    first = ("claude-code", "codex", "recursive", "gemini-cli", "opencode", "cursor")
    assert len({reading.hue(name) for name in first}) == len(first)
    assert reading.hue("an-agent-of-tomorrow") == reading.hue("an-agent-of-tomorrow")
    assert int(reading.hue("<script>").removeprefix("hue-")) < reading.HUES


def test_figures() -> None:
    assert reading.figure(0.123456) == "0.123"
    assert reading.figure({"dense": 0.5, "in_title": 2}) == "dense 0.5, in title 2"
    assert reading.figure(["a", 1.0]) == "a, 1"
    assert reading.plural(1, "reply", "replies") == "1 reply"
    assert reading.plural(1200, "fact") == "1,200 facts"
    assert reading.tail("/srv/shop/api") == "shop/api"
    assert reading.tail("/") == "/"


def test_every_template_is_sound() -> None:
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)
