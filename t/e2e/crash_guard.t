#!/usr/bin/perl
# A message that ends the daemon whenever it is worked on, in each way of work: at the third start it is quarantined,
# the others go on, and an operator can release it. And ends without any message: then mail is tried one at a time, and who is innocent stays.
use lib 't/e2e';
use E2E;

plan skip_all => 'strace is not there' if system('strace -V >/dev/null 2>&1') != 0;
plan skip_all => 'strace may not trace here' if system('strace -D -o /dev/null true 2>/dev/null') != 0;

my $letter = "Subject: x\n\nx\n";

# One life with SIGABRT at what strace is told of; then('what to do meanwhile'). True: it died of it.
sub dies {
    my ($petrel, $hunt, $then) = @_;
    my $script = Petrel::spit("$petrel->{dir}/hunted", "#!/bin/sh\nexec strace -D -qq -o /dev/null " . join(' ', map { "'$_'" } @$hunt) . " $Petrel::binary \"\$@\"\n");
    chmod 0755, $script;
    my $before = () = $petrel->log =~ /listening on/g;
    my $pid = Petrel::spawn($petrel->{log}, $script, '-c', $petrel->conf, 'run');
    $petrel->{pid} = $pid;
    my $end = time + ($ENV{LIFE} || 60);
    my $status;
    while (time < $end) {
        if (waitpid($pid, POSIX::WNOHANG()) == $pid) { $status = $?; last }
        if ($then && $before < (() = $petrel->log =~ /listening on/g)) { $then->(); $then = undef }
        select undef, undef, undef, 0.05;
    }
    return 1 if defined $status && ($status & 127) == POSIX::SIGABRT();
    diag 'it lived: ' . $petrel->log;
    kill 'KILL', $pid;
    waitpid $pid, 0;
    return 0;
}

sub on { my ($path, $call) = @_; return ['-P', $path, '-e', "trace=$call", '-e', "inject=$call:signal=ABRT"] }

# Twice it dies, then it does not.
sub is_quarantined {
    my ($petrel, $name, $victim, $hunt, %more) = @_;
    my $lives = $more{lives} || 2;
    my $died = 0;
    for (1 .. $lives) { $died += dies($petrel, $hunt, $more{then}); $more{between}->() if $more{between} }
    is $died, $lives, "$name: it ends the daemon";
    eval { $petrel->start } or diag $@;
    ok Petrel::wait_for(sub { -e "$petrel->{dir}/spool/corrupt/$victim.note" }), "$name: then it is put aside" or diag $petrel->log;
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/spool/corrupt/$victim.note") =~ /processed in two crashes/ }), "$name: with the reason";
    my @notes = glob "$petrel->{dir}/spool/corrupt/*.note";
    is scalar(@notes), 1, "$name: and nothing else" or diag "@notes";
    return;
}

sub id_of { my $reply = shift; my ($id) = $reply =~ /queued as (\S+)/ or die "not taken: $reply"; return $id }

my $busy = Sink->start('--fail-rcpt', 'victim:451');
my $good = Sink->start;
my %plain = (routes => "good.test smtp://127.0.0.1:$good->{port}\n* smtp://127.0.0.1:$busy->{port}", minimal_backoff_time => '1s', maximal_backoff_time => '1s');

# A message that has been deferred, and another one that will be delivered.
sub deferred {
    my %settings = @_;
    my $petrel = Petrel->new(%plain, %settings)->start;
    my $id = id_of($petrel->send_mail('ann@a.test', 'victim@b.test', $letter));
    Petrel::wait_for(sub { -e "$petrel->{dir}/spool/info/$id" }) or die $petrel->log;
    # After a kill the journal could still have it.
    $petrel->stop;
    return ($petrel, $id);
}

# One that has just been taken when the daemon is killed, and is delivered by nobody yet.
sub young {
    my %settings = @_;
    my $petrel = Petrel->new(%plain, routes => '* smtp://127.0.0.1:1', minimal_backoff_time => '1s', maximal_backoff_time => '1s', %settings);
    my $deaf = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1) or die;
    $petrel->configure(routes => '* smtp://127.0.0.1:' . $deaf->sockport)->start;
    my $id = id_of($petrel->send_mail('ann@a.test', 'victim@b.test', $letter));
    $petrel->kill9;
    $petrel->configure(%plain, %settings);
    return ($petrel, $id);
}

# The others go on: new mail is delivered.
sub others_go_on {
    my ($petrel, $name) = @_;
    my $reply = $petrel->send_mail('ann@a.test', "$name\@good.test", $letter);
    ok Petrel::wait_for(sub { $good->for_address("$name\@good.test") }), "$name: other mail is delivered";
    # It may have been innocent: killed for want of memory, or by a power cut.
    my ($id) = map { m{/([^/.]+)\.note$} } glob "$petrel->{dir}/spool/corrupt/*.note";
    my ($code, $said) = $petrel->run(qw(queue release), $id);
    is $code, 0, "$name: an operator releases it" or diag $said, $petrel->log;
    is_deeply [ glob "$petrel->{dir}/spool/corrupt/*" ], [], "$name: with all that it had";
    is $petrel->stop, 0, "$name: Petrel ends well";
    return;
}

