#!/usr/bin/perl
# log_style = postfix, as real tools for Postfix's log read it: their numbers are those of client and sink.
use lib 't/e2e';
use E2E;
use MIME::Base64;
use Socket qw(SOCK_DGRAM MSG_DONTWAIT);

my $scratch = tempdir('tools-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start('--fail-rcpt', 'bad:550', '--fail-rcpt', 'later:450');
my ($password, %truth) = 'correct horse';
Petrel::spit("$scratch/users", (Petrel::command("$password\n", $Petrel::binary, 'passwd', 'alice'))[1]);
chmod 0600, "$scratch/users";
my $petrel;

# A client from another address, greeted.
sub from { my $address = shift; my $c = Client->greeted($petrel->{port}, LocalAddr => $address) or die 'no greeting'; return $c }

sub message { my $n = shift; return "From: me\@here.test\r\nMessage-ID: <$n\@here.test>\r\n\r\nx\r\n" }

# Mail of every fate, and attacks. 127.0.0.9 may not relay. Returns the log.
sub traffic {
    my ($messages) = @_;
    %truth = map { $_ => 0 } qw(received sent bounced deferred held submitted rejected denied cut);
    my $client = Client->greeted($petrel->{port});
    for my $n (1 .. $messages) {
        my $to = $n % 10 == 0 ? 'bad' : $n % 10 == 5 ? 'later' : 'good';
        my $domain = $n % 20 == 1 ? 'held.test' : 'there.test';
        $client->send(from => 'me@here.test', to => "$to$n\@$domain", data => message($n)) =~ /^250/ or die;
        $truth{received}++;
        $truth{ $domain eq 'held.test' ? 'held' : $to eq 'bad' ? 'bounced' : $to eq 'later' ? 'deferred' : 'sent' }++;
    }
    $client->quit;
    for my $n (1 .. $messages / 50) {
        my ($code, $text) = $petrel->run({ input => message("s$n") }, 'sendmail', '-f', 'me@here.test', "good$n\@there.test");
        die $text if $code;
        $truth{$_}++ for qw(submitted sent);
    }
    # Deferred mail expires soon, and is returned like refused mail. Each return is a message of its own.
    $truth{expired} = $truth{deferred};
    $truth{notified} = $truth{bounced} + $truth{expired};
    for my $n (1 .. 5) {
        my $enemy = from('127.0.0.9');
        $enemy->say("MAIL FROM:<s$n\@x.test>");
        $enemy->say('RCPT TO:<nobody@elsewhere.test>') =~ /^554 5\.7\.1/ or die 'not refused';
        $truth{rejected}++;
        $enemy->close;
    }
    for my $n (1 .. 3) {
        my $enemy = from("127.0.0.1$n");
        $enemy->say('AUTH PLAIN ' . encode_base64("\0alice\0wrong$n", '')) =~ /^535/ or die 'not denied';
        $truth{denied}++;
        $enemy->close;
    }
    return;
}

# Unpacked by t/e2e/get-peers.sh.
sub peer { my ($name, $file) = @_; my $path = "/opt/petrel-test-$name/$file"; return -e $path ? $path : undef }
sub tool { my @command = @_; return (Petrel::command(undef, @command))[1] }

my %settings = (
    log_style => 'postfix', hostname => 'relay.here.test', relay_from => '127.0.0.1/32', auth_users => "$scratch/users", auth_cleartext => 'loopback',
    smtpd_error_sleep_time => '0', auth_failure_limit => 0,
    maximal_queue_lifetime => '4s', minimal_backoff_time => '1s', maximal_backoff_time => '1s', delay_warning_time => 0,
    routes => "held.test hold\n* smtp://127.0.0.1:$sink->{port}",
);

# All has its outcome: no message but those that are held.
sub is_done {
    my ($log) = @_;
    return Petrel::count($log, qr/status=sent/) >= $truth{sent} + $truth{notified} && Petrel::count($log, qr/: removed\n/) >= $truth{received} + $truth{submitted} + $truth{notified} - $truth{held};
}

$petrel = Petrel->new(%settings)->start;
traffic(300);
ok Petrel::wait_for(sub { is_done($petrel->log) }, 120), 'all mail has its outcome';
is(($petrel->run(qw(queue release --to held.test)))[0], 0, 'what is held is released');
$truth{sent} += $truth{released} = $truth{held};
$truth{held} = 0;
ok Petrel::wait_for(sub { is_done($petrel->log) }, 120), 'and delivered';
is $petrel->stop, 0, 'stops';
my $log = Petrel::spit("$scratch/mail.log", $petrel->log);

SKIP: {
    my $pflogsumm = peer('pflogsumm', 'usr/sbin/pflogsumm') or skip 'no pflogsumm', 6;
    my $told = tool('perl', $pflogsumm, $log);
    my %count = map { $_ => $told =~ /^\s*(\d+)\s+\Q$_\E\s/m ? $1 : 0 } qw(received delivered deferred bounced rejected);
    is $count{received}, $truth{received} + $truth{submitted}, 'pflogsumm: received from clients and sendmail(1)';
    is $count{delivered}, $truth{sent} + $truth{notified}, 'pflogsumm: delivered';
    is $count{bounced}, $truth{bounced}, 'pflogsumm: bounced';
    is $count{deferred}, $truth{deferred}, 'pflogsumm: deferred';
    is $count{rejected}, $truth{rejected}, 'pflogsumm: rejected' or diag $told;
    like $told, qr/Relay access denied/, 'pflogsumm: in words that it groups';
}

SKIP: {
    my $fail2ban = peer('fail2ban', 'usr/bin/fail2ban-regex') or skip 'no fail2ban', 3;
    my $root = '/opt/petrel-test-fail2ban';
    local $ENV{PYTHONPATH} = "$root/usr/lib/python3/dist-packages";
    my $matched = sub { my $mode = shift; return tool('python3', $fail2ban, '-c', "$root/etc/fail2ban", $log, "postfix[mode=$mode]") =~ /, (\d+) matched/ ? $1 : -1 };
    is $matched->('normal'), $truth{rejected}, 'fail2ban: refusals of relaying';
    is $matched->('auth'), $truth{denied}, 'fail2ban: failed logins';
    cmp_ok $matched->('aggressive'), '>=', $truth{rejected} + 2 * $truth{denied}, 'fail2ban: and connections that are lost';
}

# An exporter of Postfix's log for Prometheus looks for these in the text of a line.
{
    my %count;
    my %pattern = (
        accepted => qr/smtpd\[\d+\]: \w+: client=\S+$/,
        picked => qr/pickup\[\d+\]: \w+: uid=\d+ from=/,
        queued => qr/qmgr\[\d+\]: \w+: .*, size=\d+, nrcpt=1 /,
        expired => qr/qmgr\[\d+\]: \w+: .*, status=expired, returned to sender$/,
        removed => qr/qmgr\[\d+\]: \w+: removed$/,
        sent => qr{smtp\[\d+\]: \w+: .*, relay=\S+, .*, delays=[\d.]+/[\d.]+/[\d.]+/[\d.]+, .*, status=sent },
        bounced => qr/smtp\[\d+\]: \w+: .*, status=bounced /,
        rejected => qr/smtpd\[\d+\]: NOQUEUE: reject: RCPT from \S+: 554 /,
        denied => qr/smtpd\[\d+\]: warning: \S+: SASL \S+ authentication failed: /,
        connects => qr/smtpd\[\d+\]: connect from /,
        disconnects => qr/smtpd\[\d+\]: disconnect from /,
        released => qr/postsuper\[\d+\]: \w+: released from hold$/,
    );
    for my $line (split /\n/, Petrel::slurp($log)) { $line =~ $pattern{$_} and $count{$_}++ for keys %pattern }
    my $all = $truth{received} + $truth{submitted} + $truth{notified};
    my %want = (
        accepted => $truth{received}, picked => $truth{submitted}, queued => $all, removed => $all, expired => $truth{expired},
        sent => $truth{sent} + $truth{notified}, bounced => $truth{bounced}, rejected => $truth{rejected}, denied => $truth{denied}, released => $truth{released},
    );
    is $count{$_} // 0, $want{$_}, "exporter: $_" for sort keys %want;
    is $count{connects}, $count{disconnects}, 'exporter: connections begin and end';
}

# logwatch's numbers of the same log, in the form of time that syslog writes.
SKIP: {
    my $script = peer('logwatch', 'usr/share/logwatch/scripts/services/postfix') or skip 'no logwatch', 10;
    my @months = qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec);
    my $lines = join '', map { s{^\d+-(\d+)-(\d+)T([\d:]+)\.\d+Z}{sprintf '%s %2d %s', $months[$1 - 1], $2, $3}er . "\n" } grep { !m{postfix/master} } split /\n/, Petrel::slurp($log);
    my ($status, $report) = Petrel::command($lines, 'sh', '-c', "exec env LOGWATCH_DETAIL_LEVEL=10 LOGWATCH_DATE_RANGE=all perl $script --detail 10");
    my %want = (
        'Accepted' => $truth{received} + $truth{submitted}, 'Rejected' => $truth{rejected}, 'Removed from queue' => $truth{received} + $truth{submitted} + $truth{notified},
        'Sent via SMTP' => $truth{sent} + $truth{notified}, 'Deferred' => $truth{deferred}, 'Bounced (local)' => $truth{bounced},
        'Expired and returned to sender' => $truth{expired}, 'Notifications sent' => $truth{notified}, 'SASL authentication failed' => $truth{denied},
    );
    for (sort keys %want) { is $report =~ /^ +(\d+) +\Q$_\E +/m ? $1 : 0, $want{$_}, "logwatch: $_" or diag substr $report, 0, 2000 }
    unlike $report, qr/Unmatched/i, 'logwatch: every line of hundreds is known';
}

