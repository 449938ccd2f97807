"""All of them in one program: a step of training, on as many devices as there are.

Rank 0 has the weights. Every rank computes gradients from its own data, and then the ranks divide the update among
themselves: rank r updates row r, and everybody gets all rows of the result. Beside that they exchange statistics.

    broadcast        the weights of rank 0 to everybody
    reduce_scatter   row r of the gradients, summed, to rank r
    allgather        the updated rows to everybody
    all_to_all       what each rank has counted for each other one
    allreduce        the loss
    barrier          before a rank looks into a neighbour's window

One signal serves them all, one after the other: it is zero before and after each. And a window can be filled again as
soon as a collective has returned, without any other synchronisation.

    python examples/16_all_composed.py [-d 0,1,2] [-p cpu] [--compile-only]
"""

import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


@pl.jit.incore
def step(
    weights: pl.Tensor[[NR, SIZE], pl.FP32],
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    counts: pl.Tensor[[NR, SIZE], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    losses: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    got: pl.Out[pl.Tensor[[NR, SIZE], pl.INT32]],
    neighbours: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    model: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    gradients: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    loss: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    exchanged: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.INT32]],
    updated: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(model)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)

    if me == 0:
        for i in pl.range(n):
            pl.store(pl.load(weights, [i, 0], [1, SIZE]), [i, 0], model)
    pld.tensor.broadcast(model, signal, root=0)

    # The loss is half the square of what is missing to the data, and the gradient what is missing.
    total = pl.full([1, SIZE], dtype=pl.FP32, value=0.0)
    for i in pl.range(n):
        missing = pl.sub(pl.load(model, [i, 0], [1, SIZE]), pl.load(x, [i, 0], [1, SIZE]))
        pl.store(missing, [i, 0], gradients)
        total = pl.add(total, pl.mul(pl.mul(missing, missing), 0.5))
    pl.store(total, [0, 0], loss)
    pld.tensor.allreduce(loss, signal, op=pld.ReduceOp.Sum)
    losses = pl.store(pl.load(loss, [0, 0], [1, SIZE]), [0, 0], losses)

    pld.tensor.reduce_scatter(gradients, signal, op=pld.ReduceOp.Sum)
    row = pl.load(model, [me, 0], [1, SIZE])
    row = pl.sub(row, pl.mul(pl.load(gradients, [me, 0], [1, SIZE]), 0.25))
    pl.store(row, [0, 0], updated)
    pld.tensor.allgather(updated, model, signal)
    for i in pl.range(n):
        y = pl.store(pl.load(model, [i, 0], [1, SIZE]), [i, 0], y)

    pld.tensor.all_to_all(counts, exchanged, signal)
    for i in pl.range(n):
        got = pl.store(pl.load(exchanged, [i, 0], [1, SIZE]), [i, 0], got)

    pl.store(pl.mul(row, 2.0), [0, 0], updated)
    pld.tensor.barrier(signal)
    theirs = pld.tile.remote_load(updated, peer=(me + 1) % n, offsets=[0, 0], shape=[1, SIZE])
    neighbours = pl.store(theirs, [0, 0], neighbours)
    return y, losses, got, neighbours


@pl.jit
def device(
    weights: pl.Tensor[[NR, SIZE], pl.FP32],
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    counts: pl.Tensor[[NR, SIZE], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    losses: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    got: pl.Out[pl.Tensor[[NR, SIZE], pl.INT32]],
    neighbours: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    model: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    gradients: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    loss: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    exchanged: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.INT32]],
    updated: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return step(
        weights, x, counts, y, losses, got, neighbours, model, gradients, loss, exchanged, updated, signal
    )


@pl.jit.host
def host(
    weights: pl.Tensor[[NR, SIZE], pl.FP32],
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    counts: pl.Tensor[[NR, NR, SIZE], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
    losses: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
    got: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.INT32]],
    neighbours: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
):
    model_buffer = pld.alloc_window_buffer([NR, SIZE], dtype=pl.FP32)
    gradient_buffer = pld.alloc_window_buffer([NR, SIZE], dtype=pl.FP32)
    loss_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    exchange_buffer = pld.alloc_window_buffer([NR, SIZE], dtype=pl.INT32)
    update_buffer = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buffer = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
    model = pld.window(model_buffer, [NR, SIZE], dtype=pl.FP32)
    gradients = pld.window(gradient_buffer, [NR, SIZE], dtype=pl.FP32)
    loss = pld.window(loss_buffer, [1, SIZE], dtype=pl.FP32)
    exchanged = pld.window(exchange_buffer, [NR, SIZE], dtype=pl.INT32)
    updated = pld.window(update_buffer, [1, SIZE], dtype=pl.FP32)
    signal = pld.window(signal_buffer, [NR, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        device(
            weights, x[r], counts[r], y[r], losses[r], got[r], neighbours[r],
            model, gradients, loss, exchanged, updated, signal, device=r,
        )
    return y, losses, got, neighbours


# ---- how to call it ----

import numpy as np

from running import config, finish, options

given = options()
ranks = len(given.devices)
rng = np.random.default_rng(16)
weights = rng.integers(-8, 8, (ranks, SIZE)).astype(np.float32)     # whole numbers: sums are exact
x = rng.integers(-8, 8, (ranks, ranks, SIZE)).astype(np.float32)
counts = rng.integers(0, 1000, (ranks, ranks, SIZE)).astype(np.int32)
y, got = np.zeros_like(x), np.zeros_like(counts)
losses, neighbours = np.zeros((2, ranks, 1, SIZE), np.float32)
arguments = [weights, x, counts, y, losses, got, neighbours]
program = host.compile(*arguments, config=config(given))
if not given.compile_only:
    program(*arguments)
    missing = weights - x
    updated = weights - 0.25 * missing.sum(axis=0)
    print(f"the loss was {losses[0].sum():.1f} and is {(0.5 * (updated - x) ** 2).sum():.1f} behind the step")
    finish(
        (y == updated).all()
        and (losses == (0.5 * missing**2).sum(axis=(0, 1))).all()
        and (got == counts.transpose(1, 0, 2)).all()
        and (neighbours[:, 0] == 2 * np.roll(updated, -1, axis=0)).all()
    )
