#!/usr/bin/perl
# petrel test: a message that is followed, what it says of each fate, and with what exit code it ends.
use lib 't/e2e';
use E2E;

$ENV{TZ} = 'UTC';
my $sink = Sink->start('--fail-rcpt', 'nobody:550', '--fail-rcpt', 'busy:451');
my $petrel = Petrel->new(local_domains => 'petrel.test', routes => "petrel.test maildir:%s/mail/%u?create=yes\nheld.test hold\n* smtp://127.0.0.1:$sink->{port}");
$petrel->configure(routes => $petrel->{settings}{routes} =~ s/%s/$petrel->{dir}/r);
mkdir "$petrel->{dir}/mail$_" for "", "/anna";
sub try { my @arguments = @_; return $petrel->run('test', @arguments) }

# --- Nothing is sent

for my $wrong ([], ['a@b.test', 'c@d.test'], ['--from'], ['a@b.test', '--for', 'x'], ['a@b.test', '--for', '2d'], ['--what', 'a@b.test']) {
    my ($code, $said) = try(@$wrong);
    is $code, 64, "refused: @$wrong";
    is $said, "usage: petrel test [-v] ADDRESS [--from ADDRESS] [--for TIME]\n", 'with its usage';
}
for my $address ('', 'a@b@c', 'a b@c.test', "a\@b.test\nRCPT TO:<x\@y.test>", 'a@b.test, c@d.test', 'x' x 10_000, "a\@b\x01.test") {
    my ($code, $said) = try($address);
    is $code, 65, 'no address: ' . substr($address, 0, 20);
    like $said, qr/\Apetrel test: this is not one mail address; write NAME\@DOMAIN(?:: [ -~]+)?\n\z/, 'one line says what to write';
}
my ($code, $said) = try('a@b.test', '--from', 'no one@x');
is $code, 65, 'no sender';
like $said, qr/the sender is not a mail address; write --from NAME\@DOMAIN/, 'it says what to write';
ok !-e "$petrel->{dir}/spool/todo" || !glob("$petrel->{dir}/spool/todo/*"), 'nothing is in the spool';

# --- No daemon: it is durable

($code, $said) = try('early@away.test');
is $code, 75, 'no daemon';
like $said, qr/\Apetrel test: no daemon runs \(.*\); ([0-9A-Z]{10}-[0-9A-Z]{8}) is safe in \Q$petrel->{dir}\E\/spool and will be sent when one starts: run `systemctl start petrel`, or `petrel run`\n\z/,
    'it says that the message is safe, and what to do';
$petrel->start;
my $first = Petrel::wait_for(sub { my ($m) = grep { "@{$_->{to}}" eq 'early@away.test' } Petrel::arrived({ dir => "$sink->{base}/1" }); return $m });
ok $first, 'the daemon sends it when it starts';

# --- Delivered

($code, $said) = try('bob@away.test', '--from', 'ann@petrel.test');
is $code, 0, 'delivered';
my $time = qr/\d\d:\d\d:\d\d\.\d{3}/;
like $said, qr/\Aqueued as ([0-9A-Z]{10}-[0-9A-Z]{8})\n  \d\d \w{3} $time  submitted by uid \d+, for 1 recipient\n +$time  <bob\@away\.test>: delivered to 127\.0\.0\.1\[127\.0\.0\.1\]:$sink->{port}: 250 .*\n +$time  ended after \d+ m?s\n/,
    'its events, as trace has them';
like $said, qr/^<bob\@away\.test>: handed to 127\.0\.0\.1\[127\.0\.0\.1\]:$sink->{port} at \d\d \w{3} \d{4} \d\d:\d\d:\d\d; whether it reaches the inbox is up to them\n\z/m, 'and what that means';
my ($came) = grep { "@{$_->{to}}" eq 'bob@away.test' } Petrel::arrived({ dir => "$sink->{base}/1" });
is $came->{from}, 'ann@petrel.test', 'its sender';
like $came->{content}, qr/^From: <ann\@petrel\.test>\r\nTo: <bob\@away\.test>\r\nSubject: Test of petrel\.test\r$/m, 'its header';
like $came->{content}, qr/^made by `petrel test` at \w{3}, \d+ \w{3} \d{4} [\d:]+ [-+]\d{4}\.\r$/m, 'time and host are in it';

