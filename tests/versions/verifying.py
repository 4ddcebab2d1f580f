"""Runs `shardctl verify` on data that this environment's TFDS writes, in many ways.

    python -m tests.versions.verifying FOLDER

Prints a line for what was not equal, and last how many orders were, of how many.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from shardctl.cli.main import main
from tests.tfds_datasets import build_dataset

SPLITS = {"train": [300, 0, 411, 1, 160, 128], "test": [17, 3]}
FORMATS = ("tfrecord", "parquet", "array_record")

ORDERS = (
    "train",
    "train[10%:]+test --cycle 3 --block 5",
    "train --shuffle-seed 42 --epochs 2",
    "train --shuffle-seed 42 --buffer 100 --buffer-seed 7 --epochs 2 --batch 8",
    "train --buffer 64 --global-seed 5 --epochs 3 --pass 1",
    "train --shuffle-seed 1 --host 1/3 --host-by files",
    "train --shuffle-seed 3 --epochs 2 --loop keras-fit",
)
STAGED = "cache | shuffle(50, seed=7) | repeat(2) | batch(64)"


def problems(folder: Path) -> tuple[list[str], int]:
    """Return a line for each order that is not equal, and how many were compared."""
    found, num_orders = [], 0
    cases = [
        (form, [*order.split(), "-d", str(folder / "toys" / form / "1.0.0")])
        for form in FORMATS
        for order in ORDERS
    ]
    for form in FORMATS:
        build_dataset(folder / "toys", name=form, splits=SPLITS, file_format=form)
    cases.append(("stages", ["-d", str(folder / "toys/tfrecord/1.0.0"), "--stages", STAGED]))
    large = ["--shuffle-seed", "32", "--buffer", "10000", "--buffer-seed", "1", "--take", "300000"]
    cases.append(("imagenet2012", ["-d", "imagenet2012", *large]))
    for name, words in cases:
        num_orders += 1
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        code: object = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(["verify", *words])
            except SystemExit as ended:
                code = ended.code
        if code:
            said = [line for stream in (err, out) for line in written(stream)]
            found.append(f"{name}: verify {' '.join(words)} exits with {code}: {said[:3]}")
    return found, num_orders


def written(stream: io.TextIOWrapper) -> list[str]:
    """Return the lines that were written to a stream in memory."""
    stream.seek(0)
    return stream.read().splitlines()


if __name__ == "__main__":
    unequal, compared = problems(Path(sys.argv[1]))
    print(*unequal, f"{compared - len(unequal)} of {compared}", sep="\n")
    raise SystemExit(1 if unequal else 0)
