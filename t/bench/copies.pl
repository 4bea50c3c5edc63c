#!/usr/bin/perl
# A relay with copies in Redis, which has a replica, beside the same without: messages a second at 50 clients, one message
# through an idle relay, and the memory of the daemon; a Postfix without copies beside them (t/bench/postfix.sh, as root); and
# what the servers of Redis alone need for one message, which is no less than the difference: HSET, and WAIT for the replica.
# REDIS_DIR: a folder on another disk, for the servers of Redis.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use Socket;
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Cluster;

my $rounds = $ENV{ROUNDS} || 3;
my $seconds = $ENV{SECONDS_EACH} || 3;
my $work = Bench::work_dir();
my $lasting = "appendonly yes\nappendfsync always\nrepl-diskless-sync-delay 0\n";
local $ENV{TMPDIR} = $ENV{REDIS_DIR} // $ENV{TMPDIR} // '/tmp';
my $engine = Cluster::redis($lasting);
exit print "Copies: no Redis here (Debian: redis-tools)\n" unless $engine;
my $replica = Cluster::redis("${lasting}replicaof 127.0.0.1 $engine->{port}\n");
Petrel::wait_for(sub { ($engine->ask('INFO replication') // '') =~ /state=online/ });
my $sink = Bench::sink();
my %ways = (without => {}, copies => { copies => "redis://127.0.0.1:$engine->{port}", copies_replicas => 1 });
my (%rate, %idle, %memory, @wait, @set);
END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if Bench::have_postfix(); $? = $code }

# Milliseconds for each of 200 messages of that size, one after another: the median.
sub engine_alone {
    my @waits = @_;
    my $socket = IO::Socket::INET->new("127.0.0.1:$engine->{port}") or die "no Redis: $!";
    $socket->setsockopt(Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1);
    my @took;
    for my $n (1 .. 200) {
        my $start = time;
        print $socket "HSET alone $n " . ('x' x 1300) . "\r\n" . join '', map { "$_\r\n" } @waits;
        readline $socket for 0 .. @waits;
        push @took, 1000 * (time - $start);
        sleep 0.002;
    }
    return Bench::median(@took);
}

sub measure_postfix {
    system('sh', "$Bench::here/postfix.sh", 'start', $sink->{port}) == 0 or die 'postfix.sh';
    chomp(my $port = `sh $Bench::here/postfix.sh port`);
    Bench::wait_banner($port) or die 'postfix does not answer';
    my $warm = Bench::load($port, size => 1024, connections => 50, messages => 300);
    my $run = Bench::load($port, size => 1024, connections => 50, messages => int(($warm->{per_second} || 100) * $seconds));
    system 'sh', "$Bench::here/postfix.sh", 'stop';
    return $run->{per_second} || 0;
}

for (1 .. $rounds) {
    push @set, engine_alone();
    push @wait, engine_alone('WAIT 1 4000');
    push @{ $rate{postfix} }, measure_postfix() if Bench::have_postfix();
    for my $way (sort keys %ways) {
        my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}", %{ $ways{$way} })->start;
        Bench::load($server->{port}, size => 1024, connections => 1, messages => 20);
        my $one = Bench::load($server->{port}, size => 1024, connections => 1, messages => 200);
        push @{ $idle{$way} }, 1000 / ($one->{per_second} || 1);
        my $warm = Bench::load($server->{port}, size => 1024, connections => 50, messages => 2000);
        my $run = Bench::load($server->{port}, size => 1024, connections => 50, messages => int(($warm->{per_second} || 1000) * $seconds));
        push @{ $rate{$way} }, $run->{per_second} || 0;
        push @{ $memory{$way} }, Bench::status($server->{pid}, 'VmRSS') / 1024;
        $server->stop;
        system 'rm', '-rf', "$work/spool", "$work/log";
        $engine->ask('FLUSHALL');
    }
}
my %median = map { my $of = $_; map { ("$of->[0] $_" => Bench::median(@{ $of->[1]{$_} })) } keys %ways } ['rate', \%rate], ['idle', \%idle], ['memory', \%memory];
print "Copies in Redis with a replica, 1 KiB: the median of $rounds\n";
for (['50 clients, messages/s', 'rate', '%.0f'], ['idle, ms', 'idle', '%.2f'], ['memory, MB', 'memory', '%.1f']) {
    my ($name, $key, $form) = @$_;
    printf "%-26s $form with, $form without: %.2fx\n", $name, $median{"$key copies"}, $median{"$key without"}, $median{"$key copies"} / ($median{"$key without"} || 1);
}
printf "%-26s %.0f messages/s: %.1fx with copies\n", 'Postfix, 50 clients', $_, $median{'rate copies'} / ($_ || 1) for map { Bench::median(@$_) } grep { $_ } $rate{postfix};
printf "%-26s %.2f by HSET alone, %.2f with WAIT 1\n", 'Redis alone, ms', Bench::median(@set), Bench::median(@wait);
