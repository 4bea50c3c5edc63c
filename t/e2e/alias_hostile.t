#!/usr/bin/perl
# Odd names of aliases, asked for by odd senders: quoted, long, beyond ASCII, literals, wildcards, lists of nobody, owners of
# owners, and addresses of SRS of every broken form, by SMTP and by sendmail(1). Each gets a reply, the daemon goes on, and all
# that was accepted ends.
use lib 't/e2e';
use E2E;

my $dir = tempdir('alias_hostile-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $long = 'x' x 64;
my $far = join('.', ('d' x 60) x 3) . '.test';
Petrel::spit("$dir/members", "a\@far.test\n$long\n\"q q\"\@far.test\nu\@[127.0.0.1]\n\\self\n");
Petrel::spit("$dir/nobody", "\n# nobody\n");
Petrel::spit("$dir/aliases", <<"END");
"a b": ann\@far.test
"a+b": ann\@far.test
j\xc3\xbcrgen: j\xc3\xbcrgen\@far.test
$long: $long, y\@far.test
$long\@here.test: $long\@$far
long: $long\@$far
list: :include:$dir/members, long, :include:$dir/nobody
empty: :include:$dir/nobody, :include:$dir/nobody
owner-list: owner-list
owner-empty: empty
owner-owner-list: nobody
x\@[127.0.0.1]: ann\@far.test
\@other.test: empty
\@gone.test: list
root: \\root
postmaster: empty
abuse: list
END
my $petrel = Petrel->new(
    hostname => 'here.test', local_domains => 'here.test, other.test', local => "maildir:$dir/mail/%u?create=yes",
    routes => "* smtp://127.0.0.1:$sink->{port}", aliases => "$dir/aliases", root => 'ann@far.test')->start;

my @locals = ('"a b"', '"a+b"', 'a+b', "j\xc3\xbcrgen", $long, 'long', 'list', 'LIST+tag', 'empty', 'empty+x', 'owner-list',
    'owner-owner-list', 'owner-empty', 'x', 'root', 'ROOT+x', 'postmaster', 'abuse', '""', '"\\""', '+', '+x', '"+"',
    'SRS0=AAAAAA=AA=x=y', 'SRS1=AAAAAA=x==y', 'SRS0=', 'SRS1==', 'SRS0=AAAAAA', '"SRS0=A B"', 'SRS0-' . 'A' x 50, 'SRS1=AAAAAA=' . 'B' x 200);
my @to = map { my $domain = $_; map { "$_\@$domain" } @locals } 'here.test', 'other.test', 'gone.test', 'HERE.TEST', 'far.test', '[127.0.0.1]', $far;
push @to, 'postmaster', 'Postmaster', '"postmaster"', 'postmaster+x';
my @from = ('a@x.test', '', 'ann@here.test', 'SRS0=AAAAAA=AA=x=y@far.test', 'SRS1=AAAAAA=far.test==rest@far.test', 'SRS1=@far.test', 'a' x 64 . "\@$far",
    '"q q"@far.test', "j\xc3\xbc\@far.test");

srand 17;
for my $from (@from) {
    my ($accepted, $odd, $client) = (0, '');
    for my $to (@to) {
        if (!$client) {
            $client = Client->greeted($petrel->{port}) or last;
            $client->say('EHLO x');
            $client->say("MAIL FROM:<$from> SMTPUTF8") =~ /^250/ or last;
        }
        my $reply = $client->say("RCPT TO:<$to>") // '';
        $accepted++ if $reply =~ /^250/;
        $odd .= "$to: $reply\n" if $reply !~ /^(?:250|45\d|5\d\d|421) /;
        undef $client if $reply !~ /^[25]|^45/;
    }
    is $odd, '', "from=<$from>: each recipient gets a reply" or diag $petrel->log;
    ok $client && $accepted > 0, '  and some are accepted';
    like $client->say('DATA') // '', qr/^354/, '  with their message';
    $client->put("Subject: x\r\n\r\nx\r\n.\r\n");
    like $client->reply // '', qr/^250/, '  which is queued';
    $client->close;
    Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-f', $from, $_) for map { $to[rand @to] } 1 .. 12;
}
ok kill(0, $petrel->{pid}), 'the daemon is there';
ok $petrel->wait_empty(120), 'all of it ends' or diag $petrel->run('queue', 'ls');
unlike $petrel->log, qr/Assertion|Sanitizer|corrupt/, 'nothing went wrong';
is $petrel->stop, 0, 'it ends well';
done_testing;
