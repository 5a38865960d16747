"""What the service counts, in Prometheus' text format.

truegold_verdicts_total{verifier="math",reason="match"} 4711
truegold_request_seconds_bucket{path="/verify",le="0.1"} 42
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from truegold.verifiers.verdict import Verdict

BOUNDS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""The upper ends of the histogram's buckets."""


class Metrics:
    """Counts since the service began."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.refused = 0
        """Requests that found the queue full."""
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count_verdict(self, verifier: str, verdict: Verdict) -> None:
        """Count a verdict."""
        with self.lock:
            self._verdicts[verifier, str(verdict.reason)] += 1

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request with its time."""
        with self.lock:
            self._requests[path, status] += 1
            self._seconds[path] += seconds  # type: ignore[assignment]
            for bound in BOUNDS_S:
                self._buckets[path, bound] += seconds <= bound

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return the metrics, with what is true at the moment as gauges."""
        with self.lock:
            lines = ["# TYPE truegold_verdicts_total counter"]
            lines += [
                f'truegold_verdicts_total{{verifier="{_quoted(verifier)}",reason="{reason}"}} {count}'
                for (verifier, reason), count in sorted(self._verdicts.items())
            ]
            lines.append("# TYPE truegold_requests_total counter")
            counts: Counter[str] = Counter()
            for (path, status), count in sorted(self._requests.items()):
                counts[path] += count
                lines.append(f'truegold_requests_total{{path="{path}",status="{status}"}} {count}')
            lines.append("# TYPE truegold_request_seconds histogram")
            for path, total in sorted(counts.items()):
                buckets = [(f"{bound:g}", self._buckets[path, bound]) for bound in BOUNDS_S] + [("+Inf", total)]
                lines += [
                    f'truegold_request_seconds_bucket{{path="{path}",le="{bound}"}} {count}' for bound, count in buckets
                ]
                lines.append(f'truegold_request_seconds_sum{{path="{path}"}} {self._seconds[path]:.6f}')
                lines.append(f'truegold_request_seconds_count{{path="{path}"}} {total}')
            for name, value in {**gauges, "requests_refused_total": self.refused}.items():
                kind = "counter" if name.endswith("_total") else "gauge"
                lines += [f"# TYPE truegold_{name} {kind}", f"truegold_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
