#!/usr/bin/perl
# Aliases and `root`: a machine whose root and cron are read elsewhere, a host that forwards with SRS and takes the bounces
# back, lists with owners, loops, files that change, and kill -9 between acceptance and delivery.
use lib 't/e2e';
use E2E;

my $dir = tempdir('alias-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start('--fail-rcpt', 'gone:550');
my $next = "smtp://127.0.0.1:$sink->{port}";

sub mail {
    my ($petrel, $flags, $message) = @_;
    open my $mail, '|-', "$Petrel::binary -c $petrel->{dir}/petrel.conf sendmail $flags" or die;
    print $mail $message;
    return close $mail;
}
# The replies to MAIL, RCPTs, and (if all are 2yz) the content.
sub smtp {
    my ($petrel, $from, $to, $content, $from_address) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => $from_address // '127.0.0.1') or die 'no greeting';
    my @replies = map { $client->say($_) } "MAIL FROM:<$from>", map { "RCPT TO:$_" } @$to;
    push @replies, $client->say('DATA') =~ /^354/ ? $client->say(($content // "Subject: x\r\n\r\nx\r\n") . '.') : () if grep { /^250/ } @replies[1 .. $#replies];
    $client->quit;
    return map { /^(\d+ \S+)/ } @replies;
}

# --- A machine that sends for itself: one line sets it up. ---------------------------------------------------------
Petrel::spit("$dir/debian", <<'END');
# See man 5 aliases for format
postmaster:    root
mailer-daemon: postmaster
nobody: root
www: root
END
my $machine = Petrel->new(hostname => 'vps7.host.test', relay => $next, root => 'alerts@example.org', aliases => "$dir/debian")->start;
ok mail($machine, '-FCronDaemon -i -odi -oem -oi -t -f root', "From: root (Cron Daemon)\nTo: root\nSubject: Cron\n\nx\n"), 'cron sends to root';
my $got = $sink->wait_for('alerts@example.org', 1);
ok $got, 'and the person gets it' or diag $machine->log;
is $got->{from}, 'root@vps7.host.test', 'with the sender of the machine';
like $got->{data}, qr/^Delivered-To: root\@vps7\.host\.test\r$/m, 'and the alias';
ok mail($machine, 'www backup postmaster', "Subject: several\n\nx\n"), 'to users without a mailbox';
$got = $sink->wait_for('alerts@example.org', 2);
is_deeply $got->{to}, ['alerts@example.org'], 'one copy a person' or diag $machine->log;
ok $machine->wait_empty, 'nothing is left';
is scalar($sink->for_address('alerts@example.org')), 2, 'and nothing more comes';
ok $machine->wait_log(qr/to=<alerts\@example\.org>, orig_to=<root\@vps7\.host\.test>, .*status=sent/), 'the log has both' or diag $machine->log;
like +($machine->run('sendmail', '-bi'))[1], qr{^\Q$dir\E/debian: 4 names, 4 addresses; root: alerts\@example\.org$}, 'newaliases says what it found';
my ($code, $said) = $machine->run({input => join('', map { "$_\r\n" } 'EHLO x', 'MAIL FROM:<root@vps7.host.test>', 'RCPT TO:<www@vps7.host.test>', 'DATA', 'Subject: bs', '', 'x', '.', 'QUIT')}, 'sendmail', '-bs');
is_deeply [$said =~ /^(\d+) 2\.\d\.\d/mg], [(250) x 3, 221], 'sendmail -bs takes an alias' or diag $said;
$got = $sink->wait_for('alerts@example.org', 3);
like $got ? $got->{data} : '', qr/^Subject: bs\r$/m, 'which is expanded' or diag $machine->log;
# A bounce to cron's sender reaches the person, too.
my $strict = Sink->start('--fail', 'rcpt:550');
$machine->configure(routes => "bad.test smtp://127.0.0.1:$strict->{port}");
kill 'HUP', $machine->{pid};
ok $machine->wait_log(qr/settings reloaded/), 'a reload';
ok mail($machine, '-f root x@bad.test', "Subject: bounces\n\nx\n"), 'mail that bounces';
$got = $sink->wait_for('alerts@example.org', 4);
is $got && $got->{from}, '', 'the bounce of cron reaches the person' or diag $machine->log;
$machine->stop;

# --- A host that forwards. -----------------------------------------------------------------------------------------
my $aliases = Petrel::spit("$dir/aliases", <<"END");
root: ann
ann: ann\@home.test
staff: ann, bob\@home.test, Carl\@Work.test
list: ann\@home.test, gone\@home.test
owner-list: boss\@home.test
both: nobody1, nobody2
mixed: nobody1, bob\@home.test
postmaster: ann
include: :include:$dir/members
self: \\self, self\@home.test
END
Petrel::spit("$dir/members", "ann\@home.test\nbob\@home.test\n");
mkdir "$dir/mail";
mkdir "$dir/mail/self";
my $host = Petrel->new(hostname => 'mx.here.test', local_domains => 'here.test, mx.here.test', local => "maildir:$dir/mail/%u", aliases => $aliases,
    routes => "* $next", relay_from => '192.0.2.0/24', check_helo => 'no', check_sender => 'no')->start;
is_deeply [smtp($host, 'me@far.test', ['<staff@here.test>'])], ['250 2.1.0', '250 2.1.5', '250 2.0.0'], 'a list of addresses is taken from anybody';
for my $to (qw(ann@home.test bob@home.test Carl@work.test)) {
    $got = $sink->wait_for($to, 1);
    ok $got, "$to has it" or diag $host->log;
    like $got->{from}, qr/^SRS0=[A-Z2-7]{6}=[A-Z2-7]{2}=far\.test=me\@here\.test$/, 'from a sender that leads back';
    like $got->{data}, qr/^Delivered-To: staff\@here\.test\r$/m, 'with the alias';
}
my $srs = $got->{from};
ok $host->wait_log(qr/from=<SRS0=\S+>, orig_from=<me\@far\.test>/), 'both senders are logged' or diag $host->log;
is_deeply [smtp($host, '', ["<$srs>"])], ['250 2.1.0', '250 2.1.5', '250 2.0.0'], 'a bounce comes back';
$got = $sink->wait_for('me@far.test', 1);
is $got && $got->{from}, '', 'to its author' or diag $host->log;
(my $lower = $srs) =~ tr/A-Z/a-z/;
is +(smtp($host, '', ["<$lower>"]))[1], '250 2.1.5', 'in any case';
(my $forged = $srs) =~ s/=me/=you/;
is +(smtp($host, '', ["<$forged>"]))[1], '550 5.1.1', 'a forged one does not';
is +(smtp($host, 'x@far.test', ['<x@elsewhere.test>']))[1], '554 5.7.1', 'and nobody else is relayed for';
is +(smtp($host, 'x@far.test', ['<nobody@here.test>']))[1], '550 5.1.1', 'an unknown user';
is +(smtp($host, 'x@far.test', ['<both@here.test>']))[1], '550 5.1.1', 'an alias of unknown users';
is +(smtp($host, 'x@far.test', ['<mixed@here.test>']))[1], '250 2.1.5', 'one that exists is enough';
is +(smtp($host, 'x@far.test', ['<postmaster>']))[1], '250 2.1.5', '<postmaster> has an alias';
is +(smtp($host, 'x@far.test', ['<self@here.test>']))[1], '250 2.1.5', 'a user who keeps a copy';
ok Petrel::wait_for(sub { () = glob "$dir/mail/self/new/*" }), 'it is there';
ok $sink->wait_for('self@home.test', 1), 'and elsewhere';
is +(smtp($host, 'x@far.test', ['<include+tag@here.test>']))[1], '250 2.1.5', 'a file of members, with a tag';

# One copy, and the loop.
my $before = $sink->for_address('bob@home.test');
is_deeply [(smtp($host, 'x@far.test', ['<staff@here.test>', '<include@here.test>', '<staff@here.test>'], "Subject: once\r\n\r\nx\r\n"))[-1]], ['250 2.0.0'], 'three aliases';
ok $host->wait_empty, 'delivered';
is scalar(grep { $_->{data} =~ /^Subject: once/m } $sink->for_address('ann@home.test')), 1, 'one copy a person';
is +(smtp($host, 'x@far.test', ['<ann@here.test>'], "Delivered-To: Ann\@Here.test\r\nSubject: x\r\n\r\nx\r\n"))[-1], '554 5.4.6', 'what was forwarded before is a loop';
is +(smtp($host, 'x@far.test', ['<ann@here.test>'], "Delivered-To: other\@here.test\r\nSubject: x\r\n\r\nx\r\n"))[-1], '250 2.0.0', 'by another alias it is none';

# A list: its owner is the sender, and gets the bounces; success is told of the list.
is +(smtp($host, 'x@far.test', ['<list@here.test> NOTIFY=SUCCESS ORCPT=rfc822;list@here.test'], "Subject: to list\r\n\r\nx\r\n"))[-1], '250 2.0.0', 'a list';
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: to list/m } $sink->for_address('ann@home.test') }), 'is sent';
my ($member) = grep { $_->{data} =~ /^Subject: to list/m } $sink->for_address('ann@home.test');
is $member->{from}, 'owner-list@here.test', 'by its owner';
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Action: delivered/m } $sink->for_address('x@far.test') }), 'the sender is told of the list' or diag $host->log;
$got = $sink->wait_for('boss@home.test', 1);
like $got ? $got->{data} : '', qr/^Final-Recipient: rfc822; ?gone\@home\.test\r$/m, 'its owner gets the bounce' or diag $host->log;
ok !(grep { $_->{data} =~ /gone\@home/ } $sink->for_address('x@far.test')), 'and the sender does not';
# One message, two who are notified: each of what is theirs.
ok mail($host, '-f writer@far.test list gone@else.test', "Subject: two bounces\n\nx\n"), 'a list, and an address of its own';
$got = $sink->wait_for('writer@far.test', 1);
like $got ? $got->{data} : '', qr/gone\@else\.test/, 'the writer hears of it' or diag $host->log;
unlike $got ? $got->{data} : '', qr/Final-Recipient: rfc822; ?gone\@home/, 'and of nothing else';
$got = $sink->wait_for('boss@home.test', 2);
like $got ? $got->{data} : '', qr/gone\@home\.test/, 'the owner of the member' or diag $host->log;
ok $host->wait_empty, 'and the message ends';
is scalar($sink->for_address('writer@far.test')), 1, 'nobody is notified twice';
is scalar($sink->for_address('boss@home.test')), 2, 'nor the owner';
is +(smtp($host, 'y@far.test', ['<staff@here.test> NOTIFY=SUCCESS'], "Subject: staff\r\n\r\nx\r\n"))[-1], '250 2.0.0', 'several members';
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Action: expanded/m } $sink->for_address('y@far.test') }), 'are reported as expanded' or diag $host->log;

