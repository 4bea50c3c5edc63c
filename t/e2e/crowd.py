"""Thousands of clients in one process that want nothing good, for the tests.

crowd.py PORT IMPLICIT_TLS_PORT COUNT CA [KIND...]: makes COUNT connections, as many of each KIND, or of all below, says "ready ..." when all
are where they want to be, and keeps them so until a line comes in. Then it says how many of each kind still lived, as "lived KIND=N/OF ...".
"more N" as that line: N clients more, "more greeted=N refused=N" says what became of them; then it goes on.
"""
import errno
import resource
import select
import socket
import ssl
import sys
import time

PORT, IMPLICIT, COUNT, CA = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
KINDS = sys.argv[5:] or ["silent", "ehlo", "half", "drip", "hello", "deaf", "tls"]
DEAF_MAX = 300_000  # bytes that a deaf one sends
HALF_HELLO = bytes.fromhex("16030100c8010000c40303") + b"x" * 40
ENVELOPE = b"EHLO slow.test\r\nMAIL FROM:<slow@slow.test>\r\nRCPT TO:<slow@slow.test>\r\nDATA\r\n"
# The first command of each, and the reply that shows that it has got there.
FIRST = {"silent": (b"", b"220 "), "ehlo": (b"EHLO slow.test\r\n", b"\n250 "), "half": (b"EHLO slow.test\r\nMAIL FROM:<slo", b"\n250 "),
         "drip": (ENVELOPE, b"\n354 "), "hello": (b"", b""), "deaf": (b"EHLO deaf.test\r\n", b"\n250 "), "tls": (b"EHLO x\r\nSTARTTLS\r\n", b"\n220 ")}


class Member:
    def __init__(self, number, kind, port):
        self.kind, self.heard, self.sent, self.arrived, self.tls, self.ended = kind, b"", 0, False, None, False
        self.socket = socket.socket()
        if kind == "deaf":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.socket.setblocking(False)
        self.socket.bind((f"127.0.1.{1 + number % 100}", 0))
        try:
            self.socket.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass

    def put(self, data):
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.ended = True
            return 0


def handshake(member):
    """One step of TLS."""
    if member.tls is None:
        context = ssl.create_default_context(cafile=CA)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        member.into, member.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        member.tls = context.wrap_bio(member.into, member.out, server_hostname="mail.example.net")
    try:
        member.tls.do_handshake()
        member.arrived = True
    except ssl.SSLWantReadError:
        pass
    except ssl.SSLError:
        member.ended = True
    data = member.out.read()
    if data:
        member.put(data)


def advance(member, events):
    """Something has come, or the connection stands."""
    if not member.sent and events & select.EPOLLOUT:
        member.sent = 1
        if member.kind == "hello":
            member.put(HALF_HELLO)
            member.arrived = True
        elif FIRST[member.kind][0]:
            member.put(FIRST[member.kind][0])
    if not events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
        return
    if member.kind == "deaf" and member.arrived:
        return
    try:
        data = member.socket.recv(16384)
    except BlockingIOError:
        return
    except OSError as e:
        data = b""
    if not data:
        member.ended = True
        return
    if member.tls is not None:
        member.into.write(data)
        handshake(member)
        return
    member.heard += data
    # The 220 counts for one that says nothing.
    if FIRST[member.kind][1] and FIRST[member.kind][1] in b"\n" + member.heard if member.kind != "tls" else b"\n220 2" in member.heard:
        if member.kind == "tls":
            handshake(member)
        else:
            member.arrived = True


def tick(members):
    """Once a second: those that drip do."""
    for member in members:
        if member.ended or not member.arrived:
            continue
        if member.kind == "drip":
            member.put(b"x")
        elif member.kind == "deaf" and member.sent < DEAF_MAX:
            for _ in range(8):
                size = member.put(b"HELP\r\n" * 500)
                member.sent += size
                if size < 3000:
                    break


def serve(poll, by_number, members, until):
    """Until the time, or until a line comes in; that line."""
    while time.time() < until:
        for number, events in poll.poll(max(0, min(0.2, until - time.time()))):
            if number == 0:
                return sys.stdin.readline().strip() or "stop"
            member = by_number[number]
            advance(member, events)
            # A client that has arrived listens for the end only.
            if member.ended:
                poll.unregister(number)
            elif member.sent and member.kind == "deaf" and member.arrived:
                poll.modify(number, 0)
            elif member.sent:
                poll.modify(number, select.EPOLLIN)
    return None


def more(count):
    greeted = refused = 0
    held = []
    for number in range(count):
        one = socket.socket()
        one.settimeout(20)
        one.bind((f"127.0.2.{1 + number % 100}", 0))
        try:
            one.connect(("127.0.0.1", PORT))
            reply = one.recv(1000)
        except OSError:
            reply = b""
        greeted += reply.startswith(b"220")
        refused += reply.startswith(b"421 4.7.0")
        held.append(one)
    print(f"more greeted={greeted} refused={refused}", flush=True)


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    poll, by_number, members = select.epoll(), {}, []
    for number in range(COUNT):
        kind = KINDS[number % len(KINDS)]
        if kind == "tls" and number >= 700 and len(KINDS) > 1:
            kind = "hello"
        member = Member(number, kind, IMPLICIT if kind == "hello" else PORT)
        members.append(member)
        by_number[member.socket.fileno()] = member
        poll.register(member.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)
        if number % 200 == 199:
            serve(poll, by_number, members, time.time() + 0.01)
    end = time.time() + 60
    while time.time() < end and not all(m.arrived or m.ended for m in members):
        serve(poll, by_number, members, time.time() + 0.1)
    count = {kind: sum(1 for m in members if m.kind == kind) for kind in KINDS}
    arrived = sum(1 for m in members if m.arrived and not m.ended)
    tick(members)
    print(f"ready {arrived}", flush=True)
    poll.register(0, select.EPOLLIN)
    while True:
        line = serve(poll, by_number, members, time.time() + 1)
        tick(members)
        if line and line.startswith("more"):
            more(int(line.split()[1]))
        elif line:
            break
    lived = " ".join(f"{kind}={sum(1 for m in members if m.kind == kind and not m.ended)}/{count[kind]}" for kind in KINDS)
    sent = max([m.sent for m in members if m.kind == "deaf"], default=0)
    print(f"lived {lived} deaf_sent={sent}", flush=True)


main()
