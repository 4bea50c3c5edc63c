#!/usr/bin/perl
# `rewrite`, and what is done without it: cron, PHP, logwatch and devices send through a smarthost that takes mail of one
# account only, and refuses bare addresses and what its domain has not signed. All of it arrives. Reload, the log, and mail of others.
use lib 't/e2e';
use E2E;
use IPC::Open2;

my $dir = tempdir('rewrite-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$dir/$_" or die for qw(taken keys);
is system("$Petrel::binary -o spool=$dir/none dkim-key example.org s1 --bits 1024 --directory $dir/keys >/dev/null 2>&1"), 0, 'a key';
my $child = open2(my $smarthost, my $end, 'python3', 't/e2e/strict_smarthost.py', "$dir/taken", 'example.org');
my ($port) = (readline $smarthost) =~ /(\d+)/ or die 'no smarthost';
END { local $?; close $end if $end; waitpid $child, 0 if $child }
my $petrel = Petrel->new(hostname => 'vps7.host.test', relay => "smtp://127.0.0.1:$port", relay_from => '127.0.0.1', dkim_keys => "$dir/keys",
    rewrite => "example.org =\nlocal alerts\@example.org\n* relay\@example.org")->start;

sub mail {
    my ($flags, $message) = @_;
    open my $mail, '|-', "$Petrel::binary -c $petrel->{dir}/petrel.conf sendmail $flags" or die;
    print $mail $message;
    return close $mail;
}
sub smtp {
    my ($from, $message) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.1') or die 'no greeting';
    $client->say($_) for "MAIL FROM:<$from>", 'RCPT TO:<admin@far.test>', 'DATA';
    my $reply = $client->say(Client::stuffed($message =~ s/\n/\r\n/gr) . '.');
    $client->quit;
    return $reply =~ /^250/;
}
sub taken { return scalar(grep { !/\.new\z/ } glob "$dir/taken/*") }

# Each: what it is, how it is submitted, and what its sender and From become.
my @letters = (
    ['cron', sub { mail('-FCronDaemon -i -odi -oem -oi -t -f root', "From: root (Cron Daemon)\nTo: admin\@far.test\nSubject: Cron <root\@vps7> run\nAuto-Submitted: auto-generated\n\nx\n") },
        'alerts@example.org', '"root@vps7.host.test" <alerts@example.org> (Cron Daemon)'],
    ['Debian cron', sub { mail('-i -FCronDaemon -B8BITMIME -oem root,admin@far.test', "From: root (Cron Daemon)\nTo: root\nSubject: x\n\nx\n") },
        'alerts@example.org', '"root@vps7.host.test" <alerts@example.org> (Cron Daemon)'],
    ['PHP mail()', sub { mail('-t -i -f www-data@vps7', "To: admin\@far.test\nSubject: x\nFrom: Shop <shop\@example.org>\n\nx\n") },
        'alerts@example.org', 'Shop <shop@example.org>'],
    ['PHP without From', sub { mail('-t -i -f www-data', "To: admin\@far.test\nSubject: x\n\nx\n") },
        'alerts@example.org', qr/^\S.*<alerts\@example\.org>$/],
    ['logwatch', sub { mail('-t -i', "To: admin\@far.test\nFrom: logwatch\@vps7.host.test\nSubject: Logwatch for vps7\nPrecedence: bulk\n\nx\n") },
        'alerts@example.org', '"logwatch@vps7.host.test" <alerts@example.org>'],
    ['a printer', sub { smtp('scanner@localhost', "From: scanner\nTo: admin\@far.test\nSubject: scan\n\nx\n") },
        'alerts@example.org', '"scanner@vps7.host.test" <alerts@example.org>'],
    ['a NAS', sub { smtp('nas@nas.lan', "Return-Path: <nas\@nas.lan>\nFrom: \"NAS\" <nas\@nas.lan>\nTo: admin\@far.test\nBcc: me\@far.test\nSubject: x\n\nx\n") },
        'alerts@example.org', '"NAS" <alerts@example.org>'],
    ['a monitor without From', sub { smtp('mon@mon', "To: admin\nSubject: x\n\nx\n") },
        'alerts@example.org', '"mon@mon" <alerts@example.org>'],
    ['an application of another domain', sub { smtp('app@other.test', "From: App <app\@other.test>\nTo: admin\@far.test\nSender: app\@other.test\nSubject: x\n\nx\n") },
        'relay@example.org', 'App <relay@example.org>'],
    ['one of the account', sub { smtp('ann@example.org', "From: Ann <ann\@example.org>\nTo: admin\@far.test\nSubject: x\n\nx\n") },
        'ann@example.org', 'Ann <ann@example.org>'],
    ['a bounce', sub { smtp('', "From: MAILER-DAEMON (Mail Delivery System)\nTo: admin\@far.test\nSubject: x\n\nx\n") },
        '', '"MAILER-DAEMON@vps7.host.test" <alerts@example.org> (Mail Delivery System)'],
);
for my $letter (@letters) {
    my ($name, $send, $sender, $from) = @$letter;
    my $before = taken();
    ok $send->(), "$name is submitted";
    ok Petrel::wait_for(sub { taken() > $before }), 'and taken by the smarthost' or diag $petrel->log;
    my $came = Petrel::slurp("$dir/taken/$before") =~ s/\r//gr;
    my ($head) = $came =~ /\A(.*?)\n\n/s;
    is +($head =~ /^X-Sender: (.*)$/m)[0], $sender, 'its sender';
    my ($shown) = $head =~ /^From: (.*)$/m;
    if (ref $from) { like $shown, $from, 'its From' } else { is $shown, $from, 'its From' }
    my ($reply) = $head =~ /^Reply-To: (.*)$/m;
    is $reply // '', $name =~ /another domain/ ? 'app@other.test' : '', 'Reply-To only where replies would go astray';
    unlike $head, qr/^(?:Bcc|Return-Path|Sender):/m, 'nothing that should not leave';
}
ok $petrel->wait_empty, 'nothing waits';
unlike $petrel->log, qr/status=(?:deferred|bounced)/, 'nothing was refused';
ok $petrel->wait_log(qr/to=<admin\@far\.test>.* from=<relay\@example\.org>, orig_from=<app\@other\.test>,.* status=sent/), 'the log has both senders' or diag $petrel->log;
unlike $petrel->log, qr/orig_from=<ann\@example\.org>/, 'only when they differ';

# The alerts of a cluster, each from an address of its own, in many sessions.
{
    my $before = taken();
    my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.1') or die 'no greeting';
    my $refused = grep { $client->send(from => "app$_\@ns$_.svc.cluster.local", to => ["admin$_\@far.test"],
        data => "From: Alert $_ <app$_\@ns$_.svc.cluster.local>\r\nReply-To: app$_\@ns$_.svc.cluster.local\r\nSubject : $_\r\n\r\nx\r\n") !~ /^250/ } 1 .. 94;
    $client->quit;
    is $refused, 0, '94 alerts are submitted';
    ok Petrel::wait_for(sub { taken() == $before + 94 }), '94 of 94 are taken' or diag $petrel->log;
    my @came = map { Petrel::slurp($_) } grep { !/\.new\z/ } glob "$dir/taken/*";
    is scalar(grep { /^From: Alert \d+ <alerts\@example\.org>\r$/m && /^Reply-To: alerts\@example\.org\r$/m && /^Subject: \d+\r$/m } @came), 94, 'as mail of the account, with no address that means nothing there';
    ok $petrel->wait_empty, 'nothing waits';
}

# A reload: mail that waited leaves by the new table.
$petrel->configure(relay => 'smtp://127.0.0.1:1');
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'another smarthost, that is down';
smtp('x@wrong.test', "From: x\@wrong.test\nTo: admin\@far.test\nSubject: late\n\nx\n");
ok $petrel->wait_log(qr/status=deferred/), 'mail waits';
my $before = taken();
$petrel->configure(relay => "smtp://127.0.0.1:$port", rewrite => "wrong.test late\@example.org\n* relay\@example.org");
kill 'HUP', $petrel->{pid};
ok Petrel::wait_for(sub { () = $petrel->log =~ /settings reloaded/g; scalar(() = $petrel->log =~ /settings reloaded/g) == 2 }), 'and another table';
$petrel->run('queue', 'retry', '--all');
ok Petrel::wait_for(sub { taken() > $before }), 'it leaves' or diag $petrel->log;
like Petrel::slurp("$dir/taken/$before"), qr/^From: "x\@wrong\.test" <late\@example\.org>\r$/m, 'as the new table says';

# Errors stop neither the daemon nor its old table.
$petrel->configure(rewrite => 'local nobody');
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/petrel\.conf:\d+: rewrite: 'local nobody': invalid replacement.*\n.*reload refused/), 'a bad table is refused, with its line';
$petrel->configure(rewrite => "* =\nlocal a\@b.test");
my ($code, $text) = $petrel->run('check');
like $text, qr/warning: \S+petrel\.conf:\d+: rewrite: 'local' never matches, because '\*' stands before it/, 'what never matches is said';
is $petrel->stop, 0, 'it ends well';

