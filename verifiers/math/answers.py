r"""Normal text to the tree of one answer: lists, labels, words around a value, conditions behind it.

    x=1\text{ or }x=2            Items of two relations, joined by "or"
    The area is 54 cm^2          54 cm^2
    f(x)=1 \text{ for all } x    f(x)=1: a condition that only says where it holds is left out
    k\pi, k\in\mathbb{Z}         Family: one value for each integer k
    p=5,q=2;p=7,q=2              Items of two Items
    June 20                      Text

Raises `Unreadable` for what is none of these, and `TooLarge` where a budget is met.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gmpy2 import mpq

from truegold.verifiers.math.expressions import Reader, negated
from truegold.verifiers.math.lexer import Token, TooLarge, Unreadable, lex
from truegold.verifiers.math.names import NAMED_WORDS
from truegold.verifiers.math.quantities import MEANING_WORDS, as_measure, letter_units, read_quantity
from truegold.verifiers.math.tree import Call, Chain, Const, Family, Items, Named, Node, Num, Sym, Text

MAX_ITEMS = 100
"""Of one list. Stops an answer that lists every number there is."""

_SIMPLE = re.compile(r"(-?)(?:(\d{1,60})(?:\.(\d{1,60}))?|\\[dt]?frac\{(\d{1,60})\}\{(\d{1,60})\})", re.ASCII)
_INTEGERS = ("integers", "naturals", "positive integers", "nonnegative integers")
_SAYING = frozenset({"is", "are", "be", "equals", "equal", "was", "were", "being", "是", "为", "等于", "共有", "共"})
_LEADING = frozenset(
    "approximately about around roughly exactly only the a an answer answers solution solutions final value values "
    "therefore so thus hence total result roots root set range domain we have get obtain option choice 大约 约 约为 答案 "
    "所以 因此 解集 最小值 最大值 为".split()
)
_QUALIFYING = frozenset({"for", "where", "with"})
_UNIVERSAL = frozenset(
    {"all", "any", "every", "each", "some", "integer", "integers", "integral", "natural", "positive", "arbitrary"}
)
_SEPARATING = frozenset({"sep", "gap", "row"})
_OPENING = frozenset({"open", "brace", "begin"})
_CLOSING = frozenset({"close", "unbrace", "end"})


@dataclass(frozen=True, slots=True)
class Notation:
    """How ambiguous notation is read."""

    group_digits: bool = True
    """1,234 is one number."""
    tight: bool = False
    """1/2x is 1/(2x)."""
    letter_units: bool = False
    """5m is five metres."""


USUAL = Notation()


def read(text: str, notation: Notation = USUAL) -> Node:
    """The tree of normal `text`."""
    simple = _SIMPLE.fullmatch(text)
    if simple is not None:
        return _simple(simple)
    return read_tokens(lex(text, group_digits=notation.group_digits), notation)


def _simple(match: re.Match[str]) -> Node:
    """The commonest answers without a detour: 7, -0.5, \\frac{3}{4}."""
    sign, whole, places, above, below = match.groups()
    minus = -1 if sign else 1
    if whole is not None:
        value = mpq(minus * int(whole + (places or "")), 10 ** len(places or ""))
        return Num(value, len(places) if places else None)
    if not int(below):
        raise Unreadable("a division by zero")
    return Num(mpq(minus * int(above), int(below)))


def read_tokens(tokens: list[Token], notation: Notation = USUAL, depth: int = 0) -> Node:
    if not tokens:
        raise Unreadable("nothing")
    kinds = {token.kind for token in tokens}
    parameters: set[str] = set()
    if "rel" in kinds:
        tokens = _conclusion(tokens)
        tokens, remark = _without_remark(tokens)
        parameters |= _integers_in(remark)
    if "word" in kinds or "cmd" in kinds:
        tokens, declared = _without_conditions(tokens)
        parameters |= declared
    conditions: list[Node] = []
    if not kinds & _SEPARATING:
        return (
            _item(tokens, notation, depth)
            if not parameters
            else Family(_item(tokens, notation, depth), frozenset(parameters))
        )
    groups = _split(tokens, ";") if any(t.kind == "sep" and t.text == ";" for t in tokens) else [tokens]
    if len(groups) > 1 and any(len(_split(group, ",")) > 1 for group in groups):
        node: Node = Items(tuple(_list(group, parameters, conditions, notation, depth) for group in groups), ";")
    else:
        node = _list(tokens, parameters, conditions, notation, depth)
    if parameters or conditions:
        return Family(node, frozenset(parameters), tuple(conditions))
    return node


def _without_remark(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Cut off a condition in brackets at the end: `k\\pi (k \\in \\mathbb{Z})`."""
    if len(tokens) < 5 or tokens[-1].kind != "close" or tokens[-1].text != ")":
        return tokens, []
    depth, start = 0, len(tokens)
    while start > 0:
        start -= 1
        depth += (tokens[start].kind in _CLOSING) - (tokens[start].kind in _OPENING)
        if depth == 0:
            break
    inside = tokens[start + 1 : -1]
    if start == 0 or tokens[start - 1].kind in ("op", "rel", "sep", "func", "big", "cmd"):
        return tokens, []
    related = any(t.kind == "rel" and t.text in ("in", "<", ">", "<=", ">=", "!=") for t in inside)
    return (tokens[:start], inside) if related else (tokens, [])


