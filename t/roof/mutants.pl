#!/usr/bin/perl
# Plants each defect of t/roof/mutants/ in a copy of the source, builds it, and runs seeds until the roof finds it:
# mutants.pl BUILD, with RUNS=600 seeds from SEED=1 on, ONLY=name,name. A seed that fails without the defect does not
# count. Exits with 1 when fewer than 95 % are caught, and with 2 when a patch does not apply or does not build.
use strict;
use warnings;
use Fcntl ':flock';
use File::Basename;
use File::Path 'make_path';

use constant { SHARE => 0.95, CPU_MAX_S => 60 }; # of a seed: one that needs more turns without an end

my ($build) = @ARGV;
my ($runs, $seed) = ($ENV{RUNS} || 600, $ENV{SEED} || 1);
my @names = map { basename($_, '.patch') } sort glob 't/roof/mutants/*.patch';
my @wanted = split /[ ,]+/, $ENV{ONLY} // '';
delete @ENV{qw(ONLY SEED RUNS MINUTES TRACE MAKEFLAGS MAKELEVEL MFLAGS)}; # of the roof, and of make
$build .= '-mutants'; # not within: make reads each NAME.d there
$| = 1;

for my $name (@wanted) {
    die "there is no t/roof/mutants/$name.patch\n" unless grep { $_ eq $name } @names;
}
@names = @wanted if @wanted;

sub slurp { open my $f, '<', $_[0] or return undef; local $/; return scalar <$f> }

# Only what differs: the build goes by the times of files.
sub copy {
    my ($file) = @_;
    my ($from, $to) = (slurp($file) // die("$file: $!\n"), slurp("$build/$file"));
    return if defined $to && $from eq $to;
    make_path(dirname("$build/$file"));
    open my $f, '>', "$build/$file" or die "$build/$file: $!\n";
    print $f $from;
    close $f or die "$build/$file: $!\n";
}

sub build { return system("make -s -C $build BUILD=build build/t/roof.t >$build/said 2>&1") == 0 }

# What it says, and the CPU seconds.
sub run_roof {
    my ($program, $first, $count) = @_;
    my $before = (times)[2] + (times)[3];
    my $said = `ulimit -t @{[CPU_MAX_S]}; cd $build && SEED=$first RUNS=$count FAST=1 FAILURES=1 $program 2>&1`;
    return ($said, (times)[2] + (times)[3] - $before);
}

# The first seed that fails with the defect alone, the law that it breaks, and the CPU seconds; undef: none.
sub hunt {
    my ($first, $cpu_s) = ($seed, 0);
    while ($first < $seed + $runs) {
        my ($said, $s) = run_roof('build/t/roof.t', $first, $seed + $runs - $first);
        $cpu_s += $s;
        my ($failed) = $said =~ /^not ok \d+ - seed (\d+)$/m;
        return (undef, undef, $cpu_s) unless defined $failed;
        my ($law) = $said =~ /^seed $failed at [\d.]+ s: ([^:]+):/m;
        ($law) = $said =~ /(Assertion .* failed)/ unless defined $law;
        ($law) = $said =~ /the daemon (ends by signal \d+)/ unless defined $law;
        return ($failed, $law // '?', $cpu_s) unless (run_roof('./clean', $failed, 1))[0] =~ /^not ok/m;
        $first = $failed + 1;
    }
    return (undef, undef, $cpu_s);
}

make_path($build);
open my $lock, '>', "$build/lock" or die "$build/lock: $!\n";
flock($lock, LOCK_EX | LOCK_NB) or die "$build is in use\n";
my @files = split /\0/, `git ls-files -z --cached --others --exclude-standard Makefile mta.c base mime sched queue smtp defrag admin etc t/roof t/sim t/support`;
-e and copy($_) for @files;
build() && system("cp $build/build/t/roof.t $build/clean") == 0 or die "the source does not build: see $build/said\n";

my (@survivors, $broken);
printf "%-34s %-10s %7s  %s\n", 'mutant', 'seed', 'CPU s', 'law';
for my $name (@names) {
    my $patch = "t/roof/mutants/$name.patch";
    my @changed = (slurp($patch) // '') =~ m{^\+\+\+ b/(\S+)}mg;
    if (system("patch -p1 -s -F0 --no-backup-if-mismatch -r - -d $build <$patch >$build/said 2>&1") != 0) {
        print "$name: the patch does not apply\n";
        $broken = 1;
    } elsif (!build()) {
        print "$name: does not build: see $build/said.$name\n";
        rename "$build/said", "$build/said.$name";
        $broken = 1;
    } else {
        my ($found, $law, $cpu_s) = hunt();
        push @survivors, $name unless defined $found;
        printf "%-34s %-10s %7.1f  %s\n", $name, $found // 'SURVIVED', $cpu_s, $law // '';
    }
    copy($_) for @changed;
}
my $caught = @names - @survivors;
printf "%d of %d caught%s\n", $caught, scalar @names, @survivors ? "; survivors: @survivors" : '';
exit($broken ? 2 : $caught < SHARE * @names ? 1 : 0);
