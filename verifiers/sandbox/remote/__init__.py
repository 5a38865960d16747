"""Programs run by a service, SandboxFusion, which is spelled as one text.

    backend_of("sandboxfusion+http://localhost:8080")     SandboxFusion("http://localhost:8080")

Trouble with the service (it is away, overloaded, wrongly set up, or answers nonsense) is a `SandboxError` of one line
that names its address without credentials; no verdict follows from it.
"""

from truegold.verifiers.sandbox.errors import ConfigError
from truegold.verifiers.sandbox.remote.sandboxfusion import SandboxFusion

__all__ = ["SandboxFusion", "backend_of"]


def backend_of(spec: str) -> SandboxFusion:
    """Return the back end that `spec` names. Raises ConfigError where it names none."""
    kind, plus, url = spec.partition("+")
    if plus and kind == "sandboxfusion":
        return SandboxFusion(url)
    raise ConfigError(
        f"{spec.partition('://')[0]!r} names no service that runs programs.",
        "Known is sandboxfusion+http://HOST:PORT (or https).",
    )
