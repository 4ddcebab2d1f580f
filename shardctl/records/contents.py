"""What a record file holds, and the first damage in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shardctl.base.text import printable
from shardctl.dataset.dataset import FileFinding, FindingKind

# How far a file was checked. "framing": where records begin and end, or what its footer says;
# "checksums": all data against the file's own checksums; "decoded": all data, in a file that
# carries no checksums, so that only what cannot be decoded is noticed.
Checked = Literal["framing", "checksums", "decoded"]

# How a TFRecord file was compressed as a whole, as tf.data names it.
Compression = Literal["GZIP", "ZLIB"]

# Takes how many bytes more of the file are done, read or jumped over; may raise to end the reading.
Report = Callable[[int], None]


def no_report(count: int) -> None:
    """Take no notice of what was read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """What is wrong in a file, in words, and the first record and byte where it is known.

    Where the file is compressed as a whole, the byte is one of what is inside, and the words say
    so.
    """

    kind: FindingKind
    text: str
    record: int | None = None
    byte: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileContents:
    """What was found in a file up to its end, or up to where it could be followed.

    num_records: whole records, those with damaged data among them; None where nothing says.
    num_bytes: the size of the file, None where there is none; `num_bytes_read` of them were read.
    compression: how the file is compressed as a whole; the records are those inside.
    digest: of all its bytes, "sha256:<hex>", where it was asked for.
    """

    num_records: int | None
    num_bytes: int | None = None
    num_bytes_read: int = 0
    checked: Checked = "framing"
    damage: Damage | None = None
    compression: Compression | None = None
    digest: str | None = None

    @property
    def whole(self) -> bool:
        """Whether the file was read to its end, though data of it may be damaged."""
        return self.damage is None or self.damage.kind == "data"

    def finding(
        self, filename: str, expected: int, split: str | None, compression: str | None = None
    ) -> FileFinding | None:
        """Return what is wrong with the file beside `expected` examples, None where nothing is.

        Nothing in it can be read by who takes it for a file of another `compression`.

        >>> FileContents(num_records=3).finding("f", 4, "train").reason
        'holds 3 examples, not 4'
        """
        # The compression first: read with another one, nothing else about the file matters.
        damage = self._of_another_compression(compression) or self.damage
        if damage is None:
            if self.num_records == expected:
                return None
            examples = "example" if self.num_records == 1 else "examples"
            text = f"holds {self.num_records} {examples}, not {expected}"
            damage = Damage(kind="count", text=text)
        return FileFinding(
            filename=filename,
            expected=expected,
            found=self.num_records,
            reason=damage.text,
            kind=damage.kind,
            split=split,
            record=damage.record,
            byte=damage.byte,
        )

    def _of_another_compression(self, compression: str | None) -> Damage | None:
        """Return that TensorFlow cannot read the file; a plain file without records it can."""
        if self.compression == compression or not (self.compression or self.num_records):
            return None
        own, others = (one or "no compression" for one in (self.compression, compression))
        text = f"{own}, and the dataset's files are read with {others}"
        return Damage(kind="compressed", text=text, record=0, byte=0)


class DamagedError(Exception):
    """What is wrong with a file while it is followed; `contents` is the answer about it."""

    def __init__(
        self,
        kind: FindingKind,
        text: str,
        *,
        byte: int | None = None,
        num_records: int | None = None,
        record: int | None = None,
    ) -> None:
        super().__init__(text)
        text = text if byte is None else f"at byte {byte}: {printable(text, 150)}"
        damage = Damage(kind=kind, text=text, record=record, byte=byte)
        self.contents = FileContents(num_records=num_records, damage=damage)


def refused(
    error: Exception, *, empty: bool = False, record: int | None = None, byte: int | None = None
) -> Damage:
    """Return what a library says of a file that it refuses, in a line.

    >>> refused(ValueError("Invalid footer\\nat ..")).text
    'Invalid footer'
    """
    lines = str(error).strip().splitlines() or ["it cannot be read"]
    said = "the file is empty" if empty else printable(lines[0], 200)
    where = "" if record is None else f"record {record}: "
    return Damage(kind="broken", text=where + said, record=record, byte=byte)
