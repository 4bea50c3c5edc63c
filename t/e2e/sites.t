#!/usr/bin/perl
# The addresses of our test server: do their limits, rates, failures and counters do what the
# experiments with the scheduler take for granted?
use strict;
use warnings;
use FindBin;
BEGIN { chdir "$FindBin::Bin/../.." }
use lib 't/e2e';
use Client;
use Errno qw(ECONNREFUSED ECONNRESET);
use IO::Select;
use IO::Socket::INET;
use Petrel;
use Sink;
use Test::More;
use Time::HiRes qw(time);

my $program = "$Petrel::root/$Petrel::build/t/bench/sink";
plan skip_all => "no $program" unless -x $program;

my %mail = (from => 'a@b', to => 'c@d', data => "x\r\n");
my $quiet = 0.3; # seconds without a word that count as silence

# start(SETTINGS...): a sink with one address for each; {addresses}.
sub start { return Sink->start(map { ('--address', "127.0.0.1:0$_") } map { length ? ",$_" : '' } @_) }

# A connection to an address, nothing said yet; undef when it is refused, or reset that early. With a
# time-out, IO::Socket would call connect() again, and so come twice.
sub dial { my $at = shift; return Client->connect($at =~ /:(\d+)$/, Timeout => undef) }
# Greeted and EHLO; undef otherwise.
sub talk { my $at = shift; return Client->greeted($at =~ /:(\d+)$/) }
# The first three digits of the next reply; '' at the end of the connection.
sub code { my $client = shift; return substr $client->reply, 0, 3 }
sub say_code { my ($client, $line) = @_; return substr $client->say($line), 0, 3 }
sub is_silent { my $client = shift; return !IO::Select->new($client->{socket})->can_read($quiet) }

# How a new connection fares: "reset", "end", what is said to it, or "silence".
sub fate
{
    my $at = shift;
    my $client = dial($at);
    return ending($client) if $client;
    return $! == ECONNRESET ? 'reset' : "$!";
}

# The same of one that is there.
sub ending
{
    my $client = shift;
    IO::Select->new($client->{socket})->can_read($Petrel::patience) or return 'silence';
    my $got = sysread $client->{socket}, my $bytes, 1000;
    return 'reset' if !defined $got && $! == ECONNRESET;
    return !defined $got ? "$!" : $got == 0 ? 'end' : $bytes;
}

# Waits until a counter of an address has this value.
sub reaches
{
    my ($sink, $at, $key, $value) = @_;
    Petrel::wait_for(sub { $sink->site($at)->{$key} == $value });
    return is $sink->site($at)->{$key}, $value, "... $key at $at";
}

# counts(SINK, ADDRESS, KEY => VALUE...)
sub counts
{
    my ($sink, $at, %want) = @_;
    my $site = $sink->site($at);
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is $site->{$_}, $want{$_}, "... $_" for sort keys %want;
    return $site;
}

# --- Mistakes

sub exit_code
{
    my @command = @_;
    my $log = "/tmp/petrel-sites-$$.log";
    my $status = Petrel::reap(Petrel::spawn($log, @command));
    unlink $log;
    return defined $status ? $status >> 8 : 'none';
}
for my $bad (
    'sessions', 'sessions=', 'sessions=-1', 'sessions=x', 'over=', 'over=450', 'over=queue', 'over=queue:', 'over=queue:x', 'what=1',
    'delay=5', 'delay.nowhere=5', 'delay.mail=', 'delay.mail=-5', 'fail=1', 'fail=2/3', 'fail=1/0', 'fail=1/', 'random', 'fail=none,random',
    'rate=5', 'rate=0/s', 'rate=5/h', 'rate=/s', 'rate=5/', 'burst=0', 'rate_reply=550', 'rate_reply=', 'rate_stage=data', 'per_session=x',
    'up=maybe', 'up', 'sessions=1,over=never', 'sessions=9999999999'
    )
{
    is exit_code($program, '--address', "127.0.0.1:0,$bad"), 64, "$bad is a mistake";
}
is exit_code($program, @$_), 64, "@$_ is a mistake" for ['--address', 'localhost:25'], ['--address', ''], ['--address'], ['--seed', 'x'],
    ['--seed'], [map { ('--address', '127.0.0.1:0') } 1 .. 64];