my $me = getpwuid($>);
($code, $said) = try('bob@away.test');
is $code, 0, 'without a sender';
is +(grep { "@{$_->{to}}" eq 'bob@away.test' } Petrel::arrived({ dir => "$sink->{base}/1" }))[-1]{from}, "$me\@petrel.test", 'the user is it';
($code, $said) = try('bob@away.test', '--from', '<>');
is $code, 0, 'the null sender';
($code, $said) = try('anna@petrel.test', '-v');
is $code, 0, 'into a Maildir';
like $said, qr/\AFrom: <$me\@petrel\.test>\r?\n.*^anna\@petrel\.test.*maildir/ms, '-v: the message, and where it goes';
like $said, qr/^<anna\@petrel\.test>: delivered here at .*: delivered to maildir\n\z/m, 'it is here';

# --- Failed, waiting, held

($code, $said) = try('nobody@away.test');
is $code, 69, 'refused';
like $said, qr/<nobody\@away\.test>: bounced by \S+: 550 /, 'the reply';
like $said, qr/^It failed: .*run `petrel doctor`\n\z/m, 'and what to do';

($code, $said) = try('busy@away.test', '--for', '1s', '-v');
is $code, 75, 'it waits';
like $said, qr/<busy\@away\.test>: deferred by \S+: 451 /, 'why';
like $said, qr/^It still waits after 1 s:\n.*next attempt/ms, 'until when';
like $said, qr/^Run `petrel trace -f (\S+)` to follow it, `petrel queue rm \1` to give it up\n\z/m, 'and what to do';

($code, $said) = try('x@held.test');
is $code, 75, 'held, immediately';
like $said, qr/^It is held: say in `routes` where mail goes \(`petrel init --force` does\), then run `petrel queue release \S+`\n\z/m, 'what to do';

# --- Without a history; a user that may not ask

$petrel->configure(history_size => 0);
($code) = $petrel->run('reload');
is $code, 0, 'history off';
($code, $said) = try('bob@away.test', '--for', '20s');
is $code, 75, 'nobody knows';
like $said, qr/^It has left the queue, and history_size is 0: look for [0-9A-Z]{10}-[0-9A-Z]{8} in the log\n\z/m, 'it says where to look';

# The daemon goes while it is followed.
$petrel->configure(history_size => undef);
is +($petrel->run('reload'))[0], 0, 'history on';
my $out = "$petrel->{dir}/out";
my $pid = Petrel::spawn($out, $Petrel::binary, '-c', $petrel->conf, 'test', 'busy@away.test');
ok Petrel::wait_for(sub { Petrel::slurp($out) =~ /deferred/ }), 'it is followed';
$petrel->stop;
is Petrel::reap($pid) >> 8, 75, 'the daemon has gone';
like Petrel::slurp($out), qr/^The daemon has ended, or does not answer: run `petrel trace [0-9A-Z]{10}-[0-9A-Z]{8}` later\n\z/m, 'it says how to go on';
$petrel->start;

SKIP: {
    skip 'only root can become another user', 5 if $> != 0 || !defined(getpwnam('nobody'));
    skip 'setpriv is not installed', 5 if !Petrel::have('setpriv');
    chmod 0755, $petrel->{dir};
    ($code, $said) = Petrel::command('', 'setpriv', '--reuid', scalar(getpwnam 'nobody'), '--clear-groups', $Petrel::binary, '-c', $petrel->conf, 'test', 'other@away.test');
    skip "another user cannot run it: $said", 5 if $code == 127 || $said =~ /Permission denied\n\z/ && $said !~ /petrel test/;
    is $code, 77, 'another user may send, but not ask';
    like $said, qr/\Apetrel test: (\S+) was sent, but only root may ask what becomes of it: run `sudo petrel trace -f \1`\n\z/, 'it says how to go on';
    ok Petrel::wait_for(sub { grep { "@{$_->{to}}" eq 'other@away.test' } Petrel::arrived({ dir => "$sink->{base}/1" }) }), 'and it arrives';
    chown scalar(getpwnam 'daemon'), -1, "$petrel->{dir}/spool";
    ($code, $said) = Petrel::command('', 'setpriv', '--reuid', scalar(getpwnam 'nobody'), '--clear-groups', $Petrel::binary, '-c', $petrel->conf, 'test', 'other@away.test');
    chown 0, -1, "$petrel->{dir}/spool";
    is $code, 77, 'likewise of the daemon of another user';
    like $said, qr/ but only root and daemon may ask /, 'who is named';
}
$petrel->stop;
$sink->stop;
done_testing;
