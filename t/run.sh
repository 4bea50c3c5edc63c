#!/bin/sh
# Runs test files, all of them, with any result of one: BUILD=build t/run.sh FILE... The end names those that
# failed, their messages, and the command that runs each of them alone. Output until then is not shown:
# many provoke mistakes, and their complaints look like a disaster. AGAIN=3: up to three that failed beside others run once
# more, alone. One that passes then is named, with what it said at first: it is a defect to repair, but not a failure.
set -u
export BUILD="${BUILD:-build}"
# Debian's python3 has the modules of Debian's packages. One that manages versions starts a shell each time.
export PATH="/usr/bin:$PATH"
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
trap 'exit 1' INT TERM HUP

# Most tests wait more than they work: four of them for each core.
jobs=${JOBS:-$((4 * $(nproc)))}
PERL_TEST_HARNESS_DUMP_TAP=$said prove --merge --state=save --statefile="$said/.state" -j"$jobs" "$@"
code=$?
[ $code -ne 0 ] || exit 0

# Each failure and the remarks that follow it; where a file has none it ended too early.
show() {
    awk '/^ok/ { bad = 0 } /^not ok/ { bad = 1 } bad && ++lines <= 50; { last = $0 }
        END { if (!lines) print "ended after: " (last ? last : "nothing") }' "$said/$1"
}
failed=$(prove --state=failed --statefile="$said/.state" --dry)
if [ -n "$failed" ] && [ "$(echo "$failed" | wc -l)" -le "${AGAIN:-0}" ]; then
    still=
    for test in $failed; do
        if prove --merge "$test"; then
            printf '\nFAILED BESIDE OTHERS, PASSED ALONE: %s, which said at first:\n' "$test"
            show "$test" | sed 's/^/    /'
        else
            still="$still $test"
        fi
    done
    failed=$still
    [ -n "$failed" ] || exit 0
fi
printf '\nThese failed. The command runs one of them alone:\n'
for test in $failed; do
    printf '\n    BUILD=%s prove -v %s\n' "$BUILD" "$test"
    show "$test"
done
exit $code
