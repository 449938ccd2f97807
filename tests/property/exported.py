"""Whether the order among tasks that a recorded call tells of (deps.json) is that which their arguments demand, and what ran
kept to it. Which tasks use the same memory is found here by counting elements."""

import itertools
import json


def addresses(argument, base, width):
    """The addresses of all elements of an argument."""
    return {
        base + width * (argument["start_offset"] + sum(i * s for i, s in zip(index, argument["strides"])))
        for index in itertools.product(*map(range, argument["shape"]))
    }


def uses_of(task, tensors, width):
    """What a task reads or writes, and what it writes."""
    touched, written = set(), set()
    for argument in task["args"]:
        if argument["type"] in ("SCALAR", "NO_DEP"):
            continue
        base = int(tensors[argument["tensor_id"]]["buffer_addr"])
        found = addresses(argument, base, width)
        touched |= found
        if argument["type"] != "INPUT":
            written |= found
    return touched, written


def ancestors_of(count, edges):
    """For each task, those that come before it."""
    before = [set() for _ in range(count)]
    for k in range(count):
        for earlier in (pred for pred, succ in edges if succ == k):
            before[k] |= before[earlier] | {earlier}
    return before


def check_order(deps, records, width=8):
    """Checks one dispatch of a program whose elements all have `width` bytes."""
    tensors = {tensor["tensor_id"]: tensor for tensor in deps["tensors"]}
    tasks = sorted(deps["tasks"], key=lambda task: int(task["task_id"]))
    assert [int(task["task_id"]) for task in tasks] == list(range(len(tasks)))
    edges = {(int(edge["pred"]), int(edge["succ"])): edge for edge in deps["edges"]}
    assert len(edges) == len(deps["edges"]) and all(pred < succ for pred, succ in edges)
    before = ancestors_of(len(tasks), edges)
    uses = [uses_of(task, tensors, width) for task in tasks]
    for later, (touched, written) in enumerate(uses):
        for earlier in range(later):
            needed = uses[earlier][1] & touched or uses[earlier][0] & written
            free = "manual" in (tasks[earlier]["scope"], tasks[later]["scope"])
            assert free or not needed or earlier in before[later], (earlier, later)
            if (earlier, later) in edges and edges[earlier, later]["source"] != "explicit":
                assert needed, (earlier, later)
                # None is told that others imply.
                others = [pred for pred, succ in edges if succ == later and pred != earlier]
                assert not any(earlier in before[other] for other in others), (earlier, later)
    ran = {}
    for _, task, _, start, end in records["aicore_tasks"]:
        first, last = ran.get(task, (start, end))
        ran[task] = min(first, start), max(last, end)
    for pred, succ in edges:
        if pred in ran and succ in ran:
            assert ran[pred][1] <= ran[succ][0], (pred, succ)


def check_folder(folder):
    """Checks the records of a call."""
    for path in sorted(folder.glob("rank*/d*")):
        deps = json.loads((path / "deps.json").read_text())
        records = json.loads((path / "chip_swimlane_records.json").read_text())
        assert deps["dropped"] == 0
        check_order(deps, records)
