package Volume;

# A replicated file system on this machine for t/e2e/volumes.t: GlusterFS with three bricks, and hosts in network namespaces of
# their own that mount it by FUSE. The program runs itself again in namespaces, which end with it.
use strict;
use warnings;
use File::Path qw(remove_tree);
use Petrel;

my $mark = 'PETREL_VOLUME_NAMESPACE';

# Why there is no such file system here; undef: there is one.
sub missing {
    return 'only root mounts' if $> != 0;
    for (qw(glusterd gluster glusterfs unshare ip nsenter)) { return "$_ is not installed" unless Petrel::have($_) }
    return 'there is no /dev/fuse' unless -c '/dev/fuse';
    return system('unshare --mount --net --pid --fork --mount-proc mount -t tmpfs none /mnt >/dev/null 2>&1') == 0 ? undef : 'this system allows no mounts';
}

# Goes on in namespaces: what is started or mounted there ends with the program.
sub enter {
    return if $ENV{$mark};
    $ENV{$mark} = 1;
    exec qw(unshare --mount --net --pid --fork --kill-child=KILL --mount-proc --propagation private), $^X, '-It/e2e', $0 or die "unshare: $!";
}

sub sh { my $command = shift; my ($code, $said) = Petrel::command('', 'sh', '-c', $command); die "$command: $code: $said" if $code; return $said }

# start(DIRECTORY): glusterd, and a volume with three bricks below it.
sub start {
    my ($class, $dir) = @_;
    my $self = bless { dir => $dir, bricks => [map { "$dir/brick$_" } 1 .. 3], hosts => 0 }, $class;
    sh("ip link set lo up; ip addr add 10.77.0.1/32 dev lo; mount -t tmpfs none /var/lib/glusterd; mount -t tmpfs none /run; mkdir -p /run/gluster /run/netns; mount -t tmpfs none /var/log/glusterfs; mkdir -p @{$self->{bricks}}");
    Petrel::spawn("$dir/glusterd.log", Petrel::have('glusterd'), '--no-daemon', '--log-level=WARNING', "--log-file=$dir/glusterd.log");
    Petrel::wait_for(sub { system('gluster --mode=script volume list >/dev/null 2>&1') == 0 }) or die 'no glusterd: ' . Petrel::slurp("$dir/glusterd.log");
    sh("gluster --mode=script volume create mail replica 3 @{[map { qq(10.77.0.1:$_) } @{$self->{bricks}}]} force");
    # A host that is away is found out soon, and its locks end with it. What it has open stays closed when it comes back.
    sh("gluster --mode=script volume set mail $_") for 'network.ping-timeout 3', 'client.strict-locks on';
    sh('gluster --mode=script volume start mail');
    return $self;
}

# A host with an address of its own; it sees bricks and this program by one link.
sub host {
    my ($self) = @_;
    my $n = ++$self->{hosts};
    my $host = { name => "host$n", address => "10.77.$n.2", gateway => "10.77.$n.1", mount => "$self->{dir}/mount$n", log => "$self->{dir}/host$n.log",
        at => ['nsenter', "--net=/run/netns/host$n"] };
    sh("ip netns add host$n && ip link add link$n type veth peer name eth0 netns host$n && ip addr add $host->{gateway}/24 dev link$n && ip link set link$n up"
        . " && ip -n host$n addr add $host->{address}/24 dev eth0 && ip -n host$n link set eth0 up && ip -n host$n link set lo up && ip -n host$n route add default via $host->{gateway}"
        . " && mkdir $host->{mount}");
    $self->mount($host);
    return $host;
}

sub mount {
    my ($self, $host) = @_;
    $host->{fuse} = Petrel::spawn($host->{log}, @{ $host->{at} }, Petrel::have('glusterfs'), '--no-daemon', '--volfile-server=10.77.0.1', '--volfile-id=mail', "--log-file=$host->{log}", $host->{mount});
    Petrel::wait_for(sub { system("mountpoint -q $host->{mount}") == 0 && -d "$host->{mount}/." && opendir(my $d, $host->{mount}) }) or die "$host->{name} mounts nothing: " . Petrel::slurp($host->{log});
    return;
}

# The host loses its power: the client of the file system ends with all that runs there.
sub kill_host { my ($self, $host) = @_; Petrel::reap($host->{fuse}, 'KILL'); system("umount -l $host->{mount}"); return }
sub cut { my ($self, $host) = @_; return sh("ip link set link" . substr($host->{name}, 4) . " down") }
sub join { my ($self, $host) = @_; return sh("ip link set link" . substr($host->{name}, 4) . " up") }

# Ends the server of one brick.
sub kill_brick {
    my ($self, $n) = @_;
    my ($pid) = sh('gluster --mode=script volume status mail') =~ m{$self->{bricks}[$n]\s+\S+\s+\S+\s+Y\s+(\d+)} or die 'no such brick';
    kill 'KILL', $pid;
    waitpid $pid, 0; # ours, since its own parent has gone: glusterd takes a zombie for a server
    return;
}

# Ends all that runs in the namespaces but this program, and removes the bricks.
sub stop {
    my ($self, @hosts) = @_;
    die 'these are not the namespaces of enter()' if $$ != 1;
    system("umount -l $_->{mount}") for @hosts;
    kill 'KILL', -1;
    return remove_tree($self->{dir});
}

# Starts bricks that ended, and waits until all three agree.
sub heal {
    my ($self) = @_;
    sh('gluster --mode=script volume start mail force');
    return Petrel::wait_for(sub {
        system('gluster --mode=script volume heal mail >/dev/null 2>&1');
        my $said = sh('gluster --mode=script volume heal mail info');
        return Petrel::count($said, qr/^Number of entries: 0$/m) == 3;
    }, 90);
}

1;
