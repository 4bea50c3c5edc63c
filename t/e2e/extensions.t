#!/usr/bin/perl
# Extensions of SMTP, from a client through two Petrels to a host that knows few of them: DSN, CHUNKING and BINARYMIME,
# SMTPUTF8 and A-labels, 8BITMIME, LIMITS.
use lib 't/e2e';
use E2E;

plan skip_all => 'no python3' unless Petrel::have('python3');

my $dir = File::Temp::tempdir('extensions-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$dir/box";
$Petrel::patience = 15;
my $sink = Sink->start;
my $old = Sink->start('--no-8bitmime', '--no-dsn');
my $tables = "old.test smtp://127.0.0.1:$old->{port}\nxn--bcher-kva.example smtp://127.0.0.1:$sink->{port}\n";
my $back = Petrel->new(relay_from => '127.0.0.0/8', recipient_limit => 3,
    routes => "box.test maildir:$dir/box\nbad.test error:5.7.1 not here\n$tables* smtp://127.0.0.1:$sink->{port}")->start;
my $front = Petrel->new(routes => "here.test smtp://127.0.0.1:$sink->{port}\n* smtp://127.0.0.1:$back->{port}")->start;

# Says a message with smtplib: the parameters of MAIL, of RCPT, the recipients, the content from a file.
my $python = <<'END';
import smtplib, sys
port, mail, rcpt, to, path = sys.argv[1:]
c = smtplib.SMTP("127.0.0.1", int(port), timeout=30)
c.ehlo("client.test")
print(" ".join(sorted(c.esmtp_features)))
code, text = c.docmd("MAIL FROM:<ann@here.test> " + mail)
codes = [code]
for one in to.split():
    c.send(("RCPT TO:<%s> %s\r\n" % (one, rcpt)).encode())
    codes.append(c.getreply()[0])
data = open(path, "rb").read()
if "BINARYMIME" in mail:
    for i in range(0, len(data), 5000):
        c.send(b"BDAT %d\r\n" % len(data[i:i + 5000]) + data[i:i + 5000])
        codes.append(c.getreply()[0])
    c.send(b"BDAT 0 LAST\r\n")
    code, text = c.getreply()
else:
    code, text = c.data(data)
print(*codes, code, text.decode())
c.quit()
END
sub say_mail {
    my ($petrel, $mail, $rcpt, $to, $content) = @_;
    $content =~ s/\n/\r\n/g unless $mail =~ /BINARYMIME/;
    Petrel::spit("$dir/content", $content);
    my ($code, $text) = Petrel::command('', 'python3', '-c', $python, $petrel->{port}, $mail, $rcpt, $to, "$dir/content");
    my ($features, $said) = split /\n/, $text;
    return ($said // $text, $features);
}
my $notices = 0;
# The next notice to ann.
sub notice { return ($sink->wait_for('ann@here.test', ++$notices) // { data => 'none came' })->{data} =~ s/\r//gr }

# --- Offers

my ($said, $features) = say_mail($front, '', '', 'x@sink.test', "Subject: hi\n\nplain\n");
like $said, qr/^250 250 250 2\.0\.0 Ok: queued as /, 'a plain message';
like " $features ", qr/ $_ /, "$_ is offered" for qw(8bitmime binarymime chunking dsn limits smtputf8);
ok $sink->wait_for('x@sink.test', 1), 'and comes';

# --- DSN

say_mail($front, 'RET=FULL ENVID=ID+2B7', 'NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;Orig+40x', 'passed@sink.test', "Subject: hi\n\nbody\n");
my $passed = $sink->wait_for('passed@sink.test', 1);
like $passed->{parameters}, qr/ RET=FULL ENVID=ID\+2B7$/, 'passed on by two hosts to one that offers it';
is $passed->{to_parameters}[0], 'NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;Orig+40x', 'all of it';
say_mail($front, 'RET=FULL ENVID=ID+2B7', 'NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;Orig+40x', 'relayed@old.test', "Subject: hi\n\nsecret body\n");
my $told = notice();
like $told, qr/^Subject: Successful Mail Delivery Report$/m, 'a success is told';
like $told, qr/^Original-Envelope-Id: ID\+7$/m, 'of that envelope';
like $told, qr/^Original-Recipient: rfc822;Orig\@x\nFinal-Recipient: rfc822; relayed\@old\.test\nAction: relayed\nStatus: 2\.0\.0$/m, 'which was relayed to a host without DSN';
like $told, qr/^X-Petrel-Queue-ID: /m, 'by us';
unlike $told, qr/secret body/, 'RET=FULL is for failures';
say_mail($front, 'RET=FULL ENVID=second', 'NOTIFY=SUCCESS', 'who@box.test', "Subject: hi\n\nbody\n");
$told = notice();
like $told, qr/^Action: delivered$/m, 'delivered to a Maildir: told by the second host, that had it from the first';
like $told, qr/^Original-Envelope-Id: second$/m, 'with its ENVID';
say_mail($front, 'RET=FULL', 'NOTIFY=SUCCESS,FAILURE', 'who@bad.test', "Subject: hi\n\nsecret body\n");
$told = notice();
like $told, qr/^Action: failed$/m, 'a failure';
like $told, qr/secret body/, 'with all of it';
say_mail($front, '', 'NOTIFY=NEVER', 'never@old.test', "Subject: hi\n\nbody\n");
say_mail($front, '', 'NOTIFY=NEVER', 'never@bad.test', "Subject: hi\n\nbody\n");
ok $old->wait_for('never@old.test', 1), 'delivered';
ok $_->wait_empty, 'and done with' for $front, $back;
is scalar($sink->for_address('ann@here.test')), $notices, 'never means never';

# A success is put down before it is forgotten: killed while another recipient waits.
$back->configure(routes => "box.test maildir:$dir/box\nlater.test smtp://127.0.0.1:1\n$tables* smtp://127.0.0.1:$sink->{port}");
kill 'HUP', $back->{pid};
ok $back->wait_log(qr/reloaded|settings/i), 'another route';
say_mail($back, 'ENVID=crash', 'NOTIFY=SUCCESS', 'a@old.test b@later.test', "Subject: hi\n\nbody\n");
ok $back->wait_log(qr/to=<b\@later\.test>.*status=deferred/), 'one waits';
ok $old->wait_for('a@old.test', 1), 'one has it';
$back->wait_filed;
$told = notice();
like $told, qr/^Final-Recipient: rfc822; a\@old\.test\nAction: relayed$/m, 'the success is reported while the other one waits';
unlike $told, qr/b\@later\.test/, 'and nothing else';
ok $back->wait_filed && $back->wait_quiet, 'which is on the disk, with the end of the report';
$back->kill9;
$back->configure(routes => "box.test maildir:$dir/box\nbad.test error:5.7.1 not here\nlater.test smtp://127.0.0.1:$old->{port}\n$tables* smtp://127.0.0.1:$sink->{port}");
$back->start;
$back->run('queue', 'retry', '--all');
$told = notice();
like $told, qr/^Original-Envelope-Id: crash$/m, 'told after the crash';
like $told, qr/^Final-Recipient: rfc822; b\@later\.test\nAction: relayed$/m, 'the other one';
unlike $told, qr/a\@old\.test/, 'and not the first again';
is scalar($old->for_address('a@old.test')), 1, 'nobody gets it twice';

# --- BINARYMIME

my $binary = "Subject: bin\r\nMIME-Version: 1.0\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    . join('', map { chr($_ % 256) } 0 .. 20000) . "\r\n.\r\nQUIT\r\nlone \n and \r and \0";
my $bytes = $binary =~ s/\A.*?\r\n\r\n//sr;
($said) = say_mail($front, 'BODY=BINARYMIME', '', 'bin@sink.test', $binary);
like $said, qr/250 2\.0\.0 Ok: queued as /, 'binary content by BDAT';
my $got = $sink->wait_for('bin@sink.test', 1);
like $got->{data}, qr/^Content-Transfer-Encoding: base64\r?$/m, 'is converted for a host without BINARYMIME';
(my $coded = $got->{data}) =~ s/\A.*?\r?\n\r?\n//s;
require MIME::Base64;
ok MIME::Base64::decode_base64($coded) eq $bytes, 'and is the same, byte by byte, two hosts later';
ok $back->log =~ /converted for 127\.0\.0\.1/ && $front->log !~ /converted for/, 'by the second host alone: the first passed it on';
is +(($front->dialogue('EHLO x', 'MAIL FROM:<a@here.test> BODY=BINARYMIME', 'RCPT TO:<b@sink.test>', 'DATA'))[-1] =~ /^(503 5\.5\.1)/)[0], '503 5.5.1', 'never by DATA';
my $signed = "Subject: s\r\nMIME-Version: 1.0\r\nContent-Type: multipart/signed; boundary=b; protocol=\"x/y\"; micalg=z\r\n\r\n--b\r\nContent-Transfer-Encoding: binary\r\n\r\n\0\xff\r\n--b\r\nContent-Type: x/y\r\n\r\ns\r\n--b--\r\n";
say_mail($front, 'BODY=BINARYMIME', '', 'signed@sink.test', $signed);
$told = notice();
like $told, qr/^Status: 5\.6\.3$/m, 'what is signed bounces';
like $told =~ s/\n +/ /gr, qr/needs BINARYMIME.*signed/, 'with the reason';

# --- 8BITMIME

my $text = "Subject: eight\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nplease gr\xc3\xbc\xc3\x9f dich and all the others whom we know\n";
say_mail($front, 'BODY=8BITMIME', '', 'eight@sink.test eight@old.test', $text);
like $sink->wait_for('eight@sink.test', 1)->{data}, qr/gr\xc3\xbc\xc3\x9f dich/, 'as it is, to a host with 8BITMIME';
like $sink->wait_for('eight@sink.test', 1)->{parameters}, qr/BODY=8BITMIME/, 'which is told so';
$got = $old->wait_for('eight@old.test', 1);
like $got->{data}, qr/^Content-Transfer-Encoding: quoted-printable\r?$/m, 'converted for one without';
like $got->{data}, qr/gr=C3=BC=C3=9F dich/, 'quoted';
say_mail($front, '', '', 'silent@old.test', $text);
like $old->wait_for('silent@old.test', 1)->{data}, qr/gr=C3=BC=C3=9F dich/, 'also when the client has not said what it is';

# --- SMTPUTF8

($said) = say_mail($front, 'SMTPUTF8', '', "j\xc3\xbcrgen\@old.test", "Subject: hi\n\nx\n");
$told = notice();
like $told, qr/^Content-Type: message\/global-delivery-status$/m, 'bounced in the form of RFC 6533';
like $told, qr/^Final-Recipient: utf-8; j\xc3\xbcrgen\@old\.test\nAction: failed\nStatus: 5\.6\.7$/m, 'an address that the host does not understand';
say_mail($front, 'SMTPUTF8', '', 'plain@old.test', "Subject: hi\n\nx\n");
ok $old->wait_for('plain@old.test', 1), 'without need for it the mail goes';
say_mail($front, 'SMTPUTF8', '', "j\xc3\xbcrgen\@sink.test", "Subject: hi\n\nx\n");
like $sink->wait_for("j\xc3\xbcrgen\@sink.test", 1)->{parameters}, qr/SMTPUTF8/, 'passed on where it is understood';
SKIP: {
    skip 'no libidn2', 2 unless ($front->run('version', '--json'))[1] =~ /"idna"/;
    say_mail($front, 'SMTPUTF8', 'NOTIFY=SUCCESS', "a\@B\xc3\xbccher.example", "Subject: hi\n\nx\n");
    ok $sink->wait_for('a@xn--bcher-kva.example', 1), 'A-labels for routes and for the host';
    like $sink->wait_for('a@xn--bcher-kva.example', 1)->{to_parameters}[0], qr/ORCPT=utf-8;a\@B\xc3\xbccher\.example|ORCPT=utf-8;a\@B\\x\{FC\}cher/, 'and what was written';
}

# --- LIMITS

say_mail($front, '', '', join(' ', map { "many$_\@sink.test" } 1 .. 8), "Subject: many\n\nx\n");
ok $sink->wait_for("many$_\@sink.test", 1), "many$_" for 1, 8;
ok $front->wait_empty, 'eight recipients to a host that takes three at a time';
ok Petrel::wait_for(sub { 8 == (() = $front->log =~ /to=<many\d\@sink\.test>.*status=sent/g) }), 'at once';
is scalar(() = $front->log =~ /to=<many\d\@sink\.test>.*status=deferred/g), 0, 'none had to wait for a 452';
ok Petrel::wait_for(sub { 2 == (() = $back->log =~ /nrcpt=3,/g) }), 'in mails of three';

ok $_->wait_empty, 'nothing is left' for $front, $back;
done_testing;
