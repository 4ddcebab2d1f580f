"""Tar archives of any kind, and what tarfile and WebDataset make of them."""

from __future__ import annotations

import contextlib
import io
import random
import tarfile
from collections.abc import Iterable
from typing import Any

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
_NAMES: tuple[str, ...] = ("a", "b", "c/d", "c.d/e", "__meta__", "__x__/y", "__k", "é", "x" * 120)
_NAMES += ("p" * 80 + "/" + "q" * 90, ".hid", "dir/.hid", "n\nl", "__a__b", "u")
_SUFFIXES = ("jpg", "JPG", "cls", "txt", "seg.png", "")
_RARE_SUFFIXES = ("__key__", "__bad__", "é", "É")
_WITH_DATA = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, b"V")
_KINDS = (*_WITH_DATA, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE)


def archive(names: Iterable[str], *, size: int = 3, mode: Any = "w", **options: Any) -> bytes:
    """Return an archive of files of one size, whose data are the letter x."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode, **options) as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(b"x" * size))
    return sink.getvalue()


def random_archive(rng: random.Random) -> bytes:
    """Return an archive of any format and compression, with members of any kind."""
    sink, form = io.BytesIO(), rng.choice(FORMATS)
    mode: Any = rng.choice(["w", "w", "w:gz"])
    options: dict[str, Any] = {}
    if form == tarfile.PAX_FORMAT and rng.random() < 0.2:
        fields = {"comment": "x"}, {"path": "zz.b"}, {"size": "3"}, {"mtime": "1.5"}, {"uname": "ü"}
        options["pax_headers"] = rng.choice(fields)
    with tarfile.open(fileobj=sink, mode=mode, format=form, **options) as tar:
        for _ in range(rng.randrange(12)):
            info = tarfile.TarInfo(_name(rng))
            info.type = rng.choices(_KINDS, [20, 3, 1, 1, 1, 1, 1, 1])[0]
            if rng.random() < 0.2:
                info.uid = rng.choice([5, 10**7, 2**40])
            if rng.random() < 0.2:
                info.mtime = rng.choice([0, 1.5, 2**35])
            if info.type == tarfile.SYMTYPE:
                info.linkname = "l" * rng.choice([3, 130])
            size = rng.choice([0, 1, 511, 512, 513, 3000])
            info.size = size if info.type in _WITH_DATA else 0
            with contextlib.suppress(ValueError):  # a number or name that the format cannot hold
                tar.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    return sink.getvalue()


def _name(rng: random.Random) -> str:
    name = rng.choice(_NAMES)
    if rng.random() < 0.9:
        name += "." + rng.choice(_SUFFIXES if rng.random() < 0.95 else _RARE_SUFFIXES)
    return name


def regular_files(data: bytes) -> list[tuple[str, int]] | None:
    """Return the names and sizes that `tarfile` reads as a stream, None where it refuses."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as tar:
            return [(info.name, info.size) for info in tar if info.isreg()]
    except (tarfile.TarError, OSError, EOFError, ValueError):
        return None


def samples_by_webdataset(data: bytes) -> tuple[int, str | None]:
    """Return how many samples WebDataset hands out, and what it then raises."""
    from webdataset.tariterators import group_by_keys, tar_file_expander

    number = 0
    try:
        source = [{"url": "a.tar", "stream": io.BytesIO(data)}]
        for _ in group_by_keys(tar_file_expander(source)):
            number += 1
    except Exception as error:
        return number, f"{type(error).__name__}: {error}"
    return number, None
