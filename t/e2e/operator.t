#!/usr/bin/perl
# The operator's view: petrel queue ls, show, cat, retry, rm; filters and JSON; with and without a daemon.
# operate.t has hold, release and bounce.
use lib 't/e2e';
use E2E;

my $id_pattern = qr/[0-9A-Z]{10}-[0-9A-Z]{8}/;
my $dead = Petrel::free_port();   # nobody listens there, for now
my $sink = Sink->start('--fail-rcpt', 'later:450');
my $petrel = Petrel->new(routes => "dead.test smtp://127.0.0.1:$dead\nhold.test hold\n* smtp://127.0.0.1:$sink->{port}",
    initial_destination_concurrency => 1, drain_timeout => '2s')->start;
my $body = "From: Me <me\@here.test>\nSubject: hi\nDate: Sat, 21 Nov 2026 03:00:00 +0000\nMessage-ID: <1\@here.test>\n\nletter";

sub queue { return $petrel->run('queue', @_) }
sub send_one {
    my ($from, @to) = @_;
    my ($id) = $petrel->send_mail($from, \@to, $body) =~ /queued as ($id_pattern)/ or die 'not accepted';
    return $id;
}
# The ids that a command shows, one a line.
sub ids { my ($code, $text) = queue(@_); return join ' ', sort $text =~ /^($id_pattern) /mg }
sub listing { my ($code, $text) = queue('ls', '--json', @_); return map { decode_json($_) } split /\n/, $text }
# Names and numbers of the shape.
sub shape { my ($code, $text) = queue('shape', '--json', @_); my $all = decode_json($text); return { map { $_->{name} => $_->{count} } @{ $all->{rows} } } }
# The queue is empty, wherever messages are kept.
sub all_gone { return Petrel::wait_for(sub { (queue('ls'))[1] eq '' }) }
sub deferred { my $id = shift; return $petrel->wait_log(qr/ $id: to=.*status=deferred/) }

is_deeply [queue('ls')], [0, ''], 'an empty queue';
is_deeply [queue('ls', '--json')], [0, ''], 'in JSON';

my %id;
$id{one} = send_one('anna@here.test', 'x@dead.test');
ok deferred($id{one}), 'one is deferred' or diag $petrel->log;
$id{two} = send_one('bob@there.test', 'y@dead.test', 'good@live.test', 'later@live.test');
ok $petrel->wait_log(qr/ $id{two}: to=<good\@live\.test>.*status=sent/), 'one of two is sent';
ok $petrel->wait_log(qr/ $id{two}: to=<later\@live\.test>.*status=deferred/), 'one is deferred';
$id{three} = send_one('', 'z@dead.test');
ok deferred($id{three}), 'one without a sender is deferred';
$id{held} = send_one('anna@here.test', 'a@hold.test');
ok $petrel->wait_log(qr/$id{held}: held/) && $petrel->wait_filed, 'one is held';

# --- How it is.

my ($code, $shown) = $petrel->run('status');
is $code, 0, 'status';
like $shown, qr/^petrel     [\d.]+\S*, up \d+ s$/m, 'version and age';
like $shown, qr/^accepting  yes$/m, 'it accepts';
like $shown, qr/^queue      0 incoming, 0 active, 3 deferred, 1 hold, 0 corrupt$/m, 'where mail is' or diag $shown;
like $shown, qr/^syncs      \d+, (?:in the background \(aio\)|blocking: all sessions wait for each)$/m, 'how it syncs';
my $status = decode_json(($petrel->run('status', '--json'))[1]);
is $status->{spool}{path}, "$petrel->{dir}/spool", 'which spool';
cmp_ok $status->{journal}{segments}, '>', 1, 'the journal is there';
is $status->{totals}{stored}, 4, 'four were accepted';
is(($petrel->run('status', '--yaml'))[0], 64, 'an unknown flag');

# --- Looking. With a daemon, and later without.

