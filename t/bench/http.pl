#!/usr/bin/perl
# The cost of HTTP: throughput alone, with 31 clients that are slow, silent, half-open or never read, and with 1,000 requests a
# second besides, and with eight readers of the live stream, half of which never read. The bar is 0.97 of the throughput alone, and
# CPU a message says more than it where the requests share the cores with the daemon. ROUNDS=5. Nothing is asserted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Select;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_RCVBUF SHUT_WR);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my ($rounds, $messages) = ($ENV{ROUNDS} || 3, $ENV{MESSAGES} || 6000);
my ($work, $sink) = (Bench::work_dir(), Bench::sink());
my $port = Petrel::free_port();
my $token = 'bench-bench-bench-bench';
my $get = "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $token\r\n\r\n";

sub dial { my @more = @_; return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, @more) }

# Each begins anew when the daemon has closed it.
my @manners = (
    sub { my $s = shift; $s->syswrite('G') },                                   # slow: an octet each time
    sub { },                                                                    # silent
    sub { my $s = shift; shutdown $s, SHUT_WR },                                # half-open
    sub { my $s = shift; $s->syswrite(sprintf($get, '/metrics') x 20) },        # never reads
);

sub bother {
    my @clients;
    while (getppid() != 1) {
        for my $i (0 .. 30) {
            $clients[$i] = dial() if !$clients[$i] || !$clients[$i]->connected || $clients[$i]->error;
            next unless $clients[$i];
            $clients[$i]->blocking(0);
            $manners[$i % 4]->($clients[$i]);
            undef $clients[$i] if $i % 4 == 2;
        }
        sleep 0.5;
    }
}

# Over one connection, kept for a hundred requests each.
sub request {
    my ($client, $done, $start) = (undef, 0, time);
    my @paths = ('/livez', '/readyz', '/metrics', '/api/status');
    while (getppid() != 1) {
        $client ||= dial() or next;
        my $length;
        print $client sprintf $get, $done % 20 ? '/livez' : $paths[ $done / 20 % 4 ];
        while (defined(my $line = readline $client)) {
            $length = $1 if $line =~ /^Content-Length: (\d+)/;
            last if $line eq "\r\n";
        }
        defined $length && read($client, my $body, $length) or undef $client;
        my $early = $start + ++$done / 1000 - time;
        sleep $early if $early > 0;
    }
}

# Eight streams; every other one is never read.
sub watch {
    my @clients = map { my $s = dial(); print $s sprintf $get, '/events'; $s->flush; $s } 1 .. 8;
    my $readable = IO::Select->new(@clients[0, 2, 4, 6]);
    while (getppid() != 1) {
        for my $client ($readable->can_read(1)) { sysread($client, my $piece, 65536) or $readable->remove($client) }
    }
}

# The daemon's answers, by its own count.
sub answered {
    my $client = dial() or return 0;
    print $client sprintf $get, '/metrics';
    my $sum = 0;
    while (defined(my $line = readline $client)) {
        $sum += $1 if $line =~ /^petrel_http_requests_total\{.*\} (\d+)/;
        last if $line =~ /^petrel_config_reload_success/;
    }
    return $sum;
}

sub child { my $what = shift; my $pid = fork // die; if ($pid == 0) { $SIG{PIPE} = 'IGNORE'; $what->(); exit 0 } return $pid }

sub measure {
    my @disturbing = @_;
    my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}", http => "127.0.0.1:$port", http_token => $token, log_level => 'warning')->start;
    my @pids = map { child($_) } @disturbing;
    my %load = (size => 1024, connections => 20, pipeline => undef);
    Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => 500);
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => $messages);
    kill 'KILL', @pids;
    waitpid $_, 0 for @pids;
    sleep 0.2; # the daemon sees that they have gone
    $result->{served} = answered();
    $result->{peak} = Bench::status($server->{pid}, 'VmHWM') * 1024 / 1e6;
    $server->stop;
    system 'rm', '-rf', "$work/spool", "$work/log";
    return $result;
}

my @cells = ([ alone => ], [ harmful => \&bother ], [ asked => \&request ], [ watched => \&watch ], [ both => \&bother, \&request ]);
my %runs;
for (1 .. $rounds) {
    push @{ $runs{ $_->[0] } }, measure(@$_[ 1 .. $#$_ ]) for @cells;
}
sub middle { my ($cell, $field) = @_; return Bench::median(map { $_->{$field} } @{ $runs{$cell} }) }
printf "%d messages of 1 KiB over 20 connections, %d rounds; medians\n\n%-8s %9s %7s %9s %7s %8s %9s\n", $messages, $rounds, '', 'through/s', 'ratio', 'CPU ms', 'ratio', 'peak MB', 'answered';
printf "%-8s %9.0f %7.2f %9.3f %7.2f %8.1f %9.0f\n", $_->[0], middle($_->[0], 'through'), middle($_->[0], 'through') / middle('alone', 'through'), middle($_->[0], 'cpu'),
    middle($_->[0], 'cpu') / middle('alone', 'cpu'), middle($_->[0], 'peak'), middle($_->[0], 'served')
    for @cells;
