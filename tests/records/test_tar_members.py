"""The members of archives are those that tarfile reads from a stream, as WebDataset does."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from shardctl.records.contents import DamagedError
from shardctl.records.decompress import Unpacked, Window, packed_as
from shardctl.records.webdataset import Archive
from tests.byte_sources import near
from tests.cases import counted, some
from tests.golden import listed
from tests.records.tar_files import FORMATS, archive, random_archive, regular_files


def walked(data: bytes) -> tuple[list[tuple[str, int]], Archive]:
    source = near(data)
    packing = packed_as(data[:512])
    found = Archive(data=Window(source) if packing is None else Unpacked(source, packing))
    try:
        return [(member.name, member.size) for member in found.members()], found
    except DamagedError:
        return [], found


def check(data: bytes) -> bool:
    found, walk = walked(data)
    if walk.damage is not None or (packed_as(data) and not walk.end):
        return False
    assert found == regular_files(data)
    return True


def test_any_archive_has_the_members_of_tarfile() -> None:
    rng, num_sound = random.Random(6), 0
    for _ in counted(range(80)):
        num_sound += check(random_archive(rng))
    assert num_sound > 60


def test_damaged_archives_are_said_or_read_the_same() -> None:
    rng, num_sound = random.Random(7), 0
    for _ in counted(range(100)):
        data = bytearray(random_archive(rng))
        if rng.random() < 0.5:
            data = data[: rng.randrange(len(data))]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        num_sound += check(bytes(data))
    assert num_sound < 75


@pytest.mark.parametrize("form", FORMATS)
def test_each_place_at_which_an_archive_is_cut_off_is_named(form: int) -> None:
    data = archive(["a.txt", "l" * 99, "b.txt"], size=600, format=form)
    end = len(data.rstrip(b"\0")) // 512 * 512 + 512
    last = data.rindex(b"b.txt")
    for cut in [*range(1, end, 97), *range(512, end + 1, 512)]:
        found, walk = walked(data[:cut])
        damage = walk.damage
        assert damage is not None, cut
        assert damage.byte is not None
        assert damage.byte <= cut
        assert walk.is_last_cut == (cut % 512 != 0 or damage.byte < cut) or len(found) < 3
        if cut > last + 512:
            assert len(found) == 3
    found, walk = walked(data[: end + 512])  # one block of zeros is enough for tarfile
    assert (len(found), walk.damage, walk.end) == (3, None, end)


def changed(start: int, value: bytes) -> Callable[[bytes], bytes]:

    def change(data: bytes) -> bytes:
        header = bytearray(data[1024:1536])
        header[start : start + len(value)] = value
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        return data[:1024] + bytes(header) + data[1536:]

    return change


@pytest.mark.long
@pytest.mark.parametrize("change", listed(Path(__file__).with_name("odd_headers.txt"), globals()))
def test_odd_headers_are_what_tarfile_makes_of_them(change: Callable[[bytes], bytes]) -> None:
    data = change(archive(["a.txt", "b.txt", "c.txt", "d.txt"]))
    found, walk = walked(data)
    expected = regular_files(data)
    if walk.damage is None:
        assert found == expected
    else:  # tarfile ends there in silence, or refuses too
        assert expected is None or found == expected[: len(found)]


def test_a_header_that_claims_gigabytes_is_not_read_into_memory() -> None:
    header = bytearray(archive(["a"]))[:512]
    header[156:157] = b"x"
    header[124:136] = b"%011o\0" % (1 << 30)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    _, walk = walked(bytes(header) + bytes(4096))
    assert "a header of 1073741824 bytes" in str(walk.damage)


def test_what_is_no_archive_is_said() -> None:
    for data, said in (
        (b"", "the file is empty"),
        (b"hello", "5 of the 512 bytes of a header are left"),
        (b"hello" * 200, "no tar archive, or its first header is damaged: "),
    ):
        damage = some(walked(data)[1].damage)
        assert (damage.kind, damage.byte, said in damage.text) == ("broken", 0, True)
    assert walked(bytes(1024))[1].damage is None


def test_a_size_in_a_header_of_pax_counts() -> None:
    one = tarfile.TarInfo("a.bin")
    one.size, one.pax_headers = 700, {"size": "700"}
    data = bytearray(one.tobuf(tarfile.PAX_FORMAT))
    header = data[-512:]
    header[124:136] = b"00000000000\0"  # what does not fit there is 0
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data[-512:] = header
    whole = bytes(data) + b"x" * 700 + bytes(324) + archive(["b.txt"])
    assert walked(whole)[0] == regular_files(whole) == [("a.bin", 700), ("b.txt", 3)]
