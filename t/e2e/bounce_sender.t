#!/usr/bin/perl
# A smarthost that refuses MAIL FROM:<>: the finding says that nobody learns of failed mail, and names `bounce_sender`; with it
# notifications arrive, marked and without asking for one themselves; and a host that takes no more than two recipients in a
# transaction gets the others in the next ones.
use lib 't/e2e';
use E2E;
use File::Temp ();

# Takes mail in a process of its own; its log has each MAIL and RCPT, and the content.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20, ReuseAddr => 1) or die "$!";
my $port = $listener->sockport;
my $dir = File::Temp::tempdir('bounce-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $parent = $$;

sub serve {
    my ($c) = @_;
    my ($rcpts, $data) = (0, 0);
    open my $out, '>>', "$dir/log" or die "$!";
    $out->autoflush(1);
    print $c "220 smarthost.test\r\n";
    while (defined(my $line = <$c>)) {
        $line =~ s/\r?\n\z//;
        if ($data) {
            print $out "$line\n";
            next if $line ne '.';
            $data = 0;
            print $c "250 2.0.0 taken\r\n";
            next;
        }
        print $out "$line\n" if $line =~ /^(?:MAIL|RCPT)/;
        $rcpts = 0 if $line =~ /^MAIL/;
        print $c $line =~ /^EHLO/ ? "250-smarthost.test\r\n250-PIPELINING\r\n250 DSN\r\n"
            : $line =~ /^MAIL FROM:<>/ ? "501 5.1.7 Invalid MAIL FROM address provided\r\n"
            : $line =~ /^RCPT TO:<bad/ ? "550 5.1.1 no such user\r\n"
            : $line =~ /^RCPT/ && ++$rcpts > 2 ? "452 4.5.3 Too many recipients\r\n"
            : $line =~ /^DATA/ ? do { $data = 1; "354 go\r\n" }
            : $line =~ /^QUIT/ ? "221 bye\r\n" : "250 2.1.0 ok\r\n";
        last if $line =~ /^QUIT/;
    }
}
my $server = fork // die "$!";
if ($server == 0) {
    while (my $c = $listener->accept) {
        $c->autoflush(1);
        my $child = fork // die "$!";
        if ($child == 0) { serve($c); POSIX::_exit(0) }
    }
    POSIX::_exit(0);
}
close $listener;
END { local $?; if (defined $server && $$ == $parent) { kill TERM => $server; waitpid $server, 0 } }

sub heard { return Petrel::slurp("$dir/log") }

my $petrel = Petrel->new(hostname => 'petrel.test', relay => "smtp://127.0.0.1:$port?tls=none", root => 'ops@example.org')->start;

# --- Too many recipients

my @to = map { "r$_\@many.test" } 1 .. 7;
like $petrel->send_mail('ann@here.test', \@to, "Subject: s\n\nb\n"), qr/queued as/, 'a message for seven';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/to=<r\d\@many\.test>.*status=sent/) == 7 }), 'all have it';
is Petrel::count($petrel->log, qr/to=<r\d\@many\.test>.*status=deferred/), 0, 'none waits';
is scalar(() = heard() =~ /^MAIL FROM:<ann/mg), 4, 'in four transactions';
like $petrel->send_mail('ann@here.test', \@to, "Subject: s\n\nb\n"), qr/queued as/, 'another one';
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/to=<r\d\@many\.test>.*status=sent/) == 14 }), 'all have it';
is scalar(() = heard() =~ /^RCPT TO:<r7/mg), 5, 'and nobody was refused: the limit is known';

# --- The null sender

$petrel->send_mail('ann@here.test', 'bad@there.test', "Subject: s\n\nb\n");
ok $petrel->wait_log(qr/trouble=reports_lost, subject=127\.0\.0\.1 .*501 5\.1\.7 Invalid MAIL FROM address provided.*bounce_sender/), 'a finding: refused, and the remedy';
unlike heard(), qr/^Auto-Submitted/m, 'nobody has been notified';
like +($petrel->run('status'))[1], qr/^error +reports_lost 127\.0\.0\.1: /m, 'in petrel status';
unlike $petrel->log, qr/ queue: [0-9A-Z-]+: \n/, 'no line of the log is empty';

$petrel->configure(bounce_sender => 'ops@example.org');
kill HUP => $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'a reload';
$petrel->send_mail('ann@here.test', 'bad@there.test', "Subject: s\n\nb\n");
ok Petrel::wait_for(sub { heard() =~ /^MAIL FROM:<ops.*\nRCPT TO:<ann\@here\.test> NOTIFY=NEVER/m }), 'the sender is notified, and the host is to notify nobody';
ok Petrel::wait_for(sub { heard() =~ /^MAIL FROM:<ops\@example\.org>(?:(?!^MAIL).)*^Auto-Submitted: auto-replied$/ms }), 'from that address, marked as automatic';
ok $petrel->wait_log(qr/recovered=reports_lost/), 'the finding ends';
like join('', $petrel->run('-o', 'bounce_sender=nobody', 'check')), qr/bounce_sender: 'nobody' is not <> or an address/, 'check refuses what is no address';

is $petrel->stop, 0, 'stops';
done_testing;
