#!/usr/bin/perl
# A queue is given while the disk of either host, or both, has no room left, blocks or inodes: the drain waits, and goes on when
# there is room again. Nobody is killed and no connection is cut, so every message arrives once.
use lib 't/e2e';
use E2E;
use Mount;

Mount::namespace() or plan skip_all => 'nothing may be mounted here';

my $sink = Sink->start('--fail-rcpt', 'bad:550');
my $closed = Petrel::free_port();
my @names = qw(one two);
my %door = map { $_ => Petrel::free_port() } @names;
my $peers = join ', ', map { "$_=127.0.0.1:$door{$_}" } @names;
my %disk = map { $_ => Mount->tmpfs(40, 4000) } @names;
plan skip_all => 'no tmpfs here' if grep { !$_ } values %disk;

sub routes { my $later = shift; return "held.test hold\nlater.test smtp://127.0.0.1:$later\n* smtp://127.0.0.1:$sink->{port}" }
sub host {
    my ($name, %more) = @_;
    my $host = Petrel->new(spool => "$disk{$name}{dir}/spool", cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers,
        cluster_secret => 'a secret that all hosts of the group know', routes => routes($closed), minimal_backoff_time => '1h', maximal_backoff_time => '1h', delay_warning_time => 0, drain_delay => 0,
        drain_timeout => '1s', log_level => 'info', journal_size => '8M', journal_message_max => '100K', %more);
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer")->start;
}
my %host = map { $_ => host($_) } @names;
my $number = 0;
my %sent;

# To one who gets it, one who is refused and one who waits; or to one whose mail is held.
sub mail {
    my ($host, $lines) = @_;
    my $n = 'n' . ++$number;
    my $client = Client->greeted($host->{port}) or return 0;
    my $held = $number % 5 == 0;
    my $answer = $client->send(from => "s$n\@x.test", to => $held ? ["$n\@held.test"] : [ "$n\@good.test", "bad$n\@good.test", "$n\@later.test" ], data => "Subject: $n\r\n\r\n" . ('x' x 70 . "\r\n") x $lines . "m\r\n");
    $client->quit;
    return 0 if $answer !~ /^250/;
    $sent{$n} = $held ? ["$n\@held.test"] : [ "$n\@good.test", "$n\@later.test", "s$n\@x.test" ];
    return 1;
}
sub drain {
    my ($host) = @_;
    my $pid = fork // die;
    if (!$pid) { @Petrel::running = (); open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null'; exec $Petrel::binary, '-c', $host->conf, qw(drain --wait 10m) }
    return $pid;
}

sub fill { my ($what, @disks) = @_; $what eq 'bytes' ? $_->leave_bytes(0) : $_->leave_inodes(0) for @disks; return }
for (['one', 'bytes', 'two'], ['two', 'bytes', 'two'], ['one', 'inodes', 'one', 'two']) {
    my ($name, $what, @full) = @$_;
    my $giver = $host{$name};
    my @where = map { $disk{$_} } @full;
    for my $i (1 .. 16) { mail($giver, $i % 8 == 0 ? 3000 : 10) or BAIL_OUT 'refused' }
    fill($what, @where);
    my $begun = Petrel::count($giver->log, qr/drain: giving/);
    my $pid = drain($giver);
    ok Petrel::wait_for(sub { Petrel::count($giver->log, qr/drain: giving/) > $begun }), "no $what at @full: $name gives";
    for (1 .. 4) { $_->relieve for @where; fill($what, @where) }
    $_->relieve for @where;
    is waitpid($pid, 0), $pid, 'drained';
    is $? >> 8, 0, 'with all' or diag +($giver->run(qw(queue ls)))[1], $giver->log;
    is $giver->queued, 0, 'nothing stays';
    is +($giver->run(qw(drain --cancel)))[0], 0, 'back';
}
$_->stop('INT') for values %host;
$_->configure(routes => "* smtp://127.0.0.1:$sink->{port}")->start for values %host;
$_->run(qw(queue retry --all)), $_->run(qw(queue release --all)) for values %host;
ok $_->wait_empty, 'empty in the end' or diag +($_->run(qw(queue ls)))[1] for values %host;
my %times;
$times{$_}++ for map { @{ $_->{to} } } $sink->messages;
my @wrong = map { my $n = $_; map { ($times{$_} // 0) == 1 ? () : "$_: " . ($times{$_} // 0) } @{ $sent{$n} } } sort keys %sent;
is_deeply \@wrong, [], 'each message and each report, once';
ok !glob("$_->{settings}{spool}/corrupt/*"), 'nothing is quarantined' for values %host;
is $_->stop, 0, 'a good end' for values %host;
done_testing;
