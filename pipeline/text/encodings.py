"""Text that was decoded with a wrong character set: repaired where that has one reading, else told.

"It's 5 km to the cafÃ©."         repaired: "It's 5 km to the café."       (ftfy, the edit `mojibake`)
"鈥淲hat is 鈭?3鈥?"                told: UTF-8 read as gb18030, and some bytes are lost
"ÖÐÎÄ"                            told: gb18030 read as latin-1
"a train trav\ufffdls"            told: U+FFFD stands where a character was
"""

from __future__ import annotations

import re

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+(?:[ -~]{0,2}[^\x00-\x7f]+){0,40}")
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_LOST = re.compile("\ufffd|锟斤拷|烫烫烫|屯屯屯")
_QUESTION_MARK_LETTER = re.compile(r"[a-z]\?{1,3}[a-z]")
_WRONG_CHARSETS = ("gb18030", "big5", "shift_jis", "euc_kr", "cp1251", "koi8_r", "cp850")
_ASIAN_CHARSETS = ("gb18030", "big5", "shift_jis", "euc_kr")
_HIGH_LATIN = re.compile("[\u00a1-\u00ff]{4,}")
MIN_DISTINCT = 3
"""Text has at least this many different bytes; the same sign again and again, "××××", masks a name or a number."""
_ADDRESS_OR_CODE = re.compile(r"https?://\S+|www\.\S+|[\w./-]*[./][\w-]+\?[\w.&%-]+=\S*|```.*?```|`[^`\n]*`", re.DOTALL)
"""An address, of a file too: `images/q5.png?raw=png`; code in Markdown, where "x?a:b" is a choice."""
_RARE_HAN = re.compile("[鈥鈭鈮鈫锛銆鐨鏄鍦湁涓绗搴闂璁嗙瓟娓鎬庢牱锟鈻虏掳脳]")
"""Characters that begin the bytes of common punctuation, signs and words when UTF-8 is read as GBK."""
MIN_RARE = 3
_LATIN_REMAINS = re.compile(
    "(?<=[A-Za-z])[\u00e2\u00c2](?=(?:s|t|re|ll|ve)?[\\s.,])|\u00e2\u20ac|\u00c3[\u0080-\u00bf]|\u00c2[\u00a0-\u00bf]|\u00d0[\u00b0-\u00bf]"
)
"""The remains of UTF-8 that was read as Latin-1 and lost its control characters."""

_SUSPECT = re.compile("[\x80-\x84\x86-\x9f]|[ÂÃâÐÑÎÏÅÄÕãäåæçèéвРСГОΓ├‚√¬Œ‰][^\x00-\x7f\\w]|Γ[ÇÉé]|‚Ä|Ã\\w|â€|вЂ|О[±-¿]")
"""Pairs of characters that mojibake begins with; without one the package need not be loaded."""


def repair_mojibake(text: str) -> str:
    """Return the text as it was before it was decoded as Windows-1252, Latin-1 and their like, or else unchanged."""
    if text.isascii() or not _SUSPECT.search(text):
        return text
    # Imported here, because few texts need it, and importing takes time.
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    # U+0085 alone is the end of a line, as some programs write it.
    return fix_encoding(text) if is_bad(text.replace("\x85", "\n")) else text


def misread_as(text: str) -> tuple[str, str] | None:
    """Return a sign that the text was decoded wrongly, and the part that shows it, or None if there is none."""
    text = _ADDRESS_OR_CODE.sub(" ", text)
    if match := _QUESTION_MARK_LETTER.search(text):
        return "a question mark inside a word", text[max(0, match.start() - 20) : match.end() + 20]
    if text.isascii():
        return None
    if match := _LOST.search(text):
        return "characters are lost", text[max(0, match.start() - 20) : match.end() + 20]
    if match := _LATIN_REMAINS.search(text):
        return "UTF-8 read as latin-1", text[max(0, match.start() - 20) : match.end() + 20]
    latin = len(_ASCII_LETTER.findall(text))
    for match in _NOT_ASCII.finditer(text):
        if sign := _sign(match[0], latin):
            return sign, match[0]
    return None


def _sign(run: str, latin: int) -> str | None:
    if len(_RARE_HAN.findall(run)) >= MIN_RARE or (latin > 3 * len(run) and _RARE_HAN.search(run)):
        return "UTF-8 read as gb18030"
    for charset in _WRONG_CHARSETS:
        restored = _recode(run, charset, "utf-8")
        if restored is not None and len(restored) < len(run) and not restored.isascii() and restored.isprintable():
            return f"UTF-8 read as {charset}"
    match = _HIGH_LATIN.search(run)
    if match is not None and len(set(match[0])) >= MIN_DISTINCT and any(map(str.isalpha, match[0])):
        for charset in _ASIAN_CHARSETS:
            restored = _recode(match[0], "latin-1", charset)
            if restored is not None and all("\u3041" <= char <= "\uffef" for char in restored):
                return f"{charset} read as latin-1"
    return None


def _recode(text: str, written_as: str, read_as: str) -> str | None:
    try:
        return text.encode(written_as).decode(read_as)
    except (UnicodeEncodeError, UnicodeDecodeError):
        return None
