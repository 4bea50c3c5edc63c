#!/usr/bin/perl
# Metrics of the real binary: promtool and the strict parser of Python take them, counters equal what was sent, and each
# alert asks for metrics that there are.
use lib 't/e2e';
use E2E;
use Cwd qw(abs_path);

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

my $promtool = Petrel::have('promtool');
my ($python) = grep { -x $_ && (Petrel::command('', $_, '-c', 'import prometheus_client.openmetrics.parser'))[0] == 0 } '/usr/bin/python3', Petrel::have('python3') // ();
my $port = Petrel::free_port();

sub scrape {
    my @accept = @_;
    my ($code, $page) = Petrel::command('', 'curl', '-s', '-m', '20', @accept, "http://127.0.0.1:$port/metrics");
    is $code, 0, 'a scrape' or diag $page;
    return $page;
}
sub value { my ($page, $sample) = @_; return $page =~ /^\Q$sample\E (\S+)$/m ? $1 : "no $sample" }
sub strict {
    my ($page, $name) = @_;
  SKIP: {
        skip 'promtool is not installed (package prometheus)', 1 unless $promtool;
        is_deeply [Petrel::command($page, $promtool, 'check', 'metrics')], [0, ''], "promtool: $name";
    }
  SKIP: {
        skip 'prometheus_client is not installed (package python3-prometheus-client)', 1 unless $python;
        my $open = scrape('-H', 'Accept: application/openmetrics-text; version=1.0.0');
        my ($code, $said) = Petrel::command($open, $python, '-c', <<'P');
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
print(sum(len(f.samples) for f in text_string_to_metric_families(sys.stdin.read())))
P
        is $code, 0, "OpenMetrics: $name" or diag $said;
        cmp_ok $said, '<=', 700, '  at most 700 series' if $code == 0;
    }
}

my $sink = Sink->start;
my $refusing = Petrel::free_port(); # nobody listens there
my $petrel = Petrel->new(http => "127.0.0.1:$port", routes => <<"R")->start;

    bounce.test error:5.1.1 no such user
    dead.test smtp://127.0.0.1:$refusing
    * smtp://127.0.0.1:$sink->{port}
R
my $page = scrape();
strict($page, 'an idle daemon');
is value($page, 'petrel_accepting'), 1, 'it accepts';
is value($page, 'petrel_deliveries_total{status="delivered",via="smtp"}'), 0, 'every counter is there from the start';

# --- Mail sent is mail counted

