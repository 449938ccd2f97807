"""What the host side offers, and what its documentation says that it does: for test_reference.py.

The package is looked at as it is installed: names by `__all__`, members and signatures by `inspect`, fields and their types by
the source, because attributes that a constructor makes are nowhere else. Of the documentation, tables count
whose first header cell says what they are about:

    of `Worker`            members of a class, in the same form as they are used: `closed`, `run(compiled, *args)`, `w[i]`
    field of `Config`      the fields of a configuration, all of them
    parameter of `f`       the parameters of a function or constructor, all of them in order
    function               functions, by the name they are imported by

If a table has columns `type` and `default`, these are compared, too.
"""

import ast
import enum
import functools
import importlib
import inspect
import pkgutil
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pypto

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["runtime.md", "configuration.md", "artifacts.md", "running.md"]
HOST_PACKAGES = ("pypto", "pypto.ir", "pypto.runtime", "pypto.backend", "pypto.errors", "pypto.pypto_core")

# Special methods that have a form of their own in the documentation.
SPECIAL = {"__call__", "__getitem__", "__len__", "__enter__", "__str__", "__fspath__"}


def host_modules():
    """Every module of the host side that says what it offers."""
    for name in HOST_PACKAGES:
        module = importlib.import_module(name)
        yield module
        for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
            inner = f"{name}.{found.name}"
            if name != "pypto" and not found.name.startswith("_"):
                yield importlib.import_module(inner)


def offered():
    """{name to import it by: object} of all public names."""
    found = {}
    for module in host_modules():
        for name in getattr(module, "__all__", ()):
            if not name.startswith("_"):
                found[f"{module.__name__}.{name}"] = getattr(module, name)
    return found


def public_classes():
    """Each public class once, and those of the package whose objects the public ones give out."""
    from pypto._jit import JITFunction
    from pypto.errors import Diagnostic
    from pypto.ir.compiled_program import Orchestration
    from pypto.runtime.runtime_base import Allocation

    classes = [value for value in offered().values() if inspect.isclass(value)]
    classes += [Allocation, Diagnostic, JITFunction, Orchestration]
    return [c for c in dict.fromkeys(classes) if c.__module__.startswith("pypto") and ".language" not in c.__module__]


def public_functions():
    """{name: function} of all public functions, each once."""
    found = {}
    for name, value in offered().items():
        if inspect.isfunction(value) and value not in found.values():
            found[name] = value
    return found


@dataclass
class Member:
    name: str
    value: object  # what the class has; None for a field
    owner: type
    annotation: str | None = None  # of a field, or what a property or method returns
    default: str | None = None


def plain(text):
    """A type or default in the form in which all of them are compared."""
    return text.replace("\\|", "|").replace("'", '"').replace('"', "").replace("_Any", "Any").strip()


def _annotation(value):
    if value is inspect.Signature.empty:
        return None
    return plain(value if isinstance(value, str) else getattr(value, "__name__", str(value)))


@functools.cache
def _fields(cls):
    """The attributes that a class's source declares, in its body or its constructor."""
    return list(_declared(cls))


def _declared(cls):
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    slots = [s.value for s in node.body if isinstance(s, ast.Assign) and s.targets[0].id == "__slots__"]
    names = {e.value for s in slots for e in s.elts}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            default = None if statement.value is None else ast.unparse(statement.value)
            yield statement.target.id, plain(ast.unparse(statement.annotation)), default
            names.discard(statement.target.id)
        if not (isinstance(statement, ast.FunctionDef) and statement.name == "__init__"):
            continue
        types = {a.arg: a.annotation for a in [*statement.args.args, *statement.args.kwonlyargs]}
        for inner in ast.walk(statement):
            target = getattr(inner, "target", None) or (getattr(inner, "targets", None) or [None])[0]
            if not isinstance(target, ast.Attribute) or getattr(target.value, "id", "") != "self":
                continue
            annotation = getattr(inner, "annotation", None)
            if annotation is None and isinstance(inner.value, ast.Name):
                annotation = types.get(inner.value.id)  # the parameter itself
            yield target.attr, annotation and plain(ast.unparse(annotation)), None
            names.discard(target.attr)
    for name in names:
        yield name, None, None


