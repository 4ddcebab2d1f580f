"""MDS shards, put together as their library does."""

from __future__ import annotations

import json

import numpy as np

COLUMNS = json.dumps(
    {"column_encodings": ["int"], "column_names": ["x"], "column_sizes": [8], "format": "mds"}
).encode()


def shard(*samples: bytes) -> bytes:
    """Return a shard as encode_joint_shard of streaming/base/format/mds/writer.py makes it."""
    offsets = np.array([0, *map(len, samples)]).cumsum().astype(np.uint32)
    offsets += 4 + offsets.nbytes + len(COLUMNS)
    return np.uint32(len(samples)).tobytes() + offsets.tobytes() + COLUMNS + b"".join(samples)
