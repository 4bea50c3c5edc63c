#!/usr/bin/python3
"""What postfix-mta-sts-resolver makes of domains.

sts_reference.py PACKAGE DNS_PORT HTTPS_PORT DOMAIN[=KNOWN_ID]... prints for each "DOMAIN RESULT [ID MODE MAX_AGE MX...]".
PACKAGE is where it is unpacked. All hosts are 127.0.0.1, whose HTTPS is at HTTPS_PORT."""
import asyncio
import socket
import sys

sys.path.insert(0, sys.argv[1] + "/usr/lib/python3/dist-packages")

import aiodns
import aiohttp
from postfix_mta_sts_resolver import resolver as reference

DNS_PORT, HTTPS_PORT = int(sys.argv[2]), int(sys.argv[3])


class Loopback(aiohttp.abc.AbstractResolver):
    async def resolve(self, host, port=0, family=socket.AF_INET):
        return [{"hostname": host, "host": "127.0.0.1", "port": HTTPS_PORT, "family": socket.AF_INET,
                 "proto": 0, "flags": socket.AI_NUMERICHOST}]

    async def close(self):
        pass


class Session(aiohttp.ClientSession):
    """Connects to the test's web server; all else is as it was."""
    def __init__(self, loop=None, timeout=None):
        super().__init__(timeout=timeout, connector=aiohttp.TCPConnector(resolver=Loopback()))


class Http:
    ClientSession = Session
    ClientTimeout = aiohttp.ClientTimeout
    helpers = aiohttp.helpers


async def ask(resolver, word):
    domain, _, known = word.partition("=")
    result, policy = await resolver.resolve(domain, known or None)
    line = f"{domain} {result.name}"
    if policy:
        line += f" {policy[0]} {policy[1]['mode']} {policy[1]['max_age']} {' '.join(policy[1]['mx'])}"
    return line


async def main():
    reference.aiohttp = Http
    resolver = reference.STSResolver(loop=asyncio.get_running_loop(), timeout=20)
    resolver._resolver = aiodns.DNSResolver(nameservers=["127.0.0.1"], udp_port=DNS_PORT, tcp_port=DNS_PORT)
    for line in await asyncio.gather(*(ask(resolver, word) for word in sys.argv[4:])):
        print(line)


asyncio.run(main())
