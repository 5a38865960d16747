r"""Parses answers with words: words around a value, words that are a value, and words without a value.

    The area is 54; approximately 3; 5 (since it is odd); the width = 3       a stated value
    no solution; minus infinity; yes                                          a named value
    blue whale                                                                Text

Derivations and conditions are removed before the answer itself is read:

    x^2=4 \Rightarrow x=2                 the part up to the last arrow
    k\pi (k \in \mathbb{Z})               a condition in brackets at the end: k is an integer
    f(x)=1 \text{ for all } x             a condition after `for all` or `where`
    k\pi, k\in\mathbb{Z};  x^2, x > 0     items of a list that are conditions

The items of a list may have labels in words: `Minimum: 1, Maximum: 3`, `mean = 5, median = 4`. Each item becomes an
equation, `minimum = 1`, so that two answers are compared label by label. Different spellings of a label (`min`,
`Minimum`, 最小值) are the same. The label of an answer with one item is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from truegold.verifiers.math.measures import label_unit
from truegold.verifiers.math.policy import UnreadableAnswer
from truegold.verifiers.math.reading.lexemes import Lexeme, nesting, text_of
from truegold.verifiers.math.tree import (
    INFINITY,
    NATURALS_ONLY,
    BareList,
    Chain,
    Named,
    Node,
    Sym,
    Text,
    label_of,
    negated,
    symbols,
)
from truegold.verifiers.math.vocabulary import LABELS, NAMED_WORDS, WORDS

_PLAIN_TOKENS = 3
"""The number of tokens in a plain equation such as `x = 2`."""
_CONDITION_OPERATORS = ("<", ">", "<=", ">=", "!=", "in")
"""Relations of conditions."""
_QUALIFYING = frozenset({"for", "where", "with"})
"""Words before a condition on all values: `for all x`, `with k \\in \\mathbb{Z}`."""
_BOUNDING = frozenset({"for", "if", "when", "where"})
"""Words before a condition on one value: `for r > b`."""
_BEGINNING = _QUALIFYING | _BOUNDING | {"forall"}
"""Words that may begin a condition."""
_NO_REMARK_AFTER = frozenset({"op", "rel", "sep", "func", "big", "cmd"})
"""Kinds of tokens after which brackets are not a remark: in `\\max(x > 0)` they hold an argument."""

_INTEGER_SETS = ("integers", "naturals", "positive integers", "nonnegative integers")
"""The names of sets of integers in a tree."""
_INTEGER_WORDS = frozenset({"integer", "integers"})
_NATURAL_WORDS = frozenset({"natural", "positive", "nonnegative", "negative", "non"})
"""Words that restrict integers to some of them."""
_WORDS_OF_CONDITION = _INTEGER_WORDS | {"integral", "natural"}
"""Words of a condition that declares integers. In a list, `natural n` is not such a condition."""
_WORDS_OF_ITEM = _INTEGER_WORDS | {"is", "are", "an", "a", "any", "all", "every", "some", "arbitrary", "being"}
"""The words of an item of a list that declares an integer: `n an integer`, `k is any integer`."""

MAX_LABEL_TOKENS = 8
"""Maximum number of tokens in a label."""
MAX_WORD_LETTERS = 20
"""Maximum number of letters in a word of a label."""
MAX_SYMBOL_LETTERS = 2
"""Maximum number of letters in a symbol, whose case matters: CO is not Co."""
_LABEL_FUNCTIONS = frozenset({"max", "min"})
"""Functions that can be labels, as in `max 3, min 1`. In `\\ln 3, \\ln 5` the functions are not labels."""
_WORDLIKE = frozenset({"word", "name", "func", "const", "num"})
"""Kinds of tokens in words and labels: `AB` is two names, `max` is a function, `team 2` ends with a number."""
_BEFORE_LABEL = ("of", "for")
"""Words between a value and its label: `3 for Tom`."""
_DENIALS = frozenset({"not", "never", "neither", "nor"})
"""Words that show, at the start of an item, that it has no label."""
_IDLE_IN_LABELS = frozenset({"the", "of", "value", "values", "a", "an"})
"""Words of a label that do not count when labels are compared."""

_NOTHING = re.compile(
    r"(?:(?:the|this) (?:equation|system|inequality|problem) has |there (?:is|are) |it has )?"
    r"no (?:real |valid |integer |possible |such )*(?:solutions?|roots?|values?)(?: (?:of|for) [a-z])?(?: exists?)?"
)
"""Matches `no solution`, `there are no real values of x`."""

ReadItem: TypeAlias = Callable[[list[Lexeme]], Node]

StatedValue: TypeAlias = tuple[list[Lexeme], tuple[type[Node], ...]]
"""The tokens of a stated value, and types of nodes that the value must not have."""


class _LabelEnd(NamedTuple):
    end: int
    """The index after the last token of the label."""
    value_start: int


def conclusion(tokens: list[Lexeme]) -> tuple[list[Lexeme], list[Lexeme]]:
    """Return the tokens before the last arrow, and the tokens after it."""
    depth = start = 0
    for index, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0 and token.kind == "rel" and token.text == "=>" and index + 1 < len(tokens):
            start = index + 1
    return tokens[: max(start - 1, 0)], tokens[start:]


def is_solved(node: Node, premise: list[Lexeme]) -> bool:
    """Tell whether the node after an arrow is a solution of the premise before it.

    6x = 12 => x = 2       x is the unknown of the premise
    x = 2 => x^2 = 4       not solved: the right side gives no letter a value
    x > 0 => y > 0         not solved: a statement about two letters
    """
    if not isinstance(node, Chain):
        return True
    subject = next((part for part in node.parts if isinstance(part, Sym)), None)
    is_bound = is_condition(node) and not symbols(node) - ({subject.name} if subject else set())
    if label_of(node) is None and not is_bound:
        return False
    names = {token.text for token in premise if token.kind == "name"}
    is_plain = len(premise) == _PLAIN_TOKENS and premise[0].kind == "name" and premise[-1].kind == "num"
    return not is_plain or not names.isdisjoint(symbols(node))


def without_remark(tokens: list[Lexeme]) -> tuple[list[Lexeme], list[Lexeme]]:
    """Return the answer without the condition in brackets at its end, and the condition."""
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


def without_conditions(tokens: list[Lexeme]) -> tuple[list[Lexeme], set[str]]:
    """Remove `for all x in R` and `where k is an integer`. Return the other tokens, and the letters that are integers.

    Raises UnreadableAnswer for a statement that begins with `\\forall`.
    """
    if _BEGINNING.isdisjoint(map(str.lower, map(text_of, tokens))):
        return tokens, set()
    parameters: set[str] = set()
    kept: list[Lexeme] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        is_forall = token.kind == "cmd" and token.text == "forall"
        if kept and _bounds_value(tokens, index) and not sum(map(nesting, kept)):
            # In `X \\text{ for } r > b` the condition becomes an item after X.
            kept.append(Lexeme("sep", ",", token.spaced))
            index += 1
            continue
        if kept and (is_forall or _begins_condition(tokens, index)):
            end = _end_of_condition(tokens, index)
            parameters |= integers_of_condition(tokens[index:end])
            index = end
            while kept and kept[-1].kind in ("sep", "gap"):
                kept.pop()
        elif is_forall:
            raise UnreadableAnswer("a statement about all values")
        else:
            kept.append(token)
            index += 1
    return kept or tokens, parameters


def _begins_condition(tokens: list[Lexeme], index: int) -> bool:
    """Tell whether a condition begins at `index`: `for all` and `with k \\in` do, `for 5 dollars` does not."""
    token = tokens[index]
    if token.kind != "word" or token.text.lower() not in _QUALIFYING:
        return False
    following = tokens[index + 1 : index + 3]
    if token.text.lower() == "where" or (following and following[0].text.lower() in WORDS["universal"]):
        return True
    return [part.kind for part in following] == ["name", "rel"] and following[1].text == "in"


def _bounds_value(tokens: list[Lexeme], index: int) -> bool:
    """Tell whether a condition like `for r > b` begins at `index`. It has a relation and no more words."""
    token = tokens[index]
    if token.kind != "word" or token.text.lower() not in _BOUNDING:
        return False
    end = next((i for i in range(index, len(tokens)) if tokens[i].kind in ("sep", "gap", "row")), len(tokens))
    inside = tokens[index + 1 : end]
    return any(part.text in _CONDITION_OPERATORS[:-1] for part in inside if part.kind == "rel") and not any(
        part.kind == "word" for part in inside
    )


def _end_of_condition(tokens: list[Lexeme], start: int) -> int:
    """Return the end of a condition: the next separator if an equation follows, else the end of the text."""
    last_equals = max((i for i, token in enumerate(tokens) if token.kind == "rel" and token.text == "="), default=0)
    depth = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        depth += nesting(token)
        if depth <= 0 and token.kind == "sep" and index < last_equals:
            return index
    return len(tokens)


def integers_of_condition(tokens: list[Lexeme]) -> set[str]:
    """Return the letters that a condition declares to be integers: `k \\in \\mathbb{Z}`, `where k is an integer`."""
    words = {token.text.lower() for token in tokens if token.kind == "word"}
    names = {token.text for token in tokens if token.kind == "name"}
    has_word = bool(words & _WORDS_OF_CONDITION)
    has_set = any(token.kind == "cmd" and token.text == "mathbb" for token in tokens) and bool({"Z", "N"} & names)
    if not (has_word or has_set):
        return set()
    if "N" in names or words & _NATURAL_WORDS or any(token.kind == "rel" and token.text != "in" for token in tokens):
        names |= {NATURALS_ONLY}
    return (names - {"Z", "N", "R", "Q"}) | {word for word in words if len(word) == 1 and word != "a"}


def integers_of_item(tokens: list[Lexeme]) -> set[str]:
    """Return the letters that an item of a list declares to be integers in words: `n an integer`."""
    words = {token.text.lower() for token in tokens if token.kind == "word"}
    if not words & _INTEGER_WORDS or not words <= _WORDS_OF_ITEM or not all(t.kind in ("word", "name") for t in tokens):
        return set()
    return integers_of_condition(tokens)


def is_condition(node: Node) -> bool:
    """Tell whether a node is a condition, such as the `x > 0` in `x^2, x > 0`."""
    return isinstance(node, Chain) and node.operators[0] in _CONDITION_OPERATORS


def integers_of_node(node: Node) -> set[str]:
    """Return the letters that a tree such as `k \\in \\mathbb{Z}` declares to be integers."""
    if not isinstance(node, Chain) or node.operators != ("in",):
        return set()
    first, container = node.parts
    letters = first.elements if isinstance(first, BareList) else (first,)
    names = {letter.name for letter in letters if isinstance(letter, Sym)}
    has_integers = isinstance(container, Named) and container.name in _INTEGER_SETS
    if not has_integers or not all(isinstance(letter, Sym) for letter in letters):
        return set()
    return names if isinstance(container, Named) and container.name == "integers" else names | {NATURALS_ONLY}


def read_labelled(slices: list[list[Lexeme]], read_item: ReadItem) -> list[Node] | None:
    """Return each item as an equation `label = value`, or None if an item has no label in words."""
    if len(slices) < 2:
        return None
    if any(map(_begins_label, slices[0])):
        split = [_split_behind_label(_with_words_whole(tokens)) for tokens in slices]
    else:
        split = [_split_before_label(tokens) for tokens in slices if tokens[0].kind == "num"]
    labelled = [pair for pair in split if pair is not None]
    if len(labelled) < len(slices):
        return None
    names = [_label_name(label) for label, _ in labelled]
    try:
        values = [read_item(value) for _, value in labelled]
    except UnreadableAnswer:
        return None
    if all(name.startswith("part ") for name in names) and all(map(label_of, values)):
        # In `(a) v = 5, (b) t = 7` the labels are v and t.
        return values
    return [Chain((Sym(name), value), ("=",)) for name, value in zip(names, values, strict=True)]


def _begins_label(token: Lexeme) -> bool:
    return token.kind == "word" or token.text == ":" or (token.kind == "func" and token.text in _LABEL_FUNCTIONS)


def _split_behind_label(tokens: list[Lexeme]) -> tuple[list[Lexeme], list[Lexeme]] | None:
    """Return the label and the value of `Maximum: 3` or `3 for Tom`, or None if there is no label."""
    if (label_end := _label_end(tokens)) is None:
        return _split_before_label(tokens)
    return tokens[: label_end.end], tokens[label_end.value_start :]


def _split_before_label(tokens: list[Lexeme]) -> tuple[list[Lexeme], list[Lexeme]] | None:
    """Return the label and the value of `25 liters of oil` or `3 for Tom`, or None if there is no label."""
    start = next((i for i, token in enumerate(tokens) if token.text in _BEFORE_LABEL and token.kind == "word"), 0)
    label = _with_words_whole(tokens[start + 1 :])
    if not start or not 0 < len(label) <= MAX_LABEL_TOKENS or tokens[0].kind != "num" or label[0].kind == "num":
        return None
    return (label, tokens[:start]) if all(token.kind in _WORDLIKE for token in label) else None


def _with_words_whole(tokens: list[Lexeme]) -> list[Lexeme]:
    """Return the tokens of a label with the letters of `Tom`, `Ms.` and `CO_2` joined to one token each."""
    whole: list[Lexeme] = []
    for index, token in enumerate(tokens):
        is_index = token.text == "_" or (bool(whole) and whole[-1].text.endswith("_") and token.kind == "num")
        if whole and whole[-1].kind == "name" and not token.spaced and (token.kind == "name" or is_index):
            whole[-1] = Lexeme("name", whole[-1].text + token.text, whole[-1].spaced)
        elif token.kind not in ("name", "word") or len(token.text) > MAX_WORD_LETTERS:
            if token.text == "." and whole and whole[-1].kind == "word" and index + 1 < len(tokens):
                continue
            return [*whole, *tokens[index:]]
        else:
            whole.append(token)
    return whole


def _label_end(tokens: list[Lexeme]) -> _LabelEnd | None:
    """Return the end of an item's label and the start of its value, or None if it has no label in words.

    Maximum: 3; Tom gets 5    a colon or a verb ends the label
    team 2: 5                 the label ends with a number
    apples 5; mean (1, 2)     without colon and verb, the label ends before a number or a bracket
    x-coordinate: 3           a hyphen belongs to the label
    x = 3                     None: an equation of a letter needs no label
    3 apples; a + b: 3        None
    not Maximum: 3            None
    """
    index, words, has_word = 0, 0, False
    if tokens[0].text.lower() in _DENIALS:
        return None
    while index < len(tokens) and index < MAX_LABEL_TOKENS:
        token = tokens[index]
        is_verb = token.text.lower() in WORDS["label_verbs"] and token.kind in ("word", "rel", "name")
        if words and (is_verb or (token.kind == "op" and token.text == ":")) and index + 1 < len(tokens):
            is_equation = token.text == "=" and not has_word
            return None if is_equation else _LabelEnd(index, index + 1)
        is_number = token.kind == "num" and not (index + 1 < len(tokens) and tokens[index + 1].text == ":")
        if has_word and (is_number or (token.kind == "open" and token.text == "(")):
            return _LabelEnd(index, index)
        is_hyphen = token.kind == "op" and token.text == "-" and words
        if not is_hyphen:
            if token.kind not in _WORDLIKE or (token.kind == "num" and not words):
                return None
            has_word |= token.kind in ("word", "func")
            words += 1
        index += 1
    return None


def _label_name(tokens: list[Lexeme]) -> str:
    # Symbols keep their case: CO is not Co, m is not M, and the A of `speed of A` is not an article.
    words = [token.text for token in tokens if token.kind in _WORDLIKE]
    words = [word if len(word) <= MAX_SYMBOL_LETTERS or "_" in word else word.lower() for word in words]
    words = [word for word in words if word not in _IDLE_IN_LABELS] or words
    return " ".join(
        LABELS.get(word.lower()) or (word if len(word) <= MAX_SYMBOL_LETTERS else label_unit(word).label or word)
        for word in words
    )


def stated_value(tokens: list[Lexeme]) -> StatedValue | None:
    """Return the value that a sentence states, or None if one of its words may change the meaning of the value."""
    if (remark := _before_remark(tokens)) is not None and _is_idle(tokens[len(remark[0]) :]):
        return remark
    words = [token.text.lower() for token in tokens if token.kind == "word"]
    if any(word in WORDS["changing"] or "不" in word for word in words):
        return None
    verbs = [i for i, token in enumerate(tokens) if token.kind == "word" and token.text.lower() in WORDS["verbs"]]
    if verbs and verbs[-1] + 1 < len(tokens):
        # In `Anna is taller` the words after the verb are not a value, so Text is not accepted.
        start = verbs[-1] + 1
        if tokens[start].text == ":" and start + 1 < len(tokens):
            start += 1
        return tokens[start:], (Text,)
    start = 0
    while start < len(tokens) and tokens[start].kind == "word" and tokens[start].text.lower() in WORDS["leading"]:
        start += 1
    if 0 < start < len(tokens):
        rest = tokens[start:]
        return (rest[1:] if rest[0].text == ":" and len(rest) > 1 else rest), ()
    return _before_remark(tokens) or _behind_label(tokens)


def _is_idle(remark: list[Lexeme]) -> bool:
    """Tell whether a remark does not change the value: it has no number and no word of doubt."""
    return not any(token.kind == "num" or token.text.lower() in WORDS["unsure"] for token in remark)


def _before_remark(tokens: list[Lexeme]) -> StatedValue | None:
    """Return the value before a remark in brackets: the 5 of `5 (since it is odd)`."""
    start = next((i for i, token in enumerate(tokens) if token.kind == "open" and token.text == "("), 0)
    is_word = [token.kind == "word" for token in tokens]
    is_remark = start > 0 and tokens[-1].kind == "close" and any(is_word[start:]) and not any(is_word[:start])
    return (tokens[:start], ()) if is_remark and tokens[start - 1].kind not in ("func", "op") else None


def _behind_label(tokens: list[Lexeme]) -> StatedValue | None:
    """Return the value after a label: the 3 of `the width = 3` and of `the width: 3`."""
    equals = next((i for i, token in enumerate(tokens) if token.text in ("=", ":")), 0)
    if equals and equals + 1 < len(tokens) and all(token.kind in ("word", "name") for token in tokens[:equals]):
        return tokens[equals + 1 :], (Text, Named)
    return None


def named_value(tokens: list[Lexeme]) -> Node | None:
    """Return the value of `no solution`, `all real numbers`, `minus infinity` or `yes`; None for other words."""
    if any(token.kind not in ("word", "name", "const") for token in tokens):
        return None
    spelled = "".join(f" {token.text}" if token.spaced or token.kind == "word" else token.text for token in tokens)
    phrase = spelled.strip().lower()
    name = NAMED_WORDS.get(phrase) or ("empty" if _NOTHING.fullmatch(phrase) else None)
    if name == "inf":
        return INFINITY
    if name == "-inf":
        return negated(INFINITY)
    return Named(name) if name else None


def words_of(tokens: list[Lexeme]) -> Text:
    """Return an answer of words as Text. Raises UnreadableAnswer if there is mathematics in it."""
    words: list[str] = []
    for index, token in enumerate(tokens):
        if token.kind in _WORDLIKE:
            if words and not token.spaced and token.kind == "name" and tokens[index - 1].kind == "name":
                words[-1] += token.text.lower()
            else:
                words.append(token.text.lower())
        elif token.kind in ("cmd", "big", "rel") or (token.kind == "op" and token.text in "^_/*+"):
            raise UnreadableAnswer("words and mathematics mixed")
    if not words:
        raise UnreadableAnswer("no words")
    return Text(tuple(words))
