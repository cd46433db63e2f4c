"""News go to public addresses only, unless a GPU manager allowed the host."""

import shutil
import socket
import ssl
import subprocess
from ipaddress import ip_address

import pytest
from django.core.exceptions import ValidationError

from analysis.models import AllowedHost
from analysis.news import post as post_module
from analysis.news.addresses import RefusedAddressError, checked_addresses, is_public, parse_target
from analysis.news.post import post
from engine.errors import SpecError
from tests.news.receiver import receiving

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",  # carrier-grade NAT
    "100.100.100.200",  # a cloud's metadata in it
    "169.254.169.254",  # metadata, link-local
    "168.63.129.16",  # metadata, public
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "224.0.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",  # NAT64 of 127.0.0.1
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::1",  # 6to4 of 127.0.0.1
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",  # Teredo
    *("3fff::1", "3fff:fff:ffff::1"),  # documentation
    # the rest of IANA's special-purpose registries that is not globally reachable, and what nobody was given
    *(
        *("0.1.2.3", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.88.99.2", "198.19.255.255", "198.51.100.1"),
        "203.0.113.9",
    ),
    *(
        *("64:ff9b:1::1", "100::1", "100:0:0:1::1", "2001:2::1", "2001:10::1", "2001:1::4", "5f00::1", "fdff::1"),
        "febf::1",
    ),
    *("::ffff:0:127.0.0.1", "4000::1", "8000::1", "1000::1", "e000::1"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_is_not_refused(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "localhost", "[::1]"])
def test_another_spelling_of_a_private_address_is_refused(host):
    with pytest.raises((RefusedAddressError, OSError)):
        checked_addresses(parse_target(f"https://{host}/"), is_allowed=False)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://lab.example/",
        "https://",
        "https:///path",
        "https://name:secret@lab.example/",
        "https://lab.example/#part",
        "https://lab.example:0/",
        "https://lab.example:99999/",
        "https://lab.example/a b",
        "https://lab.example/\r\nX-Header: 1",
        "https://läb.example/",
        "https://[::1/",
        "javascript:alert(1)",
        "https://lab.example/" + "a" * 500,
    ],
)
def test_what_is_no_plain_url_is_refused(url):
    with pytest.raises(SpecError) as refused:
        parse_target(url)
    assert refused.value.field == "url"


def test_one_private_address_among_public_ones_refuses_the_host(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 443)) for each in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
    with pytest.raises(RefusedAddressError):
        checked_addresses(parse_target("https://lab.example/"), is_allowed=False)


@pytest.mark.parametrize("address", ["10.1.2.3", "169.254.169.254", "168.63.129.16", "fd00:ec2::254"])
def test_a_delivery_log_does_not_say_what_a_name_stands_for_inside_the_lab(monkeypatch, caplog, address):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
    outcome = post("https://wiki.lab.example/hook", b"{}", {}, is_allowed=False, seconds=5)
    assert outcome.reason == "the address is not public: a GPU manager has to allow the host wiki.lab.example"
    assert address in caplog.text, "whoever reads the process's log may know it"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        ("10.1.2.3", "https://10.1.2.3/hook", True),
        ("10.1.2.3", "http://10.1.2.3:80/hook", True),
        ("10.1.2.3", "https://10.1.2.3:8443/hook", False),
        ("10.1.2.3", "http://10.1.2.3:8000/analyze", False),
        ("10.1.2.3:8443", "https://10.1.2.3:8443/hook", True),
        ("10.1.2.3:8443", "https://10.1.2.3/hook", False),
        ("10.1.2.3:443", "https://10.1.2.3/hook", True),
        ("10.1.2.3:443", "http://10.1.2.3/hook", False),
        ("fd00::1", "https://[fd00::1]/hook", True),
        ("[fd00::1]:8443", "https://[fd00::1]:8443/hook", True),
        ("[fd00::1]", "https://[fd00::1]:8443/hook", False),
    ],
)
def test_a_host_is_allowed_on_the_port_that_was_named(subscribe, receiver, allowed, url, is_allowed):
    row = AllowedHost(host=allowed)
    row.full_clean()
    row.save()
    if is_allowed:
        subscribe(url=url)
        return
    with pytest.raises(SpecError) as refused:
        subscribe(url=url)
    assert refused.value.field == "url"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "host", ["10.1.2.3:", "10.1.2.3:0", "a.example:99999", "a.example:443:1", "A.example", "[fd00", "a b", "x:y", ":80"]
)
def test_what_names_no_host_cannot_be_allowed(host):
    with pytest.raises(ValidationError):
        AllowedHost(host=host).full_clean()


def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch):
    """A name server that answers a public address first and a private one then changes nothing: it is queried once."""
    lookups, connections = [], []

    def look_up(host, *args, **kwargs):
        lookups.append(host)
        address = "8.8.8.8" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]

    def connect(address, timeout):
        connections.append(address)
        raise ConnectionRefusedError("not in a test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", connect)
    outcome = post("https://rebinding.example/", b"{}", {}, is_allowed=False, seconds=5)
    assert not outcome.is_delivered
    assert lookups == ["rebinding.example"]
    assert connections == [("8.8.8.8", 443)]


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl, for a certificate")
@pytest.mark.parametrize(("host", "is_delivered"), [("lab.example", True), ("other.example", False)])
def test_the_certificate_has_to_be_the_hosts_although_the_connection_is_to_an_address(
    tmp_path, monkeypatch, host, is_delivered
):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=lab.example"]
    names = ["-addext", "subjectAltName=DNS:lab.example", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run([*make, *names], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(post_module, "checked_addresses", lambda target, is_allowed: ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with receiving(tls=context) as receiver:
        outcome = post(f"https://{host}:{receiver.port}/hook", b"{}", {}, is_allowed=False, seconds=20)
        assert [each.headers["Host"] for each in receiver.received] == [f"{host}:{receiver.port}"] * is_delivered
    assert outcome.is_delivered is is_delivered
    assert is_delivered or "certificate" in outcome.reason


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_private_receiver_gets_no_request_unless_its_host_is_allowed(scheme):
    with receiving() as receiver:
        url = f"{scheme}://127.0.0.1:{receiver.port}/"
        refused = post(url, b"{}", {}, is_allowed=False, seconds=5)
        assert receiver.received == []
    assert "a GPU manager" in refused.reason


@pytest.mark.django_db
def test_a_url_with_a_private_address_is_refused_when_it_is_entered_until_a_manager_allows_it(subscribe):
    with pytest.raises(SpecError, match="the address is not public"):
        subscribe(url="https://10.1.2.3/hook")
    with pytest.raises(SpecError, match="https"):
        subscribe(url="http://chat.lab.example/hook")
    AllowedHost.objects.create(host="10.1.2.3")
    AllowedHost.objects.create(host="chat.lab.example")
    subscribe(name="a", url="https://10.1.2.3/hook")
    subscribe(name="b", url="http://chat.lab.example/hook")
