# oauth_provider.py DIRECTORY CERTIFICATES: a provider of OAuth2 over TLS, and a smarthost that takes its tokens by
# XOAUTH2, on free ports of loopback. Prints "ports HTTPS SMTP".
#
# DIRECTORY/mode has words, read for each request: how the token URL answers (ok, or a fault below), and lifetime=N,
# smtp=WORD, rotate=no, pending=N, jwt=FILE (the HMAC key of its tokens). DIRECTORY/events has a line for each thing that happened, without secrets but for
# digests. Every secret that it makes begins with "canary-".
#
# A refresh token is exchanged for a new one each time. The old one is good until the new one, or the access token that
# came with it, is used: who loses the new one by a crash before that loses nothing, who loses it later has lost the login.
import base64, hashlib, hmac, http.server, json, os, re, socketserver, ssl, sys, threading, time, urllib.parse

directory, certificates = sys.argv[1:3]
lock = threading.RLock()
access, refresh, codes, devices, polls = {}, {}, {}, {}, {}
serial = [0]

def digest(text): return hashlib.sha256(text.encode()).hexdigest()[:8]

def tell(what):
    fd = os.open(directory + '/events', os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (what + '\n').encode())
    os.close(fd)

def mode():
    try:
        with open(directory + '/mode') as f: words = f.read().split()
    except OSError: words = []
    pairs = dict(w.split('=', 1) for w in words if '=' in w)
    plain = [w for w in words if '=' not in w]
    return (plain or ['ok'])[0], pairs

def fresh(kind):
    serial[0] += 1
    return 'canary-%s-%d-%d' % (kind, os.getpid(), serial[0])

# A token that others can verify: with the HMAC key in the file (RFC 7519).
def signed(path, lifetime):
    part = lambda value: base64.urlsafe_b64encode(value).rstrip(b'=')
    serial[0] += 1
    claims = {'sub': 'joe', 'iat': int(time.time()) - 1, 'exp': int(time.time()) + lifetime, 'jti': str(serial[0])}
    with open(path, 'rb') as f: key = f.read()
    text = part(b'{"typ":"JWT","alg":"HS256"}') + b'.' + part(json.dumps(claims).encode())
    return (text + b'.' + part(hmac.new(key, text, hashlib.sha256).digest())).decode()

# A user logged in before DIRECTORY/first was written has that refresh token.
def first():
    try:
        with open(directory + '/first') as f: token = f.read().strip()
    except OSError: return
    if token not in refresh: refresh[token] = {'good': True, 'before': None}

def grant(before, rotate, lifetime, key):
    token = signed(key, lifetime) if key else fresh('access')
    answer = {'token_type': 'Bearer', 'access_token': token, 'expires_in': lifetime}
    replaced = None
    if before is not None and rotate:
        answer['refresh_token'] = replaced = fresh('refresh')
        refresh[replaced] = {'good': True, 'before': before if before in refresh else None}
    access[token] = {'until': time.time() + lifetime, 'refresh': replaced}
    return answer

# The new refresh token has arrived: the one before it ends.
def arrived(token):
    entry = refresh.get(token)
    while entry and entry['before']:
        before, entry['before'] = entry['before'], None
        entry = refresh[before]
        entry['good'] = False

FAULTS = ('invalid_grant', 'invalid_client', 'unauthorized_client', 'consent_required', 'invalid_request', 'invalid_scope',
          'temporarily_unavailable', 'access_denied')