is exit_code($program, '--help'), 0, 'help';

# --- Several addresses

{
    my $sink = Sink->start('--address', '127.0.0.2:0', '--address', '127.0.0.3:0,up=no', '--address', '[::1]:0');
    my ($two, $three, $six) = @{ $sink->{addresses} };
    like $two, qr/^127\.0\.0\.2:\d+$/, 'an address is told';
    like $six, qr/^\[::1\]:\d+$/, 'one of IPv6 too';
    my @sites = $sink->sites;
    is_deeply [map { $_->{address} } @sites], [$sink->{listen}, $two, $three, $six], 'all are listed';
    is_deeply [map { $_->{up} && $_->{listening} ? 1 : 0 } @sites], [1, 1, 0, 1], 'with their state';
    my $socket = IO::Socket::INET->new(PeerAddr => $two) or die "$two: $!";
    my $client = bless {socket => $socket, buffer => ''}, 'Client';
    is code($client), 220, 'it greets';
    is say_code($client, 'EHLO x'), 250, 'and speaks';
    like $client->send(%mail), qr/^250/, 'and takes mail';
    my $other = talk($sink->{listen});
    like $other->send(%mail, to => ['one@x', 'two@x', 'three@x']), qr/^250/, 'so does the one of --listen' for 1 .. 2;
    counts($sink, $two, messages => 1, recipients => 1, sessions => 1, sessions_open => 1, rcpts_accepted => 1, bytes => 3);
    counts($sink, $sink->{listen}, messages => 2, recipients => 6, sessions => 1, connections => 1, messages_per_session_max => 2);
    is $sink->count('messages'), 3, 'stats has the sum';
    is $sink->count('recipients'), 7, '... of recipients';
    is $sink->count('sessions'), 2, '... of sessions';
    is $sink->count('sessions_max'), 2, '... the most at once';
    is $sink->count('messages_per_session_max'), 2, '... the most of one session';
    cmp_ok abs($sink->count('messages_per_session_mean') - 1.5), '<', 0.001, '... and the mean';
    is(IO::Socket::INET->new(PeerAddr => $three), undef, 'nobody listens where it is down');
    is $! + 0, ECONNREFUSED, '... that is told at once';
    ok $sink->ask("site $_")->{error}, "'site $_' is a mistake"
        for '', 'x', '127.0.0.9:25', "$two what", "$two set", "$two set ", "$two set sessions=x", "$two set sessions=1 over=x", "$two up now";
    ok !$sink->ask('stats')->{error}, 'after which all goes on';
}

# A half-wrong line sets nothing.
{
    my $sink = start('sessions=1');
    my ($at) = @{ $sink->{addresses} };
    ok $sink->ask("site $at set sessions=2,over=rst,per_session=x")->{error}, 'one wrong setting of three';
    my $first = talk($at);
    my $second = dial($at);
    like $second->reply, qr/^421 4\.7\.0 /, 'the others were not set either';
}

# --- Places

