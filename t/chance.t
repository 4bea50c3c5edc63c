#!/usr/bin/perl
# No expression under the roof draws chance twice in an order that C leaves open: with another compiler the seed would be
# another run. Among the arguments of a call, the members of an initializer and the operands of an operator one draws at
# most; behind && || ? : the order is that of the text.
use strict;
use warnings;
use Test::More;

my $drawn = qr/roof_(?:random|below|chance|between)(?:_of)?|audit_message/;

# Comments, strings and characters without what is in them.
sub bare {
    my ($text) = @_;
    $text =~ s{/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'}{my $lines = $& =~ tr/\n//; ($& =~ m{^/} ? '' : '0') . "\n" x $lines}gse;
    return $text;
}

# What draws in this file: the roof's functions, and those of the file that call them and return something.
sub names_of {
    my ($text) = @_;
    my $names = $drawn;
    my %body;
    while ($text =~ /^(\w[\w ]*[\w*])\n(\w+)\([^;{]*\)\n\{(.*?)^\}/gms) {
        $body{$2} = $3 unless $1 =~ /void$/;
    }
    my (%known, $more);
    do {
        $more = 0;
        for my $name (grep { !$known{$_} && $body{$_} =~ /\b(?:$names)\(/ } sort keys %body) {
            $known{$name} = $more = 1;
            $names = "$names|$name";
        }
    } while ($more);
    return qr/\b(?:$names)\(/;
}

# The elements of a list: by its commas that are in no brackets.
sub elements {
    my ($list) = @_;
    my ($depth, @elements) = (0, '');
    for my $c (split //, $list) {
        $depth++ if $c =~ /[(\[{]/;
        $depth-- if $c =~ /[)\]}]/;
        if ($c eq ',' && $depth == 0) { push @elements, '' } else { $elements[-1] .= $c }
    }
    return @elements;
}

# The lines of lists, innermost first, of which two elements draw; what is in brackets becomes @ where it draws.
sub offences {
    my ($text, $draws) = @_;
    my @lines;
    my $flat = $text =~ s/$draws/'~' x (length($&) - 1) . '('/ger; # the mark of a call that draws
    while ($flat =~ /([(\[{])([^()\[\]{}]*)([)\]}])/) {
        my ($at, $end, $inner) = ($-[0], $+[0], $2);
        if ($inner !~ /;/) {
            my $drawing = grep { /[~@]/ } elements($inner);
            my $operands = grep { my $e = $_; $e !~ /&&|\|\||\?/ && (() = $e =~ /~+|@+/g) > 1 } elements($inner);
            push @lines, 1 + (substr($flat, 0, $at) =~ tr/\n//) if $drawing > 1 || $operands;
            my $mark = $inner =~ /[~@]/ && substr($flat, 0, $at) !~ /~$/ ? '@' : ' ';
            substr($flat, $at, $end - $at) = $mark . "\n" x ($inner =~ tr/\n//) . ' ' x ($end - $at - 1 - ($inner =~ tr/\n//));
        } else {
            substr($flat, $at, $end - $at) = ' ' . $inner =~ s/[^\n;]/ /gr . ' ';
        }
    }
    return @lines;
}

my @bad = (
    'f(roof_below(2), roof_chance(3));',
    'x = (struct a){.b = roof_below(2), .c = 1 + roof_below(3)};',
    'f(a, g(roof_below(2)), h(1, roof_below(2)));',
);
my @good = (
    'if (roof_chance(300)) f(roof_below(2));',
    'f(roof_chance(5) ? roof_below(2) : 0, 1);',
    'x = 5 + roof_below(most[roof_below(6)]);',
    'f(a, roof_below(2)); g(roof_below(3));',
);
is(scalar(offences($_, names_of(''))), 1, "is found: $_") for @bad;
is(scalar(offences($_, names_of(''))), 0, "is right: $_") for @good;

my @found;
for my $file (glob 't/roof/*.c') {
    open my $f, '<', $file or die "$file: $!\n";
    my $text = bare(do { local $/; <$f> });
    push @found, map { "$file:$_" } offences($text, names_of($text));
}
is("@found", '', 'each expression draws in the order of its text');
done_testing;
