"""Where a request comes from, as far as it can be believed."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_IPV6_PREFIX_LENGTH = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the peer; behind so many proxies as MEMORYMARK_TRUSTED_PROXIES says, what the outermost of them saw.

    Each proxy writes whom it saw at the end of X-Forwarded-For. Whatever stands before those entries was sent by
    the client, who may write there what it likes. None: no address, as on a Unix socket.

        trusted 0, from 10.0.0.1, "1.1.1.1, 2.2.2.2"   10.0.0.1
        trusted 1, from 10.0.0.1, "1.1.1.1, 2.2.2.2"   2.2.2.2
        trusted 2, from 10.0.0.1, "2.2.2.2"            10.0.0.1, for it did not come through both
    """
    peer = _address(request.META.get("REMOTE_ADDR", ""))
    seen = request.headers.get("X-Forwarded-For", "").split(",")
    count = settings.TRUSTED_PROXIES
    if not count or len(seen) < count:
        return peer
    return _address(seen[-count]) or peer


def counted_address(request: HttpRequest) -> str | None:
    """Return what failed logins are counted by: of IPv6 the network, for whoever has one address has 2^64 of them."""
    address = client_address(request)
    if address is None or ":" not in address:
        return address
    return str(ipaddress.ip_network((address, _IPV6_PREFIX_LENGTH), strict=False).network_address)


def _address(text: str) -> str | None:
    """In its one spelling, an IPv4 address that is written as IPv6 as IPv4; None for anything else."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)
