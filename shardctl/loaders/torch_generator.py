"""PyTorch's random generator on the CPU, and what it draws.

Sources: aten/src/ATen/core/MT19937RNGEngine.h (the 32 bits of a seed that count),
ATen/native/TensorFactories.cpp, randperm_cpu (Fisher and Yates from the front, one draw of 32
bits a step below 2^32 / 20 elements), ATen/core/TransformationHelper.h (`random_()` of an int64,
`randint`, doubles), ATen/native/Distributions.cpp and cpu/MultinomialKernel.cpp (`multinomial`),
ATen/CPUGeneratorImpl.cpp (the bytes of `get_state`).
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.base.progress import Progress
from shardctl.base.text import quoted
from shardctl.errors import UsageError
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER, Contents, Offsets, replayed

Doubles = NDArray[np.float64]
MIN_SEED, MAX_SEED = -(1 << 63), (1 << 64) - 1

_DRAWS_PER_SECOND = 200_000_000
_PIECE = 1 << 24  # draws skipped at once
_BYTES = 30  # of memory an example: the permutation, and what it is made with


class Generator:
    """`torch.Generator().manual_seed(seed)`; also torch's default one after `torch.manual_seed`.

    Draws are looked up by their number, of 32 bits each, counted from 0; one after the other is
    cheap, and an earlier one begins anew. `drawn` is the number of the next one.

    >>> Generator(5).randperm(6).tolist()
    [5, 0, 1, 3, 4, 2]
    """

    def __init__(self, seed: int, state: bytes | None = None) -> None:
        """`state` is what `get_state` returned; draws are then counted from there."""
        # torch takes 64 bits; the Mersenne Twister is seeded with the low 32.
        self.initial_seed, self._state = seed, state
        self._bits, self.drawn = self._seeded(), 0

    def draws(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return draws [start, stop)."""
        # An earlier draw than where the generator stands: from the start again.
        if start < self.drawn:
            self._bits, self.drawn = self._seeded(), 0
        if start > self.drawn:
            self._skip(start - self.drawn)
        self.drawn = stop
        return self._bits.random_raw(stop - start)

    def seek(self, start: int) -> Generator:
        """Return this generator, whose next draw is `start`."""
        self.draws(start, start)
        return self

    @property
    def words(self) -> tuple[NDArray[np.uint32], int]:
        """The words of its state, and the place of the next one."""
        state: Any = self._bits.state
        return state["state"]["key"], state["state"]["pos"]

    def int64(self, below: int = 1 << 63) -> int:
        """Return what `torch.empty((), dtype=torch.int64).random_()` draws next: two draws."""
        # The first draw is the high word; random_() of int64 keeps 63 bits.
        high, low = self._next(2).tolist()
        return int((high << 32 | low) % below)

    def randperm(self, num_elements: int) -> Contents:
        """Return what `torch.randperm(num_elements)` draws next; see `num_draws`.

        Raises:
            UsageError: there are more elements than are shuffled here.
        """
        if num_elements > MAX_BUFFER:
            raise UsageError(
                f"torch.randperm of {num_elements:,} examples takes about "
                f"{num_elements * _BYTES // 10**9} GB here, and more than {MAX_BUFFER:,} are "
                "refused; read fewer of them, a part of the spec at a time, or do not shuffle"
            )

        start = self.drawn
        progress = Progress("examples shuffled", num_elements)

        def offsets(first: int, last: int) -> Offsets:
            # Fisher-Yates from the front: step i swaps with i + draw % (n - i). `left` are the
            # moduli n - i, shape (last - first,).
            left = np.arange(num_elements - first, num_elements - last, -1).astype(np.uint32)
            # The last element stays where it is, and nothing is drawn for it.
            drawn = self.draws(start + first, start + min(last, num_elements - 1))
            # uint32 arithmetic, as in C++.
            left[: len(drawn)] = drawn.astype(np.uint32) % left[: len(drawn)]
            left[len(drawn) :] = 0
            progress.advance(last - first)
            return left

        return replayed(num_elements, num_elements, offsets)

    def randint(self, high: int, count: int) -> Int64s:
        """Return what `torch.randint(high, (count,))` draws next, one draw each below 2^28."""
        if high > MAX_BUFFER:
            raise UsageError(f"replacement=True is known of {MAX_BUFFER:,} examples or less")
        return (self._next(count) % high).astype(np.int64)

    def multinomial(self, weights: Doubles, count: int, replacement: bool) -> Int64s:
        """Return what `torch.multinomial` of doubles draws next."""
        if replacement and count > 1:
            sums = np.cumsum(weights)
            shares: Doubles = sums / sums[-1]
            return np.searchsorted(shares, self._doubles(count))
        # A race of exponentials: those come first that are soonest.
        race = weights / -np.log1p(-self._doubles(len(weights)))
        return np.argsort(-race, kind="stable")[:count]

    def _doubles(self, count: int) -> Doubles:
        """Return numbers in [0, 1) of 53 bits, two draws each."""
        high, low = self._next(2 * count).reshape(-1, 2).T
        bits = (high << np.uint64(32) | low) & np.uint64((1 << 53) - 1)
        return bits.astype(np.float64) * 2.0**-53

    def _next(self, count: int) -> NDArray[np.uint64]:
        return self.draws(self.drawn, self.drawn + count)

    def _seeded(self) -> np.random.MT19937:
        bits = np.random.MT19937()
        if self._state is not None:
            # The words are stored as 64 bits; `left` says how many are unused, and one.
            key = np.frombuffer(self._state[24 : 24 + 624 * 8], "<u8").astype(np.uint32)
            place = 625 - int.from_bytes(self._state[8:12], "little")
            bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": place}}
            return bits
        # The public way to the seeding of Matsumoto and Nishimura, which torch has too.
        # NumPy's `MT19937(seed)` seeds in another way (SeedSequence).
        np.random.RandomState(bits).seed(self.initial_seed & 0xFFFFFFFF)
        return bits

    def _skip(self, count: int) -> None:
        progress = Progress(
            "draws of earlier epochs skipped",
            count,
            per_second=_DRAWS_PER_SECOND,
            instead="ask for an earlier epoch",
        )
        # In pieces, so that progress is seen; `output=False` keeps no array.
        for done in range(0, count, _PIECE):
            piece = min(_PIECE, count - done)
            self._bits.random_raw(piece, output=False)
            progress.advance(piece)


