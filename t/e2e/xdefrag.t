#!/usr/bin/perl
# Fragments that another of our hosts passes on with XDEFRAG, said by hand: who may, what is kept of them, what is refused.
use lib 't/e2e';
use E2E;

my @bodies = ("Subject: whole\r\nMIME-Version: 1.0\r\n\r\nfirst\r\n", "second\r\n");
my $whole = "From: a\@x.test\r\nSubject: whole\r\nMIME-Version: 1.0\r\n\r\nfirst\r\nsecond\r\n";

# One of the two fragments of an original.
sub fragment {
    my ($id, $number) = @_;
    return "From: a\@x.test\r\nSubject: part $number\r\nContent-Type: message/partial; id=\"$id\"; number=$number; total=2\r\n\r\n"
        . $bodies[ $number - 1 ];
}
sub key { my $byte = shift; return sprintf('%02x', $byte) x 32 }
sub mark { my ($byte, $age) = @_; return 'XDEFRAG=' . key($byte) . ';0;' . (time - ($age // 5)) }
# As a peer says it; '' of what it answered last.
sub pass_on {
    my ($p, $mark, $id, $number, %o) = @_;
    my $client = Client->greeted($p->{port}, LocalAddr => $o{from} // '127.0.0.1') or return 'not greeted';
    my $reply = $client->send(from => 'a@x.test', to => $o{to} // '@one.test:b@y.test', mail_parameters => $mark, data => fragment($id, $number));
    $client->quit;
    return $reply;
}
sub body_of { my $content = shift; $content = Petrel::untraced($content) while $content =~ /\AReceived: /; return $content }

my $sink = Petrel::sink();
my $routes = "y.test smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d\n* smtp://127.0.0.1:$sink->{port}";
my $p = Petrel->new(routes => $routes, relay_from => '', defrag_host => 'One.test', defrag_peers => 'two.test=127.0.0.1:9',
    client_message_rate => '1/h')->start;

# Clients that see it.
my $client = Client->connect($p->{port});
$client->reply;
like($client->say('EHLO two.test'), qr/^250-XDEFRAG\r$/m, 'it is offered to one of our hosts');
$client->quit;
$client = Client->connect($p->{port}, LocalAddr => '127.0.0.2');
$client->reply;
unlike($client->say('EHLO two.test'), qr/XDEFRAG/, 'and to no other');
$client->quit;
like(pass_on($p, mark(1), 'stranger@x', 1, from => '127.0.0.2'), qr/^555 5\.5\.4 /, 'who may not say it');
like(pass_on($p, '', 'plain@x', 1), qr/^554 5\.7\.1 /, 'nor relay without it');

# The key is that of the mark, for any header of the fragment; a crash does not change that.
like(pass_on($p, mark(1), 'a@x', 1), qr/^250 /, 'the first');
like(pass_on($p, mark(2), 'a@x', 2), qr/^250 /, 'of another set');
ok($p->wait_log(qr/number=2,.* have=1, status=waiting/), 'both wait');
$p->kill9;
$p->start;
like(pass_on($p, mark(1), 'a@x', 2), qr/^250 /, 'the second');
my $joined = Petrel::wait_arrived($sink, 1);
is(body_of($joined->{content}), $whole, 'is joined with the first');
is_deeply($joined->{to}, ['b@y.test'], 'for whom it is, without a route');
is($p->queued, 1, 'the other waits');

# Half of four days is over: it goes on, and does not wait anew.
like(pass_on($p, mark(3, 3 * 86400), 'old@x', 1), qr/^250 /, 'one that has waited elsewhere');
like(Petrel::wait_arrived($sink, 2)->{content}, qr/^Subject: part 1\r$/m, 'goes on');

# A refused fragment stays with the other host.
like(pass_on($p, mark(4), 'b@x', 1, to => 'b@y.test'), qr/^553 5\.1\.3 /, 'no route');
like(pass_on($p, mark(4), 'b@x', 1, to => '@two.test:b@y.test'), qr/^553 5\.1\.3 /, 'the route of another');
like(pass_on($p, 'XDEFRAG=' . key(4) . ';7;1', 'b@x', 1), qr/^501 5\.5\.4 /, 'a bad mark');
is($p->queued, 1, 'nothing of them is here');
is($p->stop, 0, 'a clean end');
done_testing();
