# Functions of the scripts for a release; the same input gives the same bytes: all times are SOURCE_DATE_EPOCH, all owners root.
fail() { echo "${0##*/}: $*" >&2; exit 1; }
: "${SOURCE_DATE_EPOCH:?is not set: call this by make release}"
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
top=$(cd "$(dirname "$0")/../.." && pwd)
MAINTAINER=$(sed -n 's/^Maintainer: //p' "$top/debian/control")
SUMMARY='small mail transfer agent that never loses accepted mail'

# pack FILE ARGUMENTS: a tar archive.
pack() { tar --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --numeric-owner --owner=0 --group=0 --mode=u=rwX,go=rX -cf "$@"; }

# named TRIPLET SYSTEM: how a system calls a processor.
named() {
    case $1/$2 in
        x86_64-*/oci | x86_64-*/debian) echo amd64 ;;
        aarch64-*/oci | aarch64-*/debian) echo arm64 ;;
        arm-*/oci) echo arm ;;
        arm-*/debian) echo armhf ;;
        arm-*/rpm) echo armv7hl ;;
        arm-*/kernel) echo armv7l ;;
        arm-*) echo armv7 ;;
        *) echo "${1%%-*}" ;;
    esac
}

# stage PROGRAM ROOT: what packages for all systems have in common.
stage() {
    rm -rf "$2"
    install -D -m 755 "$1" "$2/usr/sbin/petrel"
    for page in "$top"/man/petrel*.[0-9]; do install -D -m 644 "$page" "$2/usr/share/man/man${page##*.}/${page##*/}"; done
    install -D -m 644 "$top/config.example" "$2/usr/share/doc/petrel/config.example"
    install -m 644 "$top/LICENSE" "$2/usr/share/doc/petrel/LICENSE"
    install -D -m 644 "$top/debian/petrel.conf" "$2/etc/petrel/petrel.conf"
}
