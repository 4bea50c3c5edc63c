#!/usr/bin/python3
"""dkim_verify.py [--every N] RECORDS FILE...: verifies each DKIM-Signature of each message with dkimpy.

RECORDS has lines NAME RECORD. Prints a line for each file: NAME-OF-FILE, then pass or fail for
each signature from above, then how many of the changes that must break a signature did not:
another field of a signed name in front, a changed value of each signed field, a changed body.
The changes are tried with every Nth file (10).
"""
import re
import sys

import dkim

arguments = sys.argv[1:]
every = 10
if arguments[0] == "--every":
    every = int(arguments[1])
    del arguments[:2]
records = {}
for line in open(arguments[0], encoding="ascii"):
    name, record = line.rstrip("\n").split(" ", 1)
    records[name.encode() + b"."] = record.encode()


def record(name, timeout=5):
    return records.get(name)


def passes(message, index):
    try:
        return dkim.DKIM(message).verify(idx=index, dnsfunc=record)
    except dkim.DKIMException:
        return False


def survivors(message, count):
    """Changes that at least one signature survives."""
    head, end, body = message.partition(b"\r\n\r\n")
    names = re.search(rb"h=([^;]*);", head).group(1)
    names = {n.strip().lower() for n in names.split(b":")}
    always = [b"from", b"subject", b"to", b"cc", b"reply-to", b"date"]
    fields = re.split(rb"\r\n(?![ \t])", head)
    changed = [b"\r\n".join([b"%s: other@x.test" % n] + fields) + end + body for n in always]
    for i, field in enumerate(fields):
        name = field.split(b":", 1)[0].strip().lower()
        if name in names:
            changed.append(b"\r\n".join(fields[:i] + [field + b" x"] + fields[i + 1:]) + end + body)
    changed.append(head + b"\r\n\r\nx" + body)
    return sum(1 for c in changed for i in range(count) if passes(c, i))


tried = 0
for path in arguments[1:]:
    message = open(path, "rb").read()
    count = len(re.findall(rb"^dkim-signature\s*:", message.partition(b"\r\n\r\n")[0], re.I | re.M))
    results = ["pass" if passes(message, i) else "fail" for i in range(count)]
    tried += 1
    left = survivors(message, count) if count and tried % every == 1 % every else 0
    print(path.rsplit("/", 1)[-1], " ".join(results) or "none", left)
