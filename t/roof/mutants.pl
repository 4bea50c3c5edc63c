#!/usr/bin/perl
# Plants each defect of t/roof/mutants/ in a copy of the source, builds it, and runs seeds until the roof finds it:
# mutants.pl BUILD, with RUNS=600 seeds from SEED=1 on, ONLY=name,name, JOBS=2 processes. A seed that fails without the
# defect does not count. All get a few seeds first, those that have found most, and survivors more in each round.
# BUILD-mutants/score keeps what was found: a later call goes on from there, and tries first the seed that found a defect
# when the source has changed. Where there is no score, t/roof/mutants.found has that seed: lines NAME SEED.
# Exits with 1 when fewer than 95 % are caught, and with 2 when a patch does not apply or does not build.
use strict;
use warnings;
use Digest::MD5 'md5_hex';
use Fcntl ':flock';
use File::Basename;
use File::Path 'make_path';
use IO::Handle;
use POSIX '_exit';

use constant { SHARE => 0.95, CPU_MAX_S => 60 }; # of a seed: one that needs more turns without an end
use constant ROUNDS => (10, 40, 150);
use constant RICH => 6; # seeds that have found the most so far: they come first

my ($build) = @ARGV;
my ($runs, $seed, $jobs) = ($ENV{RUNS} || 600, $ENV{SEED} || 1, $ENV{JOBS} || 1);
my @names = map { basename($_, '.patch') } sort glob 't/roof/mutants/*.patch';
my @wanted = split /[ ,]+/, $ENV{ONLY} // '';
delete @ENV{qw(ONLY SEED RUNS JOBS MINUTES TRACE MAKEFLAGS MAKELEVEL MFLAGS)}; # of the roof, and of make
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

