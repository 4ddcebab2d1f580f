"""Whatever became of files between two runs, what is known of them is what counting anew says."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

from shardctl.files.documents import to_yaml
from shardctl.metadata.index.index import index, index_document
from shardctl.verbs.index.check import check_index
from tests.cases import FUZZ, counted, fuzzed, random_of_a_fuzz_run
from tests.record_files import framed

PIECE = framed(b"x" * 34)  # 50 bytes, so that files of other records often have one size


class Folder:
    def __init__(self, path: Path, rng: random.Random, pack: Callable[[bytes], bytes]) -> None:
        self.path, self.rng, self.pack = path, rng, pack
        self.held: dict[str, int | None] = {}

    def change(self) -> None:
        ways = [self.add, self.add, self.rewrite, self.grow, self.cut, self.touch, self.swap]
        self.rng.choice([*ways, self.remove] if self.held else [self.add])()

    def _one(self) -> str:
        return self.rng.choice(sorted(self.held))

    def _write(self, name: str) -> None:
        count = self.rng.choice((0, 1, 2, 4))
        sizes = {1: 184, 2: 84, 4: 34, 0: 0}  # 200 bytes, however many records
        data = framed(*[b"x" * sizes[count]] * count)
        there, other = self.path / name, self.path / "other.tmp"
        target = self.rng.choice((there, other))  # in place, or put in its place
        target.write_bytes(self.pack(data))
        if target == other:
            other.replace(there)
        self.held[name] = count

    def add(self) -> None:
        self._write(f"train-{len(self.held):03}.tfrecord")

    def rewrite(self) -> None:
        self._write(self._one())

    def remove(self) -> None:
        (self.path / max(self.held)).unlink()
        del self.held[max(self.held)]

    def grow(self) -> None:
        name = self._one()
        count = self.held[name]
        if count:  # behind a compressed file that holds nothing TensorFlow reads nothing
            with (self.path / name).open("ab") as file:
                file.write(self.pack(PIECE))
            self.held[name] = count + 1

    def cut(self) -> None:
        name = self._one()
        size = (self.path / name).stat().st_size
        if size:
            os.truncate(self.path / name, size - 1)
            self.held[name] = None

    def touch(self) -> None:
        os.utime(self.path / self._one())

    def swap(self) -> None:
        first, second = self._one(), self._one()
        if first != second:
            (self.path / first).rename(self.path / "other.tmp")
            (self.path / second).rename(self.path / first)
            (self.path / "other.tmp").rename(self.path / second)
            held = self.held
            held[first], held[second] = held[second], held[first]

    def state(self) -> dict[str, tuple[int, int | None]]:
        sizes = {name: (self.path / name).stat().st_size for name in self.held}
        return {name: (sizes[name], count) for name, count in sorted(self.held.items())}


def check_a_history(tmp_path: Path, rng: random.Random, num_steps: int) -> None:
    folder = Folder(tmp_path / "data", rng, rng.choice((bytes, gzip.compress)))
    folder.path.mkdir(parents=True)
    layout, then = tmp_path / "layout.yaml", dict[str, tuple[int, int | None]]()
    for _ in counted(range(num_steps)):
        for _ in range(rng.choice((1, 1, 4))):
            folder.change()
        if not folder.held:
            continue
        now = folder.state()
        if layout.exists():
            assert changes_found(layout, folder.path) == changes_between(then, now)
        found = index(folder.path, keep_going=True, cache=rng.random() < 0.8)
        if not found.splits:
            continue  # all are broken, and there is nothing to describe
        (split,) = found.dataset.splits
        names = [os.path.basename(name) for name in split.filenames]
        assert dict(zip(names, split.shard_lengths, strict=True)) == {
            name: count for name, (_, count) in now.items() if count is not None
        }
        anew = index(folder.path, keep_going=True, cache=False)
        text = "".join(to_yaml(index_document(found, str(tmp_path))))
        assert text == "".join(to_yaml(index_document(anew, str(tmp_path))))
        layout.write_text(text)
        then = now


def changes_found(layout: Path, folder: Path) -> dict[str, str]:
    found = check_index(layout, folder)
    return {os.path.basename(change.path): change.kind for change in found.changes}


def changes_between(
    then: dict[str, tuple[int, int | None]], now: dict[str, tuple[int, int | None]]
) -> dict[str, str]:
    kinds = {}
    for name, (size, count) in now.items():
        size_then, count_then = then.get(name, (None, None))
        if size_then is None:
            kinds[name] = "appeared"
        elif size != size_then:
            kinds[name] = "grew" if size > size_then else "shrank"
        elif count != count_then:
            kinds[name] = "broken" if count is None else "rewritten"
    return kinds | {name: "vanished" for name in then if name not in now}


@fuzzed(1, max(1, FUZZ // 100))
def test_a_history(tmp_path: Path, num_cases: int) -> None:
    rng = random_of_a_fuzz_run()
    for number in range(num_cases):
        check_a_history(tmp_path / str(number), rng, 12)
