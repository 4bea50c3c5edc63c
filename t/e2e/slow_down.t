#!/usr/bin/perl
# A site that has asked for less mail: the finding names it, and the operator's command lets the mail go. The
# learnt rate comes from the file of an earlier daemon.
use lib 't/e2e';
use E2E;

plan skip_all => 'no sink' unless -x "$Petrel::root/$Petrel::build/t/bench/sink";

my $count = 40;
my $sink = Sink->start;
my $site = "smtp:[127.0.0.1]:$sink->{port}?tls=none";
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?tls=none")->start;
$petrel->send_mail('a@sender.test', 'u@d.test', "Subject: x\n\nx\n");
ok $petrel->wait_empty, 'one message passes';
is $petrel->stop, 0, 'a stop';

# What a daemon writes after two minutes of refusals a moment ago.
my $file = "$petrel->{dir}/spool/lock/sites";
my ($key) = Petrel::slurp($file) =~ /"site":"([^"]*)"/;
like $key, qr/ \Q$site\E\z/, 'the site has a state';
my $now = time . '000';
Petrel::spit($file, JSON::PP->new->canonical->encode({
    version => 1, at_ms => $now + 0, site => $key, window => 5, ceiling => {},
    rate => { phase => 3, rate => 17, known => 17, hold_ms => 300000, next_at_ms => $now + 300000, refused_at_ms => $now + 0, begun_ms => $now - 120000 },
}) . "\n");
$petrel->start;
$petrel->send_mail('a@sender.test', "u$_\@d.test", "Subject: x\n\nx\n") for 1 .. $count;
my $find = sub { my ($finding) = grep { $_->{code} eq 'site_slow' } @{ JSON::PP::decode_json($petrel->status)->{findings} }; return $finding };
ok Petrel::wait_for(sub { $find->() }), 'a finding';
like $find->()->{text}, qr/^\Q$site\E has asked us to slow down for \d+ (?:seconds|minutes): 61 messages in an hour; \d+ recipients/, 'names the site, since when, and the rate';
like $find->()->{remedy}, qr/queue retry --forget-limits/, 'and the way out';
cmp_ok $petrel->queued, '>', $count - 5, 'the mail waits';

is_deeply [$petrel->run(qw(queue retry --forget-limits nowhere))], [65, "petrel queue: no such site ('petrel status --sites' lists them): nowhere\n"], 'an unknown site';
is +($petrel->run(qw(queue retry --forget-limits)))[0], 64, 'a site is needed';
is_deeply [$petrel->run(qw(queue retry --forget-limits), $site)], [0, "$site: its learnt limits are forgotten\n"], 'the command';
ok $petrel->wait_empty, 'all mail leaves';
like $petrel->log, qr/the operator forgets the learnt limits of \Q$site\E/, 'and it is logged';
ok Petrel::wait_for(sub { !$find->() }), 'the finding is over';
is $petrel->stop, 0, 'ends well';
is +($petrel->run(qw(queue retry --forget-limits), $site))[0], 69, 'without a daemon there is nothing to forget';
done_testing;
