package Fragments;

# Messages cut into message/partial, by mpack or by ourselves, and what came of them read by Python's email package.
use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP ();
use Petrel;

# A fragment; $total 0: it does not say. The body has LF line ends.
sub part {
    my ($id, $number, $total, $body, %o) = @_;
    my $of = $total ? "; total=$total" : '';
    return "Date: Sat, 21 Nov 2026 03:05:08 +0000\nFrom: a\@x.test\nTo: b\@y.test\nSubject: part $number\nMessage-ID: <$id.$number\@x.test>\n"
        . "MIME-Version: 1.0\nContent-Type: message/partial; id=\"$id\"; number=$number$of\n" . ($o{header} // '') . "\n$body";
}

# Cuts a whole message (header within, LF) into so many parts at line ends.
sub cut {
    my ($whole, $count) = @_;
    my @lines = split /^/, $whole;
    my @bodies = ('') x $count;
    $bodies[ int($_ * $count / @lines) ] .= $lines[$_] for 0 .. $#lines;
    return @bodies;
}

sub mpack { my ($found) = grep { -x } '/opt/petrel-test-mpack/usr/bin/mpack', Petrel::have('mpack') // (); return $found }

# The parts that mpack makes of some bytes: this number, or less when there are too few bytes.
sub packed {
    my ($bytes, $count) = @_;
    my $dir = tempdir('mpack-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    Petrel::spit("$dir/blob", $bytes);
    my $encoded = length($bytes) * 4 / 3 * 78 / 76;
    for my $size (map { int($encoded / $count * 0.6 + 60 * $_) } 0 .. 60) {
        unlink glob "$dir/out.*";
        my ($code, $out) = Petrel::command('', mpack(), '-s', 'a file', '-m', $size, '-o', "$dir/out", "$dir/blob");
        my @files = sort glob "$dir/out.*";
        next if $code != 0 || @files != $count;
        return map { my $part = Petrel::slurp($_); chomp $part; "From: m\@x.test\n$part" } @files;
    }
    return;
}

# All orders of a list.
sub orders {
    my @list = @_;
    return [@list] if @list < 2;
    my @orders;
    for my $i (0 .. $#list) {
        my @rest = @list;
        my ($first) = splice @rest, $i, 1;
        push @orders, map { [ $first, @$_ ] } orders(@rest);
    }
    return @orders;
}

# The content of files as Python's email package reads it: { type, subject, parts => [sha256...], defects => N }.
my $reader = <<'END';
import email, email.policy, hashlib, json, sys
def defects(m):
    found = len(m.defects)
    if m.is_multipart():
        found += sum(defects(p) for p in m.get_payload())
    return found
for path in sys.argv[1:]:
    m = email.message_from_binary_file(open(path, "rb"), policy=email.policy.default)
    leaves = [p for p in m.walk() if not p.is_multipart()]
    print(json.dumps({"type": m.get_content_type(), "subject": str(m["Subject"]), "message_id": str(m["Message-ID"]),
        "parts": [hashlib.sha256(p.get_payload(decode=True) or b"").hexdigest() for p in leaves],
        "types": [p.get_content_type() for p in leaves], "defects": defects(m)}))
END
sub read_all {
    my (@contents) = @_;
    my $dir = tempdir('read-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my @files = map { Petrel::spit("$dir/$_", $contents[$_]) } 0 .. $#contents;
    my ($code, $out) = Petrel::command('', 'python3', '-c', $reader, @files);
    die "python3: $out" if $code != 0;
    return map { JSON::PP::decode_json($_) } split /\n/, $out;
}

# One session that sends many messages at once: [from, to, content (LF)]...; the replies to their ends.
sub send_many {
    my ($port, @messages) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) or die "no connection: $!";
    Petrel::reply($s);
    print $s "EHLO client.test\r\n";
    Petrel::reply($s);
    my @replies;
    for my $m (@messages) {
        my ($from, $to, $content) = @$m;
        $content =~ s/\r?\n/\r\n/g;
        $content =~ s/^\./../mg;
        print $s "MAIL FROM:<$from>\r\nRCPT TO:<$to>\r\nDATA\r\n";
        Petrel::reply($s) for 1 .. 3;
        print $s "$content\r\n.\r\n";
        push @replies, Petrel::reply($s);
    }
    close $s;
    return @replies;
}

# The library that lets a program live at another time, or undef.
sub clock { my ($found) = grep { -e } glob('/opt/petrel-test-faketime/usr/lib/*/faketime/libfaketime.so.1 /usr/lib/*/faketime/libfaketime.so.1'); return $found }

1;
