#!/usr/bin/perl
# SIGKILL at the n-th write, sync, open, link, rename and unlink of the real program, for n throughout a workload: what was answered
# with 250 arrives, is bounced, or is still there after the next start, and nothing is left behind. t/crash/ has each n, simulated.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep time);

plan skip_all => 'strace is not there' if system('strace -V >/dev/null 2>&1') != 0;
plan skip_all => 'strace may not trace here' if system('strace -D -o /dev/null true 2>/dev/null') != 0;

# Calls and the step of n; opening is mostly of libraries and settings.
my $fine = $ENV{FINE} ? 1 : 4;
my @calls = ((map { [$_, $fine] } qw(pwrite64 io_submit fsync linkat renameat unlinkat)), ['openat', 3 * $fine]);
my $most = $ENV{ROUNDS} || 60; # n at the most
my $workers = 2;

# Small, large, to two of whom one is busy, to somebody unknown.
my @mails = (
    { name => 'small', to => ['small@x.test'], size => 500 },
    { name => 'large', to => ['large@x.test'], size => 50_000 },
    { name => 'mixed', to => ['mixed@x.test', 'busy@x.test'], size => 2000 },
    { name => 'lost', to => ['nobody@x.test'], size => 800 },
);

sub content { my $mail = shift; return "Subject: $mail->{name}\r\n\r\n" . ("$mail->{name} is all here\r\n" x ($mail->{size} / 20)) . "end of $mail->{name}\r\n" }

# Starts it with the killer behind it; the pid is Petrel's own.
sub start_hunted {
    my ($petrel, $call, $n) = @_;
    my $script = Petrel::spit("$petrel->{dir}/hunted", "#!/bin/sh\nexec strace -D -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n $Petrel::binary \"\$@\"\n");
    chmod 0755, $script;
    $petrel->{pid} = Petrel::spawn($petrel->{log}, $script, '-c', $petrel->conf, 'run');
    Petrel::wait_for(sub { (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $petrel->{port}) || waitpid($petrel->{pid}, POSIX::WNOHANG()) == $petrel->{pid}) ? 1 : 0 }, 20);
    return;
}

sub is_dead { my $petrel = shift; return !-d "/proc/$petrel->{pid}" || Petrel::slurp("/proc/$petrel->{pid}/stat") =~ /\) Z / }

# One life and death: (died, list of what went wrong).
sub trial {
    my ($call, $n) = @_;
    my $sink = Sink->start('--fail-rcpt', 'busy:451:1', '--fail-rcpt', 'nobody:550');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", minimal_backoff_time => '1s', maximal_backoff_time => '1s',
        journal_size => '4M', journal_message_max => '20K');
    start_hunted($petrel, $call, $n);
    my (%promised, @wrong);
    for my $mail (@mails) {
        my $client = is_dead($petrel) ? undef : Client->greeted($petrel->{port});
        my $reply = $client ? $client->send(from => "$mail->{name}\@source.test", to => $mail->{to}, data => content($mail)) : '';
        $promised{ $mail->{name} } = 1 if $reply =~ /^250 2\.0\.0 Ok: queued as/;
    }
    Petrel::wait_for(sub { is_dead($petrel) || $sink->count('messages') >= 5 }, 4) if %promised;
    my $died = is_dead($petrel);
    kill 'KILL', $petrel->{pid};
    waitpid $petrel->{pid}, 0;
    $petrel->start;
    push @wrong, 'it does not run empty: ' . join '', $petrel->run(qw(queue ls)) if !$petrel->wait_empty(30);
    # Files of what has ended go once its end is durable.
    my $left = sub { return grep { -f } glob "$petrel->{dir}/spool/{todo,info,local,remote,bounce,hold,corrupt}/*" };
    Petrel::wait_for(sub { !$left->() });
    push @wrong, 'it does not end well' if $petrel->stop != 0;
    my %arrived;
    for my $file ($sink->files) {
        my $message = Sink::read_message($file);
        my ($name) = $message->{data} =~ /^Subject: (\w+)\r$/m;
        $arrived{$_}++ for @{ $message->{to} };
        my ($mail) = grep { $message->{from} eq "$_->{name}\@source.test" } @mails;
        push @wrong, "a part of $mail->{name} arrived" if $mail && $message->{data} !~ /\Q${\content($mail)}\E\z/;
    }
    for my $mail (grep { $promised{ $_->{name} } } @mails) {
        my @to = $mail->{name} eq 'lost' ? ('lost@source.test') : @{ $mail->{to} };
        push @wrong, "$_ got nothing" for grep { !$arrived{$_} } @to;
    }
    my @left = $left->();
    push @wrong, "left: @left" if @left;
    $sink->stop;
    return ($died, @wrong);
}

# Every workers-th n of all calls; a line for each: call, n, died, what went wrong.
sub worker {
    my ($which, $file) = @_;
    open my $out, '>', $file or die;
    $out->autoflush(1);
    for my $entry (@calls) {
        my ($call, $step) = @$entry;
        for (my $n = 1 + $which * $step; $n <= $most * $step; $n += $workers * $step) {
            my ($died, @wrong) = trial($call, $n);
            print $out join("\t", $call, $n, $died ? 1 : 0, join '; ', @wrong), "\n";
            last if !$died;
        }
    }
    close $out;
    return;
}

my $dir = File::Temp::tempdir('inject-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my @pids;
for my $which (0 .. $workers - 1) {
    my $pid = fork // die;
    if ($pid == 0) {
        my $good = eval { worker($which, "$dir/$which"); 1 };
        print STDERR "# $@" if !$good;
        POSIX::_exit($good ? 0 : 1);
    }
    push @pids, $pid;
}
for my $pid (@pids) { waitpid $pid, 0; is $?, 0, 'all trials were made' }
my (%deaths, %survived, $trials);
for my $line (map { split /\n/, Petrel::slurp($_) } glob "$dir/*") {
    my ($call, $n, $died, $wrong) = split /\t/, $line;
    $trials++;
    $deaths{$call}++ if $died;
    $survived{$call} = 1 if !$died;
    is $wrong // '', '', "killed at $call $n" if $wrong;
}
for my $entry (@calls) {
    my $call = $entry->[0];
    ok $deaths{$call} || $call =~ /^(?:renameat|fsync)$/, "$call was met";
    ok $survived{$call}, "$call: to the end of the workload";
}
note join ', ', "$trials trials", map { "$_ " . ($deaths{$_} // 0) } map { $_->[0] } @calls;
done_testing;
