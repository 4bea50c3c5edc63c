#!/usr/bin/perl
# AUTH in, with clients that we did not write: every mechanism by STARTTLS and ?tls, wrong passwords and the lock-out,
# auth=required, senders, Unix sockets, an old device, and how the log tells it.
use lib 't/e2e';
use E2E;
use MIME::Base64;

Petrel::have('openssl') or plan skip_all => 'openssl is not installed';
my $scratch = tempdir('auth-XXXXXX', TMPDIR => 1, CLEANUP => 1);
system('sh', "$Petrel::root/t/support/tls_certificates.sh", $scratch) == 0 or die 'no certificates';
my ($ca, $password) = ("$scratch/ca.pem", 'p&ncil 9');
my $sink = Petrel::sink();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", relay_from => '192.0.2.0/24',
    initial_destination_concurrency => 1, default_destination_concurrency_limit => 1, sender_turns => 'no');
my ($tls, $required, $legacy) = map { Petrel::free_port() } 1 .. 3;
my ($socket, $others, $users) = map { "$petrel->{dir}/$_" } qw(socket others users);

sub passwd {
    my ($user, $word) = @_;
    my ($code, $line) = Petrel::command("$word\n", $Petrel::binary, 'passwd', $user);
    is $code, 0, "petrel passwd $user";
    return $line;
}
Petrel::spit($users, join '', map { passwd($_, $password) } qw(alice bob mallory));
chmod 0600, $users;
$petrel->configure(
    listen => join(', ', "127.0.0.1:$petrel->{port}", "127.0.0.1:$tls?tls", "127.0.0.1:$required?auth=required",
        "127.0.0.1:$legacy?profile=legacy", "unix:$socket?mode=0600&uid=$>", "unix:$others?uid=" . ($> + 1)),
    tls_certificate => "$scratch/good.pem", tls_key => "$scratch/good.key", auth_users => $users,
    sender_login => "alice alice\@here.test\nbob .bob.test bob\@here.test\n",
)->start;
my $arrived = 0;

# The next message that the sink gets.
sub next_is {
    my ($name, $protocol) = @_;
    my $got = Petrel::wait_arrived($sink, ++$arrived);
    return fail("$name: arrives") || diag $petrel->log unless $got;
    # Some versions of msmtp say SMTPUTF8 for every letter.
    my $utf8 = $name =~ /^msmtp/ ? $protocol =~ s/^E/UTF8/r : $protocol;
    like $got->{content}, qr/\AReceived: from [^;]*\swith (?:$protocol|$utf8)\s[^;]*;/, "$name: $protocol in the trace header";
    unlike $got->{content}, qr/\A(?:Received[^;]*|[^;]*)alice[^;]*;/, "$name: and not the user";
    return $got;
}

# A dialogue by any handle: the replies.
sub talk { my ($s, @lines) = @_; my @r = Petrel::reply($s); for (@lines) { print $s "$_\r\n"; push @r, Petrel::reply($s) } return @r }
sub by_tcp { my ($port, @lines) = @_; return talk(IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port), @lines) }
sub by_socket { my ($path, @lines) = @_; return talk(IO::Socket::UNIX->new(Peer => $path), @lines) }
my $login = 'AUTH PLAIN ' . encode_base64("\0alice\0$password", '');
my @send = ('MAIL FROM:<alice@here.test>', 'RCPT TO:<you@there.test>', 'DATA', "Subject: x\r\n\r\nx\r\n.");

# --- swaks

SKIP: {
    my $swaks = Petrel::have('swaks') or skip 'no swaks', 1;
    (Petrel::command('', $swaks, '--support'))[1] =~ /^=== TLS supported/m or skip 'swaks without TLS', 1;
    my @base = ($swaks, '--helo', 'client.test', '--from', 'alice@here.test', '--to', 'you@there.test', '--tls-ca-path', $ca);
    for my $case (['STARTTLS', "127.0.0.1:$petrel->{port}", '-tls'], ['TLS', "127.0.0.1:$tls", '--tlsc'], ['required', "127.0.0.1:$required", '-tls']) {
        my ($name, $server, $how) = @$case;
        for my $mechanism (qw(PLAIN LOGIN)) {
            my ($code, $text) = Petrel::command('', @base, '--server', $server, $how, '--auth', $mechanism, '--auth-user', 'alice', '--auth-password', $password);
            is $code, 0, "swaks, $name, $mechanism" or diag $text;
            like $text, qr/^<[-~]  235 2\.7\.0 /m, "swaks, $name, $mechanism: is let in";
            next_is("swaks, $name, $mechanism", 'ESMTPSA');
        }
    }
    my ($code, $text) = Petrel::command('', @base, '--server', "127.0.0.1:$petrel->{port}", '--auth', 'PLAIN', '--auth-user', 'alice', '--auth-password', $password);
    isnt $code, 0, 'swaks in clear: finds no AUTH';
    unlike $text, qr/^<-  250-AUTH/m, 'which is not offered';
}

