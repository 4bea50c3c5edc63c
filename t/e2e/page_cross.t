#!/usr/bin/perl
# Pages of other origins in a real browser, whose user is logged in: they read nothing and change nothing, whichever way
# they ask, nor after a name was bound to the daemon's address.
use lib 't/e2e';
use E2E;
use PageBrowser;

plan skip_all => PageBrowser::missing() if PageBrowser::missing();

my $port = Petrel::free_port();
my $petrel = Petrel->new(http => "127.0.0.1:$port", routes => '* hold')->start;
like $petrel->send_mail('a@b.example', 'c@d.example', "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'a message';
my ($id) = ($petrel->run('queue', 'ls'))[1] =~ /\b([0-9A-Z]{10}-[0-9A-Z]{8})\b/;
ok $id, 'is in the queue';
PageBrowser::run(240, 80, {}, 'cross.mjs', $port, PageBrowser::key($petrel), $id);
my ($left) = map { decode_json($_) } split /\n/, ($petrel->run('queue', 'ls', '--json', $id))[1];
is $left->{queue_name}, 'hold', 'the message is where it was';
$petrel->stop;
done_testing;
