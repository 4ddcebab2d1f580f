"""WebDataset's archives: their samples, beside what webdataset reads."""

from __future__ import annotations

import gzip
import random
from typing import Any

import pytest

from shardctl.records.contents import FileContents
from shardctl.records.webdataset import Samples, count_webdataset
from tests.byte_sources import RECORDED, far, near
from tests.cases import FUZZ, add_cases, counted, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_evaluated
from tests.records.tar_files import archive, random_archive, samples_by_webdataset

NAMES = [f"part/{index:04d}.{suffix}" for index in range(20) for suffix in ("jpg", "cls", "json")]


def read(data: bytes, **options: Any) -> FileContents:
    return count_webdataset(near(data), **options)


def said(found: FileContents) -> str:
    assert found.damage is not None
    return found.damage.text


def test_what_webdataset_wrote() -> None:
    folder = RECORDED / "webdataset"
    found = {file.name: read(file.read_bytes()) for file in folder.iterdir()}
    assert {name: (one.num_records, one.damage, one.checked) for name, one in found.items()} == {
        "train-000000.tar": (5, None, "framing"),
        "train-000001.tar": (3, None, "framing"),
        "train-000002.tar.gz": (4, None, "checksums"),  # those of gzip
    }


def check_beside_webdataset(rng: random.Random) -> None:
    data = random_archive(rng)
    for damage in range(4):
        changed = bytearray(data)
        if damage == 1:
            del changed[rng.randrange(len(data)) :]
        elif damage:
            changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        found, (number, refused) = read(bytes(changed)), samples_by_webdataset(bytes(changed))
        if found.damage is None:
            assert (found.num_records, None) == (number, refused)
        elif refused is not None and "duplicate file name" in refused and " twice" in said(found):
            assert found.num_records == number
        assert far_is_near(bytes(changed), found)
        add_cases()


def far_is_near(data: bytes, found: FileContents) -> bool:
    there = count_webdataset(far(data))
    return (there.num_records, there.damage) == (found.num_records, found.damage)


@fuzzed(60, FUZZ)
def test_any_archive_is_read_as_webdataset_reads_it_or_named(num_cases: int) -> None:
    pytest.importorskip("webdataset")
    rng = random_of_a_fuzz_run()
    for _ in range(num_cases):
        check_beside_webdataset(rng)


def test_a_cut_archive_has_the_samples_before_the_cut() -> None:
    data = archive(NAMES, size=600)
    member = 512 + 1024
    for number in counted(range(60)):
        found = read(data[: number * member + 700])
        assert found.damage is not None
        assert (found.damage.kind, found.damage.byte) == ("cut", number * member)
        assert found.num_records == found.damage.record == number // 3
        assert not found.whole
    at_the_end = read(data[: 60 * member])
    assert at_the_end.num_records == 20
    assert "`truncate -s +1024`" in said(at_the_end)


def test_a_damaged_header_is_named_where_webdataset_ends_in_silence() -> None:
    data = bytearray(archive(NAMES, size=100))
    data[10 * 1024 + 5] ^= 1
    found = read(bytes(data))
    assert found.damage is not None
    assert (found.damage.kind, found.damage.byte) == ("header", 10 * 1024)


def test_data_behind_the_end_is_named() -> None:
    one = archive(NAMES[:3])
    assert "the archive ends at byte 3072, and data follows" in said(read(one + one))
    assert read(one + bytes(5000)).damage is None
    damage = read(one + bytes(5000) + one).damage
    assert damage is not None
    assert damage.byte == len(one) + 5000
    packed = gzip.compress(one)
    assert "data follows its first gzip stream" in said(read(packed + packed))
    assert "unpacked, the archive ends, and data follows" in said(read(gzip.compress(one + one)))
    assert read(packed + bytes(512)).damage is None


def test_a_packed_archive_that_is_cut_off_or_changed_is_named() -> None:
    rng, packed = random.Random(9), archive(NAMES, size=900, mode="w:gz")
    for _ in counted(range(60)):
        found = read(packed[: rng.randrange(20, len(packed))])
        assert found.damage is not None
        assert (found.damage.kind, found.damage.byte) == ("cut", None)
    for _ in counted(range(60)):
        damaged = bytearray(packed)
        damaged[rng.randrange(20, len(packed))] ^= 1 << rng.randrange(8)
        assert read(bytes(damaged)).damage is not None


def test_large_members_far_away_are_jumped_over() -> None:
    data = archive([f"{index}.bin" for index in range(6)], size=20_000_000)
    source = far(data)
    found = count_webdataset(source)
    assert (found.num_records, found.damage) == (6, None)
    assert source.num_bytes_read < len(data) / 10
    assert found.num_bytes_read <= source.num_bytes_read


def samples(*names: str, size: int = 1) -> Samples:
    found = Samples()
    for name in names:
        assert found.add(name, size) is None
    return found


def test_runs_of_names_with_one_key_are_samples() -> None:
    assert_evaluated(globals(), "samples")


def test_a_suffix_that_is_there_twice_is_refused() -> None:
    found = samples("a.jpg")
    assert found.add("a.JPG", 1) == "'a.JPG': sample 'a' has 'jpg' twice"
    assert found.without_last() == 0
    assert str(samples("a.jpg").add("a.__key__", 1)).endswith("has '__key__' twice")


def test_a_sample_that_says_that_it_is_bad_is_none() -> None:
    assert samples("a.jpg", "a.__bad__", "b.jpg").num_samples == 1
    assert samples("a.jpg", "a.__bad__", "b.jpg", size=0).num_samples == 2
    bad = samples("a.jpg", "a.__bad__")
    assert (bad.num_samples, bad.without_last()) == (0, 0)


def by_webdataset(names: list[str]) -> tuple[int, bool]:
    tariterators = pytest.importorskip("webdataset.tariterators")
    files: list[dict[str, Any]] = []
    for name in names:
        if not ("/" not in name and name.startswith("__") and name.endswith("__")) and not (
            tariterators.re.match(r"__[^/]*__($|/)", name)
        ):
            files.append({"fname": name, "data": b"x", "__url__": "u"})
    number = 0
    try:
        for _ in tariterators.group_by_keys([*files, {}]):
            number += 1
    except ValueError:
        return number, True
    return number, False


def test_any_names_make_the_samples_of_webdataset() -> None:
    rng = random.Random(5)
    letters = ["a", "b", ".", "/", "_", "__", "\n", "é", "É", "J"]
    for _ in counted(range(3000)):
        names = ["".join(rng.choices(letters, k=rng.randrange(1, 7))) for _ in range(6)]
        found, refused = Samples(), None
        for name in names:
            refused = found.add(name, 1)
            if refused is not None:
                break
        number, is_refused = by_webdataset(names)
        assert is_refused == (refused is not None), names
        assert number == (found.without_last() if is_refused else found.num_samples), names