# --- Python

SKIP: {
    my $python = Petrel::have('python3') or skip 'no python3', 1;
    my $program = Petrel::spit("$scratch/send.py", <<'PYTHON');
import smtplib, ssl, sys
how, port, ca, user, password, sender = sys.argv[1:7]
context = ssl.create_default_context(cafile=ca)
s = smtplib.SMTP_SSL('127.0.0.1', int(port), context=context) if how == 'tls' else smtplib.SMTP('127.0.0.1', int(port))
try:
    if how == 'starttls':
        s.starttls(context=context)
    for method in sys.argv[7:] or [None]:
        if method is None:
            s.login(user, password)
        else:
            s.ehlo()
            s.user, s.password = user, password
            s.auth(method, getattr(s, 'auth_' + method.lower()), initial_response_ok=False)
    s.sendmail(sender, ['you@there.test'], 'Subject: python\r\n\r\nx\r\n')
    s.quit()
    print('sent')
except smtplib.SMTPResponseException as e:
    print(e.smtp_code, e.smtp_error.decode())
except smtplib.SMTPException as e:
    print(type(e).__name__, e)
PYTHON
    my $python_says = sub { my ($code, $text) = Petrel::command('', $python, $program, @_); return $text };
    is $python_says->('starttls', $petrel->{port}, $ca, 'alice', $password, 'alice@here.test'), "sent\n", 'smtplib by STARTTLS';
    next_is('smtplib by STARTTLS', 'ESMTPSA');
    is $python_says->('tls', $tls, $ca, 'bob', $password, 'x@a.bob.test', 'LOGIN'), "sent\n", 'smtplib by TLS, LOGIN without an initial response';
    next_is('smtplib by TLS', 'ESMTPSA');
    is $python_says->('tls', $tls, $ca, 'alice', $password, 'alice@here.test', 'PLAIN'), "sent\n", 'smtplib, PLAIN without an initial response';
    next_is('smtplib, PLAIN', 'ESMTPSA');
    like $python_says->('starttls', $petrel->{port}, $ca, 'alice', $password, 'bob@here.test'), qr/^553 5\.7\.1 sender address not owned by user/, 'smtplib: not as bob';
    like $python_says->('clear', $petrel->{port}, $ca, 'alice', $password, 'alice@here.test'), qr/^SMTPNotSupportedError/, 'smtplib in clear: finds no AUTH';
    like $python_says->('starttls', $petrel->{port}, $ca, 'mallory', $password, 'mallory@here.test'), qr/^553 5\.7\.1/, 'smtplib: who owns nothing';
}

# --- curl, msmtp

SKIP: {
    my $curl = Petrel::have('curl') or skip 'no curl', 1;
    my $mail = Petrel::spit("$scratch/mail", "Subject: curl\r\n\r\nx\r\n");
    for my $case (["smtps://127.0.0.1:$tls", 'PLAIN'], ["smtps://127.0.0.1:$tls", 'LOGIN'], ["smtp://127.0.0.1:$required", 'PLAIN']) {
        my ($code, $text) = Petrel::command('', $curl, '-sS', '--ssl-reqd', '--cacert', $ca, '--url', $case->[0], '--user', "alice:$password", '--login-options', "AUTH=$case->[1]",
            '--mail-from', 'alice@here.test', '--mail-auth', '<>', '--mail-rcpt', 'you@there.test', '--upload-file', $mail);
        is $code, 0, "curl, @$case" or diag $text;
        next_is("curl, @$case", 'ESMTPSA');
    }
    my ($code, $text) = Petrel::command('', $curl, '-sS', '--ssl-reqd', '--cacert', $ca, '--url', "smtp://127.0.0.1:$required",
        '--mail-from', 'alice@here.test', '--mail-rcpt', 'you@there.test', '--upload-file', $mail);
    like $text, qr/530/, 'curl without a user: 530';
}

