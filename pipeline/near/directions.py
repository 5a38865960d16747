"""Reads which way the amounts of a story move: in when bought or found, out when sold, lost or given away.

Two texts in which an amount moves in opposite directions are taken as different problems:

    "A shop has 16 coins. It sells 10 and loses 4."            10 out, 4 out
    "A shop has 16 eggs. It gets 10 more and buys 4 more."     10 in, 4 in       another problem
    "Zoe has 9 pens. She buys 11 more."                         9 held, 11 in

An amount takes the direction of the verb before it, if the verb is at most MAX_DISTANCE characters away. A rewording
may say "gets" for "buys", but hardly ever "sells". Some verbs are not read. "takes" has no clear direction, "gives" may
become "receives" in a rewording, and in payments the money moves the other way.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_DISTANCE = 30
"""The maximum number of characters between a verb and its amount: "sells each of them 4"."""
LONGEST_VERB = 20
"""The maximum number of characters of a verb."""
_IN = (
    r"gets?|got|gotten|buys?|buying|bought|finds?|finding|found|receives?|receiving|received|earns?|earning|earned|wins?"
    r"|winning|won|gains?|gaining|gained|collects?|collecting|collected|acquires?|acquired|purchases?|purchased"
)
_OUT = (
    r"sells?|selling|sold|loses?|losing|lost|(?:gives?|giving|gave|given) away|donates?|donating|donated|eats?|eating"
    r"|ate|eaten|throws?|threw|discards?|discarded|removes?|removed|(?:gets?|got) rid of|(?:takes?|took) (?:out|away)"
)
_HELD = r"has|have|had|(?:starts?|started|begins?|began) with|there (?:are|were|is|was)"
_CHINESE_IN = r"买来|买进|又买|买了|得到|收到|捡到|获得|运来|运进"
_CHINESE_OUT = r"卖出|卖掉|卖了|丢了|丢掉|送给|送走|用去|用了|吃了|吃掉|运走|运出|借出"
_EVENT = re.compile(
    rf"\b(?P<out>{_OUT})\b|\b(?P<in>{_IN})\b(?!\s+(?:on|off|up|out|to)\b)|\b(?P<held>{_HELD})\b"
    rf"|(?P<han_in>{_CHINESE_IN})|(?P<han_out>{_CHINESE_OUT})|(?P<end>[.?!;,。！？；，](?!\d))",
    re.IGNORECASE,
)
"""A verb with a direction, or a mark that ends its clause. "gets on" and "finds out" do not match."""
_AMOUNT = re.compile(r"(?<![A-Za-z\d.$¥])\d[\d,]*(?:\.\d+)?(?![A-Za-z\d/])")
"""A count, such as "1,200". "$5", "x2" and "3cm" do not match."""
_DIRECTION = {"in": 1, "han_in": 1, "out": -1, "han_out": -1, "held": 0}
"""The direction of each group of `_EVENT`."""


@lru_cache(2**14)
def read_directions(text: str) -> dict[str, int]:
    """Return the direction of each amount: 1 for in, -1 for out, 0 for held from the start.

    An amount whose mentions have different directions is left out.
    """
    seen: dict[str, set[int]] = {}
    last = 0
    for amount in _AMOUNT.finditer(text):
        start = amount.start()
        events = list(_EVENT.finditer(text, max(last, start - MAX_DISTANCE - LONGEST_VERB), start))
        event = events[-1] if events else None
        last = amount.end()
        if event is not None and event.lastgroup != "end" and start - event.end() <= MAX_DISTANCE:
            seen.setdefault(amount[0].replace(",", ""), set()).add(_DIRECTION[str(event.lastgroup)])
    return {amount: min(ways) for amount, ways in seen.items() if len(ways) == 1}


def directions_differ(left: dict[str, int], right: dict[str, int]) -> bool:
    """Return whether an amount moves in opposite directions in two texts, or two amounts changed places.

    Two amounts changed places if each text holds one of them from the start, and it moves in the other text:

        "She has 9 pens and buys 11."    "She has 11 pens and buys 9."
    """
    pairs = {(direction, right[amount]) for amount, direction in left.items() if amount in right}
    starts_left = any(here == 0 != there for here, there in pairs)
    starts_right = any(there == 0 != here for here, there in pairs)
    return any(here * there < 0 for here, there in pairs) or (starts_left and starts_right)
