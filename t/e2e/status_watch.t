#!/usr/bin/perl
# petrel status --watch: the text of `petrel status` each second, on a terminal over the one before, and without one.
use lib 't/e2e';
use E2E;
use FindBin;

my $dead = Petrel::free_port();
my $petrel = Petrel->new(routes => join("\n", map { "d$_.test smtp://127.0.0.$_:$dead" } 1 .. 25))->start;

# Events on a terminal; each step is a test.
sub on_terminal {
    my ($how, $arguments, @steps) = @_;
    my @command = ('python3', "$FindBin::Bin/terminal.py", $Petrel::binary, '-c', "$petrel->{dir}/petrel.conf", 'status', '--watch', @$arguments);
    my ($code, $said) = Petrel::command(join('', map { "$_\n" } @steps), @command);
    my @lines = split /\n/, $said;
    is shift @lines, "ok $_", "$how: $_" for @steps;
    return @lines;
}

# --- Without a terminal

my $log = "$petrel->{dir}/watched";
my $pid = Petrel::spawn($log, $Petrel::binary, '-c', $petrel->conf, 'status', '--watch');
ok Petrel::wait_for(sub { Petrel::slurp($log) =~ /^petrel .*^sites .*\n\n^petrel .*^sites /ms }), 'twice, and an empty line between';
kill 'TERM', $pid;
Petrel::reap($pid, 0, 60);
unlike Petrel::slurp($log), qr/\x1b/, 'without escapes';
is +($petrel->run('status', '--watch', '--json'))[0], 64, 'not with --json';

# --- On a terminal

$petrel->send_mail('me@here.test', [map { "x\@d$_.test" } 1 .. 25], "Subject: hi\n\nletter");
ok $petrel->wait_log(qr/ to=<x\@d$_\.test>.*status=deferred/), "d$_ is deferred" for 1, 25;
my @end = on_terminal('drawn anew', [], "expect \x1b[H", 'expect accepting  yes', "expect \x1b[H", 'expect accepting  yes', 'signal INT');
is_deeply \@end, ['signal 2', 'restored'], 'until Ctrl-C';
@end = on_terminal('a small terminal', [], 'resize 5', 'picture 4', 'resize 4', 'picture 3', 'signal INT');
is $end[0], 'signal 2', 'the first lines, as many as fit';
@end = on_terminal('sites', ['--sites'], 'resize 70', 'expect smtp:[127.0.0.9]', 'expect accepting', 'expect smtp:[127.0.0.9]', 'signal INT');
is $end[0], 'signal 2', 'all sites, again and again';

# --- The daemon goes and comes

@end = on_terminal('the daemon ends', [], 'expect accepting  yes', "stop $petrel->{pid}", "expect \x1b[H\x1b[?7lpetrel status: ", 'signal INT');
is $end[0], 'signal 2', 'it is asked again';
is +($petrel->run('status', '--watch'))[0], 69, 'no daemon at first: exit code 69';
done_testing;