# A session that ends gives its place to the next.
for my $over ('421', 'rst', 'silent') {
    my $sink = start("sessions=2,over=$over");
    my ($at) = @{ $sink->{addresses} };
    my @in = map { talk($at) } 1 .. 2;
    ok $in[1], "$over: two are served";
    my $third = $over eq 'rst' ? undef : dial($at);
    if ($over eq '421') {
        like $third->reply, qr/^421 4\.7\.0 Too many sessions\r\n/, 'the third is told';
        is $third->reply, '', 'and that is the end';
    } elsif ($over eq 'rst') {
        is fate($at), 'reset', 'the third is reset';
    } else {
        ok is_silent($third), 'the third hears nothing';
    }
    counts($sink, $at, connections => 3, sessions => 2, sessions_open => 2, refused_connects => 1, queued => 0);
    like $in[0]->send(%mail), qr/^250/, 'who is in is not hindered';
    is substr($in[0]->quit, 0, 3), 221, 'one leaves';
    ok my $fourth = talk($at), 'the next is served';
    counts($sink, $at, connections => 4, sessions => 3, sessions_open => 2, sessions_max => 2, refused_connects => 1);
    if ($over eq 'silent') {
        $third->put("EHLO x\r\n" x 20_000);
        ok is_silent($third), 'who was too late hears nothing for ever';
        is $sink->site($at)->{open}, 3, 'and is there';
        $third->close;
        reaches($sink, $at, open => 2);
    }
    $_->close for $in[1], $fourth; # these do not say QUIT
    reaches($sink, $at, sessions_open => 0);
    is $sink->count('refused_connects'), 1, 'the sum has it as well';
    is $sink->site($sink->{listen})->{connections}, 0, 'the other address has not';
}

# queue:B
{
    my $sink = start('sessions=1,over=queue:2');
    my ($at) = @{ $sink->{addresses} };
    my $first = talk($at);
    my ($second, $gone, $black) = map { my $c = dial($at); reaches($sink, $at, connections => $_); $c } 2 .. 4;
    counts($sink, $at, sessions_open => 1, queued => 2, refused_connects => 1, sessions => 1);
    ok is_silent($second), 'who waits hears nothing yet';
    $gone->close;
    reaches($sink, $at, queued => 1);
    my $third = dial($at);
    reaches($sink, $at, queued => 2);
    $third->put("EHLO early\r\n");
    $first->quit;
    is code($second), 220, 'the first in the queue is greeted when there is a place';
    ok is_silent($third), 'the next is not';
    $second->close;
    is code($third), 220, 'but then';
    is code($third), 250, 'and what it had said is heard';
    ok is_silent($black), 'who came when the queue was full never is';
    counts($sink, $at, sessions => 3, sessions_max => 1, queued => 0, refused_connects => 1, connections => 5);
    my @more = map { dial($at) } 1 .. 2;
    reaches($sink, $at, queued => 2);
    is $sink->tell($at, 'set sessions=2')->{queued}, 1, 'a new place is for the queue';
    is code($more[0]), 220, 'in order';
    is $sink->tell($at, 'set sessions=none over=421')->{queued}, 0, 'no limit, no queue';
    is code($more[1]), 220, 'all are served';
}

# refuse: by the kernel, in its own time; who is in its queue is reset.
{
    my $sink = start('sessions=1,over=refuse');
    my ($at) = @{ $sink->{addresses} };
    for my $round (1 .. 3) {
        my $first = talk($at) or die 'not served';
        counts($sink, $at, listening => JSON::PP::false, sessions_open => 1);
        my $second = dial($at);
        is $! + 0, ECONNREFUSED, "the second is refused in round $round";
        is $second, undef, '... it has no connection';
        like $first->send(%mail), qr/^250/, 'the first goes on';
        $first->quit;
        reaches($sink, $at, listening => JSON::PP::true);
    }
    counts($sink, $at, sessions => 3, sessions_max => 1, messages => 3);
    is $sink->tell($at, 'set sessions=0')->{listening}, JSON::PP::false, 'no place at all: nobody listens';
    is dial($at), undef, 'so nobody comes in';
    is $sink->tell($at, 'set over=silent')->{listening}, JSON::PP::true, 'without a place but silent';
    ok is_silent(dial($at)), 'is a black hole';
}

# --- Up and down

{
    my $sink = start('up=no', '');
    my ($at, $other) = @{ $sink->{addresses} };
    is dial($at), undef, 'down at first';
    my $standing = talk($other);
    for (1 .. 2) {
        ok $sink->tell($at, 'up')->{up}, 'it goes up';
        reaches($sink, $at, listening => JSON::PP::true);
        my $in = talk($at);
        ok $in, 'it serves';
        my $site = $sink->tell($at, 'down');
        ok !$site->{up} && !$site->{listening}, 'it goes down';
        is $site->{open}, 0, 'with all connections';
        is ending($in), 'reset', 'which are reset';
        is dial($at), undef, 'nobody listens';
    }
    like $standing->send(%mail), qr/^250/, 'the other address has not noticed';
    $sink->tell($at, 'down');
    $sink->tell($at, 'up') for 1 .. 2;
    ok talk($at), 'twice is no harm';
    is $sink->stop, 0, 'it ends well';
}

