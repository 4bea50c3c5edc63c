#!/usr/bin/perl
# Clients under control: rates, late answers, strangers who lie, and proxies with the PROXY protocol before us.
use lib 't/e2e';
use E2E;
use Socket qw(inet_aton);
use Time::HiRes qw(sleep time);

my $sink = Sink->start;
my %to_sink = (routes => "* smtp://127.0.0.1:$sink->{port}");
my $mail = "Subject: x\r\n\r\nx\r\n";

sub message { my %change = @_; return (from => 'a@sender.test', to => 'b@normal.test', data => $mail, %change) }

# --- Rates: what passes, who waits, and for how long

my $petrel = Petrel->new(%to_sink, rate_exempt => '', client_session_rate => '20/h,burst=4',
    client_message_rate => '10/h,burst=2', server_recipient_rate => '6/h,burst=3')->start; # its start is one session
{
    my @client = map { Client->greeted($petrel->{port}) } 1 .. 3;
    is scalar(grep { defined } @client), 3, 'three may come';
    my $reply = Client->connect($petrel->{port})->reply;
    like $reply, qr/^421 4\.7\.0 too many connections from your address, try again in (?:1[67]\d|180) s\r\n/, 'a fourth waits for the rate';
    like $client[0]->send(message()), qr/^250/, 'a first message';
    like $client[1]->send(message()), qr/^250/, 'a second, in another session';
    like $client[2]->send(message()), qr/^450 4\.7\.1 too many messages from your address, try again in 3\d\d s/, 'a third has to wait';
    ok $petrel->wait_log(qr/refused="?450 4\.7\.1"?.* client=\[127\.0\.0\.1\].*too many messages from your address/), 'with reason and client in the log';
    $petrel->configure(client_message_rate => 'none');
    kill 'HUP', $petrel->{pid};
    ok $petrel->wait_log(qr/reload|settings/i), 'a reload';
    Petrel::wait_for(sub { my $r = $client[2]->say('MAIL FROM:<a@sender.test>'); $r =~ /^250/ });
    like $client[2]->say('RCPT TO:<b@normal.test>'), qr/^250/, 'the third recipient of all';
    like $client[2]->say('RCPT TO:<c@normal.test>'), qr/^450 4\.7\.1 too many recipients, try again in \d+ s/, 'a fourth is too much for all together';
    $_->close for @client;
}
$petrel->stop;

$petrel = Petrel->new(%to_sink, client_session_rate => '1/d', client_message_rate => '1/d')->start;
like +Client->greeted($petrel->{port})->send(message()), qr/^250/, 'the loopback is exempt' for 1 .. 3;
$petrel->stop;

for my $bad (['client_session_rate', 'lots'], ['rate_exempt', 'here'], ['proxy_from', '0.0.0.0/0'], ['greet_delay', '2h']) {
    my ($code, $said) = Petrel->new($bad->[0] => $bad->[1])->run('check');
    is $code, 78, "$bad->[0] = $bad->[1]";
    like $said, qr/\Q$bad->[0]\E: /, 'is a mistake that is told';
}
my ($code, $said) = Petrel->new(listen => '127.0.0.1:2525?proxy')->run('check');
ok $code == 78 && $said =~ /proxy_from: unset/, '?proxy without proxy_from, too';

# --- Errors are answered late