# Without a table bare addresses are completed; of untrusted clients nothing changes.
my $sink = Sink->start;
$petrel = Petrel->new(hostname => 'vps7.host.test', relay_from => '127.0.0.1', local_domains => 'far.test', local => "smtp://127.0.0.1:$sink->{port}")->start;
my $letter = "From: root (Cron Daemon)\nTo: alice, =?utf-8?q?B=C3=B6b?= <bob>,\n (see) carl\@x.test\nCc: broken <<\nSubject: x\n\nx\n";
ok smtp('root@vps7.host.test', $letter), 'submitted';
my $came = $sink->wait_for('admin@far.test', 1);
like $came->{data}, qr/^From: root\@vps7\.host\.test \(Cron Daemon\)\r\nTo: alice\@vps7\.host\.test, =\?utf-8\?q\?B=C3=B6b\?= <bob\@vps7\.host\.test>,\r\n \(see\) carl\@x\.test\r\nCc: broken <<\r$/m, 'bare addresses are completed, the rest stays';
ok $petrel->wait_log(qr/smtp: [0-9A-Z-]+: Cc leaves as it is: its addresses cannot be parsed/), 'a broken field is logged' or diag $petrel->log;
my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.2') or die;
$client->say($_) for 'MAIL FROM:<x@y.test>', 'RCPT TO:<other@far.test>', 'DATA';
$client->say(Client::stuffed($letter =~ s/\n/\r\n/gr) . '.');
$came = $sink->wait_for('other@far.test', 1);
like $came->{data}, qr/^From: root \(Cron Daemon\)\r\nTo: alice,/m, 'of an untrusted client they stay';
$client->quit;
is $petrel->stop, 0, 'it ends well';

done_testing;