# --- Late replies

{
    my %ms = (banner => 120, helo => 130, mail => 140, rcpt => 150, data => 160, dot => 170);
    my $sink = start(join ',', map { "delay.$_=$ms{$_}" } sort keys %ms);
    my ($at) = @{ $sink->{addresses} };
    my $from = time;
    my $client = dial($at);
    my $heard = sub {
        my ($stage, $code) = @_;
        is code($client), $code, "$stage is answered";
        cmp_ok((time() - $from) * 1000, '>=', $ms{$stage} - 2, "... late");
        $from = time;
    };
    $heard->(banner => 220);
    for (['EHLO x', helo => 250], ['MAIL FROM:<a@b>', mail => 250], (["RCPT TO:<c\@d>", rcpt => 250]) x 3, ['DATA', data => 354], [".", dot => 250]) {
        my ($line, $stage, $code) = @$_;
        $from = time;
        $client->put("$line\r\n");
        $heard->($stage, $code);
    }
    $sink->tell($at, 'set ' . join ' ', map { "delay.$_=0" } 'banner', 'helo', 'mail', 'data', 'dot');
    $from = time;
    $client->send_pipelined(%mail, to => [map { "u$_\@d" } 1 .. 5]);
    cmp_ok time - $from, '>=', 5 * 0.15 - 0.01, 'each RCPT of a pipeline is late';
    counts($sink, $at, recipients => 8, rcpts_accepted => 8, messages => 2);
    ok talk($sink->{listen}), 'the other address is not';
}

# --- Failing connections

{
    my $sink = start('fail=1/3,sessions=1,over=421');
    my ($at) = @{ $sink->{addresses} };
    my @fates;
    for (1 .. 12) {
        push @fates, fate($at) =~ s/^220 .*/good/sr;
        reaches($sink, $at, open => 0);
    }
    is "@fates", join(' ', ('good', 'good', 'reset') x 4), 'every third is reset, never greeted';
    counts($sink, $at, failed_connects => 4, sessions => 8, connections => 12, refused_connects => 0);
    my $in = dial($at);
    is code($in), 220, 'the place is taken';
    is code(dial($at)), 421, 'one is too many';
    is fate($at), 'reset', 'who fails needs no place';
    is $sink->tell($at, 'set fail=1/1')->{failed_connects}, 5, 'now all of them';
    is fate($at), 'reset', "fail $_" for 1 .. 3;
    $sink->tell($at, 'set fail=none sessions=none');
    ok talk($at), 'and now none';
}

