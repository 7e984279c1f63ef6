"""The page in a real Chromium: light and dark, wide and narrow, and live."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ftprl.report import Watch, page
from oracles.events import HOSTILE, finished, start

webdriver: Any = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="there is no chromium with its driver here")
FIGURES = ["loss", "floor", "regret", "scales", "calibration", "speed", "coordinates"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def see(browser: Any, width: int = 1200, scheme: str = "light", media: str = "") -> None:
    """Choose the screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def requests(browser: Any) -> list[str]:
    """Return the browser's requests since the last call."""
    result = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in result if m["method"] == "Network.requestWillBeSent"]


def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def boxes(browser: Any) -> dict[str, dict[str, float]]:
    actual: dict[str, dict[str, float]] = browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('figure')].map("
        "f => [f.id, f.querySelector('svg').getBoundingClientRect().toJSON()]))"
    )
    return actual


def colours(browser: Any) -> list[int]:
    """Return the brightness of the paper, the letters and the letters in a figure, from 0 to 765."""
    nodes = "[document.body, 'backgroundColor'], [document.body, 'color'], [document.querySelector('svg text'), 'fill']"
    actual = browser.execute_script(f"return [{nodes}].map(([node, key]) => getComputedStyle(node)[key])")
    return [sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) for colour in actual]


def test_the_page(browser: Any, tmp_path: Path) -> None:
    """One page is checked in every mode, because browsers start and pages draw slowly."""
    events = finished()
    events[0] = start(data={"files": [HOSTILE], "columns": {f"column{i}{'x' * 60}": "numeric" for i in range(40)}})
    path = tmp_path / "page.html"
    path.write_text(page(events, "run.jsonl"), "utf-8")
    see(browser)
    browser.get_log("browser"), requests(browser)
    browser.get(path.as_uri())
    assert requests(browser) == [path.as_uri()], "nothing but the page itself"
    assert browser.get_log("browser") == []

    actual = boxes(browser)
    assert sorted(actual) == sorted(FIGURES)
    assert all(box["width"] > 300 and box["height"] > 150 for box in actual.values())
    wide = "filter(p => p.getBoundingClientRect().width > 100)"
    assert len(browser.execute_script(f"return [...document.querySelectorAll('figure svg path')].{wide}")) > 10

    light = colours(browser)
    assert light[0] > 700 > 200 > max(light[1:])
    see(browser, scheme="dark")
    dark = colours(browser)
    assert dark[0] < 120 < 500 < min(dark[1:]), "the letters in the figures follow"
    see(browser, scheme="dark", media="print")
    assert colours(browser)[0] == 765, "paper is white"

    for width in (390, 320, 768):
        see(browser, width)
        wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1] == width
        assert all(box["right"] <= width for box in boxes(browser).values())
    see(browser, 390)
    texts = "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect())"
    assert browser.execute_script(f"return Math.min(...{texts}.map(b => Math.max(b.width, b.height)))") > 9, "legible"

    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    cells = "return document.querySelectorAll('#loss table tbody tr').length"
    assert browser.execute_script(cells) == 10
    assert browser.execute_script("return [...document.images].length + document.scripts.length") == 0
    assert "<script>alert(1)</script>" in browser.find_element("id", "settings").text


def test_watch_follows_a_run(browser: Any, tmp_path: Path) -> None:
    data, events = tmp_path / "a.vw", tmp_path / "<b>run.jsonl"
    data.write_text("".join(f"{1 if i % 3 else -1} | a{i % 7} b{i % 11}\n" for i in range(3000)))
    watch = Watch(events)
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        see(browser)
        browser.get_log("browser"), requests(browser)
        browser.get(watch.url)

        def text(name: str = "head") -> str:
            return str(browser.execute_script("return document.getElementById(arguments[0]).innerText", name))

        until(lambda: "Waiting for" in text())
        events.write_text(json.dumps(start()) + "\n")
        until(lambda: "running" in text())
        train = [sys.executable, "-m", "ftprl", "train", str(data), "-o", str(tmp_path / "m"), "--bits", "8", "-q"]
        with subprocess.Popen([*train, "--events", str(events)]) as process:
            until(lambda: "finished" in text())
        assert process.returncode == 0
        assert "3,000" in text()
        assert {"loss", "scales"} <= set(boxes(browser))
        assert all(box["height"] > 150 for box in boxes(browser).values())

        opened = "return document.getElementById('loss-numbers').open"
        browser.execute_script("document.getElementById('loss-numbers').open = true")
        with events.open("a") as file:
            file.write(json.dumps({"event": "error", "rows": 3000, "message": "<img src=x onerror=alert(1)>"}) + "\n")
        until(lambda: "failed" in text())
        assert browser.execute_script(opened) is True, "what was opened stays open"
        assert "<img src=x" in text()
        asked = {url.partition("?")[0] for url in requests(browser)}
        assert asked == {watch.url, f"{watch.url}data"}, "nothing but the page and its updates"
        assert browser.get_log("browser") == []
    finally:
        watch.stop()
        thread.join(30)
    until(lambda: "Connection lost" in text("live"))
