#!/usr/bin/perl
# SIGKILL at random moments under load, and a start on the same spool each time: a message answered with 250, or injected with exit
# code 0, arrives whole. Duplicates are counted, not forbidden.
#
# SEED=n repeats the moments (not the interleaving); ROUNDS=n makes it longer.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use lib 't/e2e';
use Client;
use Petrel;
use Sink;

my $seed = $ENV{SEED} || time;
my $rounds = $ENV{ROUNDS} || 12;
srand $seed;
diag "SEED=$seed ROUNDS=$rounds";

# A message that can prove itself whole. name is unique.
sub content {
    my $name = shift;
    my $size = rand() < 0.1 ? 1 + int rand 300_000 : 1 + int rand 3000;
    my $body = substr("$name says: 'all is well'.\r\n" x ($size / 20 + 1), 0, $size) =~ s/\r?\n?\z/\r\n/r;
    return "Subject: $name\r\nX-Digest: " . md5_hex($body) . "\r\n\r\n$body";
}

# Runs until STOP appears; writes a line "name recipients" for each message that was promised.
sub sender {
    my ($petrel, $label, $send, $pause) = @_;
    srand $seed + ord $label;
    my $number = 0;
    open my $promised, '>>:raw', "$petrel->{dir}/promised.$label" or die;
    my $parent = getppid;
    while (!-e "$petrel->{dir}/STOP" && getppid == $parent) {
        my $name = $label . ++$number;
        my @to = map { ($label eq 'd' || rand() < 0.3 ? 'busy' . int(time) % 50 . '.' : '') . "$name.$_\@x.test" } 1 .. 1 + int rand 3;
        if ($send->($name, \@to, content($name))) { syswrite $promised, "$name @to\n" }
        sleep $pause;
    }
    return;
}

# By SMTP: the connection is made anew whenever it breaks.
sub by_smtp {
    my ($petrel, $pipelined) = @_;
    my $client;
    return sub {
        my ($name, $to, $data) = @_;
        $client //= Client->greeted($petrel->{port});
        if (!$client) { sleep 0.02; return 0 }
        my %mail = (from => "$name\@source.test", to => $to, data => $data);
        my $reply = $pipelined ? $client->send_pipelined(%mail) : $client->send(%mail);
        undef $client if $reply !~ /^[245]/;
        return $reply =~ /^250 2\.0\.0 Ok: queued as/;
    };
}

# By sendmail(1), which needs no daemon.
sub by_command {
    my $petrel = shift;
    return sub {
        my ($name, $to, $data) = @_;
        my $file = Petrel::spit("$petrel->{dir}/input.$$", $data =~ s/\r\n/\n/gr);
        my $pid = fork // die;
        if ($pid == 0) {
            open STDIN, '<', $file or die;
            open STDERR, '>>', "$petrel->{dir}/sendmail.log" or die;
            exec $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-i', '-f', "$name\@source.test", @$to or POSIX::_exit(127);
        }
        waitpid $pid, 0;
        return $? == 0;
    };
}

sub in_background {
    my $work = shift;
    my $pid = fork // die;
    return $pid if $pid;
    @ARGV = ();
    eval { $work->() };
    warn $@ if $@;
    POSIX::_exit($@ ? 1 : 0);
}

# Starts, lets it run for a moment - sometimes too short to greet anybody - and kills.
sub batter {
    my $petrel = shift;
    for my $round (1 .. $rounds) {
        $petrel->{pid} = Petrel::spawn($petrel->{log}, $Petrel::binary, '-c', $petrel->conf, 'run');
        sleep(rand() < 0.15 ? rand 0.1 : 0.1 + rand 0.9);
        return $round if waitpid($petrel->{pid}, POSIX::WNOHANG()) != 0;
        $petrel->kill9;
    }
    return 0;
}

# Arrivals: {recipient => count}, number of damaged copies.
sub arrivals {
    my $sink = shift;
    my (%arrived, @damaged);
    for my $file ($sink->files) {
        my $message = Sink::read_message($file);
        my ($digest, $body) = $message->{data} =~ /^X-Digest: (\w+)\r\n(?:\S.*\r\n)*?\r\n(.*)\z/ms;
        push @damaged, $file unless $body && md5_hex($body) eq $digest;
        $arrived{$_}++ for @{ $message->{to} };
    }
    return (\%arrived, \@damaged);
}

sub files_in {
    my ($petrel, $rooms) = @_;
    return map { s{.*/spool/}{}r } grep { -f } glob "$petrel->{dir}/spool/{$rooms}/*";
}

