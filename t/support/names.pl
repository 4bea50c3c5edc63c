#!/usr/bin/perl
# names.pl FILE...: functions that share their name with another one, and exported ones whose name does not begin with their
# module (sched/session.c: sched_session_, session_; base/loop/loop_turn.c: loop_), room or folder. Variants of one function (with
# and without a library) in files of one module may share it.
use strict;
use warnings;

my (%where, @foreign);
for my $file (@ARGV) {
    open my $in, '<', $file or die "$file: $!";
    my @lines = <$in>;
    my ($module) = $file =~ m{([^/]+)\.[ch]$};
    (my $family = $module) =~ s/_(?:(?:no_)?ed25519|none)$//;
    for my $i (1 .. $#lines) {
        my ($name) = $lines[$i] =~ /^([a-z_]\w*)\(/ or next;
        my $j = $i;
        $j++ while $j < $#lines && $lines[$j] !~ /[;{]/;
        next if $lines[$j] !~ /^\{/ || $name =~ /^(?:main|__attribute__)$/;
        $where{$name}{$family} = $file;
        next if $file =~ /\.h$/ || $lines[$i - 1] =~ /\bstatic\b/ || $file !~ m{/};
        my @parts = split /_/, $module;
        my @may = (split(m{/}, $file =~ s{/[^/]*$}{}r), map { my $a = $_; map { join '_', @parts[$a .. $_] } $a .. $#parts } 0 .. $#parts);
        push @foreign, "$file: $name" unless grep { my $p = $_; $name =~ /^(?:\Q$p\E|\Q$p\Es|\Q@{[$p =~ s{s$}{}r]}\E)(?:_|$)/ } @may;
    }
}
print "$_: ", join(' ', sort values %{ $where{$_} }), "\n" for grep { keys %{ $where{$_} } > 1 } sort keys %where;
print "$_\n" for @foreign;
