#!/usr/bin/perl
# Sockets that a service manager passes: fd:NAME in `listen` and `http`. Restarts under load refuse no connection. ROUNDS=500: the long form.
use lib 't/e2e';
use E2E;
use Fcntl qw(F_DUPFD);
use IO::Socket::IP;
use Socket qw(IPPROTO_IPV6 IPV6_V6ONLY);

my $scratch = tempdir('passed-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", hostname => 'petrel.test', relay_from => '127.0.0.0/8, ::1');

sub tcp { my $host = shift // '127.0.0.1'; return IO::Socket::IP->new(LocalHost => $host, LocalPort => 0, Listen => 100, Type => Socket::SOCK_STREAM, @_) // die "no socket: $@" }

# Starts the daemon as a service manager does: [NAME, SOCKET]... become descriptors 3, 4, ... Returns its pid.
sub launch {
    my ($environment, @sockets) = @_;
    my $pid = fork // die;
    return $pid if $pid;
    # Perl would note a signal for its handler, and exec would forget it.
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    open STDIN, '<', '/dev/null';
    open STDOUT, '>>', $petrel->{log} or POSIX::_exit(126);
    open STDERR, '>&', \*STDOUT;
    my @high = map { fcntl($_->[1], F_DUPFD, 100) } @sockets;
    POSIX::dup2($high[$_], 3 + $_) for 0 .. $#high;
    POSIX::close($_) for @high;
    local %ENV = (%ENV, LISTEN_PID => $$, LISTEN_FDS => scalar @sockets, LISTEN_FDNAMES => join(':', map { $_->[0] } @sockets), %$environment);
    exec { $Petrel::binary } $Petrel::binary, '-c', $petrel->conf, 'run' or POSIX::_exit(127);
}
sub up { my $port = shift; my $client = Client->connect($port); my $reply = $client->reply; $client->close; return $reply =~ /^220/ }
sub ended { my $pid = shift; waitpid $pid, 0; return $? & 127 ? 128 + ($? & 127) : $? >> 8 }
sub stop { my $pid = shift; kill TERM => $pid; return ended($pid) }

# Two of one name, another for HTTP.
my ($one, $two, $http) = (tcp(), tcp(), tcp());
$petrel->configure(listen => 'fd:smtp', http => 'fd:web?access=read', port => undef);
my $pid = launch({}, [smtp => $one], [web => $http], [smtp => $two]);
ok up($one->sockport), 'the first socket is served';
ok up($two->sockport), 'and the second of that name';
my $web = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http->sockport) or die;
print $web "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
like join('', <$web>), qr{^HTTP/1\.1 200 .*\r\n\r\nok\n?\z}s, 'and HTTP';
ok $petrel->wait_log(qr/listening on 127\.0\.0\.1:${\$one->sockport}\n/), 'the log has the address' or diag $petrel->log;
kill HUP => $pid;
ok $petrel->wait_log(qr/settings reloaded/), 'a reload';
ok up($one->sockport), 'keeps them';
my ($code, $text) = $petrel->run('check');
is $code, 0, 'check needs no socket' or diag $text;
is stop($pid), 0, 'it ends';

# Nobody is refused meanwhile: a client that comes between two lives is greeted by the second.
my $waiting = Client->connect($one->sockport);
$pid = launch({}, [smtp => $one], [web => $http], [smtp => $two]);
like $waiting->reply, qr/^220/, 'a client that came while no daemon ran';
is stop($pid), 0, 'it ends';

# A path stays the manager's.
my $path = "$scratch/socket";
my $local = IO::Socket::UNIX->new(Local => $path, Listen => 10) or die;
$petrel->configure(listen => 'fd:local', http => undef);
$pid = launch({}, [local => $local]);
my $client = IO::Socket::UNIX->new(Peer => $path) or die;
like scalar(<$client>), qr/^220/, 'a Unix socket';
ok $petrel->wait_log(qr/listening on unix:\Q$path\E\n/), 'by its path' or diag $petrel->log;
is stop($pid), 0, 'it ends';
ok -S $path, 'its file stays';

# [::] that IPv4 reaches, too: clients have their IPv4 address, and mail to itself is found.
SKIP: {
    my $dual = eval { tcp('::', V6Only => 0) } or skip 'no IPv6', 3;
    my $port = $dual->sockport;
    $petrel->configure(listen => 'fd:dual', routes => "* smtp://127.0.0.1:$port");
    $pid = launch({}, [dual => $dual]);
    $client = Client->greeted($port);
    like $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'a client is trusted by its IPv4 address';
    ok $petrel->wait_log(qr/client=\[127\.0\.0\.1\]/), 'which the log has';
    ok $petrel->wait_log(qr/to=<b\@y\.test>.*loop/), 'mail to itself is a loop';
    stop($pid);
    system 'rm', '-rf', "$petrel->{dir}/spool";
}

# Errors.
sub fails {
    my ($what, $want, $environment, @sockets) = @_;
    my $before = length $petrel->log;
    is ended(launch($environment, @sockets)), 78, "$what: exit code";
    like substr($petrel->log, $before), $want, "$what: what is wrong";
}
$petrel->configure(listen => 'fd:smtp', routes => "* smtp://127.0.0.1:$sink->{port}");
fails('no socket', qr/^petrel: cannot listen on fd:smtp: no socket with that name was passed \(FileDescriptorName= in the socket unit; is the unit active\?\)$/m, {});
fails('another name', qr/cannot listen on fd:smtp: no socket/, {}, [mail => $one]);
fails('no names', qr/cannot listen on fd:smtp: no socket/, { LISTEN_FDNAMES => '' }, [smtp => $one]);
fails('for another process', qr/cannot listen on fd:smtp: no socket/, { LISTEN_PID => 1 }, [smtp => $one]);
fails('no number', qr/^petrel: LISTEN_FDS: 'many': not a number up to 128$/m, { LISTEN_FDS => 'many' }, [smtp => $one]);
fails('not open', qr/^petrel: LISTEN_FDS: descriptor 4 \(fd:unknown\) is not a listening stream socket: a socket unit needs ListenStream= and Accept=no$/m, { LISTEN_FDS => 2 }, [smtp => $one]);
$petrel->configure(listen => 'fd:smtp, fd:door?peer', cluster => 'mail', cluster_redis => 'none', cluster_peers => 'b=127.0.0.1:1', cluster_secret => 's' x 32);
fails('no door for the group', qr/cannot listen on fd:door: no socket/, {}, [smtp => $one]);
$petrel->configure(listen => 'fd:smtp', map { $_ => undef } qw(cluster cluster_redis cluster_peers cluster_secret));
my $datagram = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die;
fails('a datagram socket', qr/descriptor 3 \(fd:smtp\) is not a listening stream socket/, {}, [smtp => $datagram]);
my $connected = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $sink->{port}) or die;
fails('a connection', qr/descriptor 3 \(fd:smtp\) is not a listening/, {}, [smtp => $connected]);
open my $file, '<', '/dev/null' or die;
fails('no socket at all', qr/descriptor 3 \(fd:smtp\) is not a listening/, {}, [smtp => $file]);
# Lies of the environment.
fails('too many', qr/^petrel: LISTEN_FDS: '129': not a number up to 128$/m, { LISTEN_FDS => 129 }, [smtp => $one]);
fails('a negative number', qr/LISTEN_FDS: '-1': not a number up to 128$/m, { LISTEN_FDS => -1 }, [smtp => $one]);
fails('a number of several lines', qr/^petrel: LISTEN_FDS: '1\?\?\[31m': not a number/m, { LISTEN_FDS => "1\n\e[31m" }, [smtp => $one]);
fails('an empty number', qr/LISTEN_FDS: '': not a number/, { LISTEN_FDS => '' }, [smtp => $one]);
fails('as many as there may be', qr/descriptor 4 \(fd:unknown\) is not a listening/, { LISTEN_FDS => 128 }, [smtp => $one]);
fails('no process', qr/no socket with that name was passed/, { LISTEN_PID => 'x' }, [smtp => $one]);
fails('a name without end', qr/no socket with that name was passed/, { LISTEN_FDNAMES => 'x' x 5000 }, [smtp => $one]);
fails('names without end', qr/no socket with that name was passed/, { LISTEN_FDNAMES => ':' x 5000 . 'smtp' }, [smtp => $one]);
fails('a name of several lines', qr/descriptor 3 \(fd:a\?\?\[31mb\) is not a listening/, { LISTEN_FDNAMES => "a\n\e[31mb" }, [smtp => $datagram]);
socket my $packets, Socket::AF_UNIX, Socket::SOCK_SEQPACKET, 0 or die;
bind $packets, Socket::sockaddr_un("$scratch/packets") or die;
listen $packets, 5 or die;
fails('a socket of packets', qr/descriptor 3 \(fd:smtp\) is not a listening/, {}, [smtp => $packets]);
$petrel->configure(listen => 'fd:smtp, fd:smtp');
fails('twice', qr/listen: 'fd:smtp': given twice/, {}, [smtp => $one]);
$petrel->configure(listen => 'fd:');
fails('without a name', qr/listen: 'fd:': not an address/, {}, [smtp => $one]);
$petrel->configure(listen => 'fd:smtp?mode=0600');
fails('with a mode', qr/only allowed for unix:PATH/, {}, [smtp => $one]);

# One that nobody names is closed.
$petrel->configure(listen => 'fd:smtp');
$pid = launch({}, [smtp => $one], [other => $two], [third => $http]);
ok $petrel->wait_log(qr/sockets were passed that no setting names, and are closed: other, third; write fd:NAME/), 'a socket that no setting names';
ok up($one->sockport), 'the others are served';
sub listening { my %inode = map { (split)[3] eq '0A' ? ((split)[9] => 1) : () } split /\n/, Petrel::slurp('/proc/net/tcp'); return scalar grep { /socket:\[(\d+)\]/ && $inode{$1} } map { readlink($_) // '' } glob "/proc/$pid/fd/*" }
is listening(), 1, 'it has one port';
is stop($pid), 0, 'it ends';
$pid = launch({}, [smtp => $one]);
ok up($one->sockport), 'again';

# Restarts under load.
my ($rounds, $clients) = ($ENV{ROUNDS} || 5, 3);
my @clients = map {
    my $child = fork // die;
    if ($child == 0) {
        my ($n, $end, $bad) = (0, 0, 0);
        local $SIG{TERM} = sub { $end = 1 };
        until ($end) {
            my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $one->sockport, Timeout => 60);
            if (!$socket) { $bad++; last }
            close $socket;
            my $c = eval { Client->greeted($one->sockport) } or next;
            $n++ if ($c->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: x\r\n\r\nx\r\n") // '') =~ /^250/;
            $c->close;
        }
        Petrel::spit("$scratch/client.$$", "$n $bad");
        POSIX::_exit(0);
    }
    $child;
} 1 .. $clients;
my $clean = 0;
for my $round (1 .. $rounds) {
    # In each of its lives some mail arrives.
    my $seen = $sink->count('messages');
    $clean += Petrel::wait_for(sub { $sink->count('messages') > $seen }) && stop($pid) == 0;
    $pid = launch({}, [smtp => $one]);
}
kill TERM => @clients;
waitpid $_, 0 for @clients;
my ($accepted, $refused) = (0, 0);
for (@clients) { my ($n, $bad) = split / /, Petrel::slurp("$scratch/client.$_"); $accepted += $n; $refused += $bad }
is $clean, $rounds, "$rounds restarts, each one clean";
is $refused, 0, 'no connection was refused';
cmp_ok $accepted, '>', 0, "mail went on: $accepted messages";
ok Petrel::wait_for(sub { $sink->count('messages') >= $accepted }, 120), 'and all of it was delivered' or diag $sink->count('messages');
ok up($one->sockport), 'the last is up';
is stop($pid), 0, 'it ends';
done_testing;
