"""Transfers of more than 2^31 bytes, to offsets beyond 2^31. Needs 5 GB of memory."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from programs import config, from_text  # noqa: E402

SIZE = 2**31 + 12345
MARKS = [0, 1, 4095, 2**22, 2**31 - 1, 2**31, 2**31 + 7, SIZE - 1]

PROGRAM = """
@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[{count}], pl.UINT8]], a: pld.DistributedTensor[[{size}], pl.UINT8],
           b: pld.DistributedTensor[[{size}], pl.UINT8]):
    me = pld.rank(pld.get_comm_ctx(a))
{writes}
    {transfer}
{reads}

@pl.jit
def wrapper(out: pl.Out[pl.Tensor[[{count}], pl.UINT8]], a: pld.DistributedTensor[[{size}], pl.UINT8],
            b: pld.DistributedTensor[[{size}], pl.UINT8]):
    kernel(out, a, b)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[NR, {count}], pl.UINT8]]):
    a_buf = pld.alloc_window_buffer([{size}], dtype=pl.UINT8)
    b_buf = pld.alloc_window_buffer([{size}], dtype=pl.UINT8)
    for r in pl.range(pld.world_size()):
        a = pld.window(a_buf, [{size}], dtype=pl.UINT8)
        b = pld.window(b_buf, [{size}], dtype=pl.UINT8)
        wrapper(outputs[r], a, b, device=r)
"""


@pytest.mark.parametrize(
    "transfer",
    [
        "pld.tensor.put(b, me, a)",
        "pld.tensor.get(b, me, a)",
        "pld.tensor.put(b, me, a, [0], [0], [{size}])",
        "pld.tensor.put(b, me, a, atomic=pld.AtomicType.Add)",
    ],
)
def test_more_than_two_gigabytes(transfer):
    host = from_text(
        PROGRAM.format(
            size=SIZE,
            count=len(MARKS),
            transfer=transfer.format(size=SIZE),
            writes="\n".join(f"    pl.write(a, [{at}], {i + 1})" for i, at in enumerate(MARKS)),
            reads="\n".join(
                f"    pl.write(out, [{i}], pl.read(b, [{at}]))" for i, at in enumerate(MARKS)
            ),
        )
    )["host"]
    y = np.zeros((1, len(MARKS)), np.uint8)
    host(y, config=config(1))
    np.testing.assert_array_equal(y[0], np.arange(1, len(MARKS) + 1))
