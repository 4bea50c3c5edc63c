#!/usr/bin/perl
# The planted defects of the roof (doc/dev/hacking.md): each is named, is one of the product, and can still be planted.
use strict;
use warnings;
use Test::More;
use FindBin;

chdir "$FindBin::Bin/.." or die;
my @patches = sort glob 't/roof/mutants/*';
cmp_ok(scalar @patches, '>=', 60, 'there are at least 60');
for my $patch (@patches) {
    open my $file, '<', $patch or die "$patch: $!";
    my @lines = <$file>;
    close $file;
    my @faults;
    push @faults, 'its name does not end with .patch' unless $patch =~ /\.patch$/;
    push @faults, 'its first line does not say what the defect is' unless $lines[0] =~ /^# [A-Z].*\.$/;
    push @faults, "it changes $_" for grep { !m{^(base|mime|sched|queue|smtp|defrag|admin)/.*\.c$} }
        map { m{^\+\+\+ b/(\S+)} ? $1 : () } @lines;
    my $said = `patch -p1 -s -F0 --dry-run <$patch 2>&1`;
    push @faults, "it does not apply: $said" if $? != 0;
    ok(!@faults, $patch) or diag("@faults");
}
done_testing();
