"""WebDataset's shards: tar archives, plain or compressed, in which runs of files make samples."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from shardctl.base.text import printable, quoted
from shardctl.dataset.dataset import FindingKind
from shardctl.records.contents import Damage, DamagedError, FileContents, Report, no_report
from shardctl.records.decompress import Bytes, Window, of_packed, packed_as
from shardctl.stores.store import ByteSource

_BEHIND = 1 << 16  # bytes behind the end that are looked at; archives are padded by up to 10 KiB
_PIECE = 1 << 23  # of a file that is read through


def count_webdataset(
    source: ByteSource, *, checksums: bool = False, report: Report = no_report
) -> FileContents:
    """Return how many samples WebDataset reads from an archive, see `RecordFormat`.

    A tar archive has checksums of its headers, which are always compared, and none of its
    data: with `checksums` a plain one is read to its end, no more; a compressed one is checked
    by the checksums of its compression in any case.
    """
    packing = packed_as(source.read(0, min(BLOCK, source.num_bytes)))
    if packing == "gzip":
        behind = "data follows its first gzip stream that WebDataset does not read"
        left = "unpacked, the archive ends, and data follows that WebDataset does not read"
        how = {"lead": "unpacked", "left": left, "behind": behind}
        found = of_packed(source, packing, report, lambda data: _walked(data)[0], **how)
        return replace(found, checked="checksums" if found.damage is None else "framing")
    window = Window(source, no_report if checksums else report)
    found, archive = _walked(window)
    if found.damage is None:
        found = replace(found, damage=_behind(source, archive.end))
    if checksums:
        for start in range(0, source.num_bytes, _PIECE):
            report(len(source.read(start, min(start + _PIECE, source.num_bytes))))
    num_read = source.num_bytes if checksums else min(window.num_bytes_read, source.num_bytes)
    return replace(found, num_bytes=source.num_bytes, num_bytes_read=num_read)


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
    except DamagedError as error:
        damage = error.contents.damage
    damage = damage or archive.damage
    num_samples = samples.num_samples
    if damage is not None:
        # A last sample of which a file is cut off or refused is not whole, so it is not counted.
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


# The members of a tar archive, by their headers alone, as `tarfile` reads them: WebDataset reads
# with it, so what it makes of them is what counts.

BLOCK = tarfile.BLOCKSIZE
_ZEROS = bytes(BLOCK)
_MOST_HEADER = 1 << 26  # bytes of one extended header, which is held in memory

# What `tarfile` raises of a header that it cannot follow.
_REFUSED = (tarfile.TarError, ValueError, OverflowError, LookupError, RecursionError, TypeError)


class Member(NamedTuple):
    """A regular file of an archive; `position` is where its first header begins."""

    position: int
    name: str
    size: int


class Archive:
    """A tar archive while its members are walked; what `tarfile` takes for a file as it does.

    damage: what is wrong at its end, once all members are walked; None where nothing is.
    is_last_cut: whether the last member that was yielded is not whole.
    """

    def __init__(self, *, data: Bytes) -> None:
        self.damage: Damage | None = None
        self.is_last_cut = False
        self.end = 0
        self._data = data
        self._position, self._header, self._is_short = 0, b"", False
        # An empty archive to open; from then on this object is its file, read by read() and tell().
        self._tar = tarfile.TarFile(
            fileobj=io.BytesIO(bytes(2 * BLOCK)), encoding="utf-8", errors="surrogateescape"
        )
        self._tar.fileobj = self  # type: ignore[assignment]

    def members(self) -> Iterator[Member]:
        """Yield the regular files, up to the end of the archive or the first damage."""
        position = 0
        while True:
            header = self._data.at(position, BLOCK)
            if len(header) < BLOCK or header == _ZEROS:
                self._end(position, header)
                return
            try:
                member, following = self._member(position, header)
            except _REFUSED as error:
                self._refuse(position, error)
                return
            if not self._data.is_within(following):
                self.is_last_cut = member is not None
                if member is not None:
                    yield member
                self._damage("cut", position, "its data is cut off")
                return
            if member is not None:
                yield member
            position = following

    def _end(self, position: int, header: bytes) -> None:
        """Look at what is there instead of a header: one of zeros ends an archive."""
        self.end = position
        kind: FindingKind = "cut" if position else "broken"
        if not header and not position:
            self._damage(kind, 0, "the file is empty")
        elif not header:
            text = "the blocks of zeros that end an archive are not there"
            self._damage(kind, position, f"{text}; `truncate -s +1024` adds them")
        elif len(header) < BLOCK:
            self._damage(kind, position, f"{len(header)} of the {BLOCK} bytes of a header are left")

    def _refuse(self, position: int, error: Exception) -> None:
        said = printable(str(error).splitlines()[0] if str(error) else type(error).__name__, 100)
        if self._is_short:
            self._damage("cut", position, "its headers are cut off")
        elif position:
            self._damage("header", position, f"no header of a member ({said})")
        else:
            text = f"no tar archive, or its first header is damaged: {said}"
            self._damage("broken", position, text)

    def _damage(self, kind: FindingKind, position: int, text: str) -> None:
        self.end = position
        self.damage = Damage(kind=kind, text=f"at byte {position}: {text}", byte=position)

    def _member(self, position: int, header: bytes) -> tuple[Member | None, int]:
        """Return the member whose first block is at a place, and where the next one may begin.

        Raises:
            One of _REFUSED: `tarfile` does not follow it.
        """
        self._position, self._header = position, header
        # Reads the header, and extended headers with long names; `offset` is then the next header.
        info = tarfile.TarInfo.fromtarfile(self._tar)
        following = self._tar.offset
        # It must move on, else a damaged size would make the walk endless.
        if following <= position or info.size < 0:
            raise tarfile.HeaderError("its size is negative")
        if any(key == "size" or key.startswith("GNU.sparse.") for key in self._tar.pax_headers):
            # tarfile goes by the headers of the members, and reads their data by this.
            raise tarfile.HeaderError("a global header gives all files one size")
        return Member(position, info.name, info.size) if info.isreg() else None, following

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes of headers and what belongs to them, for `tarfile`.

        Raises:
            tarfile.HeaderError: more than a header can be.
        """
        if not 0 <= size <= _MOST_HEADER:
            raise tarfile.HeaderError(f"a header of {size} bytes")
        # The first block was read already: it is given once, then the bytes that follow.
        found, self._header = self._header or self._data.at(self._position, size), b""
        self._is_short = len(found) < size
        self._position += len(found)
        return found

    def tell(self) -> int:
        """Return where the next bytes are, for `tarfile`."""
        return self._position


