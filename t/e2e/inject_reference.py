"""Puts mail into a spool; written from petrel-spool(5) alone. inject_reference.py SPOOL SENDER RECIPIENT... < MESSAGE prints its name."""
import contextlib
import os
import secrets
import stat
import sys
import time

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
TABLE = list(range(256))
for _ in range(8):
    TABLE = [c >> 1 ^ (0x82F63B78 if c & 1 else 0) for c in TABLE]


def crc(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = TABLE[(value ^ byte) & 255] ^ value >> 8
    return value ^ 0xFFFFFFFF


def make_name(time_ms, hash):  # NAMES
    digits = [DIGITS[(time_ms << 40 | hash) >> 5 * i & 31] for i in reversed(range(18))]
    return "".join(digits[:10]) + "-" + "".join(digits[10:])


def record(letter, data):
    return b"%c%d:%s\n" % (letter, len(data), data)


def envelope(name, sender, recipients, content, birth, prefix=b"", envid=b"", ret=0):  # ENVELOPE; recipients: (address, notify, orcpt)
    header = content.partition(b"\r\n\r\n")[0]
    body, utf8 = not content.isascii(), not all(text.isascii() for text in [header, sender] + [r[0] for r in recipients])
    numbers = b"%d %d %d %d %d %d 0 %d 0 0" % (birth, len(content), crc(content), ret, body, utf8, len(recipients))
    records = record(b"M", numbers) + record(b"F", sender) + record(b"E", envid) + record(b"P", prefix)
    for i, (address, notify, orcpt) in enumerate(recipients):
        records += b"T%d %d %d %d:%s%s\n" % (i, notify, len(address), len(orcpt), address, orcpt)
    form = b"petrel-todo   1\nlength %010d\n" % (16 + 18 + len(records) + 17) + records
    return form + b"crc %08x\nend\n" % crc(name.encode() + form)


def put(spool, path, data):  # INJECTION 2 and 3, 4 and 5
    made = os.open(f"{spool}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with open(made, "wb") as file:
            os.fchmod(made, 0o600 if os.stat(spool).st_uid == os.geteuid() else 0o644)
            file.write(data)
            file.flush()
            os.fsync(made)
    except OSError:
        os.unlink(f"{spool}/{path}")
        raise


def queue(spool, name):  # INJECTION 6 and 7
    os.link(f"{spool}/intd/{name}", f"{spool}/todo/{name}")
    try:
        synced = os.open(f"{spool}/todo", os.O_RDONLY)
    except PermissionError:
        synced = os.open(f"{spool}/intd/{name}", os.O_RDONLY)
    os.fsync(synced)
    os.close(synced)


def trigger(spool, name):  # TRIGGER
    for n in (2**i for i in range(11)):
        first = (DIGITS.index(name[11]) * 32 + DIGITS.index(name[12])) * n // 1024 * (1024 // n)
        part = ".%04d-%04d" % (first, first + 1024 // n - 1) if n > 1 else ""
        with contextlib.suppress(OSError), open(os.open(f"{spool}/lock/trigger{part}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "wb", 0) as fifo:
            if stat.S_ISFIFO(os.fstat(fifo.fileno()).st_mode):
                fifo.write(b"!")


def inject(spool, sender, recipients, content, **more):
    now, made = time.time_ns() // 10**6, []
    name = make_name(now, secrets.randbits(40))
    try:
        for path, data in ("mess", content), ("intd", envelope(name, sender, recipients, content, now, **more)):
            put(spool, f"{path}/{name}", data)  # EEXIST, of which the chance is 2^-40, is an error here
            made.insert(0, f"{spool}/{path}/{name}")
        made.insert(0, f"{spool}/todo/{name}")
        queue(spool, name)
    except OSError:
        for path in made:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        raise
    trigger(spool, name)
    return name


if __name__ == "__main__":
    message = sys.stdin.buffer.read().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n").replace(b"\0", b"")
    received = "Received: by localhost (inject_reference, from userid %d); %s\r\n" % (os.getuid(), time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime()))
    print(inject(sys.argv[1], sys.argv[2].encode(), [(to.encode(), 0, b"") for to in sys.argv[3:]], message, prefix=received.encode()))
