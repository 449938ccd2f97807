"""x[...] in wrappers and kernels against NumPy: views, elements, assignments, and what is refused."""

import textwrap

import numpy as np
import pytest

import pypto
from programs import config, from_text

PROGRAM = """
@pl.jit.incore
def k(x: pl.Tensor[[3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
{kernel}
    return y

@pl.jit.incore
def copy(x: pl.Tensor[[2, 8], pl.INT32], y: pl.InOut[pl.Tensor[[2, 8], pl.INT32]]):
    return pl.store(pl.load(x, [0, 0], [2, 8]), [0, 0], y)

@pl.jit
def c(x: pl.Tensor[[3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
{wrapper}
    return y

@pl.jit.host
def h(x: pl.Tensor[[NR, 3, 4, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 4, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        c(x[r], y[r], n, device=r)
    return y
"""


def indented(text):
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


def run(kernel="pass", wrapper="k(x, y, n)", n=1, devices=1):
    host = from_text(PROGRAM.format(kernel=indented(kernel), wrapper=indented(wrapper)))["h"]
    x = np.arange(devices * 96, dtype=np.int32).reshape(devices, 3, 4, 8)
    y = np.zeros((devices, 4, 8), dtype=np.int32)
    host(x, y, n, config=config(devices))
    return x, y


@pytest.mark.parametrize("devices", [1, 2])
def test_views_in_kernels(devices):
    kernel = """
        a = x[n]
        b = x[2, 1:3, :]
        c = x[n - 1:n + 1, 3]
        y[0:2, :] = pl.load(b, [0, 0], [2, 8])
        y[2, :] = pl.load(a, [1, 0], [1, 8])
        pl.store(pl.load(c[1], [4], [4]), [3, 0], y[:, 4:8])
        """
    x, y = run(kernel, devices=devices)
    for r in range(devices):
        assert (y[r, 0:2] == x[r, 2, 1:3]).all()
        assert (y[r, 2] == x[r, 1, 1]).all()
        assert (y[r, 3, 4:] == x[r, 1, 3, 4:]).all()


@pytest.mark.parametrize("dtype", ["INT8", "UINT16", "INT32", "INDEX"])
def test_slices_with_bounds_of_any_integer_type(dtype):
    """pld.rank gives an INT32, and a row is x[me : me + 1]."""
    kernel = f"""
        k = pl.cast(pl.read(x, [0, 0, 1]), pl.{dtype})
        i = pl.read(x, [0, 0, 2])
        y[0:1, :] = x[0, k : k + 1, :]
        y[1:3, :] = x[1, i - 1 : i + 1, :]
        y[3:4, :] = x[2, pl.cast(k, pl.INDEX) + 1 : k + 2, :]
        """
    x, y = run(kernel)
    np.testing.assert_array_equal(y[0], [x[0, 0, 1], x[0, 1, 1], x[0, 1, 2], x[0, 2, 2]])


@pytest.mark.parametrize("dtype", ["INT8", "UINT16", "INT32", "INDEX"])
def test_slices_whose_bounds_differ_by_a_constant(dtype):
    """However they are written: as multiples, or counted from the end."""
    kernel = f"""
        k = pl.cast(pl.read(x, [0, 0, 1]), pl.{dtype})
        i = pl.read(x, [0, 0, 2])
        y[0:2, 0:4] = x[0, 2 * k : (k + 1) * 2, k * 4 : 4 * (k + 1)]
        y[2:3, :] = x[1, 4 - i - k : 5 - k - i, :]
        y[3:4, 0:4] = x[2, k + i : i + 1 + k, 8 - 3 * (k + 1) : 3 + (k + 3) * 2 - k * 5]
        """
    x, y = run(kernel)
    np.testing.assert_array_equal(y[0, 0:2, 0:4], x[0, 0, 2:4, 4:8])
    np.testing.assert_array_equal(y[0, 2], x[0, 1, 1])
    np.testing.assert_array_equal(y[0, 3, 0:4], x[0, 2, 3, 2:6])


