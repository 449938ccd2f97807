"""Two programs over one tensor: the first appends to a cache that the second reads. Annotations are
text and name no shapes; the host calls its wrapper without `device=`."""

from __future__ import annotations

import numpy as np

import pypto.language as pl
from launch import numbers
from programs import config

N = 16


@pl.jit.incore
def append_kernel(new: pl.Tensor, cache: pl.Out[pl.Tensor]):
    cache = pl.store(pl.load(new, [0, 0], [N, N]), [0, 0], cache)
    return cache


@pl.jit
def append_chip(new: pl.Tensor, cache: pl.Out[pl.Tensor]):
    cache = append_kernel(new, cache)
    return cache


@pl.jit.host
def append(new: pl.Tensor, cache: pl.Out[pl.Tensor]):
    cache = append_chip(new, cache)
    return cache


@pl.jit.incore
def attend_kernel(query: pl.Tensor, cache: pl.Tensor, out: pl.Out[pl.Tensor]):
    total = pl.add(pl.load(query, [0, 0], [N, N]), pl.load(cache, [0, 0], [N, N]))
    out = pl.store(total, [0, 0], out)
    return out


@pl.jit
def attend_chip(query: pl.Tensor, cache: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = attend_kernel(query, cache, out)
    return out


@pl.jit.host
def attend(query: pl.Tensor, cache: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = attend_chip(query, cache, out)
    return out


def test_multi_program_kv_cache(ranks, transport):
    cache = np.zeros((N, N), np.float32)
    for step in range(3):
        new, query = numbers(N, N, first=step), numbers(N, N, first=600)
        out = np.zeros_like(cache)
        append(new, cache, config=config(ranks))
        attend(query, cache, out, config=config(ranks))
        assert (cache == new).all() and (out == query + new).all()