sub look {
    my $how = shift;
    my ($code, $text) = queue('ls');
    is $code, 0, "$how: ls";
    my @lines = split /\n/, $text;
    is scalar @lines, 4, 'a line for each message' or diag $text;
    is_deeply [map { /^($id_pattern) /o } @lines], [@id{qw(one two three held)}], 'the oldest first';
    like $lines[0], qr/^$id{one} deferred +\d+s +\d+ <anna\@here\.test> -> <x\@dead\.test>; next attempt in \d+[sm]/, 'a deferred one';
    like $lines[1], qr/ <bob\@there\.test> -> <y\@dead\.test> and 2 more/, 'one with several recipients';
    like $lines[2], qr/ <> -> <z\@dead\.test>/, 'one without a sender';
    like $lines[3], qr/^$id{held} hold /, 'a held one';

    my %shape = map { $_ => shape('--by', $_) } qw(recipient sender);
    is_deeply $shape{recipient}, { 'dead.test' => 3, 'hold.test' => 1, 'live.test' => 1 }, "$how: shape: recipients that wait";
    is_deeply $shape{sender}, { 'here.test' => 2, 'there.test' => 1, '<>' => 1 }, 'messages by sender';
    is_deeply shape('--from', 'here.test'), { 'dead.test' => 1, 'hold.test' => 1 }, 'of some messages';
    like +(queue('shape'))[1], qr/\A +T +5 +10 .* 1280\+\n +TOTAL +5 +5( +0){9}\ndead\.test +3 /, 'as a table';

    my @json = listing();
    is scalar @json, 4, "$how: ls --json: an object for each message";
    my ($one, $two, $three, $held) = @json;
    is $one->{queue_name}, 'deferred', 'queue_name';
    is $held->{queue_name}, 'hold', 'of a held one';
    is $one->{queue_id}, $id{one}, 'queue_id';
    is $one->{sender}, 'anna@here.test', 'sender';
    is $three->{sender}, '', 'the null sender';
    ok !$one->{forced_expire} && ref $one->{forced_expire}, 'forced_expire is false';
    ok abs($one->{arrival_time} - time) < 600, 'arrival_time';
    like encode_json($one), qr/"arrival_time":\d+[,}].*/, 'is a number';
    (my $sent = "$body\n") =~ s/\n/\r\n/g;
    ($code, my $shown) = queue('cat', $id{one});
    is $code, 0, "$how: cat";
    is $one->{message_size}, length $shown, 'message_size is what cat shows';
    is Petrel::untraced($shown), $sent, 'and that is the message';
    like $shown, qr/\AReceived: .*\n(?:\t.*\n)*?.*id $id{one}/, 'with its trace header';
    is_deeply [map { $_->{address} } @{ $two->{recipients} }], ['y@dead.test', 'good@live.test', 'later@live.test'], 'all recipients';
    is_deeply [map { $_->{done} ? 1 : 0 } @{ $two->{recipients} }], [0, 1, 0], 'and who has it';
    cmp_ok $one->{due_time}, '>', time, 'the next attempt';
    cmp_ok $one->{attempts}, '>=', 1, 'how many there were';
    ok !exists $two->{recipients}[1]{delay_reason}, 'who has it waits for nothing';

    ($code, $text) = queue('show', $id{two});
    is $code, 0, "$how: show";
    like $text, qr/^id: +$id{two}\n/m, 'the id';
    like $text, qr/^queue: +deferred\n/m, 'the place';
    like $text, qr/^from: +<bob\@there\.test>\n/m, 'the sender';
    like $text, qr/^to: +<good\@live\.test> done\n/m, 'who has it';
    like $text, qr/^to: +<y\@dead\.test> waiting/m, 'who has not';
    ($code, $text) = queue('show', '--json', $id{two});
    is_deeply decode_json($text), $two, 'show --json is that of ls';
    ($code, $text) = queue('show', $id{one}, $id{three});
    is_deeply [$text =~ /^id: +($id_pattern)$/mg], [@id{qw(one three)}], 'show of two';
    my $bare = lc $id{one} =~ s/-//r;
    is_deeply [(queue('show', $bare))[1] =~ /^id: +($id_pattern)$/mg], [$id{one}], 'an id as other logs have it';
    is ids('ls', $bare, lc $id{two}), join(' ', sort @id{qw(one two)}), 'in any case';
    like((queue('why', $bare))[1], qr/because:/, 'why');

    my $all = join ' ', sort values %id;
    for my $case (
        ['--to dead.test', qw(one two three)], ['--to DEAD.test', qw(one two three)], ['--to=hold.test', 'held'],
        ['--to x@dead.test', 'one'], ['--to later@live.test', 'two'], ['--to ead.test'], ['--to x'],
        ['--from anna@here.test', qw(one held)], ['--from there.test', 'two'], ['--from <>', 'three'],
        ['--older 1h'], ['--older 0s', qw(one two three held)],
        ['--queue deferred', qw(one two three)], ['--queue hold', 'held'], ['--queue active'], ['--queue incoming'], ['--queue corrupt'],
        ['--from anna@here.test --to dead.test', 'one'], ['--from anna@here.test --to nowhere.test'],
        ["$id{two} $id{held}", qw(two held)], ["$id{two} $id{held} --queue hold", 'held'],
        )
    {
        my ($filter, @wanted) = @$case;
        my $wanted = join ' ', sort map { $id{$_} } @wanted;
        is ids('ls', split / /, $filter), $wanted, "$how: ls " . ($filter =~ /^--/ ? $filter : 'ID...');
        is join(' ', sort map { $_->{queue_id} } listing(split / /, $filter)), $wanted, 'and in JSON';
    }
    return @json;
}
# Requests that are impossible.
sub refused {
    my $how = shift;
    for my $case (
        [64, qr/not a message id/, 'show', 'nonsense'], [64, qr/not a message id/, 'rm', '../mess'], [64, qr/unknown option/, 'ls', '--colour'],
        [64, qr/--older/, 'ls', '--older', 'long'], [64, qr/--queue/, 'ls', '--queue', 'nowhere'], [64, qr/missing/, 'ls', '--to'],
        [64, qr/^usage:/, 'rm'], [64, qr/^usage:/, 'retry'], [64, qr/^usage:/, 'hold'], [64, qr/^usage:/, 'release', '--json'], [64, qr/^usage:/, 'bounce'], [64, qr/^usage:/, 'show'], [64, qr/^usage:/, 'cat'],
        [65, qr/01JD3ZK5Q8-9F3K2C7A: no such message/, 'show', '01JD3ZK5Q8-9F3K2C7A'],
        [65, qr/01JD3ZK5Q8-9F3K2C7A: no such message/, 'cat', '01JD3ZK5Q8-9F3K2C7A'],
        (map { [65, qr/^petrel queue: 01JD3ZK5Q8-9F3K2C7A: no such message$/m, $_, '01JD3ZK5Q8-9F3K2C7A'] } qw(hold release retry rm bounce)),
        [64, qr/not a message id/, 'rm', '01JD3ZK5Q8-9F3K2C7A', 'x'],
        # A bad filter touches nothing, with any other words.
        (map { ([64, qr/--older/, $_, '--all', '--older', 'long'], [64, qr/unknown option/, $_, '--all', '--too', 'dead.test'],
            [64, qr/missing/, $_, '--all', '--to'], [64, qr/--queue/, $_, '--to', 'dead.test', '--queue', 'waiting']) } qw(hold release retry rm bounce)),
        )
    {
        my ($wanted, $message, @arguments) = @$case;
        my ($code, $text) = queue(@arguments);
        is $code, $wanted, "$how: @arguments: the code";
        like $text, $message, 'and why';
    }
    return;
}

