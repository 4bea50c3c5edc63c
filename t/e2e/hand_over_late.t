#!/usr/bin/perl
# SIGTERM with stop = hand_over, while a client is in the middle of its message and a receiver keeps one waiting: both go, too.
# The host may never come back, so nothing that it has acknowledged stays.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Client;
use Petrel;
use Sink;
use Test::More;

my $sink = Sink->start;
my %door = map { $_ => Petrel::free_port() } qw(one two);
my $peers = join ', ', map { "$_=127.0.0.1:$door{$_}" } qw(one two);

sub host {
    my ($name, $routes) = @_;
    my $host = Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers, cluster_secret => 'a secret that all hosts of the group know', routes => $routes,
        drain_delay => 0, drain_timeout => '1s', log_level => 'info', stop => 'hand_over', hand_over_timeout => '60s');
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer")->start;
}

my $one = host(one => "* smtp://127.0.0.1:$sink->{port}");
my $two = host(two => '* hold');
ok $sink->hold('mail'), 'a receiver that does not answer';
my $client = Client->greeted($one->{port});
like $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: slow\r\n\r\nx\r\n"), qr/^250/, 'a message for it';
ok Petrel::wait_for(sub { $sink->count('open') }), 'is being sent';
$client->say('MAIL FROM:<a@x.test>');
$client->say('RCPT TO:<c@y.test>');
like $client->say('DATA'), qr/^354/, 'another one';
$client->put("Subject: late\r\n\r\n");
kill 'TERM', $one->{pid};
ok $one->wait_log(qr/drain: giving/), 'SIGTERM: the queue goes';
ok $two->wait_log(qr/from=one, was=/), 'with what was being sent';
like $client->say("x\r\n."), qr/^250/, 'the client is served to its end';
my $pid = delete $one->{pid};
is Petrel::reap($pid, 0), 0, 'a good end';
like $one->log, qr/drain: gone: messages given: 2: messages left: 0,/, 'with both';
is $one->queued, 0, 'nothing stays';
is $two->queued, 2, 'both are there';
is $two->stop('INT'), 0, 'a good end';
done_testing;