SKIP: {
    my $msmtp = Petrel::have('msmtp') or skip 'no msmtp', 1;
    for my $mechanism (qw(plain login scram-sha-256)) {
        my ($code, $text) = Petrel::command('', $msmtp, '--version');
        next unless $text =~ /\Q$mechanism\E/;
        Petrel::spit("$scratch/msmtprc", "account a\nhost 127.0.0.1\nport $petrel->{port}\nfrom alice\@here.test\ntls on\ntls_trust_file $ca\nauth $mechanism\nuser alice\npassword $password\naccount default : a\n");
        chmod 0600, "$scratch/msmtprc";
        ($code, $text) = Petrel::command("Subject: msmtp\n\nx\n", $msmtp, '-C', "$scratch/msmtprc", 'you@there.test');
        # GNU SASL 2.2.2 (Debian 13) gives up before it has sent a byte, with other servers, too.
        skip 'SCRAM of this GNU SASL', 1 if $mechanism =~ /^scram/ && $text =~ /GNU SASL: Error authenticating user/ && $petrel->log !~ /sasl_method=SCRAM/;
        is $code, 0, "msmtp, $mechanism" or diag $text;
        next_is("msmtp, $mechanism", 'ESMTPSA');
        like $petrel->log, qr/sasl_method=\U$mechanism\E, sasl_username=alice/, "msmtp, $mechanism: is what the log says";
    }
}

# --- Unix sockets, an old device, what is refused in clear

my @r = by_socket($socket, 'EHLO x', @send, 'QUIT');
like $r[1], qr/^250-AUTH PLAIN LOGIN SCRAM-SHA-256\r$/m, 'socket: AUTH is offered in clear';
like $r[5], qr/^250 2\.0\.0 Ok: queued/, 'socket: may relay by its permissions';
like next_is('socket', 'ESMTP')->{content}, qr/\(unix, uid=$>\)/, 'socket: its user in the trace header';
ok $petrel->wait_log(qr/client=unix, helo=x,[^\n]* uid=$>/), 'and in the log' or diag $petrel->log;
@r = by_socket($socket, 'EHLO x', $login, @send);
like $r[6], qr/^250 2\.0\.0 Ok: queued/, 'socket, with AUTH';
next_is('socket, with AUTH', 'ESMTPA');
is sprintf('%o', (stat $socket)[2] & 0777), '600', 'socket: its mode';
@r = by_socket($others);
like $r[0], qr/^554 5\.7\.1 /, "another user's socket";

my $old = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $legacy);
Petrel::reply($old);
for my $step (['HELO scan_ner', '250'], ['AUTH LOGIN', '334'], [encode_base64('alice', ''), '334'], [encode_base64($password, ''), '235'],
    ['MAIL FROM:<alice@here.test>', '250'], ['RCPT TO:<you@there.test>', '250'], ['DATA', '354'], ["Subject: scan\n\nbare\n..\n.", '250'], ['QUIT', '221'])
{
    print $old "$step->[0]\n";
    like Petrel::reply($old), qr/^$step->[1]/, 'old device: ' . ($step->[0] =~ /^([A-Z]+(?: |\z))/ ? $1 : 'more');
}
my $scan = next_is('old device', 'ESMTPA')->{content};
is Petrel::untraced($scan) =~ s/\A(?:(?:From|Date|Message-ID):[^\n]*\n)+//r, "Subject: scan\r\n\r\nbare\r\n.\r\n", 'old device: strict lines go out';

@r = by_tcp($petrel->{port}, 'EHLO x', $login, 'MAIL FROM:<alice@here.test>', 'MAIL FROM:<x@here.test>', 'RCPT TO:<you@there.test>');
like $r[2], qr/^538 5\.7\.11/, 'in clear: 538';
like $r[3], qr/^553 5\.7\.1 sender address belongs to a user/, 'a stranger as alice: 553';
like $r[5], qr/^554 5\.7\.1 relay access denied/, 'a stranger does not relay';
my $secret = encode_base64("\0alice\0$password", '');
ok index($petrel->log, $secret) < 0 && index($petrel->log, $password) < 0, 'no secret is in the log';

# --- Reload: a broken file, then another

