#!/usr/bin/perl
# MT-PRIORITY (RFC 6710): Python's smtplib asks for it, two Petrels carry it on, one of them over a crash; who is believed
# and who is not.
use lib 't/e2e';
use E2E;

plan skip_all => 'no python3' unless Petrel::have('python3');

my $sink = Petrel::sink();
my $back = Petrel->new(mt_priority => 'trusted', routes => "held.test hold\n* smtp://127.0.0.1:$sink->{port}")->start;
my $front = Petrel->new(mt_priority => 'trusted', routes => "* smtp://127.0.0.1:$back->{port}")->start;
my %stranger = (relay_from => '192.0.2.0/24', local_domains => 'petrel.test, there.test', routes => "* smtp://127.0.0.1:$sink->{port}");
my $careful = Petrel->new(%stranger, mt_priority => 'trusted')->start;
my $open = Petrel->new(%stranger, mt_priority => 'all')->start;
my $plain = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
my $python = <<'END';
import smtplib, sys
port, to, *options = sys.argv[1:]
c = smtplib.SMTP("127.0.0.1", int(port), timeout=30)
c.ehlo("client.test")
print("offered" if c.has_extn("mt-priority") else "not offered", repr(c.esmtp_features.get("mt-priority")))
code, text = c.mail("a@here.test", options)
print(code, text.decode())
if code == 250:
    c.rcpt(to)
    print(c.data("Subject: hi\r\n\r\nletter\r\n")[1].decode())
c.quit()
END
my $arrived = 0;

# Replies to smtplib: offered or not, to MAIL, and the id.
sub say_mail {
    my ($petrel, $to, @options) = @_;
    my ($code, $text) = Petrel::command('', 'python3', '-c', $python, $petrel->{port}, $to, @options);
    my ($offer, $reply, $queued) = split /\n/, $text;
    return ($offer, $reply, ($queued // '') =~ /queued as (\S+)/ ? $1 : '');
}
sub priorities { my $content = shift; my ($head) = $content =~ /\A(.*?\r?\n)\r?\n/s; $head =~ s/\r?\n\s+/ /g; return join ' ', map { /^Received:.*? PRIORITY (\S+); / ? $1 : '-' } grep { /^Received:/ } split /\r?\n/, $head }
sub listed { my ($petrel) = @_; my ($code, $text) = $petrel->run('queue', 'ls', '--json'); return map { decode_json($_) } split /\n/, $text }

# --- From a client through two hosts

for my $priority (4, -9, 0) {
    my ($offer, $reply) = say_mail($front, 'b@there.test', "MT-PRIORITY=$priority");
    is $offer, "offered ''", 'offered, without a profile' if $priority == 4;
    is $reply, '250 2.1.0 Ok', "$priority is taken";
    my $got = Petrel::wait_arrived($sink, ++$arrived);
    # Nothing is said of 0 to the next hop: it is what all mail has.
    is priorities($got->{content}), $priority ? "$priority $priority" : '- 0', "both hosts note $priority";
    unlike $got->{parameters} // '', qr/PRIORITY/i, 'a host that does not offer it is not told';
}
say_mail($front, 'b@there.test');
is priorities(Petrel::wait_arrived($sink, ++$arrived)->{content}), '- -', 'without it nothing is noted';

# --- It is durable

my ($offer, $reply, $id) = say_mail($front, 'b@held.test', 'MT-PRIORITY=7');
ok Petrel::wait_for(sub { grep { $_->{queue_name} eq 'hold' } listed($back) }), 'held at the second host';
is +(listed($back))[0]{mt_priority}, 7, 'queue ls --json tells it';
my $held = (listed($back))[0]{queue_id};
like +($back->run('queue', 'show', $held))[1], qr/^priority: 7$/m, 'so does queue show';
$back->kill9;
is +(listed($back))[0]{mt_priority}, 7, 'with no daemon, too';
$back->start;
is +(listed($back))[0]{mt_priority}, 7, 'and after a crash';
is +($back->run('queue', 'rm', $held))[0], 0, 'removed';

# --- Trusted clients

($offer, $reply) = say_mail($careful, 'b@there.test', 'MT-PRIORITY=9');
is $offer, "offered ''", 'offered to a stranger';
like $reply, qr/^250 2\.3\.6 0 \S/, 'who gets 0 and is told';
is priorities(Petrel::wait_arrived($sink, ++$arrived)->{content}), '0', 'which is noted';
is +(say_mail($careful, 'b@there.test', 'MT-PRIORITY=-2'))[1], '250 2.1.0 Ok', 'he may be modest';
is priorities(Petrel::wait_arrived($sink, ++$arrived)->{content}), '-2', 'and is believed';
is +(say_mail($open, 'b@there.test', 'MT-PRIORITY=9'))[1], '250 2.1.0 Ok', 'mt_priority = all believes everybody';
is priorities(Petrel::wait_arrived($sink, ++$arrived)->{content}), '9', 'in all';

# --- Off, and mistakes

is_deeply [say_mail($plain, 'b@there.test', 'MT-PRIORITY=1')], ['not offered None', '555 5.5.4 MT-PRIORITY is not offered', ''], 'off by default';
like +(say_mail($front, 'b@there.test', "MT-PRIORITY=$_"))[1], qr/^501 5\.5\.4 /, "$_ is bad" for qw(10 +1 -0 x);
$plain->configure(mt_priority => 'maybe');
my ($code, $text) = $plain->run('check');
is $code, 78, 'another word is a mistake';
like $text, qr/mt_priority: 'maybe': say off, trusted or all/, 'that is explained';
$plain->configure(mt_priority => 'trusted');
kill 'HUP', $plain->{pid};
ok Petrel::wait_for(sub { (say_mail($plain, 'b@there.test', 'MT-PRIORITY=x'))[0] =~ /^offered/ }), 'a reload turns it on';

# --- sendmail(1) does not read the header; -bs is one of us

($code) = Petrel::command("MT-Priority: 9\nSubject: hi\n\nletter\n", $Petrel::binary, '-c', $back->conf, 'sendmail', '-f', 'a@here.test', 'b@there.test');
is $code, 0, 'sendmail with a header MT-Priority';
my $got = Petrel::wait_arrived($sink, ++$arrived);
like $got->{content}, qr/^MT-Priority: 9\r?$/m, 'which stays';
is priorities($got->{content}) =~ tr/-//cdr, '-', 'and means nothing';
my $session = join "\r\n", 'EHLO me', 'MAIL FROM:<a@here.test> MT-PRIORITY=2', 'RCPT TO:<b@there.test>', 'DATA', "Subject: hi\r\n\r\nx", '.', 'QUIT', '';
($code, $text) = Petrel::command($session, $Petrel::binary, '-c', $back->conf, 'sendmail', '-bs');
like $text, qr/^250-MT-PRIORITY\r?$/m, 'sendmail -bs offers it';
is priorities(Petrel::wait_arrived($sink, ++$arrived)->{content}), '2', 'and grants it';
ok $_->wait_empty, 'nothing is left' for $front, $back, $careful, $open;
done_testing;
