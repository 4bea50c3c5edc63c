#!/usr/bin/perl
# The feed over real sockets, as t/scenarios/feed-* have it in virtual time: backlogged mail leaves in order of arrival,
# a flush does not hold up new mail, and a target with slow servers leaves sessions to another. t/bench/simulate.c
# names the same order for the same case: what the scenarios promise is what the daemon does.
use strict;
use warnings;
use List::Util qw(first);
use Test::More;
use lib 't/e2e';
use Client;
use Petrel;
use Sink;

# Each has a name, and the sender of that name if wanted.
sub send_some {
    my ($petrel, $domain, @names) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    for my $name (@names) {
        my $from = $name =~ /^by(\d+)$/ ? "u$1\@sender.test" : 'a@sender.test';
        $client->send(from => $from, to => "$name\@$domain", data => "Subject: $name\r\n\r\nb\r\n") =~ /^250/ or die "$name is not taken";
    }
    $client->quit;
    return;
}

# The names, in the order in which they were sent.
sub sent { my $petrel = shift; return $petrel->log =~ /to=<([^@>]+)@\S+ .*status=sent/g }

# The same of a scenario with the settings of the daemon, in which @names arrive in this order.
sub simulated {
    my ($petrel, $scenario, @names) = @_;
    my ($code, $trace) = Petrel::command('', "$Petrel::build/t/bench/simulate", '-c', $petrel->conf, '--trace', Petrel::spit("$petrel->{dir}/scenario", $scenario));
    die $trace if $code != 0;
    return map { $names[$_ - 1] } $trace =~ /^\S+ sent 1 of message (\d+) /mg;
}

# --- Order

