"""Compiled programs, workers and what they give out are of one process: pickling them says what to pass on instead."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from pypto.runtime import ChipWorker, RunConfig
from resident_programs import N, add_chip, compiled, one


def refused(thing, hint):
    for attempt in (pickle.dumps, lambda thing: pickle.dumps({"inside": [thing]}, protocol=2)):
        with pytest.raises(TypeError, match="cannot pickle") as caught:
            attempt(thing)
        assert caught.value.code == "PYPTO-H427" and hint in caught.value.hint


def test_programs():
    single = add_chip.compile(config=RunConfig(platform="cpu"))
    refused(single, "pickle its output_dir, and load it there: CompiledProgram.from_dir(output_dir)")
    refused(single["add_chip"], "pickle its output_dir, and load it there: CompiledProgram.from_dir(output_dir)")
    refused(compiled(one), "pickle its output_dir, and load it there: DistributedCompiledProgram.from_dir(output_dir)")
    for program in (single, compiled(one)):
        of_class, folder = pickle.loads(pickle.dumps((type(program), program.output_dir)))
        assert of_class.from_dir(folder).output_dir == program.output_dir
        # Nothing of it changes: it is its own copy.
        assert copy.copy(program) is program is copy.deepcopy([program])[0]


def test_workers_and_what_they_give_out():
    program = compiled(one)
    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    with program.prepare() as worker, ChipWorker(RunConfig(platform="cpu")) as chip_worker:
        resident = worker.alloc_tensor((N,), np.float32, init=x)
        handle = worker.submit(program, x, resident, y)
        refused(worker, "make another one there")
        refused(chip_worker, "make another one there")
        refused(handle, "result()")
        refused(worker.register(program), "output_dir")
        refused(resident, "worker.copy_from(...)")
        for thing in (worker, chip_worker, handle):
            with pytest.raises(TypeError, match="cannot pickle or copy"):
                copy.copy(thing)
        handle.result()
        assert (y == 2).all()
        described = dataclasses.replace(resident, buffer=None)
        assert pickle.loads(pickle.dumps(described)) == resident
