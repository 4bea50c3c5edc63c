#!/usr/bin/perl
# The daemon's life: starts that cannot be, SIGTERM, SIGINT, SIGHUP, and another user.
use lib 't/e2e';
use E2E;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scratch = tempdir('life-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $is_root = $> == 0;
my $letter = "From: Me <me\@here.test>\r\nSubject: hi\r\nDate: Sat, 21 Nov 2026 03:00:00 +0000\r\nMessage-ID: <1\@here.test>\r\n\r\n";
my %mail = (from => 'me@here.test', to => 'you@there.test', data => "${letter}hello\r\n");

# Whether a new client is turned away: nobody listens, or one hears 421.
sub is_closed {
    my $port = shift;
    my $client = Client->connect($port) or return 1;
    return $client->reply =~ /^(?:421 4\.3\.2 |\z)/;
}

# Waits until content is on its way to that sink.

# --- Starts that cannot be

# refused(NAME, CODE, PATTERN, COMMAND...): ends with that code and one line, beside warnings about settings.
sub refused {
    my ($name, $wanted, $pattern, @command) = @_;
    my ($code, $text) = Petrel::command('', @command);
    $text =~ s/^\S+ main: warning: nobody gets mail for root.*\n//mg;
    is $code, $wanted, "$name: the code";
    like $text, $pattern, "$name: why" or return;
    is scalar(() = $text =~ /\n/g), 1, "$name: in one line" or diag $text;
    return;
}

{
    my $petrel = Petrel->new->start;
    my @start = ($Petrel::binary, '-c', $petrel->conf);
    my $free = Petrel::free_port();
    refused('a second daemon on the same spool', 75, qr/\Apetrel: .*\Q$petrel->{dir}\E\/spool/, @start, '-o', "listen=127.0.0.1:$free", 'run');
    like +($petrel->dialogue('NOOP'))[1], qr/^250 /, 'the first goes on';
    is +($petrel->run('queue', 'ls'))[0], 0, 'and still answers the operator';
    my @other = ('-o', "spool=$scratch/other");
    refused('a port that is taken', 69, qr/\Apetrel: .*127\.0\.0\.1:$petrel->{port}: Address already in use/, @start, @other, 'run');
    refused('a second port that is taken', 69, qr/Address already in use/, @start, @other, '-o', "listen=127.0.0.1:$free 127.0.0.1:$petrel->{port}", 'run');
    refused('an address that is not here', 69, qr/\Apetrel: .*192\.0\.2\.1:2525: Cannot assign/, @start, @other, '-o', 'listen=192.0.2.1:2525', 'run');
    refused('a socket in no directory', 69, qr/\Apetrel: .*No such file/, @start, @other, '-o', "listen=unix:$scratch/no/sock", 'run');
    Petrel::spit("$scratch/file", '');
    refused('a spool below a file', 73, qr/\Apetrel: spool \Q$scratch\E\/file\/spool: .*Not a directory/, @start, '-o', "spool=$scratch/file/spool", 'run');
    refused('a user that does not exist', 78, qr/\Acommand line: user: no such user: 'nobody-there'/, @start, @other, '-o', 'user=nobody-there', 'run')
        if $is_root;
    if ($is_root && Petrel::have('setpriv')) {
        mkdir "$scratch/closed" or die;
        chmod 0700, "$scratch/closed";
        chmod 0755, $petrel->{dir};
        my @nobody = ('setpriv', '--reuid', 65534, '--regid', 65534, '--clear-groups');
        my $reachable = "$scratch/petrel";
        Petrel::spit($reachable, Petrel::slurp($Petrel::binary));
        chmod 0755, $reachable;
        refused('a spool of somebody else', 73, qr/\Apetrel: spool .*Permission denied/, @nobody, $reachable, '-c', $petrel->conf,
            '-o', "spool=$scratch/closed/spool", '-o', "listen=127.0.0.1:$free", 'run');
    }
    is $petrel->stop, 0, 'the first has not noticed';
    unlike $petrel->log, qr/ error: /, 'anything';
}

# --- SIGTERM: what runs is finished

{
    my $sink = Sink->start;
    $sink->hold('dot');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    my $sending = Client->greeted($petrel->{port});
    $sending->say($_) for 'MAIL FROM:<me@here.test>', 'RCPT TO:<second@there.test>';
    like $sending->say('DATA'), qr/^354 /, 'one is in the middle of DATA';
    $sending->put("${letter}first half\r\n");
    my $idle = Client->greeted($petrel->{port});
    my $silent = Client->connect($petrel->{port});
    like $silent->reply, qr/^220 /, 'one has just come, one has said EHLO';
    my $halfway = Client->greeted($petrel->{port});
    like $halfway->say('MAIL FROM:<me@here.test>'), qr/^250 /, 'one has a sender';
    my $client = Client->greeted($petrel->{port});
    like $client->send(%mail, to => 'first@there.test'), qr/^250 /, 'and one message is under way';
    ok $sink->wait_content, 'to a slow server';
    kill 'TERM', $petrel->{pid};
    like $_->reply, qr/^421 4\.3\.2 /, 'who is not in a transaction hears 421' for $idle, $silent, $client;
    is $_->reply, '', 'and that is the end' for $idle, $silent, $client;
    ok Petrel::wait_for(sub { is_closed($petrel->{port}) }), 'who comes now is turned away';
    ok kill(0, $petrel->{pid}), 'but the daemon lives';
    like $halfway->say('RCPT TO:<third@there.test>'), qr/^250 /, 'who is in a transaction goes on';
    like $halfway->say('DATA'), qr/^354 /, 'to its end';
    $halfway->put("${letter}third\r\n.\r\n");
    like $halfway->reply, qr/^250 2\.0\.0 Ok: queued as /, 'and is accepted';
    $sending->put("second half\r\n.\r\n");
    like $sending->reply, qr/^250 2\.0\.0 Ok: queued as /, 'as is who was in the middle of DATA';
    like $sending->reply, qr/^421 4\.3\.2 /, 'and hears 421 after it';
    $sink->let_go('dot');
    is $petrel->stop(0), 0, 'the daemon ends by itself';
    my ($first, $second, $third) = map { scalar $sink->for_address("$_\@there.test") } qw(first second third);
    is $first, 1, 'the delivery that was under way is finished';
    like $petrel->log, qr/to=<first\@there\.test>.*status=sent/, 'and known to be';
    my @open = grep { grep { !$_->{done} } @{ $_->{recipients} } } map { decode_json($_) } split /\n/, ($petrel->run('queue', 'ls', '--json'))[1];
    is scalar @open, 2 - $second - $third, 'the others are safe';
    like $petrel->log, qr/terminating/, 'it says why it ends';
    like $petrel->log, qr/: stopped\n\z/, 'and that it has';
    $petrel->start;
    ok $sink->wait_for("$_\@there.test"), "after the next start $_ is delivered" for qw(second third);
    like +($sink->for_address('second@there.test'))[0]{data}, qr/\r\nfirst half\r\nsecond half\r\n\z/, 'whole';
    ok $petrel->wait_empty, 'nothing is left';
    is scalar(my @all = $sink->messages), 3, 'nothing came twice';
    is $petrel->stop, 0, 'it stops';

    # With patience that ends.
    $petrel->configure(drain_timeout => '1s')->start;
    $sending = Client->greeted($petrel->{port});
    $sending->say($_) for 'MAIL FROM:<me@here.test>', 'RCPT TO:<never@there.test>', 'DATA';
    $sending->put("${letter}and then");
    is $petrel->stop, 0, 'who never comes to an end is not waited for';
    is $sending->rest =~ /^250 /m ? 'accepted' : 'gone', 'gone', 'and has not been accepted';
    is $petrel->queued, 0, 'which is true';

    # A second SIGTERM changes nothing, SIGINT does.
    $petrel->configure(drain_timeout => '10m')->start;
    $sending = Client->greeted($petrel->{port});
    $sending->say($_) for 'MAIL FROM:<me@here.test>', 'RCPT TO:<never@there.test>', 'DATA';
    kill 'TERM', $petrel->{pid};
    ok $petrel->wait_log(qr/terminating.*terminating.*terminating/s), 'it drains';
    kill 'TERM', $petrel->{pid};
    ok kill(0, $petrel->{pid}), 'a second SIGTERM';
    is $petrel->stop('INT'), 0, 'SIGINT ends it';
}

# --- SIGINT: soon, then at once

{
    my $sink = Sink->start;
    $sink->hold('dot');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", drain_timeout => '10m')->start;
    my $sending = Client->greeted($petrel->{port});
    $sending->say($_) for 'MAIL FROM:<me@here.test>', 'RCPT TO:<never@there.test>';
    like $sending->say('DATA'), qr/^354 /, 'one is in the middle of DATA';
    $sending->put("${letter}and then");
    like +Client->greeted($petrel->{port})->send(%mail), qr/^250 /, 'one message is under way';
    ok $sink->wait_content, 'to a slow server';
    kill 'INT', $petrel->{pid};
    ok $petrel->wait_log(qr/interrupted: stopping$/m), 'SIGINT lets what runs end';
    is $petrel->stop('INT'), 0, 'a second one ends it';
    unlike $sending->rest, qr/^250 /m, 'who has not finished is not accepted';
    like $petrel->log, qr/interrupted.*: stopped\n\z/s, 'it says why';
    unlike $petrel->log, qr/status=sent/, 'and did not wait for the delivery';
    is $petrel->queued, 1, 'what was accepted is safe';
    $sink->let_go('dot');
    $petrel->start;
    ok $petrel->wait_log(qr/to=<you\@there\.test>.*status=sent/), 'and delivered after the next start';
    ok $petrel->wait_empty, 'nothing is left';
    is $petrel->stop, 0, 'it stops';
}

# --- SIGHUP: other settings

{
    my ($old, $new, $slow) = map { Sink->start } 1 .. 3;
    $slow->hold('dot');
    my $dead = Petrel::free_port();
    my $petrel = Petrel->new(routes => "dead.test smtp://127.0.0.1:$dead\nslow.test smtp://127.0.0.1:$slow->{port}\n* smtp://127.0.0.1:$old->{port}")->start;
    my $before = Client->greeted($petrel->{port});
    like $before->send(%mail, to => 'a@there.test'), qr/^250 /, 'before';
    ok $old->wait_for('a@there.test'), 'the old route';
    $petrel->send_mail('me@here.test', 'd@dead.test', $mail{data});
    ok $petrel->wait_log(qr/to=<d\@dead\.test>.*status=deferred/), 'one is deferred';
    $petrel->send_mail('me@here.test', ['s@slow.test', 't@slow.test'], $mail{data});
    ok $slow->wait_content, 'one is under way';
    my $middle = Client->greeted($petrel->{port});
    $middle->say($_) for 'MAIL FROM:<me@here.test>', 'RCPT TO:<m@there.test>';
    like $middle->say('DATA'), qr/^354 /, 'one is coming in';

    $petrel->configure(routes => "* smtp://127.0.0.1:$new->{port}", message_size_limit => '10K', log_style => 'json');
    kill 'HUP', $petrel->{pid};
    ok $petrel->wait_log(qr/settings reloaded/), 'the settings are read again' or diag $petrel->log;
    like $before->send(%mail, to => 'b@there.test'), qr/^250 /, 'the connection has lived through it';
    ok $new->wait_for('b@there.test'), 'the new route';
    like $before->say('MAIL FROM:<me@here.test> SIZE=20000'), qr/^552 5\.3\.4 /, 'the new limit, too';
    like $petrel->log, qr/^\{.*"to":\s*"<?b\@there\.test>?"/m, 'the new style of the log';
    $middle->put("${letter}m\r\n.\r\n");
    like $middle->reply, qr/^250 /, 'what was coming in has come';
    ok $new->wait_for('m@there.test'), 'by the new route';
    $slow->let_go('dot');
    ok $slow->wait_for('t@slow.test'), 'what was under way arrives';
    is_deeply [$petrel->run('queue', 'retry', '--all')], [0, "all that waits is due now\n"], 'what was deferred is tried again';
    ok $new->wait_for('d@dead.test'), 'and takes the new route' or diag $petrel->log;
    ok $petrel->wait_empty, 'nothing is left';

    for my $case (["routes = * nowhere:\n", qr/routes: /], ["routs = * mx\n", qr/did you mean 'routes'/], ["recipient_limit = x\n", qr/recipient_limit: /]) {
        my ($mistake, $pattern) = @$case;
        my $size = length $petrel->log;
        Petrel::spit($petrel->conf, "hostname = changed.test\nspool = $petrel->{dir}/spool\n$mistake");
        kill 'HUP', $petrel->{pid};
        ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /reload refused/ }), "a broken file: $mistake" or diag $petrel->log;
        like substr($petrel->log, $size), $pattern, 'the mistake is told';
    }
    for my $empty ('', "# being written\n") {
        my $size = length $petrel->log;
        Petrel::spit($petrel->conf, $empty);
        kill 'HUP', $petrel->{pid};
        ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /has no setting now.*reload refused/s }), 'a file without settings' or diag $petrel->log;
    }
    my $count = $new->count('messages');
    like $before->send(%mail, to => 'c@there.test'), qr/^250 /, 'the daemon goes on';
    ok $new->wait_for('c@there.test'), 'with the settings that it had';
    like +($petrel->dialogue)[0], qr/^220 petrel\.test /, 'and the name';
    unlink $petrel->conf;
    my $size = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /reload refused/ }), 'no file at all';
    $petrel->configure(message_size_limit => undef, log_style => undef);
    $size = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /settings reloaded/ }), 'and a good one again';
    like $before->say('MAIL FROM:<me@here.test> SIZE=20000'), qr/^250 /, 'counts';
    like $before->quit, qr/^221 /, 'the oldest connection ends';
    is $petrel->stop, 0, 'it stops in good order';
}

