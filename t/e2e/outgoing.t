#!/usr/bin/perl
# The form in which mail leaves: what was submitted gets From and loses Bcc and Return-Path; what others sent, and what
# goes to a mailbox, stays as it is. By SMTP, BDAT and sendmail(1), with SIZE, converted, and one after the other.
use lib 't/e2e';
use E2E;
use MIME::Base64;

my $dir = tempdir('outgoing-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $plain = Sink->start('--no-8bitmime');
my $store = Sink->start('--lmtp');
my $petrel = Petrel->new(relay_from => '127.0.0.1', local_domains => 'here.test',
    routes => "here.test maildir:$dir/box\nstore.test lmtp://127.0.0.1:$store->{port}\nplain.test smtp://127.0.0.1:$plain->{port}\n* smtp://127.0.0.1:$sink->{port}")
    ->start;

sub send_from {
    my ($address, $from, $to, $data, @parameters) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => $address) or die 'no greeting';
    my @replies = map { $client->say($_) } "MAIL FROM:<$from>@parameters", "RCPT TO:<$to>", 'DATA';
    my $reply = $client->say(Client::stuffed($data =~ s/\n/\r\n/gr) . '.');
    $client->quit;
    like $reply, qr/^250 2\.0\.0 Ok: queued/, "taken: $to";
    return;
}
sub header { my $data = shift; return $data =~ s/\r//gr =~ s/\n\n.*//sr . "\n" }
sub body { my $data = shift; return $data =~ s/\r//gr =~ s/.*?\n\n//sr }

my $letter = "Return-Path: <x\@y.test>\nSubject: hi\nBcc: secret\@x.test,\n other\@x.test\nTo: all\@x.test\n\nBcc: body\nhello\n";
send_from('127.0.0.1', 'ann@a.test', 'one@b.test', $letter);
my $came = $sink->wait_for('one@b.test', 1);
my $header = header($came->{data});
like $header, qr/^From: ann\@a\.test$/m, 'From is added';
unlike $header, qr/secret|other|Return-Path/, 'Bcc and Return-Path have gone';
like $header, qr/^Subject: hi\nTo: all\@x\.test$/m, 'the rest has stayed';
is body($came->{data}), "Bcc: body\nhello\n", 'the body, too';
my ($size) = $came->{parameters} =~ /SIZE=(\d+)/;
is $size, length $came->{data}, 'SIZE is that of what leaves';

send_from('127.0.0.2', 'ann@a.test', 'two@here.test', $letter);
ok $petrel->wait_empty, 'delivered';
my ($file) = glob "$dir/box/new/*";
$header = header(Petrel::slurp($file));
like $header, qr/^Bcc: secret\@x\.test,\n other\@x\.test$/m, "mail of others stays as it is";
unlike $header, qr/^From:/m, 'without From';
unlink $file;
send_from('127.0.0.1', 'ann@a.test', 'two@here.test', $letter);
ok $petrel->wait_empty, 'delivered';
($file) = glob "$dir/box/new/*";
like header(Petrel::slurp($file)), qr/^Bcc: secret/m, 'and so does mail for a mailbox';

# A mailbox behind LMTP gets the same as a Maildir.
send_from('127.0.0.1', 'ann@a.test', 'one@store.test', "Return-Path: <x\@y.test>\nSubject: alarm\nBcc: secret\@x.test\ndisk is full\n");
$came = $store->wait_for('one@store.test', 1);
like header($came->{data}), qr/^Received: .*\nSubject: alarm\nBcc: secret\@x\.test\n\z/s, 'LMTP: Return-Path has gone, and nothing else';
unlike header($came->{data}), qr/Return-Path/, 'LMTP: wherever it was';
is body($came->{data}), "disk is full\n", 'LMTP: the header has its empty line';

# Several in one session, of which some need work; the next one is sent before the reply to the last.
$sink->hold('dot');
send_from('127.0.0.1', "s$_\@a.test", "many$_\@b.test", $_ % 2 ? "Subject: $_\n\nx\n" : "From: whole\@a.test\nSubject: $_\n\nx\n") for 1 .. 20;
$sink->let_go('dot');
ok $petrel->wait_empty, 'all are sent';
for my $which (1 .. 20) {
    my ($message) = $sink->for_address("many$which\@b.test");
    my @from = header($message->{data}) =~ /^From: (.*)$/mg;
    is "@from", $which % 2 ? "s$which\@a.test" : 'whole@a.test', "the From of $which";
    is $message->{from}, "s$which\@a.test", 'and its sender';
}

# Converted as well.
send_from('127.0.0.1', 'ann@a.test', 'u@plain.test', "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\nBcc: x\@y.test\n\n\xc3\xbcber\n");
$came = $plain->wait_for('u@plain.test', 1);
$header = header($came->{data});
like $header, qr/^Content-Transfer-Encoding: base64$/m, 'converted';
like $header, qr/^From: ann\@a\.test$/m, 'with From';
unlike $header, qr/^Bcc/m, 'and without Bcc';
is decode_base64(body($came->{data})), "\xc3\xbcber\r\n", 'the body is the same';

# sendmail(1) adds From itself.
open my $mail, '|-', "$Petrel::binary -c $petrel->{dir}/petrel.conf sendmail -f cron\@a.test last\@b.test" or die;
print $mail "Return-Path: <x\@y>\nBcc: z\@y.test\nSubject: s\n\nx\n";
ok close $mail, 'sendmail(1)';
$came = $sink->wait_for('last@b.test', 1);
$header = header($came->{data});
is scalar(() = $header =~ /^From:/mg), 1, 'one From';
unlike $header, qr/^(?:Bcc|Return-Path)/m, 'nothing private';

# Too long a header leaves as it is, and that is said.
send_from('127.0.0.1', 'ann@a.test', 'long@b.test', 'Bcc: x@y.test' . "\nX-Field: " . 'x' x 60 x 10 . "\nX: y" x 1 . join('', map { "\nX-$_: " . 'y' x 900 } 1 .. 300) . "\n\nx\n");
$came = $sink->wait_for('long@b.test', 1);
like header($came->{data}), qr/^Bcc: x\@y\.test$/m, 'a header of more than 256 KiB is not changed';
ok $petrel->wait_log(qr/warning: the header is longer than 262144 bytes: it leaves unchanged/), 'with a warning' or diag $petrel->log;
is $petrel->stop, 0, 'it ends well';

done_testing;
