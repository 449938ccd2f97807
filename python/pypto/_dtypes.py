"""Element types: the class DataType and its instances, made from the table of <pypto/types.h>."""

from __future__ import annotations

from . import _core


class DataType:
    """An element type, such as `pl.FP32`. There is one object per type; compare with `==` or `is`.

    `str()` gives the lower-case name ("fp32", "int32"; BF16 is "bfloat16").
    """

    __slots__ = ("name", "_text", "_bits")
    __pypto_kind__ = "path"
    __pypto_type_path__ = "pl.DataType"

    def __init__(self, name: str, text: str, bits: int) -> None:
        self.name = name
        self._text = text
        self._bits = bits

    def get_byte(self) -> int:
        """Bytes of one element in memory."""
        return (self._bits + 7) // 8

    def get_bit(self) -> int:
        """Bits that one element needs: 1 for BOOL."""
        return self._bits

    @property
    def __pypto_path__(self) -> str:
        return "pl." + self.name

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "pl." + self.name

    def __reduce__(self) -> str:
        return self.name  # pickle and copy find the one object in this module


DTYPES: dict[str, DataType] = {
    name: DataType(name, text, 1 if name == "BOOL" else bits)
    for name, text, bits, _ in _core.dtypes()
}
globals().update(DTYPES)
