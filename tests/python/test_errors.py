"""What a user is told: the class of the error, the place in the script with the code underlined,
and what to do. One test per mistake; the mistake's line is found by its text, so that the programs
can be edited freely."""

import pickle

import numpy as np
import pytest

import pypto
import pypto.language as pl
from pypto.language.parser import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from programs import config, from_text

PROGRAM = """\
@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
    win: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]],
):
    t = pl.load(x, [0, 0], [1, 8])
    pl.store(t, [0, 0], y)

@pl.jit
def wrapper(
    x: pl.Tensor[[1, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
    win: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]],
):
    kernel(x, y, win)

@pl.jit.host
def host(
    inputs: pl.Tensor[[NR, 1, 8], pl.FP32],
    outputs: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]],
):
    buf = pld.alloc_window_buffer(8 * pl.FP32.get_byte())
    for r in pl.range(pld.world_size()):
        win = pld.window(buf, [1, 8], dtype=pl.FP32)
        wrapper(inputs[r], outputs[r], win, device=r)
"""


def edited(old, new):
    assert PROGRAM.count(old) == 1, old
    return PROGRAM.replace(old, new)


def fails(text, error, inputs=None, outputs=None, devices=2):
    """The exception that calling `host` of the program raises."""
    host = from_text(text)["host"]
    inputs = np.zeros((devices, 1, 8), np.float32) if inputs is None else inputs
    outputs = np.zeros_like(inputs) if outputs is None else outputs
    with pytest.raises(error) as caught:
        host(inputs, outputs, config=config(devices))
    return caught.value


def assert_points_at(error, text, code):
    """`code`, which occurs once in the program, is what the error underlines."""
    (line,) = [n for n, source in enumerate(text.splitlines(), 1) if code in source]
    source = text.splitlines()[line - 1]
    column = source.index(code)
    span = error.span
    assert (span["line"], span["column"]) == (line, column)
    assert span["file"].startswith("<text ")
    assert error.source_lines == [source]
    shown = str(error)
    assert shown.startswith(
        f"{span['file']}:{line}:{column + 1}: [{error.code}]: {error.message}\n"
    )
    underline = "    " + " " * column + "^" + "~" * (len(code) - 1)
    assert f"\n    {source}\n{underline}\n" in shown + "\n"


# ---- the mistakes of the first week ----


def test_world_size_in_a_kernel():
    text = edited(
        "    t = pl.load(x, [0, 0], [1, 8])", "    t = pl.load(x, [pld.world_size(), 0], [1, 8])"
    )
    error = fails(text, ParserSyntaxError)
    assert error.span["column"] == len("    t = pl.load(x, [")
    assert "can only be called in HOST orchestration context" in error.message
    assert error.source_lines == ["    t = pl.load(x, [pld.world_size(), 0], [1, 8])"]
    assert "pld.nranks" in error.hint


def test_window_allocation_in_a_kernel():
    text = edited("    t = pl.load(x", "    b = pld.alloc_window_buffer(64)\n    t = pl.load(x")
    error = fails(text, ParserSyntaxError)
    assert_points_at(error, text, "pld.alloc_window_buffer(64)")
    assert "can only be called in HOST orchestration context" in error.message


def test_slice_where_a_subscript_was_meant():
    text = edited("wrapper(inputs[r], ", "wrapper(pl.slice(inputs, [1, 1, 8], [r, 0, 0]), ")
    error = fails(text, ParserTypeError)
    assert_points_at(error, text, "pl.slice(inputs, [1, 1, 8], [r, 0, 0])")
    assert "inputs[r]" in error.hint


def test_wrong_shape_at_the_call():
    error = fails(PROGRAM, TypeError, inputs=np.zeros((2, 1, 9), np.float32))
    assert "inputs" in error.message and "9" in error.message and "8" in error.message


def test_wrong_rank_of_a_tensor_at_the_call():
    error = fails(
        PROGRAM,
        TypeError,
        inputs=np.zeros((2, 8), np.float32),
        outputs=np.zeros((2, 1, 8), np.float32),
    )
    assert "inputs" in error.message


def test_wrong_dtype_at_the_call():
    error = fails(PROGRAM, TypeError, inputs=np.zeros((2, 1, 8), np.int32))
    assert "inputs" in error.message and "int32" in error.message and "fp32" in error.message


def test_fewer_rows_than_devices():
    error = fails(PROGRAM, ValueError, inputs=np.zeros((2, 1, 8), np.float32), devices=4)
    assert "2" in error.message and "4" in error.message


