r"""Names of mathematics: commands of LaTeX, functions, constants, relations, and words that are numbers or values.

Units are in `measures`; words that only lead to a value stand where they are read. `COMMANDS` also serves to tell
`\\frac`, a command whose backslash was doubled, from `\\x`, the start of a row.
"""

from __future__ import annotations

GREEK: dict[str, str] = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "upsilon": "υ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
GREEK_NAMES = frozenset(GREEK) | {"varepsilon", "varphi", "vartheta", "varrho", "varsigma", "ell", "hbar"}
CANONICAL_GREEK = {
    "varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta", "varrho": "rho", "varsigma": "sigma",
}  # fmt: skip

FUNCTIONS: dict[str, str] = {
    **{name: name for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc",
        "sinh", "cosh", "tanh", "coth", "sech", "csch", "arcsinh", "arccosh", "arctanh",
        "ln", "log", "lg", "exp", "sqrt", "cbrt", "abs", "floor", "ceil", "max", "min", "gcd", "lcm", "det", "sgn",
        "Re", "Im", "binom", "comb", "perm", "factorial", "cis",
    )},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "acot": "arccot", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "arsinh": "arcsinh", "arcosh": "arccosh", "artanh": "arctanh", "arcctg": "arccot",
    "tg": "tan", "ctg": "cot", "cotg": "cot", "arctg": "arctan", "cosec": "csc", "ceiling": "ceil", "sign": "sgn",
    "cuberoot": "cbrt", "nCr": "binom", "Abs": "abs",
}  # fmt: skip
"""From spelling to name, in plain letters and as commands alike."""

CONSTANTS: dict[str, str] = {
    "pi": "pi", "infty": "inf", "infinity": "inf", "Infinity": "inf", "inf": "inf", "oo": "inf",
}  # fmt: skip

RELATIONS: dict[str, str] = {
    "=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">=", "!=": "!=", "==": "=", "=<": "<=", "=>": "=>", "le": "<=",
    "leq": "<=", "leqslant": "<=", "leqq": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "geqq": ">=", "ne": "!=",
    "neq": "!=", "lt": "<", "gt": ">", "approx": "~", "simeq": "~", "cong": "~", "sim": "~", "doteq": "~",
    "equiv": "==", "in": "in", "notin": "notin", "ni": "ni", "subset": "subset", "subseteq": "subset",
    "coloneqq": "=", "triangleq": "=", "propto": "propto", "mid": "|", "parallel": "||", "perp": "perp",
    "to": "to", "rightarrow": "to", "Rightarrow": "=>", "implies": "=>", "Longrightarrow": "=>", "iff": "<=>",
    "Leftrightarrow": "<=>", "mapsto": "to", "longrightarrow": "to",
}  # fmt: skip
"""From symbol or command to relation."""

IGNORED = frozenset({
    "left", "right", "middle", "displaystyle", "textstyle", "scriptstyle", "limits", "nolimits", "quad", "qquad",
    "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl", "biggr", "Biggl", "Biggr", "bigm",
    "hspace", "vspace", "phantom", "hphantom", "thinspace", "medspace", "thickspace", "negthinspace", "enspace",
    "mathstrut", "strut", "nonumber", "notag", "rm", "bf", "it", "tt", "normalsize", "large", "Large", "small",
    "hfill", "hline", "mathopen", "mathclose", "mathrel", "mathbin", "mathord", "allowbreak", "relax", "kern",
})  # fmt: skip
"""Commands that say nothing."""

TYPEFACES = frozenset({
    "mathbf", "mathit", "boldsymbol", "bm", "mathcal", "mathscr", "mathfrak", "mathsf", "mathtt", "mathbb", "Bbb",
    "vec", "overrightarrow", "hat", "widehat", "tilde", "widetilde", "overline", "bar", "underline", "dot", "ddot",
    "color", "boxed", "fbox", "cancel", "pmb", "overbrace", "underbrace", "mathop", "ensuremath",
})  # fmt: skip
"""Commands that dress their argument."""

TEXT_COMMANDS = frozenset({
    "text", "textrm", "textnormal", "mathrm", "mbox", "textbf", "textit", "textsf", "operatorname", "hbox", "texttt",
    "emph", "mathnormal", "textup",
})  # fmt: skip
"""Commands whose argument is words."""

FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac", "flatfrac"})
BINOMIALS = frozenset({"binom", "dbinom", "tbinom"})

MATRIX_ENVIRONMENTS = frozenset({
    "matrix", "pmatrix", "bmatrix", "Bmatrix", "vmatrix", "Vmatrix", "smallmatrix", "array", "tabular", "psmallmatrix",
    "bsmallmatrix",
})  # fmt: skip
LINE_ENVIRONMENTS = frozenset({
    "aligned", "align", "gathered", "gather", "split", "equation", "cases", "dcases", "eqnarray", "alignat", "multline",
})  # fmt: skip
"""The environments that are a matrix, and those that hold lines."""

BIG_OPERATORS = {
    "sum": "sum", "prod": "prod", "int": "int", "lim": "lim", "iint": "int2", "iiint": "int3", "oint": "int2",
}  # fmt: skip