my $mail = "Subject: x\r\n\r\nx\r\n";
like $petrel->send_mail('a@a.test', ['b@b.test', 'c@b.test'], $mail), qr/^250/, 'two recipients' for 1 .. 3;
like $petrel->send_mail('a@a.test', 'x@dead.test', $mail), qr/^250/, 'one for a host that is dead';
my @said = $petrel->dialogue('EHLO c.test', 'MAIL FROM:<a@a.test>', 'RCPT TO:<not an address>', 'FOO', 'QUIT');
for my $to ('d@b.test', 'x@bounce.test') {
    my ($code, $out) = $petrel->run({input => "Subject: x\n\nx\n"}, 'sendmail', '-f', 'a@a.test', $to);
    is $code, 0, "sendmail $to" or diag $out;
}
Petrel::wait_for(sub {
    $page = scrape();
    value($page, 'petrel_deliveries_total{status="deferred",via="smtp"}') >= 1 && value($page, 'petrel_deliveries_total{status="delivered",via="smtp"}') >= 8;
});
is value($page, 'petrel_messages_accepted_total{source="smtp"}'), 4, 'messages by SMTP';
is value($page, 'petrel_recipients_accepted_total{source="smtp"}'), 7, 'their recipients';
is value($page, 'petrel_messages_accepted_total{source="sendmail"}'), 2, 'two by sendmail';
is value($page, 'petrel_messages_accepted_total{source="notification"}'), 1, 'a notification';
is value($page, 'petrel_notifications_total{kind="failure"}'), 1, 'of a failure';
is value($page, 'petrel_deliveries_total{status="delivered",via="smtp"}'), 8, 'recipients delivered';
is value($page, 'petrel_deliveries_total{status="bounced",via="other"}'), 1, 'bounced';
is value($page, 'petrel_delivery_delay_seconds_count{stage="queue"}'), 8, 'their delays';
is value($page, 'petrel_delivered_tls_total{tls="none",verified="no"}'), 8, 'in cleartext';
cmp_ok value($page, 'petrel_deliveries_total{status="deferred",via="smtp"}'), '>=', 1, 'deferred';
is value($page, 'petrel_ready'), 1, 'ready';
cmp_ok value($page, 'petrel_sessions_opened_total{direction="in"}'), '>=', 5, 'sessions in';
cmp_ok value($page, 'petrel_sessions_opened_total{direction="out"}'), '>=', 1, 'sessions out';
is value($page, 'petrel_accept_seconds_count'), 4, 'the time of each 250';
is value($page, 'petrel_connections_refused_total{reason="rate"}'), 0, 'nobody was refused';
is value($page, 'petrel_logins_total{result="ok"}'), 0, 'nor logged in';
cmp_ok value($page, 'petrel_sync_seconds_count'), '>=', 1, 'syncs have their time';
cmp_ok value($page, 'petrel_loop_turn_seconds_count'), '>=', 10, 'so have turns';
cmp_ok value($page, 'petrel_log_lines_total{level="info"}'), '>=', 8, 'lines of the log';
is value($page, 'petrel_log_lines_lost_total'), 0, 'none was lost';
cmp_ok value($page, 'petrel_replies_total{class="none"}'), '>=', 1, 'without a reply';
is value($page, 'petrel_queue_messages{place="deferred"}'), 1, 'one waits';
cmp_ok value($page, 'petrel_refusals_total{class="5",reason="syntax"}'), '>=', 2, 'refusals';
like $page, qr/^petrel_site_\w+\{site="[^"]*127\.0\.0\.1[^"]*"\} /m, 'sites are named';
my %verdicts;
$verdicts{$1} += $2 while $page =~ /^petrel_site_deliveries_total\{site="[^"]*",status="(\w+)"\} (\d+)/mg;
is $verdicts{delivered}, 8, 'verdicts by site: delivered';
cmp_ok $verdicts{deferred}, '>=', 1, 'and deferred by the dead one';
like $page, qr/^petrel_busy_ratio [01](?:\.\d+)?$/m, 'how busy it is';
strict($page, 'a daemon with mail');

# --- Reloads

kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'a reload';
$page = scrape();
is value($page, 'petrel_config_reloads_total{result="ok"}'), 1, 'is counted';
$petrel->configure(metrics_sites => 21);
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/metrics_sites/), 'a reload that is refused';
$page = scrape();
is value($page, 'petrel_config_reload_success'), 0, 'is seen';
is value($page, 'petrel_http_requests_total{class="2",path="metrics"}') >= 4, 1, 'requests are counted';

# --- Alerts

my $rules = 'etc/prometheus/petrel.rules.yml';
SKIP: {
    skip 'promtool is not installed (package prometheus)', 1 unless $promtool;
    my ($exit, $out) = Petrel::command('', $promtool, 'check', 'rules', $rules);
    is $exit, 0, 'promtool takes the rules' or diag $out;

    # A host that is busy for some minutes is not worth an alert, nor one that is busy up to the bound.
    Petrel::spit("$petrel->{dir}/busy.yml", sprintf <<'END', abs_path($rules));
rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'petrel_build_info{instance="a"}', values: '1x40'}
      - {series: 'petrel_busy_ratio{instance="a"}', values: '0.95x9 0.5 0.95x30'}
      - {series: 'petrel_busy_ratio{instance="b"}', values: '0.9x40'}
    alert_rule_test:
      - {eval_time: 20m, alertname: PetrelBusy, exp_alerts: []}
      - eval_time: 35m
        alertname: PetrelBusy
        exp_alerts:
          - exp_labels: {instance: a, severity: ticket}
            exp_annotations:
              summary: Petrel on a is busy
              description: Its event loop, journal, disk or sessions are nearly at their limit. petrel status says which; add a host, or space.
END
    ($exit, $out) = Petrel::command('', $promtool, 'test', 'rules', "$petrel->{dir}/busy.yml");
    is $exit, 0, 'an alert of a busy host, in time' or diag $out;
}
my $text = Petrel::slurp($rules);
is Petrel::count($text, qr/- alert: /), 11, 'eleven alerts';
my %asked = map { $_ => 1 } $text =~ /\b(petrel_\w+?)(?=[\s{\[)])/g;
cmp_ok scalar(keys %asked), '>', 6, 'they ask for metrics';
like $page, qr/^(?:# TYPE )?\Q$_\E[{ ]/m, "$_ is there" for sort keys %asked; # some have no series without a smarthost or a certificate
$petrel->stop;
done_testing;
