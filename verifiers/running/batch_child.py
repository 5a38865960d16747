"""Main program of a child process of `verify_batch`.

The first line of input is `{"path": [...]}`, the parent's `sys.path`; the reply is `{"ready": true}`. Every further
line is a list of items. Each item has a separate line of reply, so that the parent knows which item a crash or a
timeout belongs to:

    {"verdict", "costs"}    the verdict
    {"user_error"}          an error that the user can correct; it stops the batch
    {"bug"}                 a traceback; it stops the batch
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
