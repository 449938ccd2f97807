"""The class form: what a class statement makes, how it runs, and what it refuses."""

import pickle
import textwrap

import numpy as np
import pytest
import torch

import pypto
import pypto.language as pl
from class_programs import Shift, allreduce, scaler
from programs import allreduce_expected, from_text
from pypto import ir
from pypto.ir import DistributedConfig
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

RANKS = [1, 2, 4]


def compiled(program, ranks, **options):
    config = DistributedConfig(device_ids=list(range(ranks)))
    return ir.compile(program, platform="cpu", distributed_config=config, **options)


# ---- running ----


@pytest.mark.parametrize("ranks", RANKS)
def test_the_quick_start(ranks, transport):
    inputs = np.random.default_rng(ranks).standard_normal((ranks, 1, 256), dtype=np.float32)
    outputs = np.zeros_like(inputs)
    assert compiled(allreduce(256), ranks)(inputs, outputs) is None
    np.testing.assert_array_equal(outputs, allreduce_expected(inputs))


@pytest.mark.parametrize("ranks", RANKS)
def test_a_ring_shift(ranks, transport):
    inputs = torch.randn(ranks, 1, 32)
    outputs = torch.zeros_like(inputs)
    compiled(Shift, ranks)(inputs, outputs)
    assert torch.equal(outputs, torch.roll(inputs, 1, 0))


@pytest.mark.parametrize("make", [torch.ones, np.ones])
def test_return_style(make, transport):
    run = compiled(scaler(2, 4, pl.FP32, 3.0), 2)
    dtype = torch.float32 if make is torch.ones else np.float32
    result = run(make((2, 1, 8), dtype=dtype))
    assert type(result) is type(make((1,)))
    assert result.dtype == dtype and tuple(result.shape) == (2, 1, 8)
    assert (result == 3).all()


@pytest.mark.parametrize(
    "dtype, torch_dtype", [(pl.FP32, torch.float32), (pl.INT32, torch.int32)]
)
def test_factories_capture_constants_dtypes_and_shapes(dtype, torch_dtype):
    results = []
    for factor in (2, 5):
        run = compiled(scaler(1, 3, dtype, factor), 1)
        results.append(run(torch.ones(1, 1, 6, dtype=torch_dtype)))
    assert [r.dtype for r in results] == [torch_dtype] * 2
    assert (results[0] == 2).all() and (results[1] == 5).all()


def test_names_are_taken_when_the_class_statement_runs():
    programs = []
    for factor in (2, 3):
        programs.append(scaler(1, 2, pl.FP32, factor))
    x = np.ones((1, 1, 4), np.float32)
    assert [compiled(p, 1)(x)[0, 0, 0] for p in programs] == [2, 3]

    namespace = from_text(TEXT)
    namespace["N"] = 1000
    assert compiled(namespace["P"], 1)(np.ones((1, 4), np.float32)).tolist() == [[4] * 4]


TEXT = """\
from __future__ import annotations
N = 4

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
        return pl.store(pl.mul(pl.load(x, [0], [N]), N), [0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def c(self, x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
        return self.k(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def h(self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
        self.c(x[0], y[0], device=0)
        return y
"""


def test_function_outside_of_a_class():
    text = TEXT.replace("class P:", "class P:\n    SCALE = 2").replace("self.k(x, y)", "outside(x, y)")
    text = text.replace(
        "@pl.program",
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def outside(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):\n"
        "    return pl.store(pl.add(pl.load(x, [0], [N]), 1.0), [0], y)\n\n@pl.program",
    )
    namespace = from_text(text)
    assert isinstance(namespace["outside"], ir.Function)
    assert compiled(namespace["P"], 1)(np.ones((1, 4), np.float32)).tolist() == [[2] * 4]


def test_parse_and_loads(tmp_path):
    source = TEXT.replace("from __future__ import annotations\n", "")
    for program in (pl.parse(source), pl.parse_program(TEXT)):
        assert compiled(program, 1)(np.ones((1, 4), np.float32)).tolist() == [[4] * 4]
    path = tmp_path / "program.py"
    path.write_text(TEXT)
    assert pl.loads(path).name == pl.loads_program(str(path)).name == "P"
    with pytest.raises(FileNotFoundError):
        pl.loads(tmp_path / "missing.py")
    with pytest.raises(ValueError, match=r"No @pl.function or @pl.program found"):
        pl.parse("x = 1")
    with pytest.raises(ValueError, match="Multiple functions/programs found: P, Q"):
        pl.parse(source + "\nQ = pl.program(type('Q', (), dict(f=P.functions['k'])))")
    with pytest.raises(ValueError, match="Expected @pl.program but found @pl.function"):
        pl.parse_program("@pl.function\ndef f(n: pl.Scalar[pl.INT32]):\n    pass")
    with pytest.raises(SyntaxError, match="Failed to compile code"):
        pl.parse("def f(:")


