#!/bin/sh
# Fetches Postfix's package for its smtp-sink and smtp-source without installing a second mail
# system: unpacked into a folder of its own.
set -e
target=${POSTFIX_ROOT:-/opt/petrel-test-postfix}
[ -x "$target/usr/sbin/smtp-sink" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 777 .
apt-get download -q postfix
mkdir -p "$target"
dpkg -x postfix_*.deb "$target"
# Its own libraries are found through LD_LIBRARY_PATH=$target/usr/lib/postfix; the others it names.
libraries=$(dpkg-deb -f postfix_*.deb Depends | tr ',|' '\n\n' | awk '$1 ~ /^lib/ { print $1 }' | sort -u)
env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $libraries
