#!/bin/sh
# t/run.sh: all files run with any result of one, and the end shows failures and the command that runs each alone.
cd "$(dirname "$0")/../.." || exit 1
n=0 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
file() { printf '#!/bin/sh\n%s\n' "$2" >"$dir/$1.t"; chmod +x "$dir/$1.t"; }
is() { # name, command...
    n=$((n + 1)); name=$1; shift
    if "$@"; then echo "ok $n - $name"; else echo "not ok $n - $name"; sed 's/^/# /' "$dir/said"; failed=1; fi
}
says() { grep -qxF -- "$1" "$dir/said"; }
run() { BUILD=elsewhere t/run.sh "$@" >"$dir/said" 2>&1; code=$?; }

file good 'echo usage: of it >&2; echo ok 1 - fine; echo "1..1"; touch "${0%good.t}ran"'
file skipped 'echo "1..0 # skip: not here"'
file bad 'echo ok 1 - a; echo "# hm"; echo not ok 2 - b; echo "# got x" >&2; echo ok 3 - c; echo "1..3"; echo "# $BUILD"'
file dead 'echo ok 1 - alive; kill -SEGV $$'
file mute 'exit 3'

run "$dir/good.t" "$dir/skipped.t"
is 'good files' [ $code -eq 0 ]
rm "$dir/ran"
run "$dir/bad.t" "$dir/dead.t" "$dir/mute.t" "$dir/good.t"
is 'bad ones' [ $code -ne 0 ]
is 'keep no other from running' [ -e "$dir/ran" ]
for name in bad dead mute; do
    is "how to run $name alone" says "    BUILD=elsewhere prove -v $dir/$name.t"
done
is 'no noise of the good' [ "$(grep -c usage "$dir/said")" -eq 0 ]
is 'nothing of the others' [ "$(grep -c 'prove -v' "$dir/said")" -eq 3 ]
is 'what failed' says 'not ok 2 - b'
is 'and what was said of it' says '# got x'
is 'but not of the rest' [ "$(grep -c 'hm\|- c$' "$dir/said")" -eq 0 ]
is 'where one ended' says 'ended after: ok 1 - alive'
is 'that said nothing' says 'ended after: nothing'
echo "1..$n"
exit $failed
