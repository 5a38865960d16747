"""Carries values across the border between processes: JSON, exact by type.

    encode((1, [2.5, "x"]))             {"$": "tuple", "v": [1, [2.5, "x"]]}
    decode({"$": "tuple", "v": [1]})    (1,)

None, booleans, integers, finite floats, texts, lists and dicts whose keys are texts (none of them "$") stand as they
are. Everything else is an object with the key "$":

    tuple set frozenset          v: the elements
    dict Counter OrderedDict defaultdict    v: [[key, value], ...] in order
    bytes bytearray str          v: base64; str only for lone surrogates, as UTF-8 that lets them pass
    int                          v: hexadecimal, "-0x1f"; only from 4,000 digits on
    float                        v: "nan", "inf", "-inf"
    complex                      v: [real, imaginary]
    range slice                  v: [start, stop, step]
    deque array                  v: [maxlen or null, *items], [typecode, *items]
    Decimal date datetime time   v: the text; ellipsis has an empty one
    Fraction timedelta           v: [numerator, denominator], [days, seconds, microseconds]
    ndarray scalar               dtype, shape, v: the items in one list; dtype, v: the number
    iterator                     of: the name of its type, v: the items
    graph                        nodes: [[class, [field, ...]], ...], v: a value in which {"$": "node", "v": 3} stands
                                 for the fourth node. Cycles and sharing are kept, and lists of 100,000 nodes cross
    opaque                       v: the name of a type. An opaque value equals nothing

Objects of subclasses of builtin types cross as data of the builtin type, those whose class is in `codecs` as nodes.
Containers nested more than 100 deep are opaque; a list or dict that stands twice in a value arrives as two.

    to_json(data) -> bytes       one line of ASCII, without its end
    from_json(line) -> data      strict: bounded in size and depth, no NaN, nothing outside ASCII, nothing around it
    are_plain(values)            whether all of them stand as they are

`json_lines.py` also writes such lines to the descriptors of a job.
"""
