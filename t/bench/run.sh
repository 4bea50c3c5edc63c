#!/bin/sh
# `make bench`: what this machine makes of Petrel, in ratios to Postfix where that is set up
# (sh t/bench/postfix.sh setup), and the bars of size, memory and start. Nothing is asserted.
set -eu
cd "$(dirname "$0")/../.."
export BUILD="${BUILD:-build}"
export PETREL="${PETREL:-$PWD/$BUILD/petrel}"
# For a thousand clients at a time, here and in Petrel.
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 4096 ] || ulimit -n 4096
perl t/bench/throughput.pl
perl t/bench/beside.pl
perl t/bench/tls.pl
perl t/bench/overload.pl
perl t/bench/newsletter.pl
perl t/bench/hand_over.pl
perl t/bench/dkim.pl
perl t/bench/demands.pl
perl t/bench/intake.pl
perl t/bench/copies.pl
perl t/bench/slices.pl
perl t/bench/group.pl
perl t/bench/limits.pl
perl t/bench/agree.pl
perl t/bench/join.pl
perl t/bench/flood.pl
"$BUILD"/t/bench/mime
perl t/bench/bars.pl
