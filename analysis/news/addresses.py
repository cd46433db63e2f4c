"""Which addresses a delivery may connect to: only public ones, unless a GPU manager allowed the host.

A webhook is a request that the portal makes for a person, from inside the lab's network: without this check anybody
with an account could reach what only the portal's host can reach, such as a cloud's metadata service.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from analysis.models.news import URL_LENGTH
from engine.errors import SpecError

logger = logging.getLogger(__name__)

Address = IPv4Address | IPv6Address
NOT_PUBLIC = "the address is not public"

# from IANA's special-purpose registries; the lists of older Pythons lack these. 2002: stands for any IPv4 address, and
# Azure answers its own machines alone at 168.63.129.16; other clouds' metadata are at private or link-local addresses
_SPECIAL = (
    *(IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"), IPv4Network("168.63.129.16/32")),
    *(IPv6Network("2001::/23"), IPv6Network("2002::/16"), IPv6Network("3fff::/20")),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that IANA has given to anybody; what lies outside is special, or nobody's."""
_NAT64 = IPv6Network("64:ff9b::/96")


class RefusedAddressError(Exception):
    """The host of a webhook has an address that news may not go to."""


@dataclass(frozen=True, slots=True)
class Target:
    is_tls: bool
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """Return the host as the receiver expects it: IPv6 in brackets, the port unless it is the scheme's own."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.has_default_port else f"{name}:{self.port}"

    @property
    def has_default_port(self) -> bool:
        return self.port == (443 if self.is_tls else 80)

    @property
    def allowances(self) -> list[str]:
        """Return what allows it: the host with this port, and for the scheme's own port the host alone."""
        brackets = f"[{self.host}]" if ":" in self.host else self.host
        return [f"{brackets}:{self.port}", *([self.host, brackets] if self.has_default_port else [])]


def parse_target(url: str) -> Target:
    """Split a webhook's URL. Raises SpecError: it must be http(s), with a host, without a name and password."""
    if not 0 < len(url) <= URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url:
        raise SpecError("url", f"must be an ASCII URL of at most {URL_LENGTH} characters without blanks")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise SpecError("url", f"is not a URL: {exc}") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SpecError("url", "must begin with https:// and a host (http:// only for hosts that are allowed)")
    if parts.username is not None or parts.password is not None or parts.fragment or port == 0:
        raise SpecError("url", "must have no user name, password, fragment or port 0")
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_tls, parts.hostname.lower().rstrip("."), port or (443 if is_tls else 80), path)


def is_public(address: Address) -> bool:
    """Whether news may go to an address without anybody's leave."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))  # the gateway connects to that one
        if address not in _GLOBAL_UNICAST:
            return False
    is_special = any(address in network for network in _SPECIAL)
    return address.is_global and not (address.is_multicast or address.is_reserved or is_special)


def checked_addresses(target: Target, *, is_allowed: bool) -> list[str]:
    """Look the host up once, and return addresses to connect to. Raises RefusedAddressError, and OSError.

    The caller connects to what is returned, never to the name: a second lookup could answer another address.
    One refused address refuses the host, because which one is used must not depend on the order of the answers.
    """
    if not target.is_tls and not is_allowed:
        raise RefusedAddressError(f"http is only where a GPU manager allowed {target.host_header}: use https")
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not is_allowed:
        for text in addresses:
            if not is_public(ip_address(text)):
                # what a name stands for inside the lab is not for everybody who may subscribe
                logger.warning("no news to %s: %s is not a public address", target.host_header, text)
                raise RefusedAddressError(f"{NOT_PUBLIC}: a GPU manager has to allow the host {target.host_header}")
    return addresses
