"""What the decorators of _decorators.py turn a function into.

Decorating only records the function. Its source is read at the first call or `compile()` that needs
it, by the compiler, which asks this object for it; see the protocol below.
"""

from __future__ import annotations

import sys

from . import _core, _logging, _source
from ._misplaced import refuse_misplaced
from .errors import Error, TypeError as PyptoTypeError

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any, Callable

    from .ir import CompiledProgram, DistributedCompiledProgram
    from .runtime import RunConfig

# Planes: the numbers of pld_plane.
_HOST, _CHIP, _CORE = 0, 1, 2

_NO_EXTERN = (
    "a hand-written kernel (@pl.jit.extern) is for the hardware's tool-chain, which is not here; "
    "write it as a @pl.jit.incore function"
)
_INLINED = frozenset({"@pl.jit.inline", "@pl.jit.opaque"})

_FUNCTION, _MODULE = type(lambda: None), type(sys)
_SIMPLE = (bool, int, float, str, list, tuple, type, _MODULE, type(None))
_NO_ARGUMENTS = (str, bytes, complex, list, tuple, dict, set, type(None), type(...), type(NotImplemented))
_VARIADIC = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS


class _Unusable:
    """Stands in a snapshot for a value that DSL code cannot use, so as not to keep it alive."""

    __slots__ = ("type_name",)
    __pypto_kind__ = "unusable"

    def __init__(self, value: Any) -> None:
        self.type_name = type(value).__name__


def _is_kept(value: Any) -> bool:
    """Whether DSL code can use a value, or one of its members."""
    if isinstance(value, _SIMPLE):
        return True
    kind = type(value)
    return (
        hasattr(kind, "__pypto_kind__")
        or hasattr(kind, "__dataclass_fields__")
        or kind.__name__ == "SimpleNamespace"
        or kind.__module__ == "numpy"
        and not hasattr(kind, "__setitem__")
    )


def _snapshot(frame: Any, names: Any = None) -> dict[str, Any] | None:
    """The local names of the frame that defines a function; None at module level. Annotations may
    use them although the function's closure does not hold them. `names` are others to take."""
    if names is None:
        names = frame.f_locals
        if names is frame.f_globals:
            return None
    return {
        name: value if _is_kept(value) else _Unusable(value) for name, value in list(names.items())
    }


