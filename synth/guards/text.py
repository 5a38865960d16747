"""How the guards see a text: sentences, words without numbers, and the concepts that advice is made of.

"Don't forget to take away the 5 he gave."    sentence; words don't, forget, to, take, away, ...; forget, subtract
"别忘了减去送出的5个。"                           sentence; words 别 忘 了 减 去 送 出 的 个; forget, subtract
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_HIDDEN = re.compile(r"[\u00ad\u200b-\u200f\u2060\ufeff]")
_EMPHASIS = re.compile(r"[*_`~]+")
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]")
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|(?<=[。！？；：])|\n+")
_LATEX_TEXT = re.compile(r"\\(?:text|mbox|textbf|textit|mathrm)\s*\{([^{}]*)\}")
_LATEX_COMMAND = re.compile(r"\\[a-zA-Z]+")
HAN = re.compile(r"[\u3400-\u9fff]")
OPERATION = re.compile(
    r"[\d)}\]]\s*(?:[-+*/^=<>≤≥×÷·]|\\(?:times|cdot|div|pm|le|ge|neq))\s*[-\d({\[\\a-zA-Z$]"
    r"|=|\\d?frac\b|\\sqrt\b|\bdef \w+\(|\breturn\b|\d\s*(?:等于|乘以?|除以|减去?|加上?)"
    r"|\b\d[\d.,]*\s+(?:plus|minus|times|divided by|multiplied by|more than|less than)\b"
)
"""A step of a derivation: from here on an output has something of its own to look back to."""


def normal(text: str) -> str:
    """Return a text as it is compared: NFKC, lower case, without marks of emphasis and characters that nobody sees."""
    text = unicodedata.normalize("NFKC", _HIDDEN.sub("", text))
    return _EMPHASIS.sub("", _LATEX_TEXT.sub(r" \1 ", text)).replace("’", "'").casefold()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, lines taken for some."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def words(text: str) -> list[str]:
    """Return the words of a normal text, single Chinese characters among them; numbers and commands are none."""
    return _WORD.findall(_LATEX_COMMAND.sub(" ", text))


def runs(of_words: list[str], length: int) -> set[tuple[str, ...]]:
    """Return all runs of so many words."""
    return {tuple(of_words[start : start + length]) for start in range(len(of_words) - length + 1)}


def content_stems(text: str) -> set[str]:
    """Return what the words of a normal text mean, as far as it is worth comparing: concepts, and stems of the rest."""
    stems = {_stem(word) for word in words(text) if not HAN.match(word) and len(word) > 2 and word not in _IDLE}
    return concepts(text) | (stems - _concept_stems())


def concepts(text: str) -> set[str]:
    """Return the concepts of advice that a normal text names, in English or Chinese."""
    return {name for name, pattern in _concept_patterns() if pattern.search(text)}


def _stem(word: str) -> str:
    for ending in ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


_IDLE = frozenset(
    "the and are was were for with that this these those from into than then them they their there here have has had "
    "not but you your our its his her him she who what which when where how all any can could should would will may "
    "must let get gets got does did done been being one two three also just only very more most some such each other "
    "per out off over under about because since thus hence therefore answer number numbers value problem question "
    "step steps solution now".split()
)
"""Words that come and go in any derivation."""

CONCEPTS: tuple[tuple[str, str, str], ...] = (
    ("subtract", r"subtract\w*|minus|tak(?:e|es|ing) away|took away|deduct\w*|decrease\w*", "减|扣除|扣掉"),
    ("add", r"add(?:s|ed|ing|ition)?|plus|increase\w*|adding up", "加|相加|求和"),
    ("multiply", r"multipl\w*|times|product", "乘|倍|积"),
    ("divide", r"divid\w*|division|quotient|split\w*", "除以|相除|平分|商"),
    (
        "forget",
        r"forg[eo]t\w*|neglect\w*|overlook\w*|omit\w*|ignor\w*|left out|leav\w+ out|skip\w*|miss(?:ed|es|ing)?",
        "忘|漏|忽略|忽视|遗漏|没有考虑|没考虑",
    ),
    (
        "mistake",
        r"mistak\w*|errors?|wrong\w*|incorrect\w*|slips?|erroneous\w*|faulty|flaw\w*|not right|went astray",
        "错|不对|不正确|失误",
    ),
    ("instead", r"instead|rather than|in place of", "而不是|而非|不是.{0,12}而是|应该是"),
    (
        "confuse",
        r"confus\w*|mix\w* up|mistook|misread\w*|misinterpret\w*|misunderst\w*",
        "混淆|弄混|误读|误解|看错|理解错",
    ),
    ("first", r"first(?:ly)?|before(?:hand)?|at the start|beforehand", "首先|先|之前"),
    ("after", r"after(?:wards)?|later|subsequent\w*", "之后|然后|再"),
    ("order", r"order|sequence|precedence", "顺序|次序|先后"),
    ("sign", r"signs?|negative|minus sign", "符号|负号|负数|正负"),
    ("unit", r"units?|convert\w*|conversion", "单位|换算|转换"),
    ("double", r"twice|doubl\w*|two times", "两次|双倍|两倍|重复"),
    ("half", r"half|halv\w*", "一半|半"),
    ("count", r"count\w*", "数|计数|个数"),
    ("check", r"check\w*|verif\w*|double-check\w*|test\w*", "检查|核对|验证|检验"),
    ("careful", r"careful\w*|attention|watch out|caution\w*|mind", "小心|注意|仔细|留意|当心"),
    ("remember", r"rememb\w*|keep in mind|bear in mind|recall", "记住|记得|牢记|别忘"),
    ("remain", r"remain\w*|left over|leftover|rest", "剩|余下|其余"),
    ("total", r"total\w*|altogether|sum|overall", "总|一共|合计|和"),
    ("percent", r"percent\w*|%|discount\w*", "百分|折|%"),
    ("round", r"round\w*|decimal\w*", "四舍五入|小数|取整"),
    ("carry", r"carr(?:y|ied|ying)|borrow\w*", "进位|退位|借位"),
    ("bracket", r"parenthes\w*|brackets?", "括号"),
    ("equation", r"equations?|formula\w*", "方程|公式|等式"),
    ("case", r"cases?|edge|corner", "情况|情形|分类|边界"),
    ("boundary", r"bound\w*|off by one|off-by-one|index\w*|inclusive|exclusive", "边界|下标|越界|差一"),
    ("loop", r"loops?|iterat\w*", "循环|迭代"),
    ("empty", r"empty|zero length", "空"),
    ("condition", r"condition\w*|constraint\w*|requir\w*", "条件|要求|限制"),
    ("whole", r"entire\w*|whole|full|complete\w*", "整个|全部|完整"),
    ("direction", r"direction\w*|opposite|revers\w*|backward\w*", "方向|相反|反过来"),
    ("time", r"hours?|minutes?|days?|weeks?|months?|years?", "小时|分钟|天|周|月|年"),
    ("given_away", r"g[ai]v\w+ away|gave|donat\w*|hand\w* over", "送|给出|捐"),
    ("initial", r"original\w*|initial\w*|starting", "原来|原先|原本|最初"),
    ("reduced", r"reduc\w*|lower\w*|smaller|lessen\w*|drop\w*", "降|折后|便宜"),
    ("final", r"final\w*|last|in the end|at the end|end", "最后|最终|末"),
    ("both", r"both|each of|two groups", "两|都|同时"),
    ("belong", r"belong\w*|members?|lies? in|contain\w*|elements?", "属于|包含"),
    ("mean", r"averag\w*|means?", "平均"),
    ("factor", r"factors?|coefficients?", "系数|因数"),
    ("term", r"terms?|constants?", "项|常数"),
    ("remove", r"remov\w*|eliminat\w*|discard\w*|tak\w+ off", "去掉|剔除|除去"),
    ("must", r"must|has to|have to|needs? to|necessary|should|ought", "必须|应该|应当|需要|要"),
    ("receive", r"receiv\w*|gain\w*|buys?|bought|gets?", "得到|收到|买"),
)
"""A name for each, with what says so in English and in Chinese."""


@cache
def _concept_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(rf"\b(?:{english})\b|{chinese}")) for name, english, chinese in CONCEPTS)


@cache
def _concept_stems() -> frozenset[str]:
    """Return the stems of words that name a concept, which are not to be counted twice."""
    plain = re.compile(r"[a-z]{3,}")
    return frozenset(_stem(word) for _, english, _ in CONCEPTS for word in plain.findall(english.replace("\\w", " ")))
