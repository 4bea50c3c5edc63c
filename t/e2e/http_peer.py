# http_peer.py CERTIFICATES [tls]: Python's http.server on a free port of loopback, over TLS if told. Prints the port.
# Each path is a form of body, or a fault.
import http.server, ssl, sys, time

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *arguments):
        pass

    def head(self, status, *fields):
        self.send_response(status)
        for field in fields:
            self.send_header(*field)
        self.end_headers()

    def end(self):
        self.close_connection = True
        self.wfile.flush()
        if isinstance(self.connection, ssl.SSLSocket):
            try:
                self.connection.unwrap()
            except (OSError, ValueError):
                pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.head(200, ('Content-Length', str(len(body))))
        self.wfile.write(body)

    def do_GET(self):
        getattr(self, 'do_' + self.path[1:].split('?')[0], self.do_file)()

    def do_file(self):
        super().do_GET()

    def do_length(self):
        self.head(200, ('Content-Length', '5'), ('X-Seen', self.path + ' ' + self.headers['Host']))
        self.wfile.write(b'hello')

    def do_chunks(self):
        self.head(200, ('Transfer-Encoding', 'chunked'))
        for piece in (b'5;name=value\r\nhel', b'lo\r\n1\r\n \r\n00', b'5;a="b"\r\nworld\r\n0\r\nX-Trailer: t\r\n\r\n'):
            self.wfile.write(piece)
            time.sleep(0.05)

    def do_close(self):
        self.head(200, ('Connection', 'close'))
        self.wfile.write(b'up to the end')
        self.end()

    def do_cut(self):
        self.head(200, ('Connection', 'close'))
        self.wfile.write(b'up to the e')
        self.close_connection = True # without close_notify

    def do_interim(self):
        self.send_response_only(100)
        self.end_headers()
        self.send_response_only(103)
        self.send_header('Link', '</x>')
        self.end_headers()
        self.do_length()

    def do_none(self):
        self.head(204)

    def do_same(self):
        self.head(304, ('Content-Length', '77'))

    def do_moved(self):
        self.head(302, ('Location', '/length'), ('Content-Length', '0'))

    def do_slow(self):
        self.head(200, ('Content-Length', '100000'))
        for i in range(100000):
            self.wfile.write(b'x')
            time.sleep(0.02)

    def do_endless(self):
        self.head(200, ('Connection', 'close'))
        while True:
            self.wfile.write(b'x' * 4096)

    def do_endless_head(self):
        self.send_response(200)
        while True:
            self.send_header('X-More', 'x' * 100)
            self.flush_headers()

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def finish_request(self, request, address):
        try:
            super().finish_request(request, address)
        except OSError:
            pass

server = Server(('127.0.0.1', 0), Handler)
if sys.argv[2:] == ['tls']:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1] + '/good.pem', sys.argv[1] + '/good.key')
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print('port', server.server_port, flush=True)
server.serve_forever()