# Which files of an archive make a sample, by their names.
#
# Source: webdataset 1.0.2, tariterators.py, tar_file_iterator and group_by_keys.

_META = re.compile(r"__[^/]*__($|/)")
_KEY_AND_SUFFIX = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
_OWN = ("__key__", "__url__")  # what a sample holds besides its files


class Samples:
    """How many samples the files make that were added in the order of the archive.

    A sample is a run of files with one key, that is the name up to the first dot behind the last
    slash; the suffix behind it names a field. Names without a suffix, hidden files among them, and
    those between double underscores belong to none, and end none.

    >>> samples = Samples()
    >>> for name in ("a/0.jpg", "a/0.cls", "a/1.jpg", "README", "a/1.cls", "a/0.txt"):
    ...     samples.add(name, 1)
    >>> samples.num_samples
    3

    is_part: whether the file that was added last belongs to a sample; suffix: its field there.
    """

    def __init__(self) -> None:
        self.num_samples = 0
        self.key: str | None = None
        self.is_part = False
        self.suffix = ""
        self._suffixes: set[str] = set()
        self._is_bad = False

    def add(self, name: str, size: int) -> str | None:
        """Add a file; return why WebDataset refuses it, None where it does not."""
        self.is_part = False
        if name.startswith("__") and _META.match(name):
            return None
        found = _KEY_AND_SUFFIX.match(name)
        if found is None:
            return None
        self.is_part = True
        key, suffix = found.groups()
        suffix = suffix.lower()
        # Only neighbours make a sample: a key that comes again later is another sample.
        if key != self.key:
            self.num_samples += 1
            self.key, self._suffixes, self._is_bad = key, set(), False
        if suffix in self._suffixes or suffix in _OWN:
            return f"{quoted(name, 100)}: sample {quoted(key, 100)} has {quoted(suffix, 40)} twice"
        self._suffixes.add(suffix)
        self.suffix = suffix
        if suffix == "__bad__" and size:  # WebDataset drops a sample that says so
            self._is_bad = True
            self.num_samples -= 1
        return None

    @property
    def is_kept(self) -> bool:
        """Whether the file that was added last belongs to a sample that WebDataset yields."""
        return self.is_part and not self._is_bad

    def without_last(self) -> int:
        """Return how many there are without that of the last file, which is not whole."""
        return self.num_samples - self.is_kept
