#!/usr/bin/perl
# Clients that we did not write - swaks, smtplib, curl, msmtp - send through Petrel to the sink, and are refused.
use lib 't/e2e';
use E2E;
use IO::Socket::IP;
use MIME::Base64;

my $scratch = tempdir('clients-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Petrel::sink();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", # one at a time: what comes first arrives first
    initial_destination_concurrency => 1, default_destination_concurrency_limit => 1, sender_turns => 'no');
my %socket = (smtp => "$petrel->{dir}/smtp.sock", lmtp => "$petrel->{dir}/lmtp.sock");
my $lmtp_port = Petrel::free_port();
my @listen = ("127.0.0.1:$petrel->{port}", "127.0.0.1:$lmtp_port?lmtp", "unix:$socket{smtp}", "unix:$socket{lmtp}?lmtp");
my $has_ipv6 = IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1);
push @listen, '[::1]:0' if $has_ipv6;
$petrel->configure(listen => join(', ', @listen))->start;

# Takes mail for elsewhere only from 192.0.2.0/24, so that everybody here is a stranger; knows anna.
my $strict = Petrel->new(
    relay_from => '192.0.2.0/24',
    routes => "* smtp://127.0.0.1:$sink->{port}",
    local => "maildir:$scratch/mail/%u",
    message_size_limit => '20K',
);
mkdir "$scratch/mail" or die;
mkdir "$scratch/mail/anna" or die;
$strict->start;

my $header = "From: Me <me\@here.test>\r\nTo: you\@there.test\r\nSubject: \%s\r\nDate: Sat, 21 Nov 2026 03:00:00 +0000\r\n"
    . "Message-ID: <1\@here.test>\r\n\r\n";
my $plain = sprintf($header, 'plain') . "Hello.\r\n.\r\n..\r\n.dot\r\n \r\n\ttab \r\n\r\nlast line\r\n";
my $eight_bit = sprintf($header, 'eight') . "Gr\xfc\xdfe, \xe2\x82\xac, " . join('', map { chr } 128 .. 255) . "\r\n.\xff\r\n";
my $long = sprintf($header, 'long') . 'x' x 998 . "\r\n" . 'y' x 997 . "\r\n.\r\n";
my $large = sprintf($header, 'large') . join('', map { "$_ " . 'z' x ($_ % 70) . "\r\n" } 1 .. 50000);
Petrel::spit("$scratch/$_->[0]", $_->[1])
    for ['plain', $plain], ['eight', $eight_bit], ['long', $long], ['large', $large];
my $arrived = 0;

# The next message that the sink gets: its content and its envelope.
sub next_is {
    my ($name, $content, %envelope) = @_;
    my $got = Petrel::wait_arrived($sink, ++$arrived);
    return fail("$name: arrives") || diag $petrel->log unless $got;
    my $same = Petrel::untraced($got->{content}) eq $content;
    ok $same, "$name: arrives byte for byte" or diag differ(Petrel::untraced($got->{content}), $content);
    like $got->{content}, qr/\AReceived: from \S+ \([^)]*\) by petrel\.test \(Petrel\)\s+with (?:UTF8SMTP|UTF8LMTP|ESMTP|LMTP)\s+id [0-9A-Z]{10}-[0-9A-Z]{8}(?: for <\S+>)?;\s/,
        "$name: with a trace header";
    is $got->{from}, $envelope{from} // 'me@here.test', "$name: from";
    is "@{ $got->{to} }", $envelope{to} // 'you@there.test', "$name: to";
    return $got;
}

# Where two messages part.
sub differ {
    my ($got, $wanted) = @_;
    my $at = 0;
    $at++ while $at < length $got && $at < length $wanted && substr($got, $at, 1) eq substr($wanted, $at, 1);
    return sprintf "%d bytes, not %d; at %d: got %s, not %s", length $got, length $wanted, $at,
        map { JSON::PP->new->allow_nonref->ascii->encode(substr $_, $at, 60) } $got, $wanted;
}


# --- swaks

