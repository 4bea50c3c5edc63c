#!/usr/bin/perl
# How Petrel reads the structure of the messages of other projects' tests, against what these say of them: mime4j's
# trees, Postfix's traces, and Python's email package for those that came without an answer.
# Where we differ by decision, the reason stands here, and it must still be so.
use lib 't/e2e';
use E2E;
use File::Basename;

my $corpus = '../shared/corpus';
plan skip_all => 'no corpus here' unless -d $corpus;

my $dir = tempdir(CLEANUP => 1);
my %reading;
sub reading {
    my ($file) = @_;
    $reading{$file} //= decode_json(scalar qx{$Petrel::build/t/bench/mime_tree '$file'})->{message};
    return $reading{$file};
}

# Compares all; tells those that differ without being known to, and those that are known to and do not.
sub compare {
    my ($name, $files, $known, $differs) = @_;
    my (@wrong, @same, %kinds);
    for my $file (@$files) {
        my $key = basename($file);
        my $what = $differs->($file);
        push @wrong, "$key: $what" if $what && !$known->{$key};
        push @same, $key if !$what && $known->{$key};
        $kinds{ $known->{$key} }++ if $known->{$key};
    }
    is "@wrong", '', "$name: read as they say";
    is "@same", '', "$name: those that are read in another way still are";
    diag sprintf '%s: %d messages, in another way: %s', $name, scalar(@$files), join('; ', map { "$kinds{$_} $_" } sort keys %kinds) || 'none';
    return;
}

my $ODD = 'a line that is no field ends a header, they pass over it';
my $ENCODED = 'a message in base64 or quoted-printable is not looked into: RFC 2045 6.4 forbids it';

# --- mime4j: .xml has headers and bodies as they stand

sub as_text { return shift =~ s/\A\r?\n//r =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&amp;/&/gr }

# {header, body | file | parts | message}
sub mime4j_tree {
    my ($xml) = @_;
    my ($root, @open, $from);
    while ($xml =~ /<(\/?)(message|header|field|body|body-part|multipart|preamble|epilogue)>|<(?:text|binary)-body name="([^"]*)"\/>/g) {
        my ($close, $name, $file, $end, $start) = ($1, $2, $3, $-[0], $+[0]);
        if (defined $file) {
            $open[-1]{file} = $file;
        } elsif ($close) {
            my $text = substr $xml, $from, $end - $from;
            $open[-1]{header} .= as_text($text) . "\n" if $name eq 'field';
            $open[-1]{body} = as_text($text) if $name eq 'body';
            pop @open if $name eq 'message' || $name eq 'body-part';
        } elsif ($name eq 'message' || $name eq 'body-part') {
            my $part = { header => '' };
            push @{ $open[-1]{parts} }, $part if $name eq 'body-part';
            $open[-1]{message} = $part if $name eq 'message' && @open;
            $root //= $part;
            push @open, $part;
        } elsif ($name eq 'multipart') {
            $open[-1]{parts} = [];
        }
        $from = $start;
    }
    return $root;
}

