"""Mistakes that mypy finds. Each line that it must complain about ends with a comment that has its
words; it must complain about no other. Not run."""

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.runtime import RunConfig


@pl.jit.incore
def kernel(x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
    t = pl.laod(x, [0, 0], [1, 8])  # error: Module has no attribute "laod"
    t = pl.load(x, [0, 0], shape=[1, 8])  # error: Unexpected keyword argument "shape" for "load"
    t = pl.load(x)  # error: Missing positional arguments "offsets", "shapes" in call to "load"
    pl.store(t, [0, 0], y, [1, 8], 3, 4, 5)  # error: Too many positional arguments for "store"
    pld.system.notify(x, 0, [0, 0], 1, op=pld.NotifyOp.Add)  # error: has no attribute "Add"
    pld.system.notfy(x)  # error: has no attribute "notfy"
    size = pl.FP32.get_bytes()  # error: "DataType" has no attribute "get_bytes"
    pl.write(y, [0, size], undefined)  # error: Name "undefined" is not defined


@pl.jit.incor  # error: has no attribute "incor"
def other(x: pl.Tensr[[1], pl.FP32]):  # error: Name "pl.Tensr" is not defined
    pass


M = pl.dynamic(8)  # error: Argument 1 to "dynamic" has incompatible type "int"
config = RunConfig(platfrom="cpu")  # error: Unexpected keyword argument "platfrom" for "RunConfig"
devices = DistributedConfig(device_ids="0")  # error: expected "List[int]"
ir.compile(kernel, platform=3)  # error: incompatible type "int"; expected "Optional[str]"
kernel.run()  # error: has no attribute "run"
