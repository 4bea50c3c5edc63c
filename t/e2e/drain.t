#!/usr/bin/perl
# petrel drain: not ready, closed, emptied, gone; cancelled at each state; SIGTERM.
use lib 't/e2e';
use E2E;

my $sink = Sink->start;
$sink->stop;
my $petrel = Petrel->new(routes => "held.test hold, * smtp://127.0.0.1:$sink->{port}", drain_delay => '1h', drain_timeout => '1m', minimal_backoff_time => '1h', maximal_backoff_time => '1h',
    log_level => 'info')->start;

sub says {
    my ($code, $pattern, @command) = @_;
    my ($got, $text) = $petrel->run(@command);
    is $got, $code, "@command: exit code $code" or diag $text;
    like $text, $pattern, "@command: what it says";
    return;
}
sub mail { my $to = shift; return $petrel->send_mail('a@x.test', $to, "Subject: $to\n\nhello") }
sub state_is { my $state = shift; return Petrel::wait_for(sub { ($petrel->run(qw(drain --wait 0)))[1] =~ /^\Q$state\E: /m }, 60) }
sub reload { my %settings = @_; $petrel->configure(%settings); return ($petrel->run('reload'))[0] == 0 }

says(64, qr/\Ausage: petrel drain /, qw(drain now));
says(64, qr/\Ausage: petrel drain /, qw(drain --wait));
says(64, qr/\Ausage: petrel drain /, qw(drain --cancel --empty));
says(65, qr/\Apetrel drain: a drain lasts at most a day\n\z/, qw(drain --wait 2d));
says(0, qr/accepting and delivering mail again/, qw(drain --cancel));

# Leaving: balancers look elsewhere, but who comes is served.
like mail('one@there.test'), qr/^250/m, 'a message';
ok $petrel->wait_log(qr/to=<one\@there\.test>.*status=deferred/), 'that waits';
like mail('two@held.test'), qr/^250/m, 'another one';
ok $petrel->wait_log(qr/held by a route/), 'that is held';
says(75, qr/\Aleaving: 1 deferred, 1 hold; sessions: 0 in, 0 out\n\z/, qw(drain --wait 0));
says(1, qr/\Anot ready: accepting: draining: mail is accepted for a moment more\n\z/, 'health');
my ($code, $text) = $petrel->run(qw(status --json));
is $code, 75, 'the exit code of status';
my $status = decode_json($text);
ok !$status->{accepting}, 'it accepts nothing, for who looks';
is $status->{reason}, 'draining: mail is accepted for a moment more', 'and why';
ok !(grep { $_->{code} eq 'not_accepting' } @{ $status->{findings} }), 'which is no trouble';
like mail('three@held.test'), qr/^250/m, 'mail is accepted';
says(0, qr/accepting and delivering mail again/, qw(drain --cancel));
says(0, qr/^ready\n\z/, 'health');
ok $petrel->wait_log(qr/main: drain: leaving; not ready\n(?:.*\n)*.*main: drain: running again: cancelled\n/), 'the log has it' or diag $petrel->log;

# Closed: present transactions end, nobody else comes, and nothing leaves.
ok reload(drain_delay => 0), 'without a delay';
my $inside = Client->greeted($petrel->{port});
$inside->say('MAIL FROM:<a@x.test>');
my $idle = Client->greeted($petrel->{port});
says(75, qr/leaving/, qw(drain --wait 0));
ok state_is('closing'), 'closing, while a session is in a transaction';
like $idle->reply, qr/^421 4\.3\.2/, 'an idle session ends';
like +Client->connect($petrel->{port})->reply, qr/^421 4\.3\.2 .*out of service/, 'a new one, too';
like $inside->say('RCPT TO:<four@there.test>'), qr/^250/, 'the transaction goes on';
$inside->say('DATA');
like $inside->say("Subject: x\r\n\r\nx\r\n."), qr/^250/, 'and is accepted';
like $inside->reply, qr/^421 4\.3\.2/, 'then its session ends';
ok $petrel->wait_log(qr/drain: gone: messages left: 4, of which 2 wait for delivery/), 'then it is gone';
says(75, qr/\Agone: .*2 hold.*; sessions: 0 in, 0 out\n\z/, 'drain');
says(1, qr/\Anot ready: accepting: drained: closed until /, 'health');
is $sink->again ? 1 : 0, 1, 'the next hop is there';
$petrel->run(qw(queue retry --all));
is((Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'five@there.test'))[0], 0, 'sendmail(1) stores mail');
says(0, qr/^because:  no delivery begins: the daemon is out of service \(`petrel drain --cancel` ends that\), or stops\n(?!because)/m, qw(queue why --to four@there.test));
is $sink->count('connections'), 0, 'and nothing leaves';
says(0, qr/accepting and delivering mail again/, qw(drain --cancel));
ok Petrel::wait_for(sub { $sink->count('messages') == 3 }), 'when it is cancelled all leaves';
like mail('six@there.test'), qr/^250/m, 'and mail is accepted';
ok Petrel::wait_for(sub { $sink->count('messages') == 4 }), 'and leaves';

# Emptied: waiting mail is tried again, immediately and later. Held mail counts as left.
$sink->stop;
like mail("$_\@there.test"), qr/^250/m, 'a message' for qw(seven eight);
ok $petrel->wait_log(qr/to=<eight\@there\.test>.*status=deferred/), 'that waits for an hour';
says(75, qr/\Aleaving: 2 deferred, 2 hold;/, qw(drain --empty --wait 0));
ok state_is('gone'), 'without time it is gone at once';
$petrel->run(qw(drain --cancel));
my $child = fork // die;
if ($child == 0) { open STDOUT, '>', "$petrel->{dir}/drain" or die; exec $Petrel::binary, '-c', $petrel->conf, qw(drain --empty --wait 10m) or die }
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/drain: emptying: no mail is accepted/) == 2 }), 'emptying';
like +Client->connect($petrel->{port})->reply, qr/^421 4\.3\.2/, 'it accepts nothing';
says(1, qr/emptied/, 'health');
ok $sink->again, 'the next hop is there again';
waitpid $child, 0;
is $? >> 8, 75, 'held mail is left';
my $progress = Petrel::slurp("$petrel->{dir}/drain");
like $progress, qr/\A(?:leaving|emptying): .*\n(?:.*\n)*gone: 2 hold; sessions: 0 in, 0 out\n\z/, 'its progress' or diag $progress;
is $sink->count('messages'), 2, 'all else has left';
$petrel->run(qw(drain --cancel));
is((($petrel->run(qw(queue rm --all)))[0]), 0, 'nothing is held any more');
says(0, qr/^gone: no messages; sessions: 0 in, 0 out\n\z/m, qw(drain --empty));

# SIGTERM ends it, without a wait.
is $petrel->stop, 0, 'SIGTERM ends what is gone';

# SIGTERM in the middle.
$petrel->configure(drain_delay => '1h');
$petrel->start;
says(75, qr/leaving/, qw(drain --wait 0));
is $petrel->stop, 0, 'and what is leaving';
done_testing;
