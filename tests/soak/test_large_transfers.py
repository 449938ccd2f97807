"""Transfers of more than 2^31 bytes, and everything else at offsets beyond 2^31. Needs 5 GB of memory."""

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


# A window of 3 GB, and the same bytes as signals.
FAR = """
@pl.jit.incore
def kernel(out: pl.Out[pl.Tensor[[6], pl.INT32]], a: pld.DistributedTensor[[3, 268435456], pl.INT32],
           bell: pld.DistributedTensor[[805306368], pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(a))
    t = pl.tile.full([1, 8], pl.INT32, 7)
    pld.remote_store(t, a, me, [2, 268435440])
    pld.remote_store(t, a, me, [2, 268435440], atomic=pld.AtomicType.Add)
    u = pld.remote_load(a, me, [2, 268435436], [1, 8])
    pl.write(out, [0], pl.read(u, [0, 3]))
    pl.write(out, [1], pl.read(u, [0, 4]))
    pl.store(pl.add(u, 1), [2, 268435448], a)
    pl.write(out, [2], pl.read(a, [2, 268435455]))
    pld.tensor.put(a, me, a, [2, 268435424], [2, 268435448], [1, 8])
    pl.write(out, [3], pl.read(bell, [805306367 - 24]))
    pld.system.notify(bell, me, [805306360], 5, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(bell, [805306360], 6, cmp=pld.WaitCmp.Eq)
    pl.write(out, [4], pl.read(a[2:3, 268435446:268435456], [0, 2]))
    pl.write(out, [5], pl.read(bell, [5]))

@pl.jit
def wrapper(out: pl.Out[pl.Tensor[[6], pl.INT32]], a: pld.DistributedTensor[[3, 268435456], pl.INT32],
            bell: pld.DistributedTensor[[805306368], pl.INT32]):
    kernel(out, a, bell)

@pl.jit.host
def host(outputs: pl.Out[pl.Tensor[[NR, 6], pl.INT32]]):
    buf = pld.alloc_window_buffer([3, 268435456], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        a = pld.window(buf, [3, 268435456], dtype=pl.INT32)
        bell = pld.window(buf, [805306368], dtype=pl.INT32)
        wrapper(outputs[r], a, bell, device=r)
"""


def test_small_accesses_far_into_a_window():
    y = np.zeros((1, 6), np.int32)
    from_text(FAR)["host"](y, config=config(1))
    # u[3] is before what was stored, u[4] is 7 + 7; a[2, -8:] = u + 1, so the first of it is the signal's 1.
    np.testing.assert_array_equal(y[0], [0, 14, 15, 15, 6, 0])
