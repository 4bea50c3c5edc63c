#!/usr/bin/perl
# DKIM: what a signature costs, and what it costs the others: messages a second and CPU a message unsigned, by RSA and by
# Ed25519; the latency of unsigned mail while another client's is signed; a message for 50 domains; a reload with 5,000 keys.
# Where Postfix is set up (t/bench/postfix.sh) and OpenDKIM is installed: the same by these two, in turn.
# BEFORE=/path/to/petrel: unsigned mail by that binary as well, in turn.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Client;

my $seconds = $ENV{SECONDS_EACH} || 3; # of each run, about
my $rounds = $ENV{ROUNDS} || 3;
my $work = Bench::work_dir();
my $sink = Bench::sink();
$| = 1;

mkdir "$work/$_" for 'rsa', 'ed25519', 'many';
my $has_ed25519 = `$Petrel::binary version` =~ /libsodium/;
my %option = (rsa => '', $has_ed25519 ? (ed25519 => '--ed25519') : ());
system("$Petrel::binary dkim-key example.org s1 $option{$_} --directory $work/$_ >/dev/null 2>&1") == 0 or die 'no key' for keys %option;

sub start {
    my ($binary, %settings) = @_;
    local $Petrel::binary = $binary;
    return Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}", relay_from => '127.0.0.1', log_level => 'warning', dns_servers => '127.0.0.1:9', %settings)->start;
}
sub end { my $server = shift; $server->stop; return system 'rm', '-rf', "$work/spool", "$work/log" }

# --- Throughput, in turn

my %kinds = (unsigned => [$Petrel::binary], $ENV{BEFORE} ? (before => [$ENV{BEFORE}]) : (), map { $_ => [$Petrel::binary, dkim_keys => "$work/$_"] } keys %option);
my %figures;

# Postfix with OpenDKIM as its milter, one process with its threads, with the same key.
my ($opendkim) = grep { -x } '/usr/sbin/opendkim';
my ($pem) = glob "$work/rsa/*.pem";
sub start_postfix {
    my $port = Petrel::free_port();
    chmod 0600, $pem;
    Petrel::spit("$work/opendkim.conf", "Mode s\nDomain example.org\nSelector s1\nKeyFile $pem\nCanonicalization relaxed/relaxed\nSocket inet:$port\@127.0.0.1\n"
        . "InternalHosts 127.0.0.0/8\nRequireSafeKeys false\nSyslog no\nOversignHeaders From\n");
    my $milter = Petrel::spawn("$work/opendkim.log", $opendkim, '-f', '-x', "$work/opendkim.conf");
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or die 'opendkim: ' . Petrel::slurp("$work/opendkim.log");
    local $ENV{PETREL_BENCH_POSTFIX_SETTINGS} = "smtpd_milters = inet:127.0.0.1:$port\nmilter_default_action = tempfail";
    system('sh', "$Bench::here/postfix.sh", 'start', $sink->{port}) == 0 or die 'postfix';
    chomp(my ($server, $pid) = map { `sh $Bench::here/postfix.sh $_` } 'port', 'pid');
    Bench::wait_banner($server) or die 'postfix does not answer';
    return { port => $server, pid => $pid, milter => $milter };
}
sub measure_postfix {
    my $server = start_postfix();
    my %load = (size => 1024, connections => 50, pipeline => undef);
    my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => 300);
    my ($count, $cpu) = (int($warm->{through} * $seconds) + 300, Bench::cpu_ms($server->{milter}));
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => $count);
    $result->{milter} = (Bench::cpu_ms($server->{milter}) - $cpu) / $count;
    $result->{cpu} += $result->{milter};
    system 'sh', "$Bench::here/postfix.sh", 'stop';
    Petrel::reap($server->{milter}, 'TERM');
    return $result;
}
my $has_peers = $opendkim && Bench::have_postfix();

