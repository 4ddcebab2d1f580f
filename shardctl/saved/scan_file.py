"""Files of `shardctl inspect --scan`: what a stage does to each example, a number or a row each."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import INT64_MAX, POSITIONS
from shardctl.errors import DatasetError, ShardctlError
from shardctl.files import fields
from shardctl.files.atomic import new_file
from shardctl.iteration.regrouped import By, Kept
from shardctl.order.example_codes import ExampleCodes
from shardctl.stores.stores import path_of, read_file

VERSION = 1
SUFFIX = ".scan"
_MOST_BYTES = 1 << 32
UNSEEN = -(1 << 63)  # the value of an example that was not scanned
AGAIN = "run shardctl inspect FILE:function --scan again"


@dataclass(kw_only=True)
class Scan:
    """What a stage does to each example of the splits that a pipeline reads.

    call: the call of tf.data. key: of the functions, see `inspecting.scan.key_of`.
    fingerprint: that of the dataset, "" of elements that are counted.
    by, most, windows, sizes: see `Kept`.
    values: int64[examples] or int64[examples, features] of each split by its name; `UNSEEN` where
        an example was not scanned.
    versions: of TensorFlow and TFDS, which the functions were run with.
    """

    call: str
    key: str
    fingerprint: str
    by: By
    most: int = 1
    windows: dict[int, tuple[int, int]] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    versions: Mapping[str, str | None] = field(default_factory=dict)
    values: dict[str, Int64s] = field(default_factory=dict)

    def kept(self, codes: ExampleCodes | None, shown: str) -> Kept:
        """Return what a stage does to examples by their codes.

        Raises:
            DatasetError: an example was not scanned.
        """
        values = self.column(codes)
        if not self.has_windows():
            raise DatasetError(f"{shown} was interrupted; {AGAIN}")

        def of(wanted: Int64s) -> Int64s:
            found = values[wanted]
            if np.any(found == UNSEEN):
                raise DatasetError(f"{shown} has not scanned all that this reads; {AGAIN}")
            return found

        return Kept(by=self.by, values=of, most=self.most, windows=self.windows, sizes=self.sizes)

    def is_possible(self) -> bool:
        """Whether the values can be those of any scan, whatever a file says."""
        width = (len(self.sizes),) if self.by == "lengths" else ()
        counts = self.by in ("count", "lengths")
        numbers = (self.most, *self.sizes, *chain.from_iterable(self.windows.values()))
        if not -INT64_MAX <= min(numbers) <= max(numbers) <= INT64_MAX:
            return False
        return all(size >= 0 and batch for size, batch in self.windows.values()) and all(
            part.dtype == np.int64
            and part.ndim == 1 + len(width)
            and part.shape[1:] == width
            and not np.any(counts & (part < 0) & (part != UNSEEN))
            and not np.any((self.by == "count") & (part > self.most))
            for part in self.values.values()
        )

    def has_windows(self) -> bool:
        """Whether the groups of all keys are known, where there are groups."""
        keys = {int(key) for part in self.values.values() for key in np.unique(part)}
        return self.by != "key" or keys - {UNSEEN} <= self.windows.keys()

    def column(self, codes: ExampleCodes | None) -> Int64s:
        """Return the values of all codes.

        Raises:
            DatasetError: splits have other lengths.
        """
        if codes is None:
            return self.values.get("", np.empty(0, np.int64))
        shape = next((each.shape[1:] for each in self.values.values()), ())
        sizes = np.diff([*codes.splits.starts, codes.num_codes]).tolist()
        named = [*zip(codes.splits.names, sizes, strict=True)]
        parts = [self.values.get(name, np.full((size, *shape), UNSEEN)) for name, size in named]
        if [*map(len, parts)] != sizes:
            raise DatasetError(f"a scan has other lengths than its dataset; {AGAIN}")
        return np.concatenate(parts)


def write_scan(scan: Scan, path: str) -> None:
    """Write a scan, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    head = {"format_version": VERSION, "kind": "scan"}
    head |= {name: value for name, value in vars(scan).items() if name != "values"}
    head["windows"] = list(scan.windows.items())
    data = io.BytesIO()
    arrays: dict[str, Any] = {f"of {name}": values for name, values in scan.values.items()}
    np.savez_compressed(data, head=np.array(json.dumps(head)), **arrays)
    with new_file(path, "the scan") as file:
        file.write(data.getvalue())


def read_scan(path: str) -> Scan:
    """Return the scan that a file holds.

    Raises:
        DatasetError: it cannot be read, is none, or is of a later version.
    """
    shown = quoted(path, 200)
    try:
        data = read_file(path_of(path), max_num_bytes=_MOST_BYTES)
    except ShardctlError as error:
        raise DatasetError(f"{error}; {AGAIN}") from error
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            head = json.loads(str(found["head"]))
            values = {name[3:]: found[name] for name in found.files if name.startswith("of ")}
        version, kind = head.pop("format_version"), head.pop("kind")
        windows = {int(key): (int(one), int(two)) for key, (one, two) in head.pop("windows")}
        versions = dict(head["versions"])
        scan = fields.record(Scan, head, windows=windows, values=values, versions=versions)
        if not scan.is_possible():
            raise ValueError
    except Exception as error:  # zipfile, zlib, NumPy and json have many for what is damaged
        raise DatasetError(f"{shown} is no whole scan; {AGAIN}") from error
    if version != VERSION or kind != "scan":
        raise DatasetError(f"{shown} is of another version of shardctl; {AGAIN}")
    return scan


def kept_of_scan(call: str, path: str, codes: ExampleCodes | None) -> Kept:
    """Return what a stage does to each example by the scan in a file.

    Raises:
        DatasetError: the scan is of another stage, or of another dataset.
    """
    scan, shown = read_scan(path), quoted(path, 200)
    if scan.call != call:
        raise DatasetError(f"{shown} is a scan of {scan.call}, and not of {call}; {AGAIN}")
    other = DatasetError(f"{shown} is a scan of another dataset, or it has changed; {AGAIN}")
    if scan.fingerprint == ("" if codes is None else codes.scanned_dataset.fingerprint):
        return scan.kept(codes, shown)
    if codes is None or codes.scanned_dataset.file_format != POSITIONS or len(scan.values) != 1:
        raise other
    # Counted elements are of one source, whichever of the pipeline it is: the name of the scan has
    # a hash of it, down to its values.
    (values,) = scan.values.values()
    kept = replace(scan, values={"": values}).kept(None, shown)
    sizes = np.array([split.num_examples for split in codes.dataset.splits])

    def of(wanted: Int64s) -> Int64s:
        split, _, index = codes.places(wanted)
        if np.any(sizes[split] != len(values)):
            raise other
        return kept.values(index)

    return replace(kept, values=of)
