"""What is in a file beside what should be."""

from __future__ import annotations

import pytest

from shardctl.records.contents import Compression, Damage, FileContents, refused


def test_the_number_that_is_expected_is_no_finding() -> None:
    assert FileContents(num_records=3).finding("f", 3, "train") is None
    assert FileContents(num_records=0).finding("f", 0, "train") is None


@pytest.mark.parametrize(
    ("found", "text"), [(1, "holds 1 example, not 3"), (0, "holds 0 examples, not 3")]
)
def test_another_number_is_a_finding(found: int, text: str) -> None:
    finding = FileContents(num_records=found).finding("f", 3, "train")
    assert finding is not None
    assert (finding.kind, finding.expected, finding.found) == ("count", 3, found)
    assert (finding.split, finding.reason) == ("train", text)


def test_damage_is_a_finding_though_the_number_is_right() -> None:
    damage = Damage(kind="data", text="record 1: ..", record=1, byte=21)
    contents = FileContents(num_records=3, damage=damage)
    finding = contents.finding("f", 3, None)
    assert finding is not None
    assert (finding.kind, finding.record, finding.byte) == ("data", 1, 21)
    assert contents.whole
    assert not FileContents(num_records=3, damage=Damage(kind="cut", text="")).whole


@pytest.mark.parametrize(
    ("packed", "read_as", "text"),
    [
        ("GZIP", None, "compressed with GZIP; TFDS reads TFRecord files as they are"),
        ("GZIP", "ZLIB", "compressed with GZIP; the dataset's files with ZLIB"),
        (None, "GZIP", "not compressed; the dataset's files are read with GZIP"),
    ],
)
def test_a_file_of_another_compression_cannot_be_read(
    packed: Compression | None, read_as: str | None, text: str
) -> None:
    finding = FileContents(num_records=3, compression=packed).finding("f", 3, "train", read_as)
    assert finding is not None
    assert (finding.kind, finding.reason, finding.found) == ("compressed", text, 3)
    assert (finding.record, finding.byte) == (0, 0)


def test_a_file_of_the_right_compression_is_no_finding() -> None:
    assert FileContents(num_records=3, compression="GZIP").finding("f", 3, None, "GZIP") is None
    # A file without bytes is one without records in any case.
    assert FileContents(num_records=0, num_bytes=0).finding("f", 0, None, "GZIP") is None
    gone = FileContents(num_records=None, damage=Damage(kind="missing", text="missing"))
    finding = gone.finding("f", 3, None, "GZIP")
    assert finding is not None
    assert finding.kind == "missing"


def test_what_a_library_says_is_one_safe_line() -> None:
    error = ValueError("bad \x1b[31m magic\nat line 3")
    assert refused(error, record=4).text == "record 4: bad \\x1b[31m magic"
    assert refused(ValueError("")).text == "it cannot be read"
    assert refused(ValueError("too small"), empty=True).text == "the file is empty"
