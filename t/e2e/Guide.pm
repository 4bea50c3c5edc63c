package Guide;

# The pages of the guide, and what of them can be run. Each fenced block says what it is:
#
#     sh               runs in a machine of its own (guide_machine.pl), one block after the other, and ends with 0
#     sh reports       likewise, and may end with 1: it found something, which it says
#     sh elsewhere     needs what this machine has not: its grammar and the commands of Petrel in it are checked
#     text             behind a sh block: what that prints. Each line, in this order; `...` is anything
#     text elsewhere   of another machine
#     conf             becomes petrel.conf, and passes `petrel check`
#     conf more        is added to it
#     conf instead     passes `petrel check` alone, and stays an example
#     yaml             can be parsed, and its PETREL_ variables are settings
#
# `KEY = VALUE` in the text passes `petrel check`, too.
use strict;
use warnings;

our @pages = qw(vps container kubernetes appliance certificates monitoring trouble coming-from backup cluster);
my $kinds = qr/^(?:sh(?: reports| elsewhere)?|text(?: elsewhere)?|conf(?: more| instead)?|yaml)$/;

# From the text of a page: {line, kind, text} of each block, and the errors of the page.
sub blocks {
    my ($text) = @_;
    my (@blocks, $open, @wrong, $indent);
    my $at = 0;
    for (split /^/, $text) {
        $at++;
        if (!$open && /^( *)```(.*)$/) {
            $indent = $1;
            push @blocks, $open = { line => $at, kind => $2, text => '' };
            push @wrong, "line $at: no such kind: '$2'" if $2 !~ $kinds;
        }
        elsif (/^ *```$/) { undef $open }
        elsif ($open) { $open->{text} .= s/^\Q$indent//r }
        elsif (/^ {4}\S/) { push @wrong, "line $at: a block without its fence" }
    }
    push @wrong, 'the last block has no end' if $open;
    return (\@blocks, \@wrong);
}

# Settings within sentences and tables.
sub inline {
    my ($text) = @_;
    $text =~ s/^ *```.*?^ *```$//msg;
    my %seen;
    return grep { !$seen{$_}++ } map { s/\\\|/|/gr } $text =~ /`([a-z][a-z_]+ = [^`]+)`/g;
}

# Whether the lines of the pattern are in the output, in their order.
sub matches {
    my ($pattern, $output) = @_;
    my $from = 0;
    for (split /\n/, $pattern) {
        my $line = join '.*', map { quotemeta } split /\.\.\./, $_, -1;
        next if $line eq '.*';
        return $_ unless substr($output, $from) =~ /^$line$/m;
        $from += $+[0];
    }
    return;
}

1;
