#!/usr/bin/perl
# Weather: servers come and go, refuse sessions, slow down and hang up by chance, while mail comes in, settings change,
# operators step in and Petrel is killed. In the end, with all servers up, every message is where it belongs, and at no
# time does one wait without a reason. The same WEATHER_SEED makes the same weather.
use strict;
use warnings;
use FindBin;
BEGIN { chdir "$FindBin::Bin/../.." }
use lib 't/e2e';
use Client;
use File::Temp qw(tempdir);
use JSON::PP;
use Nsd;
use Petrel;
use Sink;
use Test::More;
use Time::HiRes qw(sleep time);

my $program = "$Petrel::root/$Petrel::build/t/bench/sink";
plan skip_all => "no $program" unless -x $program;
plan skip_all => 'no nsd' unless Nsd->available;

my $seed = $ENV{WEATHER_SEED} // 1;
my $steps = $ENV{WEATHER_STEPS} // 60;
srand $seed;
sub one_of { return $_[rand @_] }
sub chance { my $of = shift; return rand($of) < 1 }

# --- The world: three pools of servers, one host that is never there, a provider

my $scratch = tempdir('weather-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $zone = <<'END';
$ORIGIN weather.test.
$TTL 60
@       SOA   ns hostmaster 1 3600 600 86400 1
@       NS    ns
ns      A     127.0.0.1
m1      A     127.0.0.41
m2      A     127.0.0.42
m3      A     127.0.0.43
m4      A     127.0.0.44
dead    A     127.0.0.49
x1.big  A     127.0.0.43
x2.big  A     127.0.0.44
gone    MX    0 .
mixed   MX    10 m1
mixed   MX    10 x1.big
END
for (1 .. 6) {
    $zone .= "a$_ MX 10 m1\na$_ MX 10 m2\na$_ MX 20 dead\n"; # one set
    $zone .= "b$_ MX 5 dead\nb$_ MX 10 m3\n";                # another; the best is dead
    $zone .= "c$_ MX 10 x" . (1 + $_ % 2) . ".big\n";        # two sets, one provider
}
my $nsd = Nsd->start($scratch, 'weather.test' => Petrel::spit("$scratch/weather.test.zone", $zone));
my @domains = (map({ my $n = $_; map { "$_$n.weather.test" } qw(a b c) } 1 .. 6), 'mixed.weather.test', 'fixed.test', 'fixed.test');

my @hosts = map { "127.0.0.4$_" } 1 .. 4;
my ($port, $sink);
for (1 .. 10) {
    $port = Petrel::free_port();
    last if $sink = eval { Sink->start('--listen', "$hosts[0]:$port", '--seed', $seed, map { ('--address', "$_:$port") } @hosts[1 .. 3]) };
}
plan skip_all => 'no port that is free on all addresses' unless $sink;
my $bounces = Sink->start;

my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_port => $port, smtp_bind => '127.0.0.1, ::1', providers => 'big=*.big.weather.test',
    minimal_backoff_time => '1s', maximal_backoff_time => '2s', smtp_connect_timeout => '2s', active_limit => 40, delivery_session_limit => 12,
    delay_warning_time => '1h', journal_size => '4M', drain_timeout => '1s');
my @changes = (
    {default_destination_adaptive => 'no'}, {default_destination_adaptive => 'yes'}, {default_destination_concurrency_limit => 2},
    {default_destination_concurrency_limit => 20}, {default_connection_reuse_count_limit => 3}, {default_connection_reuse_count_limit => 0},
    {sender_turns => 'no'}, {sender_turns => 'yes'}, {site_active_share => 20}, {site_active_share => 0}, {providers => ''},
    {providers => 'big=*.big.weather.test'}, {providers => 'all=*.weather.test'}, {default_destination_rate => '50/s'}, {default_destination_rate => 'none'},
    {active_limit => 5}, {active_limit => 40}, {delivery_session_limit => 2}, {delivery_session_limit => 12}, {default_destination_recipient_limit => 1},
    {default_destination_recipient_limit => 50}, {smtp_mx_address_limit => 2}, {smtp_mx_address_limit => 5}, {bulk_size => '100'}, {bulk_size => '10M'},
    (map { { route => $_ } } '', '?transport_rate_delay=20ms', '?rate_delay=1s', '?concurrency=1&reuse=2'));
my $option = '';

sub routes { return "gone.test discard\n.here.test smtp://127.0.0.1:$bounces->{port}\nfixed.test smtp://[$hosts[3]]:$port$option\n* mx" }
$petrel->configure(routes => routes());
$petrel->start;

