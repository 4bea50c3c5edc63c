#!/usr/bin/perl
# SIGKILL at random moments while mail flows and the receiver of events takes them, fails, or hangs: each recipient's last
# verdict is reported at least once, in order, and a batch that comes again is the same.
#
# SEED=n repeats the moments (not the interleaving); ROUNDS=500 SENDERS=12 makes it longer, and
# MESSAGES=10000 kills until that many messages were promised.
use strict;
use warnings;
use JSON::PP qw(decode_json);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use lib 't/e2e';
use Client;
use Hook;
use Petrel;
use Sink;

plan skip_all => Hook->missing if Hook->missing;
my $seed = $ENV{SEED} || time;
my $rounds = $ENV{ROUNDS} || 20;
my $messages = $ENV{MESSAGES} || 0;
srand $seed;
diag "SEED=$seed ROUNDS=$rounds MESSAGES=$messages";

my $hook = Hook->start;
my $sink = Sink->start('--fail-rcpt', 'gone:550', map { ('--fail-rcpt', "busy$_.:450:10") } 0 .. 9);
my $petrel = Petrel->new(
    relay_from => '127.0.0.1', relay => "smtp://127.0.0.1:$sink->{port}?tls=none", events => $hook->url, events_linger => '5ms',
    events_batch => 7, minimal_backoff_time => '1s', maximal_backoff_time => '2s', control => undef,
    events_types => 'accepted delivered deferred bounced expired');

# Sends until STOP appears; writes the recipients of each message that was promised.
sub submit_all {
    my $label = shift;
    srand $seed + ord $label;
    my ($client, $number) = (undef, 0);
    my $parent = getppid;
    open my $promised, '>>:raw', "$petrel->{dir}/promised.$label" or die;
    while (!-e "$petrel->{dir}/STOP" && getppid == $parent) {
        $client //= Client->greeted($petrel->{port});
        if (!$client) { sleep 0.02; next }
        my $name = $label . ++$number;
        my @to = map { (rand() < 0.2 ? 'gone.' : rand() < 0.2 ? 'busy' . int(rand 10) . '.' : '') . "$name.$_\@x.test" } 1 .. 1 + int rand 3;
        my $reply = $client->send_pipelined(from => "$name\@source.test", to => \@to, data => "X-Petrel-Tag: $name\r\nSubject: x\r\n\r\nhello\r\n");
        undef $client if $reply !~ /^[245]/;
        syswrite $promised, "@to\n" if $reply =~ /^250 2\.0\.0 Ok: queued as/;
        sleep 0.02;
    }
    return;
}

my @senders;
for my $label (('a' .. 'z')[0 .. ($ENV{SENDERS} || 2) - 1]) {
    my $pid = fork // die;
    if ($pid == 0) {
        eval { submit_all($label) };
        warn $@ if $@;
        POSIX::_exit($@ ? 1 : 0);
    }
    push @senders, $pid;
}
sub promised { my $lines = 0; $lines += () = Petrel::slurp($_) =~ /\n/g for glob "$petrel->{dir}/promised.*"; return $lines }

my ($died, $kills) = (0, 0);
while ($kills < $rounds || promised() < $messages) {
    $kills++;
    $hook->mode(('200', '200', '500', 'close', '200 500 204 close', '200 200 hang', '429:1', 'drip')[int rand 8]);
    if (rand() < 0.15) {
        $petrel->{pid} = Petrel::spawn($petrel->{log}, $Petrel::binary, '-c', $petrel->conf, 'run');
        sleep rand 0.1;
    } else {
        $petrel->start;
        sleep rand 0.6;
    }
    $died++ if waitpid($petrel->{pid}, POSIX::WNOHANG()) != 0;
    $petrel->kill9;
}
is $died, 0, 'it never ends by itself' or diag substr $petrel->log, -2000;
Petrel::spit("$petrel->{dir}/STOP", '');
$hook->mode('200');
$petrel->start;
for my $pid (@senders) { waitpid $pid, 0; is $?, 0, 'a sender ends well' }
my %promised = map { $_ => 1 } map { split } map { Petrel::slurp($_) } glob "$petrel->{dir}/promised.*";
cmp_ok scalar(keys %promised), '>', $rounds, 'there was a load';
my $patience = 90 + $messages / 20;
ok $petrel->wait_empty($patience), 'the queue runs empty' or diag $petrel->run(qw(queue ls));
my $idle = sub { my $e = decode_json($petrel->status =~ s/\A[^{]*//r)->{events}; return $e->{pending_bytes} == 0 && $e->{state} eq 'idle' };
ok Petrel::wait_for($idle, $patience), 'all events are taken' or diag $petrel->status;

my (%final, %seen, %bodies, @changed, @disordered);
my ($batches, $repeated, $last) = (0, 0, 0);
for my $request ($hook->requests) {
    my @events = @{ decode_json($request->{body})->{data} };
    # A new batch may begin with an event that comes again, at a later time.
    my $batch = "$request->{headers}{'webhook-id'} $events[0]{time_ms}";
    push @changed, $batch if ($bodies{$batch} //= $request->{body}) ne $request->{body};
    next unless $request->{mode} =~ /^(?:2|drip)/;
    $batches++;
    for my $event (@events) {
        $final{ $event->{recipient} }{ $event->{type} }++ if $event->{type} =~ /^(?:delivered|bounced|expired)$/;
        if ($seen{ $event->{id} }++) { $repeated++; next }
        push @disordered, $event->{id} if $event->{time_ms} < $last;
        $last = $event->{time_ms};
    }
}
my @missing = grep { !$final{$_} } sort keys %promised;
is scalar(@missing), 0, "each recipient's last verdict is there" or diag "@missing[0 .. ($#missing < 9 ? $#missing : 9)]";
my @wrong = grep { !$final{$_}{ /^gone/ ? 'bounced' : 'delivered' } } grep { $final{$_} } sort keys %promised;
is "@wrong", '', 'and is the right one';
is "@disordered", '', 'in order';
is "@changed", '', 'a batch that comes again is the same';
my $log = $petrel->log;
unlike $log, qr/corrupt|Assertion|Sanitizer|events_lost=/, 'nothing was found damaged, nothing was lost';
is $petrel->stop, 0, 'it ends well';
is scalar(grep { m{/\d{8}\z} } glob "$petrel->{settings}{spool}/events/*"), 1, 'taken files are removed, but the last';
diag sprintf '%d kills, %d messages and %d recipients promised, %d events in %d batches, %d came again', $kills, promised(), scalar keys %promised, scalar keys %seen, $batches, $repeated;
$_->stop for $hook, $sink;
done_testing;
