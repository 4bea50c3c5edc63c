package Bench;

# Common parts of the measurements: figures from /proc, the sink's control port, one run of the load generator.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use List::Util qw(sum0);
use POSIX qw(sysconf _SC_CLK_TCK :sys_wait_h);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__)) . '/../e2e';
use Petrel;

our $here = dirname(abs_path(__FILE__));
our $postfix = $ENV{PETREL_BENCH_POSTFIX} || '/opt/petrel-bench-postfix';
my $tick_ms = 1000 / sysconf(_SC_CLK_TCK);

# Postfix can be measured: set up, and we may start it.
sub have_postfix { return $> == 0 && -x "$postfix/root/usr/lib/postfix/sbin/master" }

# A folder for spools: on the file system of Postfix's queue when that is measured too.
sub work_dir { return tempdir('bench-XXXXXX', CLEANUP => 1, have_postfix() ? (DIR => $postfix) : (TMPDIR => 1)) }

# The fields of /proc/PID/stat behind the name: [0] state, [1] parent, [11..14] times.
sub stat_of { my $all = Petrel::slurp("/proc/$_[0]/stat"); $all =~ s/^.*\) //s or return; return split ' ', $all }

# A process and its children, all that Postfix has.
sub family {
    my $pid = shift;
    my @all = ($pid);
    for my $entry (glob '/proc/[0-9]*') {
        my ($other) = $entry =~ /(\d+)$/;
        my @stat = stat_of($other) or next;
        push @all, $other if $stat[1] == $pid;
    }
    return @all;
}

# CPU time used so far, with that of children which have ended.
sub cpu_ms {
    my ($pid) = @_;
    my @own = stat_of($pid) or return 0;
    my $ticks = $own[13] + $own[14];
    for my $each (family($pid)) { my @stat = stat_of($each) or next; $ticks += $stat[11] + $stat[12]; }
    return $ticks * $tick_ms;
}

# "Rss" or "Pss" of these processes, in MB (1000 * 1000).
sub memory_mb {
    my ($field, @pids) = @_;
    return sum0(map { Petrel::slurp("/proc/$_/smaps_rollup") =~ /^$field:\s+(\d+) kB/m ? $1 : 0 } @pids) * 1024 / 1e6;
}

sub status { my ($pid, $field) = @_; return Petrel::slurp("/proc/$pid/status") =~ /^$field:\s+(\d+)/m ? $1 : 0 }
sub median { my @sorted = sort { $a <=> $b } @_; return @sorted % 2 ? $sorted[ $#sorted / 2 ] : ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2 }

# A sink that keeps nothing, with options: { pid, port, control (a connection) }.
my $sinks = 0;

sub sink {
    my @options = @_;
    my $log = work_dir() . '/sink' . $sinks++ . '.log';
    my $pid = Petrel::spawn($log, "$Petrel::root/$Petrel::build/t/bench/sink", '--control', '127.0.0.1:0', @options);
    my $control = Petrel::wait_for(sub { Petrel::slurp($log) =~ /^control \S*?:(\d+)$/m && $1 }) or die 'no sink: ' . Petrel::slurp($log);
    my ($port) = Petrel::slurp($log) =~ /^listening \S*?:(\d+)$/m;
    return { pid => $pid, port => $port, control => IO::Socket::INET->new("127.0.0.1:$control") || die "no control: $!" };
}

sub ask { my ($sink, $line) = @_; print { $sink->{control} } "$line\n"; return }
sub answered { my ($sink, $seconds) = @_; return IO::Select->new($sink->{control})->can_read($seconds) ? readline $sink->{control} : undef }

# Until 220 comes; true when it did.
sub wait_banner {
    my $port = shift;
    return Petrel::wait_for(sub {
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 5) or return 0;
        return (<$s> // '') =~ /^220/;
    });
}

# The load generator to a port: its figures (per_second, p50, p99).
sub load {
    my ($port, %option) = @_;
    my $meanwhile = delete $option{meanwhile};
    my $log = work_dir() . '/load.log';
    my $pid = Petrel::spawn($log, "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$port", map { defined $option{$_} ? ("--$_", $option{$_}) : "--$_" } keys %option);
    $meanwhile->() if $meanwhile;
    Petrel::reap($pid, 0, 120);
    my $json = Petrel::slurp($log);
    my %figure = $json =~ /"(per_second|p50|p99|accepted)": ([\d.]+)/g;
    warn "load: $json" unless $figure{accepted};
    return \%figure;
}

# One run: so many messages through the server that listens on port and runs as pid, to the sink. sample is
# called about four times a second. { in, through (both messages/s), cpu (ms a message), p50 }.
sub relay {
    my ($sink, $port, $pid, $sample, %option) = @_;
    ask($sink, 'reset');
    answered($sink, 10);
    my $count = $option{messages};
    my ($start, $cpu, $end) = (time, cpu_ms($pid));
    ask($sink, "wait $count 100");
    my $figure = load($port, %option, meanwhile => sub {
        until (defined answered($sink, 0.25)) { $sample->(); }
        $end = time;
    });
    sleep 0.3; # what it does behind the last message counts
    $sample->();
    return { in => $figure->{per_second}, p50 => $figure->{p50}, through => $count / ($end - $start), cpu => (cpu_ms($pid) - $cpu) / $count };
}

1;
