#!/usr/bin/python3
"""What t/bench/flood.pl starts: attackers of one kind, or the good client.

flood.py attack KIND PORT TLS_PORT PROXY_PORT ADDRESSES CONNECTIONS RATE SECONDS
    CONNECTIONS from each of ADDRESSES loopback addresses (127.0.1.1 ...), all of them RATE commands or connects
    a second at most. Says "ready" when each has been tried once; at the end a line of JSON.
flood.py good HOW PORT CA SECONDS PASSWORD
    One message after the other from 127.0.0.9, each by a connection of its own; HOW is plain, tls or login. At the
    end a line of JSON: the milliseconds of those that were taken, and what the others heard.
"""
import asyncio
import base64
import json
import smtplib
import ssl
import sys
import time

PATIENCE = 10       # seconds: the good client waits no longer for anything
PAUSE = 0.02        # between its messages
HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


class Flood:
    """Connections of one kind, paced together."""

    def __init__(self, kind, ports, addresses, connections, rate, seconds):
        self.act = getattr(self, "do_" + kind)
        self.ports, self.rate = ports, rate
        self.port = ports[{"half": 1, "proxy": 2}.get(kind, 0)]
        self.sources = [f"127.0.1.{1 + i}" for i in range(addresses) for _ in range(connections)]
        self.end = time.monotonic() + seconds
        self.next = time.monotonic()
        self.count = self.connects = self.replies = 0
        self.names = 0

    async def pace(self, cost=1):
        """A turn among all: RATE a second, no bursts."""
        now = time.monotonic()
        self.next = max(self.next, now - 0.05) + cost / self.rate
        self.count += cost
        if self.next > now:
            await asyncio.sleep(self.next - now)

    async def reply(self, reader):
        """The last line of one; ends the connection's loop when there is none."""
        while True:
            line = await reader.readline()
            if not line:
                raise ConnectionError
            self.replies += 1
            if line[3:4] != b"-":
                if line[:3] == b"421":
                    raise ConnectionError
                return line

    async def say(self, reader, writer, text):
        await self.pace()
        writer.write(text)
        return await self.reply(reader)

    async def greet(self, reader, writer):
        await self.reply(reader)
        await self.say(reader, writer, b"EHLO flood.example\r\n")

    async def do_auth(self, reader, writer):
        await self.greet(reader, writer)
        wrong = base64.b64encode(b"\0user\0wrong")
        for line in (b"Z2FyYmFnZQ==", wrong) * 1000:
            await self.say(reader, writer, b"AUTH PLAIN " + line + b"\r\n")

    async def do_starttls(self, reader, writer):
        await self.greet(reader, writer)
        await self.say(reader, writer, b"STARTTLS\r\n")
        await reader.read()

    async def do_half(self, reader, writer):
        writer.write(HALF_HELLO)
        await reader.read()

    async def do_silent(self, reader, writer):
        while await reader.readline():
            pass

    async def do_refusals(self, reader, writer):
        await self.greet(reader, writer)
        while True:
            await self.pace(10)
            writer.write(b"MAIL FROM:<a@b.example> SIZE=99999999999\r\n" * 10)
            for _ in range(10):
                await self.reply(reader)

    async def do_rcpt(self, reader, writer):
        await self.greet(reader, writer)
        await self.say(reader, writer, b"MAIL FROM:<a@b.example>\r\n")
        at = 0
        while True:
            await self.pace(50)
            writer.write(b"".join(b"RCPT TO:<%s%d@here.test>\r\n" % (b"x" * 50, at + i) for i in range(50)))
            at += 50
            for _ in range(50):
                await self.reply(reader)

    async def do_fragments(self, reader, writer):
        await self.greet(reader, writer)
        while True:
            self.names += 1
            await self.say(reader, writer, b"MAIL FROM:<a@b.example>\r\n")
            await self.say(reader, writer, b"RCPT TO:<u@here.test>\r\n")
            await self.say(reader, writer, b"DATA\r\n")
            await self.say(reader, writer, b"From: <a@b.example>\r\nMIME-Version: 1.0\r\nContent-Type: message/partial;\r\n"
                           b" id=\"%d@flood\"; number=1; total=2\r\n\r\nSubject: x\r\n\r\n%s\r\n.\r\n"
                           % (self.names, b"x" * 900))

    async def do_slow(self, reader, writer):
        writer.transport.pause_reading()
        while True:
            await self.pace(100)
            writer.write(b"EHLO x\r\n" * 100)
            await writer.drain()

    async def do_proxy(self, reader, writer):
        await self.pace()
        writer.write((b"PROXY TCP4 192.0", b"\x0d\x0a\x0d\x0a\x00", b"EHLO x\r\n")[self.count % 3])
        await reader.read()

    async def do_churn(self, reader, writer):
        await self.reply(reader)

    async def one(self, source):
        """Connects again and again; a connection that ends is replaced."""
        while time.monotonic() < self.end:
            await self.pace()
            writer = None
            try:
                self.connects += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
                self.tried.add(asyncio.current_task())
                await self.act(reader, writer)
            except OSError:
                pass
            finally:
                if writer:
                    writer.transport.abort()

    async def run(self):
        self.tried = set()
        tasks = [asyncio.ensure_future(self.one(source)) for source in self.sources]
        while len(self.tried) < len(tasks) and time.monotonic() < self.end:
            await asyncio.sleep(0.05)
        print("ready", flush=True)
        begun, count, connects, cpu = time.monotonic(), self.count, self.connects, time.process_time()
        await asyncio.sleep(max(0, self.end - time.monotonic()))
        seconds = time.monotonic() - begun or 1
        for task in tasks:
            task.cancel()
        print(json.dumps({"rate": (self.count - count) / seconds, "connects": (self.connects - connects) / seconds,
                          "cpu": (time.process_time() - cpu) / seconds}), flush=True)


def one_message(how, port, context, password):
    client = smtplib.SMTP("127.0.0.1", port, "good.example", PATIENCE, ("127.0.0.9", 0))
    try:
        if how != "plain":
            client.starttls(context=context)
        if how == "login":
            client.login("user", password)
        client.sendmail("good@good.example", ["you@here.test"], "Subject: good\r\n\r\n" + "good " * 100 + "\r\n")
    finally:
        client.close()


def good(how, port, ca, seconds, password):
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    taken, failed, end = [], {}, time.monotonic() + float(seconds)
    while time.monotonic() < end:
        start = time.perf_counter()
        try:
            one_message(how, int(port), context, password)
            taken.append((time.perf_counter() - start) * 1000)
        except (OSError, smtplib.SMTPException) as error:
            failed[str(error)[:100]] = failed.get(str(error)[:100], 0) + 1
        time.sleep(PAUSE)
    print(json.dumps({"taken": taken, "failed": failed}), flush=True)


if sys.argv[1] == "good":
    good(*sys.argv[2:])
else:
    flood = Flood(sys.argv[2], [int(x) for x in sys.argv[3:6]], *(int(x) for x in sys.argv[6:9]), float(sys.argv[9]))
    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(flood.run())
