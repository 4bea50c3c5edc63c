#!/usr/bin/perl
# The bars: size, memory, start, slow clients, idleness; each with its limit and whether it is held.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use POSIX ();
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;

my $work = Bench::work_dir();
my $idle_s = 10;
my ($dynamic, $static) = ($Petrel::binary, build_static());
$| = 1;

sub bar {
    my ($what, $value, $limit, $unit) = @_;
    printf "%-52s %9.2f %-3s <= %-8s %s\n", $what, $value, $unit, $limit, $value <= $limit ? 'ok' : 'MISSED';
    return;
}

sub note { printf "%-52s %9.2f %s\n", @_; return }

# The one file for any Linux; undef where the static libraries are missing. It is read from disk, as after a boot: of a file
# that was just written Linux 6.18 maps much that is not used.
sub build_static {
    my ($log, $file) = ("$work/static.log", "$Petrel::root/petrel-static");
    if (system("cd '$Petrel::root' && env -u BUILD -u MAKEFLAGS -u MAKELEVEL make -j2 static >'$log' 2>&1") == 0) {
        system("sync '$file' && dd if='$file' iflag=nocache count=0 status=none");
        return $file;
    }
    my ($why) = Petrel::slurp($log) =~ /^(.*(?:cannot find|error|Error).*)$/m;
    print 'no static build here: ', $why // 'make failed', "\n";
    return;
}

sub stripped_kb { my $file = shift; system('strip', '-o', "$work/stripped", $file) == 0 or return 1e9; return (-s "$work/stripped") / 1000 }

# A daemon with an empty queue, open to thousands of clients from here.
sub started {
    my ($binary, @more) = @_;
    local $Petrel::binary = $binary;
    my $server = Petrel->new(dir => $work, relay => 'smtp://127.0.0.1:1', server_session_limit => 4000, client_session_limit => 4000, @more);
    return $server->start;
}

# Milliseconds from exec to the first 220.
sub first_banner_ms {
    my $server = Petrel->new(dir => $work, relay => 'smtp://127.0.0.1:1');
    my $start = time;
    my $pid = Petrel::spawn("$work/log", $dynamic, '-c', $server->conf, 'run');
    my $line = '';
    while ($line !~ /^220/ && time < $start + 20) {
        my $s = IO::Socket::INET->new("127.0.0.1:$server->{port}") or do { sleep 0.0005; next };
        $line = <$s> // '';
    }
    my $end = time;
    Petrel::reap($pid, 'TERM');
    return ($end - $start) * 1000;
}

# A start on many deferred messages: ms to the first 220, s until all are indexed, resident MB then and at most.
sub crowded_start {
    my ($count, $cold) = @_;
    my $spool = "$work/crowded$count";
    my $server = Petrel->new(dir => $work, relay => 'smtp://127.0.0.1:1', spool => $spool);
    if (!-d $spool) {
        system("$Petrel::root/$Petrel::build/t/bench/fill", $spool, $count, 36_000) == 0 or die 'no crowded spool';
    }
    if ($cold) { system('sync'); Petrel::spit('/proc/sys/vm/drop_caches', '3') }
    my $start = time;
    my $pid = Petrel::spawn("$work/log", $dynamic, '-c', $server->conf, 'run');
    my $banner = '';
    while ($banner !~ /^220/ && time < $start + 20) {
        my $s = IO::Socket::INET->new("127.0.0.1:$server->{port}") or do { sleep 0.0005; next };
        $banner = <$s> // '';
    }
    my $first = (time - $start) * 1000;
    my $indexed = sub { my (undef, $status) = $server->run('status', '--json'); return $status =~ /"deferred": $count\b/ };
    sleep 0.05 while !$indexed->() && time < $start + 300;
    my $all = time - $start;
    my ($memory, $peak) = (Bench::memory_mb('Rss', $pid), Bench::status($pid, 'VmHWM') / 1024);
    Petrel::reap($pid, 'TERM');
    return ($first, $all, $memory, $peak);
}

# The limits are ms, s, MB, MB.
sub crowded {
    my ($count, $how, $cold, @limits) = @_;
    my @figures = crowded_start($count, $cold);
    bar("$count deferred, $how: start to first 220", $figures[0], $limits[0], 'ms');
    bar("$count deferred, $how: all indexed", $figures[1], $limits[1], 's');
    bar("$count deferred, $how: resident (RSS)", $figures[2], $limits[2], 'MB');
    bar("$count deferred, $how: the same at most", $figures[3], $limits[3], 'MB');
    return;
}

# A greeted client.
sub client {
    my $port = shift;
    my $s = IO::Socket::INET->new("127.0.0.1:$port") or die "no connection: $!";
    Petrel::reply($s) =~ /^220/ or die 'no greeting';
    print $s "EHLO client.example\r\n";
    Petrel::reply($s) =~ /^250/ or die 'no EHLO';
    return $s;
}

sub idle_memory {
    my ($what, $binary, $limit) = @_;
    my $server = started($binary);
    sleep 0.5;
    bar("idle, $what: resident (RSS)", Bench::memory_mb('Rss', $server->{pid}), $limit, 'MB');
    note("idle, $what: its own share (PSS)", Bench::memory_mb('Pss', $server->{pid}), 'MB');
    return $server;
}

