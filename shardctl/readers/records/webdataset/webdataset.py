"""WebDataset's shards: tar archives, plain or compressed, in which runs of files make samples."""

from __future__ import annotations

import tarfile
from dataclasses import replace

from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import Checked, Damage, FileContents, Told, untold
from shardctl.readers.records.ranges.packed import PackedError, Unpacked, packed_as
from shardctl.readers.records.ranges.window import Bytes, Window
from shardctl.readers.records.webdataset.members import BLOCK, Archive
from shardctl.readers.records.webdataset.samples import Samples

_BEHIND = 1 << 16  # bytes behind the end that are looked at; archives are padded by up to 10 KiB
_PIECE = 1 << 23  # of a file that is read through


class WebDataset:
    """Files of a tar archive whose names have one key are a sample."""

    name = "webdataset"
    suffixes: tuple[str, ...] = (".tar", ".tgz")

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return how many samples WebDataset reads from an archive, see `RecordFormat.count`.

        A tar archive has checksums of its headers, which are always compared, and none of its
        data: with `checksums` a plain one is read to its end, no more; a compressed one is checked
        by the checksums of its compression in any case.
        """
        packing = packed_as(source.read(0, min(BLOCK, source.num_bytes)))
        if packing == "zstd":
            text = "compressed with zstd, which WebDataset does not read"
            damage = Damage(kind="compressed", text=text, byte=0)
            return FileContents(num_records=None, num_bytes=source.num_bytes, damage=damage)
        if packing is not None:
            return _in_packed(source, packing, told)
        window = Window(source, untold if checksums else told)
        found, archive = _walked(window)
        if found.damage is None:
            found = replace(found, damage=_behind(source, archive.end))
        if checksums:
            _read_through(source, told)
        num_read = source.num_bytes if checksums else min(window.num_bytes_read, source.num_bytes)
        return replace(found, num_bytes=source.num_bytes, num_bytes_read=num_read)

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins with the header of a member, see `RecordFormat.is_of`."""
        if packed_as(head) is not None:
            return None
        try:
            tarfile.TarInfo.frombuf(head[:BLOCK], "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError):
            return False
        return True


def _walked(data: Bytes) -> tuple[FileContents, Archive]:
    """Return what an archive holds, and the walk through it, which says where it ended."""
    archive, samples = Archive(data=data), Samples()
    damage: Damage | None = None
    try:
        for member in archive.members():
            why = samples.add(member.name, member.size)
            if why is not None:
                text = f"at byte {member.position}: {why}; WebDataset refuses that"
                damage = Damage(kind="broken", text=text, byte=member.position)
                break
    except PackedError as error:
        damage = Damage(kind=error.kind, text=str(error))
    damage = damage or archive.damage
    num_samples = samples.num_samples
    if damage is not None:
        if archive.damage is not damage or archive.is_last_cut:
            num_samples = samples.without_last()
        damage = replace(damage, record=num_samples if samples.num_samples else None)
    return FileContents(num_records=num_samples, damage=damage), archive


def _behind(source: ByteSource, end: int) -> Damage | None:
    """Return what is wrong with what follows the end of an archive, None where it is zeros."""
    rest = source.read(end, min(end + _BEHIND, source.num_bytes))
    if not rest.strip(b"\0"):
        return None
    byte = end + len(rest) - len(rest.lstrip(b"\0"))
    text = f"the archive ends at byte {end}, and data follows that WebDataset does not read"
    return Damage(kind="broken", text=text, byte=byte)


def _in_packed(source: ByteSource, packing: str, told: Told) -> FileContents:
    """Return what a compressed archive holds; places are those of the archive inside."""
    data = Unpacked(source, packing, told)
    found, _ = _walked(data)
    damage = found.damage
    if damage is None:
        damage = _behind_in_packed(data, packing)
    elif damage.byte is not None:
        damage = replace(damage, text=f"unpacked, {damage.text}", byte=None)
    checked: Checked = "checksums" if damage is None else "framing"
    return replace(
        found,
        num_bytes=source.num_bytes,
        num_bytes_read=data.num_bytes_read,
        checked=checked,
        damage=damage,
    )


def _behind_in_packed(data: Unpacked, packing: str) -> Damage | None:
    """Return what is wrong behind the end of an archive, which reads what is left of the file."""
    try:
        if data.drain():
            text = "unpacked, the archive ends, and data follows that WebDataset does not read"
            return Damage(kind="broken", text=text)
    except PackedError as error:
        return Damage(kind=error.kind, text=str(error))
    if data.behind():
        text = f"data follows its first {packing} stream, the only one that WebDataset reads"
        return Damage(kind="broken", text=text)
    return None


def _read_through(source: ByteSource, told: Told) -> None:
    for start in range(0, source.num_bytes, _PIECE):
        told(len(source.read(start, min(start + _PIECE, source.num_bytes))))
