"""OpenMetrics 1.0 text (github.com/prometheus/OpenMetrics), as far as we use it. Pure."""

from collections.abc import Iterable, Mapping, Sequence

Sample = tuple[Mapping[str, object], float]
"""Labels and value."""


class Page:
    """One exposition, built metric by metric."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def gauge(self, name: str, doc: str, samples: Iterable[Sample]) -> None:
        """A value that goes up and down."""
        self._metric(name, "gauge", doc)
        self._lines += [_line(name, labels, value) for labels, value in samples]

    def counter(self, name: str, doc: str, samples: Iterable[Sample]) -> None:
        """A value that only grows; ``name`` comes without `_total`."""
        self._metric(name, "counter", doc)
        self._lines += [_line(f"{name}_total", labels, value) for labels, value in samples]

    def histogram(
        self,
        name: str,
        doc: str,
        bounds: Sequence[float],
        rows: Iterable[tuple[Mapping[str, object], Sequence[int], float]],
    ) -> None:
        """Counts by upper bound: (labels, count in each bucket and beyond, sum of values)."""
        self._metric(name, "histogram", doc)
        for labels, counts, total in rows:
            below = 0
            for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
                below += count
                self._lines.append(_line(f"{name}_bucket", {**labels, "le": bound}, below))
            self._lines.append(_line(f"{name}_count", labels, below))
            self._lines.append(_line(f"{name}_sum", labels, total))

    def _metric(self, name: str, kind: str, doc: str) -> None:
        self._lines += [f"# TYPE {name} {kind}", f"# HELP {name} {doc}"]

    def text(self) -> str:
        """The finished page."""
        return "\n".join([*self._lines, "# EOF", ""])


def _line(name: str, labels: Mapping[str, object], value: float) -> str:
    inner = ",".join(f'{key}="{_escape(str(item))}"' for key, item in labels.items())
    shown = f"{value:g}" if isinstance(value, float) and not value.is_integer() else str(int(value))
    return f"{name}{{{inner}}} {shown}" if inner else f"{name} {shown}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
