#!/usr/bin/perl
# Aliases and LMTP (RFC 2033): every recipient has its answer after the dot. One that is refused, has too many members or
# would loop answers for itself; the others lose nothing, and nobody gets a message twice.
use lib 't/e2e';
use E2E;

my $dir = tempdir('alias_lmtp-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $lmtp = Petrel::free_port();
mkdir "$dir/mail";
mkdir "$dir/mail/bob";
my $aliases = Petrel::spit("$dir/aliases", join '', "ann: ann\@home.test\n", "staff: ann\@home.test, eve\@home.test\n", "team: eve\@home.test, bob\n", "dead: nobody1, nobody2\n",
    "both: ann, team\n", (map { my $l = $_; "l$l: " . join(', ', map { "m$l-$_\@m.test" } 1 .. 999) . "\n" } 1 .. 51));
my $port = Petrel::free_port();
my $petrel = Petrel->new(hostname => 'mx.here.test', local_domains => 'here.test', local => "maildir:$dir/mail/%u", aliases => $aliases, recipient_limit => 50000,
    listen => "127.0.0.1:$port, 127.0.0.1:$lmtp?lmtp", routes => "m.test discard\n* smtp://127.0.0.1:$sink->{port}");
$petrel->{port} = $port;
$petrel->start;

# The replies to RCPTs, and those after the dot, one for each RCPT that was accepted.
sub lmtp {
    my ($to, $content, $bdat) = @_;
    my $client = Client->connect($lmtp) or die 'nobody listens';
    $client->reply =~ /^220/ && $client->say('LHLO client.test') =~ /^250/ or die 'no greeting';
    $client->say('MAIL FROM:<author@far.test>') =~ /^250/ or die 'MAIL';
    my @rcpt = map { $client->say("RCPT TO:<$_>") =~ /^(\d+ \S+)/ ? $1 : '' } @$to;
    my $accepted = grep { /^250/ } @rcpt;
    my @after;
    if ($bdat) {
        $client->put('BDAT ' . length($content) . " LAST\r\n$content");
        @after = map { $client->reply } 1 .. $accepted;
    } else {
        my $reply = $client->say('DATA');
        if ($reply =~ /^354/) { $client->put("$content.\r\n"); @after = map { $client->reply } 1 .. $accepted } else { @after = ($reply) }
    }
    my $last = $client->say('NOOP');
    $client->quit;
    return [\@rcpt, [map { /^(\d+ \S+)/ ? $1 : '' } @after], $last =~ /^250/ ? 1 : 0];
}
sub have { my ($subject, $to) = @_; return scalar grep { $_->{data} =~ /^Subject: \Q$subject\E\r$/m } $sink->for_address($to) }
my $ok = '250 2.0.0';

is_deeply lmtp(['staff@here.test', 'dead@here.test', 'bob@here.test', 'nobody@here.test', 'team@here.test'], "Subject: one\r\n\r\nx\r\n"),
    [['250 2.1.5', '550 5.1.1', '250 2.1.5', '550 5.1.1', '250 2.1.5'], [$ok, $ok, $ok], 1], 'who is refused is refused alone; others have an answer each';
ok $petrel->wait_empty, 'delivered' or diag $petrel->log;
is have('one', $_), 1, "$_: once" for 'ann@home.test', 'eve@home.test';
is scalar(() = glob "$dir/mail/bob/new/*"), 1, 'bob@here.test: once';
is_deeply lmtp(['staff@here.test', 'staff@here.test', 'Staff@HERE.test'], "Subject: again\r\n\r\nx\r\n"), [[('250 2.1.5') x 3], [$ok, $ok, $ok], 1], 'repeated: an answer for each RCPT';
is_deeply lmtp(['dead@here.test'], "Subject: none\r\n\r\nx\r\n"), [['550 5.1.1'], ['503 5.5.1'], 1], 'nobody is left';

# Too many: the alias that does not fit answers at RCPT, and can be given again.
my $many = lmtp([map { "l$_\@here.test" } 1 .. 51], "Subject: many\r\n\r\nx\r\n");
is scalar(grep { $_ eq '250 2.1.5' } @{ $many->[0] }), 50, 'fifty lists of 999';
is $many->[0][50], '452 4.5.3', 'the next does not fit';
is_deeply $many->[1], [($ok) x 50], 'fifty answers';
is_deeply lmtp(['l51@here.test'], "Subject: rest\r\n\r\nx\r\n"), [['250 2.1.5'], [$ok], 1], 'alone it does';

# A loop: who loops answers for itself. Members that it shares with another alias get the message, once, by that.
my $loop = "Delivered-To: staff\@here.test\r\nSubject: loop\r\n\r\nx\r\n";
for my $bdat (0, 1) {
    my $name = $bdat ? 'BDAT' : 'DATA';
    (my $content = $loop) =~ s/loop\r/loop $name\r/;
    is_deeply lmtp(['bob@here.test', 'staff@here.test', 'team@here.test', 'STAFF@here.test'], $content, $bdat),
        [[('250 2.1.5') x 4], ['451 4.3.0', '554 5.4.6', '451 4.3.0', '554 5.4.6'], 1], "$name: a loop is refused, the others wait";
    is_deeply lmtp(['bob@here.test', 'team@here.test'], $content, $bdat), [[('250 2.1.5') x 2], [$ok, $ok], 1], "$name: the client gives them again";
    ok Petrel::wait_for(sub { have("loop $name", 'eve@home.test') }), "$name: and they get it" or diag $petrel->log;
    is have("loop $name", 'ann@home.test'), 0, "$name: those behind the loop do not";
}
is_deeply lmtp(['staff@here.test'], $loop), [['250 2.1.5'], ['554 5.4.6'], 1], 'alone';
is_deeply lmtp(['team@here.test', 'bob@here.test'], $loop), [[('250 2.1.5') x 2], [$ok, $ok], 1], 'an alias that has not forwarded it';
is_deeply lmtp(['staff@here.test', 'bob@here.test'], ("Received: x\r\n" x 101) . "Subject: hops\r\n\r\nx\r\n"), [[('250 2.1.5') x 2], [('554 5.4.6') x 2], 1], 'too many hops: for all';
ok $petrel->wait_log(qr/refused=554 5\.4\.6, .*the alias has forwarded this message before/), 'the loop is logged' or diag $petrel->log;
ok $petrel->wait_empty(120), 'all is delivered';
is have('loop DATA', 'eve@home.test'), 1, 'nobody twice';
is $petrel->stop, 0, 'it ends well';
done_testing;
