#!/usr/bin/perl
# `petrel status` counts what `petrel queue ls` has, place by place, and all that was taken.
use strict;
use warnings;
use JSON::PP;
use Test::More;
use lib 't/e2e';
use Petrel;

my $petrel = Petrel->new(routes => "held.test hold\nwhole.test smtp://127.0.0.1:1?defragment=yes\n* smtp://127.0.0.1:1")->start;

sub fragment { my ($id, $number) = @_; return "Subject: x\nContent-Type: message/partial; id=\"$id\"; number=$number; total=3\n\nx\n" }
sub status { my ($code, $said) = $petrel->run('status', '--json'); return decode_json($said) }
sub listed { my %count; $count{ decode_json($_)->{queue_name} }++ for split /\n/, ($petrel->run('queue', 'ls', '--json'))[1]; return \%count }

my $taken = 0;
for ('a@held.test', 'b@away.test', 'c@away.test') { $petrel->send_mail('s@s.test', $_, "Subject: x\n\nx\n"); $taken++ }
for ([1, 'one@x'], [2, 'one@x'], [1, 'two@x']) { $petrel->send_mail('s@s.test', 'd@whole.test', fragment($_->[1], $_->[0])); $taken++ }
for ('e@held.test', 'f@away.test') {
    my ($code, $said) = $petrel->run({input => "Subject: x\n\nx\n"}, 'sendmail', '-f', 's@s.test', $_);
    is $code, 0, "sendmail takes mail for $_" or diag $said;
    $taken++;
}
my %want = (hold => 2, deferred => 3, defrag => 3);
for my $life (1, 2) {
    my $now = {};
    Petrel::wait_for(sub { my $queue = status()->{queue}; $now = {map { $_ => $queue->{$_} } grep { $queue->{$_} } keys %$queue}; return join(' ', map { "$_ " . ($now->{$_} // 0) } sort keys %want) eq 'deferred 3 defrag 3 hold 2' });
    is_deeply $now, \%want, "life $life: status counts each in its place";
    is_deeply listed(), \%want, "life $life: queue ls has the same";
    like +($petrel->run('status'))[1], qr/^queue      0 incoming, 0 active, 3 deferred, 2 hold, 0 corrupt, 3 defrag$/m, "life $life: in words, too";
    is status()->{totals}{stored}, $taken, 'what came by sendmail(1) counts as stored' if $life == 1;
    is $petrel->stop, 0, "life $life: ends well";
    $petrel->start if $life == 1;
}
done_testing;