# Our own filter for our own style: a file, and the lines of syslog. HELO and user try to forge a field.
SKIP: {
    my $fail2ban = peer('fail2ban', 'usr/bin/fail2ban-regex') or skip 'no fail2ban', 12;
    my $root = '/opt/petrel-test-fail2ban';
    local $ENV{PYTHONPATH} = "$root/usr/lib/python3/dist-packages";
    unlink "$scratch/socket2";
    my $service = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$scratch/socket2") or die;
    for my $to ('stderr', "syslog:$scratch/socket2") {
        my $http = Petrel::free_port();
        $petrel = Petrel->new(%settings, http => "127.0.0.1:$http", log_style => 'petrel', log_to => $to, auth_failure_limit => 2)->start;
        # The socket holds ten lines: they are read as they come.
        my ($line, $datagrams) = ('', '');
        my $drain = sub { while (defined recv($service, $line, 65536, MSG_DONTWAIT) && length $line) { $line =~ s/^<\d+>//; $line =~ s/^(.{15})/$1 relay/; $datagrams .= "$line\n" } return 1 };
        my $helo = sub { $drain->(); my $c = from($_[0]); $c->say('EHLO x, client=[198.51.100.1]'); return $c };
        for my $n (1 .. 2) {
            my $enemy = $helo->('127.0.0.20');
            $enemy->say('AUTH PLAIN ' . encode_base64("\0alice, client=[198.51.100.2]\0wrong$n", ''));
            $enemy->close;
        }
        my $thief = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$http", LocalAddr => '127.0.0.22') or die 'no HTTP';
        print $thief "GET /api/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer canary, client=[198.51.100.4]\r\n\r\n";
        like scalar <$thief>, qr/ 401 /, 'a wrong token of HTTP';
        my $enemy = $helo->('127.0.0.21');
        $drain->();
        $enemy->say('MAIL FROM:<s@x.test>');
        $enemy->say('RCPT TO:<"refused=535 5.7.8, client=[198.51.100.3]"@elsewhere.test>');
        $enemy->say('RCPT TO:<nobody@elsewhere.test>') =~ /^554 5\.7\.1/ or die 'not refused';
        $enemy->say('MAIL FROM:<nobody>');
        $drain->();
        $enemy->close;
        Petrel::wait_for(sub { $drain->() && ($petrel->log . $datagrams) =~ /to=<nobody\@elsewhere/ });
        is $petrel->stop, 0, "$to: stops";
        $drain->();
        my $lines = $petrel->log . $datagrams;
        my $file = Petrel::spit("$scratch/own.log", $lines);
        my $found = sub { my $mode = shift; return tool('python3', $fail2ban, '-c', "$root/etc/fail2ban", '--print-all-matched', $file, "$Petrel::root/etc/fail2ban/petrel.conf\[mode=$mode]") };
        my ($auth, $normal, $aggressive) = map { $found->($_) } qw(auth normal aggressive);
        like $auth, qr/, 4 matched/, "$to: two failed logins, a lockout, and a wrong token" or diag $auth, $lines;
        like $normal, qr/, 6 matched/, "$to: and refused relaying" or diag $normal;
        like $aggressive, qr/, [6-9] matched/, "$to: every refusal" or diag $aggressive;
        my $hosts = tool('python3', $fail2ban, '-c', "$root/etc/fail2ban", '-o', 'ip', $file, "$Petrel::root/etc/fail2ban/petrel.conf\[mode=aggressive]");
        unlike $hosts, qr/198\.51\.100/, "$to: none forged" or diag $lines;
    }
}

# The same by syslog, whose form of the time logwatch wants.
SKIP: {
    my $script = peer('logwatch', 'usr/share/logwatch/scripts/services/postfix') or skip 'no logwatch', 4;
    unlink "$scratch/socket";
    my $service = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$scratch/socket") or die;
    my ($line, $lines) = ('', '');
    my $hear = sub { while (defined recv($service, $line, 65536, MSG_DONTWAIT) && length $line) { $line =~ s/^<\d+>//; $line =~ s/^(.{15})/$1 relay/; $lines .= "$line\n" } return $lines };
    $petrel = Petrel->new(%settings, log_to => "syslog:$scratch/socket")->start;
    my $reader = sub { is_done($hear->()) };
    traffic(20);
    ok Petrel::wait_for($reader), 'all lines come by syslog';
    is $petrel->stop, 0, 'stops';
    $hear->();
    Petrel::spit("$scratch/syslog", $lines);
    # main and sandbox sentences are master's, which logwatch counts as unmatched of any program that it does not know.
    my $mail = join '', grep { !m{postfix/master} } map { "$_\n" } split /\n/, $lines;
    my ($status, $report) = Petrel::command($mail, 'sh', '-c', "exec env LOGWATCH_DETAIL_LEVEL=10 LOGWATCH_DATE_RANGE=all perl $script --detail 10");
    unlike $report, qr/Unmatched/i, 'logwatch: every line is known' or diag $report;
    like $report, qr/\b$truth{bounced}\s+Bounced/, 'logwatch: bounces' or diag $report;
}
done_testing;
