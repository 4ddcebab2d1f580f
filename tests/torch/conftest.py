"""Record files that loops of PyTorch are trained on."""

from __future__ import annotations

from pathlib import Path

import pytest

LENGTHS, EPOCHS = (60, 41, 59), 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    (tmp_path / "data").mkdir()
    for shard, length in enumerate(LENGTHS):
        ids = [sum(LENGTHS[:shard]) + i for i in range(length)]
        table = arrow.table({"id": ids, "x": arrow.array(ids, arrow.float32())})
        parquet.write_table(table, tmp_path / "data" / f"toy-{shard:05}.parquet", row_group_size=16)
    return tmp_path / "data"
