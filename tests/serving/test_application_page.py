"""The page in a real browser, used with the keyboard, on a phone and a desktop, light and dark."""

import json
import os
import re
import shutil

import pytest

from tests.serving.running import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# A folder to save screenshots in, for people to look at.
PICTURES = os.environ.get("THINCDIALOG_PICTURES")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium in the PATH"),
]
PHONE, DESKTOP = {"width": 360, "height": 640}, {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = {"executable_path": CHROMIUM, "args": ["--no-sandbox"]}
        browser = playwright.chromium.launch(**options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(models):
    with serving(models / "barista", models / "intents", "--max-characters", "300") as found:
        yield found


@pytest.fixture
def page(browser, server, request):
    """Yield the page, which must send no requests to other servers and report no error."""
    view, scheme = getattr(request, "param", (DESKTOP, "light"))
    context = browser.new_context(viewport=view, color_scheme=scheme, accept_downloads=True)
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(server.url)
    page.get_by_label("Model").wait_for()
    yield page
    context.close()
    assert not wrong and asked
    assert all(url.startswith((server.url, "blob:", "data:")) for url in asked), asked


def turns(page):
    return page.locator("li > p").all_text_contents()


def say(page, text, n_turns):
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    page.locator("li").nth(n_turns - 1).wait_for()


@pytest.mark.parametrize(
    "page", [(v, s) for v in (PHONE, DESKTOP) for s in ("light", "dark")], indirect=True
)
def test_a_conversation_by_keyboard(page, tmp_path):
    page.get_by_label("Model").select_option("barista")
    # The focus is on the text field.
    say(page, "Good morning! " * 9, 2)
    say(page, "A latte, please.", 4)
    found = turns(page)
    assert [text.partition(": ")[0] for text in found] == ["You", "Model"] * 2
    assert page.get_by_role("log").locator("li").count() == 4
    # Alternatives are shown on demand.
    more = page.locator("details").last
    assert re.fullmatch(r"Probability (< )?[\d.]+ %", more.locator("summary").inner_text())
    assert not more.get_by_role("table").is_visible()
    more.locator("summary").focus()
    page.keyboard.press("Enter")
    rows = more.get_by_role("row").all_inner_texts()
    assert len(rows) == 5 and all("%" in row for row in rows)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if PICTURES:
        size, scheme = page.viewport_size, page.evaluate("matchMedia('(prefers-color-scheme: "
                                                         "dark)').matches")  # fmt: skip
        page.screenshot(path=f"{PICTURES}/{size['width']}_{'dark' if scheme else 'light'}.png")
    page.get_by_role("button", name="Save as JSON").focus()
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    waiting.value.save_as(tmp_path / "saved.json")
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert saved["model"] == "barista" and [m["role"] for m in saved["messages"]] == [
        "user", "assistant"
    ] * 2  # fmt: skip
    assert [m["content"] for m in saved["messages"]][2:] == [
        text.partition(": ")[2] for text in found[2:]
    ]
    page.get_by_role("button", name="Restart").press("Enter")
    assert turns(page) == [] and page.get_by_text("Write a message to begin.").is_visible()
    assert page.get_by_role("button", name="Save as JSON").is_disabled()
    assert page.evaluate("document.activeElement.id") == "text"


def test_errors_are_shown_in_words(page, server):
    alert = page.get_by_role("alert")
    page.get_by_label("Your message").fill("x" * 301)
    page.keyboard.press("Enter")
    alert.filter(has_text="has 301 characters, but this server allows 300").wait_for()
    assert page.get_by_label("Your message").input_value() == "x" * 301 and turns(page) == []
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/error.png")
    page.get_by_label("Your message").fill("<b>hi</b>\n")
    page.route("**/chat/completions", lambda route: route.abort())
    page.keyboard.press("Enter")
    alert.filter(has_text="The server cannot be reached").wait_for()
    page.unroute("**/chat/completions")
    page.keyboard.press("Enter")
    page.locator("li").nth(1).wait_for()
    assert turns(page)[0] == "You: <b>hi</b>" and alert.inner_text() == ""


def test_unknown_answers_are_shown_as_such_and_a_key_is_asked_for(browser, models, tmp_path):
    (tmp_path / "keys.txt").write_text("sesame\n")
    options = ("--threshold", "1", "--api-key-file", tmp_path / "keys.txt")
    with serving(models / "barista", *options) as server:
        page = browser.new_page()
        page.goto(server.url)
        page.get_by_role("alert").filter(has_text="Give a key of this server").wait_for()
        page.keyboard.type("sesame")  # The focus is on its field.
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="barista").wait_for()
        assert not page.get_by_label("Model").is_visible()  # There is only one model.
        page.get_by_label("Your message").fill("hi")
        page.keyboard.press("Enter")
        page.locator("li.unknown").wait_for()
        assert "does not know a reply" in page.locator("li.unknown").inner_text()
        assert page.locator("li.unknown tr").count() == 4
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/unknown.png")
        page.close()


def test_unknown_answers_of_a_classifier_are_shown_as_such(browser, models):
    with serving(models / "intents", "--threshold", "1") as server:
        page = browser.new_page()
        page.goto(server.url)
        page.get_by_role("heading", name="intents").wait_for()
        say(page, "warm 1", 2)
        assert "does not know a reply" in page.locator("li.unknown").inner_text(timeout=2000)
        page.close()
