"""Single values: which are numbers, truth values and texts, and as what they are kept."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.base.arguments import real_number, text, truth_value, whole_number
from shardctl.errors import UsageError


class Variable:
    """Holds a value, as a variable of TensorFlow or Keras does."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __int__(self) -> int:
        return int(self.value)

    def numpy(self) -> Any:
        return self.value


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_whole_number_of_any_library_is_kept_as_an_int(number: int) -> None:
    for given_ in (number, np.int64(number), np.array(number), Variable(np.int64(number))):
        kept = whole_number(given_)
        assert type(kept) is int
        assert kept == number


@given(st.integers(-(2**2048) + 1, 2**2048 - 1))
def test_a_whole_number_may_be_larger_than_64_bits(number: int) -> None:
    assert whole_number(number) == number


@pytest.mark.parametrize(
    "value",
    [
        *(True, np.bool_(False), np.array(True), Variable(True)),
        *(1.0, np.float64(1), Variable(1.5), "1", None, object()),
        *([1], np.array([1]), Variable(np.array([1, 2]))),
    ],
)
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^a whole number is needed$"):
        whole_number(value)


@pytest.mark.long
def test_a_step_of_jax_or_flax_is_a_whole_number() -> None:
    import jax
    import jax.numpy as jnp
    from flax import nnx

    for dtype in (jnp.int8, jnp.uint8, jnp.int32, jnp.uint32):
        for value in (dtype(7), jnp.asarray(7, dtype), nnx.Variable(dtype(7))):
            assert (whole_number(value), type(whole_number(value))) == (7, int)
    wrong = (jnp.float32(7), jnp.bfloat16(7), jnp.asarray(True), jnp.asarray([7]))
    for value in (*wrong, *map(nnx.Variable, wrong)):
        with pytest.raises(UsageError, match=r"^a whole number is needed$"):
            whole_number(value)

    @jax.jit
    def step(number: Any) -> Any:
        with pytest.raises(
            UsageError, match=r"needed, as int\(step\) gives one outside of jax\.jit$"
        ):
            whole_number(number)
        return number

    step(3)


def test_a_number_too_long_to_be_written_is_refused() -> None:
    for value in (10**4100, -(10**5000), Variable(10**5000)):
        with pytest.raises(UsageError, match="at most 4100 digits"):
            whole_number(value)


@pytest.mark.parametrize("value", [True, np.bool_(True), np.array(True), np.ones(3)[0] > 0])
def test_truth_values_of_numpy_are_those_of_python(value: Any) -> None:
    assert truth_value(value) is True


@pytest.mark.parametrize("value", [1, 0, "no", "", None, [], [True], np.array([True]), np.int8(1)])
def test_what_only_counts_as_true_or_false_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="true or false is needed"):
        truth_value(value)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5)])
def test_a_number_is_kept_as_a_float(value: Any) -> None:
    kept = real_number(value)
    assert type(kept) is float
    assert kept == 0.5


@pytest.mark.parametrize("value", ["0.5", b"1", True, float("nan"), float("inf"), None, 1j, [0.5]])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="a number is needed"):
        real_number(value)


class Mode(str, Enum):  # noqa: UP042  # str() of a StrEnum is its value
    """A word of a library that names its words, as many do."""

    EVEN = "even"


def test_a_text_is_kept_as_a_str() -> None:
    assert type(text(np.str_("train"))) is str
    assert (type(text(Mode.EVEN)), text(Mode.EVEN)) == (str, "even")
    for value in (b"train", 3, None, ["train"]):
        with pytest.raises(UsageError, match="a text is needed"):
            text(value)
