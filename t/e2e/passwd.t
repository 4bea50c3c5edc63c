#!/usr/bin/perl
# petrel passwd: lines for auth_users, from a pipe and from a terminal, checked by Python's hashlib.
use lib 't/e2e';
use E2E;

my $python = Petrel::have('python3') or plan skip_all => 'python3 is not installed';
my $scratch = tempdir('passwd-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# All cases in one program; it speaks TAP.
Petrel::spit("$scratch/try.py", <<'PYTHON');
import base64, hashlib, hmac, os, pty, re, select, subprocess, sys, termios, time
petrel, count = sys.argv[1], 0

def ok(good, name):
    global count
    count += 1
    print('%s %d - %s' % ('ok' if good else 'not ok', count, name), flush=True)

def verify(line, user, password):
    m = re.fullmatch(r'(.*):SCRAM-SHA-256\$(\d+):([^$:]+)\$([^$:]+):([^$:]+)\n', line)
    if not m or m[1] != user:
        return False
    salted = hashlib.pbkdf2_hmac('sha256', password, base64.b64decode(m[3], validate=True), int(m[2]))
    key = hmac.new(salted, b'Client Key', 'sha256').digest()
    return (int(m[2]) >= 4096 and len(base64.b64decode(m[3])) == 16
            and base64.b64decode(m[4], validate=True) == hashlib.sha256(key).digest()
            and base64.b64decode(m[5], validate=True) == hmac.new(salted, b'Server Key', 'sha256').digest())

def pipe(given, *arguments):
    return subprocess.run([petrel, 'passwd', *arguments], input=given, capture_output=True, timeout=30)

for name, given, password in (
        ('a line', b'pencil\n', b'pencil'), ('without its end', b'pencil', b'pencil'),
        ('CRLF', b'pencil\r\n', b'pencil'), ('the first of two', b'pencil\nother\n', b'pencil'),
        ('UTF-8 and spaces', ' pä$s:wörd \n'.encode(), ' pä$s:wörd '.encode()), ('longest', b'x' * 128 + b'\n', b'x' * 128)):
    r = pipe(given, 'alice@example.org')
    ok(r.returncode == 0 and r.stderr == b'' and verify(r.stdout.decode(), 'alice@example.org', password), 'pipe: ' + name)
ok(pipe(b'pencil\n', 'a').stdout != pipe(b'pencil\n', 'a').stdout, 'the salt is new each time')
for name, given, arguments, code in (
        ('nothing', b'', ['a'], 65), ('empty', b'\n', ['a'], 65), ('too long', b'x' * 129 + b'\n', ['a'], 65),
        ('far too long', b'x' * 100000, ['a'], 65), ('control', b'a\tb\n', ['a'], 65), ('NUL', b'a\0b\n', ['a'], 65),
        ('not UTF-8', b'a\xff\n', ['a'], 65), ('no user', b'x\n', [], 64), ('two users', b'x\n', ['a', 'b'], 64),
        ('a flag', b'x\n', ['-x'], 64), ('colon', b'x\n', ['a:b'], 65), ('comment', b'x\n', ['#a'], 65),
        ('empty name', b'x\n', [''], 65), ('name with LF', b'x\n', ['a\nb'], 65), ('long name', b'x\n', ['a' * 129], 65),
        ('space before', b'x\n', [' a'], 65)):
    r = pipe(given, *arguments)
    ok(r.returncode == code and r.stdout == b'' and r.stderr.count(b'\n') == 1, 'refused: ' + name)

def terminal(answers):
    """Each answer at its prompt; exit code, output, what the terminal showed, whether it echoes again."""
    main, side = pty.openpty()
    p = subprocess.Popen([petrel, 'passwd', 'alice'], stdin=side, stdout=subprocess.PIPE, stderr=side, start_new_session=True)
    seen, end = b'', time.time() + 30
    for i, answer in enumerate(answers):
        while seen.count(b': ') <= i and time.time() < end:
            if select.select([main], [], [], 0.1)[0]:
                seen += os.read(main, 1000)
        os.write(main, answer)
    out, _ = p.communicate(timeout=30)
    while select.select([main], [], [], 0.1)[0]:
        seen += os.read(main, 1000)
    return p.returncode, out.decode(), seen, bool(termios.tcgetattr(side)[3] & termios.ECHO)

code, out, seen, echo = terminal([b'pencil\n', b'pencil\n'])
ok(code == 0 and verify(out, 'alice', b'pencil'), 'terminal: asked twice')
ok(b'Password: ' in seen and b'Again: ' in seen and b'pencil' not in seen, 'and nothing is shown')
ok(echo, 'until it is over')
code, out, seen, echo = terminal([b'pencil\n', b'pencils\n'])
ok(code == 65 and out == '' and b'the two differ' in seen and echo, 'terminal: they differ')
code, out, seen, echo = terminal([b'pen\x03'])
ok(code == 130 and out == '' and echo, 'terminal: ^C, and it echoes again')

def hidden_before_prompt():
    """Nobody reads the prompt: standard error is a pipe that is full. Nothing is shown any more even so."""
    main, side = pty.openpty()
    reader, full = os.pipe()
    os.set_blocking(full, False)
    try:
        while os.write(full, b'x' * 65536):
            pass
    except BlockingIOError:
        os.set_blocking(full, True)
    p = subprocess.Popen([petrel, 'passwd', 'alice'], stdin=side, stdout=subprocess.PIPE, stderr=full, start_new_session=True)
    end = time.time() + 30
    while termios.tcgetattr(side)[3] & termios.ECHO and time.time() < end:
        time.sleep(0.01)
    hidden = not termios.tcgetattr(side)[3] & termios.ECHO
    p.kill()
    p.communicate()
    return hidden

ok(hidden_before_prompt(), 'the terminal is hidden before the prompt is shown')
print('1..%d' % count)
PYTHON
exit(system($python, "$scratch/try.py", $Petrel::binary) == 0 ? 0 : 1);
