package Roots;

# Roots of a bare Debian for the tests of packages, in namespaces of their own: mounts and processes end with the test.
# SUITE=trixie: of another release.
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use Petrel;
use Test::More;

our @EXPORT = qw($suite $here $work run inside into fresh bootstrapped $service stand_in hosts alone network);
our ($here) = Petrel::slurp('/etc/os-release') =~ /^VERSION_CODENAME=(\w+)/m;
our $suite = $ENV{SUITE} || $here || '';
our $work; # of this test
my $kept = "$Petrel::root/build-packages"; # the bare root, which `make clean` removes
my ($bootstrap, @mounted, @groups);
END {
    my $code = $?;
    for my $group (@groups) { # what is in it ends, and then it can go
        Petrel::spit("$group/cgroup.kill", '1') if -e "$group/cgroup.kill";
        Petrel::wait_for(sub { rmdir($_) for reverse sort split /\n/, `find $group -type d 2>/dev/null`; !-d $group }, 10);
    }
    system('umount', '-l', $_) for reverse @mounted;
    $? = $code;
}

# enter(NEEDED...): into the namespaces, if root may and the programs are there; else the test is skipped.
sub enter {
    for my $needed (qw(debootstrap unshare), @_) {
        Petrel::have($needed) or plan skip_all => "$needed is not installed: make deps-packages";
    }
    if (!$ENV{PETREL_TEST_PACKAGES}) {
        my @unshare = qw(unshare --mount --propagation private --pid --fork --kill-child --mount-proc);
        plan skip_all => 'packages are installed by root' unless $> == 0;
        plan skip_all => 'a mount namespace is refused here' if system("@unshare mount -t tmpfs none /mnt >/dev/null 2>&1") != 0;
        $ENV{PETREL_TEST_PACKAGES} = 1;
        exec @unshare, $^X, $0 or die "unshare: $!";
    }
    $Petrel::patience = 120;
    $work = tempdir('packages-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $work;
    $bootstrap = Petrel::spawn("$work/debootstrap.log", 'sh', '-c',
        "mkdir -p $kept && debootstrap --variant=minbase --include=ca-certificates $suite $kept/$suite.new && chroot $kept/$suite.new apt-get -q update && mv $kept/$suite.new $kept/$suite")
        if !-d "$kept/$suite";
    return;
}

# The root to copy is there. A slow machine is not stuck: as long as debootstrap says more, it has more time.
sub bootstrapped {
    return if !defined $bootstrap;
    my ($log, $said) = ("$work/debootstrap.log", -1);
    my $size = sub { -s $log || 0 };
    my $ended = sub { Petrel::slurp("/proc/$bootstrap/stat") =~ /\) Z / };
    while (!$ended->() && $size->() != $said) {
        $said = $size->();
        Petrel::wait_for(sub { $ended->() || $size->() != $said }, 600);
    }
    my $status = Petrel::reap($bootstrap, $ended->() ? 0 : 'KILL');
    undef $bootstrap;
    system('rm', '-rf', '--one-file-system', "$kept/$suite.new");
    die "debootstrap $suite: " . Petrel::slurp($log) if !defined $status || $status != 0;
    return;
}

# run(NAME, COMMAND...): it ends with 0; returns its output.
sub run {
    my ($name, @command) = @_;
    my $said = `exec 2>&1; @{[ join ' ', map { "'" . s/'/'\\''/gr . "'" } @command ]}`;
    is $? >> 8, 0, $name or diag $said;
    return $said =~ s/\r//gr; # apt gives dpkg a terminal
}

# inside(ROOT, WORDS OF sh): the command for it.
sub inside {
    my ($root, $words) = @_;
    my @proxies = map { defined $ENV{$_} ? "$_=$ENV{$_}" : () } qw(http_proxy https_proxy);
    return ('chroot', $root, qw(/usr/bin/env -i HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin),
        @proxies, 'sh', '-euc', $words);
}
sub into { my ($name, $root, $words) = @_; return run($name, inside($root, $words)) }

