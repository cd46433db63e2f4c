"""The client address of a request, as far as it can be trusted."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest

_IPV6_PREFIX_LENGTH = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the peer; behind MEMORYMARK_TRUSTED_PROXIES proxies, the client that the outermost of them saw.

    Each proxy appends its client to X-Forwarded-For. Earlier entries were sent by the client and cannot be trusted.
    None: no address, as on a Unix socket.

        trusted 0, from 10.0.0.1, "1.1.1.1, 2.2.2.2"   10.0.0.1
        trusted 1, from 10.0.0.1, "1.1.1.1, 2.2.2.2"   2.2.2.2
        trusted 2, from 10.0.0.1, "2.2.2.2"            10.0.0.1, because it did not come through both
    """
    peer = peer_address(request)
    seen = request.headers.get("X-Forwarded-For", "").split(",")
    count = settings.TRUSTED_PROXIES
    if not count or len(seen) < count:
        return peer
    return _address(seen[-count]) or peer


def peer_address(request: HttpRequest) -> str | None:
    """Return the address that the connection came from: the last proxy's, where there is one."""
    return _address(request.META.get("REMOTE_ADDR", ""))


def counted_address(request: HttpRequest) -> str | None:
    """Return the address for counting failed logins: of IPv6 the network, because a client has 2^64 addresses."""
    address = client_address(request)
    if address is None or ":" not in address:
        return address
    return str(ipaddress.ip_network((address, _IPV6_PREFIX_LENGTH), strict=False).network_address)


def _address(text: str) -> str | None:
    """Normalise an address; IPv4 written as IPv6 becomes IPv4; None for anything else."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)