sub idle_wakes {
    my $pid = shift;
    sleep 2; # it has looked at its disk
    my $wakes = sub { Bench::status($pid, 'voluntary_ctxt_switches') + Bench::status($pid, 'nonvoluntary_ctxt_switches') };
    my ($before, $cpu) = ($wakes->(), Bench::cpu_ms($pid));
    sleep $idle_s;
    bar("idle, dynamic: wake-ups in $idle_s s", $wakes->() - $before, 0, '');
    bar("idle, dynamic: CPU in $idle_s s", Bench::cpu_ms($pid) - $cpu, 0, 'ms');
    return;
}

sub many_clients {
    my $server = shift;
    my $before = Bench::memory_mb('Rss', $server->{pid});
    my @clients = map { client($server->{port}) } 1 .. 1000;
    bar('1,000 idle clients, greeted: more resident', Bench::memory_mb('Rss', $server->{pid}) - $before, 16, 'MB');
    close $_ for @clients;
    return;
}

# A process with that many clients, each of which says one byte of a message each second.
sub slow_clients {
    my ($port, $count) = @_;
    pipe my $reader, my $writer or die;
    my $pid = fork // die;
    if ($pid == 0) {
        $SIG{__DIE__} = sub { warn @_; POSIX::_exit(1) }; # what this file's END blocks end is not ours
        my @clients = map { client($port) } 1 .. $count;
        my @words = map { "MAIL FROM:<slow$_\@example.org>\r\nRCPT TO:<slow\@example.com>\r\nDATA\r\n" } 0 .. $#clients;
        my $turn = 0;
        for (my $second = time ;; $second += 1) {
            for my $i (0 .. $#clients) {
                my $now = $second + $i / $count;
                sleep($now - time) if $now > time;
                syswrite $clients[$i], substr($words[$i], $turn % length $words[$i], 1);
            }
            syswrite $writer, 'x' if $turn++ == 1;
        }
    }
    close $writer;
    sysread $reader, my $ready, 1 or die 'no slow clients';
    return $pid;
}

# p50 and p99 of one normal client, in ms, with and without 500 slow ones, in turn.
sub slow_ones {
    my $sink = Bench::sink();
    my $server = started($dynamic, relay => "smtp://127.0.0.1:$sink->{port}");
    my %seen;
    for (1 .. 3) {
        for my $slow (0, 500) {
            my $pid = $slow ? slow_clients($server->{port}, $slow) : 0;
            my $figure = Bench::load($server->{port}, messages => 200, connections => 1, rate => 100);
            push @{ $seen{$slow}{$_} }, $figure->{$_} for qw(p50 p99);
            if ($pid) { kill 'KILL', $pid; waitpid $pid, 0; }
        }
    }
    $server->stop;
    Petrel::reap($sink->{pid}, 'TERM');
    my %middle = map { my $slow = $_; $slow => { map { $_ => Bench::median(@{ $seen{$slow}{$_} }) } qw(p50 p99) } } keys %seen;
    note("one normal client, MAIL to 250: $_", $middle{0}{$_}, 'ms') for qw(p50 p99);
    note("beside 500 clients of 1 byte/s: $_", $middle{500}{$_}, 'ms') for qw(p50 p99);
    bar('500 slow clients: p50 with them / without', $middle{500}{p50} / $middle{0}{p50}, 1.25, 'x');
    return;
}

# The cost of the scheduler's decisions: t/bench/decide.c.
sub decisions {
    my $decide = "$Petrel::root/$Petrel::build/t/bench/decide";
    for my $case (['100,000 messages, 10,000 sites', 100_000, 10_000, 100], ['100,000 messages, one site', 100_000, 1, 1]) {
        my ($name, @arguments) = @$case;
        my ($time, $bytes) = `$decide @arguments` =~ /"decision_ns": (\d+), "bytes": ([\d.]+)/ or die 'decide';
        bar("a decision, $name", $time / 1000, 1, 'us');
        bar("memory of a message, $name", $bytes, 200, 'B');
    }
    return unless Petrel::have('valgrind');
    my ($messages, $file) = (20_000, "$work/callgrind");
    my ($count) = `valgrind --tool=callgrind --callgrind-out-file=$file --toggle-collect=decide $decide $messages 2000 100 2>&1` =~ /Collected : (\d+)/ or return;
    note('a decision, by callgrind', $count / $messages, 'instr.');
    return;
}

printf "%-52s %9s     %-11s\n", 'Bars', 'measured', 'limit';
decisions();
note('stripped, without its libraries', stripped_kb($dynamic), 'KB');
bar('stripped, static', stripped_kb($static), 2750, 'KB') if $static;
my $server = idle_memory('dynamic', $dynamic, 6);
idle_wakes($server->{pid});
many_clients($server);
$server->stop;
idle_memory('static', $static, 3)->stop if $static;
bar('start to first 220, empty queue (median of 20)', Bench::median(map { first_banner_ms() } 1 .. 20), 50, 'ms');
my $has_cold = -w '/proc/sys/vm/drop_caches';
crowded(100_000, 'caches warm', 0, 200, 5, 24, 24);
crowded(100_000, 'caches cold', 1, 200, 5, 24, 24) if $has_cold;
# Needs three million files and 15 GB, and minutes to make them.
if ($ENV{BENCH_MILLION}) {
    crowded(1_000_000, 'caches warm', 0, 500, 15, 48, 64);
    crowded(1_000_000, 'caches cold', 1, 500, 60, 48, 64) if $has_cold;
}
slow_ones();