my @with = look('with a daemon');
my %waits = map { $_->{queue_id} => $_ } @with;
like $waits{ $id{one} }{recipients}[0]{delay_reason}, qr/Connection refused/, 'why one waits';
like +(queue('ls'))[1], qr/^$id{one} .*\(.*Connection refused\)$/m, 'in ls';
like +(queue('show', $id{one}))[1], qr/^to: +<x\@dead\.test> waiting \(.*Connection refused\)$/m, 'in show';
is_deeply shape('--by', 'site'), { "smtp:[127.0.0.1]:$dead" => 3, "smtp:[127.0.0.1]:$sink->{port}" => 1, 'no site' => 1 }, 'shape: recipients by site';
refused('with a daemon');
is $petrel->stop, 0, 'the daemon stops';
is(($petrel->run('status'))[0], 69, 'no status without a daemon');
my @without = look('without a daemon');
for my $message (@with, @without) { delete $_->{delay_reason} for @{ $message->{recipients} } }
is_deeply \@without, \@with, 'without a daemon all is the same but the reasons';
refused('without a daemon');
is_deeply [queue('shape', '--by', 'site')], [69, "petrel queue: --by site needs the daemon, which knows the sites\n"], 'sites are the daemon\'s';
is +(queue('shape', '--by', 'age'))[0], 64, 'an unknown grouping';
($code, my $text) = queue('retry', $id{one});
is $code, 0, 'retry without a daemon';
is $text, "$id{one} is due when the daemon starts\n", 'for when it is back';
my $attempts = () = $petrel->log =~ / $id{one}: to=/g;
is $petrel->start->queued, 4, 'the daemon is back, and all are there';
ok Petrel::wait_for(sub { (() = $petrel->log =~ / $id{one}: to=/g) > $attempts }), 'and has tried that one at once';
ok Petrel::wait_for(sub { join(' ', map { $_->{queue_name} } listing()) eq 'deferred deferred deferred hold' }), 'all are where they were';

