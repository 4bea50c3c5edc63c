#!/usr/bin/perl
# Logins that Dovecot checks (auth = dovecot:PATH): every mechanism, wrong passwords, its restart in the middle, and servers
# in its place that say nonsense, too much, or nothing.
use lib 't/e2e';
use E2E;
use Client;
use Digest::SHA qw(hmac_sha256);
use Dovecot;
use IO::Socket::UNIX;
use Socket qw(SOL_SOCKET SO_LINGER);
use MIME::Base64;

my $missing = Dovecot::missing() || Dovecot::no_tokens();
plan skip_all => $missing if $missing;

my $scratch = tempdir('auth-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $home = "$scratch/dovecot";
mkdir $home or die;
my $key = 'a key of thirty-two octets, right';
my %users = ('joe' => 'pa ss', 'Ann@corp.test' => 'secret');
my $dovecot = Dovecot->start_auth($home, %users, hmac => $key);

my $petrel = Petrel->new(relay_from => '192.0.2.0/24', routes => '* discard', auth => "dovecot:$dovecot->{socket}", auth_cleartext => 'loopback',
    auth_failure_limit => 0)->start;

sub b64 { return encode_base64(shift, '') }
sub plain { return b64("\0" . join "\0", @_) }
sub jwt {
    my ($user, $with) = @_;
    my $url = sub { my $t = b64(shift); $t =~ tr{+/}{-_}; $t =~ s/=+$//; return $t };
    my $body = join '.', $url->('{"alg":"HS256","typ":"JWT"}'), $url->(sprintf '{"sub":"%s","iat":%d,"exp":%d}', $user, time - 10, time + 600);
    return $body . '.' . $url->(hmac_sha256($body, $with));
}

# A client behind EHLO, and the last line of a dialogue.
my $address = 1; # each has its own: failures delay the next reply to one
sub client { return Client->greeted($petrel->{port}, LocalAddr => '127.0.0.' . (++$address % 250 || 1)) }
sub login { my ($client, @lines) = @_; my $reply; $reply = $client->say($_) for @lines; return $reply }

my $c;
ok Petrel::wait_for(sub { ($c = client()) && $c->say('EHLO c.test') =~ /AUTH PLAIN LOGIN XOAUTH2 OAUTHBEARER/ }), 'what Dovecot has is offered, but SCRAM';
like login($c, 'AUTH PLAIN ' . plain('joe', 'pa ss')), qr/^235 2\.7\.0/, 'PLAIN';
like $c->say('MAIL FROM:<a@b.test>'), qr/^250/, 'mail';
like $c->say('RCPT TO:<x@far.test>'), qr/^250/, 'may relay';
like $c->say('DATA'), qr/^354/, 'content';
$c->put("Subject: s\r\n\r\nb\r\n.\r\n");
like $c->reply, qr/^250/, 'taken';
ok $petrel->wait_log(qr/sasl_method=PLAIN, sasl_username=joe\b/), 'the log has the user';
like login(client(), 'AUTH PLAIN', plain('joe', 'pa ss')), qr/^235/, 'PLAIN without an initial response';
like login(client(), 'AUTH LOGIN', b64('joe'), b64('pa ss')), qr/^235/, 'LOGIN';
like login(client(), 'AUTH LOGIN ' . b64('joe'), b64('wrong')), qr/^535 5\.7\.8/, 'a wrong password';
like login(client(), 'AUTH PLAIN ' . plain('nobody', 'x')), qr/^535 5\.7\.8/, 'an unknown user';
like login(client(), 'AUTH PLAIN ' . plain("joe\tuser=root\tresp=x", 'x')), qr/^501/, 'a TAB in a name';
like login(client(), 'AUTH PLAIN ' . b64("root\0joe\0pa ss")), qr/^535/, 'for another one';
like login(client(), 'AUTH SCRAM-SHA-256 biws'), qr/^504/, 'SCRAM is not offered';
my $name = client();
like login($name, 'AUTH PLAIN ' . plain('ANN@CORP.TEST', 'secret')), qr/^235|^535/, 'a name in other letters';

# Tokens
like login(client(), 'AUTH XOAUTH2 ' . b64("user=jim\1auth=Bearer " . jwt('jim', $key) . "\1\1")), qr/^235/, 'XOAUTH2';
like login(client(), 'AUTH OAUTHBEARER ' . b64("n,a=jim,\1auth=Bearer " . jwt('jim', $key) . "\1\1")), qr/^235/, 'OAUTHBEARER';
like login(client(), 'AUTH OAUTHBEARER', b64("n,a=jim,\1auth=Bearer " . jwt('jim', $key) . "\1\1")), qr/^235/, 'without an initial response';
$c = client();
my $challenge = login($c, 'AUTH OAUTHBEARER ' . b64("n,a=jim,\1auth=Bearer " . jwt('jim', 'another key of thirty-two octets!') . "\1\1"));
like $challenge, qr/^334 \S+/, 'a wrong token: Dovecot says why';
like decode_base64(($challenge =~ /^334 (\S+)/)[0] // ''), qr/"status"/, 'in JSON';
like $c->say(b64("\1")), qr/^535 5\.7\.8/, 'then it fails';
like $c->say('AUTH PLAIN ' . plain('joe', 'pa ss')), qr/^235/, 'another attempt of the same client';
like login(client(), 'AUTH XOAUTH2 ' . b64('x' x 6100)), qr/^454 4\.7\.0/, 'too long for Dovecot: nothing is sent';
like login(client(), 'AUTH XOAUTH2 ab-c'), qr/^501/, 'no Base64';
$c = client();
like login($c, 'AUTH XOAUTH2 ' . b64("user=jim\1auth=Bearer x\1\1"), '*'), qr/^501 5\.7\.0/, 'cancelled at the challenge';
like $c->say('NOOP'), qr/^250/, 'and on it goes';
is $petrel->log =~ /cannot|lost|closed/ ? $petrel->log : '', '', 'one connection for all of it';

# A crowd, whose answers are not mixed up.
my @crowd = map { client() } 1 .. 12;
my @right = map { $_ % 3 == 0 } 0 .. 11;
for my $i (0 .. 11) { $crowd[$i]->put('AUTH PLAIN ' . plain('joe', $right[$i] ? 'pa ss' : "wrong$i") . "\r\n") }
my @replies = map { $_->reply } @crowd;
is_deeply [ map { /^235/ ? 1 : /^535/ ? 0 : $_ } @replies ], [ map { $_ ? 1 : 0 } @right ], 'each has its own answer';

# --- Dovecot goes, and comes back

$dovecot->kill9;
ok $petrel->wait_log(qr/warning: auth: \S+auth\.sock: .*; until it is back logins get 454/), 'the log says that it is gone';
like login(client(), 'AUTH PLAIN ' . plain('joe', 'pa ss')), qr/^454 4\.7\.0 temporary authentication failure/, '454 without it';
ok Petrel::wait_for(sub { ($petrel->run('status', '--json'))[1] =~ /auth_down/ }), 'a finding';
$dovecot = Dovecot->start_auth($home, %users, hmac => $key);
ok $petrel->wait_log(qr/auth: \S+auth\.sock is back/), 'it is back';
like login(client(), 'AUTH PLAIN ' . plain('joe', 'pa ss')), qr/^235/, 'and so are logins';
$dovecot->kill9;

# --- In its place

my $greeting = "VERSION\t1\t2\nMECH\tPLAIN\tplaintext\nSPID\t1\nCUID\t1\nCOOKIE\tx\nDONE\n";
my $path = "$scratch/fake";
unlink $path;
my $server = IO::Socket::UNIX->new(Local => $path, Listen => 5) or die;
chmod 0666, $path;
$petrel->configure(auth => "dovecot:$path");
kill 'HUP', $petrel->{pid};
sub took { my $greets = shift; my $s = $server->accept or die; $s->autoflush(1); print $s $greets; return $s }
# The number of the next request.
sub asked { my $s = shift; while (my $line = <$s>) { return $1 if $line =~ /^AUTH\t(\d+)\t/ } return }

my $fake = took($greeting);
my $hello = <$fake> . <$fake>;
like $hello, qr/^VERSION\t1\t\d+\nCPID\t[1-9]\d*\n\z/, 'our greeting';
sub waiting { my $w = client(); $w->put('AUTH PLAIN ' . plain('joe', 'x') . "\r\n"); return $w }
my $one = waiting();
my $line = <$fake>;
like $line, qr/^AUTH\t\d+\tPLAIN\tservice=smtp\tnologin\tlip=127\.0\.0\.1\tlport=\d+\trip=127\.0\.0\.\d+\trport=\d+\tresp=AGpvZQB4\n\z/, 'a request, resp= last';
my ($number) = $line =~ /^AUTH\t(\d+)/;
my $two = waiting();
my $second = asked($fake);
print $fake "OK\t" . ($second + 77) . "\tuser=root\nNONSENSE\t1\t\0\nFAIL\t" . ($number + 4e9) . "\n\nOK\t$second\tuser=a\001tb\nFAIL\t$number\ttemp\n";
like $one->reply, qr/^454/, 'FAIL with temp is temporary; answers that nobody awaits are nothing';
like $two->reply, qr/^454/, 'a user with a TAB ends the connection';
close $fake;

for my $case (["OK\tabc\tuser=x\n", 'a number that is none'], [('x' x 9000), 'a line without an end'], ["OK\n", 'no number'], ["FAIL\t99999999999999\n", 'a number too large']) {
    $fake = took($greeting);
    my $w = waiting();
    ok asked($fake), "asked again behind the last one: $case->[1]";
    print $fake $case->[0];
    like $w->reply, qr/^454/, $case->[1];
    is sysread($fake, my $rest, 100), 0, 'and the connection ends' if $case->[0] !~ /x{99}/;
    close $fake;
}
# Greetings that are none: the next connection is the good one.
for my $bad ("VERSION\t2\t0\n", "220 smtp.test ESMTP\nDONE\n", "OK\t1\tuser=x\n", join('', map { "MECH\tX$_\n" } 1 .. 200)) {
    $fake = took($bad);
    1 while sysread $fake, my $rest, 4096;
    close $fake;
}
pass 'each is hung up on';
$fake = took("VERSION\t1\t9\tmore\nMECH\tplain\nFUTURE\tx\nDONE\tx\n");
my $w = waiting();
my $n = asked($fake);
print $fake "OK\t$n\tuser=Joe\tmail=x\nOK\t$n\tuser=root\n";
like $w->reply, qr/^235/, 'words of the future are no harm';
like $w->say('MAIL FROM:<a@b.test>'), qr/^250/, 'the client goes on';
like $w->say('RCPT TO:<x@far.test>'), qr/^250/, 'as the user that it said';
# The share of a client.
my @same = map { Client->greeted($petrel->{port}) } 1 .. 5;
for my $c (@same) { $c->put('AUTH PLAIN ' . plain('joe', 'x') . "\r\n") if $c != $same[4] }
my @asked = map { asked($fake) } 1 .. 4;
like login($same[4], 'AUTH PLAIN ' . plain('joe', 'x')), qr/^454 4\.7\.0 too many concurrent logins from your address/, 'the fifth attempt of one address';
print $fake "FAIL\t$_\tcode=temp_fail\n" for @asked;
is scalar(grep { $_->reply =~ /^454/ } @same[ 0 .. 3 ]), 4, 'the others have their answers';
# A client that goes away takes its request with it.
$w = waiting();
$n = asked($fake);
setsockopt $w->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0; # a reset: a client that has closed its half waits
$w->close;
like scalar(<$fake>), qr/^CANCEL\t$n$/, 'its request is cancelled';
print $fake "OK\t$n\tuser=joe\n";
like client()->say('NOOP'), qr/^250/, 'a late answer is no harm';
unlike $petrel->log, qr/AGpvZQ|pa ss|eyJ/, 'no secret in the log';
is $petrel->stop, 0, 'it ends well';

for my $bad (['dovecot:auth.sock', qr/auth: write dovecot:PATH/], ['pam', qr/auth: write dovecot:PATH/], ['dovecot:/' . 'x' x 200, qr/auth: the path is too long/]) {
    my ($code, $out) = Petrel->new(auth => $bad->[0])->run('check');
    is $code, 78, 'refused';
    like $out, $bad->[1], 'and why';
}
Petrel::spit("$scratch/users", "joe:{PLAIN}secret\n");
like +(Petrel->new(auth => "dovecot:$path", auth_users => "$scratch/users")->run('check'))[1], qr/auth: auth_users is set, too/, 'two sources';
done_testing;
