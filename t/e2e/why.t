#!/usr/bin/perl
# Why does it wait? `petrel queue why` and the sites of `petrel status`, for mail that waits for each cause:
# a dead site, a full window, rate delays, a rate, a reply of 450, an operator, the active set, no daemon.
use lib 't/e2e';
use E2E;

my $program = "$Petrel::root/$Petrel::build/t/bench/sink";
plan skip_all => "no $program" unless -x $program;

my $id_pattern = qr/[0-9A-Z]{10}-[0-9A-Z]{8}/;
my $clock = qr/(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\dZ/;
my $in = qr/$clock \(in [^)]+\)/;
my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') or die "no port: $!";
my $dead = $taken->sockport; # held, so that nobody else listens there
my $later = Sink->start('--fail-rcpt', 'later:450');
my $slow = Sink->start;
$slow->hold('dot');
# A destination is a host and port: each has settings of its own.
my %quick = map { $_ => Sink->start } qw(delay pause rate);
my $port = $quick{rate}{port};
my $petrel = Petrel->new(
    routes => join("\n",
        "dead.test smtp://127.0.0.1:$dead", "slow.test smtp://127.0.0.1:$slow->{port}?concurrency=1&initial=1&recipients=1",
        "delay.test smtp://127.0.0.1:$quick{delay}{port}?rate_delay=1h", "pause.test smtp://127.0.0.1:$quick{pause}{port}?transport_rate_delay=2h",
        "rate.test smtp://127.0.0.1:$port?destination_rate=1/h", 'hold.test hold', "* smtp://127.0.0.1:$later->{port}"),
    minimal_backoff_time => '10m')->start;

sub send_one {
    my ($from, @to) = @_;
    my ($id) = $petrel->send_mail($from, \@to, "Subject: hi\n\nletter") =~ /queued as ($id_pattern)/ or die 'not accepted';
    return $id;
}
my $asked = $petrel;
sub why { return $asked->run('queue', 'why', @_) }
# Waits until it says so.
sub says {
    my ($id, $pattern, $name) = @_;
    my $text;
    return ok(Petrel::wait_for(sub { $text = (why($id))[1]; $text =~ $pattern }), $name) || diag $text;
}
sub site_of { my $key = shift; return (grep { $_->{site} eq $key } @{ decode_json($petrel->status)->{sites} })[0] }
sub sent { my $to = shift; return $petrel->wait_log(qr/to=<\Q$to\E>.*status=sent/) }

# Those that hang, which are asked about later.
my $silent_dns = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die "no port: $!";
my $mute = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50) or die "no port: $!"; # nobody accepts
my $mute_port = $mute->sockport;
my $folder = tempdir(CLEANUP => 1);
my $local = IO::Socket::UNIX->new(Local => "$folder/lmtp", Listen => 5) or die "no socket: $!";
my $full = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "no port: $!";
my $full_port = $full->sockport; # and there is no room for more:
my @plugs = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $full_port, Blocking => 0) } 1 .. 5;
my $hung = Sink->start('--delay', 'data:600000');
my $hung_dot = Sink->start('--delay', 'dot:600000');
my $stuck = Petrel->new(dns_servers => '127.0.0.1:' . $silent_dns->sockport, smtp_connect_timeout => '10m',
    routes => join("\n", 'dns.test mx', "mute.test smtp://127.0.0.1:$mute_port", "local.test lmtp://unix:$folder/lmtp", "tls.test smtps://127.0.0.1:$mute_port?tls=encrypt",
        "full.test smtp://127.0.0.1:$full_port", "data.test smtp://127.0.0.1:$hung->{port}", "dot.test smtp://127.0.0.1:$hung_dot->{port}"))->start;
my %stuck;
for my $domain (qw(dns mute local tls full data dot)) {
    ($stuck{"$domain.test"}) = $stuck->send_mail('anna@here.test', ["x\@$domain.test"], "Subject: hi\n\nletter") =~ /queued as ($id_pattern)/ or die 'not accepted';
}

# --- A dead site

