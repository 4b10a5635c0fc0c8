"""Strangers on a host of the network: they connect to addresses, and report every byte that they learn.

They get a line of addresses ``[[host, port, how many], ...]``, write a line when all have connected, and stay until
their input ends. An address for 0 connections may be closed by now: the door of an earlier training closes late.
"""

import json
import resource
import socket
import ssl
import sys
from contextlib import suppress

from cgraph.dist.sockets import GREETING, MAGIC, MEMBER, QUESTION
from tests.support.patience import PATIENCE

ALERT = 0x15  # first byte of the answer of TLS when it refuses
TALK = b"", b"c", b"GET / HTTP/1.1\r\n\r\n", GREETING.pack(MAGIC, b"x" * 32, MEMBER, 1, 1)


def connect(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=PATIENCE)


def learned(link: socket.socket) -> str:
    """Return the first bytes that come, other than an alert, as hexadecimal digits."""
    text = b""
    with suppress(OSError):
        text = link.recv(1024)
    return "" if text[:1] == bytes([ALERT]) else text.hex()


def greet(host: str, port: int, kind: int, context: ssl.SSLContext) -> str:
    """Greet with a certificate of one's own, and return what is learned."""
    with connect(host, port) as link, suppress(OSError), context.wrap_socket(link) as secured:
        secured.sendall(GREETING.pack(MAGIC, b"x" * 32, kind, 1, 1))
        return learned(secured)
    return ""


def said(host: str, port: int, text: bytes) -> str:
    """Send bytes without TLS, and return what is learned."""
    with connect(host, port) as link:
        link.sendall(text)
        return learned(link)


def main(addresses: list) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain("stranger.pem", "stranger-key.pem")
    waiting, secrets = [], []
    for host, port, count in addresses:
        with suppress(*() if count else (ConnectionRefusedError,)):
            waiting += [connect(host, port) for _ in range(count)]
            for i, link in enumerate(waiting[len(waiting) - count :]):
                link.sendall(TALK[i % 2])
            secrets += [greet(host, port, kind, context) for kind in (MEMBER, QUESTION)]
            secrets += [said(host, port, text) for text in TALK[2:]]
    sys.stdout.write(json.dumps({"connections": len(waiting), "learned": [x for x in secrets if x]}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(json.loads(sys.stdin.readline()))
