#!/usr/bin/perl
# The registry of fragments on a real NFS server: the kernel's, in a virtual machine, whose three hosts mount it by NFS 4.2,
# soft or hard. The server is stopped under load and started again, and its directory is made anew.
use lib 't/e2e';
use Cluster;
use E2E;
use Guest;
use List::Util qw(shuffle);
use Nfs;

plan skip_all => Guest::missing(@Nfs::programs) if Guest::missing(@Nfs::programs);
Guest::enter(modules => \@Nfs::modules, programs => \@Nfs::programs);
$Petrel::patience *= 2; # an emulated processor
my $server = Nfs->start('/export');

# Three daemons, of which each sees the registry by a mount of its own.
my @mounts;
sub meet {
    my ($options) = @_;
    mkdir '/export/registry', 0700;
    @mounts = map { $server->host($options) } 1 .. 3;
    return hosts([map { "dir:$_->{mount}/registry" } @mounts], user => '');
}

sub all_whole { my ($name, @sets) = @_; return is_deeply [sort(arrivals(scalar @sets))], [sort map { $_->{whole} } @sets], "$name: each set arrives whole, once" }
sub first_parts { my ($hosts, @sets) = @_; return grep { !send_part($hosts->[ $_ % 3 ], $sets[$_], 1) } 0 .. $#sets }
sub second_parts { my ($hosts, @sets) = @_; return grep { !send_part($hosts->[ ($_ + 1) % 3 ], $sets[$_], 2) } 0 .. $#sets }
sub answers { my $host = shift; return Petrel::wait_for(sub { $host->status =~ /^\{/ }) }
sub news { return map { grep { !/does not answer, this host works alone|trouble=registry_down|trouble=name_servers|is in memory|resolv\.conf|environment:|no CA/ } complaints($_) } @_ }

my @hosts = meet('soft,timeo=3,retrans=1');
my @sets = map { make_set(3) } 1 .. 12;
is scalar(grep { !send_part($hosts[ rand @hosts ], @$_) } shuffle map { my $s = $_; map { [$s, $_] } 1 .. 3 } @sets), 0, 'soft: parts at random hosts are accepted';
all_whole('soft', @sets);

# Stopped: each host works alone, and no call hangs. Started: what began meanwhile is claimed.
$server->halt;
@sets = map { make_set(2) } 1 .. 6;
is first_parts(\@hosts, @sets), 0, 'the server is stopped: fragments are accepted';
ok $_->wait_log(qr{the registry dir:\S+ does not answer, this host works alone: (?:Input/output error|a call took)}), "$_->{name} works alone" for @hosts;
# A file that another host has open when it goes keeps such a name.
Petrel::spit("/export/registry/$_", 'x') for '.nfs0000000000000001', map { mkdir "/export/registry/$_", 0700; "$_/.nfs000000000000000100000002" } 'id', map { sprintf '%02x', $_ } 0 .. 255;
$server->go;
ok $_->wait_log(qr{the registry dir:\S+ answers again}), "$_->{name} has it again" for @hosts;
ok answers($_) && wait_figure($_, 'alone', 0), 'all is claimed' for @hosts;
is second_parts(\@hosts, @sets), 0, 'the other parts at others';
all_whole('stopped', @sets);

# The directory is another one: files and directories that were open are stale.
@sets = map { make_set(2) } 1 .. 3;
is first_parts(\@hosts, @sets), 0, 'fragments wait';
$server->anew;
mkdir '/export/registry', 0700;
ok $_->wait_log(qr{the registry dir:\S+ has forgotten this host, which claims its messages again}), "$_->{name} finds an empty directory" for @hosts;
ok answers($_) && wait_figure($_, 'alone', 0), 'all is claimed' for @hosts;
is second_parts(\@hosts, @sets), 0, 'the other parts at others';
all_whole('made anew', @sets);
is_deeply [news(@hosts)], [], 'no other complaint';
ends('soft', @hosts);
$server->unmount($_) for @mounts;

# Hard: a host waits for the server, with all that it does, and loses nothing.
@hosts = meet('hard,timeo=10');
@sets = map { make_set(2) } 1 .. 6;
is first_parts(\@hosts, @sets), 0, 'hard: fragments are accepted';
$server->halt;
my $pid = fork // die;
if (!$pid) { $Petrel::patience = 300; POSIX::_exit(scalar(second_parts(\@hosts, @sets))) }
sleep 3;
is waitpid($pid, POSIX::WNOHANG()), 0, 'the server is stopped: hosts do not answer';
$server->go;
waitpid $pid, 0;
is $? >> 8, 0, 'it is started: all are accepted';
all_whole('hard', @sets);
ends('hard', @hosts);
$server->unmount($_) for @mounts;
done_testing();
