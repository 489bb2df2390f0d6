"""The page in a real Chromium (`make test-browser`): draws, filters, searches, fits a phone.

Chromium is the system's (or where the variable CHROMIUM points), else Playwright's own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from report_page import HOSTILE, KINDS, made_log, made_page, made_tables

from aria_dvc.report.page.document import document

playwright = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")
pytestmark = pytest.mark.browser
NAMES = ("chromium", "chromium-browser", "google-chrome")
WITH_WEBGL = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
MAP = '[data-plot="map"]'
LARGE = 5_000
"""Dialogues of four utterances: 20,000 of them, each with a vector of its own."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Callable[..., Any]]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with playwright.sync_playwright() as started:
        yield partial(started.chromium.launch, executable_path=path)


@pytest.fixture(scope="module")
def browser(chromium) -> Iterator[Any]:
    opened = chromium(args=WITH_WEBGL)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("small") / "report.html"
    tables = made_tables(made_log(20)), made_tables(made_log(12, seed=1), 4)
    file.write_text(document(made_page(*tables)), "utf-8", newline="\n")
    return file


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("large") / "report.html"
    tables = made_tables(made_log(LARGE, kinds=40), 40, drawn=4 * LARGE)
    file.write_text(document(made_page(tables)), "utf-8", newline="\n")
    return file


