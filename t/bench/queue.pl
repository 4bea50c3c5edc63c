#!/usr/bin/perl
# How long the operator's commands take with a long queue, without and with a daemon:
#
#   t/bench/queue.pl [COUNT]      100,000 deferred messages by default
#
# Prints a line for each when it has ended, beside what is wanted of 100,000; judges nothing, for that depends on what else
# runs. Filling the spool takes longer than any of them, on a busy disk minutes: that is told, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../e2e";
use Petrel;
use Time::HiRes qw(time sleep);

$| = 1;
my $count = shift // 100_000;
my %wanted = ('queue ls' => 3, 'queue rm --all' => 10);

sub filled {
    my $petrel = Petrel->new(routes => '* smtp://127.0.0.1:1');
    my $began = time;
    print "filling a spool with $count messages ...\n";
    system("$Petrel::root/$Petrel::build/t/bench/fill", "$petrel->{dir}/spool", $count, 86400) == 0 or die 'fill';
    printf "%-49s %7.2f s\n", 'filled', time - $began;
    return $petrel;
}

sub measure {
    my ($petrel, $how, @command) = @_;
    my $began = time;
    my $lines = () = qx($Petrel::binary -c @{[$petrel->conf]} @command 2>&1) =~ /\n/g;
    my $bar = $wanted{"@command"};
    printf "%-32s %-16s %7.2f s %8d lines%s\n", "@command", $how, time - $began, $lines, $bar ? "   (wanted for 100,000: $bar s)" : '';
    return;
}

for my $with (0, 1) {
    my $petrel = filled();
    my $how = $with ? 'with a daemon' : 'without';
    if ($with) {
        $petrel->start;
        Petrel::wait_for(sub { $petrel->status =~ /"deferred":\s*$count\b/ }) or die 'the daemon does not find them';
    }
    measure($petrel, $how, 'queue ls');
    measure($petrel, $how, 'queue ls --to d7.example');
    measure($petrel, $how, 'queue rm --all');
    $petrel->stop if $with;
}
