#!/usr/bin/perl
# The static program for another processor (make check-packages, as root): in a bare Debian of its own the libraries of
# arm64 and a cross compiler are installed, and what they make runs under qemu: version, check, a message delivered.
use strict;
use warnings;
use lib 't/e2e', 't/packages';
use Petrel;
use Roots;
use Test::More;

Roots::enter(qw(ip));
my $triplet = 'aarch64-linux-gnu';
my $root = fresh('arm64');
into('libraries of arm64', $root, "dpkg --add-architecture arm64 && apt-get -q update && apt-get install -y -q --no-install-recommends make pkg-config gcc-$triplet libc6-dev-arm64-cross qemu-user-static uthash-dev "
        . join ' ', map { "$_-dev:arm64" } qw(libev libc-ares libmbedtls libcrypt libjansson libseccomp libidn2 libunistring libhiredis));
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
Petrel::reap($_, 'TERM') for $sink, $net;
done_testing;
