"""Every parameter of every operation may be passed by its name: the names that the language gives it, which
differ between pl., pl.tensor. and pl.tile. (appendix A of the catalogue of operations)."""

import inspect

import numpy as np
import pytest

import pypto.language as pl
from op_programs import moved, ramp

UNARY = "exp sin cos neg abs sqrt"
# spelling -> the names of its parameters, in order.
NAMES = {
    **{f"{level}{name}": parameter
       for name in UNARY.split() + ["not_"]
       for level, parameter in [("", "input"), ("tensor.", "input"), ("tile.", "tile")]},
    **{f"{level}{name}": f"{first} high_precision"
       for name in ("log", "recip")
       for level, first in [("", "input"), ("tensor.", "input"), ("tile.", "tile")]},
    **{f"{level}{name}": "lhs rhs"
       for name in "add sub mul fmod maximum minimum and_ or_ shl shr ands ors shls shrs fmods".split()
       for level in ("", "tensor.", "tile.")},
    **{f"{level}{name}": "lhs rhs" for name in "adds subs muls divs".split() for level in ("tensor.", "tile.")},
    **{f"{axis}_expand_{word}": "lhs rhs" for axis in ("row", "col") for word in "sub mul div max min expdif".split()},
    **{f"{level}.{axis}_expand_{word}": f"{'tensor' if level == 'tensor' else 'tile'} {axis}_vec"
       for level in ("tensor", "tile") for axis in ("row", "col") for word in "sub mul div max min expdif".split()},
    **{f"{level}{op}": f"{first}{rest}"
       for op, names, rest in [
           ("cast", "input input tile", " target_type mode"),
           ("reshape", "input tensor tile", " shape"),
           ("fillpad", "value tensor tile", " pad_value"),
           ("fillpad_expand", "value tensor tile", " shape pad_value"),
           ("set_validshape", "input tensor tile", " valid_rows valid_cols"),
       ]
       for level, first in zip(("", "tensor.", "tile."), names.split())},
    "row_expand": "lhs rhs", "tensor.row_expand": "target row_vec", "tile.row_expand": "target row_vec",
    "col_expand": "lhs rhs", "tensor.col_expand": "tensor col_vec", "tile.col_expand": "target col_vec",
    "row_sum": "input tmp_tile", "tile.row_sum": "tile tmp_tile", "col_sum": "input tmp_tile",
    "transpose": "input axis1 axis2 tmp_tile", "tile.transpose": "tile axis1 axis2 tmp_tile",
    "read": "src offset", "tensor.read": "tensor indices", "tile.read": "tile indices",
    "write": "dst offset value", "tensor.write": "tensor indices value", "tile.write": "tile indices value",
    "relu": "tile", "lrelu": "tile slope", "prelu": "tile slope tmp", "rem": "lhs rhs tmp",
    "tile.transpose_view": "tile", "tile.fillpad_inplace": "tile pad_value",
    "load": "tensor offsets shapes valid_shape target_memory clamp",
    "store": "tile offsets output_tensor shapes atomic",
    "move": "tile target_memory blayout slayout",
    "assemble": "target source offset atomic", "concat": "src0 src1", "expands": "target scalar",
    "reinterpret_view": "data dtype shape", "sel": "mask lhs rhs tmp", "sels": "mask src tmp scalar",
    "cmp": "lhs rhs cmp_type", "cmps": "lhs rhs cmp_type", "addc": "lhs rhs rhs2", "full": "shape dtype value",
}


@pytest.mark.parametrize("spelling", NAMES)
def test_the_names_of_parameters(spelling):
    operation = pl
    for part in spelling.split("."):
        operation = getattr(operation, part)
    assert " ".join(inspect.signature(operation).parameters) == NAMES[spelling]


CALLS = [
    ("pl.exp(input=a)", "pl.exp(a)"),
    ("pl.tile.exp(tile=a)", "pl.exp(a)"),
    ("pl.exp(tile=a)", "pl.exp(a)"),
    ("pl.tensor.abs(input=x)", "pl.abs(a)"),
    ("pl.row_expand_sub(lhs=a, rhs=pl.row_sum(input=a))", "pl.row_expand_sub(a, pl.row_sum(a))"),
    ("pl.tile.row_expand_sub(tile=a, row_vec=pl.tile.row_sum(tile=a))", "pl.row_expand_sub(a, pl.row_sum(a))"),
    ("pl.tensor.col_expand(tensor=a, col_vec=pl.col_sum(a))", "pl.col_expand(a, pl.col_sum(a))"),
    ("pl.tile.fillpad(tile=a, pad_value=0)", "pl.fillpad(a, 0)"),
    ("pl.fillpad(value=a, pad_value=0)", "pl.fillpad(a, 0)"),
    ("pl.set_validshape(valid_cols=3, input=a, valid_rows=2)", "pl.set_validshape(a, 2, 3)"),
    ("pl.mul(a, pl.tile.read(tile=a, indices=[1, 1]))", "pl.mul(a, pl.read(a, [1, 1]))"),
    ("pl.mul(a, pl.tensor.read(tensor=x, indices=[1, 1]))", "pl.mul(a, pl.read(a, [1, 1]))"),
    ("pl.mul(a, pl.read(offset=[1, 1], src=x))", "pl.mul(a, pl.read(a, [1, 1]))"),
    ("pl.tile.slice(tile=a, shape=[2, 2], offset=[1, 1])", "pl.slice(a, [2, 2], [1, 1])"),
    ("pl.load(tensor=pl.tensor.slice(tensor=x, shape=[2, 2], offset=[1, 1]), offsets=[0, 0], shapes=[2, 2])",
     "pl.slice(a, [2, 2], [1, 1])"),
]


@pytest.mark.parametrize("named, positional", CALLS)
def test_calls_by_name(named, positional):
    a = ramp((4, 6))
    found = moved([f"pl.store(tile={named}, offsets=[0, 0], output_tensor=z)"], a, out_shape=(4, 6))
    expected = moved([f"pl.store({positional}, [0, 0], z)"], a, out_shape=(4, 6))
    np.testing.assert_array_equal(found, expected)
    assert found.any()
