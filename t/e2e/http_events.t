#!/usr/bin/perl
# GET /events of the real binary: what happens as it happens, who may see it, going on after a break, and clients that
# ask for half, never read, come by thousands, or are the browsers of lured users.
use lib 't/e2e';
use E2E;
use File::Temp;
use Schema;

my ($operate, $read) = ('canary-operate-canary', 'canary-read-canary-');
my $port = Petrel::free_port();
my $sink = Sink->start;
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_token => $operate, http_read_token => $read,
    routes => "\n    later.test hold\n    * smtp://127.0.0.1:$sink->{port}")->start;

sub dial { return IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 20) }

# Asks; fields end with CRLF each.
sub ask {
    my ($path, $fields, $method) = @_;
    my $socket = dial() or return;
    print $socket +($method // 'GET') . " $path HTTP/1.1\r\n", $fields;
    print $socket "\r\n";
    $socket->flush;
    return { socket => $socket, got => '', text => '', frames => [] };
}
my $host = "Host: localhost\r\n";
my $may = "${host}Authorization: Bearer $read\r\n";

# Reads until all is as wanted, or the end; frames are {id, event, data}.
sub read_until {
    my ($reader, $wanted, $seconds) = @_;
    my $until = time + ($seconds // 60);
    while (!$wanted->($reader)) {
        return 0 if time > $until || !IO::Select->new($reader->{socket})->can_read(1) && time > $until;
        next unless IO::Select->new($reader->{socket})->can_read(0);
        my $size = sysread $reader->{socket}, $reader->{got}, 65536, length $reader->{got};
        if (!$size) {
            $reader->{ended} = 1;
            return $wanted->($reader) ? 1 : 0;
        }
        $reader->{header} = $1 if !$reader->{header} && $reader->{got} =~ s/^(.*?\r\n)\r\n//s;
        next unless $reader->{header} && $reader->{header} =~ /chunked/;
        while ($reader->{got} =~ /^([0-9a-f]+)\r\n/ && length $reader->{got} >= length($1) + 2 + hex($1) + 2) {
            my ($head, $length) = (length($1) + 2, hex $1);
            $reader->{text} .= substr $reader->{got}, $head, $length;
            substr $reader->{got}, 0, $head + $length + 2, '';
        }
        while ($reader->{text} =~ s/^(.*?)\n\n//s) {
            my $frame = $1;
            push @{ $reader->{frames} }, { id => $1, event => $2, data => decode_json($3) } if $frame =~ /^id: (\d+)\nevent: (\w+)\ndata: (.*)\z/s;
        }
    }
    return 1;
}
sub header { my $reader = shift; read_until($reader, sub { $_[0]{header} }); return $reader->{header} // '' }
sub status_of { my $reader = ask(@_); my ($status) = header($reader) =~ /^HTTP\/1\.1 (\d+)/; return $status // 'nothing' }
sub events { my ($reader, $message) = @_; return map { $_->{data} } grep { $_->{event} eq 'event' && (!defined $message || ($_->{data}{message} // '') eq $message) } @{ $_[0]{frames} } }
sub types { return join ' ', map { $_->{type} } events(@_) }
sub send_one { my $reply = $petrel->send_mail('a@a.test', $_[0] // 'b@b.test', "Subject: x\r\n\r\nx\r\n"); my ($id) = $reply =~ /queued as (\S+)/; return $id }

# --- Access

is status_of('/events', "${host}X-Petrel: 1\r\n"), 401, 'without a key nobody';
is status_of('/events', $host), 403, 'nor without a field of ours';
is status_of('/events', "Host: evil.example\r\nAuthorization: Bearer $read\r\n"), 421, 'nor a name that was made to point at us';
is status_of('/events', "${may}Origin: https://evil.example\r\n"), 403, 'nor another origin';
is status_of('/events', "${may}Sec-Fetch-Site: cross-site\r\n"), 403, 'nor another site';
is status_of('/events', "${may}Content-Type: text/plain\r\nContent-Length: 0\r\n", 'POST'), 415, 'nor a form of another site';
is status_of('/events', "${may}Content-Type: application/json\r\nContent-Length: 0\r\n", 'POST'), 405, 'and nobody by POST';
is status_of('/events?from=x', $may), 400, 'a place that is no number';
is status_of('/events?since=1', $may), 400, 'what is not known';
is status_of('/events', "${may}Last-Event-ID: x\r\n"), 400, 'a field that is no number';

# --- Events

my $first = ask('/events', $may);
like header($first), qr/^HTTP\/1\.1 200 OK\r\n.*^Content-Type: text\/event-stream\r\n/ms, 'who may read reads';
like $first->{header}, qr/^Cache-Control: no-store\r$/m, 'which nobody keeps';
ok read_until($first, sub { grep { $_->{event} eq 'status' } @{ $_[0]{frames} } }), 'first the status';
my ($status) = map { $_->{data} } grep { $_->{event} eq 'status' } @{ $first->{frames} };
is $status->{accepting}, JSON::PP::true, 'as petrel status --json has it';
Schema::record(['status', '--json'], encode_json($status));
my $id = send_one();
ok read_until($first, sub { types($_[0], $id) =~ /ended/ }), 'a message comes and goes';
is types($first, $id), 'accepted delivered ended', 'what becomes of it';
my ($delivered) = grep { $_->{type} eq 'delivered' } events($first, $id);
is_deeply [@$delivered{qw(recipient code)}], ['b@b.test', 250], 'with its recipient and reply';
Schema::record(['trace', '--json'], encode_json($_)) for events($first);
my ($code, $traced) = $petrel->run('trace', '--json', $id);
is_deeply [map { my %e = %$_; delete $e{message}; \%e } events($first, $id)], decode_json($traced)->{events}, 'as petrel trace --json has it';
my @ids = map { $_->{id} } @{ $first->{frames} };
is_deeply \@ids, [sort { $a <=> $b } @ids], 'numbers grow';
my $hostile = '"><script>alert(1)</script>@x.test';
$petrel->dialogue('EHLO <img>', "MAIL FROM:<$hostile>", 'RCPT TO:<nobody>', 'QUIT');
ok read_until($first, sub { types($_[0]) =~ /disconnected.*disconnected/ }), 'sessions, too';

# --- Going on

my $last = $first->{frames}[-1]{id};
close $first->{socket};
my @missed = map { send_one() } 1 .. 3;
my $again = ask("/events?from=$last", $may);
ok read_until($again, sub { my $r = shift; 3 == grep { types($r, $_) =~ /ended/ } @missed }), 'a client that comes back gets what it missed';
ok !(grep { $_->{event} eq 'skipped' } @{ $again->{frames} }), 'all of it';
is types($again, $_), 'accepted delivered ended', $_ for @missed;
is scalar(grep { $_->{id} <= $last && $_->{event} eq 'event' } @{ $again->{frames} }), 0, 'and nothing twice';
my $field = ask('/events', "${may}Last-Event-ID: $last\r\n");
ok read_until($field, sub { types($_[0], $missed[2]) =~ /ended/ }), 'the field says the same';
my $lost = ask('/events?from=1', $may);
ok read_until($lost, sub { grep { $_->{event} eq 'skipped' && !defined $_->{data}{count} } @{ $_[0]{frames} } }), 'what nobody kept is said to be lost';
close $_->{socket} for $field, $lost;

# --- Too many, and too fast

my @readers = ($again);
ok Petrel::wait_for(sub {
    my $reader = ask('/events', $may);
    return 0 unless header($reader) =~ / 200 /;
    push @readers, $reader;
    return @readers == 8;
}), 'eight may read';
my $ninth = ask('/events', $may);
like header($ninth), qr/^HTTP\/1\.1 503 /, 'the ninth hears that there are too many';
is status_of('/api/status', $may), 200, 'who asks something else is answered';
close +(pop @readers)->{socket};
ok Petrel::wait_for(sub {
    my $reader = ask('/events', $may);
    return 0 unless header($reader) =~ / 200 /;
    push @readers, $reader;
    return 1;
}), 'where one goes another may come, soon';

# Each client says something that is refused: more than the stream takes in a second.
my $smtp = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$petrel->{port}", Timeout => 20) or die 'no SMTP';
my $before = $readers[1]{frames} ? @{ $readers[1]{frames} } : 0;
my @sent = map { send_one('c@later.test') } 1 .. 150;
ok read_until($readers[1], sub {
    my $said = 0;
    for (@{ $_[0]{frames} }) { $said += $_->{event} eq 'event' && $_->{data}{type} eq 'accepted'; $said += 1000 if $_->{event} eq 'skipped' }
    return $said >= 150;
}), 'many messages: each is there, or a gap is';
my ($number, $gaps, $bad) = (undef, 0, 0);
for my $frame (@{ $readers[1]{frames} }) {
    next if $frame->{event} eq 'status';
    if ($frame->{event} eq 'skipped') {
        $gaps += $frame->{data}{count};
        $bad++ if defined $number && $frame->{id} != $number + $frame->{data}{count};
    }
    else { $bad++ if defined $number && $frame->{id} != $number + 1 }
    $number = $frame->{id};
}
is $bad, 0, "no number is missing without a word ($gaps left out)";

# --- Hostile clients

my @half = map { my $s = dial(); print $s "GET /events HTTP/1.1\r\nHost: loc" if $s; $s // () } 1 .. 10;
my @many;
for (1 .. 2000) {
    my $s = dial() or next;
    push @many, $s;
    shift @many if @many > 200;
}
ok send_one(), 'half requests, and thousands of connections: mail is taken';
ok Petrel::wait_for(sub { my $after = send_one(); read_until($readers[1], sub { types($_[0], $after) =~ /ended/ }, 3) }), 'and the stream goes on for who reads';
@half = @many = ();
close $_->{socket} for @readers;
$petrel->stop;
unlike $petrel->log, qr/canary/, 'no token is logged';

# --- A restart

$petrel->start;
my $new = ask("/events?from=$number", $may);
ok read_until($new, sub { grep { $_->{event} eq 'skipped' && !defined $_->{data}{count} } @{ $_[0]{frames} } }), 'after a restart the numbers of before are known as such';
ok $new->{frames}[0]{id} > $number, 'and are not used again';
$petrel->stop;
ok read_until($new, sub { $_[0]{ended} }), 'a stop ends the stream';

# --- TLS

SKIP: {
    skip 'no openssl or curl', 8 unless Petrel::have('openssl') && Petrel::have('curl');
    my $scratch = File::Temp->newdir('events-XXXXXX', TMPDIR => 1);
    is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", "$scratch"))[0], 0, 'certificates are made');
    $port = Petrel::free_port();
    $petrel = Petrel->new(http => "127.0.0.1:$port?tls", http_read_token => $read, tls_certificate => "$scratch/good.pem", tls_key => "$scratch/good.key",
        routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    my $pid = Petrel::spawn("$scratch/out", 'curl', '-sSN', '--cacert', "$scratch/ca.pem", '-H', "Authorization: Bearer $read", "https://127.0.0.1:$port/events");
    ok Petrel::wait_for(sub { Petrel::slurp("$scratch/out") =~ /^event: status$/m }), 'under TLS, with a certificate that is verified';
    $id = send_one();
    ok Petrel::wait_for(sub { Petrel::slurp("$scratch/out") =~ /"type":"ended".*"message":"\Q$id\E"/ }), 'what happens';
    like Petrel::slurp("$scratch/out"), qr/^id: \d+\nevent: event\ndata: \{"type":"accepted".*\}\n\n/m, 'in its form';
    my $clear = ask('/events', $may);
    read_until($clear, sub { $_[0]{ended} });
    is $clear->{header}, undef, 'a client without TLS gets nothing';
    like((Petrel::command('', 'curl', '-sS', '-m', '20', '--tls-max', '1.1', '--cacert', "$scratch/ca.pem", "https://127.0.0.1:$port/livez"))[1], qr/curl: \(35\)/, 'nor one with an old TLS');
    is +(Petrel::command('', 'curl', '-sk', '-m', '20', '-o', '/dev/null', '-w', '%{http_code}', '-H', 'Host: evil.example', "https://127.0.0.1:$port/events"))[1], 421, 'the rules are the same';
    $petrel->stop;
    ok Petrel::wait_for(sub { !kill 0, $pid or waitpid($pid, 1) != 0 }), 'and a stop ends it';
}
done_testing;