# Files of messages that Petrel still has to answer for. Files in pid/, mess/ and intd/ alone came to nothing or are done: it may be
# an injector's that still works on it, and goes after 36 hours.
sub files_left {
    my $petrel = shift;
    my @left = files_in($petrel, 'todo,info,local,remote,bounce,hold,corrupt');
    my %known = map { s{.*/}{}r => 1 } @left;
    return @left, grep { $known{s{.*/}{}r} } files_in($petrel, 'mess');
}

sub survive {
    my ($title, $sink_options, $settings, %senders) = @_;
    my $sink = Sink->start(@$sink_options);
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", %$settings);
    my @pids;
    for my $label (sort keys %senders) {
        my ($how, $pause, @more) = @{ $senders{$label} };
        push @pids, in_background(sub { sender($petrel, $label, $how->($petrel, @more), $pause) });
    }
    my $died = batter($petrel);
    is $died, 0, "$title: it never ends by itself" or diag substr($petrel->log, -2000);
    $petrel->start;
    Petrel::spit("$petrel->{dir}/STOP", '');
    for my $pid (@pids) { waitpid $pid, 0; is $?, 0, "$title: a sender ends well" }

    my %promised = map { my ($name, @to) = split / /; map { $_ => 1 } @to }
        map { split /\n/, Petrel::slurp($_) } glob "$petrel->{dir}/promised.*";
    cmp_ok scalar(keys %promised), '>', $rounds, "$title: there was a load";
    ok Petrel::wait_for(sub { !files_left($petrel) }, 90), "$title: the queue runs empty" or diag join ' ', files_left($petrel);
    ok $petrel->wait_empty, "$title: nothing is listed" or diag $petrel->run(qw(queue ls));
    my ($arrived, $damaged) = arrivals($sink);
    my @lost = grep { !$arrived->{$_} } sort keys %promised;
    is scalar(@lost), 0, "$title: nothing that was promised is lost" or diag "lost: @lost[0 .. ($#lost < 9 ? $#lost : 9)]";
    is scalar(@$damaged), 0, "$title: nothing came damaged" or diag "@$damaged[0 .. ($#$damaged < 4 ? $#$damaged : 4)]";
    my $copies = 0;
    $copies += $_ - 1 for values %$arrived;
    my $log = $petrel->log;
    my $deferred = () = $log =~ /status=deferred/g;
    diag sprintf '%s: %d recipients promised, %d arrived without a promise, %d duplicates, %d deferrals', $title,
        scalar(keys %promised), scalar(grep { !$promised{$_} } keys %$arrived), $copies, $deferred;
    unlike $log, qr/status=(?:bounced|expired)/, "$title: nothing was given up";
    unlike $log, qr/corrupt|Assertion|Sanitizer/, "$title: nothing was found damaged";
    is $petrel->stop, 0, "$title: it ends well";
    is_deeply [files_left($petrel)], [], "$title: no file of a message is left in the spool";
    my %begun = map { s{.*/}{}r => 1 } files_in($petrel, 'pid,mess,intd');
    my @unsent = grep { $log =~ / $_: .*\(queued\)/ && $log !~ / $_: to=.*status=sent/ } keys %begun;
    is "@unsent", '', "$title: what was killed while it came or went was never promised, or was sent";
    cmp_ok scalar(keys %begun), '<=', $rounds * keys %senders, sprintf '%s: and that is little (%d)', $title, scalar keys %begun;
    my @odd = grep { /status=deferred/ && !/4[0-9][0-9] 4\./ && !/shutting down/ && !/\(for the reason of / } split /\n/, $log;
    is scalar(@odd), 0, "$title: no other trouble" or diag join "\n", @odd[0 .. ($#odd < 4 ? $#odd : 4)];
    $sink->stop;
    return $deferred;
}

survive('relay', [], {}, a => [\&by_smtp, 0.02, 0], b => [\&by_smtp, 0.02, 1], c => [\&by_smtp, 0.01, 1]);

# Some recipients are put off at first, so that files of S5 lie there at the kill; a slow sink, so that
# deliveries are under way; sendmail injects all the time.
my @busy = map { ('--fail-rcpt', "busy$_.:450:10") } 0 .. 49;
$rounds = int($rounds * 0.6) || 1;
my $deferred = survive('deferrals', [@busy, '--fail', 'dot:451:20', '--delay', 'dot:15'],
    {minimal_backoff_time => '1s', maximal_backoff_time => '2s'},
    d => [\&by_smtp, 0.02, 1], e => [\&by_smtp, 0.02, 0], s => [\&by_command, 0.02]);
cmp_ok $deferred, '>', 0, 'deferrals: there were some';
done_testing;
