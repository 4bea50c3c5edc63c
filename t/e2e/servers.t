#!/usr/bin/perl
# Servers that we did not write - Postfix's smtp-sink, with all its faults, and Dovecot - get mail from Petrel.
use lib 't/e2e';
use E2E;
use Dovecot;
use MIME::Base64;
use MIME::QuotedPrint;

my $scratch = tempdir('servers-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $sink = Petrel::sink(); # gets the bounces
my $header = "From: Me <me\@here.test>\nTo: you\@there.test\nSubject: hi\nDate: Sat, 21 Nov 2026 03:00:00 +0000\n"
    . "Message-ID: <1\@here.test>\n\n";

# --- Postfix's smtp-sink

my $postfix = $ENV{POSTFIX_ROOT} || '/opt/petrel-test-postfix';

# Starts one; returns its port.
sub smtp_sink {
    my ($name, @options) = @_;
    my $port = Petrel::free_port();
    my $directory = "$scratch/$name";
    mkdir $directory or die "$directory: $!";
    chmod 0777, $directory;
    Petrel::spawn("$scratch/$name.log", '/usr/bin/env', "LD_LIBRARY_PATH=$postfix/usr/lib/postfix", "$postfix/usr/sbin/smtp-sink",
        ($> == 0 ? ('-u', 'nobody') : ()), '-d', "$directory/", @options, "127.0.0.1:$port", 100);
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") })
        or die "no smtp-sink: " . Petrel::slurp("$scratch/$name.log");
    return $port;
}

# The mail that one has been given, as files.
sub dumped { my $name = shift; return map { Petrel::slurp($_) } glob "$scratch/$name/*" }

# name => [options, what becomes of a message, what is logged about it].
my %faults = (
    plain => [[], 'sent', qr/dsn=2\.\S+ .*\(250 2\.0\.0 Ok/],
    'no-esmtp' => [['-e'], 'sent'],
    'pix' => [['-P'], 'sent'],
    'no-8bitmime' => [['-8'], 'sent'],
    'no-pipelining' => [['-p'], 'sent'],
    'no-enhanced' => [['-E'], 'sent', qr/dsn=2\.0\.0, .*\(250 /],
    'no-dsn' => [['-N'], 'sent'],
    'nothing' => [['-8aCEeFNp'], 'sent'],
    'slow' => [['-p', '-W', 'RCPT:1', '-w', '1'], 'sent'], # with pipelining its delays mix up the replies
    'lmtp' => [['-L'], 'sent', qr/ lmtp: /],
    'lmtp-no-pipelining' => [['-L', '-p'], 'sent', qr/ lmtp: /],
    'lmtp-refuse-rcpt' => [['-L', '-f', 'RCPT'], 'bounced', qr/ lmtp: .*RCPT TO/],
    'lmtp-busy-dot' => [['-L', '-r', '.'], 'deferred', qr/ lmtp: .*end of DATA/],

    'hang-up-connect' => [['-q', 'CONNECT'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-ehlo' => [['-q', 'EHLO'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-mail' => [['-q', 'MAIL'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-rcpt' => [['-q', 'RCPT'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-data' => [['-q', 'DATA'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-dot' => [['-q', '.'], 'deferred', qr/dsn=4\.4\.2, .*lost connection/],
    'hang-up-quit' => [['-q', 'QUIT'], 'sent'],
    'hang-up-rset' => [['-q', 'RSET'], 'sent'],

    'shut-connect' => [['-Q', 'CONNECT'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-ehlo' => [['-Q', 'EHLO'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-mail' => [['-Q', 'MAIL'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-rcpt' => [['-Q', 'RCPT'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-data' => [['-Q', 'DATA'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-dot' => [['-Q', '.'], 'deferred', qr/dsn=4\.\S+, .* 421 /],
    'shut-quit' => [['-Q', 'QUIT'], 'sent'],

    'busy-connect' => [['-r', 'CONNECT'], 'deferred', qr/dsn=4\.\S+, .* 450 4\.3\.0 /],
    'busy-ehlo' => [['-r', 'EHLO'], 'deferred', qr/dsn=4\.\S+, .* 450 4\.3\.0 /],
    'busy-mail' => [['-r', 'MAIL'], 'deferred', qr/dsn=4\.3\.0, .* 450 4\.3\.0 .*MAIL FROM/],
    'busy-rcpt' => [['-r', 'RCPT'], 'deferred', qr/dsn=4\.3\.0, .* 450 4\.3\.0 .*RCPT TO/],
    'busy-data' => [['-r', 'DATA'], 'deferred', qr/dsn=4\.3\.0, .* 450 4\.3\.0 .*DATA/],
    'busy-dot' => [['-r', '.'], 'deferred', qr/dsn=4\.3\.0, .* 450 4\.3\.0 .*end of DATA/],
    'full' => [['-b', '452 4.2.2 Her mailbox is full', '-r', 'RCPT'], 'deferred', qr/dsn=4\.2\.2, .* 452 4\.2\.2 Her mailbox is full/],

    'refuse-connect' => [['-f', 'CONNECT'], 'deferred', qr/dsn=4\.\S+, .* 500 5\.3\.0 /],
    'refuse-ehlo' => [['-f', 'EHLO'], 'sent'],
    'refuse-both' => [['-f', 'EHLO,HELO'], 'deferred', qr/dsn=4\.\S+, .* 500 5\.3\.0 /],
    'refuse-mail' => [['-f', 'MAIL'], 'bounced', qr/dsn=5\.3\.0, .* 500 5\.3\.0 .*MAIL FROM/],
    'refuse-rcpt' => [['-f', 'RCPT'], 'bounced', qr/dsn=5\.3\.0, .* 500 5\.3\.0 .*RCPT TO/],
    'refuse-data' => [['-f', 'DATA'], 'bounced', qr/dsn=5\.3\.0, .* 500 5\.3\.0 .*DATA/],
    'refuse-dot' => [['-f', '.'], 'bounced', qr/dsn=5\.3\.0, .* 500 5\.3\.0 .*end of DATA/],
    'moved' => [['-B', '551 5.1.6 She lives elsewhere', '-f', 'RCPT'], 'bounced', qr/dsn=5\.1\.6, .* 551 5\.1\.6 She lives elsewhere/],
);

# Hosts without 8BITMIME get it converted: as it was before.
sub original {
    my ($head, $body) = split /\n\n/, shift, 2;
    my ($coding) = $head =~ /^Content-Transfer-Encoding: (\S+)$/mi or return "$head\n\n$body";
    $body = $coding eq 'base64' ? decode_base64($body) : $coding eq 'quoted-printable' ? decode_qp($body) : $body;
    return "$head\n\n" . $body =~ s/\r//gr;
}

SKIP: {
    skip "no smtp-sink below $postfix", 1 unless -x "$postfix/usr/sbin/smtp-sink";
    my $routes = "here.test smtp://127.0.0.1:$sink->{port}\n";
    for my $name (sort keys %faults) {
        my $port = smtp_sink($name, @{ $faults{$name}[0] });
        $routes .= ($name =~ /^lmtp/ ? "$name.test lmtp" : "$name.test smtp") . "://127.0.0.1:$port\n";
    }
    my $petrel = Petrel->new(routes => $routes)->start;
    my (%id, %expected);
    for my $name (sort keys %faults) {
        my $reply = $petrel->send_mail('me@here.test', ["one\@$name.test", "two\@$name.test"], "${header}to $name\n.\n..\n\xe4\xf6\n.");
        ($id{$name}) = $reply =~ /^250 2\.0\.0 Ok: queued as (\S+)/ or fail("$name: is accepted: $reply");
        $expected{ $faults{$name}[1] }++;
    }
    for my $name (sort keys %faults) {
        my (undef, $verdict, $text) = @{ $faults{$name} };
        for my $to ("one\@$name.test", "two\@$name.test") {
            my $found = $petrel->wait_log(qr/ $id{$name}: to=<\Q$to\E>.*status=\w+ \(/);
            my ($line) = $petrel->log =~ /^(.* $id{$name}: to=<\Q$to\E>.*)$/m;
            # Many fail in a minute: it may name the line that has host and reason.
            ($line) = $petrel->log =~ /^(.* $1: to=.*relay=.*)$/m if $line =~ /status=$verdict \(for the reason of (\S+)\)/;
            like $line, qr/relay=127\.0\.0\.1\[127\.0\.0\.1\]:\d+, .*status=$verdict \(/, "$name: the verdict for $to";
            like $line, $text, "$name: its text" if $text;
        }
    }
    ok Petrel::wait_arrived($sink, $expected{bounced}), 'the bounces arrive';
    ok Petrel::wait_for(sub { $petrel->queued == $expected{deferred} }), 'what is deferred stays' or diag $petrel->queued;
    my ($code, $listing) = $petrel->run('queue', 'ls', '--json');
    my %waits = map { $_->{queue_id} => $_ } map { decode_json($_) } split /\n/, $listing;
    my @bounces = Petrel::arrived($sink);
    for my $name (sort keys %faults) {
        my ($options, $verdict, $text) = @{ $faults{$name} };
        my $waiting = $waits{ $id{$name} };
        is defined $waiting ? $waiting->{queue_name} : 'gone', $verdict eq 'deferred' ? 'deferred' : 'gone', "$name: in the queue";
        if ($waiting) {
            my ($reason) = $petrel->log =~ / $id{$name}: to=<one\@.*?\((.*)\)$/m;
            is $_->{delay_reason}, $reason, "$name: why $_->{address} waits" for @{ $waiting->{recipients} };
        }
        my @dumps = dumped($name);
        my @whole = grep { original($_) =~ /\n\nto $name\n\.\n\.\.\n\xe4\xf6\n\.\n/ } @dumps;
        is scalar @whole, 1, "$name: has it, once" or diag "@dumps" if $verdict eq 'sent';
        my @about = grep { $_->{content} =~ /\@\Q$name\E\.test\r$/m } @bounces;
        is scalar @about, $verdict eq 'bounced' ? 1 : 0, "$name: bounces";
        next unless @about;
        my $bounce = $about[0]{content};
        is $about[0]{from}, '', "$name: the bounce has no sender";
        is "@{ $about[0]{to} }", 'me@here.test', "$name: and goes to the sender";
        is scalar(() = $bounce =~ /^Final-Recipient: rfc822; ?(?:one|two)\@\Q$name\E\.test\r$/mg), 2, "$name: is about both";
        is scalar(() = $bounce =~ /^Action: failed\r$/mg), 2, "$name: that failed";
        my ($said) = $name eq 'moved' ? '551 5.1.6 She lives elsewhere' : '500 5.3.0';
        like $bounce, qr/^Diagnostic-Code: smtp; .*\Q$said\E/m, "$name: with what the server said";
        like $bounce, qr/^Status: \Q@{[ $said =~ m{ (\S+)} ]}\E\r$/m, "$name: and its code";
        like $bounce, qr/^Subject: hi\r$/m, "$name: and the header";
    }
    is_deeply [map { /^X-Client-Proto: (\S+)/m } dumped('plain')], ['ESMTP'], 'plain: in ESMTP';
    is_deeply [map { /^X-Rcpt-Args: (\S+)/mg } dumped('plain')], ['<one@plain.test>', '<two@plain.test>'], 'plain: for both at once';
    is_deeply [map { /^X-Client-Proto: (\S+)/m } dumped($_)], ['SMTP'], "$_: in SMTP" for 'no-esmtp', 'pix', 'nothing', 'refuse-ehlo';
    is_deeply [map { /^X-Client-Proto: (\S+)/m } dumped('lmtp')], ['LMTP'], 'lmtp: in LMTP';
    is $petrel->stop, 0, 'it stops in good order';
}

# --- Dovecot

SKIP: {
    my $missing = Dovecot::missing();
    skip $missing, 1 if $missing;
    mkdir "$scratch/dovecot" or die;
    my $dovecot = Dovecot->start("$scratch/dovecot", map { ("$_\@dove.test", "$_\@nest.test") } qw(anna bob carl));
    my $petrel = Petrel->new(
        local_domains => 'dove.test nest.test',
        routes => "dove.test lmtp://unix:$dovecot->{socket}\nnest.test lmtp://127.0.0.1:$dovecot->{port}\n"
            . "here.test smtp://127.0.0.1:$sink->{port}",
    )->start;
    my $before = Petrel::arrived($sink);
    for my $domain (qw(dove.test nest.test)) {
        my $relay = $domain eq 'dove.test' ? qr/\Q$dovecot->{socket}\E\S*/ : qr/127\.0\.0\.1\[127\.0\.0\.1\]:$dovecot->{port}/;
        my $body = "for $domain\n.\n..dots\n\n\xfc\n" . 'x' x 998 . "\nend";
        my ($id) = $petrel->send_mail('me@here.test', [map { "$_\@$domain" } qw(anna ghost bob ghoul carl)], "$header$body") =~ /queued as (\S+)/;
        ok $id, "Dovecot, $domain: is accepted";
        for my $user (qw(anna bob carl)) {
            ok $petrel->wait_log(qr/ lmtp: $id: to=<$user\@$domain>, relay=$relay, .*dsn=2\.0\.0, status=sent \(250 2\.0\.0 <$user\@$domain> \S+ Saved\)/),
                "Dovecot, $domain: $user gets it" or diag $petrel->log;
            my @mail = $dovecot->mail("$user\@$domain");
            is scalar @mail, 1, "Dovecot, $domain: once";
            $mail[0] =~ s/\r\n/\n/g;
            like $mail[0], qr/^Return-Path: <me\@here\.test>\n/m, "Dovecot, $domain: $user, the sender";
            like $mail[0], qr/^Received: from client\.test \(\[127\.0\.0\.1\]\)/m, "Dovecot, $domain: $user, the trace header";
            like $mail[0], qr/\n\Q$header$body\E\n\z/, "Dovecot, $domain: $user, the message";
        }
        for my $user (qw(ghost ghoul)) {
            ok $petrel->wait_log(qr/ lmtp: $id: to=<$user\@$domain>, relay=$relay, .*dsn=5\.1\.1, status=bounced \(.*User doesn't exist: $user\@$domain/),
                "Dovecot, $domain: $user is unknown" or diag $petrel->log;
        }
        my $bounce = Petrel::wait_arrived($sink, ++$before)->{content};
        is_deeply [$bounce =~ /^Final-Recipient: rfc822; ?(\S+)\r$/mg], ["ghost\@$domain", "ghoul\@$domain"], "Dovecot, $domain: the bounce is about both";
        like $bounce, qr/^Status: 5\.1\.1\r$/m, "Dovecot, $domain: their status";
        (my $flat = $bounce) =~ s/\r\n[ \t]+/ /g;
        like $flat, qr/User doesn't exist: $_\@$domain/, "Dovecot, $domain: with Dovecot's text" for qw(ghost ghoul);
    }
    # Over one connection, one after the other, while there is mail.
    my @ids = map { $petrel->send_mail('me@here.test', 'anna@nest.test', "${header}number $_") =~ /queued as (\S+)/ } 1 .. 10;
    is scalar @ids, 10, 'Dovecot: ten are accepted';
    ok $petrel->wait_log(qr/$_: to=<anna\@nest\.test>.*status=sent/), "Dovecot: $_ is sent" for @ids;
    is_deeply [sort { $a <=> $b } map { /^number (\d+)/m } $dovecot->mail('anna@nest.test')], [1 .. 10], 'Dovecot: and all are there, once';

    $dovecot->stop;
    my ($id) = $petrel->send_mail('me@here.test', ['anna@dove.test', 'anna@nest.test'], "${header}is anybody there?") =~ /queued as (\S+)/;
    ok $petrel->wait_log(qr/$id: to=<anna\@$_>.*dsn=4\.4\.[12], status=deferred/), "Dovecot is gone: mail for $_ waits"
        or diag $petrel->log for qw(dove.test nest.test);
    my (undef, $listing) = $petrel->run('queue', 'ls', '--json');
    my $waiting = decode_json($listing);
    is $waiting->{queue_id}, $id, 'and is the only one in the queue';
    is $waiting->{queue_name}, 'deferred', 'deferred';
    is $petrel->stop, 0, 'it stops in good order';
}

done_testing;
