"""Prints by repository what is said of the pipelines of the corpus: python -m tests.corpus."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from shardctl.errors import ShardctlError
from tests.corpus import test_corpus as corpus
from tests.corpus.world import build_world

COLUMNS = (
    *("fixed", "answered", "refused", "resumed"),
    *("nondeterministic", "refused rightly", "told what to set", "patched"),
)


def counts_of(name: str) -> Counter[str]:
    shape, counts = corpus.of(name), Counter[str]()
    with contextlib.suppress(AssertionError, ShardctlError):
        if shape.open or shape.by_python:
            counts["nondeterministic"] += 1
            corpus.check_open(name)
            counts["refused rightly"] += 1
            if shape.open and shape.cure:
                counts["patched"] += corpus.check_cure(name)
                counts["told what to set"] += 1
        else:
            counts["fixed"] += 1
            counts["refused"] += 1
            first = corpus.check_answer(name, corpus.NUM_PASSES)
            counts["refused"] -= 1
            counts["answered"] += 1
            corpus.check_rest(name, first, 3)
            counts["resumed"] += 1
    return counts


def main() -> None:
    by_repo: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as root:
        build_world(Path(root))
        os.chdir(root)
        for name in corpus.PIPELINES:
            by_repo[corpus.of(name).repo] += counts_of(name)
        os.chdir("/")
    by_repo["all"] = sum(by_repo.values(), Counter[str]())
    print(f"{'':32}" + "".join(f"{column:>18}" for column in COLUMNS))
    for repo, counts in by_repo.items():
        print(f"{repo:32}" + "".join(f"{counts[column]:18}" for column in COLUMNS))


if __name__ == "__main__":
    main()
