package Petrel;

# Runs the real binary in a temporary directory for end-to-end tests: settings, start, 220, log, stop.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use IO::Uncompress::Gunzip qw(gunzip);
use lib dirname(__FILE__);
use POSIX qw(:sys_wait_h);
use Schema;
use Time::HiRes qw(sleep time clock_gettime CLOCK_MONOTONIC);

our $root = abs_path(dirname(__FILE__) . '/../..');
our $build = $ENV{BUILD} || 'build';
our $binary = $ENV{PETREL} || "$root/petrel";
our $patience = 60; # seconds for anything to happen: a bound, not a measure
our @running; # pids to end in any case
my $command_dir;

# However a test ends, END is reached.
$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);
$SIG{PIPE} = 'IGNORE';

# The output of --json is checked by t/e2e/schema/ then.
END {
    my $code = $?;
    for my $pid (@running) { kill 'KILL', $pid; waitpid $pid, 0; }
    $? = $code || Schema::check();
}

# A port that is free for TCP and UDP, and no other test's: the kernel gives away none of these by itself, and a
# socket named after it is kept as long as this process lives, as in t/support/port.h.
my ($next_port, @locks) = (0);
sub free_port {
    my $host = shift || '127.0.0.1';
    my ($first, $count) = (10000, 20000);
    for (1 .. $count) {
        my $port = $first + ($$ * 101 + $next_port++) % $count;
        my $lock = IO::Socket::UNIX->new(Local => "\0petrel-test-port-$port", Listen => 1) or next;
        my %at = (LocalAddr => $host, LocalPort => $port, ReuseAddr => 1);
        IO::Socket::INET->new(%at, Listen => 1) && IO::Socket::INET->new(%at, Proto => 'udp') or next;
        push @locks, $lock;
        return $port;
    }
    die 'no port is free';
}