def test_rows_of_two_arguments_differ():
    error = fails(
        PROGRAM,
        TypeError,
        inputs=np.zeros((2, 1, 8), np.float32),
        outputs=np.zeros((3, 1, 8), np.float32),
    )
    assert "NR" in error.message and "2" in error.message and "3" in error.message


def test_a_literal_number_of_ranks():
    text = PROGRAM.replace("[NR, 1, 8]", "[2, 1, 8]")
    host = from_text(text)["host"]
    good = np.zeros((2, 1, 8), np.float32)
    host(good, good.copy(), config=config(2))
    with pytest.raises(pypto.Error) as caught:
        host(np.zeros((4, 1, 8), np.float32), np.zeros((4, 1, 8), np.float32), config=config(4))
    assert "pl.dynamic" in str(caught.value)
    with pytest.raises(pypto.Error) as caught:
        host(good, good.copy(), config=config(4))
    assert "pl.dynamic" in str(caught.value)


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    error = fails(PROGRAM, pypto.CompilerError)
    assert isinstance(error, RuntimeError)
    assert "no C compiler" in error.message
    assert "PYPTO_CC" in error.hint or "gcc" in error.hint


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYPTO_CC", "/bin/false")
    fails(PROGRAM, pypto.CompilerError)


# ---- names and types ----


def test_undefined_name():
    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.load(x, [0, 0], [1, SIZE])")
    error = fails(text, UndefinedVariableError)
    assert_points_at(error, text, "SIZE")
    assert "Undefined variable 'SIZE'" in error.message


def test_unknown_operation():
    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.laod(x, [0, 0], [1, 8])")
    error = fails(text, InvalidOperationError)
    assert "Unknown operation 'pl.laod'" in error.message
    assert "pl.load" in error.hint


def test_names_that_are_still_to_come():
    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.gather(pl.load(x, [0, 0], [1, 8]))")
    error = fails(text, UnsupportedFeatureError)
    assert error.message == "pl.gather is not supported yet"
    for module, name in [(pl, "prefetch"), (pl.tile, "gather")]:
        with pytest.raises(UnsupportedFeatureError, match=rf"{name} is not supported yet"):
            getattr(module, name)
        assert not hasattr(module, name)
    for name in ["HF8", "HF4"]:
        with pytest.raises(UnsupportedFeatureError, match="without its bits: use pl.FP8E4M3FN"):
            getattr(pl, name)
        error = fails(
            edited("pl.load(x, [0, 0], [1, 8])", f"pl.cast(pl.load(x, [0, 0], [1, 8]), pl.{name})"),
            UnsupportedFeatureError,
        )
        assert error.message == f"pl.{name} is not supported yet" and "without its bits" in error.hint
    with pytest.raises(AttributeError, match="has no attribute 'progam'") as caught:
        pl.progam
    assert not isinstance(caught.value, pypto.Error)


def test_missing_argument_of_an_operation():
    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.load(x, [0, 0])")
    error = fails(text, InvalidOperationError)
    assert "shapes" in error.message


def test_missing_annotation():
    text = edited("    inputs: pl.Tensor[[NR, 1, 8], pl.FP32],", "    inputs,")
    error = fails(text, ParserTypeError)
    assert "missing type annotation" in error.message and "inputs" in error.message


def test_annotations_that_cannot_be_used_by_name():
    for alias, message in [
        (pl.Tensor[[1, 8]], "cannot be used by name"),
        (pl.Tensor[[1, 8], "fp32"], "cannot be used by name"),
        (pl.Tensor[8, pl.FP32], "must be a list or tuple"),
        (pl.Out[pl.Out[pl.Tensor[[1, 8], pl.FP32]]], "do not nest"),
        (3, "not a type"),
    ]:
        text = edited("inputs: pl.Tensor[[NR, 1, 8], pl.FP32]", "inputs: ALIAS")
        host = from_text(text, ALIAS=alias)["host"]
        with pytest.raises(ParserTypeError, match=message) as caught:
            host(np.zeros((1, 1, 8), np.float32), np.zeros((1, 1, 8), np.float32))
        assert_points_at(caught.value, text, "ALIAS")


def test_unsupported_statement():
    text = edited("    t = pl.load(x", "    assert x\n    t = pl.load(x")
    error = fails(text, UnsupportedFeatureError)
    assert_points_at(error, text, "assert x")
    assert "Assert" in error.message


def test_unsupported_expression():
    text = edited("    t = pl.load(x", "    z = [i for i in x]\n    t = pl.load(x")
    error = fails(text, UnsupportedFeatureError)
    assert_points_at(error, text, "[i for i in x]")
    assert "ListComp" in error.message


