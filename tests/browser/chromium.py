"""Chromium, found on this machine and started without a network; pages opened in it."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
WIDE, NARROW = 1280, 390  # pixels: of a desk, and of a telephone
Scheme = Literal["light", "dark"]


def chromium(named: str | None) -> str | None:
    """Return the path of Chromium, the one that is named or one of `NAMES`, None without one."""
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started(named: str | None) -> Iterator[Any]:
    """Yield a browser, else why there is none."""
    path = chromium(named)
    if path is None:
        yield f"{named} is no program" if named else f"none of {', '.join(NAMES)} is installed"
        return
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        yield f"the extra shardctl[browser] is not installed ({error})"
        return
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        stack.callback(browser.close)
        yield browser


@dataclass(kw_only=True)
class Opened:
    """A page in a browser, and what happened there that should not: it is empty where all is well.

    page: of Playwright. happened: requests that leave, errors, messages of the console, dialogs.
    """

    page: Any
    happened: list[str] = field(default_factory=list)

    def is_quiet(self) -> bool:
        """Whether nothing happened; a test shows what did."""
        assert self.happened == []
        return True


@contextmanager
def opened(
    browser: Any, file: Path, *, width: int = WIDE, scheme: Scheme = "light", scripts: bool = True
) -> Iterator[Opened]:
    """Yield a file opened in the tab that the browser has for it, which has no network.

    A new tab costs more than all that most tests do in it: there is one after a failure alone.
    """
    page = _tab(browser, scripts)
    found = Opened(page=page)
    try:
        page.emulate_media(media="null", color_scheme=scheme)
        widen(page, width)
        with _watched(found, file.as_uri()):
            page.goto(file.as_uri())
            yield found
        page.goto("about:blank")  # what this page would still do is not the next one's doing
    except BaseException:
        _tab.cache_clear()
        raise


def widen(page: Any, width: int) -> None:
    """Give a page a screen of this width."""
    page.set_viewport_size({"width": width, "height": 900 if width == WIDE else 844})


@functools.cache
def _tab(browser: Any, scripts: bool) -> Any:
    return browser.new_context(offline=True, java_script_enabled=scripts).new_page()


@contextmanager
def _watched(found: Opened, address: str) -> Iterator[None]:
    page, happened = found.page, found.happened

    def asked(request: Any) -> None:
        if request.url.partition("#")[0] != address:
            happened.append(f"request: {request.url}")

    def asking(dialog: Any) -> None:
        happened.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    listeners = {
        "request": asked,
        "console": lambda said: happened.append(f"console: {said.text}"),
        "pageerror": lambda error: happened.append(f"error: {error}"),
        "dialog": asking,
        "popup": lambda popup: happened.append(f"popup: {popup.url}"),
        "download": lambda download: happened.append(f"download: {download.url}"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)


def open_all(page: Any) -> None:
    """Open everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


def violations(page: Any, *, rows: int | None = None) -> list[str]:
    """Return what axe-core finds wrong with a page, a line a rule and element.

    rows: the first so many rows of each table are left for it, and the last. Most of its time goes
    to the colours of every cell, and a row is like those above it.
    """
    if rows is not None:
        beyond = f"tbody tr:nth-child(n + {rows + 1}):not(:last-child)"
        page.evaluate(
            "rows => document.querySelectorAll(rows).forEach(row => row.remove())", beyond
        )
    page.evaluate(_axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


@functools.cache
def _axe() -> str:
    import axe_playwright_python

    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")


# Boxes of text have the height of a whole font, of which letters fill the middle.
_FAULTS = Path(__file__).with_name("geometry.js").read_text("utf-8")


def faults(page: Any) -> list[str]:
    """Return what of a page overlaps, is cut or sticks out, a line each; none where all is well."""
    found: list[str] = page.evaluate(_FAULTS)
    return found
