"""PURE: what was recorded as a document: the facts, and the report that follows from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from ..settings.spec import SCHEMA
from ..text.masking import masked_text
from ..text.printable import printable
from .recording import Recording
from .report import Report, document, report_of
from .words import headline


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchResult(Recording):
    """A training that ran once, as it is, and to its end."""

    @property
    def report(self) -> Report:
        return report_of(self)

    @property
    def headline(self) -> str:
        return headline(self.report)

    def to_send(self, *, with_output: bool) -> Self:
        """Return it without the line of the script's own output that tells why it died, or without its secrets."""
        if self.process is None or (death := self.process.death) is None:
            return self
        line = printable(masked_text(death.line)) if with_output else ""
        return replace(self, process=replace(self.process, death=replace(death, line=line)))

    def to_dict(self) -> dict[str, Any]:
        whole = {"spec": self.spec.to_dict(), "device": self.device and self.device.to_dict()}
        report = document(self.report, self.status)
        return {"schema": SCHEMA, **asdict(self), **whole, "headline": self.headline, "report": report}
