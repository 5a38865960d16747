"""The program of a data set's worked solution, which may stand there as a model would write it.

def f(): ...                               as it is
"Add them.\\n```python\\ndef f(): ...\\n```"   the block's text
"""

from __future__ import annotations

from truegold.verifiers.code.extraction.fences import fenced_blocks
from truegold.verifiers.code.syntax import parse


def worked_program(solution: str) -> str:
    """Return the only code block of a solution that has one and is no program as a whole; else the solution."""
    if "```" not in solution and "~~~" not in solution:
        return solution
    blocks = fenced_blocks(solution)
    return blocks[0].text if len(blocks) == 1 and parse(solution) is None else solution