my $one = send_one('anna@here.test', 'x@dead.test');
ok $petrel->wait_log(qr/ $one: to=.*status=deferred/), 'one is deferred';
says $one, qr/^site now: the site has been dead since $clock \([^)]+ ago\), tried again at $in: .*refused/m, 'why it is dead, since when, and until when';
my ($code, $text) = why($one);
is $code, 0, 'queue why';
like $text, qr/^id:       $one$/m, 'its name';
like $text, qr/^queue:    deferred: on disk until its next attempt$/m, 'its place';
like $text, qr/^from:     <anna\@here\.test>$/m, 'its sender';
like $text, qr/^arrived:  $clock \(.* ago\)$/m, 'its age';
like $text, qr/^attempts: 1 so far$/m, 'the attempts';
like $text, qr/^because:  the next attempt is at $in, or as soon as its site works again$/m, 'the next attempt';
like $text, qr/^next hop: smtp:\[?127\.0\.0\.1\]?:$dead: recipients: 1$/m, 'the next hop' or diag $text;
like $text, qr/^backlog:  messages that wait on disk for that site: 1$/m, 'it is backlogged';
like $text, qr/^expires:  \d{4}-\d\d-\d\d $clock \(in 4 d 23 h\): open recipients then fail, and <anna\@here\.test> is notified$/m, 'when it expires';
like $text, qr/^to:       <x\@dead\.test> .*refused/m, 'who waits, and the last reason';
my $json = decode_json((why('--json', $one))[1]);
is $json->{queue_id}, $one, 'in JSON';
is $json->{why}{place}, 'deferred', 'its place';
ok $json->{why}{backlogged}, 'it is backlogged';
is $json->{why}{hops}[0]{open}, 1, 'recipients of the hop';
is $json->{why}{hops}[0]{site}{state}, 'dead', 'the state of its site';
is $json->{why}{hops}[0]{site}{bound}, 'dead', 'what binds';
cmp_ok $json->{why}{expires_ms}, '>', 1000 * (time + 4 * 86400), 'and when it expires';

# --- A full window

my @slow = map { send_one("s$_\@here.test", "s$_\@slow.test") } 1 .. 3;
says $slow[0], qr/^queue:    active: in memory, being tried$(?:.*)^because:  nothing holds it back; it is being delivered$/ms, 'one is being delivered';
says $slow[1], qr/^because:  its window is full: 1 of 1 sessions are open, 1 carry mail; it is at its concurrency limit; 2 recipients wait there$/m, 'the others wait for it';
like +(why($slow[1]))[1], qr/recipients: 1 \(1 waiting, 0 being delivered, 0 deferred\)$/m, 'its recipients';
my $site = site_of("smtp:[127.0.0.1]:$slow->{port}") || site_of("smtp:127.0.0.1:$slow->{port}");
ok $site, 'its site is in the status' or diag $petrel->status;
is $site->{$_->[0]}, $_->[1], "its $_->[0]" for [window => 1], [sessions => 1], [busy => 1], [idle => 0], [waiting => 2], [limit => 1], [state => 'alive'], [bound => 'window'], [ceiling => 0];

# --- Delays and rates: the first of each goes at once

my %delayed;
for my $domain (qw(delay pause rate)) {
    send_one('bob@here.test', "first\@$domain.test");
    ok sent("first\@$domain.test"), "$domain: the first is sent";
    $delayed{$domain} = send_one('bob@here.test', "next\@$domain.test");
}
says $delayed{delay}, qr/^because:  destination_rate_delay is 1 h 0 min; the next delivery may begin at $in$/m, 'a rate delay';
says $delayed{pause}, qr/^because:  transport_rate_delay is 2 h 0 min; the next delivery may begin at $in$/m, 'one of the transport';
says $delayed{rate}, qr{^because:  destination_rate is 1/h; the next delivery may begin at $in$}m, 'a rate';

# --- A reply

my $refused = send_one('anna@here.test', 'later@live.test', 'good@live.test');
ok sent('good@live.test'), 'one of two is sent';
says $refused, qr/^because:  the next attempt is at $in$/m, 'the other is due later';
like +(why($refused))[1], qr/^to:       <later\@live\.test> .*450/m, 'since it was told so';
ok Petrel::wait_for(sub { (why($refused))[1] !~ /good\@/ }), 'who has it is not told of, once that is written down';
unlike +(why($refused))[1], qr/^site now:/m, 'its site is well';

# --- An operator, a route

is +($petrel->run('queue', 'hold', $one))[0], 0, 'one is held';
says $one, qr/^queue:    hold: not delivered, not retried and never expiring until it is released$/m, 'it is held';
says $one, qr/^because:  held by the operator, $clock \(.* ago\)$/m, 'by whom and since when';
my $kept = send_one('anna@here.test', 'a@hold.test');
says $kept, qr/^because:  held by a route, $clock/m, 'another by a route';

# --- The status

($code, $text) = $petrel->run('status');
is $code, 0, 'status';
like $text, qr/^sites      \d+; dead: 1; destinations: \d+; recipients waiting: \d+; messages backlogged: \d+$/m, 'how many sites';
like $text, qr/^  site +waiting +backlogged +window +open +busy +idle +ceiling +rate +latency +state, and bound$/m, 'a table of them';
like $text, qr/^  \S+:$dead\]? +0 +\d+ +0 +0 +0 +0 .* dead until $in: .*refused$/m, 'the dead one';
like $text, qr/^  \S+:$slow->{port}\S* +\d +0 +1 +1 +1 +0 +- +- .* alive, window$/m, 'the slow one' or diag $text;
like $text, qr{^  \S+:$port\S* +1 .* 1/h .* alive, rate until $in$}m, 'the one with a rate';
is +($petrel->run('status', '--sites'))[0], 0, 'all of them';
like +($petrel->run('status', '--sites'))[1], qr/:$dead/, 'with the dead one';
is +($petrel->run('status', '--sites', '--yaml'))[0], 64, 'an unknown flag';
my $status = decode_json($petrel->status);
is scalar @{ $status->{sites} }, $status->{site_totals}{sites}, 'JSON has all sites';
is $status->{site_totals}{dead}, 1, 'how many are dead';
is_deeply $status->{limits}, {active_limit => 20000, active_recipient_limit => 40000, delivery_session_limit => 500}, 'the limits';

