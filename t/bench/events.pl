#!/usr/bin/perl
# Events: what keeping them costs. Messages a second and CPU a message without `events`, with a webhook, and with a file, in
# turn; printed as ratios to the runs without. BEFORE=/path/to/petrel: another binary without `events` as well.
# SECONDS_EACH=n and ROUNDS=n make it longer.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use lib dirname(abs_path(__FILE__));
use Bench;

my $seconds = $ENV{SECONDS_EACH} || 2; # of each run, about
my $rounds = $ENV{ROUNDS} || 3;
my $work = Bench::work_dir();
my $sink = Bench::sink();
$| = 1;

# A receiver in C would do; this one reads what comes and says 200, so that it is cheap.
my $port = Petrel::free_port();
my $receiver = Petrel::spawn("$work/receiver", 'perl', '-e', <<'END', $port);
use IO::Socket::INET;
my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ARGV[0], Listen => 10, ReuseAddr => 1) or die;
$| = 1;
print "ready\n";
while (my $s = $listen->accept) {
    my $got = '';
    while (sysread $s, $got, 65536, length $got) {
        my ($head, $length) = $got =~ /\A(.*?Content-Length: (\d+).*?\r\n\r\n)/s or next;
        last if length $got >= length($head) + $length;
    }
    syswrite $s, "HTTP/1.1 204 No Content\r\n\r\n";
}
END
Petrel::wait_for(sub { Petrel::slurp("$work/receiver") =~ /ready/ }) or die 'no receiver';

my %kinds = (
    off => [$Petrel::binary],
    webhook => [$Petrel::binary, events => "http://127.0.0.1:$port/hook", events_secret => 'a-secret-of-24-octets-or-more'],
    file => [$Petrel::binary, events => "file:$work/events.jsonl"],
    $ENV{BEFORE} ? (before => [$ENV{BEFORE}]) : ());
my %figures;
for my $round (1 .. $rounds) {
    for my $kind (sort keys %kinds) {
        my ($binary, %settings) = @{ $kinds{$kind} };
        local $Petrel::binary = $binary;
        my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}?tls=none", relay_from => '127.0.0.1',
            log_level => 'warning', dns_servers => '127.0.0.1:9', %settings);
        chmod 0600, $server->conf;
        $server->start;
        my %load = (size => 1024, connections => 50, pipeline => undef);
        my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => 300);
        my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => int($warm->{through} * $seconds) + 300);
        push @{ $figures{$kind}{$_} }, $result->{$_} for 'through', 'cpu';
        my $log = $server->log;
        $server->stop;
        print "$kind: $log" if $log =~ /events_lost/;
        system 'rm', '-rf', "$work/spool", "$work/log", "$work/events.jsonl";
    }
}
Petrel::reap($receiver, 'KILL');

my %median = map { my $kind = $_; $kind => { map { $_ => Bench::median(@{ $figures{$kind}{$_} }) } 'through', 'cpu' } } keys %figures;
printf "1 KiB, 50 connections, %-9s %7.0f messages/s  %6.3f ms CPU a message\n", $_, @{ $median{$_} }{qw(through cpu)} for sort keys %median;
for my $kind (grep { $_ ne 'off' } sort keys %median) {
    my ($through, $cpu) = map { $median{$kind}{$_} / $median{off}{$_} } 'through', 'cpu';
    my $bar = $kind eq 'before' ? '' : $through >= 0.70 ? '  >= 0.70 ok' : '  >= 0.70 MISSED';
    printf "%-9s to off: throughput %5.2f%s, CPU a message %5.2f\n", $kind, $through, $bar, $cpu;
}
