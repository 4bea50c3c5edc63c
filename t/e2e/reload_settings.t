#!/usr/bin/perl
# Every setting that a reload may change, one after the other, up, down and back, while mail is in each state: waiting,
# in a session, between verdict and mark, deferred, held, behind a quota, of an alias, a fragment. Then the weather is fine:
# the daemon lives, each recipient has had the mail once, nothing is quarantined, and nothing is left. The list of settings
# is that of config.example: a new one needs two values here.
use lib 't/e2e';
use E2E;
use Fragments;

my $dir = tempdir('reload-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $later = Petrel::free_port();
my $route = "smtp://127.0.0.1:$sink->{port}?tls=none";
# The last pattern goes to a site of its own, since the mail of the first one stands in its sessions.
my $waits = Sink->start;
my %bound = (
    routes => "wait.test smtp://127.0.0.1:$waits->{port}?tls=none&concurrency=2\nquota.test $route&quota=1/d\nrate.test $route&rate=1/d&reuse=1\n"
        . "hold.test hold\nfrag.test $route&defragment=yes\ndefer.test smtp://127.0.0.1:$later?tls=none&minimal_backoff=1h", relay => $route,
    aliases => Petrel::spit("$dir/aliases", "list: a\@wait.test, b\@flow.test\n"), local_domains => 'here.test', local => 'error:5.1.1 nobody',
);
my $petrel = Petrel->new(%bound)->start;
Petrel::spit("$dir/users", ($petrel->run({input => "secret\n"}, 'passwd', 'joe'))[1]);

# Two values that the mail of this test outlives; undef: the setting is unset, which is a third value.
my %pairs = (
    relay_from => ['127.0.0.0/8', '127.0.0.0/8, 192.0.2.0/24'], auth_users => ["$dir/users"], auth_cleartext => ['loopback', 'no'],
    auth_failure_limit => [0, 50], sender_login => ['joe joe@x.test', 'joe *'], quotas => ['all 900/s', 'user:* 100000/h'],
    sender_domains => ['x.test, here.test, petrel.test', '.test, x.test, here.test'], allow_open_relay => ['yes', 'no'], proxy_from => ['192.0.2.1', '192.0.2.0/24'],
    etrn => ['off', 'wait.test'], mt_priority => ['all', 'trusted'], routes => [undef, undef], relay => ["$route&rate=9/s", "$route&dkim=no"],
    relay_password => [map { +{relay => "smtp://joe\@127.0.0.1:$sink->{port}?tls=none&auth_clear=yes", relay_password => $_} } 'one', 'two'],
    auth_passwords => [Petrel::spit("$dir/one", "a.test joe x\n"), Petrel::spit("$dir/two", "a.test joe y\n")], sender_routes => ["<> $route", "x\@x.test $route"],
    rewrite => ['local ann@x.test', 'local bob@x.test'], local => [$route, 'error:5.1.1 none'], local_domains => ['here.test, other.test', 'here.test, third.test'],
    aliases => [undef, undef], root => ['ann@flow.test', 'bob@flow.test'], srs => ['no', 'yes'], srs_domain => ['here.test', 'there.test'],
    srs_secret => ['s' x 20, 't' x 20], message_size_limit => ['1M', '90M'], recipient_limit => [5, 5000],
    server_session_limit => [20, 2000], client_session_limit => [10, 90], client_session_rate => ['99/s', '999/s'], client_message_rate => ['99/s', '999/s'],
    client_recipient_rate => ['99/s', '999/s'], server_session_rate => ['99/s', '999/s'], server_message_rate => ['99/s', '999/s'],
    server_recipient_rate => ['99/s', '999/s'], rate_exempt => ['192.0.2.1', '127.0.0.1'], check_helo => ['yes', 'no'], check_sender => ['yes', 'no'],
    greet_delay => ['1s', '0s'], server_tls_session_limit => [9, 900], bounce_sender => ['reports@x.test', '<>'], smtpd_starttls_timeout => ['9s', '90s'], hopcount_limit => [20, 99],
    smtpd_hard_error_limit => [5, 50], smtpd_soft_error_limit => [2, 40], smtpd_error_sleep_time => ['0s', '2s'], smtpd_junk_command_limit => [20, 900],
    smtpd_timeout => ['30s', '9m'], smtpd_data_timeout => ['30s', '9m'], smtpd_min_data_rate => [0, 90], drain_timeout => ['9s', '90s'], drain_delay => ['0s', '9s'],
    stop => ['keep'], hand_over_timeout => ['9s', '90s'], dns_trust => ['yes', 'no'], dane => ['no', 'auto'], mta_sts => ['no', 'yes'], mta_sts_port => [444, 445],
    smtp_port => [26, 27], smtp_bind => ['127.0.0.1'], smtp_family => ['ipv4', 'any'], smtp_connect_timeout => ['9s', '90s'], smtp_min_data_rate => [0, 900],
    smtp_mx_address_limit => [1, 9], smtp_connection_cache_time_limit => ['0s', '5s'], active_limit => [3, 30000], active_recipient_limit => [3, 90000],
    delivery_session_limit => [3, 900], initial_destination_concurrency => [1, 9], default_destination_concurrency_limit => [1, 90],
    default_destination_concurrency_positive_feedback => ['0', '1/4'], default_destination_concurrency_negative_feedback => ['0', '1/concurrency'],
    default_destination_concurrency_failed_cohort_limit => [0, 9], default_destination_recipient_limit => [1, 99], default_destination_rate_delay => ['9h', '1s'],
    default_transport_rate_delay => ['9h', '1s'], default_destination_rate => ['1/d', '9/m'], default_destination_adaptive => ['no', 'yes'],
    default_connection_reuse_count_limit => [1, 9], providers => ['p=*.p.test', 'p=*.p.test q=*.q.test'], site_active_share => [0, 10], sender_turns => ['no', 'yes'],
    bulk_size => ['1', '90M'], default_delivery_slot_cost => [0, 2], default_delivery_slot_loan => [0, 9], default_delivery_slot_discount => [0, 100],
    default_minimum_delivery_slots => [0, 9], minimal_backoff_time => ['1s', '1h'], maximal_backoff_time => ['3601s', '9h'], maximal_queue_lifetime => ['1d', '9d'],
    bounce_queue_lifetime => ['1d', '9d'], delay_warning_time => ['9h', '20h'], bounce_size_limit => ['1K', '90K'], defrag_max_parts => [50, 5000],
    defrag_max_size => ['1M', '900M'], defrag_max_sets => [9, 90000], defrag_max_sets_per_sender => [9, 900], defrag_max_sets_per_client => [9, 900],
    defrag_max_total => ['9M', '9G'], defrag_key => ['id', 'strict'], defrag_subject_fallback => ['yes', 'no'], defrag_on_timeout => ['bounce', 'hold'],
    partial_policy => ['reject', 'pass'], http_names => ['a.test', 'b.test'], http_token => ['a' x 40, 'b' x 40], http_read_token => ['c' x 40, 'd' x 40],
    metrics_sites => [1, 9], history_size => ['1M', '2M'], history_age => ['1h', '90d'], events => ["file:$dir/events", "file:$dir/events2"],
    events_secret => ['s' x 24, 't' x 24], events_types => ['delivered', 'bounced, quota, accepted'], events_batch => [1, 900], events_linger => ['0s', '9s'],
    events_max => ['2M', '9M'], ready_when => ['accepting, age:1h', 'upstream'], canary_interval => ['0s', '2h'], canary_grace => ['9s', '90s'],
    log_style => ['json', 'petrel', 'postfix'], log_level => ['debug', 'error'], hostname => ['petrel.test', 'mta.petrel.test'],
);
# Those that wait for a restart are named by the daemon (below); these need what this test does not have.
my %apart = (
    tls_certificate => 'certificates.t', tls_key => 'certificates.t', tls_ca => 'tls_out.t', tls_legacy => 'legacy_tls.t', oauth => 'oauth.t', dkim_keys => 'dkim_waits.t',
    defrag_peers => 'peers.t', cluster_peers => 'peer_door.t', cluster_secret => 'cluster.t', defrag_registry_password => 'registry.t',
);
my %restart = (
    listen => "127.0.0.1:$later", http => '127.0.0.1:1', log_to => 'syslog', spool => "$dir/other", user => 'nobody', sandbox => 'no', control => "$dir/control",
    dns_servers => '127.0.0.1:9', slices => 2, slice => {slices => 2, slice => 1}, journal_size => '32M', journal_message_max => '64K', defrag_registry => "dir:$dir",
    defrag_host => 'a.test', cluster => 'x', cluster_host => 'a', cluster_redis => 'redis://127.0.0.1:9', cluster_redis_password => {cluster_redis => 'redis://127.0.0.1:9', cluster_redis_password => 'x'}, cluster_address => '127.0.0.1:9',
    cluster_egress => 'own',
);
my @settings = Petrel::slurp("$Petrel::root/config.example") =~ /^#([a-z0-9_]+) =/mg;
cmp_ok scalar @settings, '>', 100, 'the table of settings';
is_deeply [grep { !$pairs{$_} && !$apart{$_} && !$restart{$_} } @settings], [], 'each setting has two values here';
my %known = map { $_ => 1 } @settings;
is_deeply [grep { !$known{$_} } sort keys %pairs, keys %apart, keys %restart], [], 'and no other';
ok -f "$Petrel::root/t/e2e/$_", "$_ is there" for sort values %apart;

# --- Mail in each state --------------------------------------------------------------------------------------------
my (%want, $number);
sub mail {
    my ($to, $data) = @_;
    $want{$_}++ for @$to;
    my $reply = $petrel->send_mail('x@x.test', $to, $data // "Subject: x\n\nx\n");
    return like $reply, qr/^250/, "accepted: @$to";
}
$waits->hold('dot');
mail(["in$_\@wait.test"]) for 1 .. 2;
ok $waits->wait_content, 'one is in a session';
mail([map { "w$_\@wait.test" } 1 .. 8]), mail(['one@wait.test']) for 1;
for my $kind (qw(quota rate)) { mail(["$_\@$kind.test"]) for 1 .. 4 }
mail(["$_\@$_.test"]) for qw(hold defer);
my @parts = map { Fragments::part('set@x.test', $_, 2, $_ == 1 ? "From: a\@x.test\nSubject: whole\nMIME-Version: 1.0\nContent-Type: text/plain\n\nfirst\n" : "second\n") } 1, 2;
mail(['f@frag.test'], $parts[0]);
ok Petrel::wait_for(sub { ($petrel->run('queue', 'ls', '--json'))[1] =~ /"queue_name":"defrag"/ }), 'a fragment awaits parts';
ok Petrel::wait_for(sub { $petrel->log =~ /status=deferred/ && $petrel->log =~ /held by a route/ }), 'one is deferred, one held';

# --- The reloads ---------------------------------------------------------------------------------------------------
my @bad;
sub reload {
    my ($what) = @_;
    my $name = 'm' . ++$number;
    # Its verdict is on its way, or its mark; each third is of an alias.
    push @bad, "$what: not accepted" unless $petrel->send_mail('x@x.test', ["$name\@flow.test"], "Subject: x\n\nx\n") =~ /^250/;
    $want{"$name\@flow.test"}++;
    if ($number % 9 == 0) {
        $petrel->run({input => "Subject: x\n\nx\n"}, qw(sendmail -f x@x.test list@here.test));
        $want{$_}++ for 'a@wait.test', 'b@flow.test';
    }
    my ($code, $said) = $petrel->run('reload');
    push @bad, "$what: $code $said" if $code != 0;
    return $said;
}
for my $key (grep { $pairs{$_} } @settings) {
    next unless defined $pairs{$key}[0];
    my %before = %{ $petrel->{settings} };
    for my $value (@{ $pairs{$key} }, {%before, $key => $before{$key}}) {
        $petrel->configure(ref $value ? %$value : ($key => $value));
        reload("$key = " . (ref $value ? 'another' : $value));
    }
}
is_deeply \@bad, [], 'every reload is done' or BAIL_OUT("@bad");
# Routes: the parameters of a target, and targets that go, come, merge and part.
my $start = $bound{routes};
my $in = "smtp://127.0.0.1:$waits->{port}?tls=none";
for my $text (
    (map { "wait.test $in&$_" } split ' ', 'recipients=1 recipients=50 concurrency=1&recipients=3 rate=1/d quota=1/d canary=yes family=ipv4 bind=127.0.0.1 helo=a.test notices=1h,4h lifetime=4d'),
    "wait.test $in&defragment=yes", "w1\@wait.test $in&recipients=1\nw2\@wait.test $in&recipients=2\nwait.test $in&recipients=3", "4\@rate.test hold\nwait.test $in", "wait.test $in&concurrency=2",
) {
    my ($rest) = $start =~ /\n(.*)\z/s;
    $petrel->configure(routes => "$text\n$rest");
    reload($text);
}
# Two together, and one with an error.
kill 'HUP', $petrel->{pid} for 1 .. 3;
reload('several together'); # the file must not change while it is read
$petrel->configure(routes => 'x nonsense://a');
my ($code) = $petrel->run('reload');
isnt $code, 0, 'an error is refused';
$petrel->configure(routes => $start);
reload('as at first');
is_deeply \@bad, [], 'every change of routes is done';
for my $key (sort keys %restart) {
    local $petrel->{settings} = { %{ $petrel->{settings} } };
    $petrel->configure(ref $restart{$key} ? %{ $restart{$key} } : ($key => $restart{$key}));
    my ($code, $said) = $petrel->run('-o', "control=$petrel->{dir}/spool/control", 'reload');
    my $named = $key =~ s/_password//r;
    push @bad, "$key: $said" unless $code == 0 && $said =~ /without effect before a restart: .*\b$named\b/;
}
is_deeply \@bad, [], 'the others are said to wait for a restart';
$petrel->configure;

# --- Fine weather --------------------------------------------------------------------------------------------------
mail([map { "l$_\@wait.test" } 1 .. 8]); # in one transaction, as the routes are now
my $late = Sink->start('--listen', "127.0.0.1:$later");
$petrel->configure(routes => "wait.test $in&recipients=3\nfrag.test $route&defragment=yes");
reload('fine weather');
$waits->let_go('dot');
delete $want{'f@frag.test'};
mail(['f@frag.test'], $parts[1]);
$petrel->run(qw(queue release --all));
$petrel->run(qw(queue retry --all));
ok $petrel->wait_empty(60), 'the queue is empty' or diag +($petrel->run('queue', 'ls'))[1];
is waitpid($petrel->{pid}, 1), 0, 'the daemon lives';
my %got;
for my $each ($sink, $waits, $late) { $got{$_}++ for map { @{ $_->{to} } } $each->messages }
is_deeply [map { "$_: " . ($got{$_} // 0) . " for $want{$_}" } grep { ($got{$_} // 0) != $want{$_} } sort keys %want], [], 'each recipient has had the mail once';
is_deeply [glob "$petrel->{dir}/spool/corrupt/*"], [], 'nothing is quarantined';
is $petrel->stop, 0, 'and it stops';

# --- Ten recipients wait behind the only session, and their transactions become less or more. ------------------------
for my $limits ([1, 50], [50, 1]) {
    my $one = Sink->start;
    my $route = "* smtp://127.0.0.1:$one->{port}?tls=none&concurrency=1&recipients=";
    my $daemon = Petrel->new(routes => $route . $limits->[0])->start;
    $one->hold('dot');
    like $daemon->send_mail('x@x.test', 'first@a.test', "Subject: x\n\nx\n"), qr/^250/, 'one';
    ok $one->wait_content, 'is in the session';
    like $daemon->send_mail('x@x.test', [map { "r$_\@a.test" } 1 .. 10], "Subject: x\n\nx\n"), qr/^250/, 'ten wait';
    $daemon->configure(routes => $route . $limits->[1]);
    is +($daemon->run('reload'))[0], 0, "recipients=$limits->[0], then $limits->[1]";
    $one->let_go('dot');
    ok $daemon->wait_empty(60), 'all leave' or diag +($daemon->run('queue', 'ls'))[1];
    is_deeply [sort map { @{ $_->{to} } } $one->messages], [sort 'first@a.test', map { "r$_\@a.test" } 1 .. 10], 'once';
    is $daemon->stop, 0, 'the daemon has lived';
}
done_testing;
