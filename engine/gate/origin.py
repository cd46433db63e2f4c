"""PURE: a run's origin according to its portal: whether it was reported from another machine, and is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import SpecError
from ..text.printable import printable


@dataclass(frozen=True, slots=True)
class ResultOrigin:
    """The origin of one of the two results, `what`, from a portal's answer. `is_trusted` None: the answer has none."""

    what: str
    place: str
    text: str = ""
    is_trusted: bool | None = None

    @classmethod
    def of(cls, document: object, what: str, place: str) -> ResultOrigin:
        """Read the origin; only a clear yes counts as trust."""
        if not isinstance(document, Mapping) or "is_trusted" not in document:
            return cls(what, place)
        named = document.get("origin") or f"reported from {document.get('reported_from') or 'elsewhere'}"
        return cls(what, place, printable(str(named)), document["is_trusted"] is True)

    @property
    def doubt(self) -> str | None:
        """Return the warning; None without a reason to warn."""
        if self.is_trusted is not False:
            return None
        return f"the {self.what} was {self.text}, and its portal does not trust it: nobody there verified its figures"

    def check_trusted(self, *, is_from_portal: bool) -> None:
        """Raise SpecError where its portal does not trust the run, or does not say whether it does."""
        if self.is_trusted is False:
            raise SpecError(self.what, f"{self.place} is refused by --trusted-only: {self.doubt}")
        if self.is_trusted is None and is_from_portal:
            why = "its portal is of another version and does not say whether it is trusted"
            raise SpecError(self.what, f"{self.place} is refused by --trusted-only: {why}")
