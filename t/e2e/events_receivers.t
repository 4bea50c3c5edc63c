#!/usr/bin/perl
# Receivers of events: nginx with TLS before an application, one that hangs, ones that answer with pages, cut answers, and
# strange statuses, ones that cannot be found or trusted. Events wait, in order; mail does not.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(time);
use Hook;
use Nginx;

plan skip_all => Nginx->missing if Nginx->missing;
plan skip_all => Hook->missing if Hook->missing;

my $dir = tempdir('receivers-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
for my $name ('good', 'self') {
    system("cd $dir && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $name.key -out $name.pem -days 10 -subj /CN=x "
        . "-addext subjectAltName=IP:127.0.0.1 2>>log") == 0 or die Petrel::slurp("$dir/log");
}
my $hook = Hook->start;
my ($good, $self) = map { Petrel::free_port() } 1 .. 2;
my $servers = join "\n", map { my ($port, $certificate) = @$_; <<"END" } [$good, 'good'], [$self, 'self'];
    server {
        listen 127.0.0.1:$port ssl;
        ssl_certificate $dir/$certificate.pem;
        ssl_certificate_key $dir/$certificate.key;
        location /hook { proxy_pass http://127.0.0.1:$hook->{port}; }
        location / { return 404; }
    }
END
my $web = Nginx->start($dir, $servers);

my $sink = Sink->start('--fail-rcpt', 'odd:550');
my ($old, $new) = ('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'canary-secret-of-24-octets');
my $http = Petrel::free_port();
my $petrel = Petrel->new(
    relay_from => '127.0.0.1', relay => "smtp://127.0.0.1:$sink->{port}?tls=none", tls_ca => "$dir/good.pem",
    dns_servers => '127.0.0.1:' . Petrel::free_port(), events => "https://127.0.0.1:$good/hook?token=canary-url", events_linger => '20ms',
    events_secret => $old, events_max => '2M', http => "127.0.0.1:$http", control => undef);
chmod 0600, $petrel->conf;
$petrel->start;

sub status { return decode_json($petrel->status =~ s/\A[^{]*//r)->{events} }
sub use_settings {
    $petrel->configure(@_);
    chmod 0600, $petrel->conf;
    my $before = Petrel::count($petrel->log, qr/settings reloaded/);
    kill 'HUP', $petrel->{pid};
    return Petrel::wait_for(sub { Petrel::count($petrel->log, qr/settings reloaded/) > $before });
}
my $mails = 0;
sub mail { $mails++; return $petrel->send_mail('app@example.org', "r$mails\@a.example", "X-Petrel-Tag: n$mails\n\nhello") }
sub taken { my $tag = shift // "n$mails"; return scalar grep { ($_->{tag} // '') eq $tag && $_->{type} eq 'delivered' } $hook->taken }

# A real server with TLS.
mail();
ok Petrel::wait_for(\&taken), 'nginx with TLS takes events';
# It logs a request after its answer.
ok Petrel::wait_for(sub { Petrel::slurp("$dir/access.log") =~ m{"POST /hook\?token=canary-url HTTP/1\.1" 200 } }), 'nginx says so';
like $petrel->send_mail('app@example.org', [ map { sprintf 'r%03d.%s@a.example', $_, 'x' x 40 } 1 .. 300 ], "X-Petrel-Tag: many\n\nhello"), qr/^250/, 'a message to 300';
ok Petrel::wait_for(sub { taken('many') == 300 }), '300 events come';

# Statuses and bodies. The status decides.
for my $mode ('page:200', 'cut:200') {
    $hook->mode($mode);
    mail();
    ok Petrel::wait_for(\&taken), "$mode takes events";
    ok Petrel::wait_for(sub { my $e = status(); !$e->{pending_bytes} && !$e->{why} }), 'for good';
}
my %why = ('page:500' => 'status 500', 'cut:404' => 'status 404', 'half' => 'status 502');
for my $mode (sort keys %why) {
    $hook->mode($mode);
    mail();
    ok Petrel::wait_for(sub { (status()->{why} // '') =~ /$why{$mode}/ }), "$mode is $why{$mode}";
    $hook->mode('200');
    ok use_settings(), 'a reload tries again';
    ok Petrel::wait_for(\&taken), 'nothing is lost';
}
$hook->mode('page:410');
mail();
ok Petrel::wait_for(sub { status()->{state} eq 'stopped' }), '410 stops, whatever the page';
$hook->mode('200');

# A receiver that is not trusted, or not there, gets nothing.
my $before = () = $hook->requests;
for my $case ([ "https://127.0.0.1:$self/hook", qr/certificate/ ], [ "https://localhost:$good/hook", qr/certificate does not name localhost/ ],
    [ 'https://nobody.example/hook', qr/nobody\.example/ ], [ 'https://127.0.0.1:1/hook', qr/refused/ ], [ "https://127.0.0.1:$hook->{port}/hook", qr/TLS|handshake/ ]) {
    ok use_settings(events => $case->[0]), "a reload names $case->[0]";
    mail();
    ok Petrel::wait_for(sub { (status()->{why} // '') =~ $case->[1] }), 'it is not used' or diag status()->{why};
}
is scalar(() = $hook->requests), $before, 'nobody else has got an event';

# Two secrets, then the new one alone.
ok use_settings(events => "https://127.0.0.1:$good/hook", events_secret => "$old, $new"), 'back, with a second secret';
ok Petrel::wait_for(\&taken), 'all come';
my $rotated = () = $hook->requests;
ok use_settings(events_secret => $new), 'the first one goes';
mail();
ok Petrel::wait_for(\&taken), 'events come on';
my @lines = split /^/, Petrel::slurp("$hook->{dir}/events");
sub verify {
    my ($name, $lines, @secrets) = @_;
    my ($code, $said) = Petrel::command(undef, 'python3', 't/e2e/webhook_verify.py', Petrel::spit("$dir/requests", join '', @$lines), @secrets);
    is $said, @$lines . " requests\n", $name;
    return;
}
verify('the old secret signs', [ @lines[0 .. $before - 1] ], $old, $new);
verify('both do', [ @lines[$before .. $rotated - 1] ], $_) for $old, $new;
verify('the new one does', [ @lines[$rotated .. $#lines] ], $new, $old);

# Texts of peers.
$petrel->send_mail('app@example.org', 'odd@a.example', "X-Petrel-Tag: odd \xff\xfe\n\nhello");
ok Petrel::wait_for(sub { grep { $_->{type} eq 'bounced' && $_->{recipient} eq 'odd@a.example' } $hook->taken }), 'a bounce';

# One that hangs, and one that is slow: mail goes on, sessions are answered, and a new address takes over.
$hook->mode('hang');
mail();
ok Petrel::wait_for(sub { status()->{state} eq 'posting' }), 'it hangs';
my $since = time;
mail() for 1 .. 20;
my $used = time - $since;
ok Petrel::wait_for(sub { $sink->count('messages') >= $mails + 1 }), 'mail is delivered meanwhile';
diag sprintf '20 messages in %.2f s while the receiver hangs', $used;
ok !taken(), 'no event is taken';
my $second = Hook->start('slow 200');
ok use_settings(events => $second->url), 'another receiver';
ok Petrel::wait_for(sub { () = $second->requests }), 'which answers a byte a second';
mail();
ok Petrel::wait_for(sub { $sink->count('messages') >= $mails + 1 }), 'mail is delivered meanwhile';
is status()->{state}, 'posting', 'it still answers';
ok use_settings(events => $second->url), 'a reload gives it up';
ok Petrel::wait_for(sub { grep { ($_->{tag} // '') eq "n$mails" } $second->taken }), 'events of all of them come';
my @came = $second->taken;
is join(' ', sort { $a <=> $b } map { ($_->{tag} // '') =~ /^n(\d+)$/ ? $1 : () } @came), join(' ', $mails - 21 .. $mails), 'each once';
ok !(grep { $came[$_]{time_ms} < $came[ $_ - 1 ]{time_ms} } 1 .. $#came), 'in order';

# The bound: the oldest go, which is said, and counted.
$second->mode('500');
my $client = Client->greeted($petrel->{port}) or die;
my $events = 0;
for my $n (1 .. 40) {
    $events += 200 if '250' eq substr $client->send_pipelined(from => 'app@example.org', to => [ map { sprintf 'r%03d.%s@a.example', $_, 'x' x 40 } 1 .. 200 ],
        data => "X-Petrel-Tag: b$n\r\n\r\nhello\r\n"), 0, 3;
}
$client->quit;
ok $petrel->wait_log(qr/ events: error: more events wait than events_max, and the oldest go: events_lost=\d+/), 'an error';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/ to=<r\d+\.x+\@a\.example>.*status=sent/) >= $events + 300 }), 'mail is not held up';
my $metrics = sub {
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$http") or return '';
    print $socket "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:$http\r\nConnection: close\r\n\r\n";
    local $/;
    return <$socket> // '';
};
ok Petrel::wait_for(sub { $metrics->() =~ /^petrel_events_lost_total [1-9]/m }, 10), 'a metric counts' or diag $metrics->();
my ($pending) = $metrics->() =~ /^petrel_events_pending_bytes (\S+)/m;
cmp_ok $pending, '<=', 3 * 1024 * 1024, 'what waits is bounded';
$second->mode('200');
ok use_settings(), 'the receiver is back';
ok Petrel::wait_for(sub { status()->{pending_bytes} == 0 }), 'the rest is taken';
my $lost = status()->{lost};
my $rest = grep { ($_->{tag} // '') =~ /^b/ } $second->taken;
# The batch under way was counted, and still came.
ok $rest + $lost >= $events && $rest + $lost <= $events + 100, 'events_lost is exact' or diag "$rest + $lost of $events";

unlike $petrel->log, qr/canary|MfKQ9r8GKY/, 'no secret in the log';
is $petrel->stop, 0, 'it ends well';
$_->stop for $hook, $second, $sink;
$web->stop;
done_testing;
