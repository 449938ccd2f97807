"""Everything that the host side offers has a text (`help()`), types, and a place in the documentation; and what the documentation
shows exists, with these parameters, defaults and types. How, see public_names.py."""

import ast
import builtins
import enum
import importlib
import inspect
import re
from pathlib import Path

import pytest

import public_names as names
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import _core

CLASSES = {cls.__name__: cls for cls in names.public_classes()}
FUNCTIONS = names.public_functions()
ENUMS = [c for c in CLASSES.values() if issubclass(c, enum.Enum)]
ERRORS = [c for c in CLASSES.values() if issubclass(c, BaseException)]
OTHERS = [c for c in CLASSES.values() if c not in ENUMS and c not in ERRORS]


def by_name(cls):
    return cls.__name__


def has_text(value):
    return bool(inspect.cleandoc(value.__doc__ or ""))


def texts_of(cls, member):
    """What help() shows where a member is described."""
    return " ".join(value.__doc__ or "" for value in (cls, member.owner, member.value) if value is not None)


# ---- help() ----


@pytest.mark.parametrize("cls", CLASSES.values(), ids=by_name)
def test_classes_and_their_members_have_texts(cls):
    assert has_text(cls) and cls.__doc__ != (cls.__base__.__doc__ or "")
    for member in names.members(cls).values():
        if member.value is not None and not member.name.startswith("__"):
            assert has_text(member.value), f"{cls.__name__}.{member.name}"
        elif member.value is None:
            texts = texts_of(cls, member)
            if member.owner is pypto.Error:
                texts += pypto.errors.__doc__
            assert re.search(rf"\b{member.name}\b", texts), f"help({cls.__name__}) does not tell of {member.name}"


def documented_parameters(value, text, where):
    for name, parameter in names.parameters(value).items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        assert re.search(rf"\b{name}\b", text), f"help({where}) does not tell of {name}"


@pytest.mark.parametrize("name, function", FUNCTIONS.items(), ids=list(FUNCTIONS))
def test_functions_have_texts_and_types(name, function):
    assert has_text(function)
    documented_parameters(function, function.__doc__, name)
    signature = inspect.signature(function)
    assert signature.return_annotation is not signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty, f"{name}: {parameter.name}"


@pytest.mark.parametrize("cls", OTHERS, ids=by_name)
def test_members_have_types(cls):
    for member in names.members(cls).values():
        assert member.annotation, f"{cls.__name__}.{member.name} has no type"
        if inspect.isfunction(member.value):
            for name, parameter in names.parameters(member.value).items():
                assert parameter.annotation is not parameter.empty, f"{cls.__name__}.{member.name}: {name}"


@pytest.mark.parametrize("cls", OTHERS, ids=by_name)
def test_texts_tell_of_parameters(cls):
    for member in names.members(cls).values():
        if inspect.isfunction(member.value) and member.name not in ("__enter__",):
            documented_parameters(member.value, texts_of(cls, member), f"{cls.__name__}.{member.name}")
    if cls.__init__ is not object.__init__ and cls in map(CLASSES.get, names.by_subject("parameter")):
        documented_parameters(cls, cls.__doc__, cls.__name__)


# ---- the documentation ----

MEMBER_ROWS = {name: rows for name, rows in names.by_subject("of").items()}


def shown_names(rows):
    """(name, parameters or None, row) of all that rows show."""
    for row in rows:
        for span in row.spans:
            name, shown = names.told(span)
            assert name is not None, f"{row.place}: {span}"
            yield name, shown, row


def member_shown(cls, name, shown):
    """The member that a piece of code means: `worker(x)` is a call of the object."""
    found = names.members(cls)
    last = name.rpartition(".")[2]
    if last in found:
        return found[last]
    return found.get("__call__") if shown is not None else None


@pytest.mark.parametrize("cls", OTHERS, ids=by_name)
def test_every_member_is_documented(cls):
    documented = set()
    for base in cls.__mro__:  # what a base defines may be told there
        for kind in ("of", "field"):
            for name, shown, _ in shown_names(names.by_subject(kind).get(base.__name__, [])):
                member = member_shown(cls, name, shown)
                documented.add(member.name if member else name)
    missing = set(names.members(cls)) - documented - {"__str__", "__fspath__"}
    assert missing == set(), f"add them to a table 'of `{cls.__name__}`'"


@pytest.mark.parametrize("cls", OTHERS, ids=by_name)
def test_documented_members_exist_as_shown(cls):
    for name, shown, row in shown_names(MEMBER_ROWS.get(cls.__name__, [])):
        member = member_shown(cls, name, shown)
        assert member is not None, f"{row.place}: {cls.__name__} has no {name}"
        if shown is not None:
            check_signature(member.value, shown, row)
        check_type(member.annotation, row)


def check_signature(function, shown, row):
    shown = names.plain(shown)
    there = names.signature_text(function)
    if "..." in shown:  # the whole of it is in a table of parameters
        assert function.__qualname__.rpartition(".")[2] in names.by_subject("parameter") or (
            function.__qualname__ in names.by_subject("parameter")
        ), f"{row.place}: {shown}"
        return
    assert shown == there, f"{row.place}"