def _conclusion(tokens: list[Token]) -> list[Token]:
    """What stands behind the last arrow of `x^2=4, x>0 => x=2`."""
    depth = 0
    start = 0
    for index, token in enumerate(tokens):
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth == 0 and token.kind == "rel" and token.text == "=>" and index + 1 < len(tokens):
            start = index + 1
    return tokens[start:]


def _without_conditions(tokens: list[Token]) -> tuple[list[Token], set[str]]:
    """Cut `for all x in R`, `where k is an integer`; the letters that are said to be integers."""
    parameters: set[str] = set()
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        following = tokens[index + 1] if index + 1 < len(tokens) else token
        qualifies = (
            token.kind == "word"
            and token.text.lower() in _QUALIFYING
            and (
                token.text.lower() == "where" or following.text.lower() in _UNIVERSAL or _declares(tokens[index + 1 :])
            )
        )
        forall = token.kind == "cmd" and token.text == "forall"
        if (qualifies or forall) and kept:
            end = _end_of_condition(tokens, index)
            parameters |= _integers_in(tokens[index:end])
            index = end
            while kept and kept[-1].kind in ("sep", "gap"):
                kept.pop()
        elif forall:
            raise Unreadable("a statement about all values")
        else:
            kept.append(token)
            index += 1
    return kept or tokens, parameters


def _declares(tokens: list[Token]) -> bool:
    return len(tokens) > 1 and tokens[0].kind == "name" and tokens[1].kind == "rel" and tokens[1].text == "in"


def _end_of_condition(tokens: list[Token], start: int) -> int:
    """A condition ends with the text, or before the next list item that gives a value with `=`."""
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth <= 0 and token.kind == "sep" and any(t.kind == "rel" and t.text == "=" for t in tokens[index + 1 :]):
            return index
    return len(tokens)


def _integers_in(tokens: list[Token]) -> set[str]:
    """`k \\in \\mathbb{Z}`, `k is an integer`, `integers k`."""
    words = {t.text.lower() for t in tokens if t.kind == "word"}
    names = [t.text for t in tokens if t.kind == "name"]
    whole = bool(words & {"integer", "integers", "integral", "natural"})
    sets = any(t.kind == "cmd" and t.text == "mathbb" for t in tokens) and bool({"Z", "N"} & set(names))
    if whole or sets:
        return {name for name in names if name not in ("Z", "N", "R", "Q")} | {
            w for w in words if len(w) == 1 and w != "a"
        }
    return set()


