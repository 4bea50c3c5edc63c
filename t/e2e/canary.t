#!/usr/bin/perl
# Canaries: a smarthost that refuses the login, the sender, or is down is found without any mail; said once; readiness; mail is the better canary.
use lib 't/e2e';
use E2E;
use MoodySmarthost;

my $scratch = tempdir('canary-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $smarthost = MoodySmarthost->new($scratch);
my $port = $smarthost->{port};
sub mode { return $smarthost->mode(shift) }
sub heard { return $smarthost->heard }
sub forget { return $smarthost->forget }

Petrel::spit("$scratch/password", 'secret');
chmod 0600, "$scratch/password";
my $petrel = Petrel->new(hostname => 'petrel.test', relay => "smtp://alice\@127.0.0.1:$port", relay_password_file => "$scratch/password", ready_when => 'accepting, upstream', canary_grace => 0,
    minimal_backoff_time => '1h', maximal_backoff_time => '1h', http => '127.0.0.1:' . (my $http = Petrel::free_port()) . '?access=read')->start;

sub upstream { my ($code, $text) = $petrel->run(qw(status --json)); return decode_json($text)->{upstreams}[0] // {} }
sub findings { my ($code, $text) = $petrel->run(qw(status --json)); return join ' ', map { $_->{code} } @{ decode_json($text)->{findings} } }
# A reload has the canary go a second later.
sub canary { forget(); die 'no reload' if ($petrel->run('reload'))[0] != 0; return Petrel::wait_for(sub { heard() =~ /^(?:RSET|AUTH \S+|MAIL .*)\nQUIT$/m || $smarthost->is_down }) }
sub becomes { my $code = shift; return Petrel::wait_for(sub { (upstream()->{code} // '-') eq $code && upstream()->{since_ms} }) }
sub metric { my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or die; print $s "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"; local $/; return <$s> }

is upstream()->{relay}, "127.0.0.1:$port", 'a smarthost that we log in to is watched';
ok upstream()->{up}, 'and up as long as nothing is known';
is upstream()->{success_ms}, 0, 'without a success yet';
is(($petrel->run('health'))[0], 0, 'ready');
ok canary(), 'a canary';
ok becomes(''), 'it works';
is heard(), "EHLO petrel.test\nAUTH PLAIN\nMAIL FROM:<postmaster\@petrel.test>\nRSET\nQUIT\n", 'the dialogue, and no mail';
cmp_ok upstream()->{success_ms}, '>', 0, 'a success';
unlike $petrel->log, qr/127\.0\.0\.1:$port (?:takes|refuses|does)/, 'which the log does not need';
like metric(), qr/^petrel_upstream_up\{relay="127\.0\.0\.1:$port"\} 1\n/m, 'a metric';
like metric(), qr/^petrel_upstream_success_seconds\{relay="127\.0\.0\.1:$port"\} \d{10}/m, 'and the time of its success';

# The login.
mode('login');
$petrel->configure(canary_interval => '2h');
canary();
ok becomes('login_refused'), 'a refused login';
like upstream()->{text}, qr/535 5\.7\.8 bad password/, 'in the words of the host';
ok $petrel->wait_log(qr/warning: 127\.0\.0\.1:$port refuses the login: .*535 5\.7\.8/), 'the log says so' or diag $petrel->log;
like findings(), qr/\blogin_refused\b/, 'a finding';
my ($code, $text) = $petrel->run('health');
is $code, 1, 'not ready';
like $text, qr/^not ready: upstream: 127\.0\.0\.1:$port: .*535/, 'why';
like metric(), qr/^petrel_upstream_up\{relay="127\.0\.0\.1:$port"\} 0\n/m, 'its metric';
cmp_ok upstream()->{next_ms} / 1000 - time, '>', 3000, 'it logs in again as late as mail would';
my $said = Petrel::count($petrel->log, qr/refuses the login/);
canary();
is Petrel::count($petrel->log, qr/refuses the login/), $said, 'the same again is not said again';
is heard(), "EHLO petrel.test\nAUTH PLAIN\nQUIT\n", 'the dialogue';

# The sender.
mode('sender');
canary();
ok becomes('sender_refused'), 'a refused sender';
ok $petrel->wait_log(qr/127\.0\.0\.1:$port refuses the sender: .*553 5\.7\.1/), 'the log says so' or diag $petrel->log;
unlike findings(), qr/login_refused/, 'the other finding has ended';
like findings(), qr/sender_refused/, 'and this one holds';
is(($petrel->run('health'))[0], 0, 'the host is not down');

# Down, and up again.
mode('down');
canary();
ok becomes('upstream_down'), 'a host that hangs up';
is(($petrel->run('health'))[0], 1, 'not ready');
cmp_ok upstream()->{next_ms} / 1000 - time, '<', 130, 'it is asked again soon';
mode('good');
canary();
ok becomes(''), 'it works again';
ok $petrel->wait_log(qr/127\.0\.0\.1:$port takes our mail again/), 'the log says so' or diag $petrel->log;
ok $petrel->wait_log(qr/trouble=upstream_down.*\n(?:.*\n)*.*recovered=upstream_down/), 'and what began and ended' or diag $petrel->log;
is(($petrel->run('health'))[0], 0, 'ready');

# Mail is the better canary: its failure counts, its success, and its sender is that of the next canary.
mode('login');
like $petrel->send_mail('ann@x.test', 'b@y.test', "Subject: x\n\nx"), qr/^250/m, 'mail';
ok becomes('login_refused'), 'its refused login counts';
cmp_ok upstream()->{next_ms} / 1000 - time, '>', 6000, 'a canary would be one login more: it waits twice as long';
mode('good');
$petrel->run(qw(queue retry --all));
ok becomes(''), 'its success counts';
ok $petrel->wait_empty, 'it is delivered';
canary();
ok Petrel::wait_for(sub { heard() =~ /QUIT/ }), 'the next canary';
like heard(), qr/^MAIL FROM:<ann\@x\.test>$/m, 'has its sender';
unlike heard(), qr/RCPT/, 'and no recipient';

# Nobody is asked without a login, unless the route says so; and none if the interval is 0.
$petrel->configure(relay => "smtp://127.0.0.1:$port", relay_password_file => undef);
$petrel->run('reload');
is_deeply upstream(), {}, 'a host without a login is not watched';
$petrel->configure(relay => "smtp://127.0.0.1:$port?canary=yes");
canary();
like heard(), qr/^EHLO petrel\.test\nMAIL FROM:<postmaster\@petrel\.test>\nRSET\nQUIT\n/m, 'canary=yes: it is' or diag heard();
forget();
$petrel->configure(canary_interval => 0);
$petrel->run('reload');
is upstream()->{next_ms}, 0, 'canary_interval = 0: never';
$petrel->configure(ready_when => 'mail');
($code, $text) = $petrel->run('reload');
is $code, 78, 'a bad ready_when';
like $text, qr/petrel\.conf:\d+: ready_when: 'mail': say accepting, upstream, or age:30m/, 'names its line';
$petrel->configure(ready_when => undef, relay => "smtp://127.0.0.1:$port?canary=maybe");
($code, $text) = $petrel->run('reload');
like $text, qr/canary=maybe: use yes or no/, 'a bad canary';
is $petrel->stop, 0, 'it ends';
done_testing;
