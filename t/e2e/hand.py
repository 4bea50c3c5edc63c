"""A TLS client by hand for the tests: bytes in clear text and within TLS exactly when and as they are told.

hand.py PORT CA SCRIPT...: each script is a list of steps joined by "|", each on a connection of its own; a JSON list of
what each has heard, one line per step that hears. Steps (texts know \\r \\n \\x00):
  clear:TEXT    sends it in clear text          say:TEXT    sends it within TLS
  hear          one reply, in clear text or TLS  rest        all until the end ("... EOF") or a second of silence
  tls[:NAME]    starts TLS, verified for NAME    notify      sends close_notify
  hello:TEXT    sends TEXT before the ClientHello, then starts TLS; "failed" or "secured"
  alpn:PROTOCOLS the same, offering these        half        half a ClientHello
"""
import json
import select
import socket
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor

PATIENCE = 20


class Ended(Exception):
    pass


class Hand:
    def __init__(self, port, ca):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.context = ssl.create_default_context(cafile=ca)
        self.clear, self.within, self.tls = b"", b"", None

    def receive(self, seconds):
        """More bytes from the peer; False after so many seconds."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            raise Ended()
        if self.tls is None:
            self.clear += data
        else:
            self.incoming.write(data)
            self.decrypt()
        return True

    def decrypt(self):
        try:
            while data := self.tls.read(65536):
                self.within += data
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            pass

    def flush(self):
        self.socket.sendall(self.outgoing.read())

    def start(self, name, before=b"", half=False, alpn=None):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.incoming.write(self.clear)
        self.clear = b""
        if alpn:
            self.context.set_alpn_protocols(alpn)
        tls = self.context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = before + self.outgoing.read()
                before = b""
                self.socket.sendall(data[:len(data) // 2] if half else data)
                if half:
                    return
                data = self.socket.recv(65536)
                if not data:
                    raise Ended()
                self.incoming.write(data)
        self.flush()
        self.tls = tls
        self.decrypt()

    def buffer(self):
        return self.clear if self.tls is None else self.within

    def hear(self):
        end = time.time() + PATIENCE
        while True:
            at, lines = 0, self.buffer()
            while (stop := lines.find(b"\n", at)) >= 0:
                if lines[at + 3:at + 4] != b"-":
                    self.take(stop + 1)
                    return lines[:stop + 1].decode("latin-1")
                at = stop + 1
            try:
                if not self.receive(max(0, end - time.time())):
                    return lines.decode("latin-1") + "..."
            except Ended:
                self.take(len(self.buffer()))
                return lines.decode("latin-1") + "EOF"

    def take(self, size):
        if self.tls is None:
            self.clear = self.clear[size:]
        else:
            self.within = self.within[size:]

    def rest(self):
        end = ""
        try:
            while self.receive(1):
                pass
        except Ended:
            end = "EOF"
        all = self.buffer()
        self.take(len(all))
        return all.decode("latin-1") + end

    def step(self, verb, argument):
        data = argument.encode("latin-1").decode("unicode_escape").encode("latin-1")
        if verb == "clear":
            self.socket.sendall(data)
        elif verb == "say":
            if self.tls is None:
                raise ConnectionError("no TLS")
            self.tls.write(data)
            self.flush()
        elif verb in ("tls", "hello", "alpn", "half"):
            try:
                self.start(argument if verb == "tls" and argument else "mail.example.net", data if verb == "hello" else b"",
                           verb == "half", argument.split(",") if verb == "alpn" else None)
                return f"secured {self.tls.version()} {self.tls.cipher()[0]}" if self.tls else None
            except (ssl.SSLError, OSError, Ended) as e:
                return f"failed {type(e).__name__} {e}"
        elif verb == "notify":
            try:
                self.tls.unwrap()
            except ssl.SSLWantReadError:
                pass
            self.flush()
            self.tls = None  # what comes from now on is looked at as it is
        elif verb == "hear":
            return self.hear()
        elif verb == "rest":
            return self.rest()
        else:
            raise SystemExit(f"no step {verb}")
        return None


def play(port, ca, script):
    hand, heard = Hand(port, ca), []
    for step in script.split("|"):
        verb, _, argument = step.partition(":")
        try:
            said = hand.step(verb, argument)
        except (ConnectionError, BrokenPipeError):
            said = "EOF" if verb in ("hear", "rest") else None
        if said is not None:
            heard.append(said)
    hand.socket.close()
    return heard


with ThreadPoolExecutor(16) as pool:
    print(json.dumps(list(pool.map(lambda script: play(int(sys.argv[1]), sys.argv[2], script), sys.argv[3:]))))