for my $case ([ 'load-info', 'info', 'openat,openat2' ], [ 'load-content', 'mess', 'openat,openat2' ], [ 'load-recipients', 'remote', 'openat,openat2' ]) {
    my ($name, $room, $call) = @$case;
    my ($petrel, $id) = deferred();
    is_quarantined($petrel, $name, $id, on("$room/$id", $call));
    others_go_on($petrel, $name);
}
{
    my ($petrel, $id) = deferred();
    $petrel->configure(routes => "good.test smtp://127.0.0.1:$good->{port}\nb.test error:5.1.1 no");
    is_quarantined($petrel, 'bounce', $id, on("bounce/$id", 'openat,openat2'));
    others_go_on($petrel, 'bounce');
}
{
    my ($petrel, $id) = young();
    is_quarantined($petrel, 'move', $id, on("info/$id", 'openat,openat2'));
    others_go_on($petrel, 'move');
}
{
    my ($petrel, $id) = young();
    $petrel->configure(journal_size => 0);
    is_quarantined($petrel, 'adopt', $id, on("mess/$id", 'openat,openat2'));
    others_go_on($petrel, 'adopt');
}
{
    my ($petrel, $id) = young();
    $petrel->configure(routes => "good.test smtp://127.0.0.1:$good->{port}\n* smtp://127.0.0.1:$busy->{port}");
    is_quarantined($petrel, 'connect', $id, [ '-e', 'trace=connect', '-e', 'inject=connect:signal=ABRT:when=2' ]);
    others_go_on($petrel, 'connect');
}
{
    my ($petrel, $id) = young();
    $petrel->configure(routes => "good.test smtp://127.0.0.1:$good->{port}\n* maildir:$petrel->{dir}/boxes/%u?create=yes");
    mkdir "$petrel->{dir}/boxes";
    is_quarantined($petrel, 'maildir', $id, on("$petrel->{dir}/boxes/victim", 'openat,openat2'));
    others_go_on($petrel, 'maildir');
}
{
    my ($petrel, $id) = deferred(minimal_backoff_time => '1h', maximal_backoff_time => '1h');
    is_quarantined($petrel, 'hold', $id, on("hold/$id", 'openat,openat2'), then => sub { $petrel->run(qw(queue hold), $id) },
        between => sub { unlink "$petrel->{dir}/spool/hold/$id" });
    others_go_on($petrel, 'hold');
}
{
    my ($petrel, $id) = deferred();
    $petrel->configure(routes => "good.test smtp://127.0.0.1:$good->{port}\n* hold");
    is_quarantined($petrel, 'route-hold', $id, on("hold/$id", 'openat,openat2'), between => sub { unlink "$petrel->{dir}/spool/hold/$id" });
    others_go_on($petrel, 'route-hold');
}
{
    my $petrel = Petrel->new(%plain, routes => '* hold')->start;
    my $reply = $petrel->send_mail('ann@a.test', 'victim@b.test', "MIME-Version: 1.0\nContent-Type: message/partial; id=\"a\@b\"; number=1; total=2\n\nSubject: x\n\nx\n");
    my $id = id_of($reply);
    Petrel::wait_for(sub { -e "$petrel->{dir}/spool/hold/$id" }) or die;
    $petrel->stop;
    unlink "$petrel->{dir}/spool/hold/$id";
    $petrel->configure(journal_size => 0, routes => "good.test smtp://127.0.0.1:$good->{port}\n* smtp://127.0.0.1:$busy->{port}?defragment=yes");
    is_quarantined($petrel, 'fragment', $id, on("defrag/$id", 'openat,openat2'), between => sub { unlink "$petrel->{dir}/spool/defrag/$id" });
    others_go_on($petrel, 'fragment');
}

# Nothing is at work when an answer of the name server comes: twice for nothing, then carefully.
{
    my ($petrel, $id) = young();
    $petrel->configure(routes => "good.test smtp://127.0.0.1:$good->{port}\n* mx", dns_servers => '127.0.0.1:9');
    is_quarantined($petrel, 'dns', $id, [ '-e', 'trace=recvfrom', '-e', 'inject=recvfrom:signal=ABRT' ], lives => 4);
    like $petrel->log, qr/one message at a time/, 'dns: the log tells of it';
    others_go_on($petrel, 'dns');
}

# Ends that have nothing to do with mail put nothing aside.
{
    my $petrel = Petrel->new(%plain, routes => "* smtp://127.0.0.1:1", minimal_backoff_time => '1h', maximal_backoff_time => '1h')->start;
    my @ids = map { id_of($petrel->send_mail('ann@a.test', "n$_\@good.test", $letter)) } 1 .. 5;
    ok Petrel::wait_for(sub { 5 == grep { -e "$petrel->{dir}/spool/info/$_" } @ids }), 'innocent: five wait';
    $petrel->stop;
    for (1 .. 4) {
        $petrel->start;
        # Those that it reads at startup are not innocent.
        Petrel::wait_for(sub { 5 == (() = ($petrel->run(qw(queue ls)))[1] =~ / deferred /g) }) or diag $petrel->run(qw(queue ls));
        kill 'ABRT', $petrel->{pid};
        waitpid $petrel->{pid}, 0;
    }
    $petrel->configure(%plain)->start;
    is +($petrel->run(qw(queue retry --all)))[0], 0, 'innocent: all are tried again';
    like $petrel->log, qr/one message at a time/, 'innocent: the daemon is careful';
    ok Petrel::wait_for(sub { 5 == grep { $good->for_address("n$_\@good.test") } 1 .. 5 }), 'innocent: all is delivered';
    like $petrel->send_mail('ann@a.test', 'new@good.test', $letter), qr/^250/, 'innocent: mail is taken meanwhile';
    ok Petrel::wait_for(sub { $good->for_address('new@good.test') }), 'innocent: and delivered';
    is_deeply [ glob "$petrel->{dir}/spool/corrupt/*" ], [], 'innocent: nothing is put aside';
    is $petrel->stop, 0, 'innocent: Petrel ends well';
    $petrel->start;
    unlike +($petrel->log =~ /.*listening on(.*)/s)[0], qr/one message at a time/, 'innocent: and is as usual then';
    $petrel->stop;
}
$_->stop for $busy, $good;

done_testing;
