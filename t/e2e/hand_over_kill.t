#!/usr/bin/perl
# Three hosts give their queues to each other while mail comes in, hosts are killed, stand still and come back, and connections
# between them are cut, stall or lose their answers. Each message has a recipient who gets it, one who is refused, and one who
# has to wait: nobody is forgotten, each refusal is reported, and what is delivered twice is within doc/queue.md "Given away".
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Client;
use IO::Select;
use IO::Socket::INET;
use List::Util qw(sum);
use Petrel;
use Sink;
use Test::More;
use Time::HiRes qw(sleep time);

my $sink = Sink->start('--fail-rcpt', 'bad.test:550');
my @names = qw(one two three);
my (%door, %relay);
for (@names) { $door{$_} = Petrel::free_port(); $relay{$_} = Petrel::free_port() }
my $dir = File::Temp::tempdir('relay-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# Between a door and those who call it: what the file says holds within 50 ms. pass; stall: nothing moves; deaf: no answer
# goes back; cut: every connection ends.
sub relay {
    my ($name) = @_;
    Petrel::spit("$dir/$name", 'pass');
    my $pid = fork // die;
    if ($pid) { push @Petrel::running, $pid; return }
    @Petrel::running = ();
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $relay{$name}, Listen => 50, ReuseAddr => 1) or POSIX::_exit(1);
    my (%other, %is_door);
    my $end = sub { my $s = shift; my $o = delete $other{$s} or return; delete $other{$o}; delete $is_door{$_} for $s, $o; close $_ for $s, $o };
    while (1) {
        my $mode = Petrel::slurp("$dir/$name");
        if ($mode eq 'cut') { $end->($_) for my @all = values %other }
        my @from = grep { defined fileno $_ && $mode ne 'stall' && !($mode eq 'deaf' && $is_door{$_}) } values %other;
        for my $s (IO::Select->new($listen, @from)->can_read(0.05)) {
            if ($s == $listen) {
                my $c = $listen->accept or next;
                my $d = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $door{$name}, Timeout => 2);
                if (!$d) { close $c; next }
                @other{ $c, $d } = ($d, $c);
                $is_door{$d} = 1;
                next;
            }
            my $o = $other{$s} or next;
            my $got = sysread $s, my $bytes, 65536;
            if (!$got) { $end->($s); next }
            my $at = 0;
            while ($at < $got) { my $wrote = syswrite $o, $bytes, $got - $at, $at; last if !$wrote; $at += $wrote }
            $end->($s) if $at < $got;
        }
    }
}
relay($_) for @names;
sub weather { my ($name, $mode) = @_; Petrel::spit("$dir/$name.new", $mode); rename "$dir/$name.new", "$dir/$name" or die; return }

