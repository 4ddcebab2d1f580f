"""Reads as a plan file gives them, made of a few rows."""

from __future__ import annotations

import numpy as np

from shardctl.spec.reads import NamedFiles, Reads


def named_reads(
    *rows: tuple[str, int, int],
    lengths: tuple[int, ...] | None = None,
    shards: tuple[int, ...] | None = None,
) -> Reads:
    """Return reads of a split `train`, each row the name of its file, skip and take.

    A file is as long as it is read where `lengths` says nothing.
    """
    skip, take = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    return Reads(
        files=NamedFiles(
            split_names=("train",),
            names=[name for name, _, _ in rows],
            lengths=skip + take if lengths is None else np.array(lengths, np.int64),
            shards=None if shards is None else np.array(shards, np.int64),
        ),
        part=np.zeros(len(rows), np.int64),
        split=np.zeros(len(rows), np.int64),
        shard=np.arange(len(rows)),
        skip=skip,
        take=take,
    )
