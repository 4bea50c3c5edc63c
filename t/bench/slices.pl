#!/usr/bin/perl
# Slices of one machine: CPU a message with one daemon and with two slices on one port, at full speed; and at a steady one
# with one daemon, and with two slices that share a rate (never reached) by the bank of one of them. Each slice
# has as many connections as one daemon alone, since one commit serves those that wait together. In turn, ROUNDS times; the
# medians count. Where there are cores for both and for the load, messages a second, too.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use List::Util qw(sum0);

my $messages = $ENV{MESSAGES} || 6000; # of each run
my $speed = $ENV{SPEED} || 200; # messages a second, steady
my $rounds = $ENV{ROUNDS} || 5;
my $cores = () = Petrel::slurp('/proc/cpuinfo') =~ /^processor/mg;
my $work = Bench::work_dir();
$| = 1;

# So many daemons on one port, and a sink of their own: { cpu (ms a message), through (messages a second) }.
my $number = 0;
sub measure {
    my ($slices, $options, %load) = @_;
    my $sink = Bench::sink();
    my $port = Petrel::free_port();
    my $dir = "$work/" . $number++;
    mkdir $dir;
    my @daemons = map {
        mkdir "$dir/$_";
        my $petrel = Petrel->new(dir => "$dir/$_", spool => "$dir/spool", slices => $slices, slice => $_, listen => "127.0.0.1:$port?share", routes => "* smtp://127.0.0.1:$sink->{port}$options",
            log_level => 'warning', client_session_limit => 1000);
        $petrel->{port} = $port;
        $petrel->start;
    } 0 .. $slices - 1;
    my (%figure, $before, $began);
    # The first warms them: two periods of the bank.
    for my $count (%load ? ($speed * 10, $speed * 15) : (500, $messages)) {
        Bench::ask($sink, 'reset');
        Bench::answered($sink, 10);
        ($before, $began) = (sum0(map { Bench::cpu_ms($_->{pid}) } @daemons), time);
        Bench::ask($sink, "wait $count 100");
        Bench::load($port, size => 4096, connections => 40 * $slices, messages => $count, %load, meanwhile => sub { Bench::answered($sink, 120) });
        $figure{through} = $count / (time - $began);
        sleep 0.3; # what they do behind the last message counts
        $figure{cpu} = (sum0(map { Bench::cpu_ms($_->{pid}) } @daemons) - $before) / $count;
    }
    my @parts = map { Bench::cpu_ms($_->{pid}) } @daemons;
    $figure{least} = (sort { $a <=> $b } @parts)[0] / sum0(@parts);
    $_->stop for @daemons;
    Petrel::reap($sink->{pid}, 'TERM');
    return \%figure;
}

my %kinds = ('one daemon' => [1, ''], 'two slices' => [2, ''], 'one daemon, steady' => [1, '?rate=100000/s', rate => $speed],
    'two slices that share, steady' => [2, '?rate=100000/s', rate => $speed]);
my %figures;
for (1 .. $rounds) { push @{ $figures{$_} }, measure(@{ $kinds{$_} }) for sort keys %kinds }
my %cpu = map { my $k = $_; ($k => Bench::median(map { $_->{cpu} } @{ $figures{$k} })) } keys %kinds;
my %through = map { my $k = $_; ($k => Bench::median(map { $_->{through} } @{ $figures{$k} })) } keys %kinds;
printf "%-30s %6.3f ms CPU a message, %6.0f messages/s\n", $_, $cpu{$_}, $through{$_} for sort keys %kinds;
printf "the slice with less work had %.0f %% of it\n", 100 * Bench::median(map { $_->{least} } @{ $figures{'two slices'} });
sub bar { my ($what, $value, $limit) = @_; return printf "%-60s %6.3f <= %s %s\n", $what, $value, $limit, $value <= $limit ? 'ok' : 'MISSED' }
bar('two slices: CPU a message to that of one daemon', $cpu{'two slices'} / $cpu{'one daemon'}, 1.10);
bar('two slices that share a rate: the same, steady', $cpu{'two slices that share, steady'} / $cpu{'one daemon, steady'}, 1.10);
printf "two slices: messages a second to those of one daemon: %.2f, with %d cores for both, load and sink%s\n", $through{'two slices'} / $through{'one daemon'}, $cores,
    $cores < 8 ? ' (of 1.8, which needs 8)' : '';