# --- Removing

is_deeply [queue('rm', $id{held})], [0, "$id{held} removed\n"], 'rm of a held one';
$id{gone} = send_one('anna@here.test', 'x@dead.test');
ok deferred($id{gone}), 'another is deferred';
is_deeply [queue('rm', $id{gone})], [0, "$id{gone} removed\n"], 'rm of a deferred one';
ok $petrel->wait_log(qr/ $id{gone}: removed by the operator/), 'is logged';
ok Petrel::wait_for(sub { !glob "$petrel->{dir}/spool/*/*$id{gone}*" }), 'no file of it is left';
is +(queue('rm', $id{gone}))[0], 65, 'once is enough';
is ids('ls'), join(' ', sort @id{qw(one two three)}), 'the others are still there';
my @more = map { send_one("more$_\@elsewhere.test", 'x@dead.test') } 1 .. 3;
ok deferred($_), 'deferred' for @more;
is ids('rm', '--from', 'elsewhere.test'), join(' ', sort @more), 'rm --from';
is $petrel->stop, 0, 'the daemon stops';
is_deeply [queue('rm', $id{three})], [0, "$id{three} removed\n"], 'rm without a daemon';
is scalar(() = glob "$petrel->{dir}/spool/*/*$id{three}*"), 0, 'no file of it is left';
$petrel->start;
is ids('ls'), join(' ', sort @id{qw(one two)}), 'two are left';

# --- Retrying

my $again = Sink->start('--listen', "127.0.0.1:$dead");
is_deeply [queue('retry', $id{one})], [0, "$id{one} is due now\n"], 'retry of one';
ok $again->wait_for('x@dead.test'), 'is delivered at once' or diag $petrel->log;
ok $petrel->wait_log(qr/$id{one}: retry requested/), 'is logged';
ok $petrel->wait_log(qr/ $id{one}: to=<x\@dead\.test>.*status=sent/), 'as its delivery';
is ids('ls'), $id{two}, 'the other still waits';
is_deeply [queue('retry', '--to', 'dead.test')], [0, "$id{two} is due now\n"], 'retry by recipient';
ok $again->wait_for('y@dead.test'), 'is delivered, too';
my $tried = qr/ $id{two}: to=<later\@live\.test>.*status=deferred/;
ok $petrel->wait_log(qr/$tried.*$tried/s), 'its other recipient is tried as well';
ok Petrel::wait_for(sub { 1 == (() = $petrel->log =~ / $id{two}: to=<good\@live\.test>/g) }), 'who has it does not get it again';
ok Petrel::wait_for(sub { join('', map { $_->{done} ? 1 : 0 } @{ (listing())[0]{recipients} }) eq '110' }), 'which shows';
$sink->stop;
ok $sink->again, 'the sink has changed its mind';
is_deeply [queue('retry', '--all')], [0, "all that waits is due now\n"], 'retry --all';
ok $sink->wait_for('later@live.test'), 'all is delivered';
ok all_gone(), 'the queue is empty';

# --- While a delivery is under way

$sink->hold('dot');
$id{slow} = send_one('anna@here.test', 'slow@live.test');
ok Petrel::wait_for(sub { grep { $_->{queue_name} eq 'active' } listing() }), 'one is active';
is ids('ls', '--queue', 'active'), $id{slow}, 'ls --queue active';
is_deeply [queue('rm', $id{slow})], [0, "$id{slow} removed when its delivery ends\n"], 'rm of an active one';
$sink->let_go('dot');
ok all_gone(), 'and then it is gone';
ok Petrel::wait_for(sub { 1 == (() = $petrel->log =~ / $id{slow}: to=<slow\@live\.test>.*status=sent/g) }), 'what could not be stopped is logged';
$sink->hold('dot');
$id{cut} = send_one('anna@here.test', 'cut@live.test');
ok Petrel::wait_for(sub { grep { $_->{queue_name} eq 'active' } listing() }), 'another is active';
is_deeply [queue('rm', $id{cut})], [0, "$id{cut} removed when its delivery ends\n"], 'it is to be removed';
is $petrel->stop, 0, 'it stops in good order';
like +($petrel->run('trace', $id{cut}))[1], qr/removed by the operator/,
    'the history has the end of mail whose delivery the stop has cut off';

done_testing;
