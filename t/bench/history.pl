#!/usr/bin/perl
# The cost of the log and the history: throughput and CPU a message with both, with one of them, and with neither,
# in turn. The bar is 0.97 of the throughput with neither. ROUNDS=5. Nothing is asserted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use lib dirname(abs_path(__FILE__));
use Bench;

my ($rounds, $messages) = ($ENV{ROUNDS} || 3, $ENV{MESSAGES} || 6000);
my ($work, $sink) = (Bench::work_dir(), Bench::sink());

sub measure {
    my %settings = @_;
    my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}", %settings)->start;
    my %load = (size => 1024, connections => 20, pipeline => undef);
    Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => 500);
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => $messages);
    $result->{bytes} = 0;
    $result->{bytes} += -s $_ for glob "$work/spool/history/*";
    $server->stop;
    system 'rm', '-rf', "$work/spool", "$work/log";
    return $result;
}

my %off = (log_level => 'error', history_size => 0);
my @cells = ([ neither => %off ], [ log => (%off, log_level => 'info') ], [ history => (%off, history_size => '16M') ], [ both => (log_level => 'info', history_size => '16M') ]);
my %runs;
for my $round (1 .. $rounds) {
    push @{ $runs{ $_->[0] } }, measure(@$_[ 1 .. $#$_ ]) for $round % 2 ? @cells : reverse @cells;
}
sub middle { my ($cell, $field) = @_; return Bench::median(map { $_->{$field} } @{ $runs{$cell} }) }
printf "%d messages of 1 KiB over 20 connections, %d rounds; medians\n\n%-8s %9s %7s %9s %7s %13s\n", $messages, $rounds, '', 'through/s', 'ratio', 'CPU ms', 'ratio', 'bytes/message';
printf "%-8s %9.0f %7.2f %9.3f %7.2f %13.0f\n", $_->[0], middle($_->[0], 'through'), middle($_->[0], 'through') / middle('neither', 'through'), middle($_->[0], 'cpu'),
    middle($_->[0], 'cpu') / middle('neither', 'cpu'), middle($_->[0], 'bytes') / ($messages + 500)
    for @cells;
