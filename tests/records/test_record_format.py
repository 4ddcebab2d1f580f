"""What all formats have in common: names, beginnings, and an answer for any bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shardctl.base.tfds_rules import RECORD_FORMATS
from shardctl.records.read_file import FORMATS
from tests.byte_sources import far, near
from tests.cases import counted
from tests.record_files import framed


def test_every_format_is_counted_by_its_name() -> None:
    assert {*FORMATS} == {*RECORD_FORMATS} - {"riegeli"}
    assert all(counter.name == name for name, counter in FORMATS.items())
    suffixes = [suffix for counter in FORMATS.values() for suffix in counter.suffixes]
    assert len(suffixes) == len({*suffixes})
    assert all(suffix.startswith(".") for suffix in suffixes)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_any_bytes_have_an_answer(name: str, tmp_path: Any) -> None:
    rng, counter = random.Random(18), FORMATS[name]
    beginnings = [b"", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", framed(b"a"), b"\x1f\x8b\x08"]
    beginnings += [b"\x28\xb5\x2f\xfd", b"BZh91AY&SY", bytes(512), b"\3\0\0\0\x40\0\0\0"]
    for _ in counted(range(60)):
        data = rng.choice(beginnings) + rng.randbytes(rng.choice([0, 5, 600, 70_000]))
        data += rng.choice([b"", b"PAR1", b"ARROW1"])
        (tmp_path / "a").write_bytes(data)
        for source in (near(data), far(data)):
            if source.local_path is not None:
                source.local_path = str(tmp_path / "a")
            found = counter.count(source)
            assert found.num_bytes == len(data)
            assert found.damage is not None or found.num_records is not None
            assert found.num_bytes_read <= len(data)
        assert counter.is_of(data[:4096]) in (True, False, None)


def test_what_begins_as_one_format_is_of_no_other() -> None:
    heads = {
        "tfrecord": framed(b"abc" * 50),
        "parquet": b"PAR1" + bytes(100),
        "arrow": b"ARROW1\0\0" + bytes(100),
        "array_record": bytes.fromhex("83af70d10d884a3f") + bytes(8) + b"\x40" + bytes(70),
    }
    for name, head in heads.items():
        found = {other for other, counter in FORMATS.items() if counter.is_of(head)}
        assert found == {name}