def is_shown(name):
    return not name.startswith("_") or name in SPECIAL


def members(cls):
    """{name: Member} of what a class offers, inherited or not."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.partition(".")[0] != "pypto":
            continue
        if not issubclass(base, enum.Enum):
            for name, annotation, default in _fields(base):
                if is_shown(name) and not (name in found and annotation is None):
                    found[name] = Member(name, None, base, annotation, default)
        for name, value in vars(base).items():
            if not is_shown(name) or isinstance(value, enum.Enum):
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, property):
                returned = inspect.signature(value.fget).return_annotation
                found[name] = Member(name, value, base, _annotation(returned))
            elif inspect.isfunction(value):
                returned = inspect.signature(value).return_annotation
                found[name] = Member(name, value, base, _annotation(returned))
    return found


def parameters(function):
    """{name: inspect.Parameter} without self; of a class, of its constructor."""
    target = function.__init__ if inspect.isclass(function) else function
    return {n: p for n, p in inspect.signature(target).parameters.items() if n not in ("self", "cls")}


def default_text(parameter):
    if parameter.default is parameter.empty:
        return ""
    value = parameter.default
    return value.name if isinstance(value, enum.Enum) else plain(repr(value))


def signature_text(function):
    """(a, *, b=1): names and defaults, as the documentation shows them."""
    kept = [p.replace(annotation=p.empty) for p in parameters(function).values()]
    return plain(str(inspect.Signature(kept)))


# ---- the documentation ----


@dataclass
class Row:
    page: str
    line: int
    cells: list[str]
    spans: list[str]  # of code, in the first cell
    columns: list[str]

    def cell(self, column):
        return self.cells[self.columns.index(column)] if column in self.columns else None

    @property
    def place(self):
        return f"docs/{self.page}:{self.line}"


@dataclass
class Table:
    kind: str  # of, field, parameter, function
    subjects: list[str]
    rows: list[Row] = field(default_factory=list)


def _cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def spans_of(text):
    return re.findall(r"`([^`]+)`", text)


@functools.cache
def tables():
    """The tables of the pages that are about names."""
    return list(_tables())


def _tables():
    for page in PAGES:
        table = None
        lines = (DOCS / page).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if not line.startswith("|"):
                if table is not None:
                    yield table
                table = None
                continue
            cells = _cells(line)
            if table is None and "".join(lines[number : number + 1]).startswith("|--"):
                columns = cells
                found = re.match(r"(of|field of|parameter of|function)\b", cells[0])
                if found is not None:
                    table = Table(found.group(1).split()[0], spans_of(cells[0]))
            elif table is not None and not line.startswith("|--"):
                table.rows.append(Row(page, number, cells, spans_of(cells[0]), columns))
        if table is not None:
            yield table


def told(span):
    """The name of the member that a piece of code shows, and its parameters if it shows some."""
    span = span.strip()
    for pattern, name in (
        (r"len\(\w+\)", "__len__"),
        (r"with \w+:?", "__enter__"),
        (r"\w+\[.*\]", "__getitem__"),
        (r"str\(\w+\)", "__str__"),
        (r"os\.fspath\(\w+\)", "__fspath__"),
    ):
        if re.fullmatch(pattern, span):
            return name, None
    found = re.fullmatch(r"([\w.]+)(\(.*\))?", span)
    if found is None:
        return None, None
    return found.group(1), found.group(2)


@functools.cache
def by_subject(kind):
    """{name: rows} of all tables of a kind."""
    found = {}
    for table in tables():
        if table.kind == kind:
            for subject in table.subjects:
                found.setdefault(subject, []).extend(table.rows)
    return found
