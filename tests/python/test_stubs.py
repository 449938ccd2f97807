"""The type stubs, which are made from the tables of the compiler when the package is installed."""

import ast
import pathlib

import pytest

import pypto
import pypto.language as pl
import pypto.language.distributed as pld

FOLDER = pathlib.Path(pypto.__file__).parent / "language"


def names_in(path):
    """Name -> the node that defines it."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
        elif isinstance(node, ast.Assign):
            found[node.targets[0].id] = node
        elif isinstance(node, ast.ImportFrom):
            found.update({alias.asname or alias.name: node for alias in node.names})
    return found


@pytest.mark.parametrize(
    "module, path", [(pl, "__init__.pyi"), (pld, "distributed/__init__.pyi")]
)
def test_everything_is_there(module, path):
    assert set(module.__all__) <= set(names_in(FOLDER / path))


def test_operations_have_their_parameters_and_texts():
    load = names_in(FOLDER / "__init__.pyi")["load"]
    assert [a.arg for a in load.args.args][:3] == list(pl.load.__text_signature__[1:-1].split(", "))[:3]
    assert ast.get_docstring(load, clean=False) == pl.load.__doc__
    tile = names_in(FOLDER / "distributed" / "__init__.pyi")["tile"]
    assert "remote_load" in [node.name for node in tile.body]


def test_enumerations_have_their_values():
    op = names_in(FOLDER / "distributed" / "__init__.pyi")["NotifyOp"]
    values = {node.targets[0].id: node.value.value for node in op.body}
    assert values == {member.name: member.value for member in pld.NotifyOp}


def test_the_package_says_that_it_has_types():
    assert (FOLDER.parent / "py.typed").exists()