# ---- what it makes ----


def test_program_object():
    program = allreduce(8)
    assert isinstance(program, ir.Program)
    assert program.name == "AllReduce"
    assert list(program.functions) == ["orchestrator", "chip_orch", "reduce_step"]
    chip = program.get_function("chip_orch")
    assert isinstance(chip, ir.Function)
    assert (chip.name, chip.type, chip.level, chip.role) == (
        "chip_orch",
        pl.FunctionType.Orchestration,
        pl.Level.CHIP,
        pl.Role.Orchestrator,
    )
    assert program.get_function("nothing") is None
    assert program.as_python().startswith("@pl.program\nclass AllReduce:\n    @pl.function(level")
    assert repr(program) == "<ir.Program AllReduce: orchestrator, chip_orch, reduce_step>"
    with pytest.raises(TypeError, match="compiled, not called"):
        chip(1)


def test_compiled_object(tmp_path):
    program = scaler(2, 4, pl.FP32, 3.0)
    target = tmp_path / "deep" / "er"
    run = compiled(program, 2, output_dir=target, dump_passes=False, strategy="Default")
    assert isinstance(run, ir.DistributedCompiledProgram)
    assert run.program is program and run.output_dir == target
    assert (target / "program.c").exists() and (target / "program.ir").exists()
    assert run.param_names == ["a", "z"] and run.output_indices == [1] and run.has_return
    assert run.parameters[1].direction == ir.ParamDirection.Out
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) or 1 \(return\) arguments"):
        run()
    with pytest.raises(TypeError, match=r"expects 2 \(in-place\) or 1 \(return\) arguments"):
        run(1, 2, 3)


MOVE = """
import pypto.language as pl


@pl.program
class Move:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[8, 64], pl.{dtype}], y: pl.Out[pl.Tensor[[8, 64], pl.{dtype}]]) -> pl.Tensor[[8, 64], pl.{dtype}]:
        return pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def orch(self, x: pl.Tensor[[8, 64], pl.{dtype}], y: pl.Out[pl.Tensor[[8, 64], pl.{dtype}]]) -> pl.Tensor[[8, 64], pl.{dtype}]:
        return self.kernel(x, y)
"""
# What tensors of a type are made of where torch or NumPy may not have it: of those that are not here, bytes.
HOSTS = {
    "INDEX": "int64",
    "UINT16": "int16",
    "UINT32": "int32",
    "UINT64": "int64",
    "BF16": "bfloat16",
    "FP16": "float16",
    "BOOL": "bool",
    "INT8": "int8",
}
HALVES = ("FP4", "INT4", "UINT4")


def bytes_of(x):
    return (x.view(torch.uint8) if isinstance(x, torch.Tensor) else x.view(np.uint8)).tolist()


