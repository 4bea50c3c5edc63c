#!/usr/bin/perl
# Sets of fragments that mpack and others make, in every order, to every kind of target; what becomes of DSN wishes, of
# 8-bit text and of UTF-8 on the way to old hosts; who may not send fragments at all.
use lib 't/e2e';
use E2E;
use Digest::SHA qw(sha256_hex);
use Fragments;
use MIME::Base64 ();

my $sink = Petrel::sink();
my $lmtp = Petrel::sink('--lmtp');
my $old = Petrel::sink('--no-8bitmime', '--no-dsn');
my $box = File::Temp::tempdir('box-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $p = Petrel->new(
    defrag_max_sets_per_sender => 0,
    routes => "y.test smtp://127.0.0.1:$sink->{port}?defragment=yes\nl.test lmtp://127.0.0.1:$lmtp->{port}?defragment=yes\n"
        . "box.test maildir:$box/%u?create=all&defragment=yes\nold.test smtp://127.0.0.1:$old->{port}?defragment=yes\n"
        . "oldplain.test smtp://127.0.0.1:$old->{port}\nplain.test smtp://127.0.0.1:$sink->{port}\n* smtp://127.0.0.1:$sink->{port}"
)->start;
my $count = 0;
sub bytes { my ($seed, $length) = @_; srand $seed; return substr join('', map { pack 'N', rand 2**32 } 1 .. $length / 4 + 1), 0, $length }
# The next arrivals, this number, in any order.
sub next_arrived { my ($n) = @_; Petrel::wait_arrived($sink, $count + $n); my @all = Petrel::arrived($sink); my @new = @all[ $count .. $#all ]; $count = @all; return @new }

# --- mpack, in all orders of three, and some of four and five.
SKIP: {
    skip 'mpack or python3 is not there', 9 unless Fragments::mpack() && Petrel::have('python3');
    my $blob = bytes(7, 6000);
    for my $total (3, 4, 5) {
        my @parts = Fragments::packed($blob, $total);
        is(scalar @parts, $total, "mpack makes $total parts");
        my @orders = Fragments::orders(0 .. $total - 1);
        srand $total;
        @orders = map { splice @orders, rand @orders, 1 } 1 .. 8 if $total > 3;
        my @mail;
        for my $o (0 .. $#orders) {
            push @mail, map { [ "m$total-$o\@x.test", 'b@y.test', $parts[$_] ] } @{ $orders[$o] };
        }
        my @refused = grep { !/^250/ } Fragments::send_many($p->{port}, @mail);
        is("@refused", '', "check 24: $total parts in " . @orders . ' orders');
        my @read = Fragments::read_all(map { $_->{content} } next_arrived(scalar @orders));
        is(scalar(grep { $_->{type} eq 'multipart/mixed' && !$_->{defects} && (grep { $_ eq sha256_hex($blob) } @{ $_->{parts} }) == 1 } @read),
            scalar @orders, "check 24: each is the file, byte for byte");
    }
}

# --- A photo as office scanners send it: cut at 16 KiB, total in all parts, id in angle brackets, sent backwards.
{
    my $photo = bytes(11, 150_000);
    my $base64 = MIME::Base64::encode_base64($photo);
    my $whole = "Message-ID: <photo\@x.test>\nSubject: photo\nMIME-Version: 1.0\nContent-Type: image/jpeg; name=\"photo.jpg\"\n"
        . "Content-Transfer-Encoding: base64\nContent-Disposition: inline; filename=\"photo.jpg\"\n\n$base64";
    my @bodies = Fragments::cut($whole, 13);
    Fragments::send_many($p->{port}, map { [ 's@x.test', 'b@y.test', Fragments::part('<20160114.095021233.0012@host>', $_, 13, $bodies[ $_ - 1 ] =~ s/\n\z//r) ] } reverse 1 .. 13);
    my ($m) = next_arrived(1);
    my ($read) = Petrel::have('python3') ? Fragments::read_all($m->{content}) : { type => 'image/jpeg', parts => [ sha256_hex($photo) ] };
    is($read->{type}, 'image/jpeg', 'check 23: a photo in 13 parts');
    is($read->{parts}[0], sha256_hex($photo), 'check 23: byte for byte');
    unlike($m->{content}, qr/message\/partial|part \d/, 'check 23: nothing of the parts is left');
}

# --- Other targets.
my @bodies = ("Subject: whole\nMIME-Version: 1.0\nContent-Type: text/plain\n\none\n", "two\n", 'three');
sub set { my ($id, $to, %o) = @_; my $n = 0; return map { [ $o{from} // 'a@x.test', $to, Fragments::part($id, ++$n, 3, $_) =~ s/\n\z//r ] } @{ $o{bodies} // \@bodies } }
Fragments::send_many($p->{port}, set('l', 'b@l.test'), set('box', 'b@box.test'));
like(Petrel::wait_arrived($lmtp, 1)->{content}, qr/^Subject: whole\r\n.*\r\n\r\none\r\ntwo\r\nthree\r\n\z/ms, 'by LMTP');
my ($file) = @{ Petrel::wait_for(sub { my @f = glob "$box/b/new/*"; return @f ? \@f : undef }) // [] };
like(Petrel::slurp($file // '/dev/null'), qr/^Subject: whole\n.*\n\none\ntwo\nthree\n\z/ms, 'into a Maildir');
is(scalar(my @files = glob "$box/b/new/*"), 1, 'once');

# --- Mail of sendmail(1) is local, as that of those who may relay.
{
    my ($one, @others) = set('local', 'b@y.test');
    my ($code, $out) = $p->run({ input => $one->[2] }, qw(sendmail -i -f a@x.test b@y.test));
    is($code, 0, 'sendmail takes a fragment') or diag $out;
    Fragments::send_many($p->{port}, @others);
    my ($m) = next_arrived(1);
    like($m->{content}, qr/^Subject: whole\r\n.*\r\n\r\none\r\ntwo\r\nthree\r\n\z/ms, 'check 37: and it is joined with what a trusted client sends');
}

# --- DSN: told once, of the whole.
{
    my @fragments = set('dsn', 'b@old.test', from => 'dsn@x.test');
    my $n = 0;
    for my $f (@fragments) {
        my $data = $f->[2] =~ s/\n/\r\n/gr;
        my @r = $p->dialogue('EHLO client.test', 'MAIL FROM:<dsn@x.test> RET=HDRS ENVID=env' . ++$n, 'RCPT TO:<b@old.test> NOTIFY=SUCCESS ORCPT=rfc822;n' . "$n\@y.test", 'DATA', ["$data\r\n.\r\n"], 'QUIT');
        like($r[-2], qr/^250/, "part $n with NOTIFY=SUCCESS");
    }
    Petrel::wait_arrived($old, 1);
    my ($notice) = next_arrived(1);
    is($notice->{to}[0], 'dsn@x.test', 'check 44: the sender is told');
    like($notice->{content}, qr/^Original-Envelope-Id: env1\r\n.*^Original-Recipient: rfc822;n1\@y.test\r\n.*^Action: relayed\r\n/ms, 'check 44: of the whole, as of the first part');
    ok($p->wait_empty, 'nothing is left');
    is(scalar Petrel::arrived($sink), $count, 'check 44: once');
}

# --- 8-bit text in fragments, for hosts without 8BITMIME.
{
    my @eight = ("Subject: eight\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nsch\xc3\xb6n\n", "\xc3\xa4hnlich\n", "long enough to be readable\n" x 10 . 'end');
    Fragments::send_many($p->{port}, set('eight', 'b@old.test', bodies => \@eight));
    my $m = Petrel::wait_arrived($old, 2);
    unlike($m->{content}, qr/[^\x00-\x7f]/, 'check 56: joined, then converted');
    like($m->{content}, qr/^Content-Transfer-Encoding: quoted-printable\r\n(?:.*\r\n)?\r\nsch=C3=B6n\r\n=C3=A4hnlich\r\n(?:long enough to be readable\r\n){10}end\r\n\z/ms, 'check 56: to valid MIME');
    Fragments::send_many($p->{port}, (set('eight7', 'b@oldplain.test', bodies => \@eight, from => 'e@x.test'))[0]);
    my ($bounce) = next_arrived(1);
    is($bounce->{to}[0], 'e@x.test', 'check 55: alone it comes back');
    like($bounce->{content}, qr/^Status: 5\.6\.3\r\n/m, 'check 55: with 5.6.3');
    is(scalar Petrel::arrived($old), 2, 'check 55: neither relabelled nor encoded');
}

# --- UTF-8 in the header of a part of the whole, for a host without SMTPUTF8.
{
    my @utf8 = ("Subject: deep\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\ntext\n--b\nContent-Type: message/rfc822\n\n",
        "Subject: within\nContent-Type: text/plain; name=\"sch\xc3\xb6n\"\n\n", "x\n--b--");
    Fragments::send_many($p->{port}, set('utf8', 'b@old.test', bodies => \@utf8, from => 'u@x.test'));
    my ($bounce) = next_arrived(1);
    is($bounce->{to}[0], 'u@x.test', 'check 57: UTF-8 within a part of the whole comes back');
    like($bounce->{content}, qr/^Status: 5\.6\.[79]\r\n/m, 'check 57: as SMTPUTF8 that cannot go on');
    is(scalar Petrel::arrived($old), 2, 'check 57: and is not sent');
}

# --- A fragment within a multipart is none.
$p->send_mail('a@x.test', 'b@y.test', "Subject: E11\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n--b\nContent-Type: Message/Partial; number=1; total=5; id=x\n\npart\n--b--\n");
like((next_arrived(1))[0]{content}, qr/Message\/Partial; number=1; total=5; id=x\r\n\r\npart\r\n--b--\r\n/, 'check 11: E11: a fragment within a multipart passes untouched');

# --- Refused where nobody joins.
$p->configure(partial_policy => 'reject');
kill 'HUP', $p->{pid};
$p->wait_log(qr/settings reloaded/);
my ($one) = set('no', 'b@plain.test');
like($p->send_mail('a@x.test', 'b@plain.test', $one->[2]), qr/^550 5\.6\.1 message\/partial not accepted/, 'fragments are refused');
like($p->send_mail('a@x.test', [ 'b@plain.test', 'b@y.test' ], $one->[2]), qr/^250/, 'unless one recipient has them joined');
like($p->send_mail('a@x.test', 'b@plain.test', "Content-Type: message/rfc822\n\nSubject: x\n\nx"), qr/^250/, 'other messages are not');
is($p->stop, 0, 'a clean end');
done_testing();