# --- Another user

SKIP: {
    skip 'only root can become somebody else', 1 unless $is_root;
    my @nobody = getpwnam 'nobody';
    my $sink = Sink->start;
    my $mail = "$scratch/mail";
    mkdir $_ or die for $mail, "$mail/anna";
    chown @nobody[ 2, 3 ], "$mail/anna";
    my $petrel = Petrel->new(user => 'nobody', local => "maildir:$mail/%u", routes => "* smtp://127.0.0.1:$sink->{port}");
    chmod 0755, $petrel->{dir};
    $petrel->start;
    my $status = Petrel::slurp("/proc/$petrel->{pid}/status");
    like $status, qr/^Uid:\s+$nobody[2]\s+$nobody[2]\s+$nobody[2]\s+$nobody[2]$/m, 'user: the real, effective, saved and file system user';
    like $status, qr/^Gid:\s+$nobody[3]\s+$nobody[3]\s+$nobody[3]\s+$nobody[3]$/m, 'and group';
    my @groups = split ' ', $status =~ /^Groups:[ \t]*(.*)$/m ? $1 : 'none';
    is_deeply [grep { $_ != $nobody[3] } @groups], [], 'no group of root is left';
    like $status, qr/^CapEff:\s+0+$/m, 'and no capability';
    my @foreign = grep { (lstat)[4] != $nobody[2] } "$petrel->{dir}/spool", glob "$petrel->{dir}/spool/* $petrel->{dir}/spool/*/*";
    is_deeply \@foreign, [], 'the spool is that user\'s';
    is +(stat "$petrel->{dir}/spool/control")[2] & 07777, 0600, 'the control socket is for nobody else';
    unlike $petrel->log, qr/running as root/, 'there is nothing to warn of';
    like +Client->greeted($petrel->{port})->send(%mail), qr/^250 /, 'it takes mail';
    ok $sink->wait_for('you@there.test'), 'and delivers it';
    like +Client->greeted($petrel->{port})->send(%mail, to => 'anna@petrel.test'), qr/^250 /, 'for a mailbox, too';
    ok $petrel->wait_log(qr/to=<anna\@petrel\.test>.*status=sent/), 'which has it' or diag $petrel->log;
    my ($file) = glob "$mail/anna/new/*";
    is $file ? (stat $file)[4] : 'none', $nobody[2], 'as that user';
    is +($petrel->run('queue', 'ls'))[0], 0, 'root may ask it';
    $petrel->configure(message_size_limit => '10K');
    kill 'HUP', $petrel->{pid};
    ok $petrel->wait_log(qr/settings reloaded/), 'SIGHUP works without root';
    is $petrel->stop, 0, 'it stops in good order';
    is $petrel->start->stop, 0, 'and again';
    unlike $petrel->log, qr/ error: /, 'without trouble';

    $petrel = Petrel->new(routes => '* hold')->start;
    like $petrel->log, qr/warning: running as root/, 'who stays root is warned';
    is $petrel->stop, 0, 'it stops';
}

done_testing;
