"""A data set gated as code is: what may not be in a set that is trained on, checked row by row.

`gate` runs the checks; `outputs` writes JUnit and SARIF for whoever reads them.
"""

from truegold.pipeline.curation.gate.gate import Gated, Options, gate
from truegold.pipeline.curation.gate.outputs import junit, sarif

__all__ = ["Gated", "Options", "gate", "junit", "sarif"]