# By chance: the same seed, the same fates.
sub fates
{
    my ($seed, $count) = @_;
    my $sink = Sink->start('--seed', $seed, '--address', '127.0.0.1:0,fail=1/4,random');
    my ($at) = @{ $sink->{addresses} };
    my $fates = '';
    for (1 .. $count) {
        $fates .= fate($at) eq 'reset' ? 'x' : '.';
    }
    is $sink->site($at)->{failed_connects}, ($fates =~ tr/x//), 'they are counted';
    return $fates;
}
{
    my ($one, $again, $other) = (fates(7, 120), fates(7, 120), fates(8, 120));
    is $one, $again, 'chance has a seed';
    isnt $one, $other, 'another one makes a difference';
    for ($one, $other) { my $x = tr/x//; cmp_ok abs($x - 30), '<', 16, "about one of four ($x of 120)" }
    unlike $one, qr/^(?:\.\.\.x)*$/, 'and not every fourth';
}

# --- Rates: a bucket that does not fill within the test

{
    my $sink = start('rate=1/m,burst=2', 'rate=1/m,burst=3,rate_stage=rcpt,rate_reply=450', 'rate=1/m,rate_stage=dot,rate_reply=421',
        'rate=1/m,rate_stage=connect,rate_reply=421', 'rate=1/m,rate_stage=connect,rate_reply=450');
    my ($mail, $rcpt, $dot, $hangup, $connect) = @{ $sink->{addresses} };
    my $client = talk($mail);
    like $client->send(%mail), qr/^250/, 'one token' for 1 .. 2;
    is $client->say('MAIL FROM:<a@b>'), "451 4.7.28 rate limited\r\n", 'none left';
    is say_code($client, 'RCPT TO:<c@d>'), 503, 'no transaction';
    is substr(talk($mail)->send(%mail), 0, 3), 451, 'the bucket is that of the address';
    counts($sink, $mail, rate_refusals => 2, messages => 2, refused => 2, rcpts_tempfailed => 0);
    $sink->tell($mail, 'set burst=3');
    like $client->send(%mail), qr/^250/, 'a new bucket is full' for 1 .. 3;
    is substr($client->send(%mail), 0, 3), 451, 'and no more';
    $sink->tell($mail, 'set delay.mail=0');
    is substr($client->send(%mail), 0, 3), 451, 'other settings do not fill it';
    $sink->tell($mail, 'set rate=1000/s');
    like $client->send(%mail), qr/^250/, 'a quicker rate' for 1 .. 3;
    $sink->tell($mail, 'set rate=20/s burst=1');
    Petrel::wait_for(sub { $client->send(%mail) =~ /^250/ }) for 1 .. 3;
    is $sink->site($mail)->{messages}, 11, 'a bucket fills again';
    $sink->tell($mail, 'set rate=none');
    like $client->send(%mail), qr/^250/, 'no limit' for 1 .. 30;

    $client = talk($rcpt);
    is say_code($client, 'MAIL FROM:<a@b>'), 250, 'MAIL needs no token there';
    is join(' ', map { say_code($client, "RCPT TO:<u$_\@d>") } 1 .. 5), '250 250 250 450 450', 'RCPT does';
    counts($sink, $rcpt, rcpts_accepted => 3, rcpts_tempfailed => 2, rate_refusals => 2);

    $client = talk($dot);
    like $client->send(%mail), qr/^250/, 'one token at the dot';
    is $client->send(%mail, to => ['c@d', 'e@f']), "421 4.7.28 rate limited\r\n", 'no second message';
    is $client->reply, '', '421 is the end';
    counts($sink, $dot, messages => 1, rcpts_accepted => 3, rcpts_tempfailed => 2, rate_refusals => 1, sessions_open => 0);

    ok talk($hangup), 'a token for a connection';
    $client = dial($hangup);
    is $client->reply, "421 4.7.28 rate limited\r\n", 'instead of a greeting';
    is $client->reply, '', 'and the end';
    counts($sink, $hangup, sessions => 1, rate_refusals => 1, refused_connects => 0);

    ok talk($connect), 'a token for a connection';
    $client = dial($connect);
    is $client->reply, "450 4.7.28 rate limited\r\n", 'no greeting';
    is say_code($client, 'EHLO x'), 503, 'and no service';
    is say_code($client, 'QUIT'), 221, 'but an end';
    is scalar(grep { $_->{rate_refusals} } $sink->sites), 5, 'every address counts its own';
}

# --- Messages of a session

{
    my $sink = start('per_session=2');
    my ($at) = @{ $sink->{addresses} };
    for (1 .. 2) {
        my $client = talk($at);
        like $client->send(%mail), qr/^250/, 'message' for 1 .. 2;
        like $client->say('MAIL FROM:<a@b>'), qr/^421 4\.7\.0 /, 'enough';
        is $client->reply, '', 'the end';
    }
    counts($sink, $at, messages => 4, sessions => 2, messages_per_session_max => 2, messages_per_session_mean => 2);
}

# --- Counters

{
    my $sink = Sink->start('--address', '127.0.0.1:0', '--fail-rcpt', 'busy@:450', '--fail-rcpt', 'none@:550', '--fail', 'data:451:1', '--fail', 'dot:452:1');
    my ($at) = @{ $sink->{addresses} };
    my $client = talk($at);
    is say_code($client, 'RSET'), 250, 'RSET' for 1 .. 3;
    is substr($client->send(%mail, to => ['a@x', 'b@x']), 0, 3), 451, 'refused at DATA';
    $client->say('RSET');
    is substr($client->send(%mail, to => ['a@x', 'b@x', 'c@x']), 0, 3), 452, 'refused at the dot';
    is substr($client->send(%mail, to => $_), 0, 3), /busy/ ? 450 : 550, "$_ is refused" and $client->say('RSET') for 'busy@x', 'none@x';
    like $client->send(%mail), qr/^250/, 'taken';
    counts($sink, $at, rsets => 6, rcpts_accepted => 6, rcpts_tempfailed => 6, recipients => 1, messages => 1, messages_per_session_max => 1);

    # Idle time: between greeting and MAIL, and from the end of a transaction on; not within one.
    my $idle_of = sub { $sink->site($at)->{idle_ms} };
    my $before = $idle_of->();
    Petrel::wait_for(sub { $idle_of->() >= $before + 150 });
    cmp_ok $idle_of->(), '>=', $before + 150, 'idle time passes while nothing happens';
    $client->say('MAIL FROM:<a@b>');
    $before = $idle_of->();
    select undef, undef, undef, 0.2;
    is $idle_of->(), $before, 'but not within a transaction';
    $client->say('RSET');
    Petrel::wait_for(sub { $idle_of->() > $before });
    cmp_ok $idle_of->(), '>', $before, 'again afterwards';
    $client->quit;
    reaches($sink, $at, sessions_open => 0);
    $before = $idle_of->();
    select undef, undef, undef, 0.1;
    is $idle_of->(), $before, 'nobody is idle who is gone';

    # The mean of what is open, sampled.
    $sink->ask('reset');
    counts($sink, $at, sessions => 0, sessions_max => 0, messages => 0, rsets => 0, idle_ms => 0, messages_per_session_max => 0, messages_per_session_mean => 0);
    my @in = map { talk($at) } 1 .. 4;
    is $_->ask('reset')->{sessions}, 4, 'sessions that go on survive a reset' for $sink;
    Petrel::wait_for(sub { $sink->site($at)->{sessions_mean} == 4 });
    counts($sink, $at, sessions_mean => 4, sessions_max => 4, sessions => 4, connections => 0);
    $_->quit for @in[0 .. 2];
    Petrel::wait_for(sub { $sink->site($at)->{sessions_mean} < 4 });
    my $mean = $sink->site($at)->{sessions_mean};
    ok $mean < 4 && $mean > 1, "the mean falls ($mean)";
    is $sink->site($at)->{sessions_max}, 4, 'the maximum stays';
    like $in[3]->send(%mail), qr/^250/, 'the last one sends';
    counts($sink, $at, messages_per_session_mean => 0.25, messages_per_session_max => 1);
    is $sink->count($_), $sink->site($at)->{$_}, "the sum of $_" for qw(sessions sessions_max messages rcpts_accepted messages_per_session_mean);
}

# --- The load generator: ten at once, three places

SKIP: {
    my $load = "$Petrel::root/$Petrel::build/t/bench/load";
    skip 'no load generator', 4 unless -x $load;
    my $sink = start('sessions=3,over=queue:100,delay.dot=5');
    my ($at) = @{ $sink->{addresses} };
    is exit_code($load, '--to', $at, '--messages', 200, '--connections', 10, '--per-connection', 4), 0, 'all is delivered through a queue';
    my $site = counts($sink, $at, messages => 200, sessions_max => 3, refused_connects => 0, messages_per_session_max => 4);
    cmp_ok $site->{sessions}, '>=', 50, '... by many sessions';
    cmp_ok $site->{sessions_mean}, '<=', 3, '... never more than three';
}

done_testing;
