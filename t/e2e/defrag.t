#!/usr/bin/perl
# Fragments of message/partial arrive as the message they were cut from; in any order, over restarts, or as they are.
use lib 't/e2e';
use E2E;
use MIME::Base64 qw(decode_base64);

# One of the fragments of an original.
sub fragment {
    my ($id, $number, $total, $body, %o) = @_;
    my $of = $total ? "; total=$total" : '';
    return "Date: Sat, 21 Nov 2026 03:05:08 +0000\nFrom: a\@x.test\nTo: b\@y.test\nSubject: part $number\nMessage-ID: <$id.$number\@x.test>\n"
        . "MIME-Version: 1.0\nContent-Type: message/partial; id=\"$id\"; number=$number$of\n\n$body";
}

my $inner = "Message-ID: <whole\@x.test>\nSubject: whole\nMIME-Version: 1.0\nContent-Type: text/plain\n\n";
my @bodies = ($inner . "first\n\n", "\nsecond\n", "third\n");
my $whole = "Date: Sat, 21 Nov 2026 03:05:08 +0000\r\nFrom: a\@x.test\r\nTo: b\@y.test\r\nMessage-ID: <whole\@x.test>\r\nSubject: whole\r\nMIME-Version: 1.0\r\n"
    . "Content-Type: text/plain\r\n\r\nfirst\r\n\r\n\r\nsecond\r\nthird\r\n";

