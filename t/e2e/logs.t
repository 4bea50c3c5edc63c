#!/usr/bin/perl
# The log: a line for each outcome of a recipient, in three styles, for any input of clients and servers.
use lib 't/e2e';
use E2E;

my $scratch = tempdir('logs-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$scratch/anna" or die;
my $sink = Sink->start('--fail-rcpt', 'bad:550', '--fail-rcpt', 'later:450');
my $dead = Petrel::free_port();
my $data = "From: me\@here.test\r\nSubject: hi\r\nDate: Sat, 21 Nov 2026 03:00:00 +0000\r\nMessage-ID: <1\@here.test>\r\n\r\nx\r\n";
my $id = qr/[0-9A-HJKMNP-TV-Z]{10}-[0-9A-HJKMNP-TV-Z]{8}/;
my $time = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/;
# petrel(8), LOG
my $outcome = qr/($id): to=<([^<>]*|"(?:[^"\\]|\\.)*"@[^<>]*)>, relay=(\S+), delay=(\d+(?:\.\d+)?), delays=(\d[\d.]*(?:\/\d[\d.]*){3}), dsn=([245]\.\d{1,3}\.\d{1,3}), status=(sent|deferred|bounced|expired) \((.*)\)/;

# A server that takes everything and says odd things about it.
my $odd = "ok), status=bounced (\x1b[31m \xff \xe2\x80\xae <a>, to=<b>";
my $odd_server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die;
my $odd_pid = fork // die;
if ($odd_pid == 0) {
    $SIG{ALRM} = 'DEFAULT';
    alarm 300;
    while (my $client = $odd_server->accept) {
        print $client "220 odd\r\n";
        my $in_data = 0;
        while (my $line = <$client>) {
            $in_data = 0, print($client "250 2.0.0 $odd\r\n"), next if $in_data && $line eq ".\r\n";
            next if $in_data;
            $in_data = $line =~ /^DATA/i;
            print $client $in_data ? "354 go\r\n" : $line =~ /^EHLO/i ? "250 odd\r\n" : $line =~ /^QUIT/i ? "221 bye\r\n" : "250 2.0.0 ok\r\n";
        }
    }
    POSIX::_exit(0);
}
END { my $code = $?; if ($odd_pid) { kill 'KILL', $odd_pid; waitpid $odd_pid, 0 } $? = $code }

# The same events, in the style that is asked for; what is logged, line by line.
my %sent;
sub events {
    my $style = shift;
    my $petrel = Petrel->new(
        log_style => $style, smtp_connection_cache_time_limit => '0s',
        routes => join("\n", "dead.test smtp://127.0.0.1:$dead", "odd.test smtp://127.0.0.1:" . $odd_server->sockport,
            'gone.test discard', 'held.test hold', "box.test maildir:$scratch/%u", "* smtp://127.0.0.1:$sink->{port}"),
    )->start;
    my $client = Client->greeted($petrel->{port});
    my @to = ('good@live.test', 'bad@live.test', 'later@live.test', 'x@dead.test', 'o@odd.test', 'd@gone.test', 'anna@box.test',
        '"a, status=sent (b"@live.test', "j\xc3\xb6rg\@live.test");
    $sent{$style} = [];
    for my $to (@to) {
        my $reply = $client->send(from => 'me@here.test', to => $to, data => $data, mail_parameters => $to =~ /[^ -~]/ ? 'SMTPUTF8' : '');
        push @{ $sent{$style} }, $reply =~ /^250 2\.0\.0 Ok: queued as ($id)\r\n\z/ or fail("$to: $reply");
        # One after the other, so that the lines come in this order, the bounce before the next.
        my $line = $style eq 'json' ? qr/"to":"\Q@{[ $to =~ s{"}{\\"}gr ]}\E"/ : qr/to=<\Q$to\E>/;
        ok $petrel->wait_log($line), "$style: $to has its line" or diag $petrel->log;
        ok $petrel->wait_log(qr/sender (?:notified|non-delivery notification)/), 'and its bounce' if $to =~ /bad/;
        ok $petrel->wait_log(qr/to(?:=<|":")me\@here\.test/), 'which arrives' if $to =~ /bad/;
    }
    like $client->send(from => 'me@here.test', to => 'h@held.test', data => $data), qr/^250 /, 'one is held';
    ok $petrel->wait_log(qr/held by a route|placed on hold/), 'which has a line';
    # Clients may say what they want.
    $client->say($_) for "MAIL FROM:<a\@b>, to=<forged\@x>, status=sent (", "NOOP \x1b]0;title\x07\x9b", "X\xff\xfe", "\xc3\xb6\xe2\x80\xa8";
    $client->say("VRFY " . 'x' x 900);
    $client->close;
    $client = Client->connect($petrel->{port});
    $client->put("EHLO a\nMAIL FROM:<bare>\r\n");
    $client->rest;
    ok $petrel->wait_log(qr/521/), 'a bare LF has a line';
    is $petrel->stop, 0, "$style: stops";
    my $log = $petrel->log;
    like $log, qr/\n\z/, "$style: the last line is whole";
    unlike $log, qr/[^\n -~\x80-\xff]/, "$style: no control character";
    unlike $log, qr/\xe2\x80[\xa8-\xaf]/, "$style: no separator, nothing that changes direction";
    ok utf8::decode(my $decoded = $log), "$style: is UTF-8";
    my @lines = split /\n/, $log;
    is scalar(grep { length > 8192 } @lines), 0, "$style: no endless line";
    return @lines;
}