class Opened:
    """A page from file:// that has drawn everything, with all that it complained of."""

    def __init__(self, browser: Any, file: Path, view: dict, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport=view, color_scheme=scheme)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.asked: set[str] = set()
        self.page.on("console", lambda said: self._keep(said.type, said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.on("request", lambda request: self.asked.add(request.url.split(":")[0]))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]", timeout=60_000)

    def _keep(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.wrong.append(text)

    def draw_all(self) -> None:
        for node in self.page.query_selector_all("[data-plot]"):
            node.scroll_into_view_if_needed()
            self.page.wait_for_function(
                "node => node.querySelector('.main-svg') || node.classList.contains('none')",
                arg=node,
                timeout=60_000,
            )

    def shown(self, section: str) -> str:
        return self.page.inner_text(f"#{section} output")

    def drawn_points(self) -> int:
        return self.page.evaluate(
            f"document.querySelector('{MAP}').data.reduce((sum, one) => sum + one.x.length, 0)"
        )

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []
        assert self.asked <= {"file", "blob", "data"}


@pytest.fixture
def opened(browser, small) -> Iterator[Opened]:
    page = Opened(browser, small, DESK)
    yield page
    page.close()


@pytest.mark.parametrize(("view", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_everything_is_drawn_without_complaint(browser, small, view, scheme):
    opened = Opened(browser, small, view, scheme)
    opened.draw_all()
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") == view["width"]
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    lines = page.eval_on_selector_all(
        '[data-plot="curve-silhouette"] .js-line', "all => all.map((one) => one.style.stroke)"
    )
    assert lines[0] == ("rgb(0, 114, 178)" if scheme == "light" else "rgb(74, 168, 232)")
    opened.close()


def test_marks_of_the_methods_are_named_and_fit_a_phone(browser, small):
    opened = Opened(browser, small, PHONE)
    opened.draw_all()
    plot = '[data-plot="curve-silhouette"]'
    named = opened.page.eval_on_selector_all(
        f"{plot} .legendtext", "all => all.map((one) => one.textContent)"
    )
    assert named == ["k = 6: silhouette, davies bouldin", "k = 2: split score"]
    right = opened.page.eval_on_selector_all(
        f"{plot} .legendtext", "all => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert max(right) < PHONE["width"]
    marks = opened.page.evaluate(
        f"document.querySelector('{plot}').data.slice(1).map((one) => one.marker.symbol)"
    )
    assert len(set(marks)) == 2, "told apart without colour"
    opened.close()


@pytest.mark.parametrize("view", [DESK, PHONE])
def test_names_in_the_tree_are_large_enough_to_read_or_left_out(browser, large, view):
    opened = Opened(browser, large, view)
    opened.draw_all()
    sizes = opened.page.eval_on_selector_all(
        '[data-plot="tree"] .slicetext',
        """all => all.filter((one) => one.checkVisibility() && one.textContent)
            .map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a)""",
    )
    assert len(sizes) > 1
    assert min(sizes) > 9
    opened.close()


def test_intentions_are_compact_rows_on_a_phone(browser, small):
    opened = Opened(browser, small, PHONE)
    rows = opened.page.eval_on_selector_all(
        ".per-log:not([hidden]) tbody tr:not([hidden])",
        "all => all.map((one) => one.getBoundingClientRect().height)",
    )
    assert 0 < max(rows) < 75
    opened.close()


def test_the_map_filters_by_role_and_outcome(opened):
    opened.draw_all()
    page = opened.page
    assert opened.shown("map").startswith("80 of 80 different embedded texts")
    page.select_option("#map [name=role]", label="alice")
    assert opened.drawn_points() == 40
    assert opened.shown("map").startswith("40 of 80")
    page.select_option("#map [name=outcome]", "above")
    won = opened.drawn_points()
    page.select_option("#map [name=outcome]", "below")
    lost = opened.drawn_points()
    page.select_option("#map [name=outcome]", "half")
    assert won + lost + opened.drawn_points() == 40
    assert min(won, lost) > 0
    page.select_option("#map [name=colour]", "over")
    assert page.evaluate(f"document.querySelector('{MAP}').data.length") == 1


def place_of(page: Any, point: int) -> dict:
    """Where on the screen a point of the map is."""
    return page.evaluate(
        """point => {
            const node = document.querySelector('[data-plot="map"]');
            const box = node.getBoundingClientRect(), {xaxis, yaxis} = node._fullLayout;
            for (const trace of node.data) {
                const at = trace.customdata.indexOf(point);
                if (at >= 0) return {x: box.x + xaxis._offset + xaxis.l2p(trace.x[at]),
                                     y: box.y + yaxis._offset + yaxis.l2p(trace.y[at])};
            }
        }""",
        point,
    )


def test_hovering_tells_what_was_said_as_text(opened):
    page = opened.page
    opened.draw_all()
    page.locator(MAP).scroll_into_view_if_needed()
    said = page.evaluate("block().said")
    row = next(row for row, code in enumerate(said["text"]) if "onerror" in said["texts"][code])
    place = place_of(page, said["point"][row])
    page.mouse.move(place["x"] - 30, place["y"])
    page.mouse.move(place["x"], place["y"], steps=4)
    page.wait_for_selector("#tip:not([hidden])")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#tip")
    assert "over its turn" in page.inner_text("#tip")
    page.mouse.down()
    page.mouse.up()
    page.wait_for_selector("#hover q")
    assert page.query_selector("img") is None


def test_dialogues_are_searched_filtered_and_coloured(opened):
    page = opened.page
    assert opened.shown("dialogues") == "20 of 20 dialogues"
    page.fill("#dialogues [name=find]", "ALL MINE")
    page.wait_for_function("document.querySelector('#dialogues mark')")
    found = page.eval_on_selector_all("#list mark", "all => all.map((one) => one.textContent)")
    assert found
    assert all(text.startswith("all mine") for text in found)
    page.fill("#dialogues [name=find]", "nobody says this")
    page.wait_for_function("!document.querySelector('.dialogue')")
    assert opened.shown("dialogues") == "0 of 20 dialogues"
    page.fill("#dialogues [name=find]", HOSTILE[:15])
    page.wait_for_function("document.querySelector('#dialogues mark')")
    over = page.evaluate("block().said.over")
    signs = page.eval_on_selector_all("#list .said", "all => all.map((one) => one.dataset.sign)")
    assert {"plus" if one > 0 else "minus" for one in over if one} == {s for s in signs if s}


def test_an_intention_leads_to_its_dialogues(opened):
    page = opened.page
    page.click(".per-log:not([hidden]) [data-intention]")
    page.wait_for_function("document.querySelector('#dialogues mark')")
    texts = page.eval_on_selector_all("#list mark", "all => all.map((one) => one.textContent)")
    assert len({text.split(" (")[0] for text in texts}) == 1
    assert texts[0].split(" (")[0].replace("\\u2028", "\u2028")[:8] in {k[:8] for k in KINDS}


def test_another_log_is_drawn_anew(opened):
    opened.draw_all()
    page = opened.page
    before = page.inner_text(f"figure:has({MAP}) figcaption")
    page.select_option("#log", index=1)
    page.wait_for_function(
        "before => document.querySelector('#map figcaption').textContent !== before", arg=before
    )
    assert opened.shown("map").startswith("48 of 48")
    assert "4 intentions of 48 utterances" in page.inner_text(".per-log:not([hidden])")


def test_the_dark_can_come_while_it_is_open(opened):
    opened.draw_all()
    opened.page.emulate_media(color_scheme="dark")
    opened.page.wait_for_function(
        """document.querySelector('[data-plot="curve-silhouette"] .js-line').style.stroke
           === 'rgb(74, 168, 232)'"""
    )


def test_what_is_printed_has_all_figures(opened):
    missing = "all => all.filter((one) => !one.matches('.none, :has(.main-svg)')).length"
    assert opened.page.eval_on_selector_all("[data-plot]", missing) > 3
    opened.page.pdf()
    assert opened.page.eval_on_selector_all("[data-plot]", missing) == 0


def test_a_finger_scrolls_the_page_and_still_selects(browser, small):
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(small.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.locator(MAP).scroll_into_view_if_needed()
    page.wait_for_selector(f"{MAP} .main-svg")
    assert page.evaluate(f"document.querySelector('{MAP}')._fullLayout.dragmode") is False
    place = place_of(page, 0)
    page.touchscreen.tap(place["x"], place["y"])
    page.wait_for_selector("#hover q")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(browser, small, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened = Opened(browser, small, DESK, scheme)
    opened.draw_all()
    # axe is handed to the page past its policy, as a browser's own tools are
    found = axe.Axe().run(opened.page).response["violations"]
    opened.close()
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [n["html"] for n in one["nodes"]][:3]) for one in serious] == []


def test_twenty_thousand_utterances_stay_fluid(browser, large):
    assert large.stat().st_size < 15 * 2**20
    opened = Opened(browser, large, DESK)
    page = opened.page
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 2000
    opened.draw_all()
    assert opened.drawn_points() == 4 * LARGE
    took = page.evaluate(
        """async () => {
            const role = document.querySelector('#map [name=role]'), begin = performance.now();
            role.value = '1';
            role.dispatchEvent(new Event('change'));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            return performance.now() - begin;
        }"""
    )
    assert opened.drawn_points() == 2 * LARGE
    print(f"first paint {paint:.0f} ms, filter {took:.0f} ms, {large.stat().st_size / 1e6:.1f} MB")
    assert took < 2000
    opened.close()


def test_without_webgl_some_of_the_map_is_drawn_and_it_says_so(chromium, large):
    browser = chromium(args=["--no-sandbox", "--disable-3d-apis"])
    opened = Opened(browser, large, DESK)
    opened.draw_all()
    assert opened.drawn_points() == 4000
    assert "no WebGL: only 4,000 are drawn" in opened.page.inner_text("#map figcaption")
    opened.close()
    browser.close()
