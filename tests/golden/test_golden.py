"""The IR and the C of the quick start, word for word. A change of the compiler shows as a
difference of these files; `--update-golden` (conftest.py) accepts it."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
import emitted

HERE = pathlib.Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "quickstart.py"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The quick start's program. Its definitions are run, its driver is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        text = EXAMPLE.read_text().partition("\nimport torch\n")[0]
        namespace = {}
        exec(compile(text, str(EXAMPLE), "exec"), namespace)
        yield namespace["orchestrator"].compile()


def normalised(path):
    return path.read_text().replace(str(EXAMPLE), "examples/quickstart.py")


@pytest.mark.parametrize("kind", ["ir", "c"])
def test_quickstart(compiled, kind, request):
    golden = HERE / f"quickstart.{kind}"
    actual = normalised(compiled.output_dir / f"program.{kind}")
    if request.config.getoption("--update-golden"):
        golden.write_text(actual)
    assert actual == golden.read_text()


def test_the_same_bytes_again(compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    text = EXAMPLE.read_text().partition("\nimport torch\n")[0]
    namespace = {}
    exec(compile(text, str(EXAMPLE), "exec"), namespace)
    again = namespace["orchestrator"].compile()
    assert again.output_dir != compiled.output_dir
    for kind in ["ir", "c"]:
        name = f"program.{kind}"
        assert (again.output_dir / name).read_bytes() == (compiled.output_dir / name).read_bytes()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_c_compiles_without_warnings(compiled, compiler):
    assert not emitted.warnings([compiled.output_dir / "program.c"], compiler)