# Whether a program is there; tests skip when a peer is missing.
sub have { my $p = shift; for (split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/lib/dovecot') { return "$_/$p" if -x "$_/$p" } return }

# spawn(log => FILE, cmd...): starts a program, its output in a file; returns the pid.
sub spawn {
    my ($log, @command) = @_;
    # Perl keeps a signal for its handler, and exec() forgets it.
    local @SIG{qw(INT TERM HUP)} = ('DEFAULT') x 3;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        $SIG{PIPE} = 'DEFAULT'; # what is ignored stays so in the program
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', $log or die;
        open STDERR, '>&', \*STDOUT;
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    push @running, $pid;
    return $pid;
}

# Seconds since the last time. However long the machine stood still, it has waited for one.
sub waited {
    my $since = shift;
    my $now = clock_gettime(CLOCK_MONOTONIC);
    my $seconds = $now - ($$since // $now);
    $$since = $now;
    return $seconds < 1 ? $seconds : 1;
}

# Ends a process that spawn started; returns its wait status, or undef when it had to be killed.
sub reap {
    my ($pid, $signal, $seconds) = @_;
    kill $signal, $pid if $signal;
    my $left = $seconds || $patience;
    for (my $since; $left > 0; $left -= waited(\$since)) {
        if (waitpid($pid, WNOHANG) == $pid) {
            my $status = $?;
            @running = grep { $_ != $pid } @running;
            return $status;
        }
        sleep 0.02;
    }
    kill 'KILL', $pid;
    waitpid $pid, 0;
    @running = grep { $_ != $pid } @running;
    return;
}

# Waits until the sub is true, $patience at most; returns what it said. Asking costs time, too: less often, the longer it takes.
sub wait_for {
    my ($what, $seconds) = @_;
    my ($left, $pause) = ($seconds || $patience, 0.03);
    for (my $since; $left > 0; $left -= waited(\$since)) {
        my $r = $what->();
        return $r if $r;
        sleep $pause;
        $pause *= 1.15 if $pause < 0.2;
    }
    return $what->();
}

sub slurp { my $f = shift; open my $h, '<:raw', $f or return ''; local $/; my $c = <$h>; return $c // '' }
sub unpacked { my $packed = shift; gunzip(\$packed => \my $plain) or return ''; return $plain }
sub count { my ($text, $pattern) = @_; return scalar(() = $text =~ /$pattern/g) }
sub spit { my ($f, $c) = @_; open my $h, '>:raw', $f or die "$f: $!"; print $h $c; close $h or die; return $f }

# new(routes => "...", any setting => value, ...): not yet started.
sub new {
    my ($class, %settings) = @_;
    my $dir = delete $settings{dir} || tempdir('petrel-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $port = free_port();
    my $self = bless { dir => $dir, port => $port, log => "$dir/log", starts => 0 }, $class;
    $self->configure(hostname => 'petrel.test', listen => "127.0.0.1:$port", spool => "$dir/spool", %settings);
    return $self;
}

sub configure {
    my ($self, %settings) = @_;
    $self->{settings} = { %{ $self->{settings} || {} }, %settings };
    my $text = '';
    for my $key (sort keys %{ $self->{settings} }) {
        my $value = $self->{settings}{$key};
        next unless defined $value;
        $value =~ s/\n(?=.)/\n    /g;
        $text .= "$key = $value\n";
    }
    spit("$self->{dir}/petrel.conf", $text);
    return $self;
}

sub conf { return $_[0]{dir} . '/petrel.conf' }

# Runs a command of the binary to its end: (exit code, output of both streams).
sub run {
    my ($self, @arguments) = @_;
    my %option = ref $arguments[0] eq 'HASH' ? %{ shift @arguments } : ();
    return command($option{input}, $binary, '-c', $self->conf, @arguments);
}

# Any command with standard input: (exit code, output).
sub command {
    my ($input, @command) = @_;
    $command_dir //= tempdir('command-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $files = "$command_dir/$$"; # of this process: tests fork
    unlink "$files.in", "$files.out"; # what runs on has its own
    spit("$files.in", $input // '');
    my $pid = fork // die;
    if ($pid == 0) {
        $SIG{PIPE} = 'DEFAULT';
        open STDIN, '<', "$files.in" or die;
        open STDOUT, '>', "$files.out" or die;
        open STDERR, '>&', \*STDOUT;
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    push @running, $pid;
    my $status = reap($pid, 0, 120);
    my $said = slurp("$files.out");
    Schema::record(\@command, $said) if $command[0] eq $binary && defined $status && !($status & 127);
    return (defined $status ? ($status & 127 ? 128 + ($status & 127) : $status >> 8) : 124, $said);
}

# Starts the daemon and waits for its 220.
sub start {
    my $self = shift;
    $self->{pid} = spawn($self->{log}, $binary, '-c', $self->conf, 'run', @_);
    $self->{starts}++;
    my $up = wait_for(sub {
        return -1 if waitpid($self->{pid}, WNOHANG) == $self->{pid};
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 5) or return 0;
        my $line = <$s>;
        return $line && $line =~ /^220/;
    });
    die "petrel did not start: " . $self->log unless $up && $up > 0;
    return $self;
}

sub stop {
    my ($self, $signal) = @_;
    my $pid = delete $self->{pid} or return;
    my $status = reap($pid, $signal || 'TERM');
    # The list of system calls is long enough for any test.
    die "$1\n" if $self->log =~ /(sandbox: system call .*)/;
    return $status;
}
sub kill9 { my $self = shift; my $pid = delete $self->{pid} or return; kill 'KILL', $pid; waitpid $pid, 0; @running = grep { $_ != $pid } @running; return }
sub log { return slurp($_[0]{log}) }
sub wait_log { my ($self, $pattern, $seconds) = @_; return wait_for(sub { $self->log =~ $pattern }, $seconds) }
# The ports that it listens on, by address: listening('[::1]') -> 12345.
sub listening { my ($self, $host) = @_; return $self->log =~ /listening on \Q$host\E:(\d+)/ ? $1 : undef }
# Files of messages left in the spool.
# Messages that Petrel has, wherever: in the journal, in files, held. Beside a running daemon a message that has
# just ended may still be among them.
sub queued {
    my $self = shift;
    my ($code, $listed) = $self->run(qw(queue ls --json));
    die "queue ls: $code $listed" if $code != 0;
    return scalar grep { !/"queue_name":"corrupt"/ } split /\n/, $listed;
}
sub wait_empty { my ($self, $seconds) = @_; return wait_for(sub { $self->queued == 0 }, $seconds) }

# The output of `petrel status --json`.
sub status { my $self = shift; return ($self->run(qw(status --json)))[1] }

# Waits until all that waits, or is held, is in files: only what they say outlives a stop or a kill.
sub wait_filed {
    my $self = shift;
    return wait_for(sub { $self->status =~ /"journal":\s*\{[^}]*"messages":\s*0\b/ && !glob "$self->{settings}{spool}/todo/*" });
}

# Waits until nothing is on its way to the disk: no sync for a second, where records wait 100 ms.
sub wait_quiet {
    my ($self, $seconds) = @_;
    my ($syncs, $since) = (-1, 0);
    return wait_for(sub {
        my ($now) = $self->status =~ /"syncs":\s*(\d+)/ or return 0;
        ($syncs, $since) = ($now, time) if $now != $syncs;
        return time - $since > 1;
    }, $seconds);
}

# A plain SMTP client that says what it is told: smtp("EHLO x", "MAIL ...", ...) -> replies.
# An array reference is sent as it is.
sub dialogue {
    my ($self, @lines) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 10) or return ("no connection");
    my @replies = (reply($s));
    for my $line (@lines) {
        print $s ref $line ? $line->[0] : "$line\r\n";
        push @replies, reply($s);
    }
    close $s;
    return @replies;
}

# One (multi-line) reply, '' when the connection ended or $patience ran out.
sub reply {
    my $s = shift;
    my $all = '';
    while (IO::Select->new($s)->can_read($patience)) {
        my $line = '';
        while ($line !~ /\n\z/) { sysread($s, my $c, 1) or return $all . $line; $line .= $c; }
        $all .= $line;
        return $all if $line =~ /^\d{3}(?: |\r?\n)/;
    }
    return $all;
}

# Sends one message; returns the last reply ("250 2.0.0 Ok: queued as ID").
sub send_mail {
    my ($self, $from, $to, $data) = @_;
    my @to = ref $to ? @$to : ($to);
    $data =~ s/\r?\n/\r\n/g;
    $data =~ s/^\./../mg;
    my @r = $self->dialogue('EHLO client.test', "MAIL FROM:<$from>", (map { "RCPT TO:<$_>" } @to), 'DATA', ["$data\r\n.\r\n"], 'QUIT');
    return $r[-2];
}

# The sink of t/bench: sink(args...) -> { pid, port, dir, control }.
sub sink {
    my (@arguments) = @_;
    my $dir = tempdir('sink-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $listen = "127.0.0.1:0";
    my @rest;
    while (@arguments) { my $a = shift @arguments; if ($a eq '--listen') { $listen = shift @arguments } else { push @rest, $a } }
    unlink "$dir.log"; # of another one, long ago
    my $pid = spawn("$dir.log", "$root/$build/t/bench/sink", '--listen', $listen, '--directory', $dir, @rest);
    my $port = wait_for(sub { slurp("$dir.log") =~ /^listening \S*?:(\d+)$/m ? $1 : undef }) or die 'no sink: ' . slurp("$dir.log");
    my ($control) = slurp("$dir.log") =~ /^control \S*?:(\d+)$/m;
    return { pid => $pid, port => $port, dir => $dir, log => "$dir.log", control => $control };
}

# The messages that the sink keeps, in order of arrival: { content, from, to => [...], parameters, to_parameters => [...],
# protocol }.
sub arrived {
    my $sink = shift;
    my @messages;
    for my $file (sort glob "$sink->{dir}/*.eml") {
        (my $side = $file) =~ s/eml$/envelope/;
        my $envelope = slurp($side);
        my %message = (content => slurp($file), to => [ $envelope =~ /^X-Sink-To: <(.*)>$/mg ]);
        $message{to_parameters} = [ $envelope =~ /^X-Sink-To-Parameters: (.*)$/mg ];
        ($message{from}) = $envelope =~ /^X-Sink-From: <(.*)>$/m;
        ($message{parameters}) = $envelope =~ /^X-Sink-From-Parameters: (.*)$/m;
        ($message{protocol}) = $envelope =~ /^X-Sink-Protocol: (.*)$/m;
        push @messages, \%message;
    }
    return @messages;
}

# Waits until the sink has that many; returns the last of them.
sub wait_arrived {
    my ($sink, $count) = @_;
    wait_for(sub { my @files = glob "$sink->{dir}/*.eml"; return @files >= $count });
    return (arrived($sink))[ $count - 1 ];
}

# A message without the trace header that Petrel has put in front.
sub untraced { my $content = shift; $content =~ s/\AReceived: [^\n]*\n(?:[ \t][^\n]*\n)*//; return $content }

1;