def _list(tokens: list[Token], parameters: set[str], conditions: list[Node], notation: Notation, depth: int) -> Node:
    slices, joined = _items(tokens)
    if len(slices) > MAX_ITEMS:
        raise TooLarge(f"a list of {len(slices)}, the limit is {MAX_ITEMS}")
    if not slices:
        raise Unreadable("nothing but separators")
    nodes: list[Node] = []
    for part in slices:
        node = _item(part, notation, depth)
        declared = _parameter(node)
        if declared and (nodes or len(slices) > 1):
            parameters |= declared
        elif joined == "," and nodes and _is_condition(node) and not _is_condition(nodes[0]):
            conditions.append(node)
        else:
            nodes.append(node)
    if len(nodes) == 1:
        return nodes[0]
    return _regrouped(nodes, joined)


def _is_condition(node: Node) -> bool:
    """`x > 0` behind `x^2`: it says where the answer holds."""
    return isinstance(node, Chain) and node.operators[0] in ("<", ">", "<=", ">=", "!=", "in")


def _regrouped(nodes: list[Node], joined: str) -> Node:
    """p=5, q=2, p=7, q=2 are two pairs."""
    labels = [label_of(node) for node in nodes]
    if None not in labels:
        size = len(set(labels))
        if 1 < size < len(labels) and labels == labels[:size] * (len(labels) // size):
            pairs = [Items(tuple(nodes[i : i + size])) for i in range(0, len(nodes), size)]
            return Items(tuple(pairs), joined)
    return Items(tuple(nodes), joined)


def label_of(node: Node) -> str | None:
    """The name in front of `x_1 = 5`; a name and its argument for `f(x) = 5`."""
    if isinstance(node, Chain) and node.operators[0] == "=" and len(node.parts) >= 2:
        first = node.parts[0]
        if isinstance(first, Sym):
            return first.name
        if isinstance(first, Call) and first.applied:
            values = [str(arg.value) for arg in first.args if isinstance(arg, Num)]
            return f"{first.name}({','.join(values)})" if values else first.name
    return None


def _parameter(node: Node) -> set[str]:
    if isinstance(node, Chain) and node.operators == ("in",) and isinstance(node.parts[1], Named):
        names = node.parts[0].items if isinstance(node.parts[0], Items) else (node.parts[0],)
        if node.parts[1].name in _INTEGERS and all(isinstance(name, Sym) for name in names):
            return {name.name for name in names if isinstance(name, Sym)}
    return set()


def _items(tokens: list[Token]) -> tuple[list[list[Token]], str]:
    """Cut at commas, connectives and wide gaps outside of all brackets."""
    parts: list[list[Token]] = [[]]
    joined = ","
    depth = 0
    for token in tokens:
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth <= 0 and token.kind in ("sep", "gap"):
            if token.kind == "sep" and token.text in ("or", "and") and (joined != "or"):
                joined = token.text
            if token.kind == "gap" and parts[-1] and parts[-1][-1].kind in ("rel", "op"):
                continue
            parts.append([])
        elif depth <= 0 and token.kind == "row":
            parts.append([])
        elif token.kind != "gap" or depth > 0:
            parts[-1].append(token)
    found = [part for part in parts if part]
    # A gap before an operator separates nothing.
    merged: list[list[Token]] = []
    for part in found:
        if merged and part[0].kind == "rel":
            merged[-1].extend(part)
        else:
            merged.append(part)
    return merged, joined


def _split(tokens: list[Token], mark: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth <= 0 and token.kind == "sep" and token.text == mark:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _item(tokens: list[Token], notation: Notation, depth: int) -> Node:
    """One item: mathematics if it can be read as such, else a quantity, else what its words say."""
    if notation.letter_units and (measure := letter_units(tokens, tight=notation.tight)) is not None:
        return measure
    wordy = any(token.kind in ("word", "money") for token in tokens)
    if not wordy or all(len(t.text) == 1 and t.text.isascii() for t in tokens if t.kind == "word"):
        try:
            return as_measure(Reader(tokens, tight=notation.tight, depth=depth).whole())
        except Unreadable:
            quantity = read_quantity(tokens, tight=notation.tight, depth=depth)
            if quantity is not None:
                return quantity
            if not wordy:
                return _repaired(tokens, notation, depth)
    named = _named(tokens)
    if named is not None:
        return named
    quantity = read_quantity(tokens, tight=notation.tight, depth=depth)
    return quantity if quantity is not None else _worded(tokens, notation, depth)


def _repaired(tokens: list[Token], notation: Notation, depth: int) -> Node:
    """A stray bracket at one end, a leading `=`, or a remark in brackets."""
    if len(tokens) > 1 and tokens[0].kind == "rel" and tokens[0].text in ("=", "~"):
        return _item(tokens[1:], notation, depth)
    if (
        len(tokens) > 1
        and tokens[0].kind == "cmd"
        and tokens[0].text in ("therefore", "because", "checkmark", "blacksquare")
    ):
        return _item(tokens[1:], notation, depth)
    if all(token.kind == "num" or token.text == "-" for token in tokens):  # 2 3 5
        starts = [
            i
            for i, token in enumerate(tokens)
            if i == 0 or (token.spaced and (token.kind == "num" or tokens[i + 1 : i + 2]))
        ]
        parts = [tokens[start:end] for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True)]
        if len(parts) > 1 and all(part[-1].kind == "num" and len(part) <= 2 for part in parts):
            return Items(tuple(Reader(part).whole() for part in parts))
    return as_measure(Reader(tokens, tight=notation.tight, depth=depth).whole())


def _worded(tokens: list[Token], notation: Notation, depth: int) -> Node:
    words = [t.text.lower() for t in tokens if t.kind == "word"]
    if not any(word in MEANING_WORDS for word in words):
        inner = _value_among_words(tokens, notation, depth)
        if inner is not None:
            return inner
    return _text(tokens)


def _value_among_words(tokens: list[Token], notation: Notation, depth: int) -> Node | None:
    says = [i for i, t in enumerate(tokens) if (t.kind == "word" and t.text.lower() in _SAYING)]
    if says and says[-1] + 1 < len(tokens):
        said = _item(tokens[says[-1] + 1 :], notation, depth)
        return None if isinstance(said, Text) else said  # of words, who is larger counts as well
    start = 0
    while start < len(tokens) and tokens[start].kind == "word" and tokens[start].text.lower() in _LEADING:
        start += 1
    if 0 < start < len(tokens):
        rest = tokens[start:]
        return _item(rest[1:] if rest[0].text == ":" and len(rest) > 1 else rest, notation, depth)
    remark = next((i for i, t in enumerate(tokens) if t.kind == "open" and t.text == "("), 0)
    if remark and tokens[-1].kind == "close" and any(t.kind == "word" for t in tokens[remark:]):
        if not any(t.kind == "word" for t in tokens[:remark]):
            return _item(tokens[:remark], notation, depth)
    equals = next((i for i, t in enumerate(tokens) if t.kind == "rel" and t.text == "="), 0)
    if equals and equals + 1 < len(tokens) and all(t.kind in ("word", "name") for t in tokens[:equals]):
        value = _item(tokens[equals + 1 :], notation, depth)
        return None if isinstance(value, (Text, Named)) else value
    return None


def _named(tokens: list[Token]) -> Node | None:
    """`no solution`, `all real numbers`, `minus infinity`, `yes`."""
    if any(token.kind not in ("word", "name", "const") for token in tokens):
        return None
    spelled = "".join(f" {token.text}" if token.spaced or token.kind == "word" else token.text for token in tokens)
    name = NAMED_WORDS.get(spelled.strip().lower())
    if name == "inf":
        return Const("inf")
    if name == "-inf":
        return negated(Const("inf"))
    return Named(name) if name else None


def _text(tokens: list[Token]) -> Text:
    words: list[str] = []
    for token in tokens:
        if token.kind in ("word", "name", "func", "num", "const"):
            if words and not token.spaced and token.kind == "name" and tokens[tokens.index(token) - 1].kind == "name":
                words[-1] += token.text.lower()
            else:
                words.append(token.text.lower())
        elif token.kind in ("cmd", "big", "rel") or (token.kind == "op" and token.text in "^_/*+"):
            raise Unreadable("words and mathematics mixed")
    if not words:
        raise Unreadable("no words")
    return Text(tuple(words))
