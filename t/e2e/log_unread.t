#!/usr/bin/perl
# Standard error is a pipe, or a socket as journald's, that nobody reads: mail goes on, and what was lost is told.
use lib 't/e2e';
use E2E;
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);

my @daemons;

# The daemon with its standard error on a descriptor that somebody else has, too.
sub start_on {
    my ($petrel, $err) = @_;
    my $pid = fork // die;
    if ($pid == 0) {
        $SIG{PIPE} = 'DEFAULT';
        open STDIN, '<', '/dev/null';
        open STDERR, '>&', $err or die;
        exec { $Petrel::binary } $Petrel::binary, '-c', $petrel->conf, 'run' or POSIX::_exit(127);
    }
    push @daemons, $pid;
    return $pid;
}
END { my $code = $?; for (@daemons) { kill 'KILL', $_; waitpid $_, 0 } $? = $code }

sub is_up { my $client = Client->connect($_[0]{port}) or return 0; return ($client->reply(5) =~ /^220/) }

for my $kind (qw(pipe socket)) {
    my ($reader, $writer);
    $kind eq 'pipe' ? pipe($reader, $writer) : socketpair($reader, $writer, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
    my $petrel = Petrel->new(routes => '* hold', log_level => 'debug');
    my $pid = start_on($petrel, $writer);
    ok Petrel::wait_for(sub { is_up($petrel) }), "$kind: the daemon is there";

    # Each pair is two lines of the log, and there is a megabyte for them.
    my $talker = Client->greeted($petrel->{port});
    for my $round (1 .. 60) {
        my $pairs = 400;
        $talker->put("MAIL FROM:<a\@b.test>\r\nRSET\r\n" x $pairs);
        my $answers = 0;
        $answers += $talker->reply =~ /^250/ for 1 .. 2 * $pairs;
        is $answers, 2 * $pairs, "$kind: the talker has all answers" if $round % 20 == 0 || $answers != 2 * $pairs;
    }
    my $new = Client->greeted($petrel->{port});
    ok $new, "$kind: a new client is greeted";
    like $new->send(from => 'a@b.test', to => 'c@d.test', data => "Subject: x\r\n\r\nx\r\n"), qr/^250 2\.0\.0/, "$kind: and served";
    my $flags = fcntl $writer, 3, 0; # F_GETFL
    is $flags & 04000, 0, "$kind: others find it as it was"; # O_NONBLOCK

    close $writer;
    my ($log, $wait) = ('', IO::Select->new($reader));
    $log =~ /log lines lost/ or sysread $reader, $log, 65536, length $log
        while $log !~ /log lines lost/ && $wait->can_read($Petrel::patience);
    my ($lost) = $log =~ /main: warning: (\d+) log lines lost: standard error: not read$/m;
    ok $lost, "$kind: what was lost is told";
    my $lines = () = $log =~ /\n/g;
    cmp_ok $lines, '>', 5000, "$kind: what there was room for is there ($lines lines, $lost lost)";
    kill 'TERM', $pid;
    1 while $wait->can_read($Petrel::patience) && sysread $reader, $log, 65536, length $log;
    like $log, qr/main: stopped\n\z/, "$kind: the last line is";
    is waitpid($pid, 0), $pid, "$kind: it ends";
    is $?, 0, "$kind: well";
    @daemons = ();
}

# The end waits for nobody who does not read, either.
pipe(my $reader, my $writer) or die;
my $petrel = Petrel->new(routes => '* hold', log_level => 'debug');
my $pid = start_on($petrel, $writer);
ok Petrel::wait_for(sub { is_up($petrel) }), 'once more';
my $talker = Client->greeted($petrel->{port});
$talker->put("MAIL FROM:<a\@b.test>\r\nRSET\r\n" x 1000);
$talker->reply for 1 .. 2000;
kill 'TERM', $pid;
ok Petrel::wait_for(sub { waitpid($pid, POSIX::WNOHANG()) == $pid }), 'a full pipe keeps no daemon from its end';
is $?, 0, 'which is a good one';
@daemons = ();

done_testing;