# --- Events

my (%expected, %id_of, %removed, %log); # recipient => 1; recipient => id; id => 1
my ($number, $kills, $reloads, $asked) = (0, 0, 0, 0);
my (@unexplained, @strange);

# One to four recipients, some of whom need no session.
sub submit {
    my $client = Client->greeted($petrel->{port}) or return;
    for (1 .. 1 + int rand 9) {
        my @to = map { 'u' . ++$number . '@' . one_of(@domains) } 1 .. one_of(1, 1, 1, 2, 4);
        push @to, "nobody$number\@gone.test" if chance(8);
        my @lost = chance(30) ? "lost$number\@" . one_of('gone.weather.test', 'nowhere.weather.test') : ();
        my $from = one_of('campaign@a.here.test', 'campaign@a.here.test', map { "user$_\@b.here.test" } 1 .. 5);
        my $reply = $client->send_pipelined(from => $from, to => [@to, @lost], data => "Subject: $number\r\n\r\n" . 'body ' x rand(60) . "\r\n");
        if ($reply =~ /queued as (\S+)/) {
            my $id = $1;
            /gone\.test/ or $expected{$_} = 1, $id_of{$_} = $id for @to;
        } else { # it may wait for content
            push @strange, "not taken: $reply" if $reply !~ /^4/;
            return $client->close;
        }
    }
    $client->quit;
    return;
}

sub blow {
    my $host = one_of(@hosts) . ":$port";
    $sink->tell($host, one_of('down', 'down', 'up', 'up', 'set fail=1/3,random', 'set fail=none', 'set sessions=none', 'set rate=none', 'set per_session=0',
        map({ 'set sessions=' . int(rand 4) . " over=$_" } qw(421 rst refuse queue:2)), 'set per_session=2',
        map({ "set rate=20/s rate_stage=$_ rate_reply=" . one_of(421, 450, 451) } qw(connect mail rcpt dot)),
        'set delay.dot=150 delay.banner=0', 'set delay.banner=100 delay.dot=0', 'set delay.banner=0 delay.dot=0 delay.rcpt=0', 'set delay.rcpt=10'));
    return;
}

sub reload {
    my %change = %{ one_of(@changes) };
    $option = delete $change{route} if exists $change{route};
    $petrel->configure(routes => routes(), %change);
    kill 'HUP', $petrel->{pid};
    my $count = ++$reloads;
    Petrel::wait_for(sub { (() = $petrel->log =~ /settings reloaded/g) >= $count }) or push @strange, "no reload: @{[%change]}";
    return;
}

