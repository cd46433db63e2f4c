"""Secrets of webhooks, and the signature of a body.

The secret has to be available for signing, so a digest as of an API token is not enough. Stored encrypted, it would
need a key, and that key would be SECRET_KEY. So it is not stored at all but derived from SECRET_KEY and the
subscription: a copy of the database reveals no secret, and there is no ciphertext to decrypt or to leak. The price: a
new SECRET_KEY changes every secret. While the former one is in SECRET_KEY_FALLBACKS, bodies are signed with both.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from analysis.models import Subscription

PREFIX = "mm_whsec_"
"""Lets a person, and a scanner of leaked secrets, recognise it."""
OVERLAP = timedelta(days=1)
"""For how long the former secret signs too after a rotation."""
HEADER = "X-MemoryMark-Signature"


def current_secret(subscription: Subscription) -> str:
    return _derive(settings.SECRET_KEY, subscription, subscription.generation)


def signing_secrets(subscription: Subscription, now: datetime) -> list[str]:
    generations = [subscription.generation]
    if subscription.rotated_at is not None and now - subscription.rotated_at < OVERLAP:
        generations.append(subscription.generation - 1)
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [_derive(key, subscription, generation) for key in keys for generation in generations]


def signature_header(secrets: Iterable[str], body: bytes, unix_seconds: int) -> str:
    """Write `t=1700000000,v1=...`: the time is signed with the body, so that an old request cannot be replayed."""
    signed = f"{unix_seconds}.".encode() + body
    digests = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={unix_seconds}", *(f"v1={digest}" for digest in digests)])


def _derive(key: str, subscription: Subscription, generation: int) -> str:
    # the random `key` of the row, not its number, which a restored copy of the database could give a second time
    what = f"memorymark webhook {subscription.key.hex} {generation}".encode()
    digest = hmac.new(key.encode(), what, hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(digest).decode().rstrip("=")
