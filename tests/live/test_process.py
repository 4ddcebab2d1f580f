"""Loaders in a process of their own, of which nothing stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.errors import DatasetError, UsageError
from shardctl.live.process import GaveUpError, LoaderProcess, in_pieces
from shardctl.loaders.loader import LOADERS, Loader
from shardctl.loaders.loader_sequence import LoaderConfig
from tests.live import toy_loaders

ASKED = LoaderConfig(lengths=np.array([10]), version="1", batch=4, epochs=2)


def entry(toy: type) -> Loader:
    return replace(LOADERS["torch"], calls=f"{toy_loaders.HERE}:{toy.__name__}")


@pytest.mark.long
def test_batches_come_as_they_are_and_one_order_after_the_other() -> None:
    with LoaderProcess(entry(toy_loaders.InOrder)) as process:
        for _ in range(2):
            ((sizes, indices),) = process.pieces(ASKED)
            assert sizes == [4, 4, 2] * 2
            assert indices.tolist() == [*range(10), *range(10)]


@pytest.mark.long
def test_an_order_that_is_left_early_is_begun_anew() -> None:
    with LoaderProcess(entry(toy_loaders.Endless)) as process:
        for _ in range(2):
            pieces = process.pieces(ASKED)
            assert next(pieces)[0][:3] == [4, 4, 2]
            pieces.close()


@pytest.mark.long
def test_what_a_library_raises_comes_after_what_it_handed_out() -> None:
    with LoaderProcess(entry(toy_loaders.Raises)) as process:
        for _ in range(2):  # the process lives on
            pieces = process.pieces(ASKED)
            assert next(pieces)[0] == [3]
            with pytest.raises(GaveUpError, match=r"^no more$"):
                next(pieces)


@pytest.mark.long
def test_a_refusal_and_a_death_are_told_apart() -> None:
    with LoaderProcess(entry(toy_loaders.Refuses)) as process:
        with pytest.raises(UsageError, match="the library refuses these settings"):
            list(process.pieces(ASKED))
        process._loader = entry(toy_loaders.Dies)
        with pytest.raises(GaveUpError, match="its process ended with 7"):
            list(process.pieces(ASKED))


def test_a_python_that_does_not_start_is_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardctl.metadata.index.workers._PROGRAM", "raise SystemExit(3)")
    with (
        LoaderProcess(entry(toy_loaders.InOrder)) as process,
        pytest.raises(DatasetError, match="ended with 3 before it began"),
    ):
        list(process.pieces(ASKED))


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs sessions of processes")
def test_the_end_takes_the_workers_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pids"
    monkeypatch.setenv("WORKER_FILE", str(file))
    with LoaderProcess(entry(toy_loaders.WithWorker)) as process:
        pieces = process.pieces(ASKED)
        next(pieces)
        running = [int(pid) for pid in file.read_text().split()]
        assert all(map(is_running, running))
    deadline = time.monotonic() + 10
    while any(map(is_running, running)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, running))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Batches put together, and what was yielded before an error.


def test_small_batches_come_together_and_large_ones_alone() -> None:
    batches = iter([np.arange(3), np.arange(5000), np.arange(4095), np.arange(2), np.arange(1)])
    assert [(sizes, len(indices)) for sizes, indices in in_pieces(batches)] == [
        ([3, 5000], 5003),
        ([4095, 2], 4097),
        ([1], 1),
    ]
    assert list(in_pieces(iter([]))) == []


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (ValueError("\nfirst line\nsecond"), GaveUpError, r"^first line$"),
        (ValueError(), GaveUpError, "^ValueError$"),
        (UsageError("no"), UsageError, "^no$"),
    ],
)
def test_what_came_before_an_error_is_handed_out_first(
    raised: Exception, kind: type[Exception], words: str
) -> None:
    closed = []

    def broken() -> Iterator[Int64s]:
        try:
            yield np.arange(2)
            raise raised
        finally:
            closed.append(True)

    pieces = in_pieces(broken())
    assert next(pieces)[0] == [2]
    with pytest.raises(kind, match=words):
        next(pieces)
    assert closed == [True]
