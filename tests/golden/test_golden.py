"""The IR and the C of some programs, word for word. A change of the compiler shows as a
difference of these files; `--update-golden` (conftest.py) accepts it."""

import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
import emitted

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
# Script, host function.
PROGRAMS = {
    "quickstart": (ROOT / "examples" / "quickstart.py", "orchestrator"),
    "tasks": (HERE / "tasks.py", "host"),
    "collectives": (HERE / "collectives.py", "host"),
    "results": (HERE / "results.py", "host"),
}


def compile_program(name):
    """Its definitions are run, its driver is not."""
    path, host = PROGRAMS[name]
    text = path.read_text().partition("\nimport torch\n")[0]
    namespace = {}
    exec(compile(text, str(path), "exec"), namespace)
    return namespace[host].compile()


@pytest.fixture(scope="module", params=PROGRAMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def compiled(name, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield compile_program(name)


@pytest.mark.parametrize("kind", ["ir", "c"])
def test_as_it_was(name, compiled, kind, request):
    path = PROGRAMS[name][0]
    golden = HERE / f"{name}.{kind}"
    text = (compiled.output_dir / f"program.{kind}").read_text()
    actual = text.replace(str(path), str(path.relative_to(ROOT)))
    if request.config.getoption("--update-golden"):
        golden.write_text(actual)
    assert actual == golden.read_text()


def test_the_same_bytes_again(name, compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path))
    again = compile_program(name)
    assert again.output_dir != compiled.output_dir
    for file in ["program.ir", "program.c"]:
        assert (again.output_dir / file).read_bytes() == (compiled.output_dir / file).read_bytes()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_c_compiles_without_warnings(compiled, compiler):
    assert not emitted.warnings([compiled.output_dir / "program.c"], compiler)
