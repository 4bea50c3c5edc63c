#!/usr/bin/perl
# Plants each defect of t/roof/mutants/ in a copy of the source, and counts those that the roof finds:
# mutants.pl BUILD [NAME...], with RUNS=60 and SEED=1 of each. A seed that fails without a defect does not count.
use strict;
use warnings;
use File::Basename;

my ($build, @names) = @ARGV;
my ($runs, $seed) = ($ENV{RUNS} || 60, $ENV{SEED} || 1);
my $tree = "$build/mutants";
@names = map { basename($_) } sort glob 't/roof/mutants/*' unless @names;
$ENV{FAILURES} = 100000;

sub slurp { open my $f, '<', $_[0] or die "$_[0]: $!\n"; local $/; return <$f> }
sub write_file { open my $f, '>', $_[0] or die "$_[0]: $!\n"; print $f $_[1]; close $f or die }
sub run { system(@_) == 0 or die "@_\n" }

sub build { return system("make -s -C $tree -j2 BUILD=build build/t/roof.t >$tree/said 2>&1") == 0 }

# The seeds that fail.
sub failing {
    my $said = `cd $tree && SEED=$seed RUNS=$runs FAST=1 timeout 1200 build/t/roof.t 2>&1`;
    return $said =~ /^not ok \d+ - seed (\d+)$/mg;
}

run("mkdir -p $tree && git ls-files -z Makefile mta.c base mime sched queue smtp defrag admin etc t/roof t/sim t/support"
    . " | xargs -0 tar c | tar x -C $tree");
build() or die "the source does not build: see $tree/said\n";
my %before = map { $_ => 1 } failing();
printf "# %d of %d seeds fail without a defect\n", scalar keys %before, $runs;
my ($caught, @survivors) = (0);
for my $name (@names) {
    my ($file, $find, $with) = slurp("t/roof/mutants/$name") =~ /^file: (.*)\nfind: (.*)\nwith: (.*)$/m
        or die "$name: not a mutant\n";
    my $source = slurp($file);
    my $at = index $source, $find;
    if ($at < 0) { print "# $name: there is no such code any more\n"; push @survivors, $name; next }
    substr($source, $at, length $find) = $with;
    write_file("$tree/$file", $source);
    my @found = build() ? grep { !$before{$_} } failing() : ();
    if (@found) { $caught++; print "$name: caught by ", scalar @found, " seeds, first $found[0]\n" }
    else { push @survivors, $name; print "$name: NOT CAUGHT\n" }
    write_file("$tree/$file", slurp($file));
}
printf "%d of %d caught%s\n", $caught, scalar @names, @survivors ? ": not @survivors" : '';
exit(@survivors ? 1 : 0);