Petrel::spit($users, "alice\n");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/auth_users|users:1: expected 'user:verifier'/), 'a broken file is told of';
ok $petrel->wait_log(qr/reload refused/), 'and changes nothing';
@r = by_socket($socket, 'EHLO x', $login);
like $r[2], qr/^235/, 'alice is still there';
Petrel::spit($users, passwd('bob', $password));
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'a good one is taken';
@r = by_socket($socket, 'EHLO x', 'AUTH PLAIN ' . encode_base64("\0bob\0$password", ''));
like $r[2], qr/^235/, 'bob is in it';

# --- Guessing, in every style of the log

$petrel->configure(auth_failure_limit => 4);
# Without waiting for the answer, which comes late.
sub guess {
    my ($from, $user) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $legacy, LocalAddr => $from);
    Petrel::reply($s);
    print $s "EHLO x\r\nAUTH PLAIN ", encode_base64("\0$user\0guess", ''), "\r\n";
    return $s;
}
my ($reloads, @guesses) = (1);
for my $style (qw(petrel postfix json)) {
    $petrel->configure(log_style => $style);
    kill 'HUP', $petrel->{pid};
    $reloads++;
    ok Petrel::wait_for(sub { $reloads == (() = $petrel->log =~ /settings reloaded/g) }), "$style: is set";
    push @guesses, guess('127.0.0.' . (1 + $reloads), "eve-$style");
    ok $petrel->wait_log(qr/eve-$style/), "$style: a wrong password";
}
like Petrel::reply($_) && Petrel::reply($_), qr/^535 5\.7\.8 authentication failed/, 'and its answer' for @guesses;
ok $petrel->wait_log(qr/refused=535 5\.7\.8, client=\[127\.0\.0\.3\], helo=x, sasl_method=PLAIN, sasl_username=eve-petrel/), 'petrel: its line' or diag $petrel->log;
ok $petrel->wait_log(qr/postfix\/smtpd\[\d+\]: warning: localhost\[127\.0\.0\.4\]: SASL PLAIN authentication failed: authentication failure, sasl_username=eve-postfix/), 'postfix: its line' or diag $petrel->log;
ok $petrel->wait_log(qr/"refused":"535 5\.7\.8","client":"127\.0\.0\.5","helo":"x","sasl_method":"PLAIN","sasl_username":"eve-json"/), 'json: its line' or diag $petrel->log;
push @guesses, map { guess('127.0.0.1', 'bob') } 1 .. 4;
ok $petrel->wait_log(qr/"auth":"locked","client":"127\.0\.0\.1","failures":4,"seconds":300/), 'the fourth locks out';
@r = by_tcp($legacy, 'EHLO x', 'AUTH PLAIN ' . encode_base64("\0bob\0$password", ''), 'MAIL FROM:<z@here.test>');
like $r[2], qr/^454 4\.7\.0 too many failed logins/, 'even with the right password';
like $r[3], qr/^250/, 'other things it may do';
like((by_tcp($required))[0], qr/^421 4\.7\.0 too many failed logins/, 'where AUTH is required, nothing');
@r = by_socket($socket, 'EHLO x', 'AUTH PLAIN ' . encode_base64("\0bob\0$password", ''));
like $r[2], qr/^235/, 'nobody else is';
is $petrel->stop, 0, 'stops';

# --- Mistakes at the start

for my $case (['auth_users = /missing', qr/auth_users: cannot read \/missing: No such file/], ["auth_users = $scratch/bad", qr/bad:1: expected 'user:verifier'/],
    ["auth_cleartext = yes", qr/auth_cleartext: say no or loopback/], ["sender_login = alice a\@\@b", qr/sender_login: 'a\@\@b': not one of/],
    ["listen = 127.0.0.1:25?auth=required", qr/auth_users: unset/])
{
    Petrel::spit("$scratch/bad", "secret\n");
    Petrel::spit("$scratch/conf", "hostname = h.test\nspool = $scratch/s\n$case->[0]\n");
    my ($code, $text) = Petrel::command('', $Petrel::binary, '-c', "$scratch/conf", 'check');
    is $code, 78, "a mistake: $case->[0]";
    like $text, $case->[1], 'it is told';
}
chmod 0000, $users;
Petrel::spit("$scratch/conf", "hostname = h.test\nspool = $scratch/s\nauth_users = /missing\ntls_certificate = /missing\n");
my ($code, $text) = Petrel::command('', $Petrel::binary, '-c', "$scratch/conf", 'queue', 'ls');
unlike $text, qr/auth_users|tls_certificate/, 'commands that anybody may run read neither users nor keys';
done_testing();