sub restart {
    if (chance(2)) { $petrel->kill9; $kills++ }
    else { my $status = $petrel->stop(one_of('TERM', 'INT')); push @strange, "ended with " . ($status // 'nothing') if $status }
    $reloads = () = $petrel->log =~ /settings reloaded/g;
    if (chance(3)) { # without a daemon
        my $id = one_of(values %id_of);
        operate($id);
    }
    $petrel->start;
    return;
}

sub operate {
    my $id = shift // return;
    my $verb = one_of(qw(hold release retry retry rm));
    my ($code, $text) = $petrel->run('queue', $verb, $id);
    push @strange, "$verb $id: $code $text" unless $code == 0 || $code == 65 || $code == 69 && $text =~ /is not held|is held already|is held and cannot/;
    $removed{$id} = 1 if $verb eq 'rm' && $code == 0;
    return;
}

sub listed {
    my ($code, $text) = $petrel->run('queue', 'ls', '--json');
    push @strange, "queue ls: $code $text" if $code != 0;
    return map { decode_json($_) } split /\n/, $text;
}

# Why it waits, or nothing: then it is gone, or on its way.
sub unexplained {
    my $id = shift;
    my ($code, $text) = $petrel->run('queue', 'why', $id);
    return if $code == 65;
    return "why $id: $code $text" if $code != 0 || $text !~ /^because: +\S/m;
    return "the daemon does not know $id: $text" if $text =~ /does not have it/;
    ($code, my $json) = $petrel->run('queue', 'why', '--json', $id);
    return if $code == 65;
    for my $hop (@{ decode_json($json)->{why}{hops} // [] }) {
        my $site = $hop->{site} or next;
        next unless $hop->{waiting} && $site->{bound} eq 'nothing' && $site->{sessions} == 0;
        return "nobody serves $id: $json";
    }
    return;
}

# A state that is changing at this moment may look so once, but not again and again.
sub ask_why {
    my @waiting = listed();
    for (1 .. 2) {
        my $message = one_of(@waiting) or return;
        $asked++;
        my $why;
        Petrel::wait_for(sub { $why = unexplained($message->{queue_id}); !$why });
        push @unexplained, $why if $why;
    }
    my ($code, $text) = $petrel->run('status', '--sites');
    push @strange, "status: $code $text" if $code != 0;
    return;
}

submit() for 1 .. 6;
for (1 .. $steps) {
    my $what = rand;
    if ($what < 0.30) { submit() }
    elsif ($what < 0.58) { blow() }
    elsif ($what < 0.70) { reload() }
    elsif ($what < 0.80) { ask_why() }
    elsif ($what < 0.88) { operate(one_of(map { $_->{queue_id} } listed())) }
    elsif ($what < 0.97) { restart() }
    elsif ($nsd->{pid}) { $nsd->stop }
    else { $nsd->again }
    sleep rand 0.1;
}

# --- Fair weather

$nsd->again unless $nsd->{pid};
my $calm = 'set sessions=none over=421 rate=none per_session=0 fail=none delay.dot=0 delay.banner=0 delay.rcpt=0';
$sink->tell("$_:$port", 'down'), $sink->tell("$_:$port", $calm), $sink->tell("$_:$port", 'up') for @hosts;
ask_why();
$petrel->run('queue', 'release', $_->{queue_id}) for grep { $_->{queue_name} eq 'hold' } listed();
# A site that said "slow down" would be asked gently for minutes; all else comes by itself.
ok Petrel::wait_for(sub {
    my @left = listed();
    return 1 unless grep { $_->{queue_name} ne 'deferred' || $_->{due_time} <= time + 5 } @left;
    return 0;
}, 5 * $Petrel::patience), 'what is due is tried' or diag $petrel->status, map { (unexplained($_->{queue_id}) // '') . ($petrel->run('queue', 'why', $_->{queue_id}))[1] } (listed())[0 .. 2];
for (1 .. 120) {
    last if Petrel::wait_for(sub { $petrel->queued == 0 }, 1);
    $petrel->run('queue', 'retry', '--all');
}
is $petrel->queued, 0, 'nothing is left' or diag $petrel->status, map { ($petrel->run('queue', 'why', $_->{queue_id}))[1] } (listed())[0 .. 2];
is $petrel->stop, 0, 'it ends well';

# --- Arrivals

my %copies;
$copies{$_}++ for map { @{ $_->{to} } } $sink->messages;
my @wanted = grep { !$removed{ $id_of{$_} } } sort keys %expected;
my @missing = grep { !$copies{$_} } @wanted;
is_deeply \@missing, [], 'every recipient has it' or diag map { my $to = $_; "$_ $id_of{$_}\n", grep { /\Q$id_of{$to}\E/ } map { "$_\n" } split /\n/, $petrel->log } @missing[0 .. ($#missing > 1 ? 1 : $#missing)];

# Twice: the daemon was killed before it had written that it was delivered, or the reply to the dot got lost.
my (%sent, %cut);
for (split /\n/, $petrel->log) {
    $sent{$1}++ if /to=<(\S+?)>,.*status=sent/;
    $cut{$1}++ if /to=<(\S+?)>.*status=deferred \(.*(?:lost|closed|reset|timed|shutting)/i;
}
my @again = grep { $copies{$_} > 1 + $kills + ($cut{$_} // 0) } sort keys %copies;
is_deeply \@again, [], 'nobody has it too often' or diag map { my $to = $_; grep { /\Q$to\E/ } map { "$_\n" } split /\n/, $petrel->log } @again[0 .. 0];
my @twice = grep { ($sent{$_} // 0) > 1 } keys %expected;
cmp_ok scalar @twice, '<=', 64 * $kills, 'sent twice: only what was under way at a kill' or diag "@twice";
is_deeply \@unexplained, [], "all that waits has a reason (asked $asked times)";
is_deeply \@strange, [], 'nothing strange';
unlike $petrel->log, qr/[Aa]ssert|Sanitizer|runtime error/, 'no assertion fails';
is_deeply [glob "$petrel->{dir}/spool/corrupt/*"], [], 'nothing is corrupt';
diag sprintf 'seed %s: %d recipients, %d reloads, %d kills, %d starts, %d sent twice', $seed, scalar keys %expected, $reloads, $kills, $petrel->{starts}, scalar @twice
    if $ENV{WEATHER_SEED};
done_testing;
