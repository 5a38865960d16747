"""Values of pandas as JSON: tables, columns, indexes, and the scalars in them, exact by type and dtype.

    pd.Series([1, 2], name="a")    {"$": "pandas", "of": "Series", "v": [ARRAY, INDEX, "a"]}
    pd.Timestamp("2024-01-01")     {"$": "pandas", "of": "Timestamp", "v": [1704067200000000, "us", null]}
    pd.DataFrame({"a": [1]})       {"$": "pandas", "of": "DataFrame", "v": [COLUMNS, INDEX, [ARRAY]]}

An ARRAY is its dtype, spelled as pandas spells it, and its elements. What is decoded is built here by pandas's own
constructors out of plain data, so that no method, attribute or flag of an object of the solution comes along.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from .foreign_values import Json, Undecodable, Value

DTYPES = re.compile(
    r"object|bool|boolean|u?int(8|16|32|64)|float(16|32|64)|complex(64|128)|U?Int(8|16|32|64)|Float(32|64)"
    r"|str|string(\[\w+\])?|(datetime64|timedelta64)\[(s|ms|us|ns)(, (?!dateutil)[\w+\-:/]{1,40})?\]"
    r"|category|interval|period\[[\w-]{1,20}\]"
)
"""The dtypes of arrays that cross the border. Those of extensions, sparse and nested arrays do not."""

MAX_RANGE = 10_000_000
"""The length of an index that is a range. Stops one that takes a few bytes to say and gigabytes to hold."""

_Part = Callable[[Value], Value]
_TEXTS = ("str", "string")


CHANGEABLE = ("DataFrame", "Series")
"""What a function may change in place for its caller to see."""


def is_pandas(value: Value) -> bool:
    """Return whether it is a value of pandas, or of a class derived from one of pandas's."""
    return any(above.__module__.partition(".")[0] == "pandas" for above in type(value).__mro__)


def is_changeable(value: Value) -> bool:
    """Return whether it is a table or a column."""
    return any(above.__name__ in CHANGEABLE and above.__module__[:6] == "pandas" for above in type(value).__mro__)


def encode_pandas(value: Value, part: _Part) -> Json | None:
    """Return the JSON of a value of pandas; None where it has no form. part: encodes a value in it."""
    pandas = sys.modules["pandas"]
    if value is pandas.NaT or value is pandas.NA:
        return {"$": "pandas", "of": "NaT" if value is pandas.NaT else "NA", "v": []}
    for name, form in _FORMS.items():
        if isinstance(value, getattr(pandas, name)):
            try:
                return {"$": "pandas", "of": name, "v": form(value, part)}
            except (_NoForm, AttributeError, TypeError, ValueError):
                return None
    return None


def decode_pandas(name: Json, parts: list[Json], part: _Part) -> Value:
    """Return the value of pandas that the JSON stands for. Raises `Undecodable`."""
    try:
        pandas: Value = import_module("pandas")
    except ImportError:
        raise Undecodable("pandas is not installed here") from None
    if name in {"NaT", "NA"}:
        return getattr(pandas, name)
    try:
        return _MAKERS[name](pandas, part, *parts)
    except Undecodable:
        raise
    except Exception as error:  # pandas has many of its own.
        raise Undecodable(f"no {str(name)[:20]}: {str(error)[:100]}") from error


class _NoForm(Exception):
    """A dtype that does not cross the border."""


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
        return _make_objects(elements)
    is_numpy = dtype[:1].islower() and not dtype.startswith((*_TEXTS, "boolean"))
    numpy = sys.modules["numpy"]
    return numpy.array(elements, dtype=dtype) if is_numpy else pandas.array(elements, dtype=dtype)


def _make_objects(elements: list[Value]) -> Value:
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


def _column(value: Value, part: _Part) -> Json:
    return _array(value.array, part)


def _make_series(pandas: Value, part: _Part, array: Json, index: Json, name: Json) -> Value:
    return _make_column(pandas, part, array, part(index), part(name))


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


_FORMS: Mapping[str, Callable[[Value, _Part], Json]] = {
    "DataFrame": lambda value, part: [
        part(value.columns),
        part(value.index),
        [_column(value.iloc[:, position], part) for position in range(value.shape[1])],
    ],
    "Series": lambda value, part: [_column(value, part), part(value.index), part(value.name)],
    "Index": _index,
    "Timestamp": _timestamp,
    "Timedelta": lambda value, part: [value._value if hasattr(value, "_value") else value.value, value.unit],
    "Period": lambda value, part: [value.ordinal, value.freqstr],
    "Interval": lambda value, part: [part(value.left), part(value.right), value.closed],
    "Categorical": lambda value, part: [_array(value, part)],
}

_MAKERS: Mapping[Json, Callable[..., Value]] = {
    "DataFrame": _make_frame,
    "Series": _make_series,
    "Index": _make_index,
    "Timestamp": _make_timestamp,
    "Timedelta": lambda pandas, part, count, unit: _make_times(pandas, f"timedelta64[{unit}]", [count])[0],
    "Period": lambda pandas, part, ordinal, frequency: pandas.Period(ordinal=ordinal, freq=frequency),
    "Interval": lambda pandas, part, left, right, closed: pandas.Interval(part(left), part(right), closed),
    "Categorical": lambda pandas, part, array: _make_array(pandas, part, *array),
}