@pytest.mark.parametrize(
    "bounds",
    [
        "2 * k : (k + 1) * 3",
        "k : i",
        "k * i : (k + 1) * i",
        "k : k * 4611686018427387904 * 4 + k + 1",
        # more terms than are looked at
        "k : k + 1 + i * k - k * i * 1 + " + " + ".join(f"i // {n}" for n in range(1, 9)),
    ],
)
def test_slices_whose_bounds_do_not(bounds):
    with pytest.raises(pypto.Error, match="only known at run time"):
        run(f"k = pl.cast(pl.read(x, [0, 0, 1]), pl.INDEX)\ni = pl.read(x, [0, 0, 2])\ny[0:1, :] = x[0, {bounds}, :]")


def test_a_narrowed_bound_is_another_number():
    with pytest.raises(pypto.Error, match="only known at run time"):
        run("i = pl.read(x, [0, 0, 1])\ny[0:1, :] = x[0, pl.cast(i, pl.INT8) : i + 1, :]")


def test_elements():
    kernel = """
        m = x[n, 2, 3]
        y[0, 1] = m + 1
        y[0, 2] += x[0, 0, 5]
        y[0, 2] *= 3
        t = pl.load(x[2], [0, 0], [4, 8])
        t[1, 1] = t[0, 0] + n
        y[3, 3] = t[1, 1]
        i = 0
        while x[0, 0, i] < 4:
            i = i + 1
        y[1, i] = i
        """
    x, y = run(kernel)
    assert y[0, 0, 1] == x[0, 1, 2, 3] + 1
    assert y[0, 0, 2] == 15
    assert y[0, 3, 3] == x[0, 2, 0, 0] + 1
    assert y[0, 1, 4] == 4


def test_elements_by_their_number():
    kernel = """
        y[0, 0] = pl.read(x, 95 - n)
        pl.write(y, n + 8, pl.read(x, 41))
        v = x[1, 2:4, 2:7]
        y[0, 2] = pl.read(v, n + 5)
        t = pl.load(x, [0, 0, 0], [3, 4, 8])
        pl.write(t, n, pl.read(t, 95))
        y[0, 3] = t[0, 0, 1]
        y[0, 4] = pl.read(x[0, 0], n)
        """
    x, y = run(kernel)
    flat = x[0].reshape(-1)
    assert y[0, 0].tolist() == [flat[94], 0, x[0, 1, 3, 3], flat[95], flat[1], 0, 0, 0]
    assert y[0, 1].tolist() == [0, flat[41], 0, 0, 0, 0, 0, 0]
    with pytest.raises(pypto.Error, match="dimension 0"):
        run("y[0, 0] = pl.read(x, 96)")
    for index in (96, -1):
        with pytest.raises(pypto.DeviceError, match="outside|leaves|reads"):
            run("y[0, 0] = pl.read(x, n)", n=index)


def test_one_number_counts_elements():
    kernel = """
        t = pl.load(x[1], [0, 0], [4, 8])
        y[0, 0] = pl.read(x, 77)
        y[0, 1] = pl.read(x[n], n * 9)
        y[0, 2] = pl.read(t, n + 20)
        pl.write(t, 31, 1000)
        y[0, 3] = t[3, 7]
        pl.write(y, n + 8, 5)
        pl.write(y[0:4, 2:4], 7, 6)
        """
    x, y = run(kernel)
    assert y[0, 0, :4].tolist() == [x.flat[77], x[0, 1].flat[9], x[0, 1].flat[21], 1000]
    assert y[0, 1, 1] == 5 and y[0, 3, 3] == 6


def test_the_extent_of_a_dimension_known_at_run_time():
    kernel = """
        for i in pl.range(3):
            y[0, i] = pl.cast(pl.tensor.dim(x, i), pl.INT32)
        y[1, 0] = pl.cast(pl.tensor.dim(y[0:2, 1:6], n), pl.INT32)
        """
    x, y = run(kernel)
    assert y[0, 0, :3].tolist() == [3, 4, 8] and y[0, 1, 0] == 5
    with pytest.raises(pypto.Error, match="index 4 is outside array 'x_shape'"):
        run("y[0, 0] = pl.cast(pl.tensor.dim(x, n + 3), pl.INT32)")


def test_views_in_wrappers():
    x, y = run(wrapper="for i in pl.range(2):\n    copy(x[i, 1:3], y[i * 2:i * 2 + 2])")
    assert (y[0, 0:2] == x[0, 0, 1:3]).all()
    assert (y[0, 2:4] == x[0, 1, 1:3]).all()