COMMANDS = frozenset[str]().union(
    filter(str.isalpha, RELATIONS), GREEK_NAMES, FUNCTIONS, BIG_OPERATORS, FRACTIONS, BINOMIALS, TEXT_COMMANDS,
    TYPEFACES, IGNORED,
    {"begin", "end", "cdot", "times", "div", "pm", "mp", "infty", "cup", "cap", "setminus", "emptyset", "varnothing",
       "circ", "ldots", "cdots", "dots", "langle", "rangle", "lfloor", "rfloor", "lceil", "rceil", "lvert", "rvert",
       "angle", "triangle", "forall", "exists", "lor", "land", "vee", "wedge", "pmod", "mod", "bmod", "usqrt", "over",
       "textcirc", "degree", "textdegree", "prime", "ast", "star", "backslash", "choose"}
)  # fmt: skip
"""Every command that the reader does something with."""

_COMMAND_SYMBOLS = {
    "lor": ("sep", "or"), "vee": ("sep", "or"), "land": ("sep", "and"), "wedge": ("sep", "and"),
    "quad": ("gap", ""), "qquad": ("gap", ""), "newline": ("gap", ""), "blank": ("gap", ""), "par": ("gap", ""),
    "cdot": ("op", "*"), "times": ("op", "*"), "ast": ("op", "*"), "div": ("op", "/"), "over": ("op", "over"),
    "choose": ("op", "choose"),
    "pm": ("op", "±"), "mp": ("op", "∓"), "colon": ("op", ":"), "prime": ("op", "'"),
    "degree": ("op", "°"), "textdegree": ("op", "°"), "circ": ("op", "∘"), "textcirc": ("op", "∘"),
    "cup": ("op", "cup"), "cupdot": ("op", "cup"), "bigcup": ("op", "cup"), "sqcup": ("op", "cup"),
    "cap": ("op", "cap"), "setminus": ("op", "minus"), "backslash": ("op", "minus"), "smallsetminus": ("op", "minus"),
    "langle": ("open", "<"), "rangle": ("close", ">"), "lfloor": ("open", "floor"), "rfloor": ("close", "floor"),
    "lceil": ("open", "ceil"), "rceil": ("close", "ceil"), "lbrace": ("open", "{"), "rbrace": ("close", "{"),
    "lparen": ("open", "("), "rparen": ("close", ")"), "lbrack": ("open", "["), "rbrack": ("close", "]"),
    "lvert": ("bar", "|"), "rvert": ("bar", "|"), "vert": ("bar", "|"), "mid": ("bar", "|"), "Vert": ("bar", "||"),
    "imath": ("name", "i"), "jmath": ("name", "j"),
    "top": ("name", "T"), "intercal": ("name", "T"), "oslash": ("cmd", "emptyset"), "gets": ("rel", "to"),
    "sqrt": ("cmd", "sqrt"), "mathbb": ("cmd", "mathbb"), "Bbb": ("cmd", "mathbb"),
}  # fmt: skip

_COMMAND_FAMILIES: dict[str, tuple[str, str]] = {
    **{name: ("big", text) for name, text in BIG_OPERATORS.items()},
    **{name: ("name", CANONICAL_GREEK.get(name, name)) for name in GREEK_NAMES},
    **{name: ("rel", text) for name, text in RELATIONS.items()},
    **{name: ("const", text) for name, text in CONSTANTS.items()},
    **{name: ("func", text) for name, text in FUNCTIONS.items()},
    **dict.fromkeys(BINOMIALS, ("cmd", "binom")),
    **dict.fromkeys(FRACTIONS, ("cmd", "frac")),
}
"""The later lines win: `pi` is a constant rather than a letter."""

COMMAND_TOKENS: dict[str, tuple[str, str]] = {
    **{name: token for name, token in _COMMAND_FAMILIES.items() if name not in IGNORED},
    **_COMMAND_SYMBOLS,
}
"""From the commands of LaTeX that are one token to the kind and the text of that token."""

STOP_WORDS = frozenset({"a", "an", "the", "is", "are", "be", "of"})
"""Words that do not count when two phrases are compared."""

NAMED_WORDS: dict[str, str] = {
    "no solution": "empty", "no solutions": "empty", "no real solution": "empty", "no real solutions": "empty",
    "no integer solutions": "empty", "no such": "empty", "empty set": "empty", "the empty set": "empty",
    "none": "empty", "there are no solutions": "empty", "there is no solution": "empty", "无解": "empty",
    "不存在": "empty",
    "does not exist": "undefined", "dne": "undefined", "undefined": "undefined", "not defined": "undefined",
    "all real numbers": "reals", "all reals": "reals", "any real number": "reals", "all real x": "reals",
    "the set of all real numbers": "reals", "real numbers": "reals",
    "all integers": "integers", "all positive integers": "positive integers", "infinity": "inf",
    "positive infinity": "inf", "negative infinity": "-inf", "minus infinity": "-inf", "infinite": "inf",
    "yes": "true", "true": "true", "correct": "true", "是": "true", "正确": "true", "对": "true", "√": "true",
    "no": "false", "false": "false", "incorrect": "false", "否": "false", "错误": "false", "错": "false",
    "不正确": "false", "不是": "false",
}  # fmt: skip
"""From words that are a value to its name."""
