#!/usr/bin/perl
# Posts, each with an idempotency key, over connections that are cut at any byte, kills and stops: every key is accepted once. A
# message that is delivered again after a kill, since its mark was not written, has one id; one that is accepted twice has two. So
# the sink's Received fields are counted: ids of each key. POSTS=10000 is the whole; SEED repeats a run.
use lib 't/e2e';
use E2E;
use IO::Socket::INET;
use Time::HiRes qw(time sleep);

my $posts = $ENV{POSTS} // 300;
my $ends = $posts >= 10_000 ? 25 : 6; # of the daemon
srand($ENV{SEED} //= time % 100_000);
note "SEED=$ENV{SEED}";

my $port = Petrel::free_port();
my $sink = Sink->start;
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_keys => tempdir(CLEANUP => 1) . '/keys', routes => "* smtp://127.0.0.1:$sink->{port}");
my ($code, $token) = $petrel->run(qw(key add app *));
($token) = $token =~ /^(petrel_\S+)/m or die "no key: $code";
$petrel->start;

my (%seen, %id, $answers);
sub request {
    my ($n) = @_;
    my $text = "post $n " . 'x' x (($n * 7919) % 3000);
    my ($type, $query, $body) = $n % 2
        ? ('message/rfc822', "?from=a\@a.test&to=u$n\@b.test", "Subject: post $n\r\n\r\n$text\r\n")
        : ('application/json', '', qq({"from":"a\@a.test","to":["u$n\@b.test"],"subject":"post $n","text":"$text"}));
    return "POST /v1/messages$query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $token\r\nIdempotency-Key: key-$n\r\nContent-Type: $type\r\n"
        . "Connection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
}
sub connected { my $s; Petrel::wait_for(sub { $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 10) }); return $s }

# The daemon ends in the midst of it, or the connection at a byte of the request, of the answer, or between.
sub spoil {
    my ($n, $ends) = @_;
    my ($socket, $bytes) = (connected(), request($n));
    my $kind = int rand 3;
    $socket->send($kind == 0 ? substr $bytes, 0, int rand length $bytes : $bytes, 0x4000); # MSG_NOSIGNAL
    if ($ends) {
        sleep rand 0.01;
        rand() < 0.85 ? $petrel->kill9 : $petrel->stop;
        $seen{ends}++;
        $petrel->start;
    } elsif ($kind == 2) {
        sysread $socket, my $some, 1 + int rand 200;
    }
    $seen{cuts}++;
    if (rand() < 0.5) { setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 } # RST
    close $socket;
}

sub answer_of {
    my ($n) = @_;
    my $socket = connected();
    $socket->send(request($n), 0x4000);
    my $all = '';
    1 while sysread $socket, $all, 65536, length $all;
    $answers++;
    my ($status) = $all =~ m{^HTTP/1\.1 (\d+)};
    $seen{replayed}++ if ($status // 0) == 202 && $all =~ /^Idempotency-Replayed: true/m;
    return ($status // 0, $all);
}

my $began = time;
my %ends_at = map { (int(($_ - rand) * $posts / $ends) + 1) => 1 } 1 .. $ends;
my @wrong;
for my $n (1 .. $posts) {
    spoil($n, 0) while rand() < 0.4;
    spoil($n, 1) if $ends_at{$n};
    for (1 .. 600) {
        my ($status, $all) = answer_of($n);
        if ($status == 202) { ($id{$n}) = $all =~ /"id": ?"([^"]+)"/; last }
        if ($status != 503) { push @wrong, "post $n: $all"; last }
        sleep 0.05;
    }
    if (rand() < 0.05) { # once more, much later
        my $old = 1 + int rand $n;
        my ($status, $all) = answer_of($old);
        my ($id) = $all =~ /"id": ?"([^"]+)"/;
        push @wrong, "post $old again: $status, $id, not $id{$old}" if $status == 202 && ($id // '') ne ($id{$old} // '');
    }
}
is "@wrong", '', 'every post is accepted';
is scalar(keys %id), $posts, 'with an id';
ok $petrel->wait_empty(600), 'all are delivered' or diag $petrel->status;
ok Petrel::wait_for(sub { $sink->count('messages') >= $posts }), 'to the sink';

my (%ids, $deliveries);
for my $file ($sink->files) {
    my $content = Petrel::slurp($file);
    my ($n) = $content =~ /^Subject: post (\d+)\r?$/m;
    my ($id) = $content =~ /^Received: .*?\bid (\w{10}-\w{8})/ms;
    $ids{$n // '?'}{$id // '?'}++;
    $deliveries++;
}
my @lost = grep { !$ids{$_} } 1 .. $posts;
my @twice = grep { keys %{ $ids{$_} } > 1 } keys %ids;
my @other = grep { $ids{$_} && !$ids{$_}{ $id{$_} // '' } } 1 .. $posts;
is "@lost", '', 'none is lost';
is "@twice", '', 'none was accepted twice';
is "@other", '', 'each came with the id of its answer';
is scalar(keys %ids), $posts, 'and nothing else';
note sprintf '%d posts in %.0f s: %d answers, %d of them replayed, %d cuts, %d ends; %d lost, %d accepted twice, %d delivered again after a kill',
    $posts, time - $began, $answers, $seen{replayed} // 0, $seen{cuts}, $seen{ends}, scalar @lost, scalar @twice, $deliveries - $posts;
$petrel->stop;
done_testing;