def test_parts_of_tiles():
    kernel = """
        t = pl.load(x[n], [0, 0], [4, 8])
        y[0:2, 0:4] = t[1:3, 4:]
        y[0:2, 4:8] = t[n:n + 2, :4]
        y[2:3, :] = t[2]
        y[3, 0:4] = t[:, 3]
        t[0, :] = t[3]
        t[2:4, 0:2] = t[1:3, 2:4]
        c = t[:, 5]
        t[:, 7] = pl.reshape(c, [4])
        y[3:4, 4:8] = t[3:4, 4:]
        """
    x, y = run(kernel)
    t = x[0, 1].copy()
    assert (y[0, 0:2, 0:4] == t[1:3, 4:]).all()
    assert (y[0, 0:2, 4:8] == t[1:3, :4]).all()
    assert (y[0, 2] == t[2]).all()
    assert (y[0, 3, 0:4] == t[:, 3]).all()
    assert (y[0, 3, 4:] == [*t[3, 4:7], t[3, 5]]).all()


def test_a_tile_slice_with_a_bound_of_the_run():
    x, y = run("t = pl.load(x[1], [0, 0], [4, 8])\ny[0:4, 0:8] = t[:, 2:n][:, :] + 0\n"[:0] + """
        t = pl.load(x[1], [0, 0], [4, 8])
        u = t[0:4, 2:n]
        pl.store(u, [0, 0], y)
        """, n=5)
    assert (y[0, :, 0:3] == x[0, 1, :, 2:5]).all()
    assert (y[0, :, 3:] == 0).all()


def test_tensors_assigned_to_parts():
    kernel = """
        y[0:2, :] = x[n, 2:4]
        y[2, :] = x[n, 0, :]
        y[:, 0] = x[n, :, 7]
        y[3:4, 1:8] = x[2, 3:4, 0:7]
        """
    x, y = run(kernel)
    want = np.zeros((4, 8), np.int32)
    want[0:2] = x[0, 1, 2:4]
    want[2] = x[0, 1, 0]
    want[:, 0] = x[0, 1, :, 7]
    want[3:4, 1:8] = x[0, 2, 3:4, 0:7]
    assert (y[0] == want).all()


@pytest.mark.parametrize("move, source", [("y[1:4, :] = y[0:3, :]", 0), ("y[0:3, :] = y[1:4, :]", 1)])
def test_a_tensor_assigned_to_a_part_that_overlaps_it(move, source):
    x, y = run(f"y[:] = x[0]\n{move}")
    want = x[0, 0].copy()
    want[1 - source : 4 - source] = x[0, 0, source : source + 3]
    assert (y[0] == want).all()


def test_a_row_assigned_to_a_column_that_it_crosses():
    x, y = run("y[:] = x[1]\ny[:, 0] = y[0, 0:4]")
    want = x[0, 1].copy()
    want[:, 0] = x[0, 1, 0, 0:4]
    assert (y[0] == want).all()


def test_operations_on_whole_tensors():
    kernel = """
        a = pl.tensor.add(x[0], x[n])
        b = pl.tensor.slice(x, [1, 4, 8], [2, 0, 0])
        c = pl.cast(pl.cast(pl.reshape(b, [4, 8]), pl.FP32), pl.INT32)
        y[:] = pl.mul(a, c) - x[0] * 2
        y[0:1, :] = pl.tensor.adds(pl.maximum(x[1, 0:1], x[2, 0:1]), 5)
        """
    x, y = run(kernel)
    want = (x[0, 0] + x[0, 1]) * x[0, 2] - x[0, 0] * 2
    want[0] = np.maximum(x[0, 1, 0], x[0, 2, 0]) + 5
    assert (y[0] == want).all()


def test_a_whole_tensor_of_dynamic_shape_has_no_tile():
    text = """
@pl.jit.incore
def k(x: pl.Tensor[[NR, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    y[:] = pl.add(x, 1.0)

@pl.jit
def c(x: pl.Tensor[[NR, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    k(x, y)

@pl.jit.host
def h(x: pl.Tensor[[NR, 8], pl.FP32], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    c(x, y, device=0)
"""
    h = from_text(text)["h"]
    with pytest.raises(pypto.Error, match="pl.add computes on tensors of constant shape"):
        h(np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32), config=config(1))


