#!/usr/bin/perl
# The cost of reassembling fragments: CPU beside that of relaying them as they are, in turn in one process; and memory.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use List::Util qw(min);
use Time::HiRes qw(sleep);
use lib dirname(abs_path(__FILE__));
use Bench;

my $rounds = $ENV{JOIN_ROUNDS} || 20; # many and short, so that what else runs here meets both sides
my ($sets, $parts, $kib) = (250, 10, 10); # of each run: four of them make the thousand of the bar
my $work = Bench::work_dir();
my $sink = Bench::sink();
$| = 1;

sub start_petrel {
    my %more = @_;
    my $to = "smtp://127.0.0.1:$sink->{port}";
    my $server = Petrel->new(dir => $work, routes => "joined.example $to?defragment=yes\n* $to", %more);
    return $server->start;
}

sub stop_petrel { my $server = shift; $server->stop; system 'rm', '-rf', "$work/spool", "$work/log"; return }

# In ms, to the nanosecond.
sub cpu_ms { my ($ns) = split ' ', Petrel::slurp("/proc/$_[0]/schedstat"); return $ns / 1e6 }

# Fragments through the server: ms of CPU for all of them. They arrive as so many messages.
sub run {
    my ($server, $domain, $count, $arrive, @more) = @_;
    my $cpu = cpu_ms($server->{pid});
    Bench::ask($sink, 'reset');
    Bench::answered($sink, 10);
    Bench::ask($sink, "wait $arrive 100");
    Bench::load($server->{port}, messages => $count, rcpt => "user\@$domain", pipeline => undef, @more,
        meanwhile => sub { Bench::answered($sink, 110) // die 'they do not arrive' });
    sleep 0.5; # what it does behind the last message counts
    $cpu = cpu_ms($server->{pid}) - $cpu;
    $server->wait_empty or die 'something is left';
    return $cpu;
}

sub spread { my @sorted = sort { $a <=> $b } @_; return sprintf '%.2f-%.2f', @sorted[ 0, -1 ] }

sub cost {
    my $server = start_petrel();
    my @load = (size => $kib * 1024, connections => 10, partial => $parts);
    my @runs;
    run($server, $_, $sets * $parts, $_ =~ /joined/ ? $sets : $sets * $parts, @load) for 'joined.example', 'plain.example';
    for my $round (1 .. $rounds) {
        my %ms;
        # The second one may find a warmer machine: each is it in turn.
        for my $domain ($round % 2 ? ('plain.example', 'joined.example') : ('joined.example', 'plain.example')) {
            $ms{$domain} = run($server, $domain, $sets * $parts, $domain =~ /joined/ ? $sets : $sets * $parts, @load);
        }
        push @runs, [ $ms{'plain.example'}, $ms{'joined.example'}, $ms{'joined.example'} / $ms{'plain.example'} ];
    }
    stop_petrel($server);
    my ($plain, $joined, $ratio) = map { my $i = $_; Bench::median(map { $_->[$i] } @runs) } 0 .. 2;
    printf "%d sets of %d fragments of %d KiB, %d rounds in turn: %.0f us of CPU a fragment joined, %.0f relayed as they are; "
        . "%.2fx (%s; the least of both %.2fx), the bar is 1.5x: %s\n", $sets, $parts, $kib, $rounds, (map { 1000 * $_ / $sets / $parts } $joined, $plain),
        $ratio, spread(map { $_->[2] } @runs), min(map { $_->[1] } @runs) / min(map { $_->[0] } @runs), $ratio <= 1.5 ? 'ok' : 'MISSED';
    return;
}

# The peak of a large set above what the process has when it is idle again, after others have come and gone.
sub memory {
    my ($count, $mib) = (100, 1);
    my $server = start_petrel(defrag_max_size => '200M');
    my @load = (size => $mib * 2**20, connections => 4, partial => $count);
    my @peaks;
    for my $domain ('plain.example', 'joined.example', 'plain.example', 'joined.example') {
        eval { Petrel::spit("/proc/$server->{pid}/clear_refs", 5) }; # the peak is what it has now
        my $before = Bench::status($server->{pid}, 'VmHWM');
        run($server, $domain, $count, $domain =~ /joined/ ? 1 : $count, @load);
        push @peaks, (Bench::status($server->{pid}, 'VmHWM') - $before) * 1024 / 1e6;
    }
    stop_petrel($server);
    printf "A set of %d fragments of %d MiB: %.2f MB above idle at the peak (%.2f the first time), %.2f (%.2f) relayed as they are; "
        . "the bar is 1 MB: %s\n\n", $count, $mib, @peaks[ 3, 1, 2, 0 ], $peaks[3] <= 1 ? 'ok' : 'MISSED';
    return;
}

cost();
memory();
Petrel::reap($sink->{pid}, 'TERM');
