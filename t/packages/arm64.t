#!/usr/bin/perl
# Program and packages for another processor (make check-packages, as root): in a bare Debian of its own the libraries of
# arm64 and a cross compiler are installed, and what they make runs under qemu: the static program with version, check, a
# message delivered; the packages installed by apt, with the libraries that they name, and mail by their sendmail.
use strict;
use warnings;
use lib 't/e2e', 't/packages';
use Petrel;
use Roots;
use Test::More;

Roots::enter(qw(ip lintian));
my $triplet = 'aarch64-linux-gnu';
my $root = fresh('arm64');
into('a compiler for arm64', $root, "dpkg --add-architecture arm64 && apt-get -q update && apt-get install -y -q --no-install-recommends make pkg-config gcc libc6-dev gcc-$triplet libc6-dev-arm64-cross qemu-user-static uthash-dev dpkg-dev patch gperf autoconf automake libtool python3");
Roots::source($root);
into('make image', $root, "cd /src && make -s -j2 image CROSS=$triplet WERROR=1");
like into('its processor', $root, "$triplet-readelf -h /src/petrel-static"), qr/^ +Machine: +AArch64$/m, 'the program is for arm64';
like into('the image', $root, 'tar -xOf /src/build-image/petrel.oci.tar index.json'), qr/"architecture":"arm64"/, 'the image, too';
my $run = 'qemu-aarch64-static /src/petrel-static -c /root/petrel.conf';
like into('version', $root, "$run version"), qr/^petrel \d/m, 'it says its version';

# All in a network of its own, as other tests listen here.
Petrel::spit("$root/root/petrel.conf", "hostname = arm.example.org\nlisten = 127.0.0.1:2526\nspool = /var/spool/petrel\nrelay = smtp://127.0.0.1:2525\n");
like into('check', $root, "$run check"), qr/^# These settings have no errors\.$/m, 'its settings are right';
my $net = Petrel::spawn("$work/net.log", qw(unshare --net sh -c), 'ip link set lo up && echo up && exec sleep 3600');
Petrel::wait_for(sub { Petrel::slurp("$work/net.log") =~ /up/ }) or die Petrel::slurp("$work/net.log");
my @alone = ('nsenter', "--net=/proc/$net/ns/net");
my $sink = Petrel::spawn("$work/sink.log", @alone, "$Petrel::root/$Petrel::build/t/bench/sink", '--listen', '127.0.0.1:2525', '--directory', $work);
Petrel::wait_for(sub { Petrel::slurp("$work/sink.log") =~ /^listening/m }) or die 'no sink';
my $daemon = Petrel::spawn("$work/log", @alone, inside($root, "exec $run run"));
ok Petrel::wait_for(sub { Petrel::slurp("$work/log") =~ /listening on 127\.0\.0\.1:2526\b/ }), 'it listens' or diag Petrel::slurp("$work/log");
like run('petrel test', @alone, inside($root, "$run test you\@example.org")), qr/delivered to 127\.0\.0\.1/, 'and delivers';
ok scalar(() = glob "$work/*.eml"), 'the sink has it';
is Petrel::reap($daemon, 'TERM'), 0, 'it ends in good order';

# --- The packages

into('what building packages needs', $root, 'apt-get install -y -q --no-install-recommends dpkg-dev debhelper' . ($suite eq $here ? '' : ' lintian') . ' && cd /src && apt-get build-dep -y -q --no-install-recommends -aarm64 ./');
into('make deb', $root, "cd /src && make -s deb DEB=/debs CROSS=$triplet");
Roots::lintian((glob "$root/debs/petrel_*_arm64.changes")[0], $suite eq $here ? () : $root);
my $host = fresh('host');
system('cp', glob("$root/debs/petrel_*_arm64.deb"), glob("$root/debs/petrel-mta_*_all.deb"), "$host/root/") == 0 or die 'cp';
into('qemu', $host, 'dpkg --add-architecture arm64 && apt-get -q update && apt-get install -y -q --no-install-recommends qemu-user-static');
like into('apt-get install', $host, 'apt-get install -y -q --no-install-recommends /root/*.deb'), qr/^Setting up petrel:arm64 /m, 'the packages are installed';
# A system of arm64 starts it without these words.
my $petrel = sub { my $name = shift; return "qemu-aarch64-static -0 $name /usr/sbin/$name" };
like into('version', $host, $petrel->('petrel') . ' version'), qr/^petrel \d.*^c-ares/ms, 'the program runs with the libraries that the package names';
like into('petrel init', $host, $petrel->('petrel') . ' init --yes --hostname arm.example.org --relay smtp://127.0.0.1:2525 --root me@example.org'), qr/^Next:$/m, 'petrel init writes its settings';
unlink "$work/log", glob "$work/*.eml";
$daemon = Petrel::spawn("$work/log", @alone, inside($host, 'exec ' . $petrel->('petrel') . ' run'));
ok Petrel::wait_for(sub { Petrel::slurp("$work/log") =~ /listening on 127\.0\.0\.1:25\b/ }), 'it listens' or diag Petrel::slurp("$work/log");
run('sendmail', @alone, inside($host, 'printf "Subject: x\\n\\nfirst\\n" | ' . $petrel->('sendmail') . ' you@example.org'));
ok Petrel::wait_for(sub { grep { Petrel::slurp($_) =~ /^first\r?$/m } glob "$work/*.eml" }), 'mail by its sendmail arrives' or diag Petrel::slurp("$work/log");
is Petrel::reap($daemon, 'TERM'), 0, 'it ends in good order';
like into('purge', $host, 'apt-get purge -y -q petrel:arm64 petrel-mta'), qr{^petrel: mail may be in /var/spool/petrel: it stays$}m, 'where its program does not run by itself, a purge keeps the spool';
Petrel::reap($_, 'TERM') for $sink, $net;
done_testing;