HOST = """
@pl.jit.incore
def k(a: pl.Tensor[[2, 4], pl.INT32], b: pl.InOut[pl.Tensor[[2, 4], pl.INT32]]):
    b[:] = a + b

@pl.jit
def c(a: pl.Tensor[[2, 4], pl.INT32], b: pl.InOut[pl.Tensor[[2, 4], pl.INT32]]):
    k(a, b)

@pl.jit.host
def h(x: pl.Tensor[[NR, 4, 6, 8], pl.INT32], y: pl.InOut[pl.Tensor[[NR, 4, 6, 8], pl.INT32]],
      n: pl.Scalar[pl.INT64]):
    for r in pl.range(pld.world_size()):
        {body}
"""


@pytest.mark.parametrize(
    "body, a, b",
    [
        ("c(x[r, 0, 1:3, 4:8], y[r, 1, 0:2, :4], device=r)", np.s_[0, 1:3, 4:], np.s_[1, :2, :4]),
        ("c(x[r, 1:3, n, 2:6], y[r, 1:3][:, 5, 0:4], device=r)", np.s_[1:3, 2, 2:6], np.s_[1:3, 5, :4]),
        ("c(x[r][n:n + 2, 0, 0:4], y[r, 0][0:2, n:n + 4], device=r)", np.s_[2:4, 0, :4], np.s_[0, :2, 2:6]),
        ("a = x[:, 3, :, 4:]\n        c(a[r, 0:2], y[r, 2:4, 1, 4:8], device=r)", np.s_[3, :2, 4:], np.s_[2:4, 1, 4:]),
    ],
)
@pytest.mark.parametrize("devices", [1, 2])
def test_views_in_host_functions(body, a, b, devices):
    h = from_text(HOST.format(body=body))["h"]
    x = np.arange(devices * 192, dtype=np.int32).reshape(devices, 4, 6, 8)
    y = x[::-1].copy() * 3
    want = y.copy()
    h(x, y, 2, config=config(devices))
    for r in range(devices):
        want[r][b] += x[r][a]
    assert (y == want).all()


@pytest.mark.parametrize(
    "body, words",
    [
        ("c(x[r, 0, 5:7, 4:8], y[r, 0, 0:2, 0:4], device=r)", "index 5 to 6 is outside dimension 2"),
        ("c(x[r, r + 4, 0:2, 4:8], y[r, 0, 0:2, 0:4], device=r)", "a subscript reaches from 4 to 4 in dimension 1 of 'x'"),
        ("c(x[r, 0, r:6, 4:8], y[r, 0, 0:2, 0:4], device=r)", "positive static extent"),
        ("c(x[r, 0, 0:3, 4:8], y[r, 0, 0:2, 0:4], device=r)", "dimension 0 is 3, but 2 is declared"),
        ("c(x[r, 0, 0:4:2, 4:8], y[r, 0, 0:2, 0:4], device=r)", "a slice with a step"),
        ("c(x[r, 0, 0, 0, 0], y[r, 0, 0:2, 0:4], device=r)", "5 indices but the tensor is 4D"),
    ],
)
def test_refused_in_host_functions(body, words):
    h = from_text(HOST.format(body=body))["h"]
    x = np.zeros((1, 4, 6, 8), np.int32)
    with pytest.raises(pypto.Error, match=words):
        h(x, x.copy(), 2, config=config(1))


def test_a_world_loop_over_a_dimension_behind_a_slice():
    """The dimension that the loop over all devices indexes must have an entry for each."""
    text = HOST.replace("[NR, 4, 6, 8]", "[4, NR, 6, 8]")
    h = from_text(text.format(body="c(x[:, r, 0][0:2, 0:4], y[0:2, r, 1, 0:4], device=r)"))["h"]
    x = np.arange(4 * 2 * 48, dtype=np.int32).reshape(4, 2, 6, 8)
    y = np.zeros_like(x)
    h(x, y, 2, config=config(2))
    assert (y[0:2, :, 1, 0:4] == x[0:2, :, 0, 0:4]).all()
    with pytest.raises(pypto.Error, match="dimension 1"):
        h(x, y, 2, config=config(3))


