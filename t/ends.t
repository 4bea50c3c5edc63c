#!/usr/bin/perl
# doc/dev/ends.md: each row of its tables has all columns, and a test that exists. No session ends without an outcome in the
# source either.
use strict;
use warnings;
use FindBin;
BEGIN { chdir "$FindBin::Bin/.." }
use Test::More;

sub slurp { my $f = shift; open my $h, '<', $f or return undef; local $/; return scalar <$h> }
# The trouble of a row, or ''.
sub row_trouble {
    my ($row) = @_;
    my @cells = map { s/^\s+|\s+$//gr } split /\|/, $row =~ s/^\|//r, -1;
    pop @cells;
    return 'it has ' . @cells . ' columns' if @cells != 6;
    return "column $_ is empty" for grep { $cells[ $_ - 1 ] eq '' } 1, 2, 5, 6;
    my ($file, $name) = $cells[5] =~ m{^`(t/[a-z0-9_/.-]+)` `([^`]+)`$} or return 'it names no test';
    my $source = slurp($file) // return "$file does not exist";
    my $test = $name =~ s/^test_//r;
    my $is_there = $name =~ /^\w+$/ && $file =~ /\.c$/ ? $source =~ /^\Q$name\E\(|^TEST\(\Q$test\E\)|"\Q$name\E/m : index($source, $name) >= 0;
    return $is_there ? '' : "$file has no $name";
}

my @rows = grep { /^\|/ && !/^\| end \|/ && !/^\|-/ } split /\n/, slurp('doc/dev/ends.md');
cmp_ok scalar @rows, '>', 50, 'the ends';
is row_trouble($_), '', (split /\|/)[1] =~ s/^\s+|\s+$//gr for @rows;

like row_trouble('| a | b | c | d | e |'), qr/columns/, 'a row without a test is found';
like row_trouble('| a | b | c | d | e | `t/unit/none.c` `test_x` |'), qr/does not exist/, 'so is one with a file that is gone';
like row_trouble('| a | b | c | d | e | `t/ends.t` `no ' . 'such` |'), qr/has no/, 'and one with a test that is gone';
like row_trouble('| a | | c | d | e | `t/ends.t` `row_trouble` |'), qr/empty/, 'and one without an outcome';

my @silent = grep { slurp($_) =~ /session_(?:ended|end)\([^;{]*\bNULL\);/ } split /\n/, `find smtp sched queue defrag admin mta.c -name '*.c'`;
is "@silent", '', 'no session ends without an outcome';
done_testing;