# A file that changes while the daemon runs, first wrongly.
Petrel::spit($aliases, Petrel::slurp($aliases) . "new: |/bin/sh\n");
ok $host->wait_log(qr{error: aliases: \Q$aliases\E:\d+: '\|/bin/sh': a program}), 'an error is logged';
is +(smtp($host, 'x@far.test', ['<staff@here.test>']))[1], '250 2.1.5', 'and the old table stays';
is +($host->run('newaliases'))[0], 64, 'no such command';
is +($host->run('sendmail', '-bi'))[0], 78, 'newaliases finds the error, too';
Petrel::spit($aliases, Petrel::slurp($aliases) =~ s{\|/bin/sh}{late\@home.test}r);
ok $host->wait_log(qr{aliases: read again: 11 names}), 'repaired' or diag $host->log;
is +(smtp($host, 'x@far.test', ['<new@here.test>']))[1], '250 2.1.5', 'the new name is there';
ok $sink->wait_for('late@home.test', 1), 'and its mail comes';

# kill -9 while the next host is away: the members are on disk.
$sink->stop;
is +(smtp($host, 'k@far.test', ['<staff@here.test>'], "Subject: killed\r\n\r\nx\r\n"))[-1], '250 2.0.0', 'accepted';
ok mail($host, '-f here@here.test staff list', "Subject: injected\n\nx\n"), 'and injected';
$host->kill9;
Petrel::spit($aliases, "other: x\@home.test\n");
$sink->again;
$host->start;
ok Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: killed/m } $sink->for_address('bob@home.test') }), 'those that were accepted come, with the aliases of then' or diag $host->log;
is scalar(grep { $_->{data} =~ /^Subject: killed/m } $sink->for_address('Carl@work.test')), 1, 'all of them, once' if Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: killed/m } $sink->for_address('Carl@work.test') });
$host->stop;
done_testing;
