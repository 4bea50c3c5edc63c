#!/usr/bin/perl
# Quotas for the operator: what is used in the status, its JSON and the metrics, its reset; and the mail of sendmail(1), which
# is counted when it is first loaded: what is too much waits and goes by itself.
use lib 't/e2e';
use E2E;
use Schema;

my $sink = Petrel::sink();
my $relay = "smtp:[127.0.0.1]:$sink->{port}";
my $http = Petrel::free_port();
my $petrel = Petrel->new(routes => "limited.test smtp://127.0.0.1:$sink->{port}?quota=4/d,3/h\n* smtp://127.0.0.1:$sink->{port}?quota=100/d", http => "127.0.0.1:$http",
    quotas => "sender:a\@here.test 5/d,4/h\ndomain:whole.test 4/d\nuid:* 3/d\n")->start;
sub send_some {
    my ($from, $count, $to) = @_;
    my $passed = 0;
    for (1 .. $count) { $passed += $petrel->send_mail($from, $to // 'you@there.test', "Subject: q\n\nq\n") =~ /queued as/ }
    return $passed;
}
sub status { my ($code, $text) = $petrel->run('status', '--quotas', @_); return $text }
sub quota { my $who = shift; my ($q) = grep { $_->{who} eq $who } @{ decode_json(status('--json'))->{quotas} }; return $q }

unlike status(), qr/^quotas/m, 'nothing is used yet';
is send_some('a@here.test', 2), 2, 'two are sent';
is send_some('b@whole.test', 3), 3, 'three of a domain';
ok $petrel->wait_empty, 'all have left';
like status(), qr/^quotas .*\n(?=.*^ +sender:a\@here\.test +2 of +4 an hour$)(?=.*^ +sender:a\@here\.test +2 of +5 a day$)(?=.*^ +domain:whole\.test +3 of +4 a day$)/ms, 'status --quotas' or diag status();
unlike +($petrel->run('status'))[1], qr/^quotas/m, 'only if asked for';
my $of = quota('sender:a@here.test');
is_deeply [map { "$_->{used} $_->{limit} $_->{period} $_->{next_ms}" } @{ $of->{limits} }], ['2 4 hour 0', '2 5 day 0'], 'in JSON';
is quota($relay)->{relay}, JSON::PP::true, 'the next hop, too';
my @order = map { $_->{who} } @{ decode_json(status('--json'))->{quotas} };
is $order[0], 'domain:whole.test', 'those with most of it first';
my ($code, $page) = Petrel::command('', 'curl', '-s', '-m', '20', "http://127.0.0.1:$http/metrics");
like $page, qr/^petrel_quota_used_ratio\{relay="\Q$relay\E"\} 0?\.0?5$/m, 'the metric' or diag $page =~ /(.*quota.*)/g;

is send_some('a@here.test', 5), 2, 'then the hour has had four';
$of = quota('sender:a@here.test');
cmp_ok $of->{limits}[0]{next_ms}, '>', 1000 * time, 'the next one: when';
is $of->{limits}[0]{used}, 4, 'all are used';
like status(), qr/^ +sender:a\@here\.test +4 of +4 an hour; next \S+ .*\(in .*min.*\)$/m, 'for people, too';
is_deeply [$petrel->run(qw(quota reset sender:A@here.test user:nobody))], [65, "sender:A\@here.test begins anew\nuser:nobody has used nothing, or has no quota\n"], 'reset';
is send_some('a@here.test', 5), 4, 'begins anew';
is +($petrel->run(qw(quota)))[0], 64, 'usage';
is +($petrel->run(qw(quota reset)))[0], 64, 'of both';
like +($petrel->run(qw(help quota)))[1], qr/quota reset WHO/, 'and help';

# A next hop that is used up; its reset lets mail go.
send_some('n@none.test', 5, 'x@limited.test');
ok Petrel::wait_for(sub { my ($q) = grep { $_->{who} eq $relay } @{ decode_json(status('--json'))->{quotas} }; $q && $q->{limits}[0]{used} >= 3 }), 'the next hop is used up';
my $left = sub { decode_json($petrel->status)->{queue}{active} };
ok Petrel::wait_for(sub { $left->() > 0 }), 'mail waits';
for (1 .. 4) { is +($petrel->run('quota', 'reset', $relay))[0], 0, 'reset'; last if Petrel::wait_for(sub { $left->() == 0 }, 5) }
ok $petrel->wait_empty, 'after resets all has gone';

# --- sendmail(1)

sub mail { my @to = @_; my ($code, $text) = $petrel->run('sendmail', '-f', 'cron@local.test', @to); return $code }
sub sent { return Petrel::count($petrel->log, qr/to=<local\d+\@there\.test>.*status=sent/) }
my $me = "uid:$>";
$petrel->stop;
is mail("local$_\@there.test"), 0, "submitted $_" for 1 .. 5;
$petrel->start;
ok Petrel::wait_for(sub { sent() == 3 }), 'three a day leave';
ok $petrel->wait_log(qr/(\S+): waits: Quota: 3 recipients a day of uid $> are used; the next in 2\dh/), 'the log says why others wait';
my ($id) = $petrel->log =~ /(\S+): waits: Quota/;
is Petrel::count($petrel->log, qr/waits: Quota/), 2, 'of two messages, once each';
is Petrel::count($petrel->log, qr/warning: .*recipients a day of uid $> are used/), 1, 'one warning for the window';
like +($petrel->run('queue', 'why', $id))[1], qr/3 recipients a day of uid $> are used/, 'queue why';
is quota($me)->{limits}[0]{used}, 3, 'used';
$petrel->run('queue', 'retry', $id);
is Petrel::count($petrel->log, qr/ $id: uid=\d+, from=/), 1, 'and is not logged as new mail' or diag join "\n", grep { /$id/ } split /\n/, $petrel->log;
$petrel->stop;
$petrel->start;
ok $petrel->wait_log(qr/ready|started|listening/), 'restarted';
is quota($me)->{limits}[0]{used}, 3, 'a restart does not forget';
is sent(), 3, 'nor a retry: nothing leaves';
is +($petrel->run('quota', 'reset', $me))[0], 0, 'a reset';
ok Petrel::wait_for(sub { sent() == 5 }), 'lets them go';
is quota($me)->{limits}[0]{used}, 2, 'and they count';
is mail("local6\@there.test", "local7\@there.test"), 0, 'two more';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/waits: Quota/) == 3 }), 'do not fit as a whole';
is mail("local8\@there.test"), 0, 'one';
ok Petrel::wait_for(sub { sent() == 6 }), 'does';
$petrel->configure(quotas => "uid:* 10/d\n")->run('reload');
ok Petrel::wait_for(sub { sent() == 8 }), 'a larger quota lets them go';
is mail(map { "local$_\@there.test" } 10 .. 30), 0, 'more than a day may have';
ok $petrel->wait_log(qr/to=<local30\@there\.test>.*status=bounced \(.*more recipients than the 10 a day of uid $>/), 'can never pass, and bounces';
is quota($me)->{limits}[0]{used}, 5, 'counts for nothing' or diag status();

# An alias is one recipient, with any members: as it was given.
my $team = Petrel::spit("$petrel->{dir}/aliases", 'team: ' . join(', ', map { "member$_\@there.test" } 1 .. 20) . "\n");
$petrel->stop;
$petrel->configure(quotas => "uid:* 50/d\n", aliases => $team, local_domains => 'petrel.test')->start;
my $used = quota($me)->{limits}[0]{used};
is mail('team@petrel.test', 'local39@there.test'), 0, 'to twenty, and to one';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/to=<member\d+\@there\.test>, orig_to=<team\@petrel\.test>.*status=sent/) == 20 }), 'all get it' or diag $petrel->log;
ok Petrel::wait_for(sub { quota($me)->{limits}[0]{used} == $used + 2 }), 'that are two recipients' or diag status();

# In seconds: what waits goes by itself.
$petrel->configure(quotas => "uid:* 2/s\n")->run('reload');
$petrel->stop;
is mail("local$_\@there.test"), 0, 'submitted' for 40 .. 45;
my $before = sent();
$petrel->start;
ok Petrel::wait_for(sub { sent() == $before + 6 }), 'six at two a second: all leave';
cmp_ok Petrel::count($petrel->log, qr/waits: Quota/), '>', 3, 'after a wait';
is $petrel->stop, 0, 'it ends well';
done_testing;