{
    my $sink = Sink->start;
    my $petrel = Petrel->new(active_limit => 10, routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=1")->start;
    my @names = map { "m$_" } 1 .. 60;
    $sink->hold('dot');
    send_some($petrel, 'x.test', @names[0 .. 39]);
    $sink->wait_content;
    like $petrel->status, qr/"backlogged": ?[1-9]/, 'most of it waits on disk';
    $sink->tell($sink->{listen}, 'set delay.dot=20');
    $sink->ask('hurry');
    send_some($petrel, 'x.test', @names[40 .. 59]);
    ok $petrel->wait_empty, 'all is delivered' or diag $petrel->log;
    is_deeply [sent($petrel)], \@names, 'in order of arrival';
    is_deeply [simulated($petrel, <<~'END', @names)], \@names, 'as simulated';
        transport concurrency=1
        site s delay.message=200ms
        domain x.test site s
        arrive domain=x.test count=40
        arrive domain=x.test count=20 at=300ms every=20ms
        END
    is $petrel->stop, 0, 'it ends well';
}

# --- Senders, of which some pass the backlog

{
    my $sink = Sink->start;
    my $petrel = Petrel->new(active_limit => 40, routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=1")->start;
    my @names = ((map { "m$_" } 1 .. 60), map { "by$_" } 0 .. 19);
    $sink->hold('dot');
    send_some($petrel, 'x.test', $names[0]);
    $sink->wait_content;
    send_some($petrel, 'x.test', @names[1 .. $#names]);
    like $petrel->status, qr/"backlogged": ?[1-9]/, 'most of it waits on disk';
    $sink->let_go('dot');
    ok $petrel->wait_empty, 'all is delivered' or diag $petrel->log;
    my @order = simulated($petrel, <<~'END', @names);
        transport concurrency=1
        site s delay.message=10s
        domain x.test site s
        arrive domain=x.test sender=a@sender.test
        arrive domain=x.test sender=a@sender.test count=59 at=1s
        arrive domain=x.test sender=u%d@sender.test count=20 at=2s
        END
    is_deeply [sent($petrel)], \@order, 'other senders pass a backlog as simulated';
    is_deeply [grep { /^m/ } @order], [@names[0 .. 59]], 'which keeps its order';
    cmp_ok +(first { $order[$_] eq 'by0' } 0 .. $#order), '<', 4, 'the first of them soon';
    is $petrel->stop, 0, 'it ends well';
}

# --- A flush

{
    my $sink = Sink->start('--fail-rcpt', 'old:450');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=1")->start;
    my @old = map { "old$_" } 1 .. 30;
    my @new = map { "new$_" } 1 .. 10;
    send_some($petrel, 'x.test', @old);
    ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/status=deferred/) >= 30 }), 'thirty are deferred';
    $petrel->wait_filed;
    $sink->stop;
    $sink->again;
    $sink->hold('dot');
    is +($petrel->run('queue', 'retry', '--all'))[0], 0, 'the operator flushes them';
    $sink->wait_content;
    send_some($petrel, 'x.test', @new);
    ok Petrel::wait_for(sub { $petrel->status =~ /"active": ?40\b/ }), 'all wait in memory' or diag $petrel->status;
    $sink->let_go('dot');
    ok $petrel->wait_empty, 'all is delivered';
    my @sent = sent($petrel);
    is_deeply [grep { /^new/ } @sent], \@new, 'new mail in its order';
    my $last = first { $sent[$_] eq 'new10' } 0 .. $#sent;
    # The first deferred message was under way; then they take turns, of which one session may have taken two before.
    cmp_ok $last, '<=', 2 * @new + 2, 'and every second message is new';
    my @order = simulated($petrel, <<~'END', @old, @new);
        transport concurrency=1
        site s delay.message=10ms tempfail=1/1
        domain x.test site s
        arrive domain=x.test count=30 every=10ms
        at 1m site s tempfail=0/1 delay.message=10s
        at 2m flush
        arrive domain=x.test count=10 at=125s
        END
    is_deeply \@sent, \@order, 'as simulated';
    is $petrel->stop, 0, 'it ends well';
}

# --- Two targets

{
    my ($slow, $fast) = (Sink->start, Sink->start);
    my $petrel = Petrel->new(delivery_session_limit => 2, routes => "slow.test smtp://127.0.0.1:$slow->{port}\n* smtp://127.0.0.1:$fast->{port}")->start;
    my @names = ((map { "slow$_" } 1 .. 20), 'fast');
    $slow->hold('dot');
    send_some($petrel, 'slow.test', @names[0 .. 19]);
    ok Petrel::wait_for(sub { (() = glob "$slow->{base}/*/incoming.*") == 2 }), 'a slow target has both sessions';
    send_some($petrel, 'x.test', 'fast');
    $slow->ask('hurry');
    # The next of the slow target is not answered before.
    ok Petrel::wait_for(sub { grep { $_ eq 'fast' } sent($petrel) }), 'the other gets one of them' or diag $petrel->log;
    Petrel::wait_for(sub { (() = sent($petrel)) == 3 });
    is_deeply [sort(sent($petrel))], [qw(fast slow1 slow2)], 'when their transactions end';
    $slow->let_go('dot');
    ok $petrel->wait_empty, 'all is delivered';
    my @order = simulated($petrel, <<~'END', @names);
        target other
        site slow delay.message=10s
        site fast
        domain slow.test site slow
        domain x.test site fast target other
        arrive domain=slow.test count=20
        arrive domain=x.test at=5s
        END
    is_deeply [sort @order[0 .. 2]], [qw(fast slow1 slow2)], 'as simulated';
    is $petrel->stop, 0, 'it ends well';
}

# --- Two targets, of which one has an idle session

{
    my ($slow, $fast) = (Sink->start, Sink->start);
    my $petrel = Petrel->new(delivery_session_limit => 2, smtp_connection_cache_time_limit => '10m',
        routes => "slow.test smtp://127.0.0.1:$slow->{port}\n* smtp://127.0.0.1:$fast->{port}")->start;
    send_some($petrel, 'x.test', 'fast1');
    ok $petrel->wait_empty, 'its session stays idle';
    $slow->hold('dot');
    send_some($petrel, 'slow.test', map { "slow$_" } 1 .. 20);
    ok Petrel::wait_for(sub { (() = glob "$slow->{base}/*/incoming.*") == 2 }), 'a slow target has all places';
    send_some($petrel, 'x.test', 'fast2');
    $slow->ask('hurry');
    ok Petrel::wait_for(sub { grep { $_ eq 'fast2' } sent($petrel) }), 'the idle session gets one of them' or diag $petrel->log;
    Petrel::wait_for(sub { (() = sent($petrel)) == 4 });
    is_deeply [sort(sent($petrel))], [qw(fast1 fast2 slow1 slow2)], 'when their transactions end';
    $slow->let_go('dot');
    ok $petrel->wait_empty, 'all is delivered';
    is $petrel->stop, 0, 'it ends well';
}

done_testing;
