#!/usr/bin/perl
# The table of README: Petrel, Postfix and OpenSMTPD as relays of the same mail, in turn, and msmtp, which hands over one
# message and ends. Postfix is that of t/bench/postfix.sh, OpenSMTPD that of t/e2e/get-peers.sh, msmtp the system's; what
# is not there is left out. As root.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find qw(find);
use IO::Socket::INET;
use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Peer;

my $seconds = $ENV{SECONDS_EACH} || 3; # of each run, about
my $rounds = $ENV{ROUNDS} || 3;
my @load = (size => 10 * 1024, connections => 10); # the mail of programs
my $warm_up = 200;
my $work = Bench::work_dir();
$ENV{TMPDIR} = $work; # their spools are on one file system
my $sink = Bench::sink();
my ($postfix, $opensmtpd); # running
END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if Bench::have_postfix(); $opensmtpd->stop if $opensmtpd; $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };

sub start_petrel {
    my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}");
    $server->start;
    return { port => $server->{port}, pid => $server->{pid}, again => [ $Petrel::binary, '-c', $server->conf, 'run' ], stop => sub { $server->stop; system 'rm', '-rf', "$work/log" } };
}

sub start_postfix {
    system('sh', "$Bench::here/postfix.sh", 'start', $sink->{port}) == 0 or die 'postfix.sh';
    chomp(my ($port, $pid) = map { `sh $Bench::here/postfix.sh $_` } qw(port pid));
    Bench::wait_banner($port) or die 'postfix does not answer';
    return { port => $port, pid => $pid, again => [ 'chroot', "$Bench::postfix/root", '/usr/lib/postfix/sbin/master', '-c', '/etc/postfix' ], stop => sub { system 'sh', "$Bench::here/postfix.sh", 'stop' } };
}

sub start_opensmtpd {
    $opensmtpd = Peer::opensmtpd("smtp://127.0.0.1:$sink->{port}");
    return { port => $opensmtpd->{port}, pid => $opensmtpd->{pid}, again => [ 'chroot', $opensmtpd->{root}, '/usr/sbin/smtpd', '-d', '-f', '/etc/smtpd.conf' ], stop => sub { $opensmtpd->stop } };
}

# MB of what runs: the programs of a package.
sub programs_mb {
    my @files;
    for my $where (@_) {
        find({ no_chdir => 1, wanted => sub { push @files, $_ if -f && !-l && Petrel::slurp($_) =~ /\A\x7fELF/ } }, $where) if -e $where;
    }
    return sum0(map { system('strip', '-o', "$work/stripped", $_) == 0 ? -s "$work/stripped" : -s $_ } @files) / 1e6;
}

# The first 220 behind exec, in ms; in the settings and with the spool of the last run.
sub start_ms {
    my ($server) = @_;
    my ($start, $line) = (time, '');
    my $pid = Petrel::spawn("$work/again.log", Petrel::have('setsid'), @{ $server->{again} });
    while ($line !~ /^220/ && time < $start + 30) {
        my $s = IO::Socket::INET->new("127.0.0.1:$server->{port}") or do { sleep 0.0005; next };
        $line = <$s> // '';
    }
    my $end = time;
    Petrel::reap($pid, 'TERM', 10);
    kill 'KILL', -$pid;
    return ($end - $start) * 1000;
}

# One server, warmed up, measured, at rest, stopped, started again.
sub measure {
    my ($start) = @_;
    my $server = $start->();
    my $warm = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, @load, messages => $warm_up);
    my $result = Bench::relay($sink, $server->{port}, $server->{pid}, sub { }, @load, messages => max($warm_up, int($warm->{through} * $seconds)));
    sleep 1;
    $result->{rest} = Bench::memory_mb('Pss', Bench::family($server->{pid}));
    $server->{stop}->();
    $result->{start} = Bench::median(map { start_ms($server) } 1 .. 5); # the first follows much writing
    return $result;
}

# ms of CPU for a message that a program hands over by msmtp, and waits.
sub msmtp_cpu {
    my ($program) = @_;
    my $count = 100;
    Petrel::spit("$work/message", "Subject: test\n\n" . ('x' x 70 . "\n") x 140);
    my @before = times;
    for (1 .. $count) {
        system("'$program' --host=127.0.0.1 --port=$sink->{port} --from=a\@b.example --tls=off --auth=off bob\@c.example <'$work/message'") == 0 or return;
    }
    my @after = times;
    return ($after[2] + $after[3] - $before[2] - $before[3]) * 1000 / $count;
}

my @peers = ([ 'Petrel', \&start_petrel, programs_mb($Petrel::binary) ]);
push @peers, [ 'Postfix', \&start_postfix, programs_mb("$Bench::postfix/root/usr/lib/postfix", glob "$Bench::postfix/root/usr/sbin/post*") ] if Bench::have_postfix();
push @peers, [ 'OpenSMTPD', \&start_opensmtpd, programs_mb(Peer::package_root('opensmtpd') . '/usr/sbin') ] if !Peer::missing('opensmtpd');
chomp(my $cores = `nproc`);
print "Relays on loopback, 10 KiB, 10 connections, every 250 durable; $cores cores, load ", join(' ', (split ' ', Petrel::slurp('/proc/loadavg'))[ 0 .. 1 ]), ". $rounds rounds in turn, about ${seconds}s each; the median.\n";
print "in, through: messages/s (each). CPU: ms a message. rest: MB (PSS of all processes), after mail. start: ms to the first 220. size: MB of its programs, stripped\n\n";
printf "%-10s %8s %8s %-20s %8s %8s %8s %8s\n", '', 'in', 'through', '', 'CPU', 'rest', 'start', 'size';
$| = 1;
my %runs;
for (1 .. $rounds) {
    for my $peer (@peers) { push @{ $runs{ $peer->[0] } }, measure($peer->[1]) }
}
my %middle;
for my $peer (@peers) {
    my ($name, undef, $size) = @$peer;
    my @all = @{ $runs{$name} };
    $middle{$name} = { size => $size, map { my $field = $_; $field => Bench::median(map { $_->{$field} } @all) } qw(in through cpu rest start) };
    printf "%-10s %8.0f %8.0f %-20s %8.3f %8.1f %8.0f %8.2f\n", $name, @{ $middle{$name} }{qw(in through)}, '(' . join(' ', map { sprintf '%.0f', $_->{through} } @all) . ')', @{ $middle{$name} }{qw(cpu rest start size)};
    next if $name eq 'Petrel';
    printf "%-10s %7.2fx %7.2fx %-20s %7.2fx %7.2fx %7.2fx %7.2fx\n", '  ratio', (map { $middle{Petrel}{$_} / ($middle{$name}{$_} || 1e-9) } qw(in through)), '', map { $middle{Petrel}{$_} / ($middle{$name}{$_} || 1e-9) } qw(cpu rest start size);
}
my $msmtp = Petrel::have('msmtp');
my $cpu = $msmtp ? msmtp_cpu($msmtp) : undef;
printf "%-10s %8s %8s %-20s %8.3f %8s %8s %8.2f\n", 'msmtp', '-', '-', '(keeps no mail)', $cpu, '-', '-', programs_mb(abs_path($msmtp)) if defined $cpu;
Petrel::reap($sink->{pid}, 'TERM');