$petrel = Petrel->new(%to_sink, smtpd_soft_error_limit => 2, smtpd_hard_error_limit => 5, smtpd_error_sleep_time => '200ms', relay_from => '10.0.0.0/8',
    check_helo => 'yes', check_sender => 'yes')->start;
{
    my $client = Client->greeted($petrel->{port});
    $client->say('MAIL FROM:<a@sender.test>');
    my $began = time;
    like $client->say("RCPT TO:<guess$_\@other.test>"), qr/^554 5\.7\.1/, 'a guess' for 1 .. 2;
    $began = time;
    $client->put(join '', map { "RCPT TO:<guess$_\@other.test>\r\n" } 3 .. 5);
    like $client->reply, qr/^554 5\.7\.1/, 'a guess' for 3 .. 5;
    cmp_ok time - $began, '>=', 1.15, 'pipelined ones cost a delay each: 0.2 s, 0.4 s, 0.6 s';
    like $client->say('XXXX'), qr/^421 4\.7\.0 too many errors/, 'then it is over';
    is $client->rest, '', 'and closed';

    $client = Client->greeted($petrel->{port});
    like $client->say('EHLO petrel.test'), qr/^250/, 'a stranger takes our name';
    like $client->say('MAIL FROM:<a@sender.test>'), qr/^550 5\.7\.1 HELO names this host/, 'and is refused';
    $client->say('EHLO client.test');
    like $client->say('MAIL FROM:<a@pc>'), qr/^550 5\.1\.8/, 'a sender whom no reply finds';
    ok $petrel->wait_log(qr/the sender's domain is not fully qualified/), 'is in the log';
    $client->quit;
}
$petrel->stop;

# --- Proxies

my $secrets = "$petrel->{dir}/tls";
mkdir $secrets;
system('sh', 't/support/tls_certificates.sh', $secrets) == 0 or BAIL_OUT('no certificates');
my @port = map { Petrel::free_port() } 1 .. 4;
$petrel = Petrel->new(%to_sink, relay_from => '192.0.2.0/24', proxy_from => '127.0.0.1', client_session_limit => 2,
    tls_certificate => "$secrets/good.pem", tls_key => "$secrets/good.key");
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$port[0]?proxy, 127.0.0.1:$port[1]?proxy&tls, 127.0.0.2:$port[2]?proxy");
$petrel->start;
my $known = "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n";
my $stranger = pack 'a12 C C n a4 a4 n n C n a4', "\r\n\r\n\0\r\nQUIT\n", 0x21, 0x11, 19, inet_aton('203.0.113.9'), inet_aton('198.51.100.1'), 40000, 25, 0x04, 4, 'pad!';

{
    my $client = Client->connect($port[0]);
    ok !IO::Select->new($client->{socket})->can_read(0.3), 'nothing is greeted before the header';
    $client->put($known);
    like $client->reply, qr/^220/, 'version 1';
    $client->say('EHLO client.test');
    like $client->send(message(to => 'p@normal.test')), qr/^250/, 'the client named by it may relay';
    ok $sink->wait_for('p@normal.test'), 'the message arrives';
    like +($sink->wait_for('p@normal.test'))->{data}, qr/^Received: from client\.test .*\[192\.0\.2\.7\]/m, 'and names the client';
    ok $petrel->wait_log(qr/client=\[192\.0\.2\.7\], helo=client\.test/), 'and so does the log';
    my @others;
    for my $want (['another session of that client', qr/^220/], ['a third is too much', qr/^421 4\.7\.0 too many connections from your address/]) {
        push @others, Client->connect($port[0]);
        $others[-1]->put($known);
        like $others[-1]->reply, $want->[1], $want->[0];
    }
    my $other = Client->connect($port[0]);
    $other->put($stranger . "EHLO client.test\r\n");
    like $other->reply, qr/^220/, 'version 2, with an attachment and a command behind it: another client';
    like $other->reply, qr/^250/, 'whose command is heard';
    $other->say('MAIL FROM:<a@sender.test>');
    like $other->say('RCPT TO:<b@normal.test>'), qr/^554 5\.7\.1/, 'may not relay';
    $_->close for $client, @others, $other;
}

for my $junk ("EHLO client.test\r\n", "GET / HTTP/1.0\r\n\r\n", "PROXY TCP4 1.2.3.4\r\n", "\r\n\r\n\0\r\nQUIT\n\x21\x11\x7f\xff") {
    my $client = Client->connect($port[0]);
    $client->put($junk);
    is $client->rest, '', 'what is no header is cut off without a word';
}
ok Petrel::wait_for(sub { 4 == (() = $petrel->log =~ /cut off: client=\[127\.0\.0\.1\]: proxy protocol: no valid header/g) }), 'with a line each';
{
    my $client = Client->connect($port[0]);
    $client->close;
    ok $petrel->wait_log(qr/proxy protocol: connection closed before the header/), 'a client that says nothing, too';
    # 127.0.0.2 answers from itself: a client that connects to it comes from 127.0.0.1, unless it is told to come from elsewhere.
    my $far = IO::Socket::INET->new(PeerAddr => '127.0.0.2', PeerPort => $port[2], LocalAddr => '127.0.0.3', Timeout => 10);
    syswrite $far, $known;
    is join('', <$far>), '', 'a proxy that is not known';
    ok $petrel->wait_log(qr/cut off: client=\[127\.0\.0\.3\]: proxy protocol: is not in proxy_from/), 'is cut off';
}
like +Client->connect($petrel->{port})->say($known =~ s/\r\n//r), qr/^220/, 'where no proxy is expected';
like +Client->greeted($petrel->{port})->say($known =~ s/\r\n//r), qr/^500 5\.5\.2/, 'the header is a bad command';

SKIP: {
    my $curl = Petrel::have('curl') or skip 'no curl', 3;
    Petrel::spit("$petrel->{dir}/mail", "Subject: curl\r\n\r\nx\r\n");
    my %way = ('in clear' => ["smtp://127.0.0.1:$port[0]"], 'with STARTTLS' => ['--ssl-reqd', "smtp://127.0.0.1:$port[0]"],
        'with TLS behind the header' => ["smtps://127.0.0.1:$port[1]"]);
    for my $name (sort keys %way) {
        my ($status, $text) = Petrel::command('', $curl, '-sS', '--haproxy-protocol', '-k', '--mail-from', 'a@sender.test',
            '--mail-rcpt', 'curl@petrel.test', '-T', "$petrel->{dir}/mail", @{ $way{$name} });
        is $status, 0, "curl $name" or diag $text;
    }
}

# The header with the beginning of TLS in one piece, and in all others.
my $python = <<'END';
import socket, ssl, sys, time
header = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 465\r\n"
for pieces in ([0], [len(header)], [len(header) + 1], [len(header) + 5], [len(header) + 100], [10, len(header) + 60]):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(into, out)
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    first = True
    def pump():
        global first
        data = out.read()
        if first:
            data, at = header + data, 0
            first = False
            for end in pieces + [len(data)]:
                if end > at: s.sendall(data[at:end]); at = end; time.sleep(0.05)
        elif data:
            s.sendall(data)
    def run(what):
        while True:
            try:
                r = what()
                pump()
                return r
            except ssl.SSLWantReadError:
                pump()
                got = s.recv(65536)
                if not got: raise SystemExit("closed")
                into.write(got)
    run(tls.do_handshake)
    line = run(lambda: tls.read(4096))
    tls.write(b"QUIT\r\n")
    print(line[:3].decode(), run(lambda: tls.read(4096))[:3].decode())
    s.close()
END
($code, $said) = Petrel::command($python, 'python3', '-', $port[1]);
is $said, "220 221\n" x 6, 'a ClientHello behind the header, however it is cut';
is $petrel->stop, 0, 'the end';

done_testing;
