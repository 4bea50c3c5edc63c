package Nfs;

# The kernel's NFS server, and hosts in network namespaces of their own that mount its directory by NFS 4.2 (Guest.pm: in a
# virtual machine). A host may be cut off, and the server stopped.
use strict;
use warnings;
use Petrel;

our @modules = qw(nfsd nfsv4 veth);
our $root = '/opt/petrel-test-nfs';
our @programs = (qw(ip unshare nsenter mount umount), map { "$root/usr/sbin/$_" } qw(rpc.mountd exportfs));
our $lease = 10; # seconds until the server gives up a host: its minimum

sub sh { my @command = @_; my ($code, $said) = Petrel::command('', @command); die "@command: $code: $said" if $code; return $said }
# A file of the kernel, which takes what is written at once.
sub set_file { my ($file, $text) = @_; open my $h, '>', $file or die "$file: $!"; return syswrite($h, "$text\n") // die "$file: $text: $!" }

# start(DIRECTORY): exports it.
sub start {
    my ($class, $dir) = @_;
    my $self = bless { dir => $dir, hosts => 0 }, $class;
    mkdir $_ for '/var/lib', '/var/lib/nfs', '/var/lib/nfs/v4recovery', $dir;
    sh('ip', 'addr', 'add', '10.77.0.1/32', 'dev', 'lo');
    Petrel::spit($_, '') for '/var/lib/nfs/etab', '/var/lib/nfs/rmtab';
    sh('mount', '-t', 'nfsd', 'none', '/proc/fs/nfsd');
    $self->fill;
    Petrel::spit('/etc/exports', "$dir 10.77.0.0/16(rw,sync,no_root_squash,no_subtree_check,fsid=0)\n");
    sh("$root/usr/sbin/exportfs", '-a');
    Petrel::spawn("/var/mountd", "$root/usr/sbin/rpc.mountd", '-F', '-N', '3', '-N', '2');
    set_file("/proc/fs/nfsd/$_", $lease) for qw(nfsv4leasetime nfsv4gracetime);
    $self->go;
    set_file('/proc/fs/nfsd/v4_end_grace', 'Y'); # nobody has been here before
    return $self;
}

# A new file system for the directory: what hosts have open there is gone.
sub fill { my $self = shift; return sh('mount', '-t', 'tmpfs', 'none', $self->{dir}) }
sub go { set_file('/proc/fs/nfsd/versions', '-3 +4 +4.1 +4.2'); set_file('/proc/fs/nfsd/portlist', 'tcp 2049'); return set_file('/proc/fs/nfsd/threads', 4) }
sub halt { return set_file('/proc/fs/nfsd/threads', 0) }
sub anew {
    my $self = shift;
    $self->halt;
    sh("$root/usr/sbin/exportfs", '-ua');
    sh("umount", $self->{dir});
    $self->fill;
    sh("$root/usr/sbin/exportfs", '-a');
    return $self->go;
}

# host(OPTIONS): with an address of its own, and the directory at {mount}.
sub host {
    my ($self, $options) = @_;
    my $n = ++$self->{hosts};
    my $host = { name => "host$n", address => "10.77.$n.2", gateway => "10.77.$n.1", mount => "/mnt/host$n", options => $options };
    $host->{pid} = Petrel::spawn("/var/host$n", Petrel::have('unshare'), '--net', '--uts', $^X, '-e', 'sleep 1000000');
    $host->{at} = [Petrel::have('nsenter'), '--target', $host->{pid}, '--net', '--uts'];
    Petrel::wait_for(sub { (readlink("/proc/$host->{pid}/ns/net") // '') ne readlink('/proc/self/ns/net') && (readlink("/proc/$host->{pid}/ns/uts") // '') ne readlink('/proc/self/ns/uts') });
    sh(qw(ip link add), "link$n", qw(type veth peer name eth0 netns), $host->{pid});
    sh(qw(ip addr add), "$host->{gateway}/24", 'dev', "link$n");
    sh(qw(ip link set), "link$n", 'up');
    sh(@{ $host->{at} }, 'ip', @$_) for [qw(addr add), "$host->{address}/24", qw(dev eth0)], [qw(link set eth0 up)], [qw(link set lo up)], [qw(route add default via), $host->{gateway}];
    sh(@{ $host->{at} }, $^X, '-e', 'open H, ">", "/proc/sys/kernel/hostname"; print H shift', $host->{name});
    mkdir $host->{mount} or die $!;
    $self->mount($host);
    return $host;
}

sub mount { my ($self, $host) = @_; return sh(@{ $host->{at} }, 'mount', '-i', '-t', 'nfs4', '-o', "addr=10.77.0.1,clientaddr=$host->{address},vers=4.2,$host->{options}", '10.77.0.1:/', $host->{mount}) }
# At most so many seconds, for what a mount that hangs keeps.
sub unmount { my ($self, $host) = @_; return sh('umount', '-f', '-l', $host->{mount}) }
sub cut { my ($self, $host) = @_; return sh(qw(ip link set), 'link' . substr($host->{name}, 4), 'down') }
sub join { my ($self, $host) = @_; return sh(qw(ip link set), 'link' . substr($host->{name}, 4), 'up') }

1;
