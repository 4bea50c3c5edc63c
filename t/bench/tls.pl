#!/usr/bin/perl
# TLS: what a thousand sessions that do nothing cost, and messages a second with TLS on both sides, Petrel and, in turn
# with it, Postfix.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IPC::Open2;
use List::Util qw(max);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my $seconds = $ENV{SECONDS_EACH} || 3; # of each run, about
my $rounds = $ENV{ROUNDS} || 3;
my $warm_up = 300; # messages; they also tell how many make those seconds
my @cells = ([ 1, 10 ], [ 1, 50 ], [ 10, 10 ], [ 100, 4 ]); # KiB, connections
my $work = Bench::work_dir();
my $keys = "$work/keys";
system('sh', "$Petrel::root/t/support/tls_certificates.sh", $keys) == 0 or die 'no certificates';
my $pair = "$keys/good-both.pem";
$| = 1;

# --- Idle sessions

sub idle {
    my $count = 1000;
    my $server = Petrel->new(dir => $work, relay => 'smtp://127.0.0.1:1', server_session_limit => 2 * $count, client_session_limit => $count, server_tls_session_limit => 0,
        tls_certificate => $pair, tls_key => $pair)->start;
    my $before = Bench::memory_mb('Rss', $server->{pid});
    my $pid = open2(my $said, my $tell, 'python3', "$Petrel::root/t/e2e/crowd.py", $server->{port}, $server->{port}, $count, "$keys/ca.pem", 'tls');
    my ($ready) = (readline $said) =~ /(\d+)/;
    sleep 1;
    my $with = Bench::memory_mb('Rss', $server->{pid});
    print $tell "stop\n";
    waitpid $pid, 0;
    $server->stop;
    system 'rm', '-rf', "$work/spool", "$work/log";
    printf "%d idle TLS sessions: %.1f MB resident with them, %.1f MB before, %.1f KB each; the bar is 64 MB: %s\n\n", $ready, $with, $before,
        ($with - $before) * 1000 / ($ready || 1), $ready == $count && $with <= 64 ? 'ok' : 'MISSED';
    return;
}

# --- Relay

my $sink = Bench::sink('--tls', $pair);

sub start_petrel {
    my $server = Petrel->new(dir => $work, relay => "smtps://127.0.0.1:$sink->{port}?tls=encrypt", tls_certificate => $pair, tls_key => $pair);
    my $port = Petrel::free_port();
    $server->configure(listen => "127.0.0.1:$server->{port}, 127.0.0.1:$port?tls");
    return if ($server->run('check'))[0] != 0;
    $server->start;
    return { port => $port, pid => $server->{pid}, stop => sub { $server->stop; system 'rm', '-rf', "$work/spool", "$work/log" },
        peak => sub { Bench::status($server->{pid}, 'VmHWM') * 1024 / 1e6 } };
}

sub start_postfix {
    my $root = "$Bench::postfix/root";
    system('install', '-m', '600', $pair, "$root/etc/postfix/pair.pem") == 0 or return;
    local $ENV{PETREL_BENCH_POSTFIX_SETTINGS} = join "\n", 'smtpd_tls_security_level = encrypt', 'smtpd_tls_wrappermode = yes', 'smtpd_tls_chain_files = /etc/postfix/pair.pem',
        'smtp_tls_security_level = encrypt', 'smtp_tls_wrappermode = yes', 'smtp_tls_connection_reuse = yes', 'smtp_tls_session_cache_database = btree:/var/lib/postfix/smtp_scache',
        'smtpd_tls_loglevel = 0', 'smtp_tls_loglevel = 0';
    system('sh', "$Bench::here/postfix.sh", 'start', $sink->{port}) == 0 or return;
    chomp(my $port = `sh $Bench::here/postfix.sh port`);
    chomp(my $pid = `sh $Bench::here/postfix.sh pid`);
    Petrel::wait_for(sub { IO::Socket::INET->new("127.0.0.1:$port") }) or die 'postfix does not answer: ' . Petrel::slurp("$root/var/log/postfix.log");
    return { port => $port, pid => $pid, stop => sub { system 'sh', "$Bench::here/postfix.sh", 'stop' },
        peak => sub { Bench::memory_mb('Pss', Bench::family($pid)) } };
}

# A new server, warmed up, measured, stopped.
sub measure {
    my ($start, $kib, $connections) = @_;
    my $server = $start->() or return;
    my %load = (size => $kib * 1024, connections => $connections, pipeline => undef, tls => undef);
    my $peak = 0;
    my $sample = sub { $peak = max($peak, $server->{peak}->()) };
    my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, %load, messages => $warm_up);
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, $sample, %load, messages => max($warm_up, int($warm->{through} * $seconds)));
    $server->{stop}->();
    return { %$result, peak => $peak };
}

sub middle { my ($field, @runs) = @_; return Bench::median(map { $_->{$field} } @runs) }

idle();
my @peers = (Petrel => \&start_petrel);
push @peers, Postfix => \&start_postfix if Bench::have_postfix();
my @names = grep { !ref } @peers;
my %start = @peers;
END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if $start{Postfix}; $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };

chomp(my $version = $start{Postfix} ? `sh $Bench::here/postfix.sh version` : 'Postfix is not set up (as root: sh t/bench/postfix.sh setup): Petrel alone');
chomp(my $cores = `nproc`);
print "Relay with TLS in and out: load -> server -> sink, every 250 durable; $cores cores, load ", join(' ', (split ' ', Petrel::slurp('/proc/loadavg'))[ 0 .. 1 ]), "\n";
print "Peer: $version. $rounds rounds in turn, each about ${seconds}s, pipelined, kept connections; the median, (each through).\n\n";
printf "%-11s %-8s %8s %8s  %-18s %7s %8s\n", 'KiB x conn.', '', 'in', 'through', '(rounds)', 'CPU', 'peak';
for my $cell (@cells) {
    my %runs;
    for (1 .. $rounds) {
        for my $name (@names) { my $run = measure($start{$name}, @$cell) or next; push @{ $runs{$name} }, $run; }
    }
    my $label = "$cell->[0] x $cell->[1]";
    for my $name (grep { $runs{$_} } @names) {
        my @runs = @{ $runs{$name} };
        printf "%-11s %-8s %8.0f %8.0f  %-18s %7.3f %8.1f\n", $label, $name, middle('in', @runs), middle('through', @runs),
            '(' . join(' ', map { sprintf '%.0f', $_->{through} } @runs) . ')', middle('cpu', @runs), middle('peak', @runs);
        $label = '';
    }
    next unless $runs{Postfix} && $runs{Petrel};
    my $ratio = middle('through', @{ $runs{Petrel} }) / (middle('through', @{ $runs{Postfix} }) || 1e-9);
    printf "%-11s %-8s %8s %7.2fx  the bar is 5x: %s\n", '', 'ratio', '', $ratio, $ratio >= 5 ? 'ok' : 'MISSED';
}
print "\n";
Petrel::reap($sink->{pid}, 'TERM');
