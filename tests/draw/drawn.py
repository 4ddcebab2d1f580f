"""Answers to draw, pictures of them as lines of a terminal, hostile names, colours of pictures."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.draw.picture import Mark, Picture, picture_lines, words
from shardctl.draw.svg import STYLE
from shardctl.draw.tables import Screen
from shardctl.errors import ShardctlError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.eval.answer import Evaluation, evaluate
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.view import simulate_table

# Names as nobody hopes for them: markup, quotes, text from right to left, what XML cannot hold.
HOSTILE = (
    "<script>alert(1)</script>",
    "]]>&amp;<!--\"'",
    "\u202egnp.exe\u2066",
    "\x01\x1b[31m\x85\ufffe\uffff",
    "\ud800 alone \udfff",
    "$\\frac{1}{2}$ $x",
    "::error title=x::y ##[error]",
    "数据集 данные ✓",
)
HOSTILE_TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(), max_size=40))
LIGHT, DARK = (  # the colours of pictures, by the names of their classes
    dict(re.findall(r"\.picture \.(\w+)\{(?:fill|stroke):(#\w+)\}", part))
    for part in STYLE.split("@media screen and (prefers-color-scheme:dark)")
)


def linear(color: str) -> np.ndarray:
    """Return linear sRGB of a colour of three or six digits."""
    digits = color.removeprefix("#")
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    values = np.array([int(digits[at : at + 2], 16) for at in (0, 2, 4)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """Return the ratio of WCAG 2, 1 to 21."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(linear(color) @ weights) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def picture(*marks: Mark, text: str = "What is shown") -> Picture:
    """Return a picture of these marks, else of a line, every text of which is `text`."""
    marks = marks or (words(text),)
    return Picture(title=text, caption=text, said=text, marks=marks, warnings=(text,))


def drawn(answer: object, width: int | None = 80, *, color: bool = False) -> list[str]:
    """Return the pictures of an answer as lines of a terminal."""
    return "".join(picture_lines(answer, Screen(width=width, color=color))).splitlines()


def without_codes(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def dataset(*lengths: int, name: str = "train") -> Dataset:
    """Return a dataset of one split."""
    return Dataset(name="d", splits=(Split(name=name, shard_lengths=lengths),))


_LENGTHS = st.lists(st.integers(0, 9) | st.integers(0, 3000), min_size=1, max_size=8)
_STAGES = (
    "shuffle(7, seed=3) | batch(4)",
    "batch(3) | batch(2)",
    "take(5) | repeat(3)",
    "shard(2, 1) | shuffle(3, seed=1) | repeat",
    "skip(2) | batch(2) | unbatch | batch(3)",
    "sample_from_datasets([train | repeat, train[2:] | repeat], weights=[0.7, 0.3], seed=4)",
    "zip(train, train[1:]) | batch(3)",
)
_OF_LOADERS: tuple[dict[str, Any], ...] = (
    {"loader": "torch"},
    {"loader": "torch", "shuffle": True, "global_seed": 3},
    {"loader": "hf", "streaming": True, "batch": 3},
    {"loader": "grain", "shuffle_seed": 3, "epochs": 2, "batch": 2},
)
_READ = st.fixed_dictionaries(
    {
        "cycle": st.sampled_from([1, 2, 3, 16, 40, 4096]),
        "block": st.sampled_from([1, 2, 3, 16, 1000]),
        "epochs": st.integers(1, 3),
    },
    optional={
        "batch": st.sampled_from([1, 2, 5, 32]),
        "shuffle_seed": st.integers(0, 5),
        "host": st.sampled_from(["0/2", "1/3"]),
        "drop_remainder": st.booleans(),
    },
)
_SETTINGS = st.one_of(
    _READ,
    st.builds(lambda read, n: {**read, "buffer": n, "buffer_seed": 1}, _READ, st.integers(1, 50)),
    st.sampled_from(_OF_LOADERS),
    st.builds(lambda text: {"stages": text}, st.sampled_from(_STAGES)),
)


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    """Return a stretch of the order of a split or two, empty ones and all of it among them."""
    names = ("train", "a_split_with_a_very_long_name", "12", "数据集")
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    splits = tuple(Split(name=name, shard_lengths=tuple(draw(_LENGTHS))) for name in chosen)
    files, settings = Dataset(name="d", splits=splits), draw(_SETTINGS)
    # Readers of stages have specs of their own.
    spec = None if "train" in settings.get("stages", "") else "+".join(chosen)
    try:
        simulation = simulate(files, spec, settings, take=draw(st.sampled_from([0, 1, 20, 500])))
        skip = draw(st.integers(0, min(simulation.order.num_examples, 10**6)))
        return simulate(files, spec, settings, skip=skip, take=simulation.take)
    except ShardctlError:
        reject()
        raise


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Return an evaluation of few hosts or many, of which some may have nothing to read."""
    lengths = draw(_LENGTHS | st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
    try:
        return evaluate(
            dataset(*lengths, name="test"),
            None,
            ReadSettings(host_by=draw(st.sampled_from(["even", "files", "examples"]))),
            batch_per_device=draw(st.sampled_from([1, 2, 7, 64, 4096])),
            devices=draw(st.sampled_from([1, 8])),
            hosts=draw(st.integers(1, 40) | st.sampled_from([1000, 100_000])),
            remainder=draw(st.sampled_from(["ragged", "drop", "pad"])),
        )
    except ShardctlError:
        reject()
        raise


LENGTHS = {"train": (5, 0, 3, 6), "12": (2,), "validation_of_a_long_name_indeed": (2, 1)}
TOY = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=lengths,
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        )
        for name, lengths in LENGTHS.items()
    ),
)


def simulated(
    spec: str = "train", *, skip: int = 0, take: int | None = None, **settings: object
) -> Simulation:
    """Return a stretch of an order of the toy dataset."""
    return simulate(TOY, spec, ReadSettings(**settings), skip=skip, take=take)  # type: ignore[arg-type]


def text(simulation: Simulation, width: int | None = None, *, color: bool = False) -> str:
    """Return the table of a stretch."""
    return "".join(simulate_table(simulation, Screen(width=width, color=color)))