for my $round (1 .. $rounds) {
    if ($has_peers) {
        my $result = measure_postfix();
        push @{ $figures{postfix}{$_} }, $result->{$_} for 'through', 'cpu', 'milter';
    }
    for my $kind (sort keys %kinds) {
        my $server = start(@{ $kinds{$kind} });
        my %load = (size => 1024, connections => 50, pipeline => undef);
        my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => 300);
        my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => int($warm->{through} * $seconds) + 300);
        push @{ $figures{$kind}{$_} }, $result->{$_} for 'through', 'cpu';
        end($server);
    }
}
my %median = map { my $kind = $_; $kind => { map { $_ => Bench::median(@{ $figures{$kind}{$_} }) } 'through', 'cpu' } } keys %figures;
printf "1 KiB, 50 connections, %-9s %7.0f messages/s  %6.3f ms CPU a message\n", $_, @{ $median{$_} }{qw(through cpu)} for sort keys %median;
sub bar { my ($what, $value, $sign, $limit, $unit) = @_; return printf "%-60s %8.3f %-3s %s %-6s %s\n", $what, $value, $unit, $sign, $limit, ($sign eq '<=' ? $value <= $limit : $value >= $limit) ? 'ok' : 'MISSED' }
bar('CPU of an RSA-2048 signature', $median{rsa}{cpu} - $median{unsigned}{cpu}, '<=', 2.8, 'ms');
if ($has_peers) {
    printf "of which OpenDKIM %27.3f ms CPU a message\n", Bench::median(@{ $figures{postfix}{milter} });
    bar('RSA, messages/s to Postfix + OpenDKIM', $median{rsa}{through} / $median{postfix}{through}, '>=', 1.2, '');
    bar('RSA, CPU a message to Postfix + OpenDKIM', $median{rsa}{cpu} / $median{postfix}{cpu}, '<=', 0.5, '');
}
bar('Ed25519, messages/s to unsigned', $median{ed25519}{through} / $median{unsigned}{through}, '>=', 0.85, '') if $has_ed25519;
bar('unsigned, messages/s to the binary before', $median{unsigned}{through} / $median{before}{through}, '>=', 0.97, '') if $ENV{BEFORE};
bar('unsigned, CPU a message to the binary before', $median{unsigned}{cpu} / $median{before}{cpu}, '<=', 1.03, '') if $ENV{BEFORE};

# --- Unsigned mail beside mail that is signed

# From the final dot to its answer, in ms: (median, 99th of a hundred). Beside: 20 clients, at half of what can be signed: beyond
# it the queue grows, and clients are paced.
my $rate = int $median{rsa}{through} / 2;
sub latency {
    my ($server, $beside) = @_;
    my ($pid, @took);
    $pid = Petrel::spawn("$work/beside.log", "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$server->{port}", '--messages', 100_000, '--connections', 20, '--rate', $rate) if $beside;
    my $client = Client->greeted($server->{port}) or die 'no greeting';
    my $until = time + 1 + 3 * $seconds;
    while (time < $until) {
        $client->say($_) for 'MAIL FROM:<x@unsigned.test>', 'RCPT TO:<y@other.test>', 'DATA';
        my $start = time;
        $client->put("From: x\@unsigned.test\r\n\r\nx\r\n.\r\n");
        $client->reply =~ /^250/ or die 'refused';
        push @took, (time - $start) * 1000;
        sleep 0.01;
    }
    Petrel::reap($pid, 'KILL') if $pid;
    @took = sort { $a <=> $b } @took;
    return ($took[ $#took / 2 ], $took[ $#took * 0.99 ]);
}
my %latency;
for my $case (['alone', 0, 1], ['beside unsigned mail', 1, 0], ['beside signed mail', 1, 1]) {
    my ($name, $beside, $signs) = @$case;
    my $server = start($Petrel::binary, $signs ? (dkim_keys => "$work/rsa") : ());
    $latency{$name} = [latency($server, $beside)];
    printf "unsigned mail, from the dot to its answer, %-21s p50 %5.1f  p99 %5.1f ms\n", $name, @{ $latency{$name} };
    end($server);
}
bar('p99 of unsigned mail beside mail that is signed', $latency{'beside signed mail'}[1], '<=', 15, 'ms');

# --- One message for 50 domains

my $server = start($Petrel::binary, dkim_keys => "$work/rsa");
my $client = Client->greeted($server->{port}) or die 'no greeting';
$client->send(from => 'x@example.org', to => [map { "r\@d$_.test" } 1 .. 50], data => "From: x\@example.org\r\n\r\nx\r\n");
$client->quit;
$server->wait_empty(60);
bar('RSA operations of a message for 50 domains', $server->status =~ /"signed": (\d+)/ ? $1 : -1, '<=', 1, '');
end($server);

# --- A reload with 5,000 keys

my ($key) = map { Petrel::slurp($_) } glob "$work/rsa/*.pem";
for my $i (1 .. 5000) {
    Petrel::spit("$work/many/s1._domainkey.d$i.test.pem", $key);
    chmod 0600, "$work/many/s1._domainkey.d$i.test.pem";
}
$server = start($Petrel::binary, dkim_keys => "$work/many");
$client = Client->greeted($server->{port}) or die 'no greeting';
$client->say('EHLO x.test');
my $before = Bench::cpu_ms($server->{pid});
kill 'HUP', $server->{pid};
my ($longest, $until) = (0, time + 3);
while (time < $until) {
    my $start = time;
    $client->say('NOOP');
    my $took = (time - $start) * 1000;
    $longest = $took if $took > $longest;
    sleep 0.002;
}
printf "a reload with 5,000 keys: %.0f ms CPU with the NOOPs, the longest wait of a client %.0f ms\n", Bench::cpu_ms($server->{pid}) - $before, $longest;
end($server);
