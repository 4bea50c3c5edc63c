#!/usr/bin/python3
"""A receiver of webhooks: hook_receiver.py DIR PORT [CERTIFICATE KEY].

DIR/mode says how it answers, a word each request in turn (the last one stays): 200, 204, 410, 500, 429:SECONDS,
302:URL, close (no answer), hang, drip (a byte at a time), slow (a byte a second), huge, page:STATUS (10 MB of HTML),
cut:STATUS (closes within the body), half (closes within the head), garbage, none (204 without a body), raw:BASE64 (these
octets, and a close), flood:BASE64 (these again and again, until the peer has gone).
DIR/events gets each request that came whole: a JSON object a line, with the headers and the body as it came. It checks
nothing: the tests do."""
import base64, json, os, socketserver, ssl, sys, time

directory, port = sys.argv[1], int(sys.argv[2])
modes = {'at': 0, 'text': None}


def mode():
    text = open(directory + '/mode').read()
    if text != modes['text']:
        modes.update(text=text, at=0)
    words = text.split() or ['200']
    word = words[min(modes['at'], len(words) - 1)]
    modes['at'] += 1
    return word


class Handler(socketserver.StreamRequestHandler):
    def send(self, text):
        self.wfile.write(text.encode())

    def handle(self):
        request = self.rfile.readline().decode('latin-1').strip()
        if not request:
            return
        headers = {}
        for line in self.rfile:
            line = line.decode('latin-1').strip()
            if not line:
                break
            name, value = line.split(':', 1)
            headers[name.strip().lower()] = value.strip()
        body = self.rfile.read(int(headers.get('content-length', 0)))
        how = mode()
        with open(directory + '/events', 'a') as out:
            out.write(json.dumps({'request': request, 'headers': headers, 'mode': how, 'time': time.time(),
                                  'body': base64.b64encode(body).decode()}) + '\n')
        word, _, rest = how.partition(':')
        if word == 'close':
            return
        if word == 'hang':
            time.sleep(120)
        elif word == 'garbage':
            self.send('\x00\x01HTP/9 hello\n\n')
        elif word == 'huge':
            self.send('HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n')
            try:
                while True:
                    self.wfile.write(b'x' * 65536)
            except OSError:
                pass
        elif word == 'drip':
            for c in 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok':
                self.send(c)
                self.wfile.flush()
                time.sleep(0.05)
        elif word == 'slow':
            for c in 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok':
                self.send(c)
                self.wfile.flush()
                time.sleep(1)
        elif word == 'page':
            self.send('HTTP/1.1 %s x\r\nContent-Type: text/html\r\nContent-Length: 10000000\r\n\r\n' % rest)
            try:
                self.wfile.write(b'<p>hello' * 1250000)
            except OSError:
                pass
        elif word == 'cut':
            self.send('HTTP/1.1 %s x\r\nContent-Length: 100\r\n\r\nhalf' % rest)
        elif word == 'half':
            self.send('HTTP/1.1 200 OK\r\nContent-')
        elif word == '302':
            self.send('HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n' % rest)
        elif word == '429':
            self.send('HTTP/1.1 429 Slow\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n' % rest)
        elif word == 'raw':
            self.wfile.write(base64.b64decode(rest))
        elif word == 'flood':
            try:
                while True:
                    self.wfile.write(base64.b64decode(rest) * 100)
            except OSError:
                pass
        elif word == 'none':
            self.send('HTTP/1.1 204 No Content\r\n\r\n')
        else:
            self.send('HTTP/1.1 %s x\r\nContent-Length: 2\r\n\r\nok' % word)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class TLSServer(Server):
    def finish_request(self, request, client_address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3], sys.argv[4])
        try:
            request = context.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
            request.unwrap()
        except OSError:
            pass


with (TLSServer if len(sys.argv) > 3 else Server)(('127.0.0.1', port), Handler) as server:
    open(directory + '/ready', 'w').close()
    server.serve_forever()
