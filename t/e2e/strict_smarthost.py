#!/usr/bin/python3
"""A smarthost as providers are: it takes mail of one account only, and says why not.

strict_smarthost.py DIRECTORY DOMAIN: prints its port; a message that it takes becomes a file in DIRECTORY. MAIL FROM and
the one From of the header must be of DOMAIN (553), the header must have one From and no bare address (550 5.6.0), and a DKIM signature of DOMAIN (5.7.515). It
ends with its standard input."""
import email, email.policy, email.utils, itertools, os, socketserver, sys, threading

directory, domain = sys.argv[1:3]
numbers = itertools.count()


def fault(sender, data):
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    authors = message.get_all('From', [])
    if len(authors) != 1 or not email.utils.parseaddr(authors[0])[1]:
        return '550 5.6.0 Not RFC 5322 compliant: From'
    for field in ('From', 'To', 'Cc', 'Reply-To', 'Sender'):
        for name, address in email.utils.getaddresses(message.get_all(field, [])):
            if '@' not in address and (name or address):
                return '550 5.6.0 Not RFC 5322 compliant: %s: %s' % (field, address)
    if message.get_all('Bcc') or message.get_all('Return-Path'):
        return '550 5.6.0 Bcc and Return-Path are not for others'
    if not email.utils.parseaddr(authors[0])[1].endswith('@' + domain):
        return '553 5.7.1 From is not owned by this account'
    signature = ''.join(message.get('DKIM-Signature', '').split())
    if ';d=%s;' % domain not in signature or ';h=from:' not in signature.lower():
        return '550 5.7.515 Access denied, the sending domain does not meet the required authentication level'
    return None


class Session(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b'\r\n')

    def content(self):
        lines = []
        while (line := self.rfile.readline()) != b'.\r\n':
            if not line:
                return None
            lines.append(line[1:] if line.startswith(b'.') else line)
        return b''.join(lines)

    def handle(self):
        sender, taken = '', 0
        self.say('220 strict.test ESMTP')
        while line := self.rfile.readline().decode('latin-1').strip():
            verb = line.split(':')[0].split()[0].upper()
            if verb == 'EHLO':
                self.say('250-strict.test')
                self.say('250-PIPELINING')
                self.say('250 SIZE 1000000')
            elif verb == 'MAIL':
                sender = line[line.index('<') + 1:line.index('>')]
                owned = sender == '' or sender.endswith('@' + domain)
                self.say('250 2.1.0 Ok' if owned else '553 5.7.1 sender not owned by this account')
                taken = owned
            elif verb == 'RCPT':
                self.say('250 2.1.5 Ok' if taken else '503 5.5.1 MAIL first')
            elif verb == 'DATA' and taken:
                self.say('354 go on')
                data = self.content()
                if data is None:
                    return
                reply = fault(sender, data)
                if reply is None:
                    name = '%s/%d' % (directory, next(numbers))
                    with open(name + '.new', 'wb') as file:
                        file.write(('X-Sender: %s\r\n' % sender).encode() + data)
                    os.rename(name + '.new', name)
                self.say(reply or '250 2.0.0 Ok')
            elif verb == 'QUIT':
                self.say('221 2.0.0 Bye')
                return
            else:
                self.say('503 5.5.1 what?' if verb == 'DATA' else '250 2.0.0 Ok')


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


with Server(('127.0.0.1', 0), Session) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)
