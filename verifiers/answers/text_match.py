r"""Compares the text of an answer with gold (`exact`) or with a pattern (`regex`).

**`exact`**: the answer, or the whole response, is the same text as gold. These differences are ignored: the number of
blanks, case (unless `info["case_sensitive"]` is set), Unicode composition (NFC), a full stop at the end, quotes around
the answer, and a Latin spelling after a name: `孔子（Confucius）`. Synonyms and other punctuation are differences, and
so are `5` and `5.0`.

**`regex`**: the answer fits a pattern.

    info {"pattern": "\\d{4}-\\d{2}-\\d{2}"}                           the whole answer is a date
    info {"pattern": "(?i)\\bparis\\b", "full": false}                 the answer mentions Paris
    info {"pattern": "def \\w+\\(", "where": "final", "full": false}   the text after the thinking defines a function
    gold "colou?r", no pattern in info                                 gold is the pattern

`where` names the text to search. `answer` is the answer that the response commits to (`extract`), `final` the text
after the thinking, and `response` the whole response. With `full` the pattern must match all of the text, otherwise a
part. `flags` holds any of `i` (ignore case), `m` (`^` and `$` match at every line) and `s` (`.` matches a line break).

Patterns are run by RE2 (google-re2). Its time is linear in the text, so `(a+)+$` cannot stall a reward. RE2 has no
look-around and no back-references, writes `\z` for Python's `\Z`, and its `\d`, `\w`, `\s` and `\b` match ASCII only. A
pattern that cannot be compiled gives a verdict without a score. Its evidence holds the error.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from truegold.verifiers.extract import committed_answer, final_part, names_gold, without_hidden
from truegold.verifiers.extract.stated_names import bold_beside, without_gloss
from truegold.verifiers.gold import refers_elsewhere
from truegold.verifiers.options import AnswerVerifier, BadOption, switch_option, text_option, word_option
from truegold.verifiers.sandbox.errors import SetupError
from truegold.verifiers.verdict import Reason, Verdict

MAX_GOLD_CHARS = 100_000
"""Maximum length of gold, in characters. Gold is normalised for every response."""

MAX_PATTERN_CHARS = 2_000
"""Maximum length of a pattern, in characters. Long word lists are slow to compile."""
MAX_PATTERN_BYTES = 2**20
"""Maximum size of a compiled pattern in bytes. The time for each character of a text grows with this size."""
MAX_TEXT_CHARS = 400_000
"""Maximum length of a searched text, in characters. A longer text scores 0, since it could stall training."""
MAX_STEPS = 400_000_000
"""Maximum product of the number of characters and the size of the pattern: about a second of search."""
CACHED_PATTERNS = 256
SHOWN_CHARS = 200
MAX_QUOTED_CHARS = 2_000
_QUOTED = re.compile(
    r"""(?:《(?=.*》)|[「『](?=.*[」』])|“(?=.*”)|"(?=.*")|'(?=.*'))(?P<text>[^《》「」『』“”"]+?)[》」』”"']"""
)
"""A text with quotes or title marks around it."""
SEARCHED_TEXTS = ("answer", "final", "response")
"""Values of the option `where`."""


@dataclass(frozen=True, slots=True)
class ExactVerifier(AnswerVerifier):
    """Compares the answer with gold as text. Setting in `info`: `case_sensitive` (default false)."""

    options: ClassVar[tuple[str, ...]] = ("case_sensitive",)

    name: str = "exact"
    version: str = "9"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        case_sensitive = switch_option(info, "case_sensitive", False)
        if gold is None or not gold.strip() or refers_elsewhere(gold):
            return Verdict(None, Reason.GOLD_MISSING)
        if len(gold) > MAX_GOLD_CHARS:
            return Verdict(None, Reason.LIMIT, evidence={"gold_chars": len(gold), "limit": MAX_GOLD_CHARS})
        if not (final_text := final_part(response)):
            return Verdict(0.0, Reason.NO_ANSWER)
        normal_gold = _normalize(gold, case_sensitive)
        # The whole response is compared first, because gold itself may contain "the answer is".
        answer = committed_answer(response)
        in_bold = bold_beside(without_hidden(response), answer)
        for form, text in (("whole_response", final_text), ("bold", in_bold or "")):
            if normal_gold in _spellings(text, case_sensitive):
                return Verdict(1.0, Reason.MATCH, text, {"form": form})
        if answer is None:
            reason = Reason.UNREAD if names_gold(response, gold) else Reason.MISMATCH
            return Verdict(0.0, reason, None, {"form": "whole_response"})
        match = normal_gold in _spellings(answer.text, case_sensitive)
        return Verdict(float(match), Reason.MATCH if match else Reason.MISMATCH, answer.text, {"form": answer.form})

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return gold."""
        return gold


def _spellings(text: str, case_sensitive: bool) -> tuple[str, str, str]:
    """Return three forms of a text: normalised; also without a full stop; also without quotes and a Latin spelling."""
    normal = _normalize(text, case_sensitive)
    bare = normal.rstrip(".。")
    plain = without_gloss(" ".join(text.rstrip(".。").split()).strip("*"))
    quoted = _QUOTED.fullmatch(plain) if len(plain) <= MAX_QUOTED_CHARS else None
    return normal, bare, _normalize(plain if quoted is None else quoted["text"], case_sensitive)


def _normalize(text: str, case_sensitive: bool) -> str:
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return text if case_sensitive else unicodedata.normalize("NFC", text.casefold())


@dataclass(frozen=True, slots=True)
class RegexVerifier(AnswerVerifier):
    """Searches the answer or another part of the response for a pattern.

    Settings in `info`: `pattern` (default gold), `where` (default `answer`), `full` (default true for the answer, else
    false) and `flags` (default none).
    """

    options: ClassVar[tuple[str, ...]] = ("pattern", "where", "full", "flags")

    name: str = "regex"
    version: str = "1"

    def _judge(self, response: str, gold: str | None, info: Mapping[str, Any]) -> Verdict:
        option = text_option(info, "pattern", MAX_PATTERN_CHARS)
        where = word_option(info, "where", SEARCHED_TEXTS, "answer")
        full = switch_option(info, "full", where == "answer")
        flags = _read_flags(info)
        if option is None and (gold is None or not gold.strip()):
            return Verdict(None, Reason.GOLD_MISSING)
        pattern = (gold or "") if option is None else option
        compiled = _compile(pattern, flags)
        if isinstance(compiled, str):
            reason = Reason.GOLD_UNPARSED if option is None else Reason.VERIFIER_ERROR
            return Verdict(None, reason, evidence={"error": compiled, "pattern": pattern[:SHOWN_CHARS]})
        evidence = {"pattern": pattern[:SHOWN_CHARS], "where": where}
        return _search(compiled, _searched_text(response, where), full, evidence)

    def gold_response(self, gold: str, solution: str | None) -> str | None:
        """Return None, because no response can be made from a pattern."""
        return None


def _search(pattern: Any, searched: str | None, full: bool, evidence: Mapping[str, Any]) -> Verdict:
    if searched is None:
        return Verdict(0.0, Reason.NO_ANSWER, None, evidence)
    limit = min(MAX_TEXT_CHARS, MAX_STEPS // max(1, pattern.programsize))
    if len(searched) > limit:
        return Verdict(0.0, Reason.UNREAD, None, {**evidence, "chars": len(searched), "limit": limit})
    # A response from JSON may have lone surrogates, which RE2's UTF-8 cannot hold.
    searched = searched.encode("utf-8", "replace").decode()
    match = pattern.fullmatch(searched) if full else pattern.search(searched)
    if match is None:
        return Verdict(0.0, Reason.MISMATCH, searched[-SHOWN_CHARS:], evidence)
    return Verdict(1.0, Reason.MATCH, match.group()[:SHOWN_CHARS], evidence)


def _read_flags(info: Mapping[str, Any]) -> str:
    flags = info.get("flags", "")
    if isinstance(flags, str) and len(flags) <= 3 and set(flags) <= set("ims"):
        return "".join(sorted(set(flags)))
    raise BadOption(f"flags must be some of the letters i, m and s, got {str(flags)[:SHOWN_CHARS]!r}")


def _searched_text(response: str, where: str) -> str | None:
    if where == "answer":
        answer = committed_answer(response)
        return answer.text if answer else None
    return final_part(response) if where == "final" else response


@lru_cache(maxsize=CACHED_PATTERNS)
def _compile(pattern: str, flags: str) -> Any:
    """Return the compiled pattern, or a line with the error."""
    try:
        import re2
    except ImportError as error:
        raise SetupError(
            f"The verifier `regex` cannot be used ({error}).", "Install it: pip install google-re2."
        ) from error
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"the pattern has {len(pattern)} characters, the limit is {MAX_PATTERN_CHARS}"
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        detail = error.args[0] if error.args else error
        message = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
        return f"the pattern cannot be compiled: {message}. RE2 has no look-around and no back-references."
