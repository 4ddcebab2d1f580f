"""Reports whose pages are looked at as text, and what stands in them."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import Report, report
from shardctl.verbs.report.page import report_sections


def section(made: Report, anchor: str) -> str:
    """Return the body of a section of the page of a report."""
    return next("".join(one.body) for one in report_sections(made) if one.anchor == anchor)


@cache
def mnist() -> Report:
    """MNIST as it comes: one file, and nobody said how many hosts."""
    return report("mnist")


@cache
def shared() -> Report:
    """Four files of 10, 10, 10 and 6 examples, by files on 2 hosts: 20 and 16, of 4 a batch."""
    splits = (
        Split(name="train", shard_lengths=(10, 10, 10, 6)),
        Split(name="test", shard_lengths=(10, 10, 10, 6)),
    )
    settings = {"shuffle_seed": 1, "buffer": 5, "buffer_seed": 2, "batch": 4, "host_by": "files"}
    return report(Dataset(name="toy", splits=splits), "train", settings, hosts=2, loaders=True)


@cache
def lacking() -> Report:
    """One example, and no split to evaluate on."""
    return report(Dataset(name="tiny", splits=(Split(name="train", shard_lengths=(1,)),)))


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
