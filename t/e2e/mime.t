#!/usr/bin/perl
# What Petrel converts to 7 bits is read by Python's email package as it was before, message
# by message; what needs no conversion comes out byte for byte; what must not be converted does not come.
use lib 't/e2e';
use E2E;

my $dir = tempdir(CLEANUP => 1);
my $seed = $ENV{SEED} || time;
srand $seed;
diag "SEED=$seed";

# Output, exit code and complaints of t/bench/mime_tree.c.
sub mime {
    my $out = qx{$Petrel::build/t/bench/mime_tree @_ 2>$dir/complaints};
    return ($out, $? >> 8, Petrel::slurp("$dir/complaints"));
}

sub reading { return scalar qx{python3 t/e2e/read_mime.py @_} }

# --- Messages made up

my @words = ("gr\xc3\xbcn", 'plain', "caf\xe9", '=', 'From', '.', '--', "\t", "\xd0\xb4\xd0\xb0", 'x' x 90, '-' x 20, '');
sub text { return join '', map { join(' ', map { $words[rand @words] } 1 .. rand 12) . ('', ' ')[rand 2] . "\r\n" } 0 .. rand 20 }
sub octets { return join '', map { chr(14 + int rand 242) } 1 .. 1 + rand 2000 }

my $boundaries = 0;
sub entity {
    my $depth = shift;
    my $kind = int rand($depth > 3 ? 3 : 6);
    my $eight = ('', "Content-Transfer-Encoding: 8bit\r\n")[rand 2];
    return "Content-Type: text/plain; charset=utf-8\r\n$eight\r\n" . text() if $kind == 0;
    return "Content-Type: application/octet-stream; name=x.bin\r\n$eight\r\n" . octets() if $kind == 1;
    return "Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+/w==\r\n" if $kind == 2;
    return "Content-Type: message/rfc822\r\n$eight\r\nSubject: inner\r\nMIME-Version: 1.0\r\n" . entity($depth + 1) if $kind == 3;
    my $boundary = "b=_$boundaries" . ('', '_', '?')[rand 3];
    $boundaries++;
    my $parts = join '', map { "\r\n--$boundary\r\n" . entity($depth + 1) } 0 .. rand 4;
    return "Content-Type: multipart/mixed;\r\n boundary=\"$boundary\"\r\n$eight\r\nfor \xc3\xa9very reader\r\n$parts\r\n--$boundary--\r\n";
}

my (@before, @after, %verdict, $promises);
for my $i (1 .. 100) {
    # The first always is what chance makes once in a thousand seeds: nothing to convert, and no line end.
    my $before = "Subject: number $i\r\nMIME-Version: 1.0\r\n" . ($i == 1 ? "Content-Type: application/octet-stream\r\n\r\n@" : entity(0));
    Petrel::spit("$dir/$i.before", $before);
    my ($out, $code) = mime('--convert', "$dir/$i.before");
    $verdict{$code}++;
    next if $code != 0;
    $promises++ if $out =~ /[\x00\x80-\xff]|\r(?!\n)|(?<!\r)\n|[^\r\n]{999}/;
    # A last line without an end is one that came so.
    $promises++ if $out =~ /([^\n]+)\z/ && $before !~ /\Q$1\E\z/;
    Petrel::spit("$dir/$i.after", $out);
    push @before, "$dir/$i.before";
    push @after, "$dir/$i.after";
}
is_deeply \%verdict, { 0 => 100 }, 'all of 100 messages are converted';
is $promises // 0, 0, 'to lines of seven bits, none too long';
my $read = reading(@before);
is reading(@after), $read, 'and Python reads of them what it read before';
cmp_ok scalar(() = $read =~ /^\d/mg), '>', 100, 'which is something';

# --- Output

Petrel::spit("$dir/signed", "Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\n\xe9\r\n--b--\r\n");
my ($out, $code, $complaints) = mime('--convert', "$dir/signed");
is_deeply [$out, $code, $complaints], ['', 65, "mime_tree: not converted: the message is signed\n"], 'a signed message is not converted';
($out, $code) = mime("$dir/signed");
like $out, qr/"verdict": "forbidden",\s+"reason": "the message is signed"/, 'the description says so';
like $out, qr/"type": "multipart\/signed"/, 'and what it is';
($out, $code) = mime("- < $dir/signed");
my $size = -s "$dir/signed";
like $out, qr/"size": $size,/, 'standard input will do';
# --- Messages of other projects' tests, where they are at hand

my @corpus = map { glob "../shared/corpus/$_" } qw(cpython/*.txt mime4j/*/*.msg enmime/dsn/*.raw enmime/testdata/*/*.raw postfix/*.in);
SKIP: {
    skip 'no corpus here', 1 unless @corpus;
    my (%count, @wrong);
    for my $file (@corpus) {
        my $content = Petrel::slurp($file) =~ s/\r?\n/\r\n/gr;
        Petrel::spit("$dir/content", $content);
        my ($converted, $error) = mime('--convert', "$dir/content");
        my $need = $content =~ /[\x00\x80-\xff]|\r(?!\n)|[^\r\n]{999}/;
        $count{ $error ? 'forbidden' : $converted eq $content ? 'same' : 'converted' }++;
        push @wrong, $file if $error ? !$need : $need ? $converted =~ /[\x00\x80-\xff]/ : $converted ne $content;
    }
    is "@wrong", '', 'foreign messages come out as they are, or clean';
    diag join ', ', map { "$_ $count{$_}" } sort keys %count;
}
done_testing;
