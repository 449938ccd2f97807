"""The types that annotations are made of: `pl.Tensor[[1, 256], pl.FP32]`, `pl.Out[...]`.

Python evaluates them when a function is defined; the compiler reads them from the source instead.
So they accept whatever stands in the brackets, keep it, and judge nothing. Only of an annotation that
the script has given a name, `T = pl.Tensor[...]`, the compiler reads what is kept here.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs more to import than all of this package
if TYPE_CHECKING:
    from typing import Any


class Annotation:
    """A subscripted type: `form` is the class before the brackets, `args` what stood in them."""

    __slots__ = ("form", "args")
    __pypto_kind__ = "type"

    def __init__(self, form: type, args: tuple[Any, ...]) -> None:
        self.form = form
        self.args = args

    def __repr__(self) -> str:
        return f"{self.form!r}[{', '.join(map(repr, self.args))}]"


class _Form(type):
    __pypto_type_path__: str

    def __getitem__(cls, args: Any) -> Annotation:
        return Annotation(cls, args if isinstance(args, tuple) else (args,))

    def __call__(cls, *args: Any) -> Annotation:
        return Annotation(cls, args)

    def __repr__(cls) -> str:
        return cls.__pypto_type_path__


class Tensor(metaclass=_Form):
    """`pl.Tensor[[d0, d1, ...], dtype]`: memory that the caller passes, row-major.

    A dimension is an int, a constant, a `pl.dynamic`, or arithmetic on them.
    """

    __pypto_type_path__ = "pl.Tensor"


class Tile(metaclass=_Form):
    """`pl.Tile[[d0, d1, ...], dtype]`: a block in a kernel's private memory."""

    __pypto_type_path__ = "pl.Tile"


class Scalar(metaclass=_Form):
    """`pl.Scalar[dtype]`: one number."""

    __pypto_type_path__ = "pl.Scalar"


class TaskId(metaclass=_Form):
    """`pl.TaskId`: the id of a task, as `pl.Scalar[pl.TASK_ID]`."""

    __pypto_type_path__ = "pl.TaskId"


class Tuple(metaclass=_Form):
    """`pl.Tuple[T1, T2]`: several results; only after `->`."""

    __pypto_type_path__ = "pl.Tuple"


class Array(metaclass=_Form):
    """`pl.Array[n, dtype]`: a small array of scalars, local to its function."""

    __pypto_type_path__ = "pl.Array"


class Ptr(metaclass=_Form):
    """Raw memory: what `pld.alloc_window_buffer` gives."""

    __pypto_type_path__ = "pl.Ptr"


class _View:
    """What stands in an annotation behind shape and element type."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs


class TensorView(_View):
    """How a tensor lies in memory. All tensors are row-major."""

    __pypto_type_path__ = "pl.TensorView"


class TileView(_View):
    """How a tile lies in scratch memory: the compiler's business."""

    __pypto_type_path__ = "pl.TileView"


class MemRef(_View):
    """Where a value lies in memory: the compiler's business."""

    __pypto_type_path__ = "pl.MemRef"


class Out(metaclass=_Form):
    """`pl.Out[T]`: the function writes this tensor; what it does not write stays as it was."""

    __pypto_type_path__ = "pl.Out"


class InOut(metaclass=_Form):
    """`pl.InOut[T]`: the function reads and writes this tensor."""

    __pypto_type_path__ = "pl.InOut"


class DistributedTensor(metaclass=_Form):
    """`pld.DistributedTensor[[d0, ...], dtype]`: this rank's slice of a window. The slices of its
    peers are reached through `pld` operations."""

    __pypto_type_path__ = "pld.DistributedTensor"


class CommCtx(metaclass=_Form):
    """The communication domain that `pld.get_comm_ctx` returns."""

    __pypto_type_path__ = "pld.CommCtx"
