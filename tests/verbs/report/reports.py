"""Pages as text."""

from __future__ import annotations

from html.parser import HTMLParser


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("wbr", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.pieces.append(data)


def text_of(html: str) -> str:
    """Return the text of HTML, its lines as one; every element must be closed in its place."""
    parser = _Text()
    parser.feed(html.replace("<wbr>", ""))
    assert parser.open == []
    return " ".join(" ".join(parser.pieces).split())
