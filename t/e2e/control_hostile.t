#!/usr/bin/perl
# The control socket with clients that do not behave: half and endless lines, anything but requests, many requests that
# nobody reads the answers of, clients that leave in the middle. The daemon answers others, and holds nothing afterwards.
use lib 't/e2e';
use E2E;
use FindBin;
use Socket qw(SOL_SOCKET SO_LINGER);

local $SIG{PIPE} = 'IGNORE';
my $petrel = Petrel->new(routes => '* hold')->start;
my $path = "$petrel->{dir}/spool/control";
like $petrel->send_mail('a@a.test', "b$_\@b.test", "Subject: x\r\n\r\nx\r\n"), qr/^250/, "message $_" for 1 .. 5;

sub client { return IO::Socket::UNIX->new(Type => Socket::SOCK_STREAM, Peer => $path) }
sub files { my @files = glob "/proc/$petrel->{pid}/fd/*"; return scalar @files }
my $files;

# Others are answered; when all have left nothing is open.
sub serves {
    my $what = shift;
    ok Petrel::wait_for(sub { ($petrel->run('status'))[0] == 0 }), "$what: status is answered";
    return;
}
sub is_rid {
    my $what = shift;
    ok Petrel::wait_for(sub { files() <= $files }), "$what: nothing stays open" or diag files(), " of $files";
    return;
}
serves('at first');
$files = files();

my @clients = map { client() } 1 .. 30;
syswrite $_, '{"command":"sta' for @clients;
serves('half lines');
@clients = ();
is_rid('half lines');

my $endless = client();
my $sent = 0;
while (my $written = syswrite $endless, 'a' x 65536) { $sent += $written; last if $sent > 1_000_000 }
my $end = IO::Select->new($endless)->can_read(60) ? sysread $endless, my $rest, 1 : -1;
ok !$end, 'an endless line is cut off';
undef $endless;
is_rid('an endless line');

# Not one of these does anything.
my @refused = ('[' x 16000, '{"a":' x 5000, '{"command":' . '[' x 3000 . ']' x 3000 . '}', 'null', '1', '"x"', '[]', '{}', '{"command":null}', '{"command":[]}',
    '{"command":"sta\u0000tus"}', '{"command":"hold"}', '{"command":"hold","ids":["x"]}', '{"command":"hold","ids":[1]}', '{"command":"hold","ids":{}}',
    '{"command":"hold","to":"","all":true}', '{"command":"hold","older_ms":-5}', '{"command":"hold","queue":"x"}', '{"command":"retry","all":1}',
    '{"command":"list","limit":-1}', '{"command":"list","limit":1e30}', '{"command":"list","after":5}', '{"command":"list","to":"\ud800"}',
    "{\"command\":\"list\",\"to\":\"\xff\xfe\"}", '{"command":"follow","id":"x"}', '{"command":"states","ids":["x"]}', '{"command":"sites","from":-1}',
    '{"command":"sites","from":1e18}', '{"command":"adopt","slice":9223372036854775807}', '{"command":"adopt","slice":-5}', '{"command":"adopt"}',
    '{"command":"log-level","level":"x"}', '{"command":"log-level","level":"info","for_ms":9223372036854775807}', '{"command":"unlock","addresses":[5]}',
    '{"command":"page","access":5}', '{"command":"quota-reset","subject":5}', '{"command":"drain","wait_ms":"x"}', '{"command":"drain","wait_ms":-9223372036854775808}',
    "\0\0", '', '{"command":"status","command":"status"}', '{"command":"' . 's' x 100 . '"}', '{"command":"http","http":1}GET / HTTP/1.1');
for my $request (@refused) {
    my $socket = client();
    syswrite $socket, "$request\n";
    my $answer = IO::Select->new($socket)->can_read(60) ? readline $socket : undef;
    (my $name = substr $request, 0, 60) =~ s/[^ -~]/./g;
    like $answer // 'nothing', qr/^\{"ok":false,"error":"[^"]+"\}$/, "refused: $name";
}
is_rid('anything');

# No command takes a member of a wrong type for a missing one. The answers of all commands that the daemon has.
my %members = (
    (map { $_ => 'ids' } qw(hold release retry bounce rm list states)), (map { $_ => 'id' } qw(state why follow show)), (map { $_ => 'from' } qw(sites fragments test)),
    trace => 'limit', site => 'name', 'quota-reset' => 'who', 'forget-limits' => 'site', 'log-level' => 'for_ms', unlock => 'clients', drain => 'wait_ms', page => 'access', adopt => 'slice', 'cluster-forget' => 'host', 'suppress-list' => 'limit', 'suppress-add' => 'lines', 'suppress-remove' => 'addresses',
);
my %known = (%members, map { $_ => '' } qw(status summary tokens findings quotas health lockouts reload canary series http cluster));
my %said;
for my $file (glob "$FindBin::Bin/../../admin/*/*.c") {
    open my $source, '<', $file or die "$file: $!";
    my $text = do { local $/; <$source> };
    $said{$1} = 1 while $text =~ /questions_on\([^;]*?"([\w-]+)", \w+, \w+/g;
    $said{$1} = 1 while $file =~ /(?:control_server|trace_answer)\.c$/ && $text =~ /strcmp\((?:name|command), "([\w-]+)"\) == 0/g;
    $said{$1} = 1 while $file =~ /control_session\.c$/ && $text =~ /^    \{"([\w-]+)", +control_session_/mg;
    $said{$1} = 1 while $file =~ /questions\.c$/ && $text =~ /^    \{"([\w-]+)", +answer_/mg;
}
cmp_ok scalar keys %said, '>', 20, 'commands are found in the source';
is_deeply [sort grep { !exists $known{$_} } keys %said], [], 'each is known here';
for my $command (sort keys %members) {
    my $socket = client();
    syswrite $socket, qq({"command":"$command","$members{$command}":{"a":"01JD3ZK5Q8-9F3K2C7A"}}\n);
    my $answer = IO::Select->new($socket)->can_read(60) ? readline $socket : undef;
    like $answer // 'nothing', qr/^\{"ok":false,"error":"$members{$command} must be a [\w ]+, not an object"\}$/, "$command: $members{$command}";
}

# Eight clients with 2,000 requests each, who never read.
for my $request ('{"command":"status"}', '{"command":"tokens"}', '{"command":"list"}', '{"command":"hold","all":true}', '{"command":"trace","query":["b"]}', '{"command":"page","access":"read"}') {
    my @greedy = map { client() } 1 .. 8;
    for my $socket (@greedy) {
        $socket->blocking(0);
        my ($all, $at) = ("$request\n" x 2000, 0);
        while ($at < length $all) { $at += (syswrite $socket, $all, 65536, $at) || last }
    }
    serves("unread: $request");
    @greedy = ();
    is_rid("unread: $request");
}

# Clients that leave in the middle, politely or not.
for my $round (1 .. 100) {
    my $socket = client() or next;
    setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $round % 3 == 0;
    syswrite $socket, join '', map { "{\"command\":\"$_\",\"all\":true}\n" } $round % 2 ? qw(hold release) : qw(list list list);
    shutdown $socket, $round % 3 if $round % 5 == 0;
}
serves('left');
is_rid('left');

# More than there may be: they are cut off, and it goes on when they have left.
@clients = grep { defined } map { client() } 1 .. 200;
cmp_ok scalar @clients, '>', 40, 'many clients';
@clients = ();
serves('many');
is_rid('many');

is $petrel->stop, 0, 'stops';
unlike $petrel->log, qr/ssert|unexpected/, 'no word of it';
done_testing;
