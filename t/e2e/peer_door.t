#!/usr/bin/perl
# The peer door: who comes in, and what becomes of everybody else. The siblings here are openssl's.
use lib 't/e2e';
use E2E;
use Cluster;
use Sibling;

plan skip_all => 'no openssl here' unless Petrel::have('openssl');

my ($old, $new) = map { $_ x 8 } qw(0123456789 abcdefghij);
my $door = Petrel::free_port();
my $host = Petrel->new(cluster => 'mail', cluster_host => 'relay1', cluster_redis => 'none', log_level => 'debug', routes => '* discard');
my $secret = Petrel::spit("$host->{dir}/secret", "$old\n");
chmod 0600, $secret;
sub listen_on { return "127.0.0.1:$host->{port}, 127.0.0.1:$door?peer" }
sub count_of { my $name = shift; return JSON::PP::decode_json($host->status)->{peer}{$name} }
sub listener { return (grep { $_->{kind} eq 'peer' } @{ JSON::PP::decode_json($host->status)->{listeners} })[0] }
# Rotations say HUP, and wait for the line of the reload.
sub reload { my $before = () = $host->log =~ /settings reloaded/g; kill 'HUP', $host->{pid}; return Petrel::wait_for(sub { (() = $host->log =~ /settings reloaded/g) > $before }) }
sub mail_flows { my $client = Client->greeted($host->{port}) or return; return $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: m\r\n\r\nm\r\n") =~ /^250/ }
sub is_at_rest { return Petrel::wait_for(sub { listener()->{sessions} == 0 }) }

# --- Output of `check`

for (['listen needs a secret', {}, qr/listen: \?peer needs cluster_secret/],
    ['and a group', {cluster => undef, cluster_secret_file => $secret}, qr/listen: \?peer is for a group of hosts: set cluster/],
    ['a short line', {cluster_secret => 'too-short-to-be-a-secret'}, qr/cluster_secret: line 1 has 24 bytes, not 32 to 1024/],
    ['other options', {listen => "127.0.0.1:$door?peer&tls", cluster_secret_file => $secret}, qr/peer has TLS of its own, and no other option beside it/],
    ['an odd address', {cluster_secret_file => $secret, cluster_address => 'a b'}, qr/cluster_address: 'a b': not an address/]) {
    my ($what, $settings, $error) = @$_;
    my $other = Petrel->new(%{ $host->{settings} }, listen => listen_on(), %$settings, spool => "$host->{dir}/unused");
    my ($code, $said) = $other->run('check');
    is $code, 78, "$what: refused";
    like $said, $error, 'with a line';
    unlike $said, qr/$old|too-short/, 'that does not have the secret';
}
my ($code) = Petrel->new(%{ $host->{settings} }, cluster_secret_file => $secret, spool => "$host->{dir}/unused")->run('check');
is $code, 0, 'a secret without a door is right';

# --- Siblings

my $plain = Petrel->new(routes => '* discard')->start;
ok !-e "$plain->{dir}/spool/lock/identity", 'a host without a group has no identity';
my $client = Client->greeted($plain->{port});
like $client->say('XGIVE 01JD3ZK5Q8-9F3K2C7A 1 1 00000000'), qr/^500 /, 'the ports for mail know none of the verbs';
like $client->say('XPEER 1 {}'), qr/^500 /, 'not the first either';
$plain->stop;

$host->configure(listen => listen_on(), cluster_secret_file => $secret)->start;
like $host->log, qr/main: listening on 127\.0\.0\.1:$door for hosts of the group mail/, 'the door is open';
is listener()->{tls}, 'secret', 'the status has it';
my $identity = Petrel::slurp("$host->{dir}/spool/lock/identity");
like $identity, qr/\A[0-9a-f]{32}\n\z/, 'the spool has an identity';
my $sibling = Sibling->connect($door, $old);
my $hello = $sibling->hello;
like $hello, qr/^250 \{"host":"relay1","group":"mail","spool":"@{[substr $identity, 0, 32]}","run":\d+,"now":\d+,"version":"[^"]+","state":"running"\}$/, 'XPEER';
like $sibling->say('NOOP'), qr/^250 /, 'NOOP';
like $sibling->say('EHLO x'), qr/^500 /, 'no SMTP';
$sibling->put("XGIVE 01JD3ZK5Q8-9F3K2C7A 4 6 00000000\r\nnonsenseNONOOP\r\n");
like $sibling->line, qr{^451 4\.3\.0 Its bytes have changed on the way$}, 'what is no message is not taken';
like $sibling->line, qr/^250 /, 'and read away';
$sibling->put("XASK 2\r\n{}");
my $answer;
1 while ($answer = $sibling->line) =~ /^250-/;
like $answer, qr/^(?:502 |250 end)/, 'a question has an answer';
like $sibling->say('QUIT'), qr/^221 /, 'QUIT';
ok $sibling->is_over, 'is the end';
for (['another group', {group => 'post'}, qr/^554 5\.7\.1 this is another group/],
    ['our name', {host => 'relay1'}, qr/^554 5\.7\.1 that is the name of this host/],
    ['ourselves', {host => 'relay1', spool => substr $identity, 0, 32}, qr/^554 5\.7\.1 that is this host itself/],
    ['nobody', {host => ''}, qr/^501 /]) {
    my ($what, $says, $reply) = @$_;
    $sibling = Sibling->connect($door, $old);
    like $sibling->hello(%$says), $reply, "$what is not let in";
    ok $sibling->is_over, 'and that is the end';
}
ok is_at_rest(), 'nobody is there any more';

# --- Others

$sibling = Sibling->connect($door, $new);
is $sibling->hello, '', 'a wrong secret opens nothing';
ok $host->wait_log(qr/peer: warning: \[127\.0\.0\.1\]: TLS: the other host does not know the secret of the group/), 'which is logged';
$sibling = Sibling->connect($door, $new, identity => Sibling::identity('mail', $old));
is $sibling->hello, '', 'nor with the identity of the right one';
$sibling = Sibling->connect($door, $old, cipher => 'PSK-CHACHA20-POLY1305:ECDHE-PSK-AES128-CBC-SHA256:PSK-AES128-GCM-SHA256');
is $sibling->hello, '', 'nor another suite, without forward secrecy or with an older cipher';
$sibling = Sibling->connect($door, $old, groups => 'P-521:P-384:P-256');
is $sibling->hello, '', 'nor a group that costs more';
$sibling = Sibling->connect($door, $old, options => ['-tls1_3']);
is $sibling->hello, '', 'nor a client with TLS 1.3';
$sibling = Sibling->connect($door, $old, options => ['-CAfile', '/dev/null']);
is $sibling->hello, '', 'nor one that asks for a certificate';
$client = Client->connect($door);
$client->put("EHLO client.test\r\nXPEER 1 {}\r\n");
unlike $client->rest, qr/^\d/m, 'cleartext has no reply';
ok $host->wait_log(qr/\[127\.0\.0\.1\]: TLS: the peer does not speak TLS/), 'and is logged';
$client = Client->connect($door);
$client->put("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
unlike $client->rest, qr/HTTP|^\d/m, 'nor HTTP';
ok is_at_rest(), 'all are gone';

# --- Replay: between a sibling and the door stands somebody who writes down what the sibling says

my $trap = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die;
$sibling = Sibling->connect($trap->sockport, $old);
my $caller = $trap->accept;
my $on = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $door) or die;
my $recorded = '';
$sibling->put('XPEER 1 ' . JSON::PP::encode_json({host => 'relay2', group => 'mail', spool => 'aa', run => 7, version => '0.2', state => 'running'}) . "\r\n");
my $both = IO::Select->new($caller, $on);
my $here = sub { sysread $_[0], my $bytes, 65536 or return 0; syswrite $_[1], $bytes; $recorded .= $bytes if $_[1] == $on; 1 };
my $named = count_of('named');
my $answered = IO::Select->new($sibling->{in});
Petrel::wait_for(sub { $here->($_, $_ == $caller ? $on : $caller) for $both->can_read(0.02); $answered->can_read(0) });
like $sibling->line, qr/^250 /, 'a sibling comes in through a relay';
is count_of('named'), $named + 1, 'as the status counts';
$client = Client->connect($door);
$client->put($recorded);
unlike $client->rest, qr/relay1/, 'its bytes open nothing for others';
is count_of('named'), $named + 1, 'nobody has come in';
$sibling->close;
$_->close for $caller, $on;
ok is_at_rest(), 'all are gone';

# --- Crowds

sub resident { Petrel::slurp("/proc/$host->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : die }
# The first bytes of a ClientHello, and then nothing.
my $half = pack 'H*', '1603010200010001fc0303' . '5a' x 32;
sub crowd { my $count = shift; return map { my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $door) or die "$!"; syswrite $s, $half; $s } 1 .. $count }
my @crowd = crowd(500);
ok Petrel::wait_for(sub { listener()->{sessions} <= 64 && listener()->{accepted} >= 500 }), 'not more than 64 half handshakes';
my $before = resident();
@crowd = ();
for (1 .. 2) {
    @crowd = crowd(500);
    ok mail_flows(), 'mail is accepted meanwhile';
    $sibling = Sibling->connect($door, $old);
    like $sibling->hello, qr/^250 /, 'and a sibling comes in';
    is $sibling->say('QUIT'), '221 2.0.0 goodbye', 'and goes';
}
my $grown = resident() - $before;
cmp_ok $grown, '<', 2048, "1,000 half handshakes: $grown KiB more than after 500";
cmp_ok count_of('pushed_out'), '>', 1000, 'the oldest had to go';
@crowd = ();
ok is_at_rest(), 'all are gone';
my $flood = fork // die;
if ($flood == 0) {
    my @last;
    while (1) { push @last, crowd(1); shift @last if @last > 200 }
}
push @Petrel::running, $flood;
ok Petrel::wait_for(sub { count_of('accepted') > 2500 }), 'a flood';
my $tries = 0;
ok Petrel::wait_for(sub { $tries++; $sibling = Sibling->connect($door, $old); $sibling->hello =~ /^250 / }), 'a sibling comes in all the same';
cmp_ok $tries, '<=', 20, "at attempt $tries"; # few, beside thousands of others
my $flooded = count_of('accepted');
ok Petrel::wait_for(sub { count_of('accepted') > $flooded + 500 }), 'while the flood goes on';
like $sibling->say('NOOP'), qr/^250 /, 'it stays';
ok mail_flows(), 'and mail is accepted';
kill 'KILL', $flood;
waitpid $flood, 0;
@Petrel::running = grep { $_ != $flood } @Petrel::running;
cmp_ok scalar(() = $host->log =~ /peer: (?:warning: )?\[127\.0\.0\.1\]: /g), '<', 60, 'the log has few lines of all that';

# --- Other secrets

Petrel::spit($secret, "$old\n$new\n");
ok reload(), 'a second secret';
is $sibling->say('NOOP'), '250 2.0.0 here', 'disturbs nobody';
my $fresh = Sibling->connect($door, $new);
like $fresh->hello, qr/^250 /, 'and is accepted';
Petrel::spit($secret, "$new\n");
ok reload(), 'the old one is withdrawn';
is $sibling->line, '421 4.3.2 the secret has changed', 'who may have come by it must go';
is $fresh->line, '421 4.3.2 the secret has changed', 'for the door does not remember who it was';
$fresh = Sibling->connect($door, $old);
is $fresh->hello, '', 'it opens nothing any more';
$fresh = Sibling->connect($door, $new);
like $fresh->hello, qr/^250 /, 'the new one does';
for (1 .. 15) {
    my $other = Sibling->connect($door, $new);
    $other->hello(host => 'relay1');
    $other->close;
}
my $refusals = () = $host->log =~ /relay1 of group mail is refused/g;
cmp_ok $refusals, '<=', 10, 'wrong settings do not fill the log';
$host->stop;
is $fresh->line, '421 4.3.2 this host stops', 'who is there when the host stops hears it';
unlike $host->log, qr/$old|$new/, 'no secret is in the log';
is Petrel::slurp("$host->{dir}/spool/lock/identity"), $identity, 'the identity stays';

# --- Slices are hosts of their own, with one spool

my @doors = map { Petrel::free_port() } 0 .. 1;
my @slices = map { Petrel->new(cluster => 'mail', cluster_host => 'relay1', cluster_redis => 'none', cluster_peers => 'relay9=127.0.0.1:9', cluster_secret => $old, routes => '* discard', slices => 2, slice => $_) } 0 .. 1;
$slices[$_]->configure(spool => "$slices[0]{dir}/spool", listen => "127.0.0.1:$slices[$_]{port}, 127.0.0.1:$doors[$_]?peer")->start for 0 .. 1;
my @said = map { Sibling->connect($doors[$_], $old)->hello } 0 .. 1;
like $said[$_], qr/"host":"relay1\.$_"/, "slice $_ has its name" for 0 .. 1;
is +($said[0] =~ /"spool":"(.*?)"/)[0], ($said[1] =~ /"spool":"(.*?)"/)[0], 'and both have one spool';
$_->stop for @slices;

# --- The identity belongs to the user, also when root has started

SKIP: {
    skip 'not root', 1 if $>;
    my $dropped = Petrel->new(cluster => 'mail', cluster_host => 'relay1', cluster_redis => 'none', cluster_peers => 'relay9=127.0.0.1:9', cluster_secret => $old, routes => '* discard', user => 'nobody');
    chmod 0755, $dropped->{dir};
    $dropped->start;
    is +(stat "$dropped->{dir}/spool/lock/identity")[4], scalar getpwnam('nobody'), 'the identity belongs to the user of the daemon';
    $dropped->stop;
}

# --- Redis says where hosts are

SKIP: {
    my $redis = `$Petrel::binary version 2>&1` =~ /hiredis/ ? Cluster::redis('') : undef;
    skip 'no Redis', 4 unless $redis;
    $host->configure(cluster_redis => $redis->url)->start;
    my $said;
    ok Petrel::wait_for(sub { ($said) = ($redis->ask('HGET pi:mail relay1') // '') =~ /(\{.*\})/ }), 'it says who it is';
    my $info = JSON::PP::decode_json($said);
    is $info->{address}, "127.0.0.1:$door", 'its address';
    is "$info->{spool}\n", $identity, 'its spool';
    is $info->{state}, 'running', 'and its state';
    ($code) = $host->run('drain', '--wait', '0s');
    ok Petrel::wait_for(sub { ($redis->ask('HGET pi:mail relay1') // '') =~ /"state":"(?:leaving|closing|giving|gone)"/ }), 'which changes';
    $host->stop;
}

done_testing;
