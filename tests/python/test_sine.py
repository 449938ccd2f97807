"""pl.sin and pl.cos over all FP32 numbers, against an oracle that reduces its argument in integers."""

import math

import numpy as np
import pytest

from op_programs import distance, once, run


def pi_times(scale):
    """pi * scale by Machin's formula, in integers; what is cut off lies in 64 more bits."""
    one = scale << 64

    def arctan_of_inverse(n):
        power, total, k = one // n, 0, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // (n * n), k + 2
        return total

    return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> 64


BITS = 400  # behind the point; FP32 numbers have 128 in front of it and 149 behind
PI = pi_times(1 << BITS)


def exact(x, quarter):
    """sin(x + quarter * pi/2), as good as a double can be."""
    if not math.isfinite(x):
        return math.nan
    numerator, denominator = x.as_integer_ratio()
    double = 2 * numerator * ((1 << BITS) // denominator)
    n = (double + PI // 2) // PI
    rest = (double - n * PI) / (2 << BITS)
    value = math.cos(rest) if (n + quarter) & 1 else math.sin(rest)
    return -value if (n + quarter) & 2 else value


def close_to_multiples():
    """For each exponent numbers that nearly are a multiple of pi/2: m 2^e, where m is a denominator in the continued
    fraction of 2^e * 2/pi, or a small multiple of one."""
    found = []
    for e in range(-23, 105):
        numerator, denominator = (2 << BITS) << max(e, 0), PI << max(-e, 0)
        before, last = 0, 1
        while last < 1 << 24:
            m = last << (24 - last.bit_length())
            found.append(math.ldexp(m, e))
            numerator, denominator = denominator, numerator % denominator
            before, last = last, numerator // denominator * last + before
    return np.array(found, np.float32)


def numbers():
    """All exponents and signs with random digits, the ends of all exponents, and the hard ones."""
    rng = np.random.default_rng(5)
    digits = rng.integers(0, 1 << 23, (256, 60), np.uint32)
    digits[:, 0], digits[:, 1], digits[:, 2] = 0, 1, (1 << 23) - 1
    bits = (np.arange(256, dtype=np.uint32)[:, None] << 23 | digits).ravel()
    x = np.concatenate([bits.view(np.float32), close_to_multiples()])
    return np.concatenate([x, -x])


def test_oracle():
    """The hard numbers are hard: their remainders are far smaller than random ones would be."""
    assert exact(1.0, 0) == math.sin(1.0) and exact(-2.0, 1) == math.cos(2.0)
    hard = close_to_multiples()
    assert min(min(abs(exact(float(x), 0)), abs(exact(float(x), 1))) for x in hard if x > 2.0**16) < 2.0**-28


@pytest.mark.parametrize("function, quarter", [("sin", 0), ("cos", 1)])
def test_all_exponents(function, quarter):
    x = numbers()[None]
    with np.errstate(over="ignore"):
        expected = np.array([[exact(float(v), quarter) for v in x[0]]]).astype(np.float32)
    got = run([f"pl.store(pl.{function}(a), [0, 0], z)"], x, x, "FP32")
    assert distance(got, expected) <= 1
    # A tile in which no element is far is computed another way; what is far must not change the others much.
    near = x[:, np.abs(x[0]) < 2.0**16]
    alone = run([f"pl.store(pl.{function}(a), [0, 0], z)"], near, near, "FP32")
    np.testing.assert_array_equal(alone, got[:, np.abs(x[0]) < 2.0**16])


@pytest.mark.parametrize("function, quarter", [("sin", 0), ("cos", 1)])
def test_bfloat16(function, quarter):
    """Half of the BF16 numbers are far. In place, too: the argument is needed no more."""
    bits = np.arange(65536, dtype=np.uint32).reshape(16, 4096) << 16
    x = bits.view(np.float32)
    expected = np.array([exact(float(v), quarter) for v in x.ravel()]).reshape(x.shape).astype(np.float32)
    got = run([f"a = pl.{function}(a)", "pl.store(a, [0, 0], z)"], x, x, "BF16")
    off = np.abs(got - expected) > np.abs(expected) * (2.0**-8 + 2.0**-20)
    assert not off.any()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    assert (got == once(expected, "BF16"))[~np.isnan(expected)].mean() > 0.999
