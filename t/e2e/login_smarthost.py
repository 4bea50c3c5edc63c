#!/usr/bin/python3
"""A smarthost that wants TLS and a login, and takes every one. As many providers do it takes mail of the login's own
address alone, where that is one, and nothing of the null sender.

login_smarthost.py DIRECTORY LOG [ADDRESS [PORT]]: prints its port; good.pem and good.key in DIRECTORY are its
certificate. A line in LOG for each login (`auth tls|clear HEX`) and each message that it has taken."""
import base64
import os
import socketserver
import ssl
import sys

certificates, log = sys.argv[1:3]
where = (sys.argv[3] if len(sys.argv) > 3 else '127.0.0.1', int(sys.argv[4]) if len(sys.argv) > 4 else 0)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.path.join(certificates, 'good.pem'), os.path.join(certificates, 'good.key'))


def tell(what):
    with open(log, 'a') as file:
        file.write(what + '\n')


class Session(socketserver.BaseRequestHandler):
    def secure(self):
        self.request = context.wrap_socket(self.request, server_side=True)
        self.lines = self.request.makefile('rwb', 0)
        self.is_secure = True

    def take(self):
        while (line := self.lines.readline()) != b'.\r\n':
            if not line:
                return
        tell('message')
        self.lines.write(b'250 2.0.0 Ok\r\n')

    def talk(self):
        while line := self.lines.readline():
            verb = line.split()[0].upper() if line.split() else b''
            if verb == b'EHLO':
                self.lines.write(b'250-smart.test\r\n250 ' + (b'AUTH PLAIN' if self.is_secure else b'STARTTLS') + b'\r\n')
            elif verb == b'STARTTLS':
                self.lines.write(b'220 go\r\n')
                self.secure()
            elif verb == b'AUTH':
                self.user = base64.b64decode(line.split()[2]).split(b'\0')[1]
                tell('auth %s %s' % ('tls' if self.is_secure else 'clear', base64.b64decode(line.split()[2]).hex()))
                self.lines.write(b'235 2.7.0 Ok\r\n')
            elif verb == b'MAIL' and b'@' in self.user and b'<' + self.user + b'>' not in line:
                tell('refused ' + line.decode().strip())
                self.lines.write(b'553 5.7.1 Sender address not owned by user\r\n')
            elif verb == b'DATA':
                self.lines.write(b'354 go\r\n')
                self.take()
            elif verb == b'QUIT':
                self.lines.write(b'221 bye\r\n')
                return
            else:
                self.lines.write(b'250 2.0.0 Ok\r\n')

    def handle(self):
        self.request.settimeout(60)
        self.user = b''
        self.lines, self.is_secure = self.request.makefile('rwb', 0), False
        try:
            self.lines.write(b'220 smart.test ESMTP\r\n')
            self.talk()
        except OSError:
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


with Server(where, Session) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
