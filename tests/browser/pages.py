"""Pages that tests open: an ordinary report, one that lacks parts, hostile ones, comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable

from shardctl.api.diff import compare_reports
from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import Report, report
from shardctl.verbs.snapshot.answer import snapshot
from tests.verbs.diff.diff_cases import dataset_of

# What a page must show as it is: markup, quotes, marks that turn the direction of text, long words.
HOSTILE_NAME = "<script>alert(1)</script>"
HOSTILE_SPLIT = "\"'><img src=x onerror=alert(2)>&amp;{0}"
RTL_SPLIT = "סט\u202eניסוי\u200f"
LONG_SPLIT = "w" * 180
_SHUFFLED = {"shuffle_seed": 42, "buffer": 10_000, "buffer_seed": 7, "batch": 256}


@functools.cache
def hang() -> Report:
    """ImageNet by files on 7 hosts, whose evaluation hangs, beside all loaders."""
    by_files = {**_SHUFFLED, "host_by": "files"}
    return report("imagenet2012", "train", by_files, hosts=7, devices=8, loaders=True)


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


def lacking() -> Report:
    """A report without evaluation and quality: one example, and no split to evaluate on."""
    tiny = Dataset(name="tiny", splits=(Split(name="train", shard_lengths=(1,)),))
    return report(tiny, "train", {"shuffle_files": True})


def parting(dataset: str = "imagenette") -> str:
    """Two readings of a dataset, which part and are shuffled otherwise."""
    before = snapshot(dataset, "train", {"shuffle_seed": 42})
    return compare_reports(before, report(dataset, "train", _SHUFFLED)).to_html()


def not_known() -> str:
    """A snapshot that pins hashes beside settings without an order."""
    long = dataset_of({"train": tuple(n**3 % 997 + 1 for n in range(20_000))})
    kept = snapshot(long, "train", {}).snapshot
    return compare_reports(kept, report(long, "train", {"shuffle_files": True})).to_html()


def attack() -> str:
    """The splits of a dataset whose names are markup, beside those of another one."""
    other = Dataset(name="<b>", splits=hostile().dataset.splits)
    made = report(other, "all", {"shuffle_seed": 2})
    return compare_reports(hostile(), made).to_html()


PAGES: dict[str, Callable[[], str]] = {
    "hang": lambda: hang().to_html(),
    "alone": lambda: report("imagenet2012", "train", {"shuffle_seed": 1, "batch": 256}).to_html(),
    "lacking": lambda: lacking().to_html(),
    "hostile": lambda: hostile().to_html(),
    "parting": parting,
    "not known": not_known,
    "attack": attack,
}