# The first of these seeds that fails with the defect alone, and the law that it breaks; 0: none.
sub hunt {
    my ($program, $first, $end) = @_;
    my $cpu_s = 0;
    while ($first < $end) {
        my ($said, $s) = run_roof($program, $first, $end - $first);
        $cpu_s += $s;
        my ($failed) = $said =~ /^not ok \d+ - seed (\d+)$/m;
        return (0, '', $cpu_s) unless defined $failed;
        my ($law) = $said =~ /^seed $failed at [\d.]+ s: ([^:]+):/m;
        ($law) = $said =~ /(Assertion .* failed)/ unless defined $law;
        ($law) = $said =~ /the daemon (ends by signal \d+)/ unless defined $law;
        return ($failed, $law // '?', $cpu_s) unless (run_roof('./clean', $failed, 1))[0] =~ /^not ok/m;
        $first = $failed + 1;
    }
    return (0, '', $cpu_s);
}

make_path("$build/programs");
open my $lock, '>', "$build/lock" or die "$build/lock: $!\n";
flock($lock, LOCK_EX | LOCK_NB) or die "$build is in use\n";
my @files = split /\0/, `git ls-files -z --cached --others --exclude-standard Makefile mta.c base mime sched queue smtp defrag admin etc man config.example t/roof t/sim t/support`;
@files = grep { -e && !m{^t/roof/(mutants|seeds)} } @files;
copy($_) for @files;
build() && system("cp $build/build/t/roof.t $build/clean") == 0 or die "the source does not build: see $build/said\n";
my $source = md5_hex(map { ($_, slurp($_)) } @files);

# A line of the score: name, patch, source, first seed and the one behind the last, the one that found it or 0, CPU
# seconds, law. Of a mutant the last line counts.
my (%score, %patch, %finds);
sub enter {
    my ($name, $patch, $in, @rest) = split /\t/, $_[0], -1;
    $finds{ $rest[2] }{$name} = 1 if $rest[2] >= $seed && $rest[2] < $seed + $runs;
    return if $patch ne ($patch{$name} // '') || $rest[0] != $seed;
    if ($in ne $source) {
        $score{$name}{hint} = $rest[2] if $rest[2] && !defined $score{$name}{end};
        return;
    }
    $score{$name} = { end => $rest[1], found => $rest[2], cpu_s => $rest[3], law => $rest[4], hint => 0 };
}
$patch{$_} = md5_hex(slurp("t/roof/mutants/$_.patch") // '') for @names;
if (open my $f, '<', "$build/score") {
    while (<$f>) { chomp; enter($_) }
}
for my $known (split /\n/, slurp('t/roof/mutants.found') // '') {
    my ($name, $found) = split ' ', $known;
    $score{$name}{hint} //= $found if defined $patch{$name} && !defined $score{$name}{end};
}
open my $kept, '>>', "$build/score" or die "$build/score: $!\n";
$kept->autoflush;

# The program with the defect; its name in %broken: there is none.
my %broken;
sub plant {
    my ($name) = @_;
    my ($file, $to) = ("t/roof/mutants/$name.patch", "$build/programs/$name");
    return if -e "$to.$source.$patch{$name}";
    unlink glob "$to.*.*";
    my @changed = slurp($file) =~ m{^\+\+\+ b/(\S+)}mg;
    if (system("patch -p1 -s -F0 --no-backup-if-mismatch -r - -d $build <$file >$build/said 2>&1") != 0) {
        $broken{$name} = 'the patch does not apply';
    } elsif (!build()) {
        rename "$build/said", "$build/said.$name";
        $broken{$name} = "does not build: see $build/said.$name";
    } elsif (system("cp $build/build/t/roof.t $to.$source.$patch{$name}") != 0) {
        die "$to cannot be written\n";
    }
    copy($_) for @changed;
}

sub report {
    my ($name) = @_;
    my $s = $score{$name};
    printf "%-34s %-10s %7.1f  %s\n", $name, $s->{found} || $s->{end} - $seed . ' seeds', $s->{cpu_s}, $s->{law};
}

# In a process of its own: runs seeds until $end, and says what came of it.
my %children;
sub begin {
    my ($name, $end) = @_;
    my $s = $score{$name} // {};
    pipe my $in, my $out or die "pipe: $!\n";
    my $child = fork() // die "fork: $!\n";
    if ($child != 0) {
        $children{$child} = [$name, $in];
        return;
    }
    my $program = "programs/$name.$source.$patch{$name}";
    my ($found, $law, $cpu_s) = (0, '', 0);
    my $hint = $s->{hint} // 0;
    my @rich = sort { keys %{ $finds{$b} } <=> keys %{ $finds{$a} } || $a <=> $b } keys %finds;
    my @first = ($hint) x ($hint >= $seed && $hint < $seed + $runs);
    push @first, splice @rich, 0, RICH if !defined $s->{end};
    for my $range (map({ [$_, $_ + 1] } @first), [$s->{end} // $seed, $end]) {
        ($found, $law, my $more_s) = hunt($program, @$range);
        $cpu_s += $more_s;
        last if $found;
    }
    $cpu_s += $s->{cpu_s} // 0;
    print $out join("\t", $name, $patch{$name}, $source, $seed, $end, $found, sprintf('%.1f', $cpu_s), $law), "\n";
    close $out;
    _exit(0);
}

sub reap {
    my ($most) = @_;
    while (keys %children > $most) {
        my $child = wait;
        my ($name, $in) = @{ delete $children{$child} // next };
        my $line = <$in> // die "$name: its process has ended\n";
        print $kept $line;
        chomp $line;
        enter($line);
        report($name);
        unlink glob "$build/programs/$name.*.*" if $score{$name}{found};
    }
}

sub is_open { my $s = $score{$_[0]}; return !$broken{$_[0]} && !$s->{found} && ($s->{end} // $seed) < $_[1] }

printf "%-34s %-10s %7s  %s\n", 'mutant', 'seed', 'CPU s', 'law';
defined $score{$_}{end} and report($_) for @names;
for my $round (grep({ $_ < $runs } ROUNDS), $runs) {
    for my $name (grep { is_open($_, $seed + $round) } @names) {
        reap($jobs - 1);
        plant($name);
        print "$name: $broken{$name}\n" if $broken{$name};
        begin($name, $seed + $round) unless $broken{$name};
    }
    reap(0);
}
my @survivors = grep { !$broken{$_} && !$score{$_}{found} } @names;
my $caught = @names - @survivors - keys %broken;
printf "%d of %d caught%s\n", $caught, scalar @names, @survivors ? "; survivors: @survivors" : '';
exit(%broken ? 2 : $caught < SHARE * @names ? 1 : 0);
