#!/usr/bin/perl
# A relay with copies in Redis, which has a replica, beside the same without: messages a second at 50 clients, one message
# through an idle relay, and the memory of the daemon. As root for a Postfix beside them (t/bench/postfix.sh).
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use lib dirname(abs_path(__FILE__));
use Bench;
use Cluster;

my $rounds = $ENV{ROUNDS} || 3;
my $seconds = $ENV{SECONDS_EACH} || 3;
my $work = Bench::work_dir();
my $lasting = "appendonly yes\nappendfsync always\nrepl-diskless-sync-delay 0\n";
my $engine = Cluster::redis($lasting);
exit print "Copies: no Redis here (Debian: redis-tools)\n" unless $engine;
my $replica = Cluster::redis("${lasting}replicaof 127.0.0.1 $engine->{port}\n");
Petrel::wait_for(sub { ($engine->ask('INFO replication') // '') =~ /state=online/ });
my $sink = Bench::sink();
my %ways = (without => {}, copies => { copies => "redis://127.0.0.1:$engine->{port}", copies_replicas => 1 });
my (%rate, %idle, %memory);
for (1 .. $rounds) {
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