def test_device_is_missing():
    text = edited("win, device=r)", "win)")
    error = fails(text, ParserError)
    assert "device" in str(error)


def test_all_errors_of_a_program_are_shown_together():
    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.load(x, [0, 0], [1, ONE])")
    text = text.replace("pl.store(t, [0, 0], y)", "pl.store(t, [TWO, 0], y)")
    error = fails(text, UndefinedVariableError)
    assert [d.message for d in error.diagnostics] == [
        "Undefined variable 'ONE'",
        "Undefined variable 'TWO'",
    ]
    assert "'ONE'" in str(error) and "'TWO'" in str(error)


@pytest.mark.parametrize(
    "old, new, code, message",
    [
        ("def host(\n", "def host(\n    *rest,\n", "rest,", "*rest"),
        ("def host(\n", "def host(\n    *,\n", None, "the keyword-only parameter 'inputs'"),
        (",\n):\n    buf", ",\n    **rest,\n):\n    buf", "rest,", "**rest"),
        (",\n):\n    buf", ",\n    /,\n):\n    buf", None, "marker '/'"),
    ],
)
def test_parameters_that_are_refused(old, new, code, message):
    text = edited(old, new)
    error = fails(text, UnsupportedFeatureError)
    assert message in error.message and "'host'" in error.message
    assert error.span["line"] > text[: text.index("def host(")].count("\n") and error.hint
    if code is not None:
        assert error.source_lines[0].strip().strip("*") == code


def test_a_default_value_that_is_no_number():
    text = PROGRAM.replace(",\n):", " = N_TIMES,\n):", 1)  # the last one of the kernel
    text = "N_TIMES = [3]\n" + text.replace("kernel(x, y, win)", "kernel(x, y)")
    error = fails(text, ParserTypeError)
    assert "the default value of 'win' must be a number" in error.message
    assert error.source_lines[0].endswith(" = N_TIMES,")


def test_async_functions():
    error = fails(PROGRAM.replace("def host", "async def host"), UnsupportedFeatureError)
    assert "'host': a DSL function cannot have 'async'" in error.message
    assert "write def" in error.hint and error.source_lines == ["async def host("]


def test_non_ascii_source_is_underlined_in_the_right_place():
    text = edited(
        "    t = pl.load(x, [0, 0], [1, 8])",
        '    größe = "大小"; t = pl.load(x, [0, 0], [1, SIZE])',
    )
    error = fails(text, UndefinedVariableError)
    source = '    größe = "大小"; t = pl.load(x, [0, 0], [1, SIZE])'
    assert error.span["column"] == len(source[: source.index("SIZE")].encode())
    shown = str(error).splitlines()
    underline = shown[shown.index("    " + source) + 1]
    # In terminal cells: the two ideographs are two cells wide.
    assert underline.index("^") == len("    ") + source.index("SIZE") + 2


# ---- sources ----


def test_no_source():
    namespace = {"pl": pl}
    exec("@pl.jit.host\ndef host(x: pl.Tensor[[1], pl.FP32]): pass", namespace)
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code of 'host'") as caught:
        namespace["host"](np.zeros(1, np.float32))
    assert "linecache" in caught.value.hint


def test_source_that_changed_since_the_import(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "import pypto.language as pl\n@pl.jit.host\ndef host(x: pl.Tensor[[1], pl.FP32]): pass\n"
    )
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("def other(): pass\n")
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code of 'host'") as caught:
        namespace["host"](np.zeros(1, np.float32))
    assert caught.value.span["line"] == 2
    assert "changed since it was loaded" in caught.value.message
    assert "reload" in caught.value.hint


HEADER = "import pypto.language as pl\n"
LATE = "@pl.jit.host\ndef host(x: pl.Tensor[[1], pl.{dtype}]): {body}\n"


def test_a_function_edited_since_the_import(tmp_path):
    """What runs is what Python has loaded, never what is in the file now."""
    path = tmp_path / "script.py"
    path.write_text(HEADER + LATE.format(dtype="FP32", body="pass"))
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text(HEADER + LATE.format(dtype="INT32", body="pass; pass"))
    for _ in range(2):
        with pytest.raises(ParserSyntaxError, match="changed since it was loaded"):
            namespace["host"](np.zeros(1, np.float32))
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    namespace["host"](np.zeros(1, np.int32), config=config(1))


