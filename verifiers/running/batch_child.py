"""One process of `verify_batch`, from inside.

First line in: `{"path": [...]}`, where the parent imports from, answered by `{"ready"}`. Every further line is a list
of items; each item is answered by a line of its own, `{"verdict", "cpu_ms"}`, so that the parent knows which one a
crash or a deadline belongs to. `{"problem"}` is an error the user can mend, `{"bug"}` a traceback: both stop the batch.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from truegold.verifiers.errors import TruegoldError
from truegold.verifiers.processes.child_serve import Conversation
from truegold.verifiers.running.item import Item, Judge, to_json


def main() -> None:
    with Conversation() as conversation:
        _serve(conversation)


def _serve(conversation: Conversation) -> None:
    requests = conversation.requests()
    hello = next(requests, None)
    if hello is None:
        return
    sys.path[:] = hello["path"]  # so that an import string means here what it means to the parent
    conversation.reply({"ready": True})
    judge = Judge()
    for chunk in requests:
        for fields in chunk:
            conversation.reply(_answer(judge, Item(*fields)))


def _answer(judge: Judge, item: Item) -> dict[str, Any]:
    try:
        verdict, cpu_ms = judge.timed(item)
    except TruegoldError as error:
        return {"problem": [type(error).__name__, error.message, error.hint]}
    except Exception:
        return {"bug": traceback.format_exc()}
    return {"verdict": to_json(verdict), "cpu_ms": cpu_ms}


if __name__ == "__main__":
    main()
