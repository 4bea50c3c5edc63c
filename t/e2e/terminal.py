#!/usr/bin/python3
"""Runs a command on a terminal of 24 lines of 80 columns, by steps from standard input, one a line:
expect TEXT (what it has printed since the step before), picture LINES (drawn from the top, and no more of them), send HEX, resize ROWS, signal NAME, stop PID.
Prints a line for each: "ok STEP" or "not STEP", and at the end the exit code, and whether the terminal is as before."""
import fcntl, os, pty, select, signal, struct, sys, termios, time

PATIENCE = 60
steps = [line.rstrip('\n') for line in sys.stdin]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for i in range(3):
        os.dup2(slave, i)
    os.closerange(3, 100)
    os.execv(sys.argv[1], sys.argv[1:])

said = passed = b''


def hear(wait):
    global said
    if select.select([master], [], [], wait)[0]:
        said += os.read(master, 65536)


def expect(text):
    global said, passed
    end = time.monotonic() + PATIENCE
    while text not in said and time.monotonic() < end:
        hear(0.1)
    found = said.find(text)
    if found >= 0:
        passed = said[:found]
        said = said[found + len(text):]
    return found >= 0


def end():
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        hear(0.05)  # until it has ended its output is read: it may wait for that
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


for step in steps:
    word, _, rest = step.partition(' ')
    good = True
    if word == 'expect':
        good = expect(rest.encode())
    elif word == 'picture':
        limit = time.monotonic() + PATIENCE
        good = False
        while not good and time.monotonic() < limit:
            good = expect(b'\x1b[H') and expect(b'\x1b[J') and passed.count(b'\n') == int(rest)
    elif word == 'send':
        os.write(master, bytes.fromhex(rest))
    elif word == 'resize':
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', int(rest), 80, 0, 0))
    elif word == 'signal':
        os.kill(child, getattr(signal, 'SIG' + rest))
    elif word == 'stop':
        os.kill(int(rest), signal.SIGTERM)
    print('ok' if good else 'not', step, flush=True)
    if not good:
        print(repr(said[-2000:]), file=sys.stderr)
        os.kill(child, signal.SIGKILL)
        break

status = end()
hear(0)
same = termios.tcgetattr(slave)[:4] == before[:4]
print('signal' if os.WIFSIGNALED(status) else 'exit', os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
print('restored' if same else 'left')
