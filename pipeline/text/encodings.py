"""Repairs texts that were decoded with a wrong character set, and reports those without an unambiguous repair.

"It's 5 km to the cafÃ©."         repaired: "It's 5 km to the café."       (ftfy, the edit `mojibake`)
"鈥淲hat is the value of 鈭?3鈥?"   reported: UTF-8 read as gb18030; some bytes are lost
"ÖÐÎÄ"                            reported: gb18030 read as latin-1
"a train trav\ufffdls"            reported: U+FFFD replaces a lost character

Cyrillic letters that look like Latin letters are replaced in words of mixed scripts:

"a triаngle", with a Cyrillic а           ->  "a triangle"
"Сonsider", with a Cyrillic С             ->  "Consider"
"2πr", "ΔABC", "cos α", "треугольник"     unchanged
"""

from __future__ import annotations

import re

_NOT_ASCII = re.compile(r"[^\x00-\x7f]+(?:[ -~]{0,2}[^\x00-\x7f]+){0,40}")
"""A stretch of characters beyond ASCII, with gaps of up to two ASCII characters."""
_ASCII_LETTER = re.compile(r"[A-Za-z]")
_LOST = re.compile("\ufffd|锟斤拷|烫烫烫|屯屯屯")
"""Remains of characters that were lost in decoding."""
_QUESTION_MARK_LETTER = re.compile(r"[a-z]\?{1,3}[a-z]")
"""A question mark inside a word. It replaced a letter: "tra?n"."""
_WRONG_CHARSETS = ("gb18030", "big5", "shift_jis", "euc_kr", "cp1251", "koi8_r", "cp850")
_ASIAN_CHARSETS = ("gb18030", "big5", "shift_jis", "euc_kr")
_HIGH_LATIN = re.compile("[\u00a1-\u00ff]{4,}")
"""A run of letters and signs of Latin-1, as in gb18030 text read as Latin-1."""
MIN_DISTINCT = 3
"""The minimum number of distinct characters of misread text. A repeated sign, such as "××××", masks a name or a
number."""
_ADDRESS_OR_CODE = re.compile(r"https?://\S+|www\.\S+|[\w./-]*[./][\w-]+\?[\w.&%-]+=\S*|```.*?```|`[^`\n]*`", re.DOTALL)
"""A URL or a path, such as `images/q5.png?raw=png`, or Markdown code, in which "x?a:b" is an operator."""
_RARE_HAN = re.compile("[鈥鈭鈮鈫锛銆鐨鏄鍦湁涓绗搴闂璁嗙瓟娓鎬庢牱锟鈻虏掳脳]")
"""Characters that begin the bytes of common punctuation, signs and words when UTF-8 is read as GBK."""
MIN_RARE = 3
"""The minimum number of characters of `_RARE_HAN` in a misread stretch. A text mostly in Latin letters needs only
one."""
_LATIN_REMAINS = re.compile(
    "(?<=[A-Za-z])[\u00e2\u00c2](?=(?:s|t|re|ll|ve)?[\\s.,])|\u00e2\u20ac|\u00c3[\u0080-\u00bf]|\u00c2[\u00a0-\u00bf]|\u00d0[\u00b0-\u00bf]"
)
"""The remains of UTF-8 that was read as Latin-1 and lost its control characters."""

_SUSPECT = re.compile("[\x80-\x84\x86-\x9f]|[ÂÃâÐÑÎÏÅÄÕãäåæçèéвРСГОΓ├‚√¬Œ‰][^\x00-\x7f\\w]|Γ[ÇÉé]|‚Ä|Ã\\w|â€|вЂ|О[±-¿]")
"""A quick test: matches every text with mojibake. So ftfy is imported only if needed."""


def repair_mojibake(text: str) -> str:
    """Return the text with mojibake repaired, which comes from decoding as Windows-1252, Latin-1 and the like."""
    if text.isascii() or not _SUSPECT.search(text):
        return text
    # Imported here, because the import is slow and few texts need it.
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    # U+0085 alone is a line end in the output of some programs.
    return fix_encoding(text) if is_bad(text.replace("\x85", "\n")) else text


def misread_as(text: str) -> tuple[str, str] | None:
    """Return the kind of wrong decoding and the part of the text that shows it, or None for a sound text."""
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


CYRILLIC = {
    pair[0]: pair[1]
    for pair in (
        "аa еe оo рp сc уy хx іi јj ѕs һh ԁd ԛq ԝw кk АA ВB ЕE КK МM НH ОO РP СC ТT ХX УY ІI ЈJ ЅS ԌG ԚQ ԜW"
    ).split()
}
"""Cyrillic letters, each with the Latin letter that it looks like."""
GREEK = {
    pair[0]: pair[1] for pair in "οo αa ρp ιi κk υu χx νv τt ηn γy ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX".split()
}
"""Greek letters, each with the Latin letter that it looks like. Most are symbols in mathematics. So they are replaced
only for comparisons."""
_TO_LATIN = str.maketrans(CYRILLIC)
_HAS_CYRILLIC = re.compile("[\u0400-\u052f]")
_MIXED_WORD = re.compile(r"(?=[A-Za-z]*[\u0400-\u052f])(?=[\u0400-\u052f]*[A-Za-z])[A-Za-z\u0400-\u052f]+")
"""A word with letters of both scripts."""


def replace_look_alikes(text: str) -> str:
    """Return the text with Cyrillic letters replaced in words that mix Cyrillic and Latin.

    A word is unchanged if one of its Cyrillic letters does not look like a Latin letter.
    """
    if text.isascii() or not _HAS_CYRILLIC.search(text):
        return text
    return _MIXED_WORD.sub(_to_latin, text)


def _to_latin(match: re.Match[str]) -> str:
    latin = match[0].translate(_TO_LATIN)
    return latin if latin.isascii() else match[0]
