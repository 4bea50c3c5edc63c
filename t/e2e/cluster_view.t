#!/usr/bin/perl
# One view of several hosts: lists that are merged, a message wherever it is, changes on all hosts, hosts that do not
# answer, and what another host may not ask.
use lib 't/e2e';
use E2E;
use Sibling;

my $secret = 'a secret of a group of three hosts';
my @names = map { "relay$_" } 1 .. 3;
my %door = map { $_ => Petrel::free_port() } @names;
my $peers = join ', ', map { "$_=127.0.0.1:$door{$_}" } @names;
my %host = map { $_ => host($_) } @names;

sub host {
    my ($name, %more) = @_;
    my $host = Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers, cluster_secret => $secret, routes => '* hold', %more);
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer")->start;
}
sub submit {
    my ($host, $to) = @_;
    my $client = Client->greeted($host->{port}) or die 'no greeting';
    my $reply = $client->send(from => 'a@x.test', to => [$to], data => "Subject: m\r\n\r\nm\r\n");
    $client->quit;
    return $reply =~ /queued as (\S+)/ || $reply =~ /([0-9A-Z]{10}-[0-9A-Z]{8})/ ? $1 : die "refused: $reply";
}
sub lines { return map { decode_json($_) } grep { /^\{/ } split /\n/, shift }

# --- Lists

my %sent;
for my $round (1 .. 4) {
    for my $name (@names) { $sent{ submit($host{$name}, "$name\@y.test") } = $name }
}
my ($code, $said);
ok Petrel::wait_for(sub { ($code, $said) = $host{relay1}->run('queue', 'ls', '--cluster', '--json', '--queue', 'hold'); 12 == lines($said) }), 'the mail of three hosts';
is $code, 0, 'all have answered';
is_deeply [map { $_->{queue_id} } lines($said)], [sort keys %sent], 'oldest first';
is_deeply [grep { $_->{host} ne $sent{ $_->{queue_id} } } lines($said)], [], 'each with its host';
is scalar(grep { $_->{reason} eq 'held by a route' } lines($said)), 12, 'and why it is held';
($code, $said) = $host{relay2}->run('queue', 'ls', '--cluster');
like $said, qr/^relay3     [0-9A-Z-]{19} hold .*<a\@x\.test> -> <relay3\@y\.test> \(held by a route\)$/m, 'for people, asked of another host';
($code, $said) = $host{relay2}->run('queue', 'ls', '--cluster', '--to', 'relay1@y.test', '--json');
is_deeply [map { $_->{host} } lines($said)], [('relay1') x 4], 'some of it';
($code, $said) = $host{relay2}->run('queue', 'ls', '--cluster', '--to', 'nobody@y.test');
is_deeply [$code, $said], [0, "petrel queue: no message matches\n"], 'none of it';

# Longer than a page of one host, with lines that are as long as they may be.
{
    my $client = Client->greeted($host{relay2}{port}) or die 'no greeting';
    for (1 .. 20) { $client->send(from => 'many@x.test', to => [map { "somebody-with-a-name-that-is-longer-than-most-$_\@many.test" } 1 .. 900], data => "Subject: m\r\n\r\nm\r\n") =~ /^250/ or die 'refused' }
    $client->quit;
}
ok Petrel::wait_for(sub { ($code, $said) = $host{relay1}->run('queue', 'ls', '--cluster', '--json', '--from', 'many@x.test', '--queue', 'hold'); 20 == lines($said) }), 'several pages';
is scalar(grep { @{ $_->{recipients} } + $_->{recipients_more} == 900 } lines($said)), 20, 'of long lines, which lack recipients and say how many';
cmp_ok length $said, '>', 1024 * 1024, 'which is more than a page';
($code, $said) = $host{relay1}->run('queue', 'ls', '--cluster', '--from', 'many@x.test');
like $said, qr/<somebody-with-a-name-that-is-longer-than-most-1\@many\.test> and 899 more/, 'all are counted';
is +($host{relay2}->run('queue', 'rm', '--from', 'many@x.test'))[0], 0, 'they go';

# --- A message

my ($id) = grep { $sent{$_} eq 'relay3' } sort keys %sent;
($code, $said) = $host{relay1}->run('queue', 'show', $id, '--cluster');
is $code, 0, 'a message is found';
like $said, qr/\Ahost:     relay3\nid:       $id\nqueue:    hold\nfrom:     <a\@x\.test>\n/, 'where it is';
like $said, qr/^history:\n.*accepted/m, 'and its history there';
($code, $said) = $host{relay1}->run('queue', 'why', $id, '--cluster');
like $said, qr/\Ahost:     relay3\nid:       $id\nqueue:    hold: not delivered.*^because:  held by a route/ms, 'why it waits';
($code, $said) = $host{relay1}->run('queue', 'why', $id, '--cluster', '--json');
is((lines($said))[0]{host}, 'relay3', 'in JSON, too');
($code, $said) = $host{relay1}->run('queue', 'show', '01M8H4KQ7J-ZWR0RQV6', '--cluster');
is_deeply [$code, $said], [65, "petrel queue: no host has that message: 01M8H4KQ7J-ZWR0RQV6\n"], 'one that is nowhere';

# --- Changes

my ($own) = grep { $sent{$_} eq 'relay1' } sort keys %sent;
($code, $said) = $host{relay1}->run('queue', 'hold', $id, $own, '--cluster');
is $code, 0, 'held already';
like $said, qr/^relay3     $id is held already$/m, 'which the host of the message says';
like $said, qr/^relay1     $own is held already$/m, 'and that of the other';
$host{$_}->configure(routes => '* discard') for @names;
for my $name (@names) {
    my $before = () = $host{$name}->log =~ /settings reloaded/g;
    kill 'HUP', $host{$name}{pid};
    ok Petrel::wait_for(sub { (() = $host{$name}->log =~ /settings reloaded/g) > $before }), "$name discards now";
}
($code, $said) = $host{relay1}->run('queue', 'release', $id, '01M8H4KQ7J-ZWR0RQV6', '--cluster');
is $code, 65, 'one message there, one nowhere';
like $said, qr/^relay3     $id released$/m, 'released, where it was';
like $said, qr/^petrel queue: 01M8H4KQ7J-ZWR0RQV6: no such message on any host$/m, 'and the other reported once';
ok $host{relay3}->wait_log(qr/$id: .*status=/), 'it is delivered there';
ok Petrel::wait_for(sub { ($code, $said) = $host{relay2}->run('queue', 'show', $id, '--cluster'); $said =~ /gone/ }), 'then it is gone';
like $said, qr/\Ahost:     relay3\nid:       $id\nqueue:    gone: delivered\nhistory:\n/, 'which its history tells';
is $code, 65, 'no queue has it';
($code, $said) = $host{relay1}->run('queue', 'release', '--all', '--cluster', '--json');
is $code, 0, 'all that is left, on all hosts';
is scalar(grep { $_->{ok} && $_->{action} eq 'release' } lines($said)), 11, 'is released';
ok $host{$_}->wait_empty, "$_ is empty" for @names;
($code, $said) = $host{relay1}->run('queue', 'retry', '--all', '--cluster');
is_deeply [$code, $said], [0, "all that waits is due now on 3 hosts\n"], 'retry';
for (['rm', 'rm cannot be undone'], ['bounce', 'bounce cannot be undone'], ['cat', 'cat shows mail, which stays on its host']) {
    ($code, $said) = $host{relay1}->run('queue', $_->[0], $id, '--cluster');
    is_deeply [$code, $said], [64, "petrel queue: $_->[1], so it is for one host at a time; run it there\n"], "$_->[0] stays local";
}

# --- The status

($code, $said) = $host{relay1}->run('status', '--cluster');
is $code, 0, 'all is well';
like $said, qr/\Agroup      mail: 3 hosts, 0 without an answer; messages waiting: 0\nredis      none: each host has its own part\n/, 'the group';
like $said, qr/^$_  running  \S+ +\d+ (?:ms|s|min|h) .* yes$/m, $_ for @names;
unlike $said, qr/warning/, 'nothing differs';
$host{relay3}->stop;
$host{relay3} = host('relay3', routes => "* smtp://127.0.0.1:9", minimal_backoff_time => '1m');
ok Petrel::wait_for(sub { ($code, $said) = $host{relay1}->run('status', '--cluster'); $said =~ /warning/ }), 'a host with other settings';
like $said, qr/^warning    routes differs: relay1, relay2 \([0-9a-f]{12}\); relay3 \([0-9a-f]{12}\)$/m, 'is named';
like $said, qr/^warning    minimal_backoff_time differs: /m, 'with all of them';
($code, $said) = $host{relay2}->run('status', '--cluster', '--json');
is_deeply [ map { $_->{host} } @{ decode_json($said)->{hosts} } ], [ sort @names ], 'hosts by name, whoever answers first';
is_deeply [sort map { $_->{host} } @{ decode_json($said)->{hosts} }], \@names, 'in JSON';
is_deeply [sort keys %{ decode_json($said)->{differing} }], ['minimal_backoff_time', 'routes'], 'what differs';

($code, $said) = $host{relay1}->run('cluster');
like $said, qr/^host   relay1  member, this one\nhost   relay2  member, 127\.0\.0\.1:$door{relay2}$/m, 'cluster says where they are';

# --- Hosts that do not answer

kill 'STOP', $host{relay2}{pid};
my $late = submit($host{relay3}, 'later@y.test');
ok Petrel::wait_for(sub { ($code, $said) = $host{relay1}->run('queue', 'ls', '--cluster'); $said =~ /$late/ }), 'a host hangs: the others answer';
is $code, 75, 'which is not all';
like $said, qr/^petrel queue: relay2: no answer for 2 s\n\z/m, 'who is silent comes last';
($code, $said) = $host{relay1}->run('status', '--cluster');
is $code, 75, 'the status, too';
like $said, qr/^relay2  no answer for 2 s$/m, 'says so';
($code, $said) = $host{relay1}->run('queue', 'show', '01M8H4KQ7J-ZWR0RQV6', '--cluster');
is $code, 75, 'what nobody else has may be there';
kill 'CONT', $host{relay2}{pid};
ok Petrel::wait_for(sub { ($code) = $host{relay1}->run('status', '--cluster'); $code == 0 }), 'it goes on';
$host{relay2}->kill9;
ok Petrel::wait_for(sub { ($code, $said) = $host{relay1}->run('queue', 'ls', '--cluster', '--json'); $code == 75 }), 'killed: it does not answer either';
ok +(grep { ($_->{host} // '') eq 'relay2' && $_->{trouble} } lines($said)), 'why is in the JSON';

# --- Requests that a host may not make

my $sibling = Sibling->connect($door{relay1}, $secret);
$sibling->put(qq(XPEER 1 {"host":"relay2","group":"mail","spool":"00","run":1,"version":"x","state":"running"}\r\n));
like $sibling->line, qr/^250 /, 'a sibling comes in';
for (['rm', 'other hosts of the group may not ask for that'], ['drain', 'other hosts of the group may not'], ['page', 'other hosts of the group may not']) {
    my $question = qq({"command":"$_->[0]","all":true}\n);
    $sibling->put('XASK ' . length($question) . "\r\n$question");
    my $answer = '';
    while ((my $line = $sibling->line) ne '') { $answer .= $line; last if $line =~ /^\d{3} / }
    like $answer, qr/"ok":false,"error":"$_->[1]/, "$_->[0] is refused";
}
my $question = qq({"command":"list","cluster":true}\n);
$sibling->put('XASK ' . length($question) . "\r\n$question");
like $sibling->line, qr/a question of another host is not passed on/, 'a question is passed on once';

# --- Without a group

my $alone = Petrel->new(routes => '* discard')->start;
($code, $said) = $alone->run('queue', 'ls', '--cluster');
is_deeply [$code, $said], [78, "petrel queue: this host is in no group: cluster is not set\n"], 'without a group';
$alone->stop;
$alone = Petrel->new(cluster => 'mail', cluster_host => 'relay9', cluster_redis => 'none', cluster_peers => $peers, routes => '* discard')->start;
($code, $said) = $alone->run('status', '--cluster');
is_deeply [$code, $said], [78, "petrel status: this host has no peer door: cluster_secret is not set\n"], 'without a secret';
$alone->stop;
($code, $said) = $alone->run('status', '--cluster');
is $code, 69, 'without a daemon';
$_->stop for $host{relay1}, $host{relay3};

done_testing;
