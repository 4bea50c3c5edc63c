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
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' INT TERM HUP
cp -a "$bare/." "$root"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/src"
(cd "$top" && git archive HEAD) | tar -xf - -C "$root/src"
commands='apt-get update; apt-get install -y -q --no-install-recommends make dpkg-dev build-essential; cd /src; apt-get build-dep -y -q --no-install-recommends ./; make -s deb DEB=/debs/native'
for triplet; do
    architecture=$(named "$triplet" debian)
    commands="$commands; dpkg --add-architecture $architecture; apt-get update; apt-get install -y -q --no-install-recommends crossbuild-essential-$architecture; apt-get build-dep -y -q --no-install-recommends -a$architecture ./; make -s deb DEB=/debs/$architecture CROSS=$triplet"
done
unshare --mount --propagation private --pid --fork --kill-child sh -euc '
    root=$1 commands=$2
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin ${http_proxy:+"http_proxy=$http_proxy"} sh -euc "$commands"' sh "$root" "$commands" >&2
# The package for all processors is in each.
for file in "$root"/debs/*/petrel*.deb; do cp "$file" "$out/"; done
