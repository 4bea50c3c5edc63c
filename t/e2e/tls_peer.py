#!/usr/bin/python3
"""Mail hosts with TLS of every kind, each behind a proxy that records what the client sends.

tls_peer.py CERTIFICATES DIRECTORY NAME=KIND[@ADDRESS:PORT]... prints "NAME PORT" for each. DIRECTORY/NAME.N.wire is what
the client of connection N sent, byte by byte; DIRECTORY/NAME.mail has a line for each message: how the
connection was secured, and the content's size. DIRECTORY/NAME.said has the MAIL commands and the contents.

KIND: PAIR (STARTTLS with that pair of certificate and key), smtps:PAIR, smtps:clear (greets in clear text),
stripped (no STARTTLS), refused (454), garbage (answers the handshake with nonsense), injected (says more
behind its 220). Behind requiretls: it offers REQUIRETLS under TLS."""
import os
import socket
import ssl
import sys
import threading

certificates, directory = sys.argv[1:3]


def context_of(pair):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{certificates}/{pair}.pem", f"{certificates}/{pair}.key")
    return context


class Host:
    def __init__(self, name, kind):
        self.requires = kind.startswith("requiretls:")
        kind = kind.removeprefix("requiretls:")
        self.name, self.kind = name, kind
        self.implicit = kind.startswith("smtps:")
        pair = kind.removeprefix("smtps:")
        special = pair in ("clear", "stripped", "refused", "garbage", "injected")
        self.context = None if special else context_of(pair)

    def serve(self, connection):
        if self.implicit and self.context:
            connection = self.context.wrap_socket(connection, server_side=True)
        connection.sendall(b"220 host ESMTP\r\n")
        while connection:
            connection = self.talk(connection)

    def talk(self, connection):
        """Until the end, or the connection to go on with."""
        lines = connection.makefile("rb", buffering=0)
        while line := lines.readline():
            verb = line.split()[0].upper() if line.split() else b""
            if verb == b"EHLO":
                connection.sendall(self.greeting(connection))
            elif verb == b"STARTTLS":
                return self.starttls(connection)
            elif verb == b"DATA":
                connection.sendall(b"354 go\r\n")
                self.take(connection, lines)
            elif verb == b"MAIL":
                self.note(line)
                connection.sendall(b"250 2.1.0 ok\r\n")
            elif verb == b"QUIT":
                connection.sendall(b"221 bye\r\n")
                connection.close()
                return None
            else:
                connection.sendall(b"250 2.0.0 ok\r\n")
        return None

    def greeting(self, connection):
        offers = self.kind != "stripped" and not isinstance(connection, ssl.SSLSocket)
        requires = self.requires and isinstance(connection, ssl.SSLSocket)
        return (b"250-host\r\n" + (b"250-STARTTLS\r\n" if offers else b"") + (b"250-REQUIRETLS\r\n" if requires else b"") +
                b"250-DSN\r\n250 8BITMIME\r\n")

    def note(self, line):
        with open(f"{directory}/{self.name}.said", "ab") as out:
            out.write(line)

    def starttls(self, connection):
        if self.kind == "refused":
            connection.sendall(b"454 4.7.0 TLS is not available\r\n")
            return connection
        if self.kind == "injected":
            connection.sendall(b"220 go\r\n250-host\r\n250 8BITMIME\r\n")
            while connection.recv(65536):
                pass
            return None
        connection.sendall(b"220 go\r\n")
        if self.kind == "garbage":
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()
            return None
        return self.context.wrap_socket(connection, server_side=True)

    def take(self, connection, lines):
        size = 0
        while (line := lines.readline()) not in (b".\r\n", b""):
            size += len(line)
            self.note(line)
        how = "clear"
        if isinstance(connection, ssl.SSLSocket):
            how = connection.version() + (" resumed" if connection.session_reused else " new")
        with open(f"{directory}/{self.name}.mail", "a") as out:
            out.write(f"{how} {size}\n")
        connection.sendall(b"250 2.0.0 taken\r\n")


def guarded(function, *arguments):
    def run():
        try:
            function(*arguments)
        except (OSError, ssl.SSLError):
            pass
        finally:
            for a in arguments:
                if isinstance(a, socket.socket):
                    a.close()
    threading.Thread(target=run, daemon=True).start()


def carry(source, sink, record):
    """One direction, and its end."""
    while data := source.recv(65536):
        if record:
            with open(record, "ab") as out:
                out.write(data)
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def accept_all(host, listener, inner):
    number = 0
    while True:
        client = listener.accept()[0]
        number += 1
        server = socket.create_connection(inner.getsockname())
        serving = inner.accept()[0]
        for s in (client, server, serving):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        record = f"{directory}/{host.name}.{number}.wire"
        open(record, "ab").close()
        guarded(host.serve, serving)
        guarded(carry, client, server.dup(), record)
        guarded(carry, server, client.dup(), None)


for word in sys.argv[3:]:
    name, kind = word.split("=")
    kind, _, place = kind.partition("@")
    address, _, port = (place or "127.0.0.1:0").partition(":")
    listener = socket.create_server((address, int(port)), backlog=64)
    inner = socket.create_server(("127.0.0.1", 0), backlog=64)
    guarded(accept_all, Host(name, kind), listener, inner)
    print(name, listener.getsockname()[1])
print("ready", flush=True)
threading.Event().wait()
