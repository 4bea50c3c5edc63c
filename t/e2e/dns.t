#!/usr/bin/perl
# Where mail goes by DNS: a real name server, sinks on several addresses, and for every verdict the log
# line and the bounce.
use lib 't/e2e';
use E2E;
use Nsd;

plan skip_all => 'no nsd' unless Nsd->available;

my $scratch = tempdir('dns-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $zones = "$Petrel::root/t/e2e/zones";
my %served = ('mail.test' => "$zones/mail.test.zone", 'broken.test' => "$scratch/no-such-file");
my $nsd = Nsd->start($scratch, %served);

# All hosts of the zone listen on one port, as on 25.
my %sink;
sub open_sinks {
    my $port = shift;
    %sink = ();
    for my $address ('127.0.0.21', '127.0.0.22', '127.0.0.25', '[::1]') {
        my @options = $address eq '127.0.0.25' ? qw(--fail banner:421) : ();
        my $sink = eval { Sink->start('--listen', "$address:$port", @options) };
        next if !$sink && $address eq '[::1]';
        if (!$sink) { $_->stop for values %sink; return 0 }
        $sink{$address} = $sink;
    }
    return $port;
}
my $port;
for (1 .. 10) { last if $port = open_sinks(Petrel::free_port()) }
die 'no port that is free everywhere' unless $port;
my ($a1, $a2) = @sink{qw(127.0.0.21 127.0.0.22)};

my $bounces = Sink->start;
my $petrel = Petrel->new(
    dns_servers => "127.0.0.1:$nsd->{port}",
    smtp_port => $port,
    smtp_bind => '127.0.0.1, ::1', # so that MX may lead to loopback
    routes => "sender.test smtp://127.0.0.1:$bounces->{port}\n.equal.mail.test mx?reuse=1\n* mx",
    smtp_connection_cache_time_limit => '0s',
);
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.30:$port");
$petrel->start;

# Sends from NAME@sender.test to user@DOMAIN; returns the queue id.
sub mail {
    my ($name, $domain) = @_;
    my $reply = $petrel->send_mail("$name\@sender.test", "user\@$domain", "Subject: $name\n\nbody of $name\n");
    return $reply =~ /queued as (\S+)/ ? $1 : die "not taken: $reply";
}

# The log line about an outcome of a message, when it comes.
sub outcome {
    my ($id, $status) = @_;
    $petrel->wait_log(qr/ $id: to=.*, status=$status /);
    my ($line) = $petrel->log =~ /^(.* $id: to=.*, status=$status .*)$/m;
    return $line // 'no such line';
}

# Goes to this host, and only there, once.
sub arrives {
    my ($name, $domain, $sink, $host) = @_;
    my $id = mail($name, $domain);
    like outcome($id, 'sent'), qr/to=<user\@\Q$domain\E>, relay=\Q$host\E:$port, .*dsn=2\.0\.0, status=sent/, "$name: sent to $host";
    is scalar($sink->for_address("user\@$domain")), 1, "$name: it is there, once";
    is scalar(map { $_->for_address("user\@$domain") } values %sink), 1, "$name: and nowhere else";
    return;
}

# Comes back to the sender with this status.
sub comes_back {
    my ($name, $domain, $dsn, $words) = @_;
    my $id = mail($name, $domain);
    like outcome($id, 'bounced'), qr/to=<user\@\Q$domain\E>, relay=none, .*dsn=\Q$dsn\E, status=bounced \(.*$words/, "$name: bounced with $dsn";
    my $bounce = $bounces->wait_for("$name\@sender.test");
    ok $bounce, "$name: the sender is told" or return;
    is $bounce->{from}, '', "$name: from nobody";
    like $bounce->{data}, qr/^Status: \Q$dsn\E\r$/m, "$name: with this status";
    like $bounce->{data}, qr/^Final-Recipient: rfc822; ?user\@\Q$domain\E\r$/m, "$name: for this recipient";
    like $bounce->{data}, qr/^Action: failed\r$/m, "$name: as failed";
    like $bounce->{data}, qr/^Subject: $name\r$/m, "$name: and about this message";
    is scalar(map { $_->for_address("user\@$domain") } values %sink), 0, "$name: it went nowhere";
    return;
}

# Stays, for this reason; returns its id.
sub waits {
    my ($name, $domain, $dsn, $words) = @_;
    my $id = mail($name, $domain);
    like outcome($id, 'deferred'), qr/to=<user\@\Q$domain\E>, .*dsn=\Q$dsn\E, status=deferred \(.*$words/, "$name: deferred with $dsn";
    my ($code, $listed) = $petrel->run(qw(queue ls --json));
    like $listed, qr/"$id"/, "$name: it is in the queue";
    is scalar(map { $_->for_address("user\@$domain") } values %sink), 0, "$name: it went nowhere";
    return $id;
}

# --- Where it goes

arrives('order', 'order.mail.test', $a1, 'a1.mail.test[127.0.0.21]');
arrives('next', 'next.mail.test', $a2, 'a2.mail.test[127.0.0.22]');
arrives('unfriendly', 'unfriendly.mail.test', $a2, 'a2.mail.test[127.0.0.22]');
cmp_ok $sink{'127.0.0.25'}->count('connections'), '>=', 1, 'unfriendly: the best one was tried first';
arrives('implicit', 'a1.mail.test', $a1, 'a1.mail.test[127.0.0.21]');
arrives('twice', 'twice.mail.test', $a2, 'twice.mail.test[127.0.0.22]');
arrives('cnamehost', 'cnamehost.mail.test', $a2, 'alias.mail.test[127.0.0.22]');
arrives('cnamedomain', 'cnamedomain.mail.test', $a1, 'a1.mail.test[127.0.0.21]');
arrives('onehost', 'onehost.mail.test', $a2, 'a2.mail.test[127.0.0.22]');
arrives('backupgood', 'backupgood.mail.test', $a1, 'a1.mail.test[127.0.0.21]');
arrives('literal', '[127.0.0.22]', $a2, '127.0.0.22[127.0.0.22]');
SKIP: {
    my $six = $sink{'[::1]'} or skip 'no ::1', 6;
    arrives('v6', 'v6.mail.test', $six, 'six.mail.test[::1]');
    arrives('implicit6', 'six.mail.test', $six, 'six.mail.test[::1]');
}

# Equal preferences: each domain is another draw, so a reused connection changes nothing.
my @equal = map { "d$_.equal.mail.test" } 1 .. 20;
my %id = map { $_ => mail('equal', $_) } @equal;
like outcome($id{$_}, 'sent'), qr/relay=a[12]\.mail\.test\[/, "equal: $_" for @equal;
my ($first, $second) = map { my $sink = $_; scalar grep { $sink->for_address("user\@$_") } @equal } $a1, $a2;
is $first + $second, 20, 'equal: each went to one of them';
ok $first > 0 && $second > 0, "equal: both got some ($first and $second)";

# --- Answers

comes_back('null', 'null.mail.test', '5.1.10', 'does not accept mail');
comes_back('nowhere', 'nowhere.mail.test', '5.1.2', 'not found');
comes_back('dangling', 'dangling.mail.test', '5.1.2', 'dangling\.mail\.test is an alias of nosuch\.mail\.test, which does not exist \(NXDOMAIN\)');
comes_back('nohosts', 'nohosts.mail.test', '5.4.4', 'no mail host');
comes_back('noaddress', 'noaddress.mail.test', '5.4.4', 'no mail host');
comes_back('textonly', 'nothing.mail.test', '5.4.4', 'no mail host');
comes_back('loop', 'loop.mail.test', '5.4.6', 'loops back to myself');
comes_back('loopequal', 'loopequal.mail.test', '5.4.6', 'loops back to myself');

# --- Waiting mail

waits('servfail', 'broken.test', '4.4.3', 'look up');
waits('servfail2', 'host.broken.test', '4.4.3', 'look up');
waits('backup', 'backup.mail.test', '4.4.1', '');
my $id = waits('alldead', 'alldead.mail.test', '4.4.1', 'refused');
my $late = Sink->start('--listen', "127.0.0.24:$port");
$sink{'127.0.0.24'} = $late;
my ($code, $said) = $petrel->run('queue', 'retry', $id);
is $code, 0, 'alldead: it may be retried' or diag $said;
like outcome($id, 'sent'), qr/relay=late\.mail\.test\[127\.0\.0\.24\]:$port, .*dsn=2\.0\.0/, 'alldead: and is sent when the host is back';
is scalar($late->for_address('user@alldead.mail.test')), 1, 'alldead: it is there, once';
like((grep { /^$id / } split /\n/, ($petrel->run(qw(queue ls)))[1])[0] // 'gone', qr/^gone$/, 'alldead: and out of the queue');
is $petrel->stop, 0, 'ends well';

# --- The name server itself goes away and comes back

$petrel->configure(minimal_backoff_time => '1s', maximal_backoff_time => '2s');
$nsd->stop;
$petrel->start;
$id = waits('nobody-answers', 'd21.equal.mail.test', '4.4.3', 'look up');
$nsd->again;
like outcome($id, 'sent'), qr/dsn=2\.0\.0/, 'no name server: sent when it is back';
is scalar(map { $_->for_address('user@d21.equal.mail.test') } $a1, $a2), 1, 'no name server: it is there, once';
is $petrel->stop, 0, 'ends well again';
done_testing;