# Runs it; returns its transcript and the content that it sent by that.
sub swaks {
    my @arguments = @_;
    my ($code, $text) = Petrel::command('', Petrel::have('swaks'), '--helo', 'client.test', '--from', 'me@here.test', @arguments);
    my ($data) = $text =~ /^<-  354 .*?\n(.*?)^ -> \.\n/ms;
    my $content = join '', map { s/^\.|\r\z//g; "$_\r\n" } ($data // '') =~ /^ -> (.*)\n/mg;
    return ($code, $text, $content);
}

SKIP: {
    skip 'no swaks', 1 unless Petrel::have('swaks');
    my @server = ('--server', "127.0.0.1:$petrel->{port}");
    my @you = ('--to', 'you@there.test');
    my $binary = join '', map { chr($_ * 7 % 256) } 1 .. 40_000;
    Petrel::spit("$scratch/binary", $binary);

    my ($code, $text, $content) = swaks(@server, @you, '--data', "\@$scratch/plain");
    is $code, 0, 'swaks: is content' or diag $text;
    like $text, qr/^<-  250 2\.0\.0 Ok: queued as [0-9A-Z]{10}-[0-9A-Z]{8}/m, 'swaks: hears the id';
    is $content, "$plain\r\n", 'swaks: sent what it was given (and one empty line)';
    next_is('swaks', $content);

    ($code, $text, $content) = swaks(@server, '--to', 'a@x.test,b@y.test,c@z.test', '--pipeline', '--data', "\@$scratch/long");
    is $code, 0, 'swaks --pipeline: is content' or diag $text;
    cmp_ok length $content, '>', 1990, 'swaks --pipeline: sent it';
    next_is('swaks --pipeline', $content, to => 'a@x.test b@y.test c@z.test');

    ($code, $text, $content) = swaks(@server, @you, '--data', "\@$scratch/eight");
    is $code, 0, 'swaks, 8-bit: is content' or diag $text;
    is $content, "$eight_bit\r\n", 'swaks, 8-bit: sent what it was given';
    next_is('swaks, 8-bit', $content);

    ($code, $text, $content) = swaks(@server, @you, '--body', 'see there',
        '--attach-type', 'application/octet-stream', '--attach', "\@$scratch/binary");
    is $code, 0, 'swaks --attach: is content' or diag $text;
    my $got = next_is('swaks --attach', $content);
    my ($coded) = $got->{content} =~ /base64\r\n\r\n([A-Za-z0-9+\/=\r\n]+)/i;
    ok decode_base64($coded // '') eq $binary, 'swaks --attach: the attachment is whole';

    for my $case (['LMTP', '--server', "127.0.0.1:$lmtp_port", '--protocol', 'LMTP'], ['socket', '--socket', $socket{smtp}],
        ['LMTP socket', '--socket', $socket{lmtp}, '--protocol', 'LMTP'])
    {
        my ($name, @where) = @$case;
        ($code, $text, $content) = swaks(@where, '--to', 'a@x.test,b@y.test', '--data', "\@$scratch/plain");
        is $code, 0, "swaks, $name: is content" or diag $text;
        is scalar(() = $text =~ /^<-  250 2\.\S+ .*queued as/mg), $name =~ /LMTP/ ? 2 : 1, "swaks, $name: replies to the content";
        $got = next_is("swaks, $name", $content, to => 'a@x.test b@y.test');
        like $got->{content}, $name =~ /LMTP/ ? qr/\swith LMTP\s/ : qr/\swith ESMTP\s/, "swaks, $name: its protocol in the trace header";
    }
}

# --- smtplib

my $python = <<'PYTHON';
import json, smtplib, sys
todo = json.loads(sys.stdin.read())
out = []
connect = smtplib.LMTP if todo.get("lmtp") else smtplib.SMTP
client = connect(todo["host"], todo["port"], "client.test", timeout=60)
for m in todo["messages"]:
    try:
        with open(m["file"], "rb") as f:
            refused = client.sendmail(m["from"], m["to"], f.read(), mail_options=m.get("options", []))
        out.append({"refused": {a: r[0] for a, r in refused.items()}})
    except smtplib.SMTPRecipientsRefused as e:
        out.append({"none": {a: [r[0], r[1].decode()] for a, r in e.recipients.items()}})
    except smtplib.SMTPResponseException as e:
        out.append({"code": e.smtp_code, "text": e.smtp_error.decode(), "kind": type(e).__name__})
out.append({"quit": client.quit()[0]})
print(json.dumps(out))
PYTHON
my $has_python = Petrel::have('python3') && (Petrel::command('', 'python3', '-c', 'import smtplib'))[0] == 0;

# Runs it; returns what it heard for each message.
sub smtplib {
    my (%todo) = @_;
    my ($code, $text) = Petrel::command(encode_json(\%todo), 'python3', '-c', $python);
    my $heard = $code == 0 ? eval { decode_json($text) } : undef;
    diag $text unless $heard;
    return $heard || [];
}

SKIP: {
    skip 'no python3', 1 unless $has_python;
    my %to = (host => '127.0.0.1', port => $petrel->{port});
    my $me = 'me@here.test';
    my $umlaut = JSON::PP->new->allow_nonref->decode('"j\u00f6rg@xn--bcher-kva.test"');
    my $umlaut_from = JSON::PP->new->allow_nonref->decode('"b\u00e4r@here.test"');
    my $heard = smtplib(%to, messages => [
        { from => $me, to => ['you@there.test'], file => "$scratch/plain" },
        { from => $me, to => [map { "user$_\@there.test" } 1 .. 20], file => "$scratch/long" },
        { from => $me, to => ['you@there.test'], file => "$scratch/eight", options => ['BODY=8BITMIME'] },
        { from => $umlaut_from, to => [$umlaut], file => "$scratch/plain", options => ['SMTPUTF8', 'BODY=8BITMIME'] },
        { from => $me, to => ['a@x.test', 'no two@y.test', 'c@z.test'], file => "$scratch/plain" },
        { from => '', to => ['you@there.test'], file => "$scratch/large" },
    ]);
    is_deeply $heard, [{ refused => {} }, { refused => {} }, { refused => {} }, { refused => {} },
        { refused => { 'no two@y.test' => 501 } }, { refused => {} }, { quit => 221 }], 'smtplib: hears what it should'
        or diag explain $heard;
    next_is('smtplib', $plain);
    next_is('smtplib, many recipients', $long, to => join ' ', map { "user$_\@there.test" } 1 .. 20);
    my $got = next_is('smtplib, 8BITMIME', $eight_bit);
    like $got->{parameters}, qr/\bBODY=8BITMIME\b/, 'smtplib, 8BITMIME: is passed on';
    $got = next_is('smtplib, SMTPUTF8', $plain, from => "b\xc3\xa4r\@here.test", to => "j\xc3\xb6rg\@xn--bcher-kva.test");
    like $got->{parameters}, qr/\bSMTPUTF8\b/, 'smtplib, SMTPUTF8: is passed on';
    like $got->{content}, qr/\swith UTF8SMTP\s/, 'smtplib, SMTPUTF8: in the trace header';
    next_is('smtplib, one of three refused', $plain, to => 'a@x.test c@z.test');
    cmp_ok length $large, '>', 2_000_000, 'two megabytes';
    next_is('smtplib, large, null sender', $large, from => '');

    $heard = smtplib(%to, port => $lmtp_port, lmtp => JSON::PP::true,
        messages => [map { +{ from => $me, to => ['you@there.test'], file => "$scratch/$_" } } 'plain', 'eight']);
    is_deeply $heard, [{ refused => {} }, { refused => {} }, { quit => 221 }], 'smtplib.LMTP: hears what it should'
        or diag explain $heard;
    next_is('smtplib.LMTP', $plain);
    next_is('smtplib.LMTP, another', $eight_bit);

    if ($has_ipv6) {
        $heard = smtplib(host => '::1', port => $petrel->listening('[::1]'),
            messages => [{ from => $me, to => ['you@there.test'], file => "$scratch/plain" }]);
        is_deeply $heard, [{ refused => {} }, { quit => 221 }], 'smtplib, IPv6: hears what it should' or diag explain $heard;
        $got = next_is('smtplib, IPv6', $plain);
        like $got->{content}, qr/\(\[IPv6:::1\]\)/, 'smtplib, IPv6: in the trace header';
    }
}

# --- curl

sub curl {
    my ($port, $file, @recipients) = @_;
    return Petrel::command('', Petrel::have('curl'), '-sSv', '--max-time', 60, "smtp://127.0.0.1:$port/client.test",
        '--mail-from', 'me@here.test', (map { ('--mail-rcpt', $_) } @recipients), '-T', "$scratch/$file");
}

my $has_curl = Petrel::have('curl') && (Petrel::command('', 'curl', '--version'))[1] =~ /^Protocols:.*\bsmtp\b/m;
SKIP: {
    skip 'no curl with smtp', 1 unless $has_curl;
    for my $case (['plain', $plain, 'you@there.test'], ['eight', $eight_bit, 'a@x.test', 'b@y.test'], ['large', $large, 'you@there.test']) {
        my ($file, $content, @to) = @$case;
        my ($code, $text) = curl($petrel->{port}, $file, @to);
        is $code, 0, "curl, $file: is content" or diag $text;
        next_is("curl, $file", $content, to => "@to");
    }
}

# --- msmtp

sub msmtp {
    my ($port, $file, @arguments) = @_;
    return Petrel::command(Petrel::slurp("$scratch/$file"), Petrel::have('msmtp'), '--host=127.0.0.1', "--port=$port", '--timeout=60',
        '--domain=client.test', '--from=me@here.test', @arguments);
}

SKIP: {
    skip 'no msmtp', 1 unless Petrel::have('msmtp');
    my ($code, $text) = msmtp($petrel->{port}, 'plain', 'you@there.test');
    is $code, 0, 'msmtp: is content' or diag $text;
    next_is('msmtp', $plain);
    ($code, $text) = msmtp($petrel->{port}, 'eight', 'a@x.test', 'b@y.test', 'c@z.test');
    is $code, 0, 'msmtp, many: is content' or diag $text;
    next_is('msmtp, many', $eight_bit, to => 'a@x.test b@y.test c@z.test');
    ($code, $text) = msmtp($lmtp_port, 'plain', '--protocol=lmtp', 'a@x.test', 'b@y.test');
    is $code, 0, 'msmtp, LMTP: is content' or diag $text;
    next_is('msmtp, LMTP', $plain, to => 'a@x.test b@y.test');
    Petrel::spit("$scratch/msmtprc", "defaults\ntimeout 60\ndomain client.test\naccount default\nhost 127.0.0.1\n"
            . "port $petrel->{port}\nfrom me\@here.test\n");
    chmod 0600, "$scratch/msmtprc";
    ($code, $text) = Petrel::command($large, Petrel::have('msmtp'), '-C', "$scratch/msmtprc", '-t', '-i');
    is $code, 0, 'msmtp, as sendmail -t: is content' or diag $text;
    next_is('msmtp, as sendmail -t', $large);
}

# --- Refusals

my %refusal = (
    'relay denied' => { file => 'plain', to => 'you@there.test', code => 554, enhanced => '5.7.1' },
    'unknown user' => { file => 'plain', to => 'nobody@petrel.test', code => 550, enhanced => '5.1.1' },
    'too large' => { file => 'large', to => 'anna@petrel.test', code => 552, enhanced => '5.3.4' },
);
my %refused = (
    swaks => sub {
        my ($file, $to) = @_;
        my ($code, $text) = swaks('--server', "127.0.0.1:$strict->{port}", '--to', $to, '--data', "\@$scratch/$file");
        return ($code, $text =~ /^<\*\* (\d{3}) (\S+)/m);
    },
    smtplib => sub {
        my ($file, $to) = @_;
        my $heard = smtplib(host => '127.0.0.1', port => $strict->{port},
            messages => [{ from => 'me@here.test', to => [$to], file => "$scratch/$file" }])->[0];
        return (1, $heard->{code}, $heard->{text} =~ /^(\S+)/) if $heard->{code};
        my $reply = ($heard->{none} || {})->{$to} or return 0;
        return (1, $reply->[0], $reply->[1] =~ /^(\S+)/);
    },
    curl => sub {
        my ($file, $to) = @_;
        my ($code, $text) = curl($strict->{port}, $file, $to);
        return ($code, $text =~ /^< (5\d\d) (\S+)/m);
    },
    msmtp => sub {
        my ($file, $to) = @_;
        my ($code, $text) = msmtp($strict->{port}, $file, $to);
        return ($code, $text =~ /server message: (\d{3}) (\S+)/);
    },
);
for my $client (sort keys %refused) {
    my $there = $client eq 'smtplib' ? $has_python : $client eq 'curl' ? $has_curl : Petrel::have($client);
SKIP: {
        skip "no $client", 1 unless $there;
        for my $why (sort keys %refusal) {
            my %case = %{ $refusal{$why} };
            my ($exit, $code, $enhanced) = $refused{$client}->($case{file}, $case{to});
            isnt $exit, 0, "$client, $why: fails";
            is $code, $case{code}, "$client, $why: the code";
            is $enhanced, $case{enhanced}, "$client, $why: the enhanced code";
            ok $strict->wait_log(qr/refused=$case{code} \Q$case{enhanced}\E, client=\[127\.0\.0\.1\]/), "$client, $why: is logged"
                or diag $strict->log;
        }
    }
}

# A stranger may still write to those who live here.
like $strict->send_mail('me@here.test', 'anna@petrel.test', $plain =~ s/\r\n\z//r), qr/^250 2\.0\.0 /, 'a mailbox here takes mail from anywhere';
ok $strict->wait_log(qr/to=<anna\@petrel\.test>.* status=sent/), 'and has it';
my ($mail) = glob "$scratch/mail/anna/new/*";
(my $unix = $plain) =~ s/\r\n/\n/g;
(my $kept = Petrel::slurp($mail // '')) =~ s/\r\n/\n/g;
like $kept, qr/\AReturn-Path: <me\@here\.test>\nDelivered-To: anna\@petrel\.test\nReceived: [^\n]*\n(?:\t[^\n]*\n)*\Q$unix\E\z/,
    'with its three header lines';
is $strict->queued, 0, 'nothing of what was refused is queued';

# --- Mailboxes are made for the system's users, not for every typing error

{
    mkdir "$scratch/users" or die;
    mkdir "$scratch/users/Old" or die;
    my $home = Petrel->new(relay_from => '192.0.2.0/24', local => "maildir:$scratch/users/%u?create=yes")->start;
    my @replies = $home->dialogue('EHLO c.test', 'MAIL FROM:<a@b.test>', map { "RCPT TO:<$_\@petrel.test>" } qw(Root rooot old Old postmaster ../root));
    is join(' ', map { substr $_, 0, 9 } @replies[3 .. 8]), '250 2.1.5 550 5.1.1 550 5.1.1 250 2.1.5 250 2.1.5 550 5.1.1', 'create=yes: who exists';
    is join(' ', map { $_->[0] } grep { $home->send_mail('a@b.test', "$_->[0]\@petrel.test", "Subject: x\n\nx\n") !~ /^250/ } ['ROOT'], ['root'], ['Old']), '', 'create=yes: they get mail';
    my ($code, $said) = Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $home->conf, 'sendmail', '-f', 'root@petrel.test', 'rooot@petrel.test');
    is $code, 0, 'create=yes: sendmail(1) takes a typing error';
    ok $home->wait_log(qr/to=<rooot\@petrel\.test>.*dsn=5\.1\.1, status=bounced/), 'create=yes: it goes back';
    ok $home->wait_empty, 'create=yes: nothing is left';
    is join(' ', sort map { m{/users/(.*)/new/}g } glob "$scratch/users/*/new/*"), 'Old root root root', 'create=yes: in their mailboxes';
    opendir my $all, "$scratch/users" or die;
    is join(' ', sort grep { !/^\./ } readdir $all), 'Old root', 'create=yes: and there are no others';
    is $home->stop, 0, 'create=yes: Petrel ends well';
}

# --- The end

ok $petrel->wait_empty, 'the queue is empty';
is scalar(Petrel::arrived($sink)), $arrived, 'and nothing came twice';
unlike $petrel->log, qr/error|status=(?:bounced|deferred)/, 'without any trouble';
is $petrel->stop, 0, 'and it stops in good order';
is $strict->stop, 0, 'as does the strict one';

done_testing;
