"""Child of `code_plain.py`: loads a reference program and makes calls. One JSON request on stdin, results on stdout.

python code_plain_child.py FOLDER     FOLDER holds the package `inside`: alone it is imported faster than truegold
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from typing import Any

MAX_ADDRESS_SPACE = 4 << 30


def main() -> None:
    """Run the calls of one program and print their results."""
    sys.path.insert(0, sys.argv[1])
    decode = importlib.import_module("inside.wire.decoding").decode
    encode = importlib.import_module("inside.wire.encoding").encode
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
    request = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # programs print
    namespace: dict[str, Any] = {"__name__": "solution"}
    exec(compile(request["program"], "solution.py", "exec", dont_inherit=True), namespace)
    replies = []
    for call in request["calls"]:
        args, kwargs = decode(call)
        try:
            replies.append({"r": encode(eval(request["name"], namespace)(*args, **kwargs), {})})
        except Exception as error:
            replies.append({"raised": f"{type(error).__name__}: {error}"})
    out.write(json.dumps(replies))  # `json.dump` is many times slower
    out.close()


if __name__ == "__main__":
    main()
