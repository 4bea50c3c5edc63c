#!/usr/bin/perl
# Classes and hints of refusals: in the log, the bounce, `queue why`, `queue show` and their JSON. The
# peer is a server that refuses each recipient as its name says.
use lib 't/e2e';
use E2E;

my %says = (
    spf => '550 5.7.26 This mail has been blocked because the sender is unauthenticated.',
    ptr => '450 4.7.25 The IP address sending this message does not have a PTR record setup.',
    listed => '554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org',
    gone => '550 5.1.1 User unknown',
    odd => '450 4.3.0 not today',
);
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1:0', Listen => 20) or die "listen: $!";
my $pid = fork // die "fork: $!";
if (!$pid) {
    while (my $c = $server->accept) {
        next if fork;
        print {$c} "220 peer.test\r\n";
        while (my $line = <$c>) {
            my $reply = $line =~ /^RCPT TO:<(\w+)@/ ? $says{$1} : $line =~ /^QUIT/ ? '221 bye' : $line =~ /^EHLO/ ? "250-peer.test\r\n250 AUTH PLAIN"
                : $line =~ /^AUTH/ ? '235 2.7.0 welcome' : $line =~ /^MAIL FROM:<root@/ ? '553 5.7.1 <root@here.test>: Sender address rejected: not owned by user joe' : '250 yes';
            print {$c} "$reply\r\n";
            last if $line =~ /^QUIT/;
        }
        exit 0;
    }
    exit 0;
}
my $passwords = tempdir('refusals-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $bounces = Sink->start;
my $petrel = Petrel->new(hostname => 'host.test', auth_passwords => Petrel::spit("$passwords/auth", "127.0.0.1 joe secret\n"),
    routes => "here.test smtp://127.0.0.1:$bounces->{port}\naccount.test smtp://joe\@127.0.0.1:" . $server->sockport . "?tls=none&auth_clear=yes\n* smtp://127.0.0.1:" . $server->sockport)->start;

my %id;
sub refused {
    my ($name, $class) = @_;
    ($id{$name}) = $petrel->send_mail('me@here.test', "$name\@there.test", "Subject: $name\n\nx\n") =~ /queued as (\S+)/ or die;
    ok $petrel->wait_log(qr/to=<$name\@there\.test>, .*status=(?:deferred|bounced)/), "$name is refused";
    my ($line) = $petrel->log =~ /^(.*to=<$name\@there\.test>.*)$/m;
    is +($line =~ /, class=(\w+)/)[0], $class, 'the class in its line';
    return;
}
refused('spf', 'auth');
refused('ptr', 'ptr');
refused('listed', 'reputation');
refused('gone', 'no_user');
refused('odd', undef);

my %hint = (spf => qr/SPF, DKIM and DMARC/, ptr => qr/needs a PTR record/, listed => qr/is on a list/, gone => qr/stop sending to it/);
for my $name (qw(spf listed gone)) {
    my $of = sub { grep { /^Subject: $name\r?$/m } map { $_->{data} } $bounces->messages };
    ok Petrel::wait_for($of), "the bounce of $name";
    my ($bounce) = $of->();
    $bounce =~ s/\r?\n {4}(?=\S)/ /g;
    like $bounce, qr/Hint: .*$hint{$name}/, 'has the hint';
}
for my $verb (qw(why show)) {
    like +($petrel->run('queue', $verb, $id{ptr}))[1], qr/^hint: +.*$hint{ptr}/m, "queue $verb has it";
    unlike +($petrel->run('queue', $verb, $id{odd}))[1], qr/hint:/, 'not where nothing is known';
}
my $recipient = decode_json(($petrel->run(qw(queue show --json), $id{ptr}))[1])->{recipients}[0];
is $recipient->{class}, 'ptr', 'the class in JSON';
like $recipient->{hint}, $hint{ptr}, 'and the hint';

# A finding of the receiver, of the last reason for which it refuses us.
ok $petrel->wait_log(qr/trouble=receiver_refuses_us.*subject=127\.0\.0\.1/), 'trouble is reported' or diag $petrel->log =~ /(.*trouble.*)/g;
my ($finding) = grep { $_->{code} eq 'receiver_refuses_us' } @{ decode_json($petrel->status)->{findings} };
like $finding->{text}, qr/^refuses mail \((?:auth|ptr|reputation)\): /, 'with the hint';
is Petrel::count($petrel->log, qr/trouble=receiver_refuses_us/), 1, 'once';

is Petrel::count($petrel->log, qr/warning: \S+ refuses mail \(auth\): .*SPF/), 1, 'a warning says what to do';
is Petrel::count($petrel->log, qr/warning: \S+ refuses mail \(no_user\)/), 0, 'not about what is the sender\'s';
my $again = $petrel->send_mail('me@here.test', 'spf@other.test', "Subject: again\n\nx\n");
ok $petrel->wait_log(qr/to=<spf\@other\.test>, .*class=auth/), 'the same again';
is Petrel::count($petrel->log, qr/warning: \S+ refuses mail \(auth\)/), 1, 'is not logged again within the hour';
# A host that we log in to refuses a sender: our settings are wrong, not the mail.
$petrel->send_mail('root@here.test', 'gone@account.test', "Subject: waits\n\nx\n");
ok $petrel->wait_log(qr/to=<gone\@account\.test>, .*class=sender, dsn=4\.7\.1, status=deferred \(/), 'mail of a sender that the account may not use waits';
ok $petrel->wait_log(qr/warning: \S+ refuses mail \(sender\): the receiver accepts only senders of the account/), 'and the log says what is wrong' or diag $petrel->log;
my $notices = sub { grep { /^Subject: Delayed/m } map { $_->{data} } $bounces->messages };
ok Petrel::wait_for($notices), 'the sender is notified';
my ($notice) = $notices->();
$notice =~ s/\r?\n {4}(?=\S)/ /g;
like $notice, qr/Hint: .*accepts only senders of the account/, 'of what is wrong';
like $notice, qr/^Action: delayed\r?$/m, 'as of a delay';
# Not again, not one that asked for none.
my ($waiting) = $petrel->log =~ /: (\S+): to=<gone\@account\.test>, .*class=sender/ or die;
my $before = Petrel::count($petrel->log, qr/ $waiting: to=<gone/);
is +($petrel->run('queue', 'retry', $waiting))[0], 0, 'a retry';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/ $waiting: to=<gone/) > $before }), 'is refused again';
my $smtp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $petrel->{port}, Timeout => 10) or die;
my $greeting = <$smtp>;
for ("HELO x.test", "EHLO x.test", 'MAIL FROM:<root@here.test>', 'RCPT TO:<never@account.test> NOTIFY=NEVER', 'RCPT TO:<failure@account.test> NOTIFY=FAILURE', 'DATA', "Subject: never\r\n\r\nx\r\n.", 'QUIT') {
    print {$smtp} "$_\r\n";
    while (my $line = <$smtp>) { last if $line =~ /^\d{3} / }
}
ok $petrel->wait_log(qr/to=<$_\@account\.test>, .*class=sender.*status=deferred/), "$_ is refused" for 'never', 'failure';
$petrel->send_mail('root@here.test', 'last@account.test', "Subject: last\n\nx\n");
ok Petrel::wait_for(sub { $notices->() == 2 }), 'the next message has its own notification';
is Petrel::count($petrel->log, qr/ sender notified of the delay/), 2, 'and there are no others';
$petrel->send_mail('root@here.test', 'gone@free.test', "Subject: bounces\n\nx\n");
ok $petrel->wait_log(qr/to=<gone\@free\.test>, .*class=sender, dsn=5\.7\.1, status=bounced \(/), 'without a login it bounces';
$petrel->send_mail('me@here.test', 'gone@account.test', "Subject: unknown\n\nx\n");
ok $petrel->wait_log(qr/to=<gone\@account\.test>, .*class=no_user, dsn=5\.1\.1, status=bounced \(/), 'as does mail for an unknown user';
is $petrel->stop, 0, 'it ends well';
kill 'TERM', $pid;
waitpid $pid, 0;
done_testing;
