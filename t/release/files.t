#!/usr/bin/perl
# The files of a release (make check-release): the sums, and a signature of them as doc/releasing.md makes it; what the packages of
# Alpine, OpenWrt and RPM contain, and their scripts, run in a bare root; the image's index, the list of components, the chart.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex sha256_hex);
use File::Temp qw(tempdir);
use JSON::PP;
use lib 't/e2e';
use Petrel;
use Test::More;

my $release = $ENV{RELEASE} || 'build-release';
-e "$release/SHA256SUMS" or plan skip_all => 'no release is built: make release';
$release = "$Petrel::root/$release" if $release !~ m{^/};
my $work = tempdir('release-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub said { my $command = shift; my $said = `exec 2>&1; $command`; is $? >> 8, 0, $command or diag $said; return $said }

# --- Sums and signature

said("cd $release && sha256sum --quiet -c SHA256SUMS");
is_deeply [sort split /\n/, `cd $release && find . -type f ! -name 'SHA256SUMS*' -printf '%P\\n'`], [sort map { /^\w+  (.*)$/ ? $1 : () } split /\n/, Petrel::slurp("$release/SHA256SUMS")], 'every file has one';
SKIP: {
    skip 'minisign is not installed', 1 if !Petrel::have('minisign');
    said("cp $release/SHA256SUMS $work/ && minisign -GW -s $work/key -p $work/key.pub >/dev/null && cd $work && minisign -S -s key -m SHA256SUMS </dev/null");
    said("cd $work && minisign -V -q -p key.pub -m SHA256SUMS");
    system("echo x >>$work/SHA256SUMS");
    isnt system("cd $work && minisign -V -q -p key.pub -m SHA256SUMS >/dev/null 2>&1"), 0, 'other sums are not signed';
}
like `tar -tzf $release/petrel-*.tar.gz | head -n 1`, qr{^petrel-[\d.]+/$}, 'the source is in a directory of its own';

# --- Alpine: streams of gzip behind each other

for my $apk (glob "$release/*.apk") {
    my ($name) = $apk =~ m{([^/]+)$};
    my $bytes = Petrel::slurp($apk);
    my @starts;
    push @starts, pos($bytes) - 4 while $bytes =~ /\x1f\x8b\x08\x00/g;
    my ($data) = grep { Petrel::spit("$work/data.gz", substr $bytes, $_); system("gzip -t $work/data.gz 2>/dev/null && tar -tzf $work/data.gz >/dev/null 2>&1") == 0 } reverse @starts;
    my %info = said("tar -xzOf $apk .PKGINFO 2>/dev/null") =~ /^(\w+) = (.*)$/mg;
    is $info{datahash}, sha256_hex(substr $bytes, $data), "$name: the sum of its data";
    is "petrel-$info{pkgver}.$info{arch}.apk", $name, 'its name';
    my $root = "$work/$name";
    said("mkdir $root && python3 - $apk $root <<'PY'
import hashlib, sys, tarfile
seen = 0
with tarfile.open(sys.argv[1]) as archive:
    for member in archive:
        if member.isfile() and not member.name.startswith('.'):
            assert member.pax_headers['APK-TOOLS.checksum.SHA1'] == hashlib.sha1(archive.extractfile(member).read()).hexdigest()
            seen += 1
    archive.extractall(sys.argv[2])
assert seen > 5
PY");
    bare($root);
    for my $script ('.pre-install', '.post-install', '.pre-upgrade', '.post-install') { said("chroot $root /bin/sh /$script") if $> == 0 }
    like `stat -c '%a %u' $root/var/spool/petrel; grep petrel $root/etc/passwd`, qr/^711 [1-9]\d*\npetrel:/, 'its user has the spool' if $> == 0;
}

# --- OpenWrt

for my $ipk (glob "$release/*.ipk") {
    my ($processor) = $ipk =~ /-1_(.+)\.ipk$/;
    my $root = "$work/ipk-$processor";
    said("mkdir -p $root/control && tar -xzf $ipk -C $root ./debian-binary ./control.tar.gz ./data.tar.gz && tar -xzf $root/control.tar.gz -C $root/control && tar -xzf $root/data.tar.gz -C $root");
    is Petrel::slurp("$root/debian-binary"), "2.0\n", "$processor: the form";
    like Petrel::slurp("$root/control/control"), qr/^Package: petrel\nVersion: \S+\nArchitecture: all\n/, 'control';
    is Petrel::slurp("$root/control/conffiles"), "/etc/config/petrel\n", 'its settings stay';
    bare($root);
    Petrel::spit("$root/etc/init.d/petrel", "#!/bin/sh\necho \"\$1\" >>/calls\n");
    if ($> == 0) {
        my $ours = $processor eq `uname -m` =~ s/\n//r;
        is system("chroot $root /bin/sh /control/preinst >/dev/null 2>&1") == 0, $ours, 'a system of another processor is refused';
        said("chroot $root /bin/sh /control/$_") for qw(postinst prerm);
        is Petrel::slurp("$root/calls"), "enable\nstop\ndisable\n", 'its service';
    }
}

# A root with nothing but busybox, and two commands that Debian's lacks.
sub bare {
    my $root = shift;
    return if $> != 0;
    my %users = (addgroup => 'echo petrel:x:101: >>/etc/group', adduser => 'echo petrel:x:100:101::: >>/etc/passwd');
    system("mkdir -p $root/bin $root/dev $root/etc/init.d && mknod -m 666 $root/dev/null c 1 3 && cp /bin/busybox $root/bin/ && chroot $root /bin/busybox --install -s /bin 2>/dev/null; touch $root/etc/passwd $root/etc/group $root/etc/shadow") == 0 or die;
    for my $command (keys %users) { unlink "$root/bin/$command"; chmod 0755, Petrel::spit("$root/bin/$command", "#!/bin/sh\n$users{$command}\n") }
    return;
}

# --- RPM

for my $rpm (Petrel::have('rpm') ? glob "$release/*.rpm" : ()) {
    my $root = "$work/rpm-" . ($rpm =~ /\.(\w+)\.rpm$/)[0];
    said("rpm -K --nosignature $rpm");
    like said("rpm -qp --configfiles $rpm"), qr{^/etc/petrel/petrel\.conf$}m, 'its settings stay';
    next if $> != 0;
    mkdir $root;
    bare($root);
    system("printf '#!/bin/sh\nexit 2\n' >$root/bin/getent; printf '#!/bin/sh\nadduser -S -D -H petrel; addgroup -S petrel\n' >$root/bin/useradd; chmod 755 $root/bin/getent $root/bin/useradd");
    said("rpm --root $root --initdb && rpm --root $root --nodeps --ignorearch -i $rpm");
    like `stat -c '%a' $root/var/spool/petrel $root/usr/sbin/petrel`, qr/^711\n755\n/, 'its spool and program';
    system("echo '# mine' >>$root/etc/petrel/petrel.conf");
    said("rpm --root $root --nodeps --ignorearch -U --force $rpm && grep -q mine $root/etc/petrel/petrel.conf");
    said("rpm --root $root --nodeps -e petrel");
    ok !-e "$root/usr/sbin/petrel" && -e "$root/etc/petrel/petrel.conf.rpmsave" && -d "$root/var/spool/petrel", 'what was changed, and mail, stay';
}

# --- The image: each digest, and each processor

my ($oci) = glob "$release/*.oci.tar";
said("mkdir $work/oci && tar -xf $oci -C $work/oci");
is sha256_hex(Petrel::slurp($_)), s{.*/}{}r, 'a digest' for glob "$work/oci/blobs/sha256/*";
my $blob = sub { my $of = shift; return decode_json(Petrel::slurp("$work/oci/blobs/sha256/" . ($of->{digest} =~ s/^sha256://r))) };
my $index = $blob->(decode_json(Petrel::slurp("$work/oci/index.json"))->{manifests}[0]);
my @programs = glob "$release/petrel-*-linux-*";
is @{ $index->{manifests} }, @programs, 'the index has every processor';
for my $of (@{ $index->{manifests} }) {
    my $manifest = $blob->($of);
    is $blob->($manifest->{config})->{architecture}, $of->{platform}{architecture}, "$of->{platform}{architecture}: the settings say so, too";
}

# --- Components; the chart

my $sbom = decode_json(Petrel::slurp((glob "$release/*.spdx.json")[0]));
is $sbom->{spdxVersion}, 'SPDX-2.3', 'the list of components';
my %sums = map { my ($sum) = grep { $_->{algorithm} eq 'SHA256' } @{ $_->{checksums} }; ("$release/" . $_->{fileName} =~ s{^\./}{}r => $sum->{checksumValue}) } @{ $sbom->{files} };
is_deeply \%sums, { map { $_ => sha256_hex(Petrel::slurp($_)) } @programs }, 'has the programs';
my %ids = map { $_->{SPDXID} => 1 } @{ $sbom->{packages} }, @{ $sbom->{files} }, $sbom;
is_deeply [grep { !$ids{ $_->{spdxElementId} } || !$ids{ $_->{relatedSpdxElement} } } @{ $sbom->{relationships} }], [], 'and relates what it has';
like `tar -xzOf $release/petrel-chart-*.tgz petrel/Chart.yaml`, qr/^version: \d+\.\d+\.\d+\nappVersion: "\d/m, 'the chart has the version';
done_testing;