sub clean { return shift =~ s/[ \t\r]*\n/\n/gr =~ s/\n+\z//r }

sub is_multipart {
    my ($part) = @_;
    return $part->{type} =~ /^multipart\// && !grep { /a boundary is missing|boundary is too long|nested too deep/ } @{ $part->{problems} };
}

sub differs_from_tree {
    my ($want, $part, $content) = @_;
    my $header = substr $content, $part->{header_at}, $part->{body_at} - $part->{header_at};
    return 'header' if clean($want->{header}) ne clean($header);
    if ($want->{message}) {
        return 'no message in it' if @{ $part->{parts} } != 1 || is_multipart($part);
        return differs_from_tree($want->{message}, $part->{parts}[0], $content);
    }
    return 'multipart or not' if !$want->{parts} != !is_multipart($part);
    if ($want->{parts}) {
        return 'count of parts' if @{ $want->{parts} } != @{ $part->{parts} };
        for my $i (0 .. $#{ $want->{parts} }) {
            my $what = differs_from_tree($want->{parts}[$i], $part->{parts}[$i], $content);
            return "$i: $what" if $what;
        }
        return '';
    }
    return 'parts of a leaf' if @{ $part->{parts} };
    return 'body' if !$want->{file} && $want->{body} ne substr $content, $part->{body_at}, $part->{end_at} - $part->{body_at};
    return '';
}

my %mime4j = (
    (map { $_ => $ODD } qw(hdr-fakeout.msg jt-0498.msg mp-msg-rfc822.msg twopart.msg uu-junk.msg basic-plain-with-bad-header-separator.msg
        malformedHeader-nocrlfcrlf.msg malformedHeader-noheader.msg malformedHeaderStartsBody-nocrlfcrlf.msg
        malformedHeaderStartsBody-noheader.msg obsolete.msg)),
    (map { $_ => $ENCODED } qw(multi-2gifs-base64.msg bad-newlines-multiple-parts-base64.msg base64encoded-rfc822message-nested.msg
        base64encoded-rfc822message.msg)),
    (map { $_ => 'white space at the end of a boundary is none of it: RFC 2046 5.1.1' } qw(very-long-boundary.msg weird-boundary.msg)),
    'very-very-long-boundary.msg' => 'a boundary of more than 2 KB is not looked for',
    'ending-boundaries.msg' => 'a line that goes on behind the boundary does not delimit',
);
my @mime4j = glob "$corpus/mime4j/*/*.msg";
my %told = ($ODD => qr/a line that is no field/, $ENCODED => qr/labelled as encoded/);
for my $reason (keys %told) {
    my @silent = grep { ($mime4j{ basename($_) } // '') eq $reason && encode_json(reading($_)) !~ $told{$reason} } @mime4j;
    is "@silent", '', "it is told that $reason";
}
compare('mime4j', \@mime4j, \%mime4j, sub {
    my ($file) = @_;
    my $tree = mime4j_tree(Petrel::slurp($file =~ s/\.msg\z/.xml/r));
    return differs_from_tree($tree, reading($file), Petrel::slurp($file));
});

# --- Postfix: which lines are whose header

sub postfix_fields {
    my (@fields, $in);
    for my $line (split /\n/, shift) {
        if ($line =~ /^(MAIN|MULT|NEST) \d+\t\|(.*)/) { push @fields, [$1, $2]; $in = 1 }
        elsif ($in && $line =~ /^[ \t]/) { $fields[-1][1] .= "\n$line" }
        else { $in = 0 }
    }
    return \@fields;
}

sub own_fields {
    my ($part, $content, $kind) = @_;
    my @fields;
    for my $line (split /\n/, substr $content, $part->{header_at}, $part->{body_at} - $part->{header_at}) {
        if (@fields && $line =~ /^[ \t]/) { $fields[-1][1] .= "\n$line" } elsif ($line =~ /\S/) { push @fields, [$kind, $line] }
    }
    my $inner = $part->{type} =~ /^multipart/ ? 'MULT' : 'NEST';
    return @fields, map { own_fields($_, $content, $inner) } @{ $part->{parts} };
}

my %postfix = (
    (map { $_ => 'a converted header' } qw(mime_cvt.in mime_cvt.in2 mime_cvt.in3)), 'mime_garb4.in' => $ENCODED,
    'mime_trunc.in' => 'they cut a header of more than 60 KB', 'mime_test.in' => 'folding a boundary adds no white space and takes none',
);
my @postfix = grep { !/global/ } glob "$corpus/postfix/*.in*";
compare('Postfix', \@postfix, \%postfix, sub {
    my ($file) = @_;
    my $answer = postfix_fields(Petrel::slurp($file =~ s/\.in/.ref/r));
    my $own = [own_fields(reading($file), Petrel::slurp($file), 'MAIN')];
    return encode_json([map { unpack 'H*', "@$_" } @$answer]) eq encode_json([map { unpack 'H*', "@$_" } @$own]) ? '' : 'fields';
});
my ($global) = grep { $_->{type} eq 'message/global' } @{ reading("$corpus/postfix/mime_global.in")->{parts} };
is scalar @{ $global->{parts} }, 1, 'a message/global is looked into';

# --- Python's email package: trees of types

sub own_tree {
    my ($part) = @_;
    my $type = $part->{type} =~ /^\/|\/$/ ? 'text/plain' : $part->{type}; # RFC 2045 5.2
    return [$type] if $type =~ /^message\/(?:delivery-status|external-body)$/;
    return [$type, map { own_tree($_) } @{ $part->{parts} }];
}

my %python = (
    (map { $_ => $ODD } qw(msg_25.txt msg_43.txt bad-header-start.raw)),
    (map { $_ => 'a multipart in a multipart of the same boundary' } qw(msg_15.txt msg_39.txt)),
    'msg_37.txt' => 'two delimiters in a row have a part between them',
    (map { $_ => 'a type with junk behind it is a type' } qw(mime-bad-content-type.raw mime-blank-media-name.raw ctype-invalid-characters.raw)),
);
my @python = map { glob "$corpus/$_" } qw(cpython/*.txt enmime/dsn/*.raw enmime/testdata/*/*.raw enmime/testdata/*/*.golden);
my $answers = decode_json(scalar qx{python3 t/e2e/tree_mime.py @python});
my %answer;
@answer{@python} = @$answers;
compare('Python', \@python, \%python, sub {
    my ($file) = @_;
    my ($want, $own) = map { encode_json($_) } $answer{$file}, own_tree(reading($file));
    return $want eq $own ? '' : "wants $want, is $own";
});
cmp_ok scalar(@mime4j) + @postfix + @python, '>', 250, 'which were some';
done_testing;
