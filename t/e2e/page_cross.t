#!/usr/bin/perl
# Pages of other origins in a real browser, whose user is logged in: they read nothing and change nothing, whichever way
# they ask, nor after a name was bound to the daemon's address.
use strict;
use warnings;
use FindBin;
use IO::Socket::UNIX;
use JSON::PP qw(decode_json);
use Test::More;
use lib $FindBin::Bin;
use Petrel;

my ($chromium) = grep { defined } map { Petrel::have($_) } qw(chromium chromium-browser);
plan skip_all => 'chromium is not installed' unless $chromium;
plan skip_all => 'node is not installed' unless Petrel::have('node');
plan skip_all => 'make deps-page has not been run' unless -d "$FindBin::Bin/page/node_modules/playwright-core";

my $port = Petrel::free_port();
my $petrel = Petrel->new(http => "127.0.0.1:$port", routes => '* hold')->start;
like $petrel->send_mail('a@b.example', 'c@d.example', "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'a message';
my ($id) = ($petrel->run('queue', 'ls'))[1] =~ /\b([0-9A-Z]{10}-[0-9A-Z]{8})\b/;
ok $id, 'is in the queue';
my $control = IO::Socket::UNIX->new(Peer => "$petrel->{dir}/spool/control") or die "control: $!";
print $control qq({"command":"page"}\n);
my $key = decode_json(scalar <$control>)->{key};

local $ENV{CHROMIUM} = $chromium;
my $checks = 0;
my $pid = open(my $said, '-|', Petrel::have('node'), "$FindBin::Bin/page/cross.mjs", $port, $key, $id) or die "node: $!";
local $SIG{ALRM} = sub { kill 'KILL', $pid };
alarm 240;
while (my $line = <$said>) {
    chomp $line;
    if ($line =~ /^(ok|not ok) (.*)/) { $checks++; ok $1 eq 'ok', $2 }
    else { diag $line }
}
alarm 0;
ok close($said), 'the browser came to its end';
cmp_ok $checks, '>=', 80, 'and tried everything';
my ($left) = map { decode_json($_) } split /\n/, ($petrel->run('queue', 'ls', '--json', $id))[1];
is $left->{queue_name}, 'hold', 'the message is where it was';
$petrel->stop;
done_testing;
