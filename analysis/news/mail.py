"""One e-mail, through Django's settings. Off unless EMAIL_HOST is set."""

from __future__ import annotations

import smtplib
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from analysis.news.messages import mail_line, mail_text
from analysis.news.post import DeliveryOutcome

_SUBJECT_LENGTH = 120


def is_configured() -> bool:
    return bool(settings.EMAIL_HOST)


def send(address: str, delivery_id: str, body: dict[str, Any]) -> DeliveryOutcome:
    """Send one mail. Its Message-ID stays the same over all attempts: mail programs show a repeated one once."""
    start = monotonic()
    if not is_configured() or not address:
        missing = "your account has no address" if is_configured() else "EMAIL_HOST is not set"
        return DeliveryOutcome(False, 0.0, reason=f"no mail can be sent: {missing}")
    subject = mail_line(f"MemoryMark: {body['verdict']}")[:_SUBJECT_LENGTH]
    headers = {"Message-ID": f"<{delivery_id}@memorymark>", "Auto-Submitted": "auto-generated"}
    try:
        EmailMessage(subject, mail_text(body), None, [address], headers=headers).send()
    except (OSError, smtplib.SMTPException, ValueError) as exc:  # ValueError: an address that cannot be a header
        return DeliveryOutcome(False, monotonic() - start, reason=f"{type(exc).__name__}: {exc}")
    return DeliveryOutcome(True, monotonic() - start)
