#!/usr/bin/perl
# Refusals of init, test, cert, reload and HTTP: each sentence has a verb that names the user's next step.
use strict;
use warnings;
use FindBin;
use Test::More;

my $root = "$FindBin::Bin/../..";
my $verbs = join '|', qw(add change close correct follow get give look reload make move name open put read register remove replace restart
    run say see send set start tell try use write);

# Calls that say something, up to the end of their statement.
my $calls = qr/(?:complaint_say|init_wrong|http_answer_error)\(|\*why =|\bwhy =|const char \*(?:why|remedy) =|snprintf\((?:why|what)\b|fprintf\(\s*stderr|printf\("It |puts\("It |reload_refuse\(\s*r, "reload/;
my $literal = qr/"((?:[^"\\]|\\.)*)"/;

# The sentences of a file: neighbouring literals are one. A literal of less than four words is a name or a part.
sub sentences {
    my $text = shift;
    $text =~ s{/\*.*?\*/}{}gs;
    my @found;
    while ($text =~ /($calls)/g) {
        my $begin = $-[0];
        my $rest = substr $text, $begin;
        $rest =~ s/\A((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^;"'])*);.*\z/$1/s or next;
        while ($rest =~ /($literal(?:\s*(?:PRI\w+\s*)?$literal)*)/g) {
            my $sentence = join '', $1 =~ /"((?:[^"\\]|\\.)*)"/g;
            push @found, $sentence if scalar(() = $sentence =~ /[a-z]{2,}/gi) >= 4 && $sentence !~ /\Ausage: /;
        }
    }
    my %seen;
    return grep { !$seen{$_}++ } @found;
}

my @files = ((map { "$root/$_" } qw(admin/tool/cert_command.c admin/http/http_access.c admin/startup/reload.c admin/answer/trial.c)), glob "$root/admin/setup/*.c");
push @files, map { "$root/admin/http/$_.c" } qw(http_serve http_routes http_events http_test);
my $all = 0;
for my $file (grep { -e } @files) {
    open my $in, '<', $file or die "$file: $!";
    local $/;
    for my $sentence (sentences(<$in>)) {
        next if $sentence =~ /\A, |\AIt still waits after/; # a part; what it waits for follows
        next if $sentence =~ /\A(?:a parameter that is not known|a method that is not known(?: here)?|from is a number .*|the series do not fit)\z/; # errors of programs
        $all++;
        like $sentence, qr/\b(?:$verbs)\b/i, substr($file, length("$root/")) . ": $sentence";
    }
}
cmp_ok $all, '>=', 50, 'they were found';

# The test itself sees what it must.
is_deeply [sentences('f(); complaint_say(program, 1, "the thing is not" " there; write it", name);')], ['the thing is not there; write it'], 'neighbours are one';
unlike 'the settings have errors today', qr/\b(?:$verbs)\b/i, 'a sentence without a verb for the user';
done_testing;
