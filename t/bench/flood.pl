#!/usr/bin/perl
# Floods, one kind after the other: attackers of a few addresses at a stated rate, and a good client of another address that
# sends one message after the other. Measured first calm, then under attack: its time for a message (connect to 250), how
# much of its mail is taken, the daemon's memory, and its log. A figure beyond a bar is reported; nothing is asserted.
# An attacker has a machine of its own: here it has a CPU of its own (the first), and the daemon and the good client share
# the others. On one CPU the attacker's time slices of some 3 ms are measured, too. KINDS="auth churn" measures these alone.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Handle;
use JSON::PP;
use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my ($calm_seconds, $attack_seconds) = (($ENV{SECONDS_EACH} || 8) / 2, $ENV{SECONDS_EACH} || 8);
# The bars: p99 in times of the calm one (or so many ms more: below that it is the machine), mail taken, MB, MB/s.
my %bar = (times => 2, ms => 1, taken => 0.95, memory => 32, log => 1);
# kind => [what it is, addresses, connections of each, commands and connects a second, how the good client sends]
my %flood = (
    auth => ['AUTH, wrong and malformed', 4, 45, 500, 'login'],
    starttls => ['STARTTLS, then silence', 8, 50, 500, 'tls'],
    half => ['half a ClientHello', 8, 50, 300, 'tls'],
    silent => ['silent clients', 20, 50, 500, 'plain'],
    refusals => ['refusals', 4, 45, 2000, 'plain'],
    rcpt => ['RCPT, without end', 4, 20, 2000, 'plain'],
    fragments => ['fragments', 4, 5, 200, 'plain'],
    slow => ['no reply is read', 4, 45, 5000, 'plain'],
    proxy => ['PROXY headers', 8, 50, 500, 'plain'],
    churn => ['connects and goes', 4, 10, 500, 'plain'],
);
my $attackers_cpu;
my @kinds = $ENV{KINDS} ? split(' ', $ENV{KINDS}) : qw(auth starttls half silent refusals rcpt fragments slow proxy churn);
my $python = Petrel::have('python3') or do { print "flood: no python3\n"; exit 0 };
Petrel::have('openssl') or do { print "flood: no openssl\n"; exit 0 };
my $work = Bench::work_dir();
system('sh', "$Petrel::root/t/support/tls_certificates.sh", $work) == 0 or die 'no certificates';
my $password = 'right';
my (undef, $user) = Petrel::command("$password\n", $Petrel::binary, 'passwd', 'user');
chmod 0600, Petrel::spit("$work/users", $user);

