"""numpy's arrays and numbers, which cross the border whether or not numpy is loaded on either side.

    np.array([[1, 2], [3, 4]])   {"$": "ndarray", "dtype": "int64", "shape": [2, 2], "v": [1, 2, 3, 4]}
    np.float32(0.5)              {"$": "scalar", "dtype": "float32", "v": 0.5}

Where numpy is not at hand they arrive as `Array` and as a plain number. Arrays of objects, of dates and of records do
not cross.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .stand_ins import Array, Undecodable

_SIZED = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64), "complex": (64, 128)}
ARRAY_TYPES = frozenset({"bool", "str", *(f"{kind}{bits}" for kind, sizes in _SIZED.items() for bits in sizes)})

MAX_EMPTY = 1_000_000
"""How many lists an array without items may hold. Stops a shape such as (10**12, 0), which takes a few bytes to say."""

MAX_LISTS = 1_000_000
"""How many lists an array may become. Stops a shape such as (10**6, 1, 1, 1), of which each axis makes a million."""

MAX_AXES = 32
"""numpy has had no more for most of its time. Stops shapes of a million ones, which are quadratic to unfold."""


def encode_numpy(encoder: Any, value: Any, numpy: Any, depth: int) -> Any:
    """Return the JSON of an array or a number of numpy."""
    name = "str" if value.dtype.kind == "U" else value.dtype.name
    if name not in ARRAY_TYPES:
        return encoder.encode_foreign(value, depth)
    if isinstance(value, numpy.generic):
        return {"$": "scalar", "dtype": name, "v": encoder.encode_part(value.item(), depth + 1)}
    encoder.spend(4 * value.size)
    flat = numpy.ndarray.tolist(numpy.ndarray.ravel(value))
    return {"$": "ndarray", "dtype": name, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


def encode_array(encoder: Any, value: Array, depth: int) -> Any:
    """Return the JSON of an array that stands for one of numpy's."""
    encoder.spend(4 * math.prod(value.shape))
    flat = [value.elements]
    for _ in value.shape:
        flat = list(itertools.chain.from_iterable(flat))
    return {"$": "ndarray", "dtype": value.dtype, "shape": list(value.shape), "v": encoder.encode_items(flat, depth)}


def decode_array(decoder: Any, data: dict[str, Any], depth: int) -> Any:
    """Return numpy's array, or an `Array` in its place. Raises `Undecodable`."""
    dtype, shape, flat = data["dtype"], data["shape"], decoder.decode_items(data["v"], depth)
    longest = max(MAX_EMPTY, len(flat))
    known = dtype in ARRAY_TYPES and len(shape) <= MAX_AXES
    if not known or not all(type(size) is int and 0 <= size <= longest for size in shape):
        raise Undecodable("an array of an unknown kind")
    if math.prod(shape) != len(flat) or math.prod(filter(None, shape)) > max(MAX_EMPTY, len(flat)):
        raise Undecodable(f"{len(flat)} items do not make an array of this shape")
    if sum(math.prod(shape[:axis]) for axis in range(len(shape))) > MAX_LISTS:
        raise Undecodable("an array of too many lists")
    if (numpy := decoder.numpy_module()) is not None:
        return numpy.array(flat, dtype=dtype).reshape(shape)
    return Array(dtype, tuple(shape), _nest(flat, shape))


def decode_scalar(decoder: Any, data: dict[str, Any], depth: int) -> Any:
    """Return numpy's number, or a plain one in its place. Raises `Undecodable`."""
    item = decoder.decode_part(data["v"], depth + 1)
    if data["dtype"] not in ARRAY_TYPES or type(item) not in (bool, int, float, complex, str):
        raise Undecodable("a number of an unknown kind")
    numpy = decoder.numpy_module()
    return item if numpy is None else numpy.dtype(data["dtype"]).type(item)


def _nest(flat: list[Any], shape: Sequence[int]) -> Any:
    """Return the items as nested lists; the item itself where shape is ()."""
    if not shape:
        return flat[0]
    level = flat
    for axis in range(len(shape) - 1, 0, -1):
        size = shape[axis]
        level = [level[index * size : (index + 1) * size] for index in range(math.prod(shape[:axis]))]
    return level
