"""Prints by repository what is said of the pipelines of the corpus: python -m tests.corpus."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from shardctl.errors import ShardctlError
from tests.corpus import test_corpus as corpus
from tests.corpus.world import build_world

COLUMNS = (
    "fixed",
    "answered",
    "resumed",
    "nondeterministic",
    "refused",
    "told what to set",
    "patched",
)


def true_of(name: str) -> Iterator[str]:
    """Yield the columns that a pipeline counts in, until one of them cannot be shown."""
    shape = corpus.of(name)
    if shape.open or shape.by_python:
        yield "nondeterministic"
        corpus.check_open(name)
        yield "refused"
        if shape.open and shape.cure:
            is_patched = corpus.check_cure(name)
            yield from ("told what to set", *["patched"] * is_patched)
        return
    yield "fixed"
    first = corpus.check_answer(name, corpus.NUM_PASSES)
    yield "answered"
    corpus.check_rest(name, first, 3)
    yield "resumed"


with tempfile.TemporaryDirectory() as root, contextlib.chdir(root):
    build_world(Path(root))
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in corpus.PIPELINES:
        with contextlib.suppress(AssertionError, ShardctlError):
            for column in true_of(name):
                counts[corpus.of(name).repo][column] += 1
                counts["all"][column] += 1
print(f"{'':32}" + "".join(f"{column:>18}" for column in COLUMNS))
for repo in sorted(counts, key="all".__eq__):
    row = "".join(f"{counts[repo][column]:18}" for column in COLUMNS)
    print(f"{repo:32}{row}")
