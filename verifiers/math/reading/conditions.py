r"""What an answer says of its letters and what it derives: both are cut off before the answer itself is read.

x^2=4 \Rightarrow x=2                 what stands behind the last arrow
k\pi (k \in \mathbb{Z})               a remark in brackets at the end: k is an integer
f(x)=1 \text{ for all } x             a condition that only says where the answer holds
k\pi, k\in\mathbb{Z};  x^2, x > 0     items of a list that are no answers: a parameter, a condition
"""

from __future__ import annotations

from truegold.verifiers.math.reading.tokens import Token, nesting, text_of
from truegold.verifiers.math.refusals import Unreadable
from truegold.verifiers.math.tree import BareList, Chain, Named, Node, Sym

_INTEGER_SETS = ("integers", "naturals", "positive integers", "nonnegative integers")
_CONDITION_OPERATORS = ("<", ">", "<=", ">=", "!=", "in")
_QUALIFYING = frozenset({"for", "where", "with"})
_BEGINNING = _QUALIFYING | {"forall"}
_UNIVERSAL = frozenset({
    "all", "any", "every", "each", "some", "integer", "integers", "integral", "natural", "positive", "arbitrary",
})  # fmt: skip
_INTEGER_WORDS = frozenset({"integer", "integers"})
_DECLARING = _INTEGER_WORDS | {"is", "are", "an", "a", "any", "all", "every", "some", "arbitrary", "being"}
_NO_REMARK_AFTER = frozenset({"op", "rel", "sep", "func", "big", "cmd"})
"""A bracket behind one of these belongs to it."""


def conclusion(tokens: list[Token]) -> list[Token]:
    """Return what stands behind the last arrow."""
    depth = start = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0 and token.kind == "rel" and token.text == "=>" and index + 1 < len(tokens):
            start = index + 1
    return tokens[start:]


def without_remark(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    """Return the answer, and the condition in brackets at its end."""
    if len(tokens) < 5 or tokens[-1].kind != "close" or tokens[-1].text != ")":
        return tokens, []
    depth, start = 0, len(tokens)
    while start > 0:
        start -= 1
        depth -= nesting(tokens[start])
        if depth == 0:
            break
    if start == 0 or tokens[start - 1].kind in _NO_REMARK_AFTER:
        return tokens, []
    inside = tokens[start + 1 : -1]
    is_condition_text = any(token.kind == "rel" and token.text in _CONDITION_OPERATORS for token in inside)
    return (tokens[:start], inside) if is_condition_text else (tokens, [])


def without_conditions(tokens: list[Token]) -> tuple[list[Token], set[str]]:
    """Cut off `for all x in R` and `where k is an integer`; return the letters that are integers, too.

    Raises Unreadable for a statement that begins with its condition.
    """
    if _BEGINNING.isdisjoint(map(str.lower, map(text_of, tokens))):
        return tokens, set()
    parameters: set[str] = set()
    kept: list[Token] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        is_forall = token.kind == "cmd" and token.text == "forall"
        if kept and (is_forall or _begins_condition(tokens, index)):
            end = _end_of_condition(tokens, index)
            parameters |= integers_in(tokens[index:end])
            index = end
            while kept and kept[-1].kind in ("sep", "gap"):
                kept.pop()
        elif is_forall:
            raise Unreadable("a statement about all values")
        else:
            kept.append(token)
            index += 1
    return kept or tokens, parameters


def _begins_condition(tokens: list[Token], index: int) -> bool:
    """Tell whether a condition begins here, as `for all` and `with k \\in` do, but not `for 5 dollars`."""
    token = tokens[index]
    if token.kind != "word" or token.text.lower() not in _QUALIFYING:
        return False
    following = tokens[index + 1 : index + 3]
    if token.text.lower() == "where" or (following and following[0].text.lower() in _UNIVERSAL):
        return True
    return [part.kind for part in following] == ["name", "rel"] and following[1].text == "in"


def _end_of_condition(tokens: list[Token], start: int) -> int:
    """Return where a condition ends: with the text, or before the next list item that gives a value with `=`."""
    last_equals = max((i for i, token in enumerate(tokens) if token.kind == "rel" and token.text == "="), default=0)
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        depth += nesting(token)
        if depth <= 0 and token.kind == "sep" and index < last_equals:
            return index
    return len(tokens)


def integers_in(tokens: list[Token]) -> set[str]:
    """Return the letters that `k \\in \\mathbb{Z}`, `k is an integer` and `integers k` speak of."""
    words = {token.text.lower() for token in tokens if token.kind == "word"}
    names = {token.text for token in tokens if token.kind == "name"}
    has_word = bool(words & {"integer", "integers", "integral", "natural"})
    has_set = any(token.kind == "cmd" and token.text == "mathbb" for token in tokens) and bool({"Z", "N"} & names)
    if not (has_word or has_set):
        return set()
    return (names - {"Z", "N", "R", "Q"}) | {word for word in words if len(word) == 1 and word != "a"}


def worded_integers(tokens: list[Token]) -> set[str]:
    """Return the letters that an item such as `n an integer` declares, which says nothing else."""
    words = {token.text.lower() for token in tokens if token.kind == "word"}
    if not words & _INTEGER_WORDS or not words <= _DECLARING or not all(t.kind in ("word", "name") for t in tokens):
        return set()
    return integers_in(tokens)


def is_condition(node: Node) -> bool:
    """Tell whether a node says where an answer holds, as `x > 0` does behind `x^2`."""
    return isinstance(node, Chain) and node.operators[0] in _CONDITION_OPERATORS


def declared_integers(node: Node) -> set[str]:
    """Return the letters that an item `k \\in \\mathbb{Z}` declares to be integers."""
    if not isinstance(node, Chain) or node.operators != ("in",):
        return set()
    first, container = node.parts
    letters = first.elements if isinstance(first, BareList) else (first,)
    names = {letter.name for letter in letters if isinstance(letter, Sym)}
    has_integers = isinstance(container, Named) and container.name in _INTEGER_SETS
    return names if has_integers and all(isinstance(letter, Sym) for letter in letters) else set()