sub send_part { my ($p, $id, $n, %o) = @_;
    my $data = fragment($id, $n, exists $o{total} ? $o{total} : 3, $o{body} // $bodies[ $n - 1 ]);
    chomp $data; # send_mail ends it
    return $p->send_mail($o{from} // 'a@x.test', $o{to} // 'b@y.test', $data) }
sub body_of { my $c = Petrel::untraced(Petrel::untraced($_[0]{content})); return $c }

my $sink = Petrel::sink();
my $route = "y.test smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d\n* smtp://127.0.0.1:$sink->{port}";
my $p = Petrel->new(routes => $route)->start;

# Every order.
my $count = 0;
for my $order ([1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]) {
    like(send_part($p, "order@$order\@x", $_), qr/^250/, "part $_ of @$order") for @$order;
    my $m = Petrel::wait_arrived($sink, ++$count);
    is(body_of($m), $whole, "joined in order @$order");
}
ok($p->wait_empty, 'no part is left');

# A repetition, while it waits and when it is over.
send_part($p, 'twice@x', $_) for 1, 1, 2, 3;
Petrel::wait_arrived($sink, ++$count);
send_part($p, 'twice@x', 2);
ok($p->wait_empty, 'repetitions are absorbed');
is(scalar Petrel::arrived($sink), $count, 'once');

# A contradiction: all go on as they are.
send_part($p, 'conflict@x', 1);
send_part($p, 'conflict@x', 1, body => "other\n");
send_part($p, 'conflict@x', 2);
ok(Petrel::wait_arrived($sink, $count += 3), 'fragments that contradict each other pass');
is(scalar(grep { $_->{content} =~ /conflict/ } Petrel::arrived($sink)), 3, 'as they are');

# Restarts.
send_part($p, 'restart@x', 3);
my ($id) = send_part($p, 'restart@x', 1) =~ /queued as (\S+)/;
like(($p->run('queue', 'show', $id))[1], qr/waits for the other fragments: have 2 of 3; missing parts: 2;(?: owner this host;)? released at/, 'queue show');
like(($p->run('queue', 'why', $id))[1], qr/queue: +defrag: .*\nbecause: +other fragments .*waits for the other fragments/s, 'queue why');
is(scalar(my @lines = ($p->run(qw(queue ls --json --queue defrag)))[1] =~ /"queue_name":\s*"defrag"/g), 2, 'queue ls --queue defrag');
$p->kill9;
$p->start;
send_part($p, 'restart@x', 2);
is(body_of(Petrel::wait_arrived($sink, ++$count)), $whole, 'joined after a crash');
send_part($p, 'stop@x', $_) for 1, 2;
$p->stop;
$p->start;
send_part($p, 'stop@x', 3);
is(body_of(Petrel::wait_arrived($sink, ++$count)), $whole, 'joined after a restart');

# Other senders, other routes.
send_part($p, 'two@x', 1, from => 'one@x.test');
send_part($p, 'two@x', $_, from => 'two@x.test') for 2, 3;
send_part($p, 'two@x', 1, to => 'b@z.test');
Petrel::wait_arrived($sink, ++$count);
is($p->queued, 3, 'the sets of two senders are two');

# Some recipients have it earlier.
my @to = ('b@y.test', 'c@y.test');
send_part($p, 'some@x', 1, to => \@to);
send_part($p, 'some@x', 2, to => \@to);
send_part($p, 'some@x', 3);
is_deeply(Petrel::wait_arrived($sink, ++$count)->{to}, ['b@y.test'], 'one has all');
send_part($p, 'some@x', 3, to => 'c@y.test');
is_deeply(Petrel::wait_arrived($sink, ++$count)->{to}, ['c@y.test'], 'and the other');

# A recipient who is not to wait.
send_part($p, 'mixed@x', 1, to => ['b@y.test', 'd@z.test']);
is_deeply(Petrel::wait_arrived($sink, ++$count)->{to}, ['d@z.test'], 'who need not wait does not');
send_part($p, 'mixed@x', $_) for 2, 3;
my $mixed = Petrel::wait_arrived($sink, ++$count);
is_deeply($mixed->{to}, ['b@y.test'], 'the other waits');
is(body_of($mixed), $whole, 'for the whole');

# The parts that mpack makes of a file: many, and large ones that are files of their own; in any order, over crashes.
SKIP: {
    my ($mpack) = grep { -x } '/opt/petrel-test-mpack/usr/bin/mpack', Petrel::have('mpack') // ();
    skip 'mpack is not there', 4 unless $mpack;
    my $dir = tempdir('mpack-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    srand 7;
    my $blob = join '', map { pack 'N', rand 2**32 } 1 .. 300_000;
    Petrel::spit("$dir/blob", $blob);
    for my $size (20_000, 600_000) {
        my ($code, $out) = Petrel::command('', $mpack, '-s', 'a file', '-m', $size, '-o', "$dir/$size", "$dir/blob");
        my @parts = map { Petrel::slurp($_) } glob "$dir/$size.*";
        cmp_ok(scalar @parts, '>', 2, "$size: mpack made " . @parts . ' parts') or diag $out;
        my @order = sort { ($a * 7919) % 101 <=> ($b * 7919) % 101 } 0 .. $#parts;
        my $n = 0;
        for my $i (@order) {
            chomp(my $part = $parts[$i]);
            $p->send_mail('m@x.test', 'b@y.test', "From: m\@x.test\n$part");
            if (++$n == int(@parts / 2)) { $p->kill9; $p->start }
        }
        my $content = Petrel::wait_arrived($sink, ++$count)->{content};
        my ($base64) = $content =~ /Content-MD5: [^\r]*\r\n\r\n(.*?)\r\n\r\n?--/s;
        ok(decode_base64($base64 // '') eq $blob, "$size: the file arrives as it was");
    }
}

# An operator who does not want to wait for the others.
my ($alone) = send_part($p, 'alone@x', 2) =~ /queued as (\S+)/;
my ($more) = send_part($p, 'more@x', 2) =~ /queued as (\S+)/;
is(($p->run('queue', 'release', '--all'))[0], 0, 'release --all');
like(($p->run('queue', 'why', $more))[1], qr/waits for the other fragments/, 'means what is held');
is(($p->run('queue', 'release', $alone))[0], 0, 'release ID');
ok(Petrel::wait_for(sub { grep { $_->{content} =~ /alone\@x/ } Petrel::arrived($sink) }), 'lets one go as it is');
is(($p->run('queue', 'release', '--queue', 'defrag'))[0], 0, 'release --queue defrag');
ok(Petrel::wait_for(sub { grep { $_->{content} =~ /more\@x/ } Petrel::arrived($sink) }), 'all of them');

like(($p->run('status'))[1], qr/^fragments  \d+ wait in \d+ sets; so far \d+ messages reassembled, \d+ fragments not reassembled$/m, 'status');
is($p->stop, 0, 'a clean end');
unlike($p->log, qr/not reassembled|cannot be reassembled/, 'nothing failed');
done_testing();