# The events of each recipient, in order.
my @expected = (
    ['good@live.test', 'sent', '2.0.0', qr/^250 2\.0\.0 Ok: taken$/], ['bad@live.test', 'bounced', '5.0.0', qr/^host .* said: 550 5\.0\.0 Refused, as told \(in reply to RCPT TO command\)$/],
    ['me@here.test', 'sent', '2.0.0', qr/^250 /], ['later@live.test', 'deferred', '4.0.0', qr/said: 450 4\.0\.0 /],
    ['x@dead.test', 'deferred', '4.4.1', qr/Connection refused$/], ['o@odd.test', 'sent', '2.0.0', qr/^250 2\.0\.0 ok\)\\x2c status=bounced \(\?\[31m \\xff \\xe2\\x80\\xae <a>\\x2c to=<b>$/],
    ['d@gone.test', 'sent', '2.0.0', qr/^discarded$/], ['anna@box.test', 'sent', '2.0.0', qr/^delivered to maildir/],
    ['"a, status=sent (b"@live.test', 'sent', '2.0.0', qr/^250 /], ["j\xc3\xb6rg\@live.test", 'sent', '2.0.0', qr/^250 /],
);

# Checks outcomes: [id, to, relay, delay, delays, dsn, status, text], in order.
sub check_outcomes {
    my ($style, @got) = @_;
    is_deeply [map { [@$_[ 1, 6, 5 ]] } @got], [map { [@$_[ 0 .. 2 ]] } @expected], "$style: who, what and the code";
    for my $i (0 .. $#expected) {
        my $got = $got[$i] or next;
        my ($to, undef, undef, $text) = @{ $expected[$i] };
        like $got->[7], $text, "$style: $to: the text";
        my @delays = split m{/}, $got->[4];
        my $sum = 0;
        $sum += $_ for @delays;
        ok abs($sum - $got->[3]) < 0.05, "$style: $to: the delays make up the delay" or diag "$got->[3]: $got->[4]";
        like $got->[2], $to =~ /gone/ ? qr/^none$/ : $to =~ /box/ ? ($style eq 'postfix' ? qr/^virtual$/ : qr/^\Q$scratch\E\/anna$/) : qr/^127\.0\.0\.1\[127\.0\.0\.1\]:\d+$/, "$style: $to: the relay";
    }
    is_deeply [map { $_->[0] } grep { $_->[1] ne 'me@here.test' } @got], $sent{$style}, "$style: the ids that the client was told";
    return;
}

for my $style ('petrel') {
    my @lines = events($style);
    my $tag = qr/[a-z]+/;
    is_deeply [grep { !/^$time $tag: / } @lines], [], "$style: each line has time and tag";
    my @about = grep { /\bto=<[^>]*>, relay=/ } @lines;
    is_deeply [grep { !/^$time $tag: $outcome\z/ } @about], [], "$style: each outcome is as the grammar says";
    check_outcomes($style, map { [/$outcome\z/] } @about);
    is_deeply [map { m{ ([a-z]+): } } @about], ['smtp', 'smtp', 'smtp', 'smtp', 'smtp', 'smtp', 'queue', 'local', 'smtp', 'smtp'],
        "$style: and says who";
    is scalar(grep { /: $id: client=\[127\.0\.0\.1\], helo=client\.test, from=<me\@here\.test>, size=\d+, nrcpt=1, proto=(?:UTF8)?E?SMTP/ } @lines), 10,
        "$style: a line for each message that came in";
    my @refused = grep { /refused=/ } @lines;
    is_deeply [grep { !/^$time $tag: (?:$id: )?refused=[45]\d\d [45]\.\d+\.\d+, client=\[127\.0\.0\.1\]/ } @refused], [], "$style: each refusal has code and client";
    cmp_ok scalar @refused, '>=', 4, "$style: and a line";
    is scalar(grep { /(?:\A|[^x2c]) to=<forged/ } @refused), 0, "$style: a client cannot forge a field" or diag "@refused";
}

# Postfix's own grammar; t/e2e/log_tools.t gives it to the tools that read it.
{
    my @lines = events('postfix');
    my $pid = $lines[0] =~ m{\[(\d+)\]} && $1;
    my $plain = qr/[0-9A-HJKMNP-TV-Z]{18}/;
    is_deeply [grep { !m{^$time petrel postfix/[a-z]+\[$pid\]: } } @lines], [], 'postfix: time, host, and the tag of one process';
    my @about = grep { /\bto=<[^>]*>, relay=/ } @lines;
    (my $its_outcome = $outcome) =~ s/\Q$id\E/$plain/;
    $its_outcome =~ s/\|expired//;
    is_deeply [grep { !/\]: $its_outcome\z/ } @about], [], 'postfix: each outcome is as its grammar says';
    my @bare = map { tr/-//dr } @{ $sent{postfix} };
    $sent{postfix} = \@bare;
    check_outcomes('postfix', map { [/$its_outcome\z/] } @about);
    is_deeply [map { m{postfix/([a-z]+)} } @about], ['smtp', 'smtp', 'smtp', 'smtp', 'smtp', 'smtp', 'discard', 'virtual', 'smtp', 'smtp'], 'postfix: its programs';
    for my $one (@bare) {
        is_deeply [map { m{postfix/(\w+)\[\d+\]: $one: (client=|message-id=|from=)} ? "$1 $2" : () } @lines], ['smtpd client=', 'cleanup message-id=', 'qmgr from='],
            "postfix: $one comes in by three lines";
    }
    is scalar(grep { m{smtpd\[\d+\]: NOQUEUE: reject: [A-Z-]+ from localhost\[127\.0\.0\.1\]: [45]\d\d } } @lines), scalar(grep { /NOQUEUE/ } @lines), 'postfix: refusals';
    cmp_ok scalar(grep { /NOQUEUE/ } @lines), '>=', 4, 'postfix: each has its line';
}

my @objects = map { my $line = $_; eval { decode_json($line) } || do { fail("json: is no object: $line"); () } } events('json');
is_deeply [grep { ref $_ ne 'HASH' || ($_->{time} // '') !~ /^$time$/ || ($_->{level} // '') !~ /^(?:error|warning|info|debug)$/ || !$_->{program} } @objects], [],
    'json: each line is an object with time, level and program';
my @about = grep { exists $_->{to} } @objects;
check_outcomes('json', map {
    my $o = $_;
    my $to = $o->{to};
    utf8::encode($to);
    [$o->{id}, $to, @$o{qw(relay delay)}, join('/', @{ $o->{delays} }), @$o{qw(dsn status text)}]
} @about);
is scalar(grep { ($_->{text} // '') eq 'queued' && $_->{nrcpt} == 1 && $_->{client} eq '127.0.0.1' && $_->{from} eq 'me@here.test' && $_->{event} eq 'accepted' } @objects), 10, 'json: a line for each message that came in';

# Levels.
my $quiet = Petrel->new(log_level => 'error')->start;
$quiet->dialogue('NONSENSE', 'QUIT');
is $quiet->stop, 0, 'log_level = error: stops';
is $quiet->log, '', 'and has nothing to say';

done_testing;
