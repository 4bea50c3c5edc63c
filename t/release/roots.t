#!/usr/bin/perl
# From nothing to a delivered message, in bare roots, with the commands of doc/install.md, each line of it typed as it stands there
# (make check-release, as root): Debian from a repository that is made and signed here, and upgraded from a version before; Alpine,
# OpenWrt and RPM, with busybox alone, where the programs of those systems are stand-ins; one file, here and under qemu for arm64; a
# container whose root has nothing else. The time of each is printed.
use strict;
use warnings;
use Time::HiRes qw(time);
use lib 't/e2e', 't/packages';
use Petrel;
use Roots;
use Test::More;

my $release = $ENV{RELEASE} || 'build-release';
$release = "$Petrel::root/$release" if $release !~ m{^/};
-e "$release/SHA256SUMS" or plan skip_all => 'no release is built: make release';
Roots::enter(qw(ip nsenter busybox));
chomp(my $processor = `uname -m`);
my %typed; # the lines of a section
{
    my $page = Petrel::slurp("$Petrel::root/doc/install.md");
    $typed{$1} = [split /\n/, $2] while $page =~ /^```sh (\w+)\n(.*?)^```$/msg;
}

my $mail; # of the server that takes mail, for each root

# type(NAME, SECTION, ROOT, environment...): each line; those that fetch packages need the network of this machine.
sub type {
    my ($name, $section, $root, %env) = @_;
    my $start = time;
    for (@{ $typed{$section} || die "no section $section" }) {
        my $line = $_;
        my @command = inside($root, join('', map { "export $_='$env{$_}'; " } sort keys %env) . "cd /root; $line");
        @command = alone(@command) if $line !~ /apt-get/;
        if ($line =~ s/ &$//) { pop @command; Petrel::spawn("$mail.log", @command, "cd /root; exec $line"); sleep 3; next }
        run("$name: $line", @command);
    }
    ok Petrel::wait_for(sub { grep { Petrel::slurp($_) =~ /friend\@friends\.example/ } glob "$mail/*.eml" }), "$name: the message is there" or diag `cat $root/tmp/log $mail.log`;
    diag sprintf '%s: %d commands, %.1f s', $name, scalar @{ $typed{$section} }, time - $start;
    return;
}

sub bare {
    my ($name) = @_;
    my $root = "$work/$name";
    system("mkdir -p $root/bin $root/sbin $root/usr/sbin $root/usr/bin $root/dev $root/proc $root/tmp $root/root $root/etc/init.d $root/etc/config $root/etc/ssl/certs && cp /bin/busybox $root/bin/ && chroot $root /bin/busybox --install -s /bin && touch $root/etc/passwd $root/etc/group $root/etc/shadow") == 0 or die;
    system("ln -s /bin/env $root/usr/bin/env; mknod -m 666 $root/dev/null c 1 3; mknod -m 666 $root/dev/urandom c 1 9") == 0 && system("mount -t proc proc $root/proc") == 0 or die;
    Roots::mounted("$root/proc");
    Petrel::spit("$root/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
    hosts($root);
    stand_in($root, '/bin/addgroup' => "#!/bin/sh\necho petrel:x:101: >>/etc/group\n", '/bin/adduser' => "#!/bin/sh\necho petrel:x:100:101::/: >>/etc/passwd\n",
        '/bin/useradd' => "#!/bin/sh\naddgroup; adduser\n", '/bin/getent' => "#!/bin/sh\nexit 2\n", map { ("/bin/$_" => $service) } qw(systemctl rc-service rc-update));
    stand_in($root, '/bin/rc-update' => "#!/bin/sh\n");
    $mail = network($name);
    return $root;
}

# --- Debian

my %debian = (bookworm => 12, trixie => 13);
for my $of (sort keys %debian) {
    SKIP: {
        my @debs = glob "$release/debian/*~deb$debian{$of}u*_{amd64,all}.deb";
        skip "no packages for $of", 1 if @debs < 2;
        local $Roots::suite = $of;
        my $root = fresh($of);
        # The version before: the same, as a repository of it would have it.
        mkdir "$work/$_-$of" for qw(before key);
        chmod 0700, "$work/key-$of";
        for (@debs) {
            my ($file) = m{([^/]+)$};
            system("dpkg-deb -R $_ $work/x && sed -i 's/[0-9.]*~deb/0.0.9~deb/' $work/x/DEBIAN/control && dpkg-deb -b --root-owner-group $work/x '$work/before-$of/" . ($file =~ s/_[\d.]+~/_0.0.9~/r) . "' >/dev/null && rm -r $work/x") == 0 or die;
        }
        local $ENV{GNUPGHOME} = "$work/key-$of";
        local $ENV{SOURCE_DATE_EPOCH} = int time;
        my $key = 'test@petrel.test';
        run('a key', qw(gpg --batch -q --passphrase), '', '--quick-generate-key', $key, 'ed25519', 'sign', 'never');
        my $repository = sub { run('the repository', "$Petrel::root/etc/release/repository.sh", shift, "$root/repository", $key) };
        $repository->("$work/before-$of");
        hosts($root);
        stand_in($root, '/usr/local/bin/systemctl' => $service);
        system('cp', "$root/repository/petrel.asc", "$root/root/") == 0 or die;
        $mail = network($of);
        type("Debian $debian{$of}", 'debian', $root, REPOSITORY => 'file:/repository');
        like into('before', $root, 'petrel queue ls >/dev/null; dpkg -s petrel'), qr/^Version: 0\.0\.9~deb$debian{$of}u1$/m, 'the version before';
        $repository->("$release/debian");
        like into('upgrade', $root, 'apt-get update && apt-get upgrade -y'), qr/^Setting up petrel \(/m, 'apt-get upgrade has the next';
        unlike into('after', $root, 'dpkg -s petrel petrel-mta'), qr/^Version: 0\.0\.9/m, 'both are new';
        like Petrel::slurp("$root/etc/petrel/petrel.conf"), qr/^relay = smtp:\/\/mailhub\.example\.org/m, 'the settings stay';
        Petrel::spit("$root/repository/dists/$of/InRelease", Petrel::slurp("$root/repository/dists/$of/InRelease") =~ s/^Origin: \w+/Origin: Other/mr);
        isnt system(inside($root, 'apt-get update 2>/dev/null | grep -q . ; apt-get update -o APT::Update::Error-Mode=any >/dev/null 2>&1')), 0, 'a changed repository is refused';
    }
}

# --- Others, of busybox

my $root = bare('alpine');
system("cp $release/petrel-*.apk $root/root/ && cd $root/root && ls | grep -v '\\.$processor\\.' | xargs -r rm") == 0 or die;
stand_in($root, '/bin/apk' => '#!/bin/sh
for file; do :; done
zcat "$file" | tar -xf - -C / && sh /.pre-install && sh /.post-install
');
type('Alpine', 'alpine', $root);

$root = bare('rpm');
my ($rpm) = glob "$release/petrel-*.$processor.rpm";
SKIP: {
    skip 'rpm is not installed', 1 if !Petrel::have('rpm');
    system('cp', $rpm, "$root/root/") == 0 or die;
    # rpm itself is of this machine.
    run('rpm --root', 'sh', '-c', "rpm --root $root --initdb && rpm --root $root --nodeps -i $rpm");
    stand_in($root, '/bin/rpm' => "#!/bin/sh\ntest -f \"\$2\"\n");
    type('RPM', 'rpm', $root);
}

$root = bare('openwrt');
system("cp $release/petrel_*_$processor.ipk $root/root/") == 0 or die;
stand_in($root, '/bin/opkg' => '#!/bin/sh
mkdir -p /tmp/ipk && zcat "$2" | tar -xf - -C /tmp/ipk && cd /tmp/ipk && zcat data.tar.gz | tar -xf - -C / && zcat control.tar.gz | tar -xf - && sh ./preinst && sh ./postinst
', '/bin/uci' => '#!/bin/sh
[ "$1" = set ] || exit 0
pair=${2#petrel.main.}
sed -i "/option ${pair%%=*} /d" /etc/config/petrel
echo "	option ${pair%%=*} ${pair#*=}" >>/etc/config/petrel
', '/etc/rc.common' => '#!/bin/sh
logger() { shift 3; cat; }
config_load() { while read -r kind name value; do case $kind in config) config_cb "$name" "$value" ;; option|list) ${kind}_cb "$name" "$value" ;; esac; done <"/etc/config/$1"; config_cb; }
procd_open_instance() { instance=; }
procd_set_param() { [ "$1" = env ] || return 0; shift; for pair; do export "$pair"; done; }
procd_close_instance() { (exec "$PROG" run </dev/null >/tmp/log 2>&1) & n=0; until "$PROG" health >/dev/null 2>&1; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || exit 1; done; }
. "$1"
case $2 in start) start_service ;; esac
');
type('OpenWrt', 'openwrt', $root);

for my $of ($processor, 'aarch64') {
    my ($program) = glob "$release/petrel-*-linux-$of";
    next if !$program || $of ne $processor && !Petrel::have('qemu-aarch64-static');
    $root = bare("file-$of");
    system("cp $program $root/root/ && mkdir -p $root/usr/local/bin") == 0 or die;
    if ($of ne $processor) { # a system of arm64 starts it without these words
        system("cp " . Petrel::have('qemu-aarch64-static') . " $root/bin/qemu && mv $root/root/petrel-*-linux-$of $root/program") == 0 or die;
        stand_in($root, '/root/petrel-x-linux-aarch64' => "#!/bin/sh\nexec /bin/qemu /program \"\$@\"\n");
    }
    type("one file, $of", 'file', $root);
}

# --- A root with nothing but the image; `docker` reads it as those who publish it mean it.

$root = "$work/container";
$mail = network('container');
system("mkdir -p $root/image $work/shell && cp $release/petrel-*.oci.tar $work/shell/ && chmod 755 $Petrel::root/t/release/docker.py") == 0 or die;
{
    my $start = time;
    local $ENV{DOCKER_ROOT} = $root;
    local $ENV{PATH} = "$work/bin:$ENV{PATH}";
    mkdir "$work/bin";
    symlink "$Petrel::root/t/release/docker.py", "$work/bin/docker";
    run("container: $_", alone('sh', '-euc', "cd $work/shell; $_")) for @{ $typed{container} };
    ok Petrel::wait_for(sub { grep { Petrel::slurp($_) =~ /friend\@friends\.example/ } glob "$mail/*.eml" }), 'container: the message is there' or diag Petrel::slurp("$root/log");
    diag sprintf 'container: %d commands, %.1f s', scalar @{ $typed{container} }, time - $start;
}
network();
done_testing;
