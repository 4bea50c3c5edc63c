#!/usr/bin/perl
# Clients that mean harm or do it: slow ones, idle ones, deaf ones, too many of them.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep time);

my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) // 0;

# Kilobytes of resident memory.
sub memory { my $petrel = shift; return Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }

# A client like all others is served, and its mail goes through, while something is going on.
sub served {
    my ($petrel, $sink, $name) = @_;
    my $client = Client->greeted($petrel->{port});
    ok $client, "$name: a normal client is greeted" or return;
    like $client->send(from => 'a@sender.test', to => "$name\@normal.test", data => "Subject: $name\r\n\r\nb\r\n"), qr/^250/, "$name: its message is taken";
    like $client->quit, qr/^221/, "$name: it is said goodbye";
    ok $sink->wait_for("$name\@normal.test"), "$name: and its message arrives";
    return;
}

sub fresh {
    my ($sink, %settings) = @_;
    return Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", server_session_limit => 3000, client_session_limit => 3000, %settings)->start;
}

# --- One byte a second, 500 times

# In a process of its own: half of them dawdle over commands, half over content. Says how many lasted.
sub dawdle {
    my ($petrel, $dir) = @_;
    my $parent = getppid;
    my @clients = map { Client->connect($petrel->{port}) } 1 .. 500;
    $_->reply for @clients;
    for my $client (@clients[250 .. 499]) {
        $client->say($_) for 'EHLO slow.test', 'MAIL FROM:<slow@sender.test>', 'RCPT TO:<slow@slow.test>', 'DATA';
    }
    my $words = "EHLO slow.example.test\r\nMAIL FROM:<slow\@sender.test>\r\n";
    for (my $round = 0; !-e "$dir/stop" && getppid == $parent; $round++) {
        for my $i (0 .. $#clients) { $clients[$i]->put($i < 250 ? substr($words, $round % length $words, 1) : 'x') }
        Petrel::spit("$dir/round", $round + 1);
        sleep 1;
    }
    my ($commands, $contents) = (0, 0);
    for my $client (@clients[250 .. 499]) { $contents++ if $client->put("\r\n.\r\n") && $client->reply =~ /^250/ }
    for my $client (@clients[0 .. 249]) { $commands++ if $client->put("\r\nRSET\r\nNOOP slow\r\n") && $client->reply =~ /^[25]/ }
    Petrel::spit("$dir/lasted", "$commands $contents");
    return;
}

SKIP: {
    skip "only $files open files are allowed", 1 if $files < 1200;
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $pid = fork // die;
    if ($pid == 0) { eval { dawdle($petrel, $petrel->{dir}) }; warn $@ if $@; POSIX::_exit($@ ? 1 : 0) }
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/round") >= 1 if -e "$petrel->{dir}/round" }), 'slow: 500 clients are there';
    served($petrel, $sink, "slow$_") for 1 .. 3;
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/round") >= 4 }), 'slow: they go on';
    served($petrel, $sink, "slow$_") for 4 .. 6;
    diag '500 slow clients: ' . memory($petrel) . ' KB resident';
    Petrel::spit("$petrel->{dir}/stop", '');
    waitpid $pid, 0;
    is $?, 0, 'slow: they come to their end';
    is Petrel::slurp("$petrel->{dir}/lasted"), '250 250', 'slow: and none was cut off';
    ok Petrel::wait_for(sub { $sink->for_address('slow@slow.test') == 250 }), 'slow: their messages arrive, too';
    is $petrel->stop, 0, 'slow: Petrel ends well';
    $sink->stop;
}

# --- 1,000 that say nothing

SKIP: {
    skip "only $files open files are allowed", 1 if $files < 2200;
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $before = memory($petrel);
    my @idle = map { Client->connect($petrel->{port}) } 1 .. 1000;
    is scalar(grep { $_ && $_->reply =~ /^220/ } @idle), 1000, 'idle: 1,000 clients are greeted';
    is scalar(grep { $_->say('EHLO idle.test') =~ /^250/ } @idle), 1000, 'idle: and answered';
    my $during = memory($petrel);
    diag "1,000 idle clients: $before KB resident without, $during KB with them";
    cmp_ok $during - $before, '<', 64 * 1024, 'idle: they cost little';
    served($petrel, $sink, 'idle');
    is scalar(grep { $_->say('NOOP') =~ /^250/ } @idle), 1000, 'idle: none was dropped';
    $_->close for @idle;
    served($petrel, $sink, 'after');
    is $petrel->stop, 0, 'idle: Petrel ends well';
    $sink->stop;
}

# --- One that talks and never listens

{
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $before = memory($petrel);
    my $deaf = Client->greeted($petrel->{port});
    my $socket = $deaf->{socket};
    $socket->blocking(0);
    my $line = "HELP\r\n";
    my $block = $line x 10_000;
    my ($sent, $quiet) = (0, 0);
    while ($sent < 200_000_000 && IO::Select->new($socket)->can_write(1)) {
        my $at = $sent % length $block;
        my $wrote = syswrite $socket, $block, length($block) - $at, $at;
        $sent += $wrote if $wrote;
    }
    cmp_ok $sent, '<', 200_000_000, "deaf: it is not listened to without end ($sent bytes)";
    served($petrel, $sink, 'deaf');
    my $grown = memory($petrel) - $before;
    cmp_ok $grown, '<', 16 * 1024, "deaf: nor does it cost memory ($grown KB)";
    # It listens at last: every command has its reply.
    my $left = length($line) - $sent % length $line;
    my ($tail, $replies, $got) = (substr($line, -$left) . "QUIT\r\n", 0, '');
    my $end = time + $Petrel::patience;
    while (time < $end && IO::Select->new($socket)->can_read(5)) {
        sysread($socket, $got, 65536, length $got) or last;
        $replies++ while $got =~ s/\A2.*\n//;
        if ($tail) { my $wrote = syswrite $socket, $tail; substr $tail, 0, $wrote, '' if $wrote }
    }
    is $replies, 1 + int(($sent + $left) / length $line), 'deaf: in the end every command was answered';
    is $petrel->stop, 0, 'deaf: Petrel ends well';
    $sink->stop;
}

# --- Too many

{
    my $sink = Sink->start;
    my $petrel = fresh($sink, server_session_limit => 5, client_session_limit => 3);
    my $from = sub { return Client->connect($petrel->{port}, LocalAddr => $_[0]) };
    ok Petrel::wait_for(sub { $petrel->status =~ /"in": 0\b/ }), 'limits: nobody is there'; # who asked whether it runs has gone
    my @one = map { $from->('127.0.0.1') } 1 .. 3;
    like $_->reply, qr/^220/, 'limits: three from one address' for @one;
    for (1 .. 3) {
        my $extra = $from->('127.0.0.1');
        like $extra->reply, qr/^421 4\.7\.0 .*your address/, 'limits: the fourth is turned away';
        is $extra->rest, '', 'limits: and cut off';
    }
    my @two = map { $from->('127.0.0.2') } 1 .. 2;
    like $_->reply, qr/^220/, 'limits: two from another' for @two;
    for (1 .. 3) {
        my $extra = $from->('127.0.0.3');
        like $extra->reply, qr/^421 4\.7\.0/, 'limits: the sixth of all is turned away';
        is $extra->rest, '', 'limits: and cut off';
    }
    like $_->say('EHLO client.test'), qr/^250/, 'limits: the others are still served' for @one, @two;
    $_->quit for @two;
    ok Petrel::wait_for(sub { my $next = $from->('127.0.0.3'); $next->reply =~ /^220/ }), 'limits: whoever goes makes room';
    $_->quit for @one;
    ok Petrel::wait_for(sub { my $next = $from->('127.0.0.1'); $next->reply =~ /^220/ }), 'limits: for the same address, too';
    my $log = () = $petrel->log =~ /refused=421 4\.7\.0, client=\[127\.0\.0\.[13]\]/g;
    cmp_ok $log, '>=', 6, 'limits: the log names whom';
    is $petrel->stop, 0, 'limits: Petrel ends well';
    $sink->stop;
}

# --- Recipients without a message

{
    my $sink = Sink->start;
    my $petrel = fresh($sink, relay_from => '127.0.0.1/32', local_domains => 'here.test');
    my $from = sub { return Client->greeted($petrel->{port}, LocalAddr => $_[0]) };
    my $before = memory($petrel);
    my ($taken, $full, $other) = (0, 0, 0);
    my @crowd;
    for my $number (1 .. 100) {
        my $client = $from->('127.0.0.' . (2 + $number % 20));
        $client->say('MAIL FROM:<a@b.test>');
        for my $round (1 .. 5) {
            $client->put(join '', map { sprintf "RCPT TO:<%060d\@here.test> ORCPT=rfc822;%0480d\r\n", $round * 1000 + $_, $_ } 1 .. 200);
            for (1 .. 200) {
                my $reply = $client->reply;
                $reply =~ /^250/ ? $taken++ : $reply =~ /^452 4\.3\.1/ ? $full++ : $other++;
            }
        }
        push @crowd, $client;
    }
    my $during = memory($petrel);
    diag "100,000 recipients of 100 clients: $before KB resident without, $during KB with them; $taken taken, $full refused";
    is $other, 0, 'recipients: taken or refused for now';
    cmp_ok $full, '>', 10_000, 'recipients: all sessions have a limit together';
    cmp_ok $during - $before, '<', 32 * 1024, 'recipients: memory too';
    my @few = map { "user$_\@here.test" } 1 .. 50;
    like $from->('127.0.0.30')->send(from => 'a@b.test', to => \@few, data => "x\r\n"), qr/^250/, 'recipients: an untrusted client sends to 50 meanwhile';
    my @many = map { "user$_\@there.test" } 1 .. 900;
    like $from->('127.0.0.1')->send(from => 'a@b.test', to => \@many, data => "x\r\n"), qr/^250/, 'recipients: one that may relay to 900';
    $_->quit for @crowd;
    is $petrel->stop, 0, 'recipients: Petrel ends well';
    $sink->stop;
}

done_testing;
