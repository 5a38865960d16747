"""Converts values of pandas, scipy, torch, Pillow and standard modules such as pathlib and re to JSON and back.

    pd.Series([1, 2], name="a")    {"$": "package", "of": "Series", "v": [ARRAY, INDEX, "a"]}
    pd.Timestamp("2024-01-01")     {"$": "package", "of": "Timestamp", "v": [1704067200000000, "us", null]}
    pd.DataFrame({"a": [1]})       {"$": "package", "of": "DataFrame", "v": [COLUMNS, INDEX, [ARRAY]]}
    Path("a/b")                    {"$": "package", "of": "PurePath", "v": ["PosixPath", "a/b"]}

An ARRAY is [dtype, elements], with the dtype as pandas spells it. INDEX and COLUMNS are encoded indexes of pandas. The
library's constructors build the decoded value from plain data. So no method, attribute or flag of an object of the
solution is passed on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from .value_types import Json, Opaque, Undecodable, Value

DTYPES = re.compile(
    r"object|bool|boolean|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|U?Int(8|16|32|64)|Float(32|64)"
    r"|str|string(\[\w+\])?|(datetime64|timedelta64)\[(s|ms|us|ns)(, (?!dateutil)[\w+\-:/]{1,40})?\]"
    r"|category|interval|period\[[\w-]{1,20}\]"
)
"""The dtypes of arrays that can be encoded. Extension, sparse and nested arrays cannot."""

MAX_RANGE = 10_000_000
"""Maximum length of an index that is a range. Stops an index that has few bytes as JSON and gigabytes in memory."""

_Part = Callable[[Value], Value]
"""Encodes or decodes a value inside another one."""
_TEXTS = ("str", "string")


CHANGEABLE = ("DataFrame", "Series")
"""Classes whose objects a function may change in place, visibly for its caller."""


def is_packaged(value: Value) -> bool:
    """Return whether the class of a value comes from one of these packages or is derived from one of their classes."""
    return any(above.__module__.partition(".")[0] in _ROOTS for above in type(value).__mro__)


def is_changeable(value: Value) -> bool:
    """Return whether a value is a table or a column of pandas."""
    return any(above.__name__ in CHANGEABLE and above.__module__[:6] == "pandas" for above in type(value).__mro__)


def encode_packaged(value: Value, part: _Part) -> Json | None:
    """Return the JSON of a value of a package, or None if it cannot be encoded. part: encodes the values inside it."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and (value is pandas.NaT or value is pandas.NA):
        return {"$": "package", "of": "NaT" if value is pandas.NaT else "NA", "v": []}
    for name, (module, form, _) in _KINDS.items():
        if module in sys.modules and isinstance(value, getattr(sys.modules[module], name)):
            try:
                return {"$": "package", "of": name, "v": form(value, part)}
            except (_NoForm, AttributeError, TypeError, ValueError, StopIteration):
                return None
    return None


def decode_packaged(name: Json, parts: list[Json], part: _Part, with_numpy: bool) -> Value:
    """Return the value that `encode_packaged` encoded. name, parts: the entries "of" and "v". Raises `Undecodable`."""
    module, _, make = _KINDS.get(name, ("pandas", None, None))
    if module in _OF_ARRAYS and not with_numpy:
        return Opaque(str(name)[:20])
    try:
        package: Value = import_module(module)
        return getattr(package, {"NaT": "NaT", "NA": "NA"}[name]) if make is None else make(package, part, *parts)
    except Undecodable:
        raise
    except Exception as error:  # Each package raises exceptions of its own.
        raise Undecodable(f"no {str(name)[:20]}: {str(error)[:100]}") from error


class _NoForm(Exception):
    """A dtype that cannot be encoded."""


def _array(array: Value, part: _Part) -> Json:
    """Return the JSON of the elements of a column or an index."""
    dtype = str(array.dtype)
    if dtype.startswith("interval"):
        values: Value = [_array(array.left, part), _array(array.right, part), array.closed]
        return ["interval", values]
    if not DTYPES.fullmatch(dtype):
        raise _NoForm(dtype)
    if dtype == "category":
        categories = array.categories if hasattr(array, "categories") else array.cat.categories
        codes = array.codes if hasattr(array, "codes") else array.cat.codes
        return [dtype, [codes.tolist(), part(categories), bool(array.dtype.ordered)]]
    if dtype.startswith(("datetime64", "timedelta64", "period")):
        return [dtype, array.asi8.tolist()]
    return [dtype, part(array.tolist())]


