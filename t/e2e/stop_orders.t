#!/usr/bin/perl
# Commands for mail whose delivery hangs are carried out at a clean stop (SIGTERM, SIGINT), which cuts that delivery: after the next
# start nothing of it is delivered, a bounce comes once, and held mail is held.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Sink;
use Petrel;
use Test::More;

my $id_pattern = qr/[0-9A-Z]{10}-[0-9A-Z]{8}/;
my $sink = Sink->start;
my $petrel = Petrel->new(routes => "here.test smtp://127.0.0.1:$sink->{port}\n* smtp://127.0.0.1:$sink->{port}", drain_timeout => '1s');

sub queue { return $petrel->run('queue', @_) }
sub active { my $count = shift; return Petrel::wait_for(sub { (() = (queue('ls'))[1] =~ /^$id_pattern active /mg) == $count }) }

my $round = 0;
for my $signals (['TERM'], ['INT'], ['INT', 'INT']) {
    my $how = join ' and ', map { "SIG$_" } @$signals;
    my $n = ++$round;
    $sink->stop;
    ok $sink->again('--delay', 'data:600000'), "$how: a sink that hangs";
    $petrel->start;
    my %id = map { $_ => ($petrel->send_mail("anna$n\@here.test", "$_$n\@live.test", "Subject: x\n\nx") =~ /queued as ($id_pattern)/)[0] } qw(rm bounce hold none);
    ok active(4), 'four are being delivered';
    is_deeply [queue('rm', $id{rm})], [0, "$id{rm} removed when its delivery ends\n"], 'rm';
    is_deeply [queue('bounce', $id{bounce})], [0, "$id{bounce} returned to its sender when its delivery ends\n"], 'bounce';
    is_deeply [queue('hold', $id{hold})], [0, "$id{hold} held; its delivery ends first\n"], 'hold';
    if (@$signals > 1) {
        kill $signals->[0], $petrel->{pid};
        ok $petrel->wait_log(qr/interrupted: stopping$/m), 'the first one waits for what runs';
    }
    is $petrel->stop($signals->[-1]), 0, 'it stops in good order';
    like $petrel->log, qr/ $id{rm}: removed by the operator/, 'what was removed is told';
    unlike +(queue('ls'))[1], qr/$id{rm}|$id{bounce}/, 'and is not in the queue, nor what was returned';
    like +(queue('ls'))[1], qr/^$id{hold} hold /m, 'what was held is held';
    $sink->stop;
    ok $sink->again, 'a good sink';
    $petrel->start;
    ok $sink->wait_for("none$n\@live.test"), 'after the next start the rest is delivered';
    my $notice = $sink->wait_for("anna$n\@here.test");
    is $notice && $notice->{from}, '', 'the bounce comes';
    like $notice->{data}, qr/returned by the operator.*bounce$n\@live\.test/s, 'and tells why';
    ok Petrel::wait_for(sub { (queue('ls'))[1] =~ /\A$id{hold} hold [^\n]*\n\z/ }), 'only what is held is left';
    is_deeply [map { scalar $sink->for_address("$_$n\@live.test") } qw(rm bounce hold)], [0, 0, 0], 'none of the three was delivered';
    is scalar $sink->for_address("anna$n\@here.test"), 1, 'the sender was told once';
    is +(queue('rm', '--all'))[0], 0, 'rm';
    is $petrel->stop, 0, 'it stops in good order';
}
done_testing;