def num_draws(num_elements: int) -> int:
    """Return how many draws one `randperm` takes.

    >>> [num_draws(count) for count in (0, 1, 10)]
    [0, 0, 9]
    """
    return max(num_elements - 1, 0)


_MOST_BLOCKS = 100_000  # of 624 draws, in which a state is looked for


def draws_since(state: bytes) -> tuple[int, int]:
    """Return the seed of a state, and how many draws were made of it since.

    Raises:
        UsageError: more than are looked through.
    """
    seed, wanted = int.from_bytes(state[:8], "little"), Generator(0, state).words
    generator = Generator(seed)
    for block in range(_MOST_BLOCKS):
        key, place = generator.words
        if np.array_equal(key, wanted[0]):
            return seed, generator.drawn + wanted[1] - place
        generator.seek(624 * block + 1)
    raise UsageError(
        f"more than {624 * _MOST_BLOCKS:,} draws were made since manual_seed({seed}); "
        "torch.save(torch.get_rng_state(), FILE), and set_rng_state('FILE') in --stages, say where "
        "it stands"
    )


_STATE = 5056  # bytes of `get_state`


def saved_generator(path: str) -> Generator:
    """Return the generator whose state is in a file: of `torch.save`, alone or among others.

    Checkpoints of the Trainer (`rng_state.pth`) and of Accelerate (`random_states_0.pkl`) have it.

    Raises:
        UsageError: there is none, or there are several.
    """
    data = _read(path)
    found = [data]
    with suppress(Exception):  # zipfile, zlib and NumPy have many for what is damaged
        if zipfile.is_zipfile(io.BytesIO(data)):  # torch.save writes a file a tensor
            with zipfile.ZipFile(io.BytesIO(data)) as parts:
                sized = [one for one in parts.infolist() if one.file_size == _STATE]
                found = [parts.read(one) for one in sized if "/data/" in one.filename]
        elif data.startswith(b"\x93NUMPY"):
            found = [np.load(io.BytesIO(data), allow_pickle=False).tobytes()]
    # NumPy would read beyond the words of a place that is none of theirs.
    lefts = [int.from_bytes(each[8:12], "little") for each in found]
    pairs = zip(found, lefts, strict=True)
    states = [each for each, left in pairs if len(each) == _STATE and 1 <= left <= 625]
    if len(states) != 1:
        raise UsageError(
            f"{quoted(path)} holds {len(states)} states of PyTorch's generator on the CPU, and one "
            "is needed; torch.save(torch.get_rng_state(), FILE) writes it"
        )
    return Generator(int.from_bytes(states[0][:8], "little"), states[0])


def numbers_in(given: Sequence[float] | str, what: str) -> Doubles:
    """Return numbers that are listed, or are in a file: of `numpy.save`, or as text.

    Raises:
        UsageError: it cannot be read as numbers.
    """
    if not isinstance(given, str):
        return np.array(given, np.float64)
    data = _read(given)
    try:
        if data.startswith(b"\x93NUMPY"):
            found: Doubles = np.load(io.BytesIO(data), allow_pickle=False).astype(np.float64)
        else:
            text = data.decode().translate(dict.fromkeys(map(ord, "[],"), " "))
            found = np.array(text.split(), np.float64)
    except Exception:
        found = np.empty((0, 0))
    if found.ndim != 1 or not np.isfinite(found).all():
        raise UsageError(
            f"{quoted(given)}: no list of {what}; a text with a number a line is needed, or what "
            "numpy.save wrote of one dimension"
        )
    return found


def _read(path: str) -> bytes:
    try:
        if not os.path.isfile(path):  # a pipe would be waited for
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{quoted(path)} cannot be read: {error.strerror}") from None


Seeds = int | tuple[int, int]  # a seed, and the draws since


def seeded(given: Seeds, what: str) -> Generator:
    """Return a generator of a seed, behind as many draws as are given with it."""
    seed, draws = given if isinstance(given, tuple) else (given, 0)
    return Generator(check_seed(seed, what)).seek(draws)


def check_seed(seed: int, what: str) -> int:
    """Return a seed that torch takes; `what` says where it comes from.

    >>> check_seed(-1, "seed") == -1
    True

    Raises:
        UsageError: `torch.Generator.manual_seed` refuses it.
    """
    if not MIN_SEED <= seed <= MAX_SEED:
        raise UsageError(
            f"{what} is {seed}, which torch refuses as a seed: it takes {MIN_SEED} to {MAX_SEED}"
        )
    return seed
