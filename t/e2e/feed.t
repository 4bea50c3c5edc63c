#!/usr/bin/perl
# The feed over real sockets, as t/scenarios/feed-* have it in virtual time: backlogged mail leaves in order of arrival,
# a flush does not hold up new mail, and a target with slow servers leaves sessions to another.
use strict;
use warnings;
use List::Util qw(first);
use Test::More;
use lib 't/e2e';
use Client;
use Petrel;
use Sink;

sub send_some {
    my ($petrel, $domain, @names) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    $client->send(from => 'a@sender.test', to => "$_\@$domain", data => "Subject: $_\r\n\r\nb\r\n") =~ /^250/ or die "$_ is not taken" for @names;
    $client->quit;
    return;
}

# The names, in the order in which they were sent.
sub sent { my $petrel = shift; return $petrel->log =~ /to=<([^@>]+)@\S+ .*status=sent/g }

# --- Order

{
    my $sink = Sink->start;
    my $petrel = Petrel->new(active_limit => 10, routes => "* smtp://127.0.0.1:$sink->{port}?concurrency=1")->start;
    my @names = map { "m$_" } 1 .. 60;
    $sink->hold('dot');
    send_some($petrel, 'x.test', @names[0 .. 39]);
    $sink->wait_content;
    my ($code, $status) = $petrel->run('status', '--json');
    like $status, qr/"backlogged": ?[1-9]/, 'most of it waits on disk';
    $sink->tell($sink->{listen}, 'set delay.dot=20');
    $sink->ask('hurry');
    send_some($petrel, 'x.test', @names[40 .. 59]);
    ok $petrel->wait_empty, 'all is delivered' or diag $petrel->log;
    is_deeply [sent($petrel)], \@names, 'in order of arrival';
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
    ok Petrel::wait_for(sub { ($petrel->run('status', '--json'))[1] =~ /"active": ?40\b/ }), 'all wait in memory' or diag +($petrel->run('status', '--json'))[1];
    $sink->let_go('dot');
    ok $petrel->wait_empty, 'all is delivered';
    my @sent = sent($petrel);
    is_deeply [grep { /^new/ } @sent], \@new, 'new mail in its order';
    my $last = first { $sent[$_] eq 'new10' } 0 .. $#sent;
    # The first deferred message was under way; then they take turns, of which one session may have taken two before.
    cmp_ok $last, '<=', 2 * @new + 2, 'and every second message is new';
    is $petrel->stop, 0, 'it ends well';
}

# --- Two targets

{
    my ($slow, $fast) = (Sink->start, Sink->start);
    $slow->tell($slow->{listen}, 'set delay.dot=200');
    my $petrel = Petrel->new(delivery_session_limit => 2, routes => "slow.test smtp://127.0.0.1:$slow->{port}\n* smtp://127.0.0.1:$fast->{port}")->start;
    send_some($petrel, 'slow.test', map { "slow$_" } 1 .. 20);
    $slow->wait_content;
    send_some($petrel, 'x.test', 'fast');
    ok $petrel->wait_empty, 'all is delivered';
    my @sent = sent($petrel);
    my $place = first { $sent[$_] eq 'fast' } 0 .. $#sent;
    cmp_ok $place, '<', 12, 'the other target need not wait until the slow one has no mail left';
    is $petrel->stop, 0, 'it ends well';
}

done_testing;
