#!/usr/bin/perl
# A queue goes to siblings with all that is known of its mail: by petrel drain, by SIGTERM with stop = hand_over, while either
# side is killed, and there and back again. No message is lost; none is delivered twice unless a kill cut an answer off.
use lib 't/e2e';
use E2E;
use List::Util qw(sum);
use Time::HiRes qw(sleep);

my $secret = 'a secret that all hosts of the group know';
my $sink = Sink->start;
$sink->stop;
my @names = qw(one two three);
my %door = map { $_ => Petrel::free_port() } @names;
my $peers = join ', ', map { "$_=127.0.0.1:$door{$_}" } @names;

sub host {
    my ($name, %more) = @_;
    my $host = Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers, cluster_secret => $secret, routes => "held.test hold\n* smtp://127.0.0.1:$sink->{port}?concurrency=20",
        minimal_backoff_time => '1h', maximal_backoff_time => '1h', delay_warning_time => 0, drain_delay => 0, drain_timeout => '1s', log_level => 'info', %more);
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer");
}
# The facts of each message, by its subject; without those that each host gives anew.
sub known {
    my ($host) = @_;
    my ($code, $listed) = $host->run(qw(queue ls --json));
    my %all;
    for my $line (split /\n/, $listed) {
        my $message = decode_json($line);
        my ($shown) = (($host->run('queue', 'cat', $message->{queue_id}))[1] // '') =~ /^Subject: (\S+)/m;
        $all{ $shown // $message->{queue_id} } = $message;
    }
    return \%all;
}
sub plain {
    my %m = %{ decode_json(encode_json($_[0])) };
    delete @m{qw(queue_id came first given forced_expire)};
    return \%m;
}
sub mail {
    my ($host, $subject, %option) = @_;
    my $client = Client->greeted($host->{port}) or die 'no greeting';
    my $answer = $client->send(from => $option{from} // 'a@x.test', to => $option{to} // ["$subject\@y.test"], data => "Subject: $subject\r\n\r\n" . ($option{body} // "m\r\n"));
    $client->quit;
    return $answer =~ /^250/ ? 1 : do { diag $answer; 0 };
}

# --- A drain

my %host = map { $_ => host($_)->start } @names;
my $one = $host{one};
ok mail($one, "m$_"), "a message $_" for 1 .. 20;
ok mail($one, 'large', body => join '', map { 'x' x 70 . "\r\n" } 1 .. 10000), 'a large one';
ok mail($one, 'many', to => [ map { "many$_\@y.test" } 1 .. 50 ]), 'one with many recipients';
ok mail($one, 'held', to => ['h@held.test']), 'one that is held';
ok Petrel::wait_for(sub { (() = $one->log =~ /status=deferred/g) >= 71 }), 'all are deferred';
my $before = known($one);
is keys %$before, 23, 'all are there';
my ($code, $said) = $one->run(qw(drain --wait 60s));
is $code, 0, 'drained' or diag $said, $one->log;
like $said, qr/^gone: no messages; given: 23; sessions: 0 in, 0 out$/m, 'with all that was there';
is_deeply known($one), {}, 'it has nothing any more';
my %after = map { %{ known($host{$_}) } } qw(two three);
is_deeply [ sort keys %after ], [ sort keys %$before ], 'others have it';
is_deeply plain($after{$_}), plain($before->{$_}), "$_: as it was" for sort keys %$before;
cmp_ok scalar(keys %{ known($_) }), '>', 5, 'in turn' for @host{qw(two three)};
my $id = qr/\w{10}-\w{8}/;
is Petrel::count($one->log, qr/queue: $id: to=(?:two|three), as=$id, attempts=1, due=\d+, status=given$/m), 22, 'the giver says so';
is Petrel::count($host{$_}->log, qr/queue: $id: from=one, was=$id, first=$id/), scalar(keys %{ known($host{$_}) }), "and $_, which took it" for qw(two three);
# Any host finds it, by the name it had.
my $was = $before->{m1}{queue_id};
($code, $said) = $host{three}->run('queue', 'show', $was, '--cluster');
is $code, 0, 'shown' or diag $said;
like $said, qr/\Agiven:    one gave it to (two|three), where it is ($id), .*\nhost:     (?:two|three)\nid:       $id\n/, 'with its way';
($code, $said) = $host{two}->run('queue', 'ls', '--first', $was, '--cluster');
like $said, qr/\A(?:two|three) +$id deferred .*<m1\@y\.test>.*\n\z/, 'and found by its first name';
($code) = $one->run(qw(drain --cancel));
is $code, 0, 'back in service';

# --- SIGTERM, to one that is named; what nobody takes stays

$_->configure(stop => 'hand_over', hand_over_timeout => '60s') for values %host;
($code) = $host{two}->run('reload');
is $code, 0, 'stop = hand_over, after a reload';
my $two = keys %{ known($host{two}) };
is $host{two}->stop, 0, 'it ends well';
like $host{two}->log, qr/terminating: handing the queue over.*drain: gone: messages given: $two: messages left: 0,/s, 'when its queue is given';
my %now = map { %{ known($host{$_}) } } qw(one three);
is_deeply plain($now{$_}), plain($before->{$_}), "$_: as it was at first" for sort keys %$before;

# --- There and back again under kills: nothing is lost

$host{two}->start;
my $rounds = $ENV{ROUNDS} // 6;
my ($kills, %sent) = (0);
srand 7;
for my $round (1 .. $rounds) {
    my ($giver, $victim) = ($host{ $names[$round % 3] }, $host{ $names[ ($round + int rand 2) % 3 ] });
    for (1 .. 20) { my $s = "r$round-$_"; mail($giver, $s) or BAIL_OUT 'refused'; $sent{$s} = 1 }
    my $drain = fork // die;
    if (!$drain) { open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null'; exec $Petrel::binary, '-c', $giver->conf, qw(drain --wait 30s) }
    sleep rand 0.4;
    $victim->kill9;
    $kills++;
    $victim->start;
    waitpid $drain, 0;
    $giver->run(qw(drain --cancel));
}
$_->stop('INT') for values %host;
$sink->again;
$_->configure(stop => 'keep', routes => "* smtp://127.0.0.1:$sink->{port}")->start for values %host;
$_->run(qw(queue retry --all)), $_->run(qw(queue release --all)) for values %host;
ok $_->wait_empty, 'empty in the end' for values %host;
my %times;
$times{$_}++ for map { @{ $_->{to} } } $sink->messages;
my @missing = grep { !$times{"$_\@y.test"} } sort(keys %sent), map { "m$_" } 1 .. 20;
is_deeply \@missing, [], 'every message has arrived';
is scalar(grep { $times{"many$_\@y.test"} } 1 .. 50), 50, 'and each recipient of the one with many';
my $twice = sum(0, map { $_ - 1 } values %times);
cmp_ok $twice, '<=', 128 * $kills, "duplicates: $twice after $kills kills";
is $_->stop, 0, 'a good end' for values %host;

done_testing;
