#!/bin/sh
# The main job before your eyes: a message by SMTP through Petrel to another server, one into a Maildir.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
work=$(mktemp -d)
pids=
finish() {
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
await() { # file pattern: 20 seconds at most
    for _ in $(seq 200); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    echo "nothing like '$2' in $1:"; cat "$1"; exit 1
}

say 'A mail server of somebody else: the sink'
"$build/t/bench/sink" --listen 127.0.0.1:0 --directory "$work" >"$work/sink.log" 2>&1 &
pids="$pids $!"
await "$work/sink.log" '^listening'
sink=$(sed -n 's/^listening //p' "$work/sink.log")
echo "it answers at $sink"

say 'Petrel, with these settings'
mkdir -p "$work/mail/anna"
# A daemon started as root should leave it, as in real life.
user=
if [ "$(id -u)" = 0 ]; then
    user='user = nobody
'
    chmod 711 "$work"
    chown nobody "$work/mail" "$work/mail/anna"
fi
cat >"$work/petrel.conf" <<C
${user}hostname = petrel.example
listen = 127.0.0.1:0
spool = $work/spool
local_domains = petrel.example
local = maildir:$work/mail/%u
root = anna@petrel.example
routes = friends.example smtp://$sink
    * error:5.1.2 this demonstration knows only friends.example
C
cat "$work/petrel.conf"
./petrel -c "$work/petrel.conf" run >"$work/petrel.log" 2>&1 &
petrel=$!
pids="$pids $petrel"
await "$work/petrel.log" 'listening on'
listen=$(sed -n 's/.*listening on \([0-9.:]*\).*/\1/p' "$work/petrel.log" | head -1)

say 'One message by SMTP to bob@friends.example: through Petrel, to the sink'
swaks --server "${listen%:*}" --port "${listen##*:}" --helo you.example --from you@petrel.example \
    --to bob@friends.example --header 'Subject: a letter to a friend' --body 'It flew through the storm.'
await "$work/petrel.log" 'status=sent'

say 'What the sink has received'
cat "$work"/*.eml 2>/dev/null || cat "$(ls "$work"/[0-9]* | grep -v -e '\.envelope$' -e '\.meta$' | head -1)"

say 'One message by sendmail(1) to anna@petrel.example: into her Maildir'
printf 'To: anna@petrel.example\nSubject: a letter to home\n\nNo daemon is needed to hand this in.\n' |
    ./petrel -c "$work/petrel.conf" sendmail -t -f you@petrel.example
await "$work/petrel.log" 'delivered to maildir'
ls "$work"/mail/anna/new
cat "$work"/mail/anna/new/*

say 'The life of both, as Petrel has logged it'
cat "$work/petrel.log"

say 'The queue is empty again'
./petrel -c "$work/petrel.conf" queue ls
files() { find "$work/spool" -type f | grep -v -e /lock/ -e /journal/ -e /history/; }
for _ in $(seq 50); do files >/dev/null || break; sleep 0.1; done # removed when its end is durable
files || echo '(no file in the spool but the journal, a ring that stays, and the history)'
kill "$petrel"
wait "$petrel" && echo 'Petrel has stopped in good order.'
echo
echo "Next: make install install-sendmail, petrel init, systemctl enable --now petrel, petrel test YOU@EXAMPLE.ORG: see README.md."
