"""Compiling and calling the programs of the coverage table."""

import numpy as np

from pypto import ir
from pypto.ir import DistributedConfig


def compiled(program, devices):
    """A program in class form, for a number of devices or a list of device ids."""
    ids = list(range(devices)) if isinstance(devices, int) else devices
    return ir.compile(
        program, platform="cpu", distributed_config=DistributedConfig(device_ids=ids)
    )


def numbers(*shape, dtype=np.float32, first=1):
    """Distinct small whole numbers, so that sums and products of floats are exact in any order."""
    return (np.arange(np.prod(shape)) % 1013 + first).reshape(shape).astype(dtype)
