#!/usr/bin/perl
# A site dies and works again: an event each, however many messages and probes there are.
use lib 't/e2e';
use E2E;

my $sink = Sink->start;
$sink->stop;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", log_style => 'json', log_level => 'debug', minimal_backoff_time => '1s', maximal_backoff_time => '1s')->start;
sub told { my $event = shift; return Petrel::count($petrel->log, qr/"event":"$event"/) }

$petrel->send_mail('a@x.test', "b$_\@y.test", "Subject: x\n\nx") for 1 .. 5;
ok Petrel::wait_for(sub { told('site_dead') == 1 }), 'the site is dead';
ok $petrel->wait_log(qr/"event":"site_dead".*127\.0\.0\.1:?\S* is dead: connect to 127\.0\.0\.1\S*: Connection refused/), 'and why' or diag $petrel->log;
ok Petrel::wait_for(sub { told('deferred') >= 15 }), 'mail is tried again and again';
is told('site_dead'), 1, 'which is no new death';
$sink->again;
ok Petrel::wait_for(sub { told('site_alive') == 1 }), 'the site works again';
ok $petrel->wait_empty, 'all is delivered';
is told('site_alive'), 1, 'once';
is $petrel->stop, 0, 'it ends';
done_testing;
