#!/usr/bin/perl
# Errors of people in petrel.conf, and the messages about them.
use lib 't/e2e';
use E2E;

my $dir = tempdir('mistakes-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $count = 0;

# check's exit code and output for these lines.
sub check {
    my ($lines) = @_;
    my $path = Petrel::spit("$dir/" . ++$count . '.conf', "hostname = mail.example.org\nspool = $dir/spool\n$lines\n");
    my ($code, $said) = Petrel::command('', $Petrel::binary, '-c', $path, 'check');
    $said =~ s/\Q$path\E/FILE/g;
    return ($code, $said);
}

sub refused { my ($lines, $want) = @_; my ($code, $said) = check($lines); is $code, 78, $lines; is $said, "FILE:3: $want\n", "$lines: told in one line"; return }

refused('relay_from = 192.168.1.1/24', "relay_from: '192.168.1.1/24': has bits behind the mask: write 192.168.1.0/24");
refused('relay_from = 2001:db8::1/32', "relay_from: '2001:db8::1/32': has bits behind the mask: write 2001:db8::/32");
refused('relay_from = 192.168.1.1/33', "relay_from: '192.168.1.1/33': not a network (ADDRESS or ADDRESS/BITS)");
refused("listen = $_", "listen: '$_': not an address: write 0.0.0.0:25, [::]:25") for '25', ':25', '*:25';
refused('listen = localhost:25', "listen: 'localhost:25': not an address: write 127.0.0.1:25, [::1]:25");
refused("listen = $_", "listen: '$_': not an address (1.2.3.4:25, [::1]:25 or unix:/path)") for 'mail.example.org:25', '*:0', '*:65536', '*:x';
refused('listen = 127.0.0.1:25, 127.0.0.1:25', "listen: '127.0.0.1:25': given twice");
refused('listen = unix:/x/y unix:/x/y', "listen: 'unix:/x/y': given twice");
refused('dns_servers = ns.example.org', "dns_servers: 'ns.example.org' is not an IP address of a name server: write 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53");
refused('dns_servers = ' . join(' ', map { "192.0.2.$_" } 1 .. 17), 'dns_servers: more than 16 name servers');
my $comment = "behind a value '#' begins no comment: put that into a line of its own";
refused($_->[0], "$_->[1]: $comment") for ['listen = 127.0.0.1:25 # only local', 'listen'], ["drain_timeout = 5s\t# short", 'drain_timeout'], ['relay_from = 10.0.0.0/8 #ours', 'relay_from'];
refused('relay: mail.example.org', "expected 'key = value', with '=' and not ':'");
refused('relay', "expected 'key = value'");
my ($code, $said) = check("relay_password = a #b\nrelay = submission://me\@smtp.example.org");
unlike $said, qr/begins no comment/, "a value may have '#'";
for (['smtp:smtp.example.org:587', 'smtp://smtp.example.org:587'], ['submission:smtp.example.org:587', 'submission://smtp.example.org:587']) {
    ($code, $said) = check("relay = $_->[0]");
    is $code, 78, $_->[0];
    like $said, qr/\AFILE:3: relay: .*write '\Q$_->[1]\E'\n\z/, "$_->[0]: told in one line";
}
($code, $said) = check('relay = ::1:25');
like $said, qr/put an IPv6 address in brackets/, 'an IPv6 address is none of these';

# Settings that are allowed, but hardly meant.
sub warned { my ($lines, $want) = @_; my ($code, $said) = check($lines); is $code, 0, $lines; like $said, qr/warning: \Q$want\E/, "$lines: warned"; return }
my $secret = Petrel::spit("$dir/password", "x\n");
chmod 0644, $secret;
($code, $said) = check('relay = smtp://127.0.0.1:2525');
is $code, 0, 'good settings';
unlike $said, qr/warning: (?!tls_ca)/, 'without a warning';
like $said, qr/^# These settings have no errors\.\n\z/m, 'and check says so at its end';
unlike +(check('listen = x'))[1], qr/no errors/, 'not of bad ones';
warned('routes = * submission://smtp.example.org:465?tls=encrypt', 'smtp.example.org:465: port 465 has TLS from the first byte: write smtps://');
warned('routes = * smtp://smtp.example.org:465', 'smtp.example.org:465: port 465');
warned("routes = * smtps://smtp.example.org:$_?tls=encrypt", "smtp.example.org:$_: port $_ begins without TLS: write submission://") for 25, 587;
warned('relay = submission://smtp.example.org', "smtp.example.org:587: port 587 usually takes mail only after a login, and no user is set: write submission://USER\@smtp.example.org, and a line 'smtp.example.org USER PASSWORD' into the file that auth_passwords names, unless this host is known there by its address");
{   # What it asks for, as it says it, is heard no more.
    my $passwords = Petrel::spit("$dir/passwords", "smtp.example.org joe x\n");
    chmod 0600, $passwords;
    ($code, $said) = check("relay = submission://joe\@smtp.example.org\nauth_passwords = $passwords");
    is $code, 0, 'a user, and his line';
    unlike $said, qr/after a login/, 'no word of a login';
}
warned("routes = * smtp://a.example.org?concurrency=2&initial=5", 'a.example.org: an initial concurrency of 5 is above the limit of 2');
warned("routes =\n  * mx\n  example.net smtp://a.example.org", "FILE:3: routes: the route 'example.net' is never chosen, because '*' stands before it and the first match wins: move it up, or remove it");
warned("routes = * mx\nsender_routes =\n  example.net mx\n  me\@Example.net mx", "FILE:4: sender_routes: the route 'me\@example.net' is never chosen, because 'example.net' stands before it");
refused("routes =\n  example.net mx\n  * mx\n  Example.net mx", "routes: 'Example.net mx': duplicate pattern, which never matches; remove one");
($code, $said) = check('routes = * hold, ' . join ', ', map { "a$_.example mx" } 1 .. 30);
unlike $said, qr/never chosen/, 'what holds hides nothing: released mail goes past it';
($code, $said) = check('routes = * mx, ' . join ', ', map { "a$_.example mx" } 1 .. 30);
is scalar(() = $said =~ /the route 'a\d+\.example' is never chosen/g), 10, 'ten such routes are named';
like $said, qr/20 more routes are never chosen/, 'the others are counted';
warned("maximal_queue_lifetime = 1d\nbounce_queue_lifetime = 2d", 'bounce_queue_lifetime is longer');
warned("relay = smtp://me\@a.example.org?tls=encrypt\nrelay_password_file = $secret", "relay_password: $secret can be read by all users: chmod 600");
chmod 0600, $secret;
($code, $said) = check("relay = smtp://me\@a.example.org?tls=encrypt\nrelay_password_file = $secret");
unlike $said, qr/can be read by all users/, 'a file of mode 0600 is safe';
SKIP: {
    skip 'root alone can check as another user', 8 if $> != 0;
    chmod 0755, $dir;
    my $lines = "user = nobody\nrelay = smtp://me\@a.example.org?tls=encrypt\nrelay_password_file = $secret";
    warned($lines, "$secret cannot be read by `user`: a reload will be refused, and a start by the unit of systemd; it belongs to root (mode 0600): `chown nobody $secret` if the daemon runs as nobody; or name a copy");
    chown scalar(getpwnam 'nobody'), -1, $secret;
    ($code, $said) = check($lines);
    is $code, 0, 'the owner is `user`';
    unlike $said, qr/cannot be read/, 'who can read it';
    like $said, qr/have no errors/, 'and the check goes on to its end';
    chown 0, -1, $secret;
    # The user itself reads it: at check, and the daemon at a reload, within the sandbox.
    ($code, $said) = Petrel::command('', 'setpriv', '--reuid=nobody', '--clear-groups', $Petrel::binary, qw(-c /dev/null -o), "auth_passwords=$secret", '-o', 'relay=smtp://me@a.example.org?tls=encrypt', 'check');
    is "$code $said", "78 command line: auth_passwords: cannot read '$secret': Permission denied; it belongs to root (mode 0600): `chown nobody $secret` if the daemon runs as nobody\n", 'whose it is, and the command that opens it';
    my $petrel = Petrel->new(user => 'nobody', relay => 'smtp://me@a.example.org?tls=encrypt', relay_password_file => $secret);
    chmod 0755, $petrel->{dir};
    $petrel->start;
    $petrel->run('reload');
    ok $petrel->wait_log(qr/relay_password_file: cannot read '\Q$secret\E': Permission denied; it belongs to root \(mode 0600\): `chown nobody /), 'a reload says it, too';
    unlike $petrel->log, qr/sandbox: system call/, 'and asks nothing that the sandbox forbids';
    $petrel->stop;
}
umask 0022;
warned("relay = smtp://me\@a.example.org?tls=encrypt\nrelay_password = x", 'relay_password: FILE can be read by all users: chmod 600');
unlike $said, qr/\bx\b.*password/, 'no secret is shown';
($code, $said) = Petrel::command('', $Petrel::binary, '-c', '/dev/null', '-o', 'spool=some/where', '-o', 'hostname=mail.example.org', 'check');
like $said, qr/warning: spool is not an absolute path/, 'a relative spool';
done_testing;
