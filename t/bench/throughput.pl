#!/usr/bin/perl
# Messages a second in and through, CPU and memory: Petrel and, in turn with it, Postfix.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use List::Util qw(max);
use lib dirname(abs_path(__FILE__));
use Bench;

my $seconds = $ENV{SECONDS_EACH} || 3; # of each run, about
my $rounds = $ENV{ROUNDS} || 3;
my $warm_up = 300; # messages; they also tell how many make those seconds
my @cells = ([ 1, 1 ], [ 1, 10 ], [ 1, 50 ], [ 10, 10 ], [ 10, 50 ], [ 100, 4 ]); # KiB, connections
my $work = Bench::work_dir();
my $sink = Bench::sink();

sub start_petrel {
    my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}");
    $server->start;
    return { port => $server->{port}, pid => $server->{pid}, stop => sub { $server->stop; system 'rm', '-rf', "$work/spool", "$work/log" },
        peak => sub { Bench::status($server->{pid}, 'VmHWM') * 1024 / 1e6 } };
}

sub start_postfix {
    system('sh', "$Bench::here/postfix.sh", 'start', $sink->{port}) == 0 or return;
    chomp(my $port = `sh $Bench::here/postfix.sh port`);
    chomp(my $pid = `sh $Bench::here/postfix.sh pid`);
    Bench::wait_banner($port) or die 'postfix does not answer: ' . Petrel::slurp("$Bench::postfix/root/var/log/postfix.log");
    return { port => $port, pid => $pid, stop => sub { system 'sh', "$Bench::here/postfix.sh", 'stop' },
        peak => sub { Bench::memory_mb('Pss', Bench::family($pid)) } };
}

# A new server, warmed up, measured, stopped.
sub measure {
    my ($start, $kib, $connections) = @_;
    my $server = $start->() or return;
    my %load = (size => $kib * 1024, connections => $connections, pipeline => undef);
    my $peak = 0;
    my $sample = sub { $peak = max($peak, $server->{peak}->()) };
    my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => $warm_up);
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, $sample, %load, messages => max($warm_up, int($warm->{through} * $seconds)));
    $server->{stop}->();
    return { %$result, peak => $peak };
}

# Others may disturb a run: the middle one counts.
sub middle { my ($field, @runs) = @_; return Bench::median(map { $_->{$field} } @runs) }

sub print_row {
    my ($cell, $name, @runs) = @_;
    printf "%-11s %-8s %8.0f %8.0f  (%s) %s%7.3f %8.2f %8.1f\n", $cell, $name, middle('in', @runs), middle('through', @runs),
        join(' ', map { sprintf '%.0f', $_->{through} } @runs), ' ' x max(0, 16 - 5 * @runs), middle('cpu', @runs), middle('p50', @runs), middle('peak', @runs);
}

my @peers = (Petrel => \&start_petrel);
push @peers, Postfix => \&start_postfix if Bench::have_postfix();
my @names = grep { !ref } @peers;
my %start = @peers;
END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if $start{Postfix}; $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };

chomp(my $version = $start{Postfix} ? `sh $Bench::here/postfix.sh version` : 'Postfix is not set up (as root: sh t/bench/postfix.sh setup): Petrel alone');
chomp(my $cores = `nproc`);
print "Relay on loopback: load -> server -> sink, every 250 durable; $cores cores, load ", join(' ', (split ' ', Petrel::slurp('/proc/loadavg'))[ 0 .. 1 ]), "\n";
print "Peer: $version. $rounds rounds in turn, each about ${seconds}s, pipelined, kept connections; the median, (each through).\n";
print "in, through: messages/s. CPU: ms a message, user and system. p50: ms from MAIL to 250. peak: MB (Petrel RSS, Postfix PSS of all its processes)\n\n";
printf "%-11s %-8s %8s %8s  %-18s %7s %8s %8s\n", 'KiB x conn.', '', 'in', 'through', '(rounds)', 'CPU', 'p50', 'peak';
$| = 1;
for my $cell (@cells) {
    my %runs;
    for (1 .. $rounds) {
        for my $name (@names) { my $run = measure($start{$name}, @$cell) or next; push @{ $runs{$name} }, $run; }
    }
    my $label = "$cell->[0] x $cell->[1]";
    for my $name (@names) { print_row($label, $name, @{ $runs{$name} || [] }) if $runs{$name}; $label = ''; }
    next unless $runs{Postfix};
    my ($ours, $theirs) = @runs{qw(Petrel Postfix)};
    printf "%-11s %-8s %7.2fx %7.2fx  %-18s %6.2fx %7.2fx %7.2fx\n", '', 'ratio', map { $_ eq '' ? '' : middle($_, @$ours) / (middle($_, @$theirs) || 1e-9) } 'in', 'through', '', 'cpu', 'p50', 'peak';
}
print "\n";
Petrel::reap($sink->{pid}, 'TERM');
