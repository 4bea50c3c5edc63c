# A real name server for the tests: Debian's NSD as an ordinary process on loopback.
package Nsd;

use strict;
use warnings;
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use lib 't/e2e';
use Petrel;

my @running;

# True when the tests can have one.
sub available {
    return -x path();
}

sub path {
    for my $directory (qw(/usr/sbin /usr/local/sbin)) {
        return "$directory/nsd" if -x "$directory/nsd";
    }
    return '/usr/sbin/nsd';
}

sub write_config {
    my ($directory, $port, %zones) = @_;
    open my $config, '>', "$directory/nsd.conf" or die "$directory/nsd.conf: $!\n";
    print $config <<"END";
server:
    ip-address: 127.0.0.1\@$port
    server-count: 1
    username: ""
    chroot: ""
    zonesdir: "$directory"
    pidfile: "$directory/nsd.pid"
    database: ""
    xfrdfile: "$directory/xfrd.state"
    zonelistfile: "$directory/zone.list"
    xfrdir: "$directory"
    logfile: "$directory/nsd.log"
    rrl-ratelimit: 0
remote-control:
    control-enable: no
END
    for my $name (sort keys %zones) {
        print $config qq(zone:\n    name: "$name"\n    zonefile: "$zones{$name}"\n);
    }
    close $config or die "$directory/nsd.conf: $!\n";
    return;
}

# Answers to anything at all?
sub is_up {
    my ($port) = @_;
    my $udp = IO::Socket::INET->new(
        PeerAddr => '127.0.0.1',
        PeerPort => $port,
        Proto    => 'udp'
    ) or return 0;
    # The SOA of the root: refused, but answered.
    $udp->send(pack 'n6 C n2', 1, 0, 1, 0, 0, 0, 0, 6, 1) or return 0;
    my $bits = '';
    vec($bits, fileno $udp, 1) = 1;
    return select($bits, undef, undef, 0.1) > 0 && defined $udp->recv(my $reply, 512);
}

# Serves zones (name => absolute path of its file; a missing file answers SERVFAIL) with its own
# files in an empty directory. Returns an object with {port} and {pid}.
sub start {
    my ($class, $directory, %zones) = @_;
    for my $attempt (1 .. 5) {
        my $port = Petrel::free_port();
        write_config($directory, $port, %zones);
        my $pid = fork // die "fork: $!\n";
        if ($pid == 0) {
            exec path(), '-d', '-c', "$directory/nsd.conf" or POSIX::_exit(127);
        }
        my $self = bless {port => $port, pid => $pid, directory => $directory}, $class;
        push @running, $self;
        for (1 .. 1000) {
            return $self if is_up($port);
            last if waitpid($pid, WNOHANG) == $pid && delete $self->{pid};
            select undef, undef, undef, 0.05;
        }
        $self->stop;
    }
    die "nsd does not start, see $directory/nsd.log\n";
}

# After stop, on the same port.
sub again {
    my ($self) = @_;
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        exec path(), '-d', '-c', "$self->{directory}/nsd.conf" or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    for (1 .. 1000) {
        return $self if is_up($self->{port});
        select undef, undef, undef, 0.05;
    }
    die "nsd does not come back, see $self->{directory}/nsd.log\n";
}

sub stop {
    my ($self) = @_;
    my $pid = delete $self->{pid} or return;
    kill 'TERM', $pid;
    for (1 .. 100) {
        return if waitpid($pid, WNOHANG) != 0;
        select undef, undef, undef, 0.05;
    }
    kill 'KILL', $pid;
    waitpid $pid, 0;
    return;
}

END {
    my $status = $?;
    $_->stop for @running;
    $? = $status;
}

1;
