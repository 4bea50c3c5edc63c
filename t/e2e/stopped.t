#!/usr/bin/perl
# A daemon that hangs (SIGSTOP) still takes connections on its control socket: no command waits for it without end, each
# says so and ends with 69, and what it asked for is not begun when the daemon wakes. One that is not there is 69, too; one that refuses mail is 75.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(time);

my $dead = Petrel::free_port(); # nobody listens there
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$dead")->start;
my ($id) = $petrel->send_mail('a@here.test', 'b@there.test', "Subject: x\n\nx") =~ /queued as (\S+)/;
ok $id && $petrel->wait_log(qr/ $id: to=.*status=deferred/), 'a message waits';

my @commands = (['status'], ['status', '--json'], ['status', '--sites'], ['queue', 'ls'], ['queue', 'show', $id], ['queue', 'why', $id], ['queue', 'retry', '--to', 'nowhere.test'],
    ['queue', 'hold', '--to', 'nowhere.test'], ['queue', 'rm', '--to', 'nowhere.test'], ['queue', 'rm', '--all'], ['queue', 'bounce', $id], ['queue', 'adopt', '0'], ['sendmail', '-bp'], ['sendmail', '-q']);

sub run_all {
    my (%run, %code);
    for my $command (@commands) {
        my $log = "$petrel->{dir}/" . join('_', @$command);
        unlink $log;
        $run{"@$command"} = [Petrel::spawn($log, $Petrel::binary, '-c', $petrel->conf, @$command), $log];
    }
    $code{$_} = Petrel::reap($run{$_}[0]) for sort keys %run;
    return map { my $code = $code{$_}; $_ => [defined $code ? $code >> 8 : 'none', Petrel::slurp($run{$_}[1])] } keys %run;
}

kill 'STOP', $petrel->{pid};
my %said = run_all();
for my $command (map { "@$_" } @commands) {
    is $said{$command}[0], 69, "$command ends" or diag $said{$command}[1];
    like $said{$command}[1], qr/^(?:petrel [a-z ]+|sendmail): .*the daemon runs, but does not answer$/m, "$command: and says why";
}
is((Petrel::command("Subject: y\n\ny\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'c@there.test'))[0], 0, 'sendmail takes mail meanwhile');
kill 'CONT', $petrel->{pid};
is(($petrel->run('status'))[0], 0, 'it goes on');
unlike $petrel->log, qr/by the operator|adopted/, 'and does nothing of what was given up';
ok Petrel::wait_for(sub { $petrel->queued == 2 }), 'also with that mail';
$petrel->kill9;
my ($code, $text) = $petrel->run('status');
is $code, 69, 'no daemon';
like $text, qr/^petrel status: no daemon answers: /, 'and its line';
is(($petrel->run('queue', 'ls'))[0], 0, 'the queue is shown all the same');
done_testing;
