"""Main program of a child process of `verify_batch`: reads items from its input and replies with verdicts.

    Input                           Reply
    {"path": [...]}                 {"ready": true}
    [[response, gold, ...], ...]    one line for each item, which is one of:
                                        {"verdict": ..., "costs": ...}
                                        {"user_error": ...}    an error that the user can correct; it stops the batch
                                        {"bug": "Traceback"}   any other error; it stops the batch

The first line of input is the parent's `sys.path`. Every other line is a list of items. Because each item has its own
line of reply, the parent knows at which item a process crashed or timed out.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from truegold.verifiers.running.batch import Item, ResolvedVerifiers, verdict_to_json
from truegold.verifiers.sandbox.child_process import Conversation
from truegold.verifiers.sandbox.errors import TruegoldError


def main() -> None:
    """Judge items until the parent closes the connection."""
    with Conversation() as conversation:
        requests = conversation.requests()
        if (hello := next(requests, None)) is None:
            return
        # With the parent's path, import strings refer to the same modules as in the parent.
        sys.path[:] = hello["path"]
        conversation.reply({"ready": True})
        verifiers = ResolvedVerifiers()
        for chunk in requests:
            for fields in chunk:
                conversation.reply(_answer(verifiers, Item(*fields)))


def _answer(verifiers: ResolvedVerifiers, item: Item) -> dict[str, Any]:
    try:
        verdict, *costs = verifiers.judge(item)
    except TruegoldError as error:
        return {"user_error": [type(error).__name__, error.message, error.hint]}
    except Exception:
        return {"bug": traceback.format_exc()}
    return {"verdict": verdict_to_json(verdict), "costs": costs}


if __name__ == "__main__":
    main()