def test_elements_in_wrappers_are_those_that_kernels_before_them_left():
    wrapper = """
        y[0, 0] = x[n, 1, 2]
        y[0, 1] = y[0, 0] * 2
        add(y)
        first = y[0, 1]
        pl.write(y, [0, 1], 5)
        for i in pl.range(first):
            add(y)
        y[3, 7] = pl.read(y, [0, 1])
        """
    text = PROGRAM.replace("@pl.jit\n", """
@pl.jit.incore
def add(y: pl.InOut[pl.Tensor[[4, 8], pl.INT32]]):
    y[:] = y + 1

@pl.jit
""", 1)
    host = from_text(text.format(kernel="    pass", wrapper=indented(wrapper)))["h"]
    x = np.arange(2 * 96, dtype=np.int32).reshape(2, 3, 4, 8) % 50
    y = np.zeros((2, 4, 8), dtype=np.int32)
    host(x, y, 1, config=config(2))
    for r in range(2):
        first = x[r, 1, 1, 2] * 2 + 1
        assert y[r, 0, 0] == x[r, 1, 1, 2] + 1 + first
        assert y[r, 0, 1] == 5 + first
        assert y[r, 3, 7] == 5 + first
        assert y[r, 1, 1] == 1 + first


def test_a_wrapper_that_reads_behind_a_kernel_that_fails():
    wrapper = "k(x, y, n)\ny[0, 1] = y[0, 0] + 1"
    for _ in range(3):
        with pytest.raises(pypto.Error, match="a subscript reaches from 7 to 7"):
            run("a = x[n + 6]\ny[:] = a", wrapper, devices=2)
    x, y = run("y[0, 0] = 4", wrapper, devices=2)
    assert (y[:, 0, 1] == 5).all()


def test_a_view_out_of_bounds():
    with pytest.raises(pypto.Error, match="a subscript reaches from 5 to 5 in dimension 0"):
        run("a = x[n]\ny[0:4, :] = pl.load(a, [0, 0], [4, 8])", n=5)


@pytest.mark.parametrize(
    "kernel, words",
    [
        ("a = x[0, 0, 0, 0]", "4 indices but the tensor is 3D"),
        ("a = x[3]", "outside dimension 0"),
        ("a = x[-1]", "is negative"),
        ("a = x[0:n]", "positive static extent"),
        ("a = x[2:1]", "positive static extent"),
        ("a = x[0:2:2]", "step"),
        ("a = x[1.5]", "must be an integer scalar"),
        ("y[0:2, :] = pl.load(x, [0, 0, 0], [1, 4, 8])", "to match"),
        ("y[0:2, :] = pl.load(x[0], [0, 0], [4, 8])", "shape mismatch on source axis 0"),
        ("y[0:2, :] = 3", "Subscript-write source must also be"),
        ("y[0, 0] = 1.5", "the value has dtype"),
        ("t = pl.load(x[0], [0, 0], [4, 8])\nt[0:2, :] = x[0, 0:2]", "must also be a Tile"),
        ("t = pl.load(x[0], [0, 0], [4, 8])\nu = t[n:, :]", "Dynamic lower bounds"),
        ("t = pl.load(x[0], [0, 0], [4, 8])\nu = t[:, 8:n]", "past the end"),
        ("t = pl.load(x[0], [0, 0], [4, 8])\nu = t[0, 0, 0]", "3 indices but the tile is 2D"),
        ("y[0:2, :] = x[0]", "shape mismatch on source axis 0"),
        ("y[0:2, :] = pl.load(x[0], [0, 0], [2, 4])", "shape mismatch on source axis 1"),
        ("y[0:2, :] = pl.cast(x[0, 0:2], pl.FP32)", "dtype fp32"),
        ("m = pl.read(x, 96)", "offset 3 of dimension 0|past the end of dimension 0"),
        ("m = pl.read(x, -1)", "must be non-negative"),
        ("m = pl.read(x, 1.5)", "must be a list or tuple, not a Scalar"),
        ("m = pl.read(x, [5])", "rank is 1, but the Tensor has rank 3"),
        ("m = pl.read(x, n + 95)\ny[0, 0] = m", "leaves parameter 'x'"),
        ("n[0] = 3", "Subscript requires Tuple, Tensor"),
    ],
)
def test_refused(kernel, words):
    with pytest.raises(pypto.Error, match=words):
        run(kernel)
