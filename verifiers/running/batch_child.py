"""One process of `verify_batch`, from inside.

The first line in is `{"path": [...]}`, where the parent imports from; the answer is `{"ready": true}`. Every further
line is a list of items; each is answered by a line of its own, `{"verdict", "costs"}`, so that the parent
knows which one a crash or a deadline belongs to. `{"user_error"}` is an error that the user can mend, `{"bug"}` a
traceback: both stop the batch.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

from truegold.verifiers.running.batch import Item, ResolvedVerifiers, verdict_to_json
from truegold.verifiers.sandbox.child_process import Conversation
from truegold.verifiers.sandbox.errors import TruegoldError


def main() -> None:
    """Judge items until the parent hangs up."""
    with Conversation() as conversation:
        requests = conversation.requests()
        if (hello := next(requests, None)) is None:
            return
        # An import string then means here what it means to the parent.
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