class JITFunction:
    """A DSL function. A `@pl.jit.host` one can be called: `f(*tensors, config=RunConfig(...))`
    compiles it once per combination of element types and fixed shapes, runs it on the devices of
    `config.distributed_config`, and returns when every rank is done. So can a `@pl.jit` one, which
    runs on one device, `config.device_id`.

    `compile(...)` does the same without running, and returns what a later call would run. Any thread may call it.

    is_extern   whether it is declared with `@pl.jit.extern`: then no program can use it here
    """

    # What the extension relies on: _function, _plane, _scopes, is_extern, identity(). _source needs
    # _stamp.
    __pypto_kind__ = "function"

    def __init__(
        self, function: FunctionType, plane: int, scope: dict[str, Any] | None, name: str
    ) -> None:
        self._function = function
        self._plane = plane
        self._stamp = _source.stamp_of(function.__code__.co_filename)
        self._decorator = name
        self._inlined = name in _INLINED
        self.is_extern: bool = name == "@pl.jit.extern"
        self._no_auto_scope = False
        # Where names are looked up, in this order: closure cells, then dictionaries.
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self._scopes = (cells, scope or {}, function.__globals__, function.__builtins__)
        self._identity: str | None = None
        self._bind: Callable[..., tuple[Any, ...]] | None = None
        self._programs: dict[str, list[_core.Program]] = {}  # by platform
        self._latest: _core.Program | None = None
        self._compiled: dict[Any, CompiledProgram | DistributedCompiledProgram] = {}
        self._in_cache: dict[Any, CompiledProgram | DistributedCompiledProgram] = {}  # of calls
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __reduce__(self) -> str:
        """Pickled by its name, and its own copy, as any function is."""
        return self.__qualname__

    def __call__(self, *args: Any, config: "RunConfig | None" = None, **kwargs: Any) -> Any:
        """Compiles what is not compiled yet and runs it; the results are in the output arguments.

        args, and arguments by name, are those of the function; config is a RunConfig. Returns None, or the tensors
        that the function makes and returns: one, or a tuple.

        Blocks until every rank is done. Raises pypto.Error of the kind that fits: a parser error
        for code that cannot be compiled, TypeError or ValueError for arguments that do not fit,
        DeviceError and what derives from it for a failure while running.
        """
        try:
            self._require_entry()
            platform, device_ids = _settings_of(config, self.__name__)
            if config is not None:
                _check_compile_options(config, "compile()")
                if getattr(config, "codegen_only", False):
                    _warn_of_codegen_only(self.__name__)
            given = (*args, *kwargs.values())
            worker = None
            if self._plane == _HOST:
                refuse_residents(self.__name__, given)
            distributed = getattr(config, "distributed_config", None)
            one_device = self._plane == _CHIP and distributed is None
            if one_device:
                device_ids = [getattr(config, "device_id", 0)]
                worker = active_chip_worker(platform, device_ids[0])
            bound = self._arguments(args, kwargs)
            if worker is None and bound is not None:
                refuse_residents(self.__name__, bound, self._check_kinds)
            program = self._program(bound, platform)
            made: list[Any] = []
            if program.parameter_count > len(bound or ()):
                from . import _results

                made = _results.make(program, bound or ())
                bound = (*(bound or ()), *made)
            records = config is not None and config.any_dfx_enabled()
            runner = _runner(one_device, records)
            if runner is not None:
                compiled: Any
                if records:
                    compiled = self.compile(*args, config=config, **kwargs)
                else:
                    compiled = self._called(program, platform, distributed)
                runner(compiled._only("a call") if one_device else compiled, bound, config)
            elif worker is not None:
                names = self._function.__code__.co_varnames
                if made:
                    names = tuple(row[0] for row in program.parameters)
                worker._run_native(program, bound, _lint_of(config), None, names.__getitem__)
            else:
                subs = sub_workers_of(program, getattr(distributed, "num_sub_workers", 0))
                title = _title(self.__name__)
                program.run(bound, device_ids, title, _lint_of(config), None, subs)
            return None if not made else made[0] if len(made) == 1 else tuple(made)
        except Error as error:
            # The traceback begins at the user's call; a bare raise does not add this line again.
            error.__traceback__ = None
            raise

    def compile(
        self, *args: Any, config: "RunConfig | None" = None, **kwargs: Any
    ) -> "CompiledProgram | DistributedCompiledProgram":
        """Compiles for sample arguments, or, without tensors, for what the annotations say. Each
        scalar then needs a number, or pl.RUNTIME to stay a parameter. args, and arguments by name, are those of the
        function; config is a RunConfig.

        Returns the same object for the same program and configuration. That of a `@pl.jit` function
        is a `CompiledProgram`, unless `config` has a `distributed_config`.
        """
        from .ir import DistributedConfig, artifact
        from .ir.compiling import assembled, described
        from .ir.options import dump_level

        try:
            self._require_entry()
            platform, _ = _settings_of(config, self.__name__)
            context = _check_compile_options(config, "compile()")
            bound = self._sample(args, kwargs)
            dumps = dump_level(getattr(config, "dump_passes", False))
            program = self._program(bound, platform, bool(dumps))
        except Error as error:
            error.__traceback__ = None
            raise
        distributed = getattr(config, "distributed_config", None)
        if distributed is None and self._plane == _HOST:
            distributed = DistributedConfig()
        folder = getattr(config, "save_kernels_dir", None)
        kind = getattr(context, "runtime", None)
        key = (program, platform, repr(distributed), folder, kind, dumps)
        if key not in self._compiled:
            sources = artifact.Sources.of(program)
            if dumps:
                names = self._function.__code__.co_varnames
                stages = program.take_stages() or _core.lower(self, names, bound, platform, True)[3]
                sources.dump(stages, dumps)
            sidecar = described(sources, self, platform, distributed, bound)
            profile = getattr(config, "compile_profiling", False)
            threads = distributed.aicpu_thread_num if distributed is not None else 0
            runtime = kind.value if kind is not None else artifact.DEFAULT_RUNTIME
            settings = artifact.Settings(runtime, threads, profile)
            programs = {self.__name__: (sources, sidecar)}
            where = artifact.write(folder, self.__name__, programs, settings)
            self._compiled[key] = assembled(programs, where, settings, None)
        return self._compiled[key]

    def _called(self, program: _core.Program, platform: str, distributed: Any) -> Any:
        """What a call hands to its runner: the program as `compile` gives it, but without an output directory."""
        key: Any = (program, platform)
        if distributed is not None:
            d = distributed
            key = (*key, d.num_sub_workers, d.runtime, d.aicpu_thread_num, *d.device_ids)
        known = self._in_cache.get(key)
        if known is None:
            from .ir import DistributedConfig
            from .ir.compiling import in_cache

            if distributed is None and self._plane == _HOST:
                distributed = DistributedConfig()
            known = self._in_cache[key] = in_cache(program, self, platform, distributed)
        return known

    def lower(self, *args: Any, config: "RunConfig | None" = None, **kwargs: Any) -> Any:
        """The `ir.Program` that `compile` with the same args and config would make native code from. Its
        text is the IR behind all passes. Touches no cache."""
        from ._program import Program

        self._require_entry()
        platform, _ = _settings_of(config, self.__name__)
        _check_compile_options(config, "lower()")
        names = self._function.__code__.co_varnames
        _, text, _, _ = _core.lower(self, names, self._sample(args, kwargs), platform)
        return Program._of_text(self.__name__, text)

    @property
    def stats(self) -> dict[str, Any]:
        """How the program of the last call or compile came about: whether either half was found in the cache (`front_hit`,
        `back_hit`), and how many nanoseconds it took (`front_ns`, `back_ns`); {} before the first."""
        return self._latest.stats if self._latest is not None else {}

    def identity(self) -> str:
        """A text that changes whenever the source text or the place of the function does: what caches go by."""
        if self._identity is None:
            source = _source.load(self)
            if source is None:
                return f"{self.__qualname__} without source"
            filename = source.filename.encode("utf-8", "backslashreplace").decode()
            place = f"{filename}:{self._function.__code__.co_firstlineno}"
            kind = self._decorator
            self._identity = f"{self.__qualname__} {kind} {place} {source.digest}"
        return self._identity

    def _program(
        self, bound: tuple[Any, ...] | None, platform: str, stages: bool = False
    ) -> _core.Program:
        names = self._function.__code__.co_varnames
        known = self._programs.setdefault(platform, [])
        self._latest = _compiled(self, known, names, bound, platform, stages)
        return self._latest

    def _check_kinds(self, bound: tuple[Any, ...]) -> None:
        """Raises for what is neither a tensor nor a number. What the parameters are is not known before the compile."""
        _core.check_kinds(self._function.__code__.co_varnames, bound, self.__name__)

    def _require_entry(self) -> None:
        if self._inlined:
            raise PyptoTypeError(
                f"{self.__name__} is inlined ({self._decorator}): it is part of the functions that "
                "call it; call the @pl.jit or @pl.jit.host function"
            )
        if self.is_extern:
            raise PyptoTypeError(f"{self.__name__}: {_NO_EXTERN}")
        if self._plane == _CORE:
            raise PyptoTypeError(
                f"{self.__name__} is an in-core kernel (@pl.jit.incore): it runs on a device, "
                "inside a per-device wrapper (@pl.jit); call the wrapper, or the @pl.jit.host "
                "function that dispatches it"
            )

    def _sample(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The arguments of a compile in declared order. What is not given is `...`, which is only
        possible without sample tensors; NotImplemented stands for pl.RUNTIME. The front end knows
        which parameters are tensors, and judges."""
        from .language import RUNTIME
        from .runtime._numbers import plain_number

        code = self._function.__code__
        if code.co_flags & _VARIADIC or code.co_kwonlyargcount:
            return None
        names = code.co_varnames[: code.co_argcount]
        if len(args) > len(names) or kwargs.keys() - set(names):
            self._arguments(args, kwargs)  # which words the error
        for name, value in [*zip(code.co_varnames, args), *kwargs.items()]:
            if isinstance(value, _NO_ARGUMENTS):
                raise PyptoTypeError(
                    f"{self.__name__}(): '{name}' must be a tensor, a number or pl.RUNTIME, "
                    f"not {type(value).__name__}"
                )
        given = [*args, *kwargs.values()]
        if any(plain_number(v) is None and v is not RUNTIME for v in given):
            for name, value in [*zip(code.co_varnames, args), *kwargs.items()]:
                if value is RUNTIME:
                    raise PyptoTypeError(
                        f"{self.__name__}(): '{name}' received pl.RUNTIME, which is for compiling "
                        "without sample tensors; pass a number"
                    )
            return self._arguments(args, kwargs)
        values: dict[str, Any] = dict.fromkeys(names, ...)
        defaults = self._function.__defaults__ or ()
        values.update(zip(names[len(names) - len(defaults) :], defaults))
        values.update(zip(names, args))
        values.update(kwargs)
        return tuple(NotImplemented if v is RUNTIME else v for v in values.values())

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The arguments in declared order. Python itself binds them, and words its own errors. None
        for a function whose parameters the compiler will refuse."""
        if self._bind is None:
            code = self._function.__code__
            if code.co_flags & _VARIADIC or code.co_kwonlyargcount:
                return None
            names = ", ".join(code.co_varnames[: code.co_argcount])
            scope: dict[str, Any] = {}
            values = f"({names},)" if names else "()"
            exec(f"def bind({names}): return {values}", scope)
            bind = scope["bind"]
            bind.__name__ = bind.__qualname__ = self.__name__
            bind.__defaults__ = self._function.__defaults__
            self._bind = bind
        try:
            return self._bind(*args, **kwargs)
        except TypeError as error:
            refuse_misplaced(str(error), args)
            raise

    def __repr__(self) -> str:
        return f"<{self._decorator} function {self.__qualname__}>"


def _compiled(
    function: Any,
    known: list[_core.Program],
    names: tuple[str, ...],
    bound: tuple[Any, ...] | None,
    platform: str,
    stages: bool = False,
) -> _core.Program:
    """The program for such arguments, of those that are known or a new one, which is added to them. With `stages` a
    new one has the IR behind each pass to give away, unless the cache had it."""
    count = len(known)
    program = _core.compile(function, known, names, bound, platform, stages)
    if _logging.tells_compiles:
        _logging.tell_compiled(program, platform, len(known) == count)
    return program


def _settings_of(config: Any, name: str) -> tuple[str, list[int]]:
    """Platform and device ids of a call."""
    if config is None:
        return "a2a3sim", [0]
    module = sys.modules.get("pypto.runtime.run_config")  # who has one has loaded it
    if module is None or not isinstance(config, module.RunConfig):
        what = f"the class {config.__name__}" if isinstance(config, type) else type(config).__name__
        raise PyptoTypeError(f"{name}(): config must be a pypto.runtime.RunConfig, not {what}")
    distributed = config.distributed_config
    return config.platform, [0] if distributed is None else distributed.device_ids


def _check_compile_options(config: Any, operation: str) -> Any:
    """Refuses what an active PassContext sets already; returns that. Nobody has one whose module is not loaded."""
    module = sys.modules.get("pypto.ir.options")
    if module is None:
        return None
    return module.refuse_under_context(
        operation,
        diagnostic_phase=getattr(config, "diagnostic_phase", None),
        memory_planner=getattr(config, "memory_planner", None),
    )


def _warn_of_codegen_only(name: str) -> None:
    import warnings

    warnings.warn(
        f"{name} is called, and runs: codegen_only=True has no effect; {name}.compile() only compiles",
        stacklevel=3,
    )


def _runner(one_device: bool, records: bool) -> Any:
    """What calls go through: `execute_compiled`, `execute_distributed`, which others may have replaced. None: the call does itself
    what they would, because nobody can have replaced what is not loaded; a script that only calls need not load it."""
    name = "runner" if one_device else "distributed_runner"
    module = sys.modules.get("pypto.runtime." + name)
    if module is None and records:
        from importlib import import_module

        module = import_module("pypto.runtime." + name)
    return module and (module.execute_compiled if one_device else module.execute_distributed)


def refuse_residents(
    name: str, arguments: tuple[Any, ...], check_kinds: Callable[[tuple[Any, ...]], None] | None = None
) -> None:
    """Refuses tensors that live in a worker, for calls that have none. Nobody has any whose module is not loaded.

    check_kinds   raises for arguments of wrong kinds, of which the caller learns first; None in a call of a host function,
                  where such a tensor is of a wrong kind itself
    """
    module = sys.modules.get("pypto.runtime.device_tensor")
    if module is None:
        return
    if check_kinds is None:
        module.refuse_in_one_shot(name, arguments)
    else:
        module.refuse_without_worker(name, arguments, check_kinds)


def active_chip_worker(platform: str, device_id: int) -> Any:
    """The ChipWorker that a call on one device is made in, or None. There is none whose module is not loaded."""
    module = sys.modules.get("pypto.runtime.chip_worker")
    if module is None:
        return None
    return module.ChipWorker.current(platform=platform, device_id=device_id)


# RunConfig.lint as the library knows it: pypto_lint of worker.h.
LINT_LEVELS = {"off": 0, "warn": 1, "error": 2}


def _lint_of(config: Any) -> int:
    """The level of a call's lint, and in the bits behind it what is not looked for."""
    level = LINT_LEVELS[getattr(config, "lint", "warn")]
    disabled = getattr(config, "disabled_diagnostics", None)
    if not disabled:
        return level
    from .ir.options import bits_of

    return level | bits_of(disabled) << 2


def sub_workers_of(program: Any, wanted: int) -> Any:
    """What a one-shot call of a native program binds for its SubWorkers; None as a rule."""
    if not program.sub_workers:
        return None
    from .runtime.sub_workers import bind

    return bind([program], wanted)


def _title(name: str) -> str:
    """What the command lines of the workers show."""
    script = sys.argv[0].rpartition("/")[2] if sys.argv and sys.argv[0] else "python"
    return f"{script} {name}".encode("utf-8", "replace").decode()
