#!/usr/bin/perl
# The JSON API of the real binary: the queue is listed, shown and changed by HTTP as by `petrel queue`.
use lib 't/e2e';
use E2E;
use Schema;

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

my $port = Petrel::free_port();
my $sink = Sink->start;
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_token => 'canary-operate-canary', http_read_token => 'canary-read-canary-',
    recipient_limit => 5000, routes => "\n    later.test hold\n    * smtp://127.0.0.1:$sink->{port}")->start;

sub ask {
    my ($path, @options) = @_;
    my $token = @options && $options[0] eq 'read' ? (shift @options, 'canary-read-canary-')[1] : 'canary-operate-canary';
    my ($code, $out) = Petrel::command('', 'curl', '-s', '-i', '-m', '30', '-H', "Authorization: Bearer $token", @options, "http://127.0.0.1:$port$path");
    my ($header, $body) = split /\r\n\r\n/, $out, 2;
    my ($status) = ($header // '') =~ /^HTTP\/1\.1 (\d+)/;
    return ($status // "curl $code", $body // '', $header // '');
}
sub json { my ($status, $body) = ask(@_); is $status, 200, "$_[0]"; return eval { decode_json($body) } // { error => $body } }
sub act { my ($path, $body, @more) = @_; return ask($path, @more, '-H', 'Content-Type: application/json', '-d', $body) }
sub lines { return map { decode_json($_) } split /\n/, $_[0] }

# --- An empty queue

my $list = json('/api/queue');
is_deeply $list, { ok => JSON::PP::true, messages => [], next => undef, seen => 0 }, 'nothing is queued';
is_deeply json('/api/sites'), { ok => JSON::PP::true, sites => [] }, 'there are no sites';
is_deeply [map { (ask("/api/site$_"))[0] } '', '?name=x', '?name=x&from=1', '?x=1', '?name=%FF', '?name=' . 'x' x 1500], [400, 404, 400, 400, 400, 404], 'nor one of that name';
is +(ask('/api/queue/01JD3ZK5Q8-9F3K2C7A'))[0], 404, 'a message that is not there';
is +(ask('/api/queue/nothing'))[0], 404, 'a name that is no id';
is +(ask('/api/queue/'))[0], 404, 'no name';

# --- Lists

my @id;
for my $n (1 .. 7) {
    my $reply = $petrel->send_mail("from$n\@a.test", "to$n\@later.test", "Subject: $n\r\n\r\nbody $n <script>\r\n");
    push @id, $reply =~ /queued as (\S+)/;
}
is scalar @id, 7, 'seven messages';
ok $petrel->wait_log(qr/\Q$id[6]\E.*held|held.*\Q$id[6]\E/i), 'are held';
@id = sort @id;
$list = json('/api/queue');
is_deeply [map { $_->{queue_id} } @{ $list->{messages} }], \@id, 'all are listed, oldest first';
is $list->{messages}[0]{queue_name}, 'hold', 'with their place';
my ($code, $printed) = $petrel->run('queue', 'ls', '--json');
is_deeply [map { $_->{queue_id} } @{ $list->{messages} }], [map { decode_json($_)->{queue_id} } split /\n/, $printed], 'as petrel queue ls has them';
my @seen;
my $next = '';
for my $page (1 .. 4) {
    $list = json("/api/queue?limit=2$next");
    push @seen, map { $_->{queue_id} } @{ $list->{messages} };
    $next = defined $list->{next} ? "&after=$list->{next}" : last;
}
is_deeply \@seen, \@id, 'in pages';
sub ids { my $query = shift; return join ' ', map { $_->{sender} =~ /(\d)/ } @{ json("/api/queue?$query")->{messages} } }
is ids('q=TO3'), 3, 'a word in an address';
is ids("q=$id[4]"), 5, 'an id';
is ids('q=from2+later'), 2, 'two words';
is ids('q=from2+to3'), '', 'that are in no message both';
is ids('to=to6%40later.test'), 6, 'a recipient';
is ids('from=from7@a.test&to=later.test'), 7, 'a sender, and a domain';
is ids('queue=deferred'), '', 'another place';
is ids('older=1h'), '', 'none is so old';
for my $wrong ('limit=0', 'limit=501', 'limit=x', 'after=x', 'older=x', 'queue=x', 'colour=red', 'q=a' . '+b' x 8) {
    is +(ask("/api/queue?$wrong"))[0], 400, $wrong;
}

# --- One message

my $shown = json("/api/queue/$id[0]");
is $shown->{sender}, 'from1@a.test', 'its sender';
is $shown->{recipients}[0]{address}, 'to1@later.test', 'its recipient';
my $why = json("/api/queue/$id[0]/why");
is $why->{queue_id}, $id[0], 'why it waits';
my ($status, $content, $header) = ask("/api/queue/$id[0]/message");
is $status, 200, 'its content';
like $content, qr/^Received: .*^Subject: 1\r\n.*body 1 <script>\s+\z/ms, 'as a whole';
like $header, qr/^Content-Type: text\/plain; charset=utf-8\r$/m, 'is text to a browser';
like $header, qr/^Content-Disposition: attachment; filename="\Q$id[0]\E\.eml"\r$/m, 'which keeps it in a file';
is +(ask("/api/queue/$id[0]/message", 'read'))[0], 403, 'readers do not get it';
is +(ask("/api/queue/$id[0]/other"))[0], 404, 'nothing else';

# --- Acting

is +(act('/api/queue/rm', '{"all":true}', 'read'))[0], 403, 'readers do not act';
is +(ask('/api/queue/rm'))[0], 405, 'nobody acts by GET';
is +(ask('/api/queue/rm', '-H', 'Content-Type: text/plain', '-d', '{"all":true}'))[0], 415, 'nor by a form';
for my $wrong ('', '[]', '{', '{}', '{"ids":["x"]}', '{"all":true,"all":true}', '{"colour":1}') {
    is +(act('/api/queue/rm', $wrong))[0], 400, "'$wrong' acts on nothing";
}
is decode_json((act('/api/queue/rm', '{"to":["later.test"]}'))[1])->{error}, 'to must be a string, not a list', 'a wrong type is named';
($status, $content, $header) = act('/api/queue/release', qq({"ids":["$id[0]","$id[1]"]}));
is $status, 200, 'two are released';
like $header, qr/^Content-Type: application\/x-ndjson\r$/m, 'a line each';
is_deeply [sort map { $_->{id} // ($_->{end} ? 'end' : '?') } lines($content)], [sort $id[0], $id[1], 'end'], 'and an end';
ok Petrel::wait_for(sub { scalar($sink->messages) == 2 }), 'they leave';
($status, $content) = act('/api/queue/rm', '{"command":"hold","to":"to3@later.test"}');
is_deeply [map { $_->{id} // 'end' } lines($content)], [$id[2], 'end'], 'the path says what is done';
is +(ask("/api/queue/$id[2]"))[0], 404, 'it is gone';
($status, $content) = act('/api/queue/rm', '{"all":true}');
is scalar(lines($content)), 5, 'four more, and the end';
ok $petrel->wait_empty, 'the queue is empty';

# --- Very many recipients

my @many = map { my $n = $_; [map { sprintf 'recipient-%04d-%s@later.test', $_, 'x' x 30 } 1 .. $n] } 4000, (700) x 12;
like $petrel->send_mail('news@a.test', $_, "Subject: many\r\n\r\nx\r\n"), qr/queued as/, 'a newsletter' for @many;
ok Petrel::wait_for(sub { @{ json('/api/queue')->{messages} // [] } == @many }), 'all are listed';
for my $listed (@{ json('/api/queue')->{messages} }) {
    my ($shown, $more) = (scalar @{ $listed->{recipients} }, $listed->{recipients_more});
    ok $shown > 100 && grep({ $shown + $more == @$_ } @many), 'some of its recipients, and the number of the others';
}
my ($largest) = sort { $b->{recipients_more} <=> $a->{recipients_more} } @{ json('/api/queue')->{messages} };
for my $path ($largest->{queue_id}, "$largest->{queue_id}/why") {
    my $one = json("/api/queue/$path");
    ok @{ $one->{recipients} } > 1000 && @{ $one->{recipients} } + $one->{recipients_more} >= 4000, 'also of the largest';
}
is +(act('/api/queue/rm', '{"all":true}'))[0], 200, 'they go';
ok $petrel->wait_empty, 'the queue is empty again';

# --- Series

my $series = json('/api/series');
Schema::record(['series', '--json'], JSON::PP::encode_json($series));
sub sum { my ($of, $kind) = @_; my $all = 0; $all += $_ for @{ $series->{$of}{$kind} }; return $all }
is sum($_, 'accepted'), 7 + @many, "all messages came, by the ${_}s" for 'second', 'minute';
is sum('minute', 'delivered'), 2, 'two were delivered';
is sum('minute', 'bounced'), 0, 'none was bounced';
is $series->{minute}{waiting}[-1], 0, 'none waits';
is +(ask('/api/series', 'read'))[0], 200, 'who may read reads it';
is +(ask('/api/series?x=1'))[0], 400, 'a parameter that is not known';

# --- The level of the log

($status, $content) = act('/api/log-level', '{}');
is_deeply [$status, decode_json($content)], [200, { ok => JSON::PP::true, level => 'info', configured => 'info', until_ms => 0 }], 'the level of the log';
($status, $content) = act('/api/log-level', '{"level":"debug"}');
my $level = decode_json($content);
is $level->{level}, 'debug', 'is changed';
ok abs($level->{until_ms} - time() * 1000 - 3600 * 1000) < 600 * 1000, 'for an hour';
ok $petrel->wait_log(qr/ main: log level debug, requested by client=127\.0\.0\.1$/m), 'the log says who has done it';
for my $wrong ('[]', '{"level":"loud"}', '{"level":1}', '{"level":"info","for_ms":"1h"}', '{"level":"info","for_ms":-1}', '{"level":"info","for_ms":1e3}', '{"colour":1}', '{"level":"info","command":"drain"}', '{"level":"info\\nx"}', '{"level":"info","by":"root"}', 'x') {
    is +(act('/api/log-level', $wrong))[0], 400, "'$wrong' changes nothing";
}
is decode_json((act('/api/log-level', '{}'))[1])->{level}, 'debug', 'indeed';
is +(act('/api/log-level', '{"level":"error"}', 'read'))[0], 403, 'readers do not change it';
is +(ask('/api/log-level'))[0], 405, 'nobody changes it by GET';
($status, $content) = act('/api/log-level', '{"level":"info","for_ms":0}');
is_deeply [@{ decode_json($content) }{qw(level until_ms)}], ['info', 0], 'changed back, without an end';
act('/api/log-level', '{"level":"error"}');
ok $petrel->wait_log(qr/ main: log level error, requested by client=127\.0\.0\.1$/m), 'nobody makes it silent without a trace' or diag $petrel->log;
act('/api/log-level', '{"level":"info"}');
ok $petrel->wait_log(qr/ http: client=127\.0\.0\.1: queue rm$/m), 'the log says who has done it' or diag $petrel->log;
$petrel->stop;
unlike $petrel->log, qr/canary/, 'and no token';
done_testing;
