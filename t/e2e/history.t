#!/usr/bin/perl
# SPOOL/history: every message and refusal, at any level of the log; after kill -9; in slices; off.
use lib 't/e2e';
use E2E;

sub history { my ($petrel, $word) = @_; return join '', map { Petrel::slurp($_) } sort glob "$petrel->{dir}/spool/history/$word.*" }

sub send_mail { my ($petrel, $id) = @_; return $petrel->send_mail('s@x.example', 'ok@example.org', "Message-ID: <$id>\nSubject: x\n\nhello") }

sub reload {
    my ($petrel, %settings) = @_;
    my $before = Petrel::count($petrel->log, 'settings reloaded');
    $petrel->configure(%settings);
    kill 'HUP', $petrel->{pid};
    return Petrel::wait_for(sub { Petrel::count($petrel->log, 'settings reloaded') > $before });
}

my $sink = Sink->start;
my $petrel = Petrel->new(log_style => 'json', log_level => 'error', routes => "* smtp://127.0.0.1:$sink->{port}")->start;
send_mail($petrel, 'abc@x.example');
ok Petrel::wait_for(sub { history($petrel, 'mail') =~ /event=ended/ }), 'a message is in the history';
my @lines = split /\n/, history($petrel, 'mail');
is scalar @lines, 3, 'a usual message has three lines, whatever the style and level of the log';
like $lines[0], qr/^\d{4}-\d\d-\d\dT[\d:.]+Z smtpd: [0-9A-Z]{10}-[0-9A-Z]{8}: event=accepted, client=\[127\.0\.0\.1\], .*from=<s\@x\.example>, .*message_id=<abc\@x\.example> \(queued\)$/, 'accepted';
like $lines[1], qr/event=delivered, to=<ok\@example\.org>, relay=127\.0\.0\.1\[127\.0\.0\.1\]:$sink->{port}, .*status=sent \(250 /, 'delivered';
$petrel->dialogue('EHLO x', 'RCPT TO:<x>');
ok Petrel::wait_for(sub { history($petrel, 'refused') =~ /event=refused, refused=503 5\.5\.1, client=\[127\.0\.0\.1\]/ }), 'a refusal, in its own ring';
is sprintf('%o', (stat "$petrel->{dir}/spool/history")[2] & 07777), '700', 'a private directory';
is sprintf('%o', (stat $_)[2] & 07777), '600', 'a private file' for glob "$petrel->{dir}/spool/history/*";

# kill -9 at any time: what was in the history stays, the torn line is ended, and it goes on.
for my $round (1 .. 5) {
    my $id = "kill$round\@x.example";
    send_mail($petrel, $id);
    Petrel::wait_for(sub { history($petrel, 'mail') =~ /\Q$id\E/ }) if $round % 2;
    $petrel->kill9;
    if ($round == 3) { # as a write that was cut
        my $file = (sort glob "$petrel->{dir}/spool/history/mail.*")[-1];
        open my $h, '>>', $file or die; print $h '2026-11-22T12:0'; close $h;
    }
    $petrel->start;
    ok Petrel::wait_for(sub { history($petrel, 'mail') =~ /\Q$id\E/ }), "round $round: the message is found" if $round % 2;
}
send_mail($petrel, 'last@x.example');
ok Petrel::wait_for(sub { history($petrel, 'mail') =~ /last\@x\.example.*\n(?:.*\n)*.*event=ended\n\z/ }), 'it goes on';
is scalar(grep { !/^\d{4}-\d\d-\d\dT[\d:.]+Z [a-z]+: / } split /\n/, history($petrel, 'mail')), 1, 'no line but the torn one is damaged';
is scalar(my @files = glob "$petrel->{dir}/spool/history/mail.*"), 1, 'one file';
my ($code, $said) = $petrel->run('status', '--json');
like $said, qr/"history": \{\s*"bytes": \d+,\s*"size": \d+,\s*"paused": false,\s*"lost": 0/, 'the status has its size';

# kill -9 right behind a reply: a client's 250 is never older than the line.
my @missing;
for my $round (1 .. 8) {
    my $client = Client->greeted($petrel->{port});
    my @ids = map { $client->send(from => 's@x.example', to => 'ok@example.org', data => "Subject: $_\r\n\r\nhello\r\n") =~ /queued as (\S+)/ } 1 .. 3 * $round;
    $petrel->kill9;
    is scalar @ids, 3 * $round, "round $round: accepted";
    my $all = history($petrel, 'mail');
    push @missing, grep { $all !~ /\Q$_\E: event=accepted/ } @ids;
    $petrel->start;
}
is_deeply \@missing, [], 'each message that was accepted is found after kill -9';

# An end under load: lines wait for each other then. A crash writes those of the log, and those of the history are found after any
# end.
@missing = ();
for my $round (1 .. 4) {
    $petrel->stop;
    $petrel->configure(log_style => 'petrel', log_level => 'debug');
    $petrel->start;
    my @clients = map { Client->greeted($petrel->{port}) } 1 .. 4;
    $_->burst(300) for @clients;
    my @ids = map { $clients[$_ % 4]->reply =~ /queued as (\S+)/ } 1 .. 250 * $round;
    my $signal = $round % 2 ? 'ABRT' : 'KILL';
    kill $signal, $petrel->{pid};
    push @ids, $_->rest =~ /queued as (\S+)/g for @clients;
    $petrel->kill9; # it is gone: this takes its status
    ok @ids > 10, "round $round: accepted";
    my $log = $petrel->log;
    push @missing, grep { $log !~ /\Q$_\E: client=/ } @ids if $signal eq 'ABRT';
    $petrel->start;
    my $all = history($petrel, 'mail');
    push @missing, grep { Petrel::count($all, "$_: event=accepted") != 1 } @ids;
    ($code, $said) = $petrel->run('trace', $ids[-1]);
    like $said, qr/accepted from/, "round $round: petrel trace finds the last one";
}
is_deeply \@missing, [], 'each message that was accepted is in the log after a crash, and in the history always, once';

# Off, and on again, by a reload.
$petrel->stop;
$petrel->configure(log_style => 'postfix', log_level => 'info');
$petrel->start;
ok reload($petrel, history_size => 0), 'a reload';
my $before = history($petrel, 'mail');
send_mail($petrel, 'off@x.example');
ok $petrel->wait_log(qr/: removed/), 'delivered';
is history($petrel, 'mail'), $before, 'off: nothing is written, and the files stay';
ok reload($petrel, history_size => '1M'), 'a reload';
send_mail($petrel, 'on@x.example');
ok Petrel::wait_for(sub { history($petrel, 'mail') =~ /on\@x\.example/ }), 'on again';
$petrel->stop;

# A slice has its own directory.
my $slice = Petrel->new(slices => 2, slice => 1, routes => '* discard')->start;
send_mail($slice, 'slice@x.example');
ok Petrel::wait_for(sub { join('', map { Petrel::slurp($_) } glob "$slice->{dir}/spool/history/0512-1023/mail.*") =~ /slice\@x\.example/ }), 'a slice';
$slice->stop;

# The settings.
for (['history_size', '-1'], ['history_size', 'much'], ['history_age', '1s'], ['history_age', '20y']) {
    my ($bad) = Petrel->new(@$_)->run('check');
    is $bad, 78, "$_->[0] = $_->[1] is refused";
}
done_testing;