@pytest.mark.parametrize("library", [torch.from_numpy, np.asarray])
@pytest.mark.parametrize("dtype", [*HOSTS, "UINT8", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", *HALVES])
def test_outputs_of_every_element_type_are_made(dtype, library):
    run = ir.compile(from_text(MOVE.format(dtype=dtype))["Move"], platform="cpu")
    x = library(np.arange(8 * 64).reshape(8, 64)[:, : 32 if dtype in HALVES else 64].copy() % 2)
    element = HOSTS.get(dtype, "uint8")
    if library is np.asarray and dtype == "BF16":
        with pytest.raises(ValueError, match="numpy has no element type for bfloat16"):
            run(x)
        return
    x = x.to(getattr(torch, element)) if library is torch.from_numpy else x.astype(element)
    y = run(x)
    assert type(y) is type(x) and y.shape == x.shape
    assert bytes_of(y) == bytes_of(x)


def test_return_style_needs_known_extents():
    with pytest.raises(ValueError, match="contains dynamic dimensions"):
        compiled(allreduce(8), 2)(torch.ones(2, 1, 8))


def test_compile_refuses_what_it_cannot_compile():
    with pytest.raises(TypeError, match="takes an ir.Program, not int"):
        ir.compile(3)
    with pytest.raises(TypeError, match=r"not JITFunction; a function compiles itself: f\.compile"):
        ir.compile(pl.jit(lambda: None))
    with pytest.raises(ValueError, match="Invalid platform 'gpu'"):
        ir.compile(Shift, platform="gpu")
    with pytest.raises(TypeError, match="must be a pypto.ir.DistributedConfig"):
        ir.compile(Shift, distributed_config=2)
    with pytest.raises(ValueError, match="strategy must be"):
        ir.compile(Shift, strategy="Fast")
    with pytest.raises(TypeError):
        ir.compile(Shift, colour="red")


def test_without_config_there_is_one_device():
    run = ir.compile(Shift, platform="a2a3sim")
    x = torch.randn(1, 1, 32)
    z = torch.zeros_like(x)
    run(x, z)
    assert torch.equal(x, z)


# ---- enumerations ----


@pytest.mark.parametrize(
    "name, members",
    {
        "FunctionType": "Opaque Orchestration InCore AIC AIV Group Spmd Inline Graph",
        "Level": "AIV AIC CORE_GROUP CHIP_DIE CHIP HOST CLUSTER_0 CLUSTER_1 CLUSTER_2 GLOBAL",
        "Role": "Orchestrator SubWorker",
        "SplitMode": "NONE UP_DOWN LEFT_RIGHT",
        "MemorySpace": "DDR Vec Mat Left Right Acc Bias LeftScale RightScale ScalarLocal",
        "PadValue": "null zero max min",
        "TensorLayout": "ND DN NZ MX_A_ZZ MX_B_NN",
        "TileLayout": "none_box row_major col_major",
        "ScopeMode": "AUTO MANUAL",
        "PipeType": "MTE1 MTE2 MTE3 M V S FIX ALL",
    }.items(),
)
def test_enumerations_are_ordinary_objects(name, members):
    enumeration = getattr(pl, name)
    assert [m.name for m in enumeration] == members.split()
    assert len({*enumeration}) == len(members.split())
    for member in enumeration:
        assert member.name in repr(member)
        assert pickle.loads(pickle.dumps(member)) is member


def test_aliases_of_enumerations():
    assert pl.Mem is pl.MemorySpace
    assert pl.DN is pl.TensorLayout.DN
    assert pl.Level.L2CACHE is pl.Level.CHIP_DIE
    assert pl.Level.PROCESSOR is pl.Level.UMA is pl.Level.CHIP
    assert pl.Level.NODE is pl.Level.HOST and pl.Level.POD is pl.Level.CLUSTER_0
    assert pl.Level.AIV < pl.Level.CHIP < pl.Level.HOST < pl.Level.GLOBAL
    assert [d.name for d in ir.ParamDirection] == ["In", "Out", "InOut"]
    assert ir.ArgDirection.Scalar == 5
    assert ir.FunctionType is pl.FunctionType


# ---- mistakes, all of them found by the class statement ----

FRAGMENT = """\
@pl.program
class Bad:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]],
          n: pl.Scalar[pl.INT32]):
{body}
        return y
"""


@pytest.mark.parametrize(
    "body, error, words",
    [
        ("for i in [1, 2]:\n    pass", ParserSyntaxError, r"must use pl.range\(\)"),
        ("if n:\n    pass", ParserTypeError, "if condition must be a Bool-typed scalar"),
        ("z = pl.nonsense(x)", InvalidOperationError, "Unknown operation 'pl.nonsense'"),
        ("z = zzz", UndefinedVariableError, "Undefined variable"),
        ("zs = [pl.add(x, x) for _ in range(2)]", UnsupportedFeatureError, "ListComp"),
        ("z = self.g(x)", UndefinedVariableError, "'g' is not defined in program 'Bad'"),
    ],
)
def test_a_body_that_is_wrong(body, error, words):
    text = FRAGMENT.format(body=textwrap.indent(body, "        "))
    with pytest.raises(error, match=words) as caught:
        from_text(text)
    assert caught.value.span["file"].startswith("<text ")
    assert caught.value.source_lines[0].strip() in text


@pytest.mark.parametrize(
    "old, new, error, words",
    [
        ("x: pl.Tensor[[N], pl.FP32], y", "x, y", ParserTypeError, "missing type annotation"),
        ("x: pl.Tensor[[N], pl.FP32], y", "x: pl.Tensor, y", ParserTypeError, "Incomplete type"),
        ("self.k(x, y)", "self.k(x)", ParserTypeError, r"expects 2 argument\(s\), got 1"),
        ("self.k(x, y)", "self.k(x, y, z=1)", ParserTypeError, "not accept keyword argument 'z'"),
        ("self.k(x, y)", "print(x, y)", UnsupportedFeatureError, "Unsupported function call"),
        ("self.k(x, y)", "self.q(x, y)", UndefinedVariableError, "not defined in program 'P'"),
        ("def c(self, ", "def c(", ParserSyntaxError, "must take 'self' first"),
        ("type=pl.FunctionType.InCore", "type='InCore'", ParserSyntaxError, "member of pl.Function"),
        ("type=pl.FunctionType.InCore", "kind=1", ParserSyntaxError, "does not accept a kind="),
        (
            "type=pl.FunctionType.InCore",
            "type=pl.FunctionType.InCore, level=pl.Level.HOST",
            ParserSyntaxError,
            "which implies level=",
        ),
        (
            "type=pl.FunctionType.Orchestration",
            "type=pl.FunctionType.Orchestration, role=pl.Role.SubWorker",
            ParserSyntaxError,
            "which implies role=",
        ),
        (
            "level=pl.Level.HOST, role=pl.Role.Orchestrator",
            "level=pl.Level.HOST, role=pl.Role.SubWorker",
            ParserSyntaxError,
            "must not declare 'self'",
        ),
        ("type=pl.FunctionType.InCore", "type=pl.FunctionType.Graph", UnsupportedFeatureError, "not supported"),
        (
            "return self.k(x, y)",
            "pld.alloc_window_buffer(4)",
            ParserSyntaxError,
            "can only be called in HOST orchestration context",
        ),
        ("self.c(x[0]", "self.c(x[0, 0, 0]", ParserTypeError, "3 indices but the tensor is 2D"),
        (
            "self.c(x[0]",
            "b = pld.alloc_window_buffer(4)\n        b = pld.alloc_window_buffer(4)\n"
            "        self.c(x[0]",
            ParserSyntaxError,
            "already declared in this program",
        ),
    ],
)
def test_a_class_that_is_wrong(old, new, error, words):
    text = TEXT.replace("from __future__ import annotations\n", "")
    assert text.count(old) >= 1
    with pytest.raises(error, match=words) as caught:
        from_text(text.replace(old, new, 1))
    assert isinstance(caught.value, pypto.Error)
    assert caught.value.span is not None and caught.value.code


EXTERNAL = """\
@pl.function(type=pl.FunctionType.InCore)
def {name}(x: pl.Tensor[[N], pl.FP32], y: pl.Out[pl.Tensor[[N], pl.FP32]]):
    return pl.store(pl.load(x, [0], [N]), [0], y)

"""


def test_external_functions_have_names_of_their_own():
    head, program = TEXT.split("@pl.program")
    program = "@pl.program" + program
    text = head + EXTERNAL.format(name="c") + "outer = c\n" + program
    with pytest.raises(ParserSyntaxError, match="'c' conflicts with program function of 'P'"):
        from_text(text.replace("self.k(x, y)", "outer(x, y)"))
    text = head + EXTERNAL.format(name="e") + "first = e\n" + EXTERNAL.format(name="e") + program
    with pytest.raises(ParserSyntaxError, match="Conflicting external functions: two are called 'e'"):
        from_text(text.replace("self.k(x, y)", "first(x, y)\n        return e(x, y)", 1).replace("return first", "first"))


def test_sub_workers_may_be_written_and_called():
    text = TEXT + """
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def join(x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]):
        y[:] = x * 2
"""
    assert from_text(text)["P"].functions["join"].is_sub_worker


def test_sources_without_a_file(tmp_path):
    import subprocess
    import sys

    script = "import pypto.language as pl, numpy as np\nfrom pypto import ir\n" + TEXT.replace(
        "from __future__ import annotations\n", ""
    )
    script += "print(ir.compile(P)(np.ones((1, 4), np.float32)).tolist())\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[[4.0, 4.0, 4.0, 4.0]]\n", done.stderr


def test_all_errors_of_a_class_come_together():
    text = TEXT.replace("pl.mul(", "pl.mull(").replace("self.k(x, y)", "self.kk(x, y)")
    with pytest.raises(pypto.Error) as caught:
        from_text(text)
    messages = [d.message for d in caught.value.diagnostics]
    assert len(messages) == 2
    assert any("pl.mull" in m for m in messages) and any("'kk'" in m for m in messages)


def test_a_class_without_functions():
    with pytest.raises(ParserSyntaxError, match="contains no @pl.function decorated methods"):

        @pl.program
        class Empty:
            pass

    with pytest.raises(ParserSyntaxError, match="decorates a class, not the function <lambda>"):
        pl.program(lambda: None)
    with pytest.raises(ParserSyntaxError, match="decorates a function, not an int"):
        pl.function(3)
    with pytest.raises(ParserSyntaxError, match="does not accept a colour= argument"):
        pl.program(colour="red")
    assert isinstance(pl.program(strict_ssa=True)(_methods()), ir.Program)


def _methods():
    class Methods:
        @pl.function
        def f(self, n: pl.Scalar[pl.INT32]):
            pass

    return Methods


def test_attrs_are_deprecated():
    with pytest.warns(DeprecationWarning, match="func_attr"):
        pl.function(attrs={"a": 1})
