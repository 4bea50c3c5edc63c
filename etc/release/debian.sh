#!/bin/sh
# The packages for a release of Debian, built in a bare root of it: debian.sh SUITE OUT [TRIPLET...]. As root; of the commit
# that is checked out. The root is kept below build-packages/, and copied.
set -eu
. "$(dirname "$0")/common.sh"
suite=$1 out=$2
shift 2
mkdir -p "$out" "$top/build-packages"
out=$(cd "$out" && pwd)
[ "$(id -u)" = 0 ] || fail 'a bare Debian is made by root'
bare=$top/build-packages/$suite
if [ ! -d "$bare" ]; then
    rm -rf --one-file-system "$bare.new"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$bare.new" >&2
    chroot "$bare.new" apt-get -q update >&2
    mv "$bare.new" "$bare"
fi
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' INT TERM HUP

# built NAME WORDS: what dpkg-buildpackage needs, these words, and the packages, which are copied. A root for each processor: some
# libraries of Debian 13 are not installable for two (libev-dev).
built() {
    root=$work/$1
    cp -a "$bare" "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # the root does not outlive a power cut
    mkdir "$root/src"
    (cd "$top" && git archive HEAD) | tar -xf - -C "$root/src"
    unshare --mount --propagation private --pid --fork --kill-child sh -euc '
        root=$1 words=$2
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+"http_proxy=$http_proxy"} sh -euc "
                install() { apt-get \"\$@\" -y -q --no-install-recommends; }
                cd /src
                $words"' sh "$root" "$2" >&2
    for file in "$root"/debs/petrel*.deb; do cp "$file" "$out/"; done
    rm -rf --one-file-system "$root"
}
built native 'apt-get -q update
    install install make dpkg-dev build-essential
    install build-dep ./
    make -s deb DEB=/debs'
# The package for all processors is in each.
for triplet; do
    architecture=$(named "$triplet" debian)
    built "$architecture" "dpkg --add-architecture $architecture
        apt-get -q update
        install install make dpkg-dev build-essential crossbuild-essential-$architecture
        install build-dep -a$architecture ./
        make -s deb DEB=/debs CROSS=$triplet"
done