# --- Wrong requests

is +(why())[0], 64, 'no id';
is_deeply [why('01JD3ZK5Q8-9F3K2C7A')], [65, "petrel queue: 01JD3ZK5Q8-9F3K2C7A: no such message\n"], 'an unknown one';
is +(why('nonsense'))[0], 64, 'no id at all';
like +(why($one, $kept))[1], qr/^id:       $one$(?:.*)^\n^id:       $kept$/ms, 'two at once';
is scalar(() = (why('--to', 'dead.test'))[1] =~ /^id: /mg), 1, 'by a filter';

# --- Activity of sessions: each waits for something that does not come

$asked = $stuck;
sub says_of_session {
    my ($domain, $pattern, $name) = @_;
    says($stuck{$domain}, qr/^session:  $pattern/m, $name);
}
my $span = qr/\d+ (?:ms|s|min)/;
says_of_session('dns.test', qr/looking up MX of dns\.test for $span$/m, 'a name server that does not answer');
says_of_session('mute.test', qr/connected to 127\.0\.0\.1\[127\.0\.0\.1\]:$mute_port, no greeting for $span/, 'a server that does not greet');
says_of_session('local.test', qr/connected to \S*\Q$folder\E\/lmtp, no greeting for $span$/m, 'an LMTP server that does not greet');
says_of_session('tls.test', qr/TLS handshake with 127\.0\.0\.1\[127\.0\.0\.1\]:$mute_port for $span$/m, 'one that does not know of TLS');
says_of_session('full.test', qr/connecting to 127\.0\.0\.1\[127\.0\.0\.1\]:$full_port for $span$/m, 'one that does not answer');
says_of_session('data.test', qr/waiting for the reply to DATA from 127\.0\.0\.1\[127\.0\.0\.1\]:$hung->{port} for $span, with this message$/m, 'one that hangs after DATA');
says_of_session('dot.test', qr/waiting for the reply to the end of the content from 127\.0\.0\.1\[127\.0\.0\.1\]:$hung_dot->{port} for $span, with this message$/m, 'one that hangs after the content');
my ($session) = @{ decode_json((why('--json', $stuck{'data.test'}))[1])->{why}{hops}[0]{sessions} };
is $session->{$_->[0]}, $_->[1], "in JSON: $_->[0]" for [doing => 'reply'], [what => 'DATA'], [remote => "127.0.0.1[127.0.0.1]:$hung->{port}"], [this_message => JSON::PP::true];
cmp_ok abs($session->{since_ms} / 1000 - time), '<', 600, 'since when';
says_of_session('mute.test', qr{connected to \S+, no greeting for $span \(does this port need smtps://\?\)$}m, 'after 10 seconds: with a question');
$stuck->kill9; # what hangs is not waited for
$asked = $petrel;

# --- No daemon

$slow->let_go('dot');
is $petrel->stop('INT'), 0, 'the daemon stops';
($code, $text) = why($refused);
is $code, 0, 'without a daemon';
like $text, qr/^next:     $in$/m, 'the next attempt';
like $text, qr/^because:  no daemon runs; nothing is delivered until it is started; the reasons below are those of its last run$/m, 'and why it does not come';
like $text, qr/^to:       <later\@live\.test> host 127\.0\.0\.1.* said: 450 /m, 'who waits';
ok !exists decode_json((why('--json', $refused))[1])->{why}, 'in JSON: nothing of a scheduler';
like +(why($one))[1], qr/^because:  held by the operator/m, 'what is held is so';
is +(why('01JD3ZK5Q8-9F3K2C7A'))[0], 65, 'an unknown one';

# --- The active set

$petrel->configure(active_limit => 1, routes => "* smtp://127.0.0.1:$slow->{port}?concurrency=1&initial=1");
$slow->hold('dot');
$petrel->start;
my ($first, $second, $third) = map { send_one('c@here.test', "c$_\@slow.test") } 1 .. 3;
says $third, qr/^queue:    incoming: new, on disk, without an attempt$(?:.*)^because:  the active set is full: 1 of 1 messages \(active_limit\); messages before it: [1-9]\d*$/ms, 'the active set is full';
$slow->let_go('dot');
is $petrel->stop('INT'), 0, 'it stops in good order';

done_testing;
