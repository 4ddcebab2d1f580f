"""Weights of `sample_from_datasets`, as TensorFlow rounds them on their way to a choice.

TensorFlow takes the logarithm of each weight and hands it to `stateless_multinomial`, which takes
the exponential of it again (tensorflow/python/data/ops/sample_from_datasets_op.py and
tensorflow/core/kernels/multinomial_op.cc). In float32 the last bit of that logarithm moves the
border between two datasets by 1e-7, so that it decides one choice in some ten million. Here it is
that of TensorFlow for Linux on x86-64, bit for bit: whole groups of eight are Eigen's own formula
(plog_impl_float in GenericPacketMathFunctions.h), those left over the logf of glibc.
What two float64 logarithms or exponentials may differ by decides one choice in 1e14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardctl.errors import UsageError

Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]
WeightsDtype = Literal["float32", "float64"]


def cumulative_of(weights: Sequence[float], dtype: WeightsDtype = "float32") -> Float64s:
    """Return the running totals, float64[n], that a uniform number is looked up in.

    weights: those above 0; dtype: what TensorFlow makes of them, float32 from Python's own floats
        and float64 from a NumPy array of these.

    >>> cumulative_of([1.0, 1.0]).tolist(), cumulative_of([0.5, 0.25]).tolist()
    ([1.0, 2.0], [1.0, 1.499999999047673])

    Raises:
        UsageError: a weight is beyond float32, which TensorFlow refuses; one is too small for a
            full mantissa, which some versions take as 0 and others do not; or none is left that
            can be chosen, and it fails at the first choice.
    """
    with np.errstate(divide="ignore", over="ignore"):
        rounded = np.array(weights, dtype)
        if (np.isinf(rounded) & np.isfinite(weights)).any():
            raise UsageError(f"weights {list(weights)}: float32 ends at 3.4e+38")
        tiny = np.finfo(dtype).tiny
        if ((rounded > 0) & (rounded < tiny)).any():
            raise UsageError(
                f"weights {list(weights)}: what is below {tiny:.2g} in {dtype} is 0 to some "
                "versions of TensorFlow and not to others; write 0"
            )
        logs = _float32_logs(rounded) if dtype == "float32" else np.log(rounded)
    logits = logs.astype(np.float64)
    finite = np.isfinite(logits)
    if not finite.any():
        raise UsageError(
            f"weights {list(weights)}: none of them is a number above 0 in {dtype}, "
            "so TensorFlow has nothing to choose"
        )
    # What is not finite is never chosen: the running total stays where it is.
    shares = np.exp(np.where(finite, logits - logits[finite].max(), -np.inf))
    return np.cumsum(shares)


def uniform_cumulative(num_inputs: int) -> Float64s:
    """Return the running totals where no weights are given: all inputs are alike."""
    return np.arange(1, num_inputs + 1, dtype=np.float64)


def weights_of_logits(logits: NDArray[np.float32] | NDArray[np.float64]) -> tuple[float, ...]:
    """Return weights whose logarithms are these, as a dataset's graph keeps them.

    Several weights may have one logarithm; they choose alike.

    >>> weights_of_logits(np.array([-0.6931472, -1.3862944], np.float32))
    (0.5, 0.25)

    Raises:
        UsageError: no weight has this logarithm, so something else made it.
    """
    near = np.exp(logits.astype(np.float64))
    if logits.dtype != np.float32:
        return tuple(near.tolist())
    weights: list[float] = []
    for place, logit in enumerate(logits):
        bits = int(near[place].astype(np.float32).view(np.int32))
        around = np.arange(max(bits - 64, 0), bits + 64, dtype=np.int32)
        candidates = around.view(np.float32)
        # The logarithm depends on the place of a weight among the others, so it keeps its place.
        at = np.arange(len(logits)) == place
        logs = [_float32_logs(np.where(at, weight, np.float32(1)))[place] for weight in candidates]
        exact = [weight for weight, log in zip(candidates, logs, strict=True) if log == logit]
        if not exact:
            raise UsageError(f"no weight has the logarithm {logit!s} in float32")
        weights.append(min((float(str(weight)) for weight in exact), key=lambda w: len(str(w))))
    return tuple(weights)


_GROUP = 8  # float32 numbers that AVX works on at once


def _float32_logs(weights: Float32s) -> Float32s:
    in_groups = len(weights) // _GROUP * _GROUP
    logs = np.concatenate(
        [_logs_of_eigen(weights[:in_groups]), _logs_of_glibc(weights[in_groups:])]
    )
    logs[weights < np.finfo(np.float32).tiny] = -np.inf
    logs[weights == np.inf] = np.inf
    return logs


_SQRT_HALF = np.float32(0.707106781186547524)
_LN2 = np.float32(0.6931471805599453)
_NUMERATOR = np.array([0.18256296349849254, 1.0000000190281063, 1.0000000190281136], np.float32)
_DENOMINATOR = np.array(
    [0.049616247954120038, 0.59923249590823520, 1.4999999999999927, 1.0], np.float32
)


def _logs_of_eigen(weights: Float32s) -> Float32s:
    """Return log(1 + x) as x p(x) / q(x), and the exponent times log 2, all in float32."""
    fraction, exponent = np.frexp(weights)
    exponents = exponent.astype(np.float32)
    low = fraction < _SQRT_HALF
    x = (fraction - np.float32(1)) + np.where(low, fraction, np.float32(0))
    exponents -= low.astype(np.float32)
    p, q = (_polynomial(coefficients, x) for coefficients in (_NUMERATOR, _DENOMINATOR))
    return exponents * _LN2 + x * p / q


def _polynomial(coefficients: Float32s, x: Float32s) -> Float32s:
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


# glibc, sysdeps/ieee754/flt-32/e_logf_data.c: 1 / c and log(c) for c near the middle of 16 parts.
_PARTS = """
1.661ec79f8f3bep+0 -1.57bf7808caadep-2   1.571ed4aaf883dp+0 -1.2bef0a7c06ddbp-2
1.49539f0f010bp+0 -1.01eae7f513a67p-2    1.3c995b0b80385p+0 -1.b31d8a68224e9p-3
1.30d190c8864a5p+0 -1.6574f0ac07758p-3   1.25e227b0b8eap+0 -1.1aa2bc79c81p-3
1.1bb4a4a1a343fp+0 -1.a4e76ce8c0e5ep-4   1.12358f08ae5bap+0 -1.1973c5a611cccp-4
1.0953f419900a7p+0 -1.252f438e10c1ep-5   1p+0 0p+0
1.e608cfd9a47acp-1 1.aa5aa5df25984p-5    1.ca4b31f026aap-1 1.c5e53aa362eb4p-4
1.b2036576afce6p-1 1.526e57720db08p-3    1.9c2d163a1aa2dp-1 1.bc2860d22477p-3
1.886e6037841edp-1 1.1058bc8a07ee1p-2    1.767dcf5534862p-1 1.4043057b6ee09p-2
"""
_INVERSES, _LOGS = np.array([float.fromhex(part) for part in _PARTS.split()]).reshape(16, 2).T
_CUBIC = [float.fromhex(f"{c}") for c in ("-1.00ea348b88334p-2", "1.5575b0be00b6ap-2")]
_SQUARE = float.fromhex("-1.ffffef20a4123p-2")
_LN2_DOUBLE = float.fromhex("1.62e42fefa39efp-1")
_FIRST_PART = 0x3F330000  # the bits of the smallest c, near 0.7
_MANTISSA_BITS = 23


def _logs_of_glibc(weights: Float32s) -> Float32s:
    """Return log(c) + log(z / c) + k log 2 of weights z 2**k, in float64 and then rounded."""
    bits = weights.view(np.int32).astype(np.int64)
    offset = bits - _FIRST_PART
    part = (offset >> (_MANTISSA_BITS - 4)) & 15
    exponents = offset >> _MANTISSA_BITS
    z = (bits - (exponents << _MANTISSA_BITS)).astype(np.int32).view(np.float32).astype(np.float64)
    r = z * _INVERSES[part] - 1
    near = _LOGS[part] + exponents * _LN2_DOUBLE
    square = r * r
    y = (_CUBIC[0] * square + (_CUBIC[1] * r + _SQUARE)) * square + (near + r)
    logs: Float32s = y.astype(np.float32)
    return logs
