#!/usr/bin/perl
# The paragraphs of the settings in petrel.conf(5) as plain text of 78 columns, for `petrel help SETTING`, in half the
# space: help_text.pl petrel.conf.5 config.example > FILE (admin/command/help_text.h has its form).
use strict;
use warnings;

my ($manual, $example) = @ARGV;
sub slurp { open my $h, '<:raw', shift or die "$!\n"; local $/; return scalar <$h> }
my %is_key = map { $_ => 1 } slurp($example) =~ /^#([a-z_]+) =/mg;

# A request of fonts joins its words with no blank; a plain line is text.
sub plain {
    my $line = shift;
    if ($line =~ /^\.([BIR]{1,2}) (.*)/) {
        my ($fonts, $rest, @words) = ($1, $2);
        push @words, defined $1 ? $1 : $2 while $rest =~ /"([^"]*)"|(\S+)/g;
        $line = join length $fonts > 1 ? '' : ' ', @words;
    }
    $line =~ s/\\f[BIPR]|\\&|\\c//g;
    $line =~ s/\\(?:\((..)|(.))/defined $1 ? { lq => '"', rq => '"', dq => '"', sc => 'section ', '->' => '->' }->{$1} \/\/ '' : { e => '\\', '~' => ' ' }->{$2} \/\/ $2/ge;
    return $line;
}

sub wrap {
    my ($text, $indent) = @_;
    $text =~ s/\b(see (?:[A-Z]+|[A-Z][a-z]+(?: [A-Za-z0-9]+)*)) below\b/$1 in petrel.conf(5)/g;
    $text =~ s/\b([Ss]ee [A-Z]+)(?=[.,;:]|\s*\z)/$1 in petrel.conf(5)/g;
    my ($out, $line) = ('', '');
    for (split ' ', $text) {
        if (length($line) + length($_) + $indent >= 78) { $out .= ' ' x $indent . "$line\n"; $line = $_ }
        else { $line .= length $line ? " $_" : $_ }
    }
    return length $line ? $out . ' ' x $indent . "$line\n" : $out;
}

my ($all, $key, $text, $depth, $literal, $tag) = ('', undef, '', 0, 0, 0);
sub flush_text { my $t = $text; $text = ''; $all .= wrap($t, 2 + 4 * $depth) if defined $key && length $t; return }
for (split /\n/, slurp($manual)) {
    if ($tag) {
        my $first = $tag == 1;
        $tag = 0;
        if (!$depth && !$first) { $all .= plain($_) . "\n" if defined $key }
        elsif (!$depth) {
            my ($name) = plain($_) =~ /^([a-z_]+) =/;
            $key = defined $name && $is_key{$name} ? $name : undef;
            $all .= "\1$key\n" . plain($_) . "\n" if defined $key;
        }
        else { $all .= ' ' x (4 * $depth) . plain($_) . "\n" if defined $key }
    }
    elsif (/^\.TP/) { flush_text(); $tag = 1 }
    elsif (/^\.S[HS]/) { flush_text(); undef $key; $depth = 0 }
    elsif (/^\.R([SE])/) { flush_text(); $depth += $1 eq 'S' ? 1 : -1 }
    elsif (/^\.(nf|EX|fi|EE)/) { flush_text(); $literal = $1 =~ /nf|EX/ }
    elsif (/^\.TQ/) { flush_text(); $tag = 2 }
    elsif (/^\.(?:IP|PP)/) { flush_text(); $all .= "\n" if defined $key }
    elsif ($literal || /^ /) { flush_text(); $all .= '    ' . plain($_) . "\n" if defined $key }
    else { $text .= ' ' . plain($_) }
}
flush_text();
my @missing = grep { $all !~ /\x01\Q$_\E\n/ } sort keys %is_key;
die "help_text.pl: petrel.conf.5 has no paragraph of: @missing\n" if @missing;

# A byte that the text does not have stands for the pair that is most frequent, and so on.
my %seen = map { $_ => 1 } split //, $all;
my @pairs = ("\0\0") x 256;
for my $code (grep { !$seen{chr $_} } 1 .. 255) {
    my %count;
    $count{$_}++ for unpack('(a2)*', $all), unpack('x(a2)*', $all);
    delete @count{ grep { length != 2 || /\0/ } keys %count };
    my ($best) = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    $pairs[$code] = $best;
    my $byte = chr $code;
    $all =~ s/\Q$best\E/$byte/g;
}
binmode STDOUT;
print join('', @pairs), $all;
