#!/bin/sh
# A package for Alpine Linux: apk.sh TRIPLET PROGRAM VERSION FILE. With APK_KEY, a private RSA key in a file NAME.rsa, it is signed.
set -eu
. "$(dirname "$0")/common.sh"
triplet=$1 program=$2 version=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage "$program" "$work/root"
install -D -m 755 "$top/etc/openrc/petrel.initd" "$work/root/etc/init.d/petrel"
sed -i 's,/usr/local/sbin,/usr/sbin,g' "$work/root/etc/init.d/petrel"
install -D -m 644 "$top/etc/openrc/petrel.confd" "$work/root/etc/conf.d/petrel"
sed -i 's,/usr/local/sbin,/usr/sbin,g' "$work/root/etc/conf.d/petrel"
python3 "$top/etc/release/tar_with_sums.py" "$work/root" "$SOURCE_DATE_EPOCH" | gzip -n9 >"$work/data"
mkdir "$work/control"
cat >"$work/control/.PKGINFO" <<INFO
pkgname = petrel
pkgver = $version-r0
pkgdesc = $SUMMARY
url = 
builddate = $SOURCE_DATE_EPOCH
packager = $MAINTAINER
size = $(du -sb --apparent-size "$work/root" | cut -f1)
arch = $(named "$triplet" alpine)
origin = petrel
license = ISC
depend = /bin/sh
datahash = $(sha256sum <"$work/data" | cut -c1-64)
INFO
sed -i '/= $/d' "$work/control/.PKGINFO"
cp "$top"/etc/apk/.[a-z]* "$work/control/"
chmod 755 "$work"/control/.[a-z]*
# Parts before the last have no end of the archive: two blocks of zeros and what fills a record.
part() { pack - -b1 -C "$1" $(ls -A "$1") | head -c -1024 | gzip -n9; }
part "$work/control" >"$work/control.gz"
: >"$work/signature.gz"
if [ -n "${APK_KEY:-}" ]; then
    mkdir "$work/signature"
    openssl dgst -sha1 -sign "$APK_KEY" -out "$work/signature/.SIGN.RSA.$(basename "$APK_KEY").pub" "$work/control.gz"
    part "$work/signature" >"$work/signature.gz"
fi
cat "$work/signature.gz" "$work/control.gz" "$work/data" >"$out"