# The CPUs of this process, one after the other; none if taskset is not there.
sub cpus {
    Petrel::have('taskset') or return ();
    my ($mask) = Petrel::slurp('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)/m or return ();
    return map { /^(\d+)-(\d+)$/ ? $1 .. $2 : $_ } split /,/, $mask;
}

# A script of flood.py with its output: { pid, out }. An attacker runs on a CPU that the others leave alone.
sub script {
    my @arguments = @_;
    my $out = "$work/" . join('-', @arguments[0, 1]) . '.out';
    unlink $out;
    my @on = defined $attackers_cpu && $arguments[0] eq 'attack' ? ('taskset', '-c', $attackers_cpu) : ();
    return { pid => Petrel::spawn($out, @on, $python, "$Bench::here/flood.py", @arguments), out => $out };
}

sub result {
    my $script = shift;
    Petrel::reap($script->{pid}, 0, 60) // warn "flood.py does not end\n";
    my $said = Petrel::slurp($script->{out});
    return $said =~ /^(\{.*\})$/m ? decode_json($1) : do { warn "flood.py: $said"; {} };
}

sub percentile { my ($p, @sorted) = (shift, sort { $a <=> $b } @_); return @sorted ? $sorted[ int($#sorted * $p + 0.5) ] : 0 }

# The good client for so many seconds, and meanwhile the highest memory in MB: { p50, p99, taken, failed, memory, log }.
sub send_good {
    my ($server, $how, $seconds) = @_;
    my ($before, $memory, $start) = (-s $server->{log}, 0, time);
    my $good = script('good', $how, $server->{port}, "$work/ca.pem", $seconds, $password);
    while (time < $start + $seconds) {
        $memory = max($memory, Bench::memory_mb('Rss', $server->{pid}));
        sleep 0.2;
    }
    my $figure = result($good);
    my @taken = @{ $figure->{taken} || [] };
    my $failed = sum0(values %{ $figure->{failed} });
    return {
        p50 => percentile(0.5, @taken), p99 => percentile(0.99, @taken), taken => @taken / (@taken + $failed || 1), sent => @taken + $failed,
        failed => $figure->{failed}, memory => $memory, log => ((-s $server->{log}) - $before) / 1e6 / (time - $start),
    };
}

sub missed {
    my ($calm, $flood) = @_;
    return join ', ',
        $flood->{p99} > max($bar{times} * $calm->{p99}, $calm->{p99} + $bar{ms}) ? 'p99' : (),
        $flood->{taken} < $bar{taken} ? 'taken' : (),
        $flood->{memory} > $calm->{memory} + $bar{memory} ? 'memory' : (),
        $flood->{log} > $bar{log} ? 'log' : ();
}

sub run_flood {
    my $kind = shift;
    my ($name, $addresses, $connections, $rate, $how) = @{ $flood{$kind} };
    my ($tls, $proxy) = map { Petrel::free_port() } 1, 2;
    my $sink = Bench::sink();
    my $server = Petrel->new(dir => "$work/$kind", routes => "* smtp://127.0.0.1:$sink->{port}" . ($kind eq 'fragments' ? '?defragment=yes' : ''),
        relay_from => '192.0.2.0/24', local_domains => 'here.test', auth_users => "$work/users", proxy_from => '127.0.0.0/8',
        tls_certificate => "$work/good.pem", tls_key => "$work/good.key");
    $server->configure(listen => "127.0.0.1:$server->{port}, 127.0.0.1:$tls?tls, 127.0.0.1:$proxy?proxy")->start;
    send_good($server, $how, 1); # the first messages are slower
    my $calm = send_good($server, $how, $calm_seconds);
    my $attack = script('attack', $kind, $server->{port}, $tls, $proxy, $addresses, $connections, $rate, $attack_seconds + 12);
    Petrel::wait_for(sub { Petrel::slurp($attack->{out}) =~ /^ready/m }, 10);
    my $flood = send_good($server, $how, $attack_seconds);
    my $rates = result($attack);
    $server->stop;
    Petrel::reap($sink->{pid}, 'TERM');
    printf "%-26s %3dx%-2d %5.0f %4.0f%% %-5s %6.1f %6.1f %6.1f %6.1f %5.1fx %5.0f%% %+6.1f %6.3f  %s\n", $name, $addresses, $connections,
        $rates->{rate} // 0, 100 * ($rates->{cpu} // 0), $how, @$calm{qw(p50 p99)}, @$flood{qw(p50 p99)}, $flood->{p99} / ($calm->{p99} || 1),
        100 * $flood->{taken}, $flood->{memory} - $calm->{memory}, $flood->{log}, missed($calm, $flood) || '-';
    printf "    %d x %s\n", $flood->{failed}{$_}, $_ for sort keys %{ $flood->{failed} };
    return;
}

my ($first, @others) = cpus();
if (@others) {
    $attackers_cpu = $first;
    system('taskset -cp ' . join(',', @others) . " $$ >/dev/null") == 0 or die "flood: taskset fails\n";
}
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
$| = 1;
for my $kind (@kinds) { die "flood: no kind $kind\n" unless $flood{$kind} }
mkdir "$work/$_" for @kinds;
print "Floods: attackers (addresses x connections, commands a second, their share of a CPU) and one good client\n";
print defined $attackers_cpu ? "attackers: CPU $attackers_cpu; the others: CPU @others\n" : "attackers share a CPU with the others\n";
print "bars: p99 <= $bar{times}x calm (or + $bar{ms} ms), taken >= ", 100 * $bar{taken}, " %, memory <= +$bar{memory} MB, log <= $bar{log} MB/s\n\n";
printf "%-26s %6s %5s %5s %-5s %6s %6s %6s %6s %6s %6s %6s %6s  %s\n", 'flood', '', 'cmd/s', 'cpu', 'good', 'p50 ms', 'p99', 'under:', 'p99', 'ratio', 'taken',
    'MB', 'MB/s', 'missed';
run_flood($_) for @kinds;