class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *arguments): pass

    def answer(self, status, body, kind='application/json', *fields):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for field in (('Content-Type', kind), ('Content-Length', str(len(body))), ('Connection', 'close')) + fields: self.send_header(*field)
        self.end_headers()
        self.wfile.write(body)

    def error(self, name, status=400):
        self.answer(status, json.dumps({'error': name, 'error_description': 'AADSTS70000: it is so'}))

    def fault(self, word, form):
        secret = form.get('refresh_token') or form.get('client_secret') or ''
        if word in FAULTS: self.error(word, 401 if word == 'invalid_client' else 400)
        elif word == 'echo': self.answer(400, json.dumps({'error': 'invalid_grant', 'error_description': 'not good: ' + secret}))
        elif word == 'html': self.answer(200, '<html><body>Sign in ' + secret + '</body></html>', 'text/html')
        elif word == 'nojson': self.answer(200, '{"access_token": "canary-cut')
        elif word == 'notoken': self.answer(200, '{"token_type": "Bearer", "refresh_token": "canary-lonely"}')
        elif word == 'crlf': self.answer(200, json.dumps({'access_token': 'canary-a\r\nRCPT TO:<x@y>', 'expires_in': 3600}))
        elif word == 'negative': self.answer(200, json.dumps({'access_token': 'canary-b', 'expires_in': -5}))
        elif word == 'large': self.answer(200, json.dumps({'access_token': 'canary-' + 'x' * 9000, 'expires_in': 3600}))
        elif word == '500': self.answer(500, 'canary ' + secret, 'text/plain')
        elif word == '429': self.answer(429, '', 'text/plain', ('Retry-After', '7'))
        elif word == 'redirect': self.answer(302, '', 'text/plain', ('Location', 'https://127.0.0.1:1/'))
        elif word == 'closed': self.close_connection = True
        elif word == 'cut':
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"access_token": "canary-cut"')
            self.close_connection = True
        elif word == 'endless':
            self.wfile.write(b'HTTP/1.1 200 OK\r\n\r\n')
            try:
                while True: self.wfile.write(b'x' * 65536)
            except OSError: pass
            self.close_connection = True
        else: return False
        return True

    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers['Content-Length'])).decode()))
        word, options = mode()
        if self.path == '/device': return self.device(word, options, form)
        kind = form.get('grant_type', '-')
        tell('request %s %s' % (kind, word))
        if word == 'slow':
            time.sleep(float(options.get('seconds', 3)))
            word = 'ok'
        if self.fault(word, form): return tell('answered %s' % word)
        with lock:
            first()
            lifetime, rotate = int(options.get('lifetime', 3600)), options.get('rotate') != 'no'
            if kind == 'client_credentials':
                good, before = form.get('client_secret', '').startswith('canary-'), None
                if not good: return self.error('invalid_client', 401)
            elif kind == 'refresh_token':
                before = form.get('refresh_token', '')
                if not refresh.get(before, {}).get('good'):
                    tell('lost')
                    return self.error('invalid_grant')
                arrived(before)
            elif kind == 'authorization_code':
                code = codes.pop(form.get('code', ''), None)
                challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get('code_verifier', '').encode()).digest()).rstrip(b'=').decode()
                if code is None or code['challenge'] != challenge or code['redirect'] != form.get('redirect_uri'):
                    return self.error('invalid_grant')
                before = ''
            elif kind == 'urn:ietf:params:oauth:grant-type:device_code':
                device = form.get('device_code', '')
                if device not in devices: return self.error('invalid_grant')
                devices[device] -= 1
                if devices[device] >= 0: return self.error(options.get('poll', 'authorization_pending'))
                before = ''
            else: return self.error('unsupported_grant_type')
            answer = grant(before, rotate, lifetime, options.get('jwt'))
        tell('granted %s' % digest(answer['access_token']))
        self.answer(200, json.dumps(answer))

    def device(self, word, options, form):
        tell('device %s' % word)
        if self.fault(word, form): return
        code = fresh('device')
        devices[code] = int(options.get('pending', 1))
        self.answer(200, json.dumps({'device_code': code, 'user_code': 'ABCD-EFGH', 'verification_uri': 'https://login.test/device',
            'expires_in': int(options.get('expires', 900)), 'interval': int(options.get('interval', 1))}))

    # The address that a browser would be sent to, as plain text: the user consents without being asked.
    def do_GET(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        if not self.path.startswith('/authorize') or query.get('code_challenge_method') != 'S256': return self.answer(404, 'no')
        code = fresh('code')
        codes[code] = {'challenge': query['code_challenge'], 'redirect': query['redirect_uri']}
        self.answer(200, query['redirect_uri'] + '?' + urllib.parse.urlencode({'code': code, 'state': query.get('state', '')}), 'text/plain')

class Provision(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128
    def handle_error(self, request, address): pass
    def finish_request(self, request, address):
        request.settimeout(60)
        super().finish_request(context.wrap_socket(request, server_side=True), address)

class Smarthost(socketserver.StreamRequestHandler):
    def say(self, line): self.wfile.write(line.encode() + b'\r\n')

    # DIRECTORY/initial has the last initial response: of test tokens alone.
    def auth(self, initial):
        word = mode()[1].get('smtp', 'ok')
        fields = dict(f.split('=', 1) for f in base64.b64decode(initial).decode().split('\1') if f)
        token = fields.get('auth', '')[7:]
        with lock:
            entry = access.get(token)
            good = entry and entry['until'] > time.time() and not entry.get('revoked') and word in ('ok', 'revoke')
            if good and entry['refresh']: arrived(entry['refresh'])
            if word == 'revoke' and not entry.get('kept'):
                for other in access.values(): other['revoked'] = True
        tell('auth %s %s %s' % (fields.get('user'), digest(token), 'good' if good else 'bad'))
        if good: return True
        if word == '454': self.say('454 4.7.0 Temporary authentication failure')
        elif word == '535': self.say('535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant. ' + token)
        else:
            self.say('334 ' + base64.b64encode(b'{"status":"400","schemes":"Bearer"}').decode())
            tell('then %r' % self.rfile.readline().decode())
            self.say('535 5.7.8 Username and Password not accepted')
        return False

    def handle(self):
        user = False
        tell('connection')
        self.say('220 smarthost.test')
        for line in self.rfile:
            line = line.decode().strip()
            verb = line.split(' ')[0].upper()
            if verb == 'EHLO': self.say('250-smarthost.test\r\n250-AUTH LOGIN XOAUTH2\r\n250 8BITMIME')
            elif verb == 'AUTH':
                user = self.auth(line.split(' ')[2])
                if user: self.say('235 2.7.0 welcome')
            elif verb == 'QUIT': return self.say('221 bye')
            elif not user: self.say('530 5.7.0 who are you')
            elif verb == 'RCPT':
                to = re.search('<(.*)>', line).group(1)
                self.say('250 ok')
            elif verb == 'DATA':
                self.say('354 go')
                while self.rfile.readline() != b'.\r\n': pass
                tell('mail ' + to)
                self.say('250 2.0.0 taken')
            else: self.say('250 ok')

class Host(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128
    def handle_error(self, request, address): pass

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificates + '/good.pem', certificates + '/good.key')
https, smtp = Provision(('127.0.0.1', 0), Provider), Host(('127.0.0.1', 0), Smarthost)
threading.Thread(target=smtp.serve_forever, daemon=True).start()
print('ports %d %d' % (https.server_address[1], smtp.server_address[1]), flush=True)
https.serve_forever()
