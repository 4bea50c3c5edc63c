#!/usr/bin/perl
# words.pl texts|literals|comments FILES: prints where these have a word that CONTRIBUTING.md's
# table of words says not to write. Of C files the strings or the comments are read, of other
# files all; `code` is left out.
use strict;
use warnings;

my $kind = shift;
my @words;
open my $table, '<', 'CONTRIBUTING.md' or die "CONTRIBUTING.md: $!";
while (<$table>) {
    s/\\\|/\0/g; # \| does not end a cell
    push @words, $1 =~ /`([^`]+)`/g if /^\| [^|]* \| ([^|]*`[^|]*) \|$/;
}
die "no words in CONTRIBUTING.md\n" unless @words;
(my $not = join '|', @words) =~ tr/\0/|/;
$not = qr/\b($not)\b/i;

sub report {
    my ($file, $line, $text) = @_;
    $text =~ s/\\n/  /g;
    $text =~ s/`[^`]*`//g if $text =~ m{^/\*};
    print "$file:$line: $1\n" if $text =~ $not;
}

for my $file (@ARGV) {
    open my $in, '<', $file or die "$file: $!";
    my $all = do { local $/; <$in> };
    my $line = 1;
    my $token = $kind eq 'texts' ? qr/`[^`\n]*`|[^`\n]+|[`\n]/
        : qr{/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|.}s;
    while ($all =~ /\G($token)/g) {
        my $t = $1;
        report($file, $line, $t) if $kind eq 'texts' ? $t !~ /^`/ && !($file eq 'CONTRIBUTING.md' && $t =~ /^\|/)
            : $kind eq 'literals' ? $t =~ /^"/ : $t =~ m{^/\*};
        $line += $t =~ tr/\n//;
    }
}
