"""Reports whose pages tests open: an ordinary one, one that lacks parts, and hostile ones."""

from __future__ import annotations

import functools
from pathlib import Path

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import Report, report

# What a page must show as it is: markup, quotes, marks that turn the direction of text, long words.
HOSTILE_NAME = "<script>alert(1)</script>"
HOSTILE_SPLIT = "\"'><img src=x onerror=alert(2)>&amp;{0}"
RTL_SPLIT = "סט\u202eניסוי\u200f"
LONG_SPLIT = "w" * 180


@functools.cache
def hang() -> Report:
    """ImageNet by files on 7 hosts, whose evaluation hangs, beside all loaders."""
    settings = {"shuffle_seed": 42, "buffer": 10_000, "buffer_seed": 7, "batch": 256}
    by_files = {**settings, "host_by": "files"}
    return report("imagenet2012", "train", by_files, hosts=7, devices=8, loaders=True)


@functools.cache
def lacking() -> Report:
    """A report without evaluation and quality: one example, and no split to evaluate on."""
    tiny = Dataset(name="tiny", splits=(Split(name="train", shard_lengths=(1,)),))
    return report(tiny, "train", {"shuffle_files": True})


@functools.cache
def hostile() -> Report:
    """A report of a dataset whose names are markup and worse."""
    splits = (
        Split(name=HOSTILE_SPLIT, shard_lengths=(40, 3, 0, 29)),
        Split(name=RTL_SPLIT, shard_lengths=(33,) * 9),
        Split(name=LONG_SPLIT, shard_lengths=(12, 12)),
        Split(name="test", shard_lengths=(17, 5)),
    )
    dataset = Dataset(
        name=HOSTILE_NAME,
        config="&lt;b&gt; ' \" ]]> --> \x1b[31m",
        version="1.0.0",
        splits=splits,
        origin="</style><script>alert(3)</script>",
    )
    return report(dataset, "all", {"shuffle_seed": 1, "buffer": 20, "batch": 8}, hosts=3)


REPORTS = {"hang": hang, "lacking": lacking, "hostile": hostile}


def written(folder: Path, made: Report) -> Path:
    """Return the page of a report as a file in a folder."""
    file = folder / "report.html"
    file.write_text(made.to_html(), encoding="utf-8")
    return file
