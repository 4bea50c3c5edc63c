#!/usr/bin/perl
# petrel-spool(5) is complete and true: an injector written from it alone puts mail into the spool, with and without a daemon.
use lib 't/e2e';
use E2E;
use File::Copy qw(copy);

my $daemon_user = 54321;
my $injector_user = 65534;
my $is_root = $> == 0;

# As another user where that is possible; the interpreter must be one that this user can start.
my @as_other = $is_root && Petrel::have('setpriv') ? ('setpriv', '--reuid', $injector_user, '--regid', $injector_user, '--clear-groups') : ();
my $uid = @as_other ? $injector_user : $>;
my ($python) = grep { $_ && (Petrel::command('', @as_other, $_, '-c', ''))[0] == 0 } '/usr/bin/python3', Petrel::have('python3');
plan skip_all => 'python3 is not there' if !$python;

my $scratch = tempdir('spool_page-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
copy("$Petrel::root/t/e2e/inject_reference.py", $scratch) or die;
chmod 0644, "$scratch/inject_reference.py";
@ENV{qw(PYTHONPATH PYTHONDONTWRITEBYTECODE)} = ($scratch, 1);

my $sink = Sink->start;
my %settings = (routes => "* smtp://127.0.0.1:$sink->{port}", $is_root ? (user => $daemon_user) : ());
my $petrel = Petrel->new(%settings, message_size_limit => '1M');
chmod 0755, $petrel->{dir};
my $spool = "$petrel->{dir}/spool";
umask 0077; # a hostile one: the modes are the page's

# The program itself: its name for the message.
sub inject {
    my ($message, $from, @to) = @_;
    my ($code, $said) = Petrel::command($message, @as_other, $python, "$scratch/inject_reference.py", $spool, $from, @to);
    is $code, 0, "$from: injected" or diag $said;
    return $said =~ /^(\S+)$/ ? $1 : "none: $said";
}

# Lines of Python that use its parts; what they print.
sub by_parts {
    my ($lines, @arguments) = @_;
    my $before = "import sys, os, time\nfrom inject_reference import *\nspool, now = sys.argv[1], time.time_ns() // 10**6\n"
        . "name, content = make_name(now, secrets.randbits(40)), b'Subject: parts\\r\\n\\r\\nx\\r\\n'\n"
        . "def form(*to, **more): return envelope(name, b'ann\@a.test', [(t, 0, b'') for t in to], content, now, **more)\n";
    my ($code, $said) = Petrel::command('', @as_other, $python, '-c', "$before$lines\nprint(name)\n", $spool, @arguments);
    is $code, 0, 'the steps were done' or diag $said;
    return $said =~ /^(\S+)$/ ? $1 : "none: $said";
}

# Mail that was submitted here gets a From on the way out.
sub without_from { my $data = shift; return $data =~ s/^From: [^\r\n]*\r\n//r }
sub content { my ($name, $size) = @_; return "Subject: $name\r\n\r\n" . "$name line\r\n" x ($size / 12) . "end\r\n" }
sub is_quarantined {
    my ($id, $name, @parts) = @_;
    ok Petrel::wait_for(sub { -e "$spool/corrupt/$id.note" }), "$name: quarantined" or diag $petrel->log;
    # The note comes first, and the log's line before it.
    ok Petrel::wait_for(sub { -e "$spool/corrupt/$id.$_" }), "$name: its $_ is kept" for @parts;
    ok Petrel::wait_for(sub { !-e "$spool/todo/$id" }), "$name: nothing is queued";
    like Petrel::slurp("$spool/corrupt/$id.note"), qr/^\d{10,} .+\n\z/, "$name: with the time and a reason";
    return;
}

# --- The example of the page is what the injector writes

my $page = Petrel::slurp("$Petrel::root/man/petrel-spool.5");
my ($example) = $page =~ /^    (petrel\\-todo   1\n.*?^    end\n)/ms or die 'no example';
$example =~ s/^    //mg;
$example =~ s/\\-/-/g;
my ($hex) = $page =~ /^((?:    (?:[0-9a-f]{2} )+ .*\n)+)/m or die 'no content';
my $sample = join '', map { pack 'H*', join '', /\b([0-9a-f]{2}) /g } split /\n/, $hex;
is $sample, "Subject: hello\r\n\r\nHello.\r\n", 'the content of the example';
my ($code, $written) = Petrel::command('', $python, '-c', "from inject_reference import *\nimport sys\n"
    . "name = make_name(1732079359720, 325464436970)\nassert name == '01JD3ZK5Q8-9F3K2C7A', name\nassert crc(b'123456789') == 0xe3069283\n"
    . "to = [(b'bob\@example.net', 0, b''), (b'carol\@example.com', 6, b'rfc822;c+2Bo\@example.com')]\n"
    . "sys.stdout.buffer.write(envelope(name, b'ann\@example.org', to, bytes.fromhex(sys.argv[1]), 1732079359720))\n", unpack 'H*', $sample);
is $written, $example, 'the envelope of the example';

# --- Without a daemon

($code, my $said) = Petrel::command('x', @as_other, $python, "$scratch/inject_reference.py", $spool, 'ann@a.test', 'bob@b.test');
isnt $code, 0, 'without a spool it fails';
ok !-e $spool, 'and makes nothing';
$petrel->start;
is $petrel->stop, 0, 'a daemon has made the spool';
for (['mess', 01733], ['pid', 01733], ['intd', 01733], ['todo', 01733], ['info', 0700], ['corrupt', 0700], ['journal', 0700], ['lock', 0711], ['.', 0711]) {
    is sprintf('%04o', (stat "$spool/$_->[0]")[2] & 07777), sprintf('%04o', $_->[1]), "$_->[0]/ has the mode of the page";
}
my $late = inject(content('late', 500), 'ann@late.test', 'bob@late.test', 'carol@late.test');
like $late, qr/^[0-9A-HJKMNP-TV-Z]{10}-[0-9A-HJKMNP-TV-Z]{8}$/, 'a name';
is sprintf('%04o', (stat "$spool/$_/$late")[2] & 07777), $is_root ? '0644' : '0600', "$_: its mode" for qw(mess intd todo);
is +(stat "$spool/todo/$late")[1], (stat "$spool/intd/$late")[1], 'intd and todo are one file';
like +($petrel->run(qw(queue ls --json)))[1], qr/$late/, 'the queue has it while no daemon runs';
my $young = by_parts("put(spool, f'mess/{name}', content)\nput(spool, f'intd/{name}', form(b'never\@bad.test'))");
my $bare = by_parts("put(spool, f'mess/{name}', content)");
my $stale = by_parts("put(spool, f'intd/{name}', form(b'never\@bad.test'))\nqueue(spool, name)");
my $other_name = '01JD3ZK5Q8-9F3K2C7A';
by_parts("name = '$other_name'\nput(spool, f'mess/{name}', bytes.fromhex(sys.argv[2]))\nput(spool, f'intd/{name}', sys.argv[3].encode())\nqueue(spool, name)",
    unpack('H*', $sample), $example);
$petrel->start;
my $last = $sink->wait_for('carol@late.test');
my $received = "Received: by localhost (inject_reference, from userid $uid); ";
my ($trace, $rest) = $last->{data} =~ /\A(\Q$received\E[^\r\n]*\r\n)(.*)\z/s;
ok $trace, 'the prefix comes first' or diag $last->{data};
is without_from($rest), content('late', 500), 'then the content, byte by byte';
is $last->{from}, 'ann@late.test', 'the sender';
$sink->wait_for('bob@late.test');
is_deeply [sort map { @{ $_->{to} } } grep { $_->{from} eq 'ann@late.test' } $sink->messages], ['bob@late.test', 'carol@late.test'], 'the recipients, once each';
SKIP: {
    skip 'one user', 1 if !$is_root;
    ok $petrel->wait_log(qr/ $late: uid=$uid, from=<ann\@late\.test>/), 'the log tells of its arrival';
}
is without_from($sink->wait_for('carol@example.com')->{data}), $sample, 'the example of the page arrives';
is $sink->wait_for('bob@example.net')->{from}, 'ann@example.org', 'at both';
is_quarantined($stale, 'todo without mess', 'todo', 'intd');

# --- With a daemon: the trigger

my $large = content('large', 300_000);
for (['small', content('small', 100)], ['large', $large], ['eight', "Subject: eight\r\n\r\n\xc3\xa4\r\n"], ['empty', '']) {
    my ($name, $text) = @$_;
    my $id = inject($text, '', "$name\@now.test");
    my $message = $sink->wait_for("$name\@now.test");
    ok $message, "$name: the trigger wakes the daemon" or diag $petrel->log;
    (my $got = $message->{data}) =~ s/\A\Q$received\E[^\r\n]*\r\n//;
    is without_from($got), $text, "$name: byte by byte";
    is $message->{from}, '', "$name: from the null path";
    like $message->{parameters}, $name eq 'eight' ? qr/BODY=8BITMIME/ : qr/^(?!.*BODY=8BITMIME)/, "$name: BODY";
    ok Petrel::wait_for(sub { !grep { -e "$spool/$_/$id" } qw(todo intd mess info) }), "$name: nothing is left";
}
by_parts("to = [(b'all\@dsn.test', 6, b'rfc822;a+2Bb\@x.test'), (b'never\@dsn.test', 1, b'')]\n"
    . "inject(spool, b'ann\@a.test', to, content, envid=b'QQ+2B1', ret=1)");
my ($dsn) = $sink->wait_for('all@dsn.test');
like $dsn->{parameters}, qr/RET=HDRS.*ENVID=QQ\+2B1|ENVID=QQ\+2B1.*RET=HDRS/, 'RET and ENVID';
is $dsn->{to_parameters}[0], 'NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;a+2Bb@x.test', 'NOTIFY and ORCPT';
like +($sink->wait_for('never@dsn.test'))->{to_parameters}[-1], qr/NOTIFY=NEVER/, 'NOTIFY=NEVER';

# A draft in pid/, as the page allows.
my $draft = by_parts("put(spool, f'pid/{now}.draft', content)\nos.link(f'{spool}/pid/{now}.draft', f'{spool}/mess/{name}')\nos.unlink(f'{spool}/pid/{now}.draft')\n"
    . "put(spool, f'intd/{name}', form(b'draft\@now.test'))\nqueue(spool, name)\ntrigger(spool, name)");
ok $sink->wait_for('draft@now.test'), 'a content that was a draft first';

# --- Files that differ from the page

my $write = "put(spool, f'mess/{name}', content)\nput(spool, f'intd/{name}', bytes_of_it)\nqueue(spool, name)\ntrigger(spool, name)\n";
my @damaged = (
    ['cut off', "bytes_of_it = form(b'never\@bad.test')[:-4]\n"],
    ['changed', "bytes_of_it = form(b'never\@bad.test').replace(b'never', b'newer')\n"],
    ['of another name', "good = form(b'never\@bad.test')\nname = make_name(now, secrets.randbits(40))\nbytes_of_it = good\n"],
    ['too long', "bytes_of_it = form(b'never\@bad.test') + b'\\n'\n"],
    ['with a wrong length', "bytes_of_it = form(b'never\@bad.test').replace(b'length 0', b'length 1')\n"],
    ['of a longer content', "bytes_of_it = form(b'never\@bad.test')\ncontent += b'x'\n"],
    ['of another content', "bytes_of_it = form(b'never\@bad.test')\ncontent = content.replace(b'x', b'y')\n"],
);
for my $case (@damaged) {
    my ($name, $lines) = @$case;
    is_quarantined(by_parts($lines . $write), "an envelope $name", 'todo', 'mess');
}
my $empty = by_parts("bytes_of_it = b''\n$write");
ok Petrel::wait_for(sub { !-e "$spool/todo/$empty" }), 'an empty envelope of another user: removed';
ok !-e "$spool/corrupt/$empty.note", 'without a note';

# The order is wrong: first the link, and the content when it is too late.
my $early = by_parts("put(spool, f'intd/{name}', form(b'early\@order.test'))\nqueue(spool, name)\ntrigger(spool, name)");
is_quarantined($early, 'linked before its content', 'todo', 'intd');
by_parts("name = sys.argv[2]\nput(spool, f'mess/{name}', content)\ntrigger(spool, name)", $early);
my $taken = by_parts("try: put(spool, f'mess/{sys.argv[2]}', content)\nexcept FileExistsError: pass\nelse: name = 'overwritten'", $early);
unlike $taken, qr/overwritten/, 'a name is nobody else\'s';
inject('x', '', 'later@now.test');
ok $sink->wait_for('later@now.test'), 'the daemon has looked again';
ok -e "$spool/mess/$early", 'what comes late stays as it is';
ok !$sink->for_address('early@order.test'), 'and is not delivered';
# The operator puts the two together.
rename "$spool/mess/$early", "$spool/corrupt/$early.mess" or die;
($code, $said) = $petrel->run('queue', 'release', $early);
is $code, 0, 'queue release, after a repair' or diag $said;
is $sink->wait_for('early@order.test')->{from}, 'ann@a.test', 'brings it back';

# Never queued: left alone.
for (['mess and intd', $young, 'mess', 'intd'], ['mess', $bare, 'mess']) {
    my ($name, $id, @parts) = @$_;
    ok -e "$spool/$_/$id", "$name alone: $_ is left for its injector" for @parts;
    ok !-e "$spool/corrupt/$id.note", "$name alone: not quarantined";
    unlike +($petrel->run(qw(queue ls --json)))[1], qr/$id/, "$name alone: no message";
}

# --- Trust

SKIP: {
    skip 'only root can be two users', 1 if !$is_root;
    my $whole = "put(spool, f'mess/{name}', content)\nput(spool, f'intd/{name}', bytes_of_it)\nqueue(spool, name)\ntrigger(spool, name)\n";
    my $of = sub { my ($from, $to, $more) = @_; return "bytes_of_it = envelope(name, $from, [(t, n, o) for t, n, o in $to], content, now$more)\n" };
    my @refused = (
        ['a sender that is none', $of->(q{b'a@b> X=y'}, q{[(b'never@bad.test', 0, b'')]}, '')],
        ['no recipient', $of->(q{b''}, '[]', '')],
        ['an empty recipient', $of->(q{b''}, q{[(b'', 0, b'')]}, '')],
        ['a recipient of 1001 bytes', $of->(q{b''}, q{[(b'x' * 1001, 0, b'')]}, '')],
        ['a content above message_size_limit', "content *= 60000\n" . $of->(q{b''}, q{[(b'never@bad.test', 0, b'')]}, '')],
    );
    is_quarantined(by_parts("$_->[1]$whole"), $_->[0], 'todo', 'mess') for @refused;
    is_quarantined(by_parts($of->(q{b''}, q{[(b'never@bad.test', 0, b'')]}, '') . "umask = os.fchmod\nos.fchmod = lambda file, mode: umask(file, 0o600)\n" . $whole),
        'files that the daemon may not read', 'todo', 'mess');
    is_quarantined(by_parts($of->(q{b''}, q{[(b'never@bad.test', 0, b'')]}, '') . "os.symlink('/etc/passwd', f'{spool}/mess/{name}')\nput(spool, f'intd/{name}', bytes_of_it)\nqueue(spool, name)\ntrigger(spool, name)\n"),
        'a content that is a link', 'todo');

    # Dropped, and the message goes its way.
    by_parts($of->(q{b'ann@a.test'}, q{[(b'long@drop.test', 64, b'rfc822;' + b'x' * 2048)]}, ", envid=b'x' * 101, prefix=b'X-No: end'") . $whole);
    my $dropped = $sink->wait_for('long@drop.test');
    unlike join(' ', $dropped->{parameters}, @{ $dropped->{to_parameters} }), qr/ENVID|ORCPT|NOTIFY/, 'ENVID, ORCPT, NOTIFY out of bounds are dropped';
    like $dropped->{data}, qr/\AFrom: [^\r\n]+\r\nSubject: parts\r\n/, 'and a prefix without a line end';
    by_parts("now += 10**10\n" . $of->(q{b'ann@a.test'}, q{[(b'future@drop.test', 0, b'')]}, '') . $whole);
    ok $sink->wait_for('future@drop.test'), 'a birth in the future is the present';
    my $records = q{form = bytes_of_it.replace(b'T0 ', record(b'J'[0], b'1') + record(b'C'[0], b'auth:x') + b'T0 ', 1)[34:-17]} . "\n"
        . q{form = b'petrel-todo   1\nlength %010d\n' % (len(form) + 51) + form; bytes_of_it = form + b'crc %08x\nend\n' % crc(name.encode() + form)} . "\n";
    by_parts($of->(q{b'ann@a.test'}, q{[(b'records@drop.test', 0, b'')]}, '') . $records . $whole);
    ok $sink->wait_for('records@drop.test'), 'the daemon\'s own records are dropped' or diag $petrel->log;
    by_parts($of->(q{b'ann@bounce.test'}, q{[(b'no address@', 0, b'')]}, '') . $whole);
    like $sink->wait_for('ann@bounce.test')->{data}, qr/5\.1\.3/, 'an address that is none is returned';
}
ok !$sink->for_address('never@bad.test'), 'nothing of all that was bad was delivered';
is $petrel->stop, 0, 'the daemon ends well';

# --- Several daemons: the trigger of the right one

my $half = Petrel->new(%settings, slices => 2, slice => 1);
chmod 0755, $half->{dir};
$spool = "$half->{dir}/spool";
$half->start;
ok -p "$spool/lock/trigger.0512-1023", 'the FIFO of a slice has the name of the page';
by_parts("name = make_name(now, 1 << 39 | 5)\nput(spool, f'mess/{name}', content)\nput(spool, f'intd/{name}', form(b'second\@half.test'))\nqueue(spool, name)\ntrigger(spool, name)");
ok $sink->wait_for('second@half.test'), 'its daemon is woken' or diag $half->log;
is $half->stop, 0, 'it ends well';

done_testing;