# lintian(CHANGES[, ROOT]): it says nothing of these packages; of another release, the one of ROOT, in which they were built.
sub lintian {
    my ($changes, $root) = @_;
    my @lintian = ('lintian', '--allow-root', '--fail-on', 'error,warning', $root ? $changes =~ s/^\Q$root\E//r : $changes);
    is run('lintian', $root ? inside($root, "@lintian") : @lintian), '', 'lintian says nothing';
    return;
}

# Another mount of the test ends with it, too.
sub mounted { push @mounted, @_; return }

# A bare Debian of its own; no service is started by its packages.
sub fresh {
    my $root = "$work/" . shift;
    bootstrapped();
    system('cp', '-a', "$kept/$suite", $root) == 0 or die 'cp';
    for my $mount (['-t', 'proc', 'proc', "$root/proc"], ['--rbind', '/dev', "$root/dev"]) {
        system('mount', @$mount) == 0 or die "mount @$mount";
        push @mounted, $mount->[-1];
    }
    Petrel::spit("$root/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
    chmod 0755, "$root/usr/sbin/policy-rc.d";
    Petrel::spit("$root/etc/resolv.conf", Petrel::slurp('/etc/resolv.conf'));
    return $root;
}

# Boots a root, as the first process of its namespaces.
my $boot = <<'END';
set -eu
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
# systemd would set the kernel's parameters, which are those of this machine.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 none dev
mount -t tmpfs -o mode=755 none run
mount -t tmpfs none tmp
for device in 'null 1 3' 'zero 1 5' 'full 1 7' 'random 1 8' 'urandom 1 9' 'tty 5 0'; do
    set -- $device
    mknod -m 666 "dev/$1" c "$2" "$3"
done
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm .old
mount -t devpts -o newinstance,ptmxmode=666 none dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs none dev/shm
pivot_root . .old
umount -l /.old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init </dev/null
END

# boot(ROOT): its systemd, without a network, in namespaces and a control group of its own. Returns the command that
# enters it, or nothing where the kernel refuses.
sub boot {
    my $root = shift;
    my $groups = "$work/groups";
    mkdir $groups or die "$groups: $!";
    return if system("mount -t cgroup2 none $groups 2>/dev/null") != 0;
    push @mounted, $groups;
    my $group = "$groups/packages-$$-" . time;
    return if !mkdir $group;
    push @groups, $group;
    Petrel::spit("$work/boot", $boot);
    my $pid = Petrel::spawn("$work/boot.log", 'sh', '-euc', 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"', 'sh', $group,
        qw(unshare --mount --propagation private --pid --fork --kill-child --uts --ipc --net --cgroup sh), "$work/boot", $root);
    my $init;
    my @enter;
    Petrel::wait_for(sub {
        ($init) = Petrel::slurp("/proc/$pid/task/$pid/children") =~ /(\d+)/ or return 0;
        @enter = ('nsenter', '-t', $init, qw(-m -u -i -n -p -C -r -w), qw(env -i HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -euc));
        `@enter 'systemctl is-system-running' 2>&1` =~ /^(?:running|degraded)$/m;
    }) or die 'systemd does not come up: ' . Petrel::slurp("$work/boot.log");
    return @enter;
}

# Copies the source to ROOT/src, without what was built of it.
sub source {
    my $root = shift;
    system("mkdir -p $root/src && tar -C $Petrel::root --exclude='./build*' --exclude=./.git --exclude=./petrel --exclude=./petrel-static -cf - . | tar -xf - --no-same-owner -C $root/src") == 0 or die 'tar';
    return;
}

# What starts services in a root without systemd: it waits until the daemon is ready, whose log is ROOT/tmp/log.
our $service = '#!/bin/sh
case "$*" in *start*|*--now*) ;; *) exit 0 ;; esac
(exec petrel run </dev/null >/tmp/log 2>&1) &
n=0; until petrel health >/dev/null 2>&1; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || exit 1; done
';

# stand_in(ROOT, FILE => TEXT...): programs there; the name may be a link of busybox.
sub stand_in {
    my ($root, %files) = @_;
    for (keys %files) { system("mkdir -p $root/usr/local/bin"); unlink "$root$_"; chmod 0755, Petrel::spit("$root$_", $files{$_}) }
    return;
}
sub hosts { my $root = shift; Petrel::spit("$root/etc/hosts", "127.0.0.1 localhost\n127.0.0.2 mailhub.example.org\n"); return }

# A network of its own for a root, with a server that takes mail, as mailhub.example.org: its folder. The one before ends.
my ($net, $sink);
sub alone { return ('nsenter', "--net=/proc/$net/ns/net", @_) }
sub network {
    my ($name) = @_;
    my $mail = "$work/mail-" . ($name // '');
    Petrel::reap($_, 'KILL') for grep { defined } $sink, $net;
    undef $_ for $sink, $net;
    return if !defined $name;
    mkdir $mail or die;
    $net = Petrel::spawn("$mail.net", qw(unshare --net sh -c), 'ip link set lo up && echo up && exec sleep 3600');
    Petrel::wait_for(sub { Petrel::slurp("$mail.net") =~ /up/ }) or die Petrel::slurp("$mail.net");
    $sink = Petrel::spawn("$mail.sink", alone("$Petrel::root/$Petrel::build/t/bench/sink", '--listen', '127.0.0.2:25', '--directory', $mail));
    Petrel::wait_for(sub { Petrel::slurp("$mail.sink") =~ /^listening/m }) or die Petrel::slurp("$mail.sink");
    return $mail;
}

1;
