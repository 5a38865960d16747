"""Encodes values that pass between processes as JSON that keeps their exact types.

    encode((1, [2.5, "x"]))             {"$": "tuple", "v": [1, [2.5, "x"]]}
    decode({"$": "tuple", "v": [1]})    (1,)

None, booleans, integers, finite floats and texts are encoded as JSON's own values. So are lists, and dicts whose keys
are texts other than "$". All other values become an object with the key "$":

    value of "$"                 other keys
    tuple set frozenset          v: the elements
    dict Counter OrderedDict defaultdict    v: [[key, value], ...] in order
    bytes bytearray str          v: base64; a str only if it has lone surrogates, which are then encoded as UTF-8
    int                          v: hexadecimal, "-0x1f"; only for integers of about 4,000 digits or more
    float                        v: "nan", "inf", "-inf"
    complex                      v: [real, imaginary]
    range slice                  v: [start, stop, step]
    deque                        v: [maxlen or null, *items]
    array                        v: [typecode, *items]
    Decimal date datetime time ellipsis     v: the text, which is empty for an ellipsis
    Fraction                     v: [numerator, denominator]
    timedelta                    v: [days, seconds, microseconds]
    ndarray                      dtype, shape, v: all items in one list
    scalar                       dtype, v: the number, of numpy
    iterator                     of: the name of the iterator's type, v: the items
    graph                        nodes: [[class, [field, ...]], ...], v: a value in which {"$": "node", "v": 3} is the
                                 fourth node. Cycles and shared nodes are kept, and chains of 100,000 nodes work
    opaque                       v: the name of a type. An opaque value equals nothing

Objects of subclasses of a builtin type are encoded as data of the builtin type. Objects whose class is in `codecs` are
encoded as nodes. Containers nested more than 100 levels deep are opaque. A list or dict that occurs twice in a value is
decoded as two.

    to_json(data) -> bytes       one line of ASCII, without the line end
    from_json(line) -> data      strict: limited in size and depth, no NaN, only ASCII, only one value
    are_plain(values)            whether JSON's own values represent all of them exactly

`encoding.py` also writes such lines to the descriptors of a job.
"""