def test_a_file_edited_after_the_first_call(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(HEADER + LATE.format(dtype="FP32", body="undefined"))
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    for text in ["", "pass", "# nothing\n" * 9]:
        with pytest.raises(UndefinedVariableError) as caught:
            namespace["host"](np.zeros(1, np.float32))
        assert "body" not in str(caught.value) and "undefined\n" in str(caught.value)
        path.write_text(text)


def test_tracebacks_show_the_callers_lines_only():
    import traceback

    text = edited("pl.load(x, [0, 0], [1, 8])", "pl.load(x, [0, 0], [1, SIZE])")
    host = from_text(text)["host"]
    for call in (host, host.compile):
        with pytest.raises(UndefinedVariableError) as caught:
            call(np.zeros((1, 1, 8), np.float32), np.zeros((1, 1, 8), np.float32))
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [frame.filename for frame in frames] == [__file__]


# ---- calls ----


def test_arguments_are_bound_as_python_does():
    host = from_text(PROGRAM)["host"]
    x = np.zeros((1, 1, 8), np.float32)
    with pytest.raises(
        TypeError, match=r"host\(\) missing 1 required positional argument: 'outputs'"
    ):
        host(x)
    with pytest.raises(TypeError, match=r"host\(\) got an unexpected keyword argument 'output'"):
        host(x, output=x)
    with pytest.raises(TypeError, match=r"host\(\) takes 2 positional arguments but 3 were given"):
        host(x, x, x)
    host(outputs=x, inputs=x.copy())


def test_config_must_be_a_run_config():
    host = from_text(PROGRAM)["host"]
    x = np.zeros((1, 1, 8), np.float32)
    with pytest.raises(TypeError, match="config must be a pypto.runtime.RunConfig, not dict"):
        host(x, x, config={"platform": "cpu"})


def test_kernels_cannot_be_called():
    with pytest.raises(
        TypeError, match=r"kernel is an in-core kernel \(@pl.jit.incore\).*call the wrapper"
    ):
        from_text(PROGRAM)["kernel"](1, 2, 3)


def test_wrappers_with_windows_cannot_be_called():
    x = np.zeros((1, 8), np.float32)
    with pytest.raises(ParserTypeError, match="'wrapper' takes a window"):
        from_text(PROGRAM)["wrapper"].compile()
    with pytest.raises(ParserError, match="'wrapper' takes a window"):
        from_text(PROGRAM)["wrapper"](x, x, x)


# ---- the classes ----


def test_classes():
    assert issubclass(ParserError, pypto.Error)
    for error in [
        ParserSyntaxError,
        ParserTypeError,
        UndefinedVariableError,
        UnsupportedFeatureError,
    ]:
        assert issubclass(error, ParserError)
    for error in [pypto.CompilerError, pypto.DeviceError, pypto.InternalError]:
        assert issubclass(error, (pypto.Error, RuntimeError))
    assert issubclass(pypto.DeadlockError, pypto.DeviceError)
    assert issubclass(pypto.WorkerDiedError, pypto.DeviceError)
    import pypto.language.parser.diagnostics as diagnostics

    assert diagnostics.ParserTypeError is ParserTypeError is pl.parser.ParserTypeError


def test_every_kind_of_the_library_has_its_class():
    import builtins
    import pathlib
    import re

    header = pathlib.Path(__file__).parents[2] / "include/pypto/status.h"
    kinds = re.findall(r'X\([A-Z_]+, "(\w+)"\)', header.read_text())
    assert len(kinds) > 10
    for kind in kinds:
        error = pypto.errors.make(kind, "text", [("PYPTO-X", kind, "what", None, "do", None, None)])
        assert type(error).__name__ == kind
        if hasattr(builtins, kind):
            assert isinstance(error, getattr(builtins, kind))
    assert type(pypto.errors.make("Unheard", "text", [])) is pypto.InternalError


def test_exceptions_can_be_pickled():
    error = fails(
        edited("pl.load(x, [0, 0], [1, 8])", "pl.load(x, [0, 0], [1, SIZE])"),
        UndefinedVariableError,
    )
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.span == error.span and again.hint == error.hint


def test_exceptions_can_be_made_by_hand():
    error = ParserTypeError("only a text")
    assert error.message == str(error) == "only a text"
    assert (error.span, error.hint, error.source_lines, error.diagnostics) == (None, None, [], [])


def test_a_decorator_error_has_a_place():
    with pytest.raises(TypeError, match="does not accept a level= argument") as caught:
        pl.jit.host(level=3)
    assert caught.value.code == "PYPTO-S114" and "auto_scope=" in caught.value.hint
    assert caught.value.span["file"] == __file__
    assert caught.value.source_lines == ["        pl.jit.host(level=3)"]


def test_defects_of_pypto_itself_say_so():
    with pytest.raises(pypto.InternalError, match="unknown code PYPTO-X999: words"):
        pypto._core.refuse("PYPTO-X999", "words", None, None, 0, 0, 0, None)