my $peers = join ', ', map { "$_=127.0.0.1:$relay{$_}" } @names;
my $closed = Petrel::free_port();
sub routes { my $later = shift; return "good.test smtp://127.0.0.1:$sink->{port}?concurrency=20\nlater.test smtp://127.0.0.1:$later\n* smtp://127.0.0.1:$sink->{port}?concurrency=20" }
sub host {
    my ($name, %more) = @_;
    my $host = Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers, cluster_secret => 'a secret that all hosts of the group know', routes => routes($closed),
        minimal_backoff_time => '1h', maximal_backoff_time => '1h', delay_warning_time => 0, drain_delay => 0, drain_timeout => '1s', log_level => 'info', %more);
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer");
}
# The second one has no journal.
my %host = map { $_ => host($_, $_ eq 'two' ? (journal_size => 0) : ())->start } @names;
my (%sent, $number);
sub mail {
    my ($host) = @_;
    my $client = Client->greeted($host->{port}) or return;
    my $n = 'n' . ++$number;
    my $body = rand() < 0.05 ? 'x' x 70 . "\r\n" : '';
    my $answer = $client->send(from => "s$n\@x.test", to => [ map { "$n\@$_.test" } qw(good bad later) ], data => "Subject: $n\r\n\r\n" . ($body x 6000) . "m\r\n");
    $sent{$n} = 1 if $answer =~ /^250/;
    $client->quit;
    return;
}
sub drain {
    my ($host) = @_;
    my $pid = fork // die;
    if (!$pid) { open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null'; exec $Petrel::binary, '-c', $host->conf, qw(drain --wait 20s) }
    return $pid;
}

my $rounds = $ENV{ROUNDS} // 3;
my $seed = $ENV{SEED} // 11;
srand $seed;
my (%did, $kills);
$kills = 0;
for my $round (1 .. $rounds) {
    my $g = int rand 3;
    my ($giver, @takers) = @names[ $g, ($g + 1) % 3, ($g + 2) % 3 ];
    mail($host{$_}) for map { ($_) x 4 } @names;
    my @pids = drain($host{$giver});
    push @pids, drain($host{ $takers[0] }) if rand() < 0.15; # to each other
    mail($host{ $takers[1] }) for 1 .. 3;
    sleep 0.3 + rand 1.2;
    my $what = (qw(giver taker both stop stall deaf cut interrupt reload))[ int rand 9 ];
    $did{$what}++;
    my @victims = $what eq 'giver' ? $giver : $what eq 'both' ? ($giver, $takers[0]) : $takers[0];
    if ($what =~ /^(?:giver|taker|both)$/) { $host{$_}->kill9 for @victims; $kills += @victims; sleep rand 1; $host{$_}->start for @victims }
    elsif ($what eq 'stop') { kill 'STOP', $host{ $takers[0] }{pid}; mail($host{ $takers[1] }); sleep rand() < 0.3 ? 17 : 3; kill 'CONT', $host{ $takers[0] }{pid}; $kills++ }
    elsif ($what eq 'interrupt') { $host{$giver}->stop('INT'); $host{$giver}->start; $kills++ }
    elsif ($what eq 'reload') { $host{$_}->run('reload') for @names }
    else { weather($_, $what) for @takers; mail($host{$_}) for @takers; sleep rand() < 0.2 ? 17 : 2; weather($_, 'pass') for @takers; $kills++ }
    sleep 0.5 + rand 3;
    if (rand() < 0.3) { $host{$giver}->run(qw(drain --cancel)); push @pids, drain($host{$giver}); $kills++ }
    $_->run(qw(queue retry --all)) for values %host;
    sleep rand 1;
    $_->run(qw(drain --cancel)) for values %host;
    kill 'KILL', @pids;
    waitpid $_, 0 for @pids;
}
diag "$rounds rounds: ", join(', ', map { "$_ $did{$_}" } sort keys %did), "; ", scalar(keys %sent), ' messages; given: ', sum(map { Petrel::count($_->log, qr/status=given/) } values %host);
$_->stop('INT') for values %host;
$_->configure(stop => 'keep', routes => routes($sink->{port}))->start for values %host;
$_->run(qw(queue retry --all)) for values %host;
ok $_->wait_empty, 'empty in the end' or diag +($_->run(qw(queue ls)))[1] for values %host;
my %times;
$times{$_}++ for map { @{ $_->{to} } } $sink->messages;
for my $kind (qw(good later)) {
    is_deeply [ grep { !$times{"$_\@$kind.test"} } sort keys %sent ], [], "$kind: every message has arrived";
    my $twice = sum(0, map { $_ - 1 } grep { $_ } map { $times{"$_\@$kind.test"} } keys %sent);
    diag "$kind: $twice twice";
    cmp_ok $twice, '<=', 128 * $kills, "$kind: duplicates";
}
is_deeply [ grep { !$times{"s$_\@x.test"} } sort keys %sent ], [], 'every refusal is reported';
my $again = sum(0, map { $_ - 1 } grep { $_ } map { $times{"s$_\@x.test"} } keys %sent);
diag "reported again: $again";
cmp_ok $again, '<=', 128 * $kills, 'reports twice';
ok !glob("$_->{settings}{spool}/corrupt/*"), 'nothing is quarantined' for values %host;
unlike $_->log, qr/assert|crash|damaged|quarantined/, 'nor is anything damaged' for values %host;
is $_->stop, 0, 'a good end' for values %host;
done_testing;
