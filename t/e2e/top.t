#!/usr/bin/perl
# petrel top: on a terminal, whose settings come back at any end, and without one.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Petrel;
use Test::More;

my $dead = Petrel::free_port();
my $petrel = Petrel->new(routes => join("\n", map { "d$_.test smtp://127.0.0.$_:$dead" } 1 .. 25))->start;

# Events on a terminal; each step is a test.
sub on_terminal {
    my ($how, $arguments, @steps) = @_;
    my @command = ('python3', "$FindBin::Bin/terminal.py", $Petrel::binary, '-c', "$petrel->{dir}/petrel.conf", 'top', @$arguments);
    my ($code, $said) = Petrel::command(join('', map { "$_\n" } @steps), @command);
    my @lines = split /\n/, $said;
    is shift @lines, "ok $_", "$how: $_" for @steps;
    return @lines;
}
sub hex_of { return join ' ', map { sprintf '%02x', ord } split //, shift }

# --- Without a terminal: one picture

my ($code, $text) = $petrel->run('top', '-d', '100ms');
is $code, 0, 'top';
like $text, qr/\Apetrel \d\S+, up \d+ s; accepts mail\n/, 'the daemon';
like $text, qr/^queue      0 incoming, 0 active, 0 deferred, 0 hold, 0 corrupt, 0 defrag$/m, 'its queue';
like $text, qr/^a second   in 0\.0 \(last minute 0\.0\), out 0\.0 \(0\.0\)$/m, 'rates';
unlike $text, qr/\x1b/, 'and no escapes';
($code, $text) = $petrel->run('top', '-d', '100ms', '-n', '3');
is scalar(() = $text =~ /^petrel /mg), 3, '-n 3: three of them';

$petrel->send_mail('me@here.test', [map { "x\@d$_.test" } 1 .. 25], "Subject: hi\n\nletter");
ok $petrel->wait_log(qr/ to=<x\@d$_\.test>.*status=deferred/), "d$_ is deferred" for 1, 25;
($code, $text) = $petrel->run('top', '-d', '100ms');
like $text, qr/^queue      0 incoming, 0 active, 1 deferred,/m, 'a message';
is scalar(() = $text =~ /^smtp:\[127\.0\.0\.\d+\]:$dead +\d.* dead/mg), 25, 'all sites';

# --- On a terminal

my @end = on_terminal('q', ['-d', '200ms'], "expect \x1b[?1049h", 'expect petrel ', 'expect (order: mail)', 'send ' . hex_of('s'), 'expect (order: sessions)',
    'send ' . hex_of('s'), 'expect (order: name)', 'expect smtp:[127.0.0.10]', 'send ' . hex_of("\e[6~"), 'expect smtp:[127.0.0.18]', 'send ' . hex_of('p'), 'expect ; paused', 'send ' . hex_of('p'),
    'expect accepts mail', 'resize 60', 'expect smtp:[127.0.0.9]', 'send ' . hex_of('q'));
is_deeply \@end, ['exit 0', 'restored'], 'q ends it, and the terminal is as before';
is_deeply [on_terminal("SIG$_", [], 'expect (order: mail)', "signal $_")], ['exit 0', 'restored'], "so does SIG$_" for qw(TERM INT HUP);
is_deeply [on_terminal('Ctrl-C', [], 'expect (order: mail)', 'send 03')], ['exit 0', 'restored'], 'and Ctrl-C';
is_deeply [on_terminal('-n 2', ['-n', '2', '-d', '100ms'], 'expect (order: mail)', 'expect (order: mail)')], ['exit 0', 'restored'], 'and the last round';

# A picture fits into a terminal, which scrolls otherwise.
my ($rows) = on_terminal('small', ['-d', '100ms', '-n', '2'], 'resize 5', 'expect a');
is $rows, 'exit 0', 'a terminal of five lines';

# --- The daemon goes and comes

is_deeply [on_terminal('the daemon ends', ['-d', '100ms'], 'expect accepts mail', "stop $petrel->{pid}", 'expect as it was:  no daemon answers: ', 'send ' . hex_of('q'))],
    ['exit 0', 'restored'], 'the last picture stays, and says so';
is_deeply [$petrel->run('top')]->[0], 69, 'no daemon: exit code 69';
done_testing;
