#!/usr/bin/perl
# How long a drain takes: COUNT deferred messages (100,000) of 1 KiB go from one daemon to another on this machine, and what
# both use meanwhile. Then a start with all of them at the taker; COLD=1: nothing of them is in memory (for root). A million take
# 25 GB of disk, and a quarter of an hour. Nothing is asserted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my $count = $ENV{COUNT} || 100_000;
my ($bar, $work) = (40 * $count / 100_000, Bench::work_dir()); # s
my $patience = 600 + $count / 200; # s
my ($sender, $taker) = map { Petrel::free_port() } 1, 2;
$| = 1;

sub host {
    my ($name, $door) = @_;
    mkdir "$work/$name" or die;
    my $host = Petrel->new(dir => "$work/$name", cluster => 'bench', cluster_host => $name, cluster_redis => 'none', cluster_secret => 'x' x 40,
        cluster_peers => "giver=127.0.0.1:$sender, taker=127.0.0.1:$taker", routes => '* smtp://127.0.0.1:1', drain_delay => 0, drain_timeout => '1s', log_level => 'warning');
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door?peer");
}
sub known { my $host = shift; my $s = $host->status; return $s =~ /"deferred": (\d+)/ ? $1 : 0 }
# Seconds until it greets, until it knows all; MB then.
sub start {
    my ($host, $all) = @_;
    my $begin = time;
    $host->start;
    my $greeted = time - $begin;
    sleep 0.1 while known($host) < $all && time < $begin + $patience;
    return ($greeted, time - $begin, peak($host));
}
sub peak { my $host = shift; return Bench::status($host->{pid}, 'VmHWM') * 1024 / 1e6 } # MB
# Petrel::run() does not wait for so long.
sub drain {
    my $host = shift;
    my $pid = Petrel::spawn("$work/drain.log", $Petrel::binary, '-c', $host->conf, 'drain', '--wait', int($patience) . 's');
    return Petrel::reap($pid, 0, $patience + 60);
}

my ($giver, $other) = (host('giver', $sender), host('taker', $taker));
system("$Petrel::root/$Petrel::build/t/bench/fill $work/giver/spool $count 36000 > $work/fill.log 2>&1") == 0 or die Petrel::slurp("$work/fill.log");
$other->start;
printf "giver: %.2f s to 220, %.1f s until all $count are known, peak %.1f MB\n", start($giver, $count);
my @cpu = map { Bench::cpu_ms($_->{pid}) / 1000 } $giver, $other;
my $begin = time;
my $status = drain($giver);
my $took = time - $begin;
print Petrel::slurp("$work/drain.log") if !defined $status || $status != 0;
printf "given: %d of $count in %.1f s (%s), %.0f/s\n", known($other), $took, $took > $bar ? "bar $bar s" : 'ok', $count / $took;
printf "CPU of giver %.1f s, taker %.1f s; peak of giver %.1f MB, taker %.1f MB\n", (map { Bench::cpu_ms($_->{pid}) / 1000 - shift @cpu } $giver, $other), map { peak($_) } $giver, $other;
$other->stop;
if ($ENV{COLD}) { system 'sync'; Petrel::spit('/proc/sys/vm/drop_caches', "3\n") }
printf "taker, started again: %.2f s to 220, %.1f s until all are known, peak %.1f MB\n", start($other, $count);
$_->stop for $giver, $other;