def _make_array(pandas: Value, part: _Part, dtype: Json, values: list[Json]) -> Value:
    if type(dtype) is not str or not DTYPES.fullmatch(dtype):
        raise Undecodable("an array of an unknown kind")
    if dtype == "interval":
        left, right, closed = values
        sides = [_make_array(pandas, part, *side) for side in (left, right)]
        return pandas.arrays.IntervalArray.from_arrays(*map(pandas.Index, sides), closed=closed)
    if dtype == "category":
        codes, categories, is_ordered = values
        return pandas.Categorical.from_codes(codes, part(categories), ordered=is_ordered is True)
    if dtype.startswith(("datetime64", "timedelta64", "period")):
        return _make_times(pandas, dtype, values)
    elements = part(values)
    if dtype == "object":
        return make_objects(elements)
    is_numpy = dtype[:1].islower() and not dtype.startswith((*_TEXTS, "boolean"))
    numpy = sys.modules["numpy"]
    return numpy.array(elements, dtype=dtype) if is_numpy else pandas.array(elements, dtype=dtype)


def make_objects(elements: list[Value]) -> Value:
    """Return an array of objects. Unlike `numpy.array`, it does not unpack sequences among them."""
    made = sys.modules["numpy"].empty(len(elements), dtype=object)
    for position, element in enumerate(elements):
        made[position] = element
    return made


def _make_times(pandas: Value, dtype: str, values: list[Json]) -> Value:
    numbers = sys.modules["numpy"].array(values, dtype="int64")
    if dtype.startswith("period"):
        return pandas.PeriodIndex.from_ordinals(numbers, freq=dtype[7:-1]).array
    plain, _, zone = dtype.rstrip("]").partition(", ")
    if dtype.startswith("timedelta64"):
        return pandas.TimedeltaIndex(numbers.view(dtype)).array
    made = pandas.DatetimeIndex(numbers.view(f"{plain}]"))
    return (made.tz_localize("UTC").tz_convert(zone) if zone else made).array


def _index(value: Value, part: _Part) -> Json:
    names = [part(name) for name in value.names]
    if hasattr(value, "levels"):
        return ["levels", [[part(level) for level in value.levels], [codes.tolist() for codes in value.codes]], names]
    if type(value).__name__ == "RangeIndex":
        return ["range", [value.start, value.stop, value.step], names]
    frequency = getattr(value, "freqstr", None) if "64[" in str(value.dtype) else None
    return [frequency, _array(value if hasattr(value, "asi8") else value.array, part), names]


def _make_index(pandas: Value, part: _Part, kind: Json, values: list[Json], names: list[Json]) -> Value:
    labels = list(map(part, names))
    if kind == "levels":
        return pandas.MultiIndex(levels=list(map(part, values[0])), codes=values[1], names=labels)
    if kind == "range":
        made = pandas.RangeIndex(*values)
        if len(made) > MAX_RANGE:
            raise Undecodable("a range beyond bounds")
    else:
        array = _make_array(pandas, part, *values)
        made = pandas.Index(array, dtype=array.dtype)
        if kind is not None:
            made.freq = kind
    made.names = labels
    return made


def _make_column(pandas: Value, part: _Part, array: Json, index: Value, name: Value) -> Value:
    made = _make_array(pandas, part, *array)
    return pandas.Series(made, index=index, name=name, dtype=made.dtype, copy=False)


def _make_frame(pandas: Value, part: _Part, columns: Json, index: Json, arrays: list[Json]) -> Value:
    rows = part(index)
    data = {position: _make_column(pandas, part, array, rows, None) for position, array in enumerate(arrays)}
    made = pandas.DataFrame(data, index=rows)
    made.columns = part(columns)
    return made


def _timestamp(value: Value, part: _Part) -> Json:
    zone = None if value.tz is None else str(value.tz)
    if zone is not None and not DTYPES.fullmatch(f"datetime64[ns, {zone}]"):
        raise _NoForm(zone)
    return [value._value if hasattr(value, "_value") else value.value, value.unit, zone]


def _make_timestamp(pandas: Value, part: _Part, count: Json, unit: Json, zone: Json) -> Value:
    dtype = f"datetime64[{unit}]" if zone is None else f"datetime64[{unit}, {zone}]"
    if not DTYPES.fullmatch(dtype):
        raise Undecodable("a time of an unknown kind")
    return _make_times(pandas, dtype, [count])[0]


def _records(value: Value, part: _Part) -> Json:
    kinds = {name: str(value.dtype[name]) for name in value.dtype.names}
    if not all(map(_RECORD_DTYPES.fullmatch, kinds.values())):
        raise _NoForm(str(value.dtype))
    is_by_attribute = type(value).__name__ == "recarray"
    return [list(kinds.items()), list(value.shape), is_by_attribute, part(value.ravel().tolist())]


def _make_records(numpy: Value, part: _Part, kinds: Json, shape: Json, is_by_attribute: Json, rows: Json) -> Value:
    if not all(_RECORD_DTYPES.fullmatch(kind) for _, kind in kinds):
        raise Undecodable("records of an unknown kind")
    made = numpy.array(part(rows), dtype=[tuple(each) for each in kinds]).reshape(shape)
    return made.view(numpy.recarray) if is_by_attribute is True else made


