#!/usr/bin/perl
# A host was away and says ETRN when it is back: its mail comes at once, though its destination counts as dead and the
# next attempt is minutes away; nobody else's does. By hand, by Python's smtplib, and sendmail -qR.
use lib 't/e2e';
use E2E;

plan skip_all => 'no python3' unless Petrel::have('python3');

# Nobody listens there, for now.
my %port = map { $_ => Petrel::free_port() } qw(away sub wide other);
my $petrel = Petrel->new(
    hostname => 'petrel.test', local_domains => "petrel.test, away.test, hold.test, box.test\nother.test",
    routes => "away.test smtp://127.0.0.1:$port{away}\n.away.test smtp://127.0.0.1:$port{sub}\nwide.test smtp://127.0.0.1:$port{wide}\n"
        . ".wide.test smtp://127.0.0.1:$port{wide}\nhold.test hold\nbox.test maildir:/nowhere/%u\n* smtp://127.0.0.1:$port{other}",
    etrn => 'relay, wide.test', default_destination_adaptive => 'no', minimal_backoff_time => '10m', maximal_backoff_time => '20m')->start;
my $body = "Subject: hi\n\nletter";
my @python = ('python3', '-c', <<'END', $petrel->{port});
import smtplib, sys
c = smtplib.SMTP("127.0.0.1", int(sys.argv[1]), timeout=30)
c.ehlo("client.test")
print("offered" if c.has_extn("etrn") else "not offered")
for node in sys.argv[2:]:
    code, text = c.docmd("ETRN", node)
    print(code, text.decode())
print(c.quit()[0])
END

sub send_one { my $to = shift; return $petrel->send_mail('a@here.test', $to, $body) =~ /queued as (\S+)/ ? $1 : die "not taken: $to" }
sub say_etrn { my @said = $petrel->dialogue('EHLO client.test', map { "ETRN $_" } @_); return map { s/\r\n//r } @said[2 .. $#said] }
sub deferred { my $id = shift; return $petrel->wait_log(qr/ $id: to=.*status=deferred/) }
sub waits { my $domain = shift; my ($code, $text) = $petrel->run('queue', 'ls', '--json', '--to', $domain); return scalar(() = $text =~ /\n/g) }

# --- Clients that may, and nodes

my @hello = $petrel->dialogue('EHLO client.test', 'HELP');
like $hello[1], qr/^250-ETRN\r$/m, 'it is offered';
like $hello[2], qr/ ETRN /, 'and known to HELP';
like +($petrel->dialogue('ETRN away.test'))[1], qr/^503 5\.5\.1 /, 'not before EHLO';
like +($petrel->dialogue('EHLO client.test', 'MAIL FROM:<a@here.test>', 'ETRN away.test'))[3], qr/^503 5\.5\.1 /, 'not within a transaction';
for my $node (qw(hold.test box.test gmail.test sub.wide.test @test [127.0.0.1]), '#away.test') {
    is +(say_etrn($node))[0] =~ s/:.*//r, "459 4.7.1 Node $node not allowed", "not for $node";
}
like $_, qr/^501 5\.5\.4 /, 'bad syntax' for say_etrn('', 'a@away.test', 'a b', 'away..test', '@');

# --- It works

my @to = ('a@away.test', 'b@away.test', 'c@sub.away.test', 'd@wide.test', 'e@deep.sub.wide.test', 'f@elsewhere.test');
my %id = map { $_ => send_one($_) } @to;
ok deferred($id{$_}), "$_ waits" for @to;
my $away = Sink->start('--listen', "127.0.0.1:$port{away}");
my $wide = Sink->start('--listen', "127.0.0.1:$port{wide}");
my $sub = Sink->start('--listen', "127.0.0.1:$port{sub}"); # a site of its own: one that lives gets all its mail
my $other = Sink->start('--listen', "127.0.0.1:$port{other}");
is waits('away.test'), 2, 'nothing moves by itself';

my ($code, $text) = Petrel::command('', @python, 'AWAY.test', 'away.test');
is $code, 0, 'a client of Python';
is $text, "offered\n250 2.0.0 OK, queuing for node away.test started\n250 2.0.0 OK, queuing for node away.test has started already\n221\n", 'hears';
ok $away->wait_for("$_\@away.test"), "$_ arrives" for qw(a b);
ok $petrel->wait_log(qr/node away\.test: queuing is started for client \[127\.0\.0\.1\]/), 'the log has its start';
ok $petrel->wait_log(qr/node away\.test: done, 2 messages are due now/), 'and its end';
ok Petrel::wait_for(sub { 1 == (() = $petrel->log =~ /node away\.test: queuing is started/g) }), 'it was started once';
is waits($_), 1, "$_ still waits" for qw(sub.away.test wide.test deep.sub.wide.test elsewhere.test);
is scalar($other->messages) + scalar($wide->messages), 0, 'and was not tried';

like +(say_etrn('@wide.test'))[0], qr/^250 2\.0\.0 OK, queuing for node \@wide\.test started$/, 'with sub-domains';
ok $wide->wait_for($_), "$_ arrives" for qw(d@wide.test e@deep.sub.wide.test);
ok $petrel->wait_log(qr/node \@wide\.test: done, 2 messages are due now/), 'both are counted';
is waits($_), 1, "$_ still waits" for qw(sub.away.test elsewhere.test);
like +(say_etrn('other.test'))[0], qr/^250 /, 'nothing waits: it does no harm';
ok $petrel->wait_log(qr/node other\.test: done, 0 messages are due now/), 'and says so';

# --- The operator's

sub sendmail { return Petrel::command('', 'sh', '-c', 'exec "$@"', 'sh', $Petrel::binary, '-c', $petrel->conf, 'sendmail', @_) }
is_deeply [sendmail('-qRsub.away.test')], [0, ''], 'sendmail -qRsite';
ok $sub->wait_for('c@sub.away.test'), 'is delivered';
is waits('elsewhere.test'), 1, 'the other waits';
is_deeply [sendmail($_)], [0, ''], "sendmail $_: nothing matches" for qw(-qRsub.away.test -qRnowhere.test -qSb@here.test);
is_deeply [sendmail("-v", "-qI$id{'f@elsewhere.test'}")], [0, "$id{'f@elsewhere.test'} is due now\n"], 'sendmail -v -qIid';
ok $other->wait_for('f@elsewhere.test'), 'is delivered';
is +(sendmail($_))[0], 64, "sendmail $_" for qw(-qR -qS -qI -qIx -qGx);
ok $petrel->wait_empty, 'all is delivered';

# --- The setting

$petrel->configure(etrn => 'off');
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'a reload';
unlike +($petrel->dialogue('EHLO client.test'))[1], qr/ETRN/, 'off: it is not offered';
like +(say_etrn('away.test'))[0], qr/^502 5\.5\.1 /, 'nor known';
$petrel->configure(etrn => 'relay, x..y');
is_deeply [$petrel->run('check')], [78, "$petrel->{dir}/petrel.conf:2: etrn: 'x..y': not a domain; use relay, off, domain or .domain (subdomains)\n"], 'a mistake';
is $petrel->stop, 0, 'it stops in good order';
done_testing;