def check_type(annotation, row):
    told = row.cell("type")
    if told is not None:
        assert [names.plain(span) for span in names.spans_of(told.replace("\\|", "|"))] == [annotation], row.place


def test_documented_classes_exist():
    assert set(MEMBER_ROWS) <= set(CLASSES)
    assert set(names.by_subject("field")) <= set(CLASSES)


@pytest.mark.parametrize("subject", names.by_subject("parameter"))
def test_tables_of_parameters(subject):
    rows = names.by_subject("parameter")[subject]
    there = names.parameters(resolved(subject))
    documented = [name for name, _, _ in shown_names(rows)]
    assert documented == list(there)
    for name, _, row in shown_names(rows):
        check_type(names._annotation(there[name].annotation), row)
        check_default(names.default_text(there[name]), row)


def check_default(default, row):
    told = row.cell("default")
    if told is not None:
        told = names.plain(told.replace("`", ""))
        assert told == default or float(told) == float(default), row.place


@pytest.mark.parametrize("name", names.by_subject("field"))
def test_tables_of_fields(name):
    there = names.members(CLASSES[name])
    for field, _, row in shown_names(names.by_subject("field")[name]):
        check_type(there[field].annotation, row)
        default = names.plain(there[field].default or "")
        if not default.startswith("field("):  # made anew for each object
            check_default(default, row)


def resolved(dotted):
    """What a name of the documentation means: from the package, or a function or class by its last name."""
    for full, value in {**FUNCTIONS, **names.offered()}.items():
        if full == dotted or full.endswith("." + dotted):
            return value
    owner, _, last = dotted.rpartition(".")
    if owner in CLASSES:
        return names.members(CLASSES[owner])[last].value
    return CLASSES[dotted]


def test_every_function_is_documented():
    rows = [row for table in names.tables() if table.kind == "function" for row in table.rows]
    documented = set(map(resolved, names.by_subject("parameter")))
    for name, shown, row in shown_names(rows):
        function = resolved(name)
        documented.add(function)
        check_signature(function, shown, row)
        check_type(names._annotation(inspect.signature(function).return_annotation), row)
    missing = [name for name, function in FUNCTIONS.items() if function not in documented]
    assert missing == [], "add them to a table of functions or of parameters"


TEXT = "\n".join((names.DOCS / page).read_text() for page in names.PAGES)
CODE = set(re.findall(r"\w+", " ".join(names.spans_of(re.sub(r"(?ms)^```.*?^```", "", TEXT)))))


@pytest.mark.parametrize("cls", [*ENUMS, *ERRORS], ids=by_name)
def test_words_are_documented(cls):
    assert cls.__name__ in CODE
    if issubclass(cls, enum.Enum):
        assert {member for member in cls.__members__} - CODE == set()


def test_what_looks_like_a_call_exists():
    """`name(...)` anywhere in the text of the pages is something of the package, of Python, or declared in a C header."""
    root = Path(__file__).resolve().parents[2]
    known = {name for cls in CLASSES.values() for name in names.members(cls)} | set(CLASSES)
    known |= {full.rpartition(".")[2] for full in names.offered()} | set(dir(pl)) | set(dir(pld)) | set(dir(builtins))
    known |= set(re.findall(r"\b(pypto_\w+|pld_\w+)\(", " ".join(h.read_text() for h in root.glob("include/pypto/*.h"))))
    known |= {"share_memory_", "mmap", "memmap", "monotonic_ns", "_exit", "exit", "fspath", "prefetch", "_set_thread_log_level"}
    known |= {"_clear_thread_log_level", "_tensor_from_continuous", "replace", "fields", "asdict", "fork"}
    prose = re.sub(r"(?ms)^```.*?^```", "", TEXT)
    called = {found for span in names.spans_of(prose) for found in re.findall(r"(?:^|[\s.])(\w+)\(", span)}
    aliases = {"worker", "compiled", "function", "f", "s", "handle", "kernel", "join"}  # objects of the page
    assert called - known - aliases == set()


# ---- the stub of the extension ----


def stub_members(node):
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef):
            yield inner.name
        elif isinstance(inner, ast.AnnAssign):
            yield inner.target.id


def test_the_stub_of_the_extension_agrees_with_it():
    path = Path(pypto.__file__).parent / "_core.pyi"
    nodes = {n.name: n for n in ast.parse(path.read_text()).body if hasattr(n, "name")}
    assert set(nodes) == {name for name in dir(_core) if not name.startswith("_")}
    for name, node in nodes.items():
        if isinstance(node, ast.ClassDef):
            there = {m for m in dir(getattr(_core, name)) if not m.startswith("_")}
            assert {m for m in stub_members(node) if not m.startswith("_")} == there, name


def test_modules_offer_what_they_have():
    for module in names.host_modules():
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.{name}"
    assert importlib.import_module("pypto.runtime.runner").__all__