_RECORD_DTYPES = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|<U\d{1,6}|\|S\d{1,6}")
"""The dtypes of fields in records that can be encoded."""


def _sparse(value: Value, part: _Part) -> Json:
    entries = value.tocoo()
    is_array = not isinstance(value, sys.modules["scipy.sparse"].spmatrix)
    return [value.format, is_array, list(value.shape), *map(part, (entries.row, entries.col, entries.data))]


def _make_sparse(sparse: Value, part: _Part, kind: Json, is_array: Json, shape: Json, *entries: Json) -> Value:
    rows, columns, numbers = map(part, entries)
    make = sparse.coo_array if is_array is True else sparse.coo_matrix
    return make((numbers, (rows, columns)), shape=shape).asformat(kind)


def _image(value: Value, part: _Part) -> Json:
    about = [value.getpalette(), value.format, getattr(value, "filename", None), dict(value.info)]
    return [value.mode, list(value.size), *map(part, (value.tobytes(), *about))]


def _make_image(package: Value, part: _Part, mode: Json, size: Json, *about: Json) -> Value:
    pixels, palette, kind, file, info = map(part, about)
    made = package.frombytes(mode, tuple(size), pixels)
    if palette is not None:
        made.putpalette(palette)
    made.format, made.info = kind, info
    if file is not None:
        made.filename = file
    return made


def _make_tensor(torch: Value, part: _Part, array: Json, needs_gradient: Json) -> Value:
    return torch.from_numpy(sys.modules["numpy"].array(part(array))).requires_grad_(needs_gradient is True)


_PATHS = {name: name for name in ("PosixPath", "PurePosixPath", "PureWindowsPath")}


def _path(value: Value, part: _Part) -> Json:
    return [next(above.__name__ for above in type(value).__mro__ if above.__name__ in _PATHS), str(value)]


_KINDS: Mapping[Json, tuple[str, Callable[[Value, _Part], Json], Callable[..., Value]]] = {
    "DataFrame": (
        "pandas",
        lambda value, part: [
            part(value.columns),
            part(value.index),
            [_array(value.iloc[:, position].array, part) for position in range(value.shape[1])],
        ],
        _make_frame,
    ),
    "Series": (
        "pandas",
        lambda value, part: [_array(value.array, part), part(value.index), part(value.name)],
        lambda pandas, part, array, index, name: _make_column(pandas, part, array, part(index), part(name)),
    ),
    "Index": ("pandas", _index, _make_index),
    "Timestamp": ("pandas", _timestamp, _make_timestamp),
    "Timedelta": (
        "pandas",
        lambda value, part: [value._value if hasattr(value, "_value") else value.value, value.unit],
        lambda pandas, part, count, unit: _make_times(pandas, f"timedelta64[{unit}]", [count])[0],
    ),
    "Period": (
        "pandas",
        lambda value, part: [value.ordinal, value.freqstr],
        lambda pandas, part, ordinal, frequency: pandas.Period(ordinal=ordinal, freq=frequency),
    ),
    "Interval": (
        "pandas",
        lambda value, part: [part(value.left), part(value.right), value.closed],
        lambda pandas, part, left, right, closed: pandas.Interval(part(left), part(right), closed),
    ),
    "Categorical": (
        "pandas",
        lambda value, part: [_array(value, part)],
        lambda pandas, part, array: _make_array(pandas, part, *array),
    ),
    "void": ("numpy", _records, lambda numpy, *parts: _make_records(numpy, *parts)[()]),
    "ndarray": ("numpy", _records, _make_records),
    "spmatrix": ("scipy.sparse", _sparse, _make_sparse),
    "sparray": ("scipy.sparse", _sparse, _make_sparse),
    "Image": ("PIL.Image", _image, _make_image),
    "Tensor": (
        "torch",
        lambda value, part: [part(value.detach().cpu().numpy()), bool(value.requires_grad)],
        _make_tensor,
    ),
    "PurePath": ("pathlib", _path, lambda pathlib, part, kind, text: getattr(pathlib, _PATHS[kind])(text)),
    "UUID": ("uuid", lambda value, part: [str(value)], lambda uuid, part, text: uuid.UUID(text)),
    "Pattern": (
        "re",
        lambda value, part: [part(value.pattern), value.flags],
        lambda re, part, pattern, flags: re.compile(part(pattern), flags),
    ),
}
"""Maps the name of a class to its module, to the function that encodes its values, and to the one that decodes them."""

_ROOTS = frozenset(module.partition(".")[0] for module, _, _ in _KINDS.values()) - {"numpy"}
"""Packages whose values are recognised by the module of their class."""
_OF_ARRAYS = frozenset({"numpy", "pandas", "scipy.sparse", "torch"})
"""Modules whose values are decoded only if numpy is used."""
