package AuthServer;

# A smarthost of a few lines of Python, which knows AUTH PLAIN, LOGIN, SCRAM-SHA-256 and XOAUTH2; it writes down who
# came with what.
use strict;
use warnings;
use File::Temp qw(tempdir);
use Petrel;

my $program = <<'PYTHON';
import base64, hashlib, hmac, os, socketserver, sys

port, events, mechanisms, users = int(sys.argv[1]), sys.argv[2], sys.argv[3].split(','), dict(u.split('=', 1) for u in sys.argv[4:])
word = lambda b: base64.b64encode(b)
mac = lambda key, text: hmac.new(key, text, hashlib.sha256).digest()

def tell(what):
    fd = os.open(events, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (what + '\n').encode())
    os.close(fd)

# The reply to MAIL, or to the login if it is 535; None: it is taken.
def refusal():
    try: return open(events + '.says', 'rb').read() or None
    except OSError: return None

class Session(socketserver.StreamRequestHandler):
    def say(self, line): self.wfile.write(line + b'\r\n')
    def ask(self, text):
        self.say(b'334 ' + word(text))
        return base64.b64decode(self.rfile.readline().strip(), validate=True)

    def plain(self, first):
        nobody, user, password = base64.b64decode(first).split(b'\0')
        return user, users.get(user.decode()) == password.decode()

    def login(self, first):
        user = self.ask(b'Username:')
        return user, users.get(user.decode()) == self.ask(b'Password:').decode()

    def xoauth2(self, first):
        fields = dict(f.split(b'=', 1) for f in base64.b64decode(first).split(b'\1') if f)
        good = users.get(fields[b'user'].decode()) == fields[b'auth'].decode().removeprefix('Bearer ')
        if not good: self.ask(b'{"status":"400"}')
        return fields[b'user'], good

    def scram(self, first):
        bare = base64.b64decode(first)[3:]
        user, nonce = (f[2:] for f in bare.split(b','))
        user = user.replace(b'=2C', b',').replace(b'=3D', b'=')
        nonce, salt = nonce + b'server', b'0123456789abcdef'
        challenge = b'r=' + nonce + b',s=' + word(salt) + b',i=20000'
        final, proof = self.ask(challenge).rsplit(b',p=', 1)
        salted = hashlib.pbkdf2_hmac('sha256', users.get(user.decode(), '').encode(), salt, 20000)
        auth = bare + b',' + challenge + b',' + final
        key = mac(salted, b'Client Key')
        sign = mac(hashlib.sha256(key).digest(), auth)
        good = word(bytes(a ^ b for a, b in zip(key, sign))) == proof
        if good: self.ask(b'v=' + word(mac(mac(salted, b'Server Key'), auth)))
        return user, good

    def auth(self, argument):
        name, _, first = argument.partition(b' ')
        name = name.decode()
        if name not in mechanisms: return self.say(b'504 5.5.4 no such mechanism')
        how = {'PLAIN': self.plain, 'LOGIN': self.login, 'XOAUTH2': self.xoauth2, 'SCRAM-SHA-256': self.scram}[name]
        user, good = how(first)
        tell('auth %s %s %s' % (name, user.decode(), 'good' if good else 'bad'))
        if good: self.user = user
        if (refusal() or b'').startswith(b'535'): return self.say(refusal())
        self.say(b'235 2.7.0 welcome' if good else b'535 5.7.8 ' + name.encode() + b' says no')

    def handle(self):
        self.user = sender = None
        tell('connection')
        self.say(b'220 smarthost.test')
        for line in self.rfile:
            verb, _, argument = line.strip().partition(b' ')
            verb = verb.upper()
            if verb == b'EHLO':
                self.say(b'250-smarthost.test')
                if mechanisms != ['']: self.say(b'250-AUTH ' + ' '.join(mechanisms).encode())
                self.say(b'250 8BITMIME')
            elif verb == b'AUTH': self.auth(argument)
            elif verb == b'QUIT': return self.say(b'221 bye')
            elif users and not self.user: self.say(b'530 5.7.0 who are you')
            elif verb == b'MAIL' and refusal(): self.say(refusal())
            elif verb == b'MAIL': sender = argument[5:].split(b' ')[0].decode(); self.say(b'250 ok')
            elif verb == b'RCPT': to = argument[3:].decode(); self.say(b'250 ok')
            elif verb == b'RSET': self.say(b'250 ok')
            elif verb == b'DATA':
                self.say(b'354 go')
                while self.rfile.readline() != b'.\r\n': pass
                tell('mail %s %s %s' % (self.user.decode() if self.user else '-', sender, to))
                self.say(b'250 2.0.0 taken')
            else: self.say(b'500 what')

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

server = Server(('127.0.0.1', port), Session)
print('port %d' % server.server_address[1], flush=True)
server.serve_forever()
PYTHON

# start(mechanisms => 'PLAIN,LOGIN', users => { name => password }, port => N); launch() does not wait until it
# is ready().
sub start { return launch(@_)->ready }
sub launch {
    my ($class, %with) = @_;
    my $self = bless { dir => tempdir('smarthost-XXXXXX', TMPDIR => 1, CLEANUP => 1), %with }, $class;
    Petrel::spit("$self->{dir}/server.py", $program);
    my $users = $self->{users} || {};
    $self->{pid} = Petrel::spawn("$self->{dir}/log", Petrel::have('python3'), "$self->{dir}/server.py", $self->{port} || 0,
        "$self->{dir}/events", $self->{mechanisms} // 'PLAIN', map { "$_=$users->{$_}" } sort keys %$users);
    return $self;
}

sub ready {
    my $self = shift;
    $self->{port} = Petrel::wait_for(sub { Petrel::slurp("$self->{dir}/log") =~ /^port (\d+)$/m ? $1 : undef })
        or die 'no smarthost: ' . Petrel::slurp("$self->{dir}/log");
    return $self;
}

# From now on MAIL, or the login if it begins with 535, is answered so; undef: as usual.
sub says { my ($self, $reply) = @_; Petrel::spit("$self->{dir}/events.says", $reply // ''); return $self }
sub forget { my $self = shift; Petrel::spit("$self->{dir}/events", ''); return $self }
sub stop { my $self = shift; Petrel::reap(delete $self->{pid}, 'TERM'); return $self }
# The events, or those that match.
sub events { my ($self, $pattern) = @_; return grep { !$pattern || $_ =~ $pattern } split /\n/, Petrel::slurp("$self->{dir}/events") }
sub wait_for { my ($self, $pattern, $count) = @_; return Petrel::wait_for(sub { (() = $self->events($pattern)) >= ($count || 1) }) }

1;
