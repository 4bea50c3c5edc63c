#!/usr/bin/perl
# The operator's hand: petrel queue hold, release, bounce; by id and by filter, with a daemon and without, while a
# delivery runs, over restarts and kill -9, two at once, and beside a daemon that hangs.
use lib 't/e2e';
use E2E;

my $id_pattern = qr/[0-9A-Z]{10}-[0-9A-Z]{8}/;
my $dead = Petrel::free_port();   # nobody listens there, for now
my $sink = Sink->start('--fail-rcpt', 'later:450');
my $petrel = Petrel->new(
    routes => "dead.test smtp://127.0.0.1:$dead\n.hold.test hold\n* smtp://127.0.0.1:$sink->{port}",
    initial_destination_concurrency => 1)->start;
my $body = "Subject: hi\n\nletter";
my $nothing = "petrel queue: nothing to do: no message matches, or none needs a change\n";

sub queue { return $petrel->run('queue', @_) }
sub send_one {
    my ($from, @to) = @_;
    my ($id) = $petrel->send_mail($from, \@to, $body) =~ /queued as ($id_pattern)/ or die 'not accepted';
    return $id;
}
sub ids { my ($code, $text) = queue(@_); return join ' ', sort $text =~ /^($id_pattern) /mg }
sub listing { my ($code, $text) = queue('ls', '--json', @_); return map { decode_json($_) } split /\n/, $text }
sub place { my $id = shift; return join ' ', map { $_->{queue_name} } grep { $_->{queue_id} eq $id } listing() }
sub in_place { my ($id, $place) = @_; return Petrel::wait_for(sub { place($id) eq $place }) }
sub all_gone { return Petrel::wait_for(sub { (queue('ls'))[1] eq '' }) }
sub deferred { my $id = shift; return $petrel->wait_log(qr/ $id: to=.*status=deferred/) }
sub tries { my $id = shift; return scalar(() = $petrel->log =~ / $id: to=/g) }
# A message that is deferred.
sub waiting { my $id = send_one(@_); ok deferred($id) && in_place($id, 'deferred') && $petrel->wait_filed, 'one is deferred'; return $id }
# Commands that are to say one line about one message.
sub says { my ($id, $line, @command) = @_; is_deeply [queue(@command, $id)], [0, "$id $line\n"], "@command: $line"; return }

# --- Hold and release

my $one = waiting('anna@here.test', 'x@dead.test');
my $two = waiting('bob@there.test', 'y@dead.test');
says($one, 'held', 'hold');
says($one, 'is held already', 'hold');
is place($one), 'hold', 'ls shows the place';
is place($two), 'deferred', 'the other one waits as before';
like +(queue('ls'))[1], qr/^$one hold .*\(held by the operator\)$/m, 'and why';
like +(queue('show', $one))[1], qr/^reason: +held by the operator, \d+s ago$/m, 'show tells why and since when';
my ($shown) = listing('--queue', 'hold');
is $shown->{reason}, 'held by the operator', 'so does --json';
cmp_ok abs($shown->{since} - time), '<', 600, 'with the time';
ok $petrel->wait_log(qr/ $one: held by the operator/), 'it is logged';
my ($code, $text) = queue('retry', $one);
is $code, 69, 'held mail is not retried';
like $text, qr/^petrel queue: $one: is held and cannot be retried$/, 'which is said';
is_deeply [queue('release', $two)], [69, "petrel queue: $two: is not held\n"], 'release of what is not held';

my $alive = Sink->start('--listen', "127.0.0.1:$dead");
my $before = tries($one);
is +(queue('retry', '--all'))[0], 0, 'retry --all';
ok $alive->wait_for('y@dead.test'), 'the other one is delivered';
is $petrel->stop, 0, 'a restart';
$petrel->start;
is_deeply [queue('retry', '--to', 'dead.test')], [0, $nothing], 'retry by filter does not mean held mail';
is place($one), 'hold', 'it is held still';
$petrel->kill9;
$petrel->start;
my $barrier = send_one('bob@there.test', 'barrier@dead.test');
ok $alive->wait_for('barrier@dead.test'), 'after kill -9 others are delivered';
is place($one), 'hold', 'that one is held';
is tries($one), $before, 'and was never tried';
says($one, 'released', 'release');
ok $alive->wait_for('x@dead.test'), 'released it is delivered at once';
ok all_gone(), 'that was all';

# For a person who waits: how many, on the terminal of standard error; nothing for a script.
SKIP: {
    skip 'no python3, or no terminals', 6 unless Petrel::have('python3') && -c '/dev/ptmx';
    my $told = "$petrel->{dir}/told";
    my $python = <<'END';
import os, sys
master, slave = os.openpty()
child = os.fork()
if child == 0:
    os.close(master)
    os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    os.dup2(slave, 2)
    os.execv(sys.argv[2], sys.argv[2:])
os.close(slave)
said = b""
try:
    while piece := os.read(master, 4096):
        said += piece
except OSError:
    pass  # EIO: nobody has the other end any more
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END
    my $on_terminal = sub { return Petrel::command('', 'python3', '-c', $python, $told, $Petrel::binary, '-c', $petrel->conf, 'queue', @_) };
    my @ids = map { send_one('anna@here.test', "$_\@x.hold.test") } qw(a b c);
    for my $id (@ids) { in_place($id, 'hold') }
    # Between them counts, if the machine is slow.
    my ($code, $said) = $on_terminal->('ls', '--to', 'x.hold.test');
    like $said, qr/\A(?:\d+ \.\.\.\r)*3 messages\r\n\z/, 'queue ls tells a terminal how many';
    is scalar(() = Petrel::slurp($told) =~ /^$id_pattern hold /mg), 3, 'and lists them where it should';
    ($code, $said) = $on_terminal->('release', '--from', 'nobody@here.test');
    is $said, $nothing =~ s/\n/\r\n/r, 'nothing to do';
    ($code, $said) = $on_terminal->('rm', '--to', 'x.hold.test');
    is $code, 0, 'queue rm';
    like $said, qr/\A(?:\d+ \.\.\.\r)*3 messages\r\n\z/, 'tells it, too';
    is Petrel::slurp($told), join('', map { "$_ removed\n" } sort @ids), 'and the lines are as ever';
}

# A route that holds.
my $held = send_one('anna@here.test', 'a@x.hold.test', 'later@x.hold.test');
ok in_place($held, 'hold'), 'a route holds';
like +(queue('show', $held))[1], qr/^reason: +held by a route, \d+s ago$/m, 'and says so';
says($held, 'released', 'release');
ok $sink->wait_for('a@x.hold.test'), 'released mail passes that route';
ok in_place($held, 'deferred') && $petrel->wait_filed, 'its other recipient is deferred';
is $petrel->stop, 0, 'a restart';
$petrel->start;
says($held, 'is due now', 'retry');
ok Petrel::wait_for(sub { (() = $petrel->log =~ / $held: to=<later\@x\.hold\.test>/g) >= 2 }), 'and it passes after a restart, too';
ok in_place($held, 'deferred'), 'deferred again';
says($held, 'removed', 'rm');

# --- By filter, with a daemon and without

for my $daemon (1, 0) {
    my $how = $daemon ? 'with a daemon' : 'without one';
    $alive->stop;
    my %id = (a => waiting('anna@here.test', 'x@dead.test'), b => waiting('bob@there.test', 'y@dead.test', 'z@other.dead.test'),
        c => waiting('', 'later@live.test'));
    my $some = sub { return join ' ', sort map { $id{$_} } @_ };
    is $petrel->stop, 0, 'the daemon stops' unless $daemon;
    for my $case (
        ['--to nobody.test'], ['--to dead.test', qw(a b)], ['--from bob@there.test', 'b'], ['--from <>', 'c'], ['--older 1h'],
        ['--older 0s', qw(a b c)], ['--queue deferred', qw(a b c)], ['--queue active'], ['--from here.test --to dead.test --queue deferred', 'a'],
        ['--all', qw(a b c)], ["$id{a} $id{c}", qw(a c)], ["$id{a} $id{c} --to dead.test", 'a'], ["$id{b} --queue hold"],
        )
    {
        my ($filter, @wanted) = @$case;
        my $name = $filter =~ /^--/ ? $filter : 'ID...';
        my ($hold_code, $hold) = queue('hold', split / /, $filter);
        is_deeply [$hold_code, join ' ', sort $hold =~ /^($id_pattern) held$/mg], [0, $some->(@wanted)], "$how: hold $name";
        is ids('ls', '--queue', 'hold'), $some->(@wanted), 'these are held';
        my ($code, $text) = queue('release', '--queue', 'hold');
        is_deeply [$code, join ' ', sort $text =~ /^($id_pattern) released$/mg], [0, $some->(@wanted)], 'and released' or diag $text;
        ok Petrel::wait_for(sub { ids('ls', '--queue', 'deferred') eq $some->(qw(a b c)) }), 'all are deferred again';
    }
    is_deeply [map { $_->{text} } map { decode_json($_) } split /\n/, (queue('hold', '--json', '--from', '<>'))[1]], ['held'], "$how: --json";
    is_deeply [queue('hold', '--all')], [0, join '', map { "$id{$_} held\n" } qw(a b)], 'the oldest first; what is held is not told';
    is_deeply [queue('retry', '--all')], [0, $daemon ? "all that waits is due now\n" : ''], 'retry --all' ;
    is ids('release', '--all'), $some->(qw(a b c)), 'release --all';
    is +(queue('hold', $id{a}))[0], 0, 'one is held';
    $daemon ? $petrel->kill9 : ok !$petrel->{pid}, 'kill -9';
    is place($id{a}), 'hold', 'before the daemon is back';
    $alive->again;
    $petrel->start;
    is +(queue('retry', '--all'))[0], 0, 'the daemon is back: retry --all';
    ok $alive->wait_for('y@dead.test', $daemon + 1), 'released mail is delivered';
    is place($id{a}), 'hold', 'the held one is held';
    ok in_place($id{b}, ''), 'and gone';
    is ids('rm', '--all'), $some->(qw(a c)), 'rm --all takes held ones, too';
    ok all_gone(), 'nothing is left';
}

# --- Bounce

my $notices = 0;
sub notice {
    my ($what, @patterns) = @_;
    my $notice = $sink->wait_for('anna@here.test', ++$notices) or return fail("$what: a bounce");
    is $notice->{from}, '', "$what: the sender is told";
    like $notice->{data}, $_, 'what and why' for @patterns;
    return;
}
$alive->stop;
my $bounced = waiting('anna@here.test', 'x@dead.test', 'y@dead.test', 'good@live.test');
says($bounced, 'returned to its sender', 'bounce');
notice('bounce', qr/returned by the operator/, qr/^Status: 5\.0\.0\r$/m, qr/x\@dead\.test/, qr/y\@dead\.test/);
unlike +($sink->for_address('anna@here.test'))[-1]{data}, qr/good\@live\.test/, 'but not of who has it';
ok $petrel->wait_log(qr/ $bounced: to=<x\@dead\.test>,.* dsn=5\.0\.0, status=bounced \(returned by the operator/), 'logged as any bounce' or diag $petrel->log;
my $bounced_held = waiting('anna@here.test', 'x@dead.test');
says($bounced_held, 'held', 'hold');
is ids('bounce', '--queue', 'hold'), $bounced_held, 'bounce by filter, of a held one';
notice('a held one', qr/returned by the operator/);
ok all_gone(), 'both are gone';
my @many = map { waiting('anna@here.test', "u$_\@dead.test") } 1 .. 3;
is $petrel->stop, 0, 'the daemon stops';
says($many[0], 'returned to its sender', 'bounce');
is ids('ls', '--from', '<>') =~ /^$id_pattern$/ ? 1 : 0, 1, 'without a daemon the bounce waits in the queue';
is ids('bounce', '--to', 'dead.test'), join(' ', sort @many[1, 2]), 'by filter';
is_deeply [queue('bounce', $many[0])], [65, "petrel queue: $many[0]: no such message\n"], 'once';
$petrel->start;
$sink->wait_for('anna@here.test', $notices + 3);
$notices += 2;
notice('three without a daemon', qr/returned by the operator/);
ok all_gone(), 'all are gone';
is scalar $sink->for_address('anna@here.test'), $notices, 'each was told once';

# --- While a delivery runs: it ends normally, then comes what was asked for

my %running;
sub run_and {
    my ($command, $line) = @_;
    $sink->hold('dot');
    my $id = $running{$command} = send_one('anna@here.test', "$command\@live.test", 'w@dead.test');
    ok in_place($id, 'active') && $sink->wait_content, 'one is active';
    says($id, $line, $command);
    $sink->let_go('dot');
    ok $sink->wait_for("$command\@live.test"), 'its delivery ends normally';
    ok $petrel->wait_log(qr/ $id: to=<$command\@live\.test>.*status=sent/), 'and is logged so';
    return $id;
}
ok in_place(run_and('hold', 'held; its delivery ends first'), 'hold'), 'what is left is held';
ok Petrel::wait_for(sub { join('', map { $_->{done} ? 1 : 0 } @{ (listing('--queue', 'hold'))[0]{recipients} }) eq '10' }), 'with what it has got so far';
run_and('bounce', 'returned to its sender when its delivery ends');
notice('in a running delivery', qr/w\@dead\.test/);
unlike +($sink->for_address('anna@here.test'))[-1]{data}, qr/bounce\@live\.test/, 'for who was left';
run_and('rm', 'removed when its delivery ends');
ok Petrel::wait_for(sub { ids('ls') eq $running{hold} }), 'one is gone, one is held';

$sink->hold('dot');
my $killed = send_one('anna@here.test', 'killed@live.test');
ok in_place($killed, 'active') && $sink->wait_content, 'another is active';
says($killed, 'held; its delivery ends first', 'hold');
is place($killed), 'hold', 'the mark is there before the delivery ends';
$petrel->kill9;
$petrel->start;
is place($killed), 'hold', 'and there after kill -9';
is scalar(() = $petrel->log =~ / $killed: to=/g), 0, 'it is not tried again';
is ids('rm', '--queue', 'hold'), join(' ', sort $killed, $running{hold}), 'rm --queue hold';
ok all_gone(), 'the queue is empty';

# --- Two at once

$sink->stop;
$sink->again;
my $bounces = 0;
for my $daemon (1, 0) {
    my $how = $daemon ? 'with a daemon' : 'without one';
    my @some = map { send_one('anna@here.test', "u$_\@x.hold.test") } 1 .. 20;
    ok Petrel::wait_for(sub { ids('ls', '--queue', 'hold') eq join ' ', sort @some }) && $petrel->wait_filed, 'twenty are held';
    is $petrel->stop, 0, 'the daemon stops' unless $daemon;
    my $log = "$petrel->{dir}/both$daemon";
    my @pids = map { Petrel::spawn("$log.$_->[0]", $Petrel::binary, '-c', $petrel->conf, 'queue', @$_) }
        ['bounce', '--queue', 'hold', '--from', 'anna@here.test'], ['rm', '--queue', 'hold', '--to', 'x.hold.test'];
    is_deeply [map { Petrel::reap($_) } @pids], [0, 0], "$how: bounce and rm at the same time";
    my $told = join '', map { Petrel::slurp($_) } glob "$log.*";
    is scalar(() = $told =~ /^$id_pattern (?:returned|removed)/mg), 20, 'each message has one fate' or diag $told;
    $petrel->start unless $daemon;
    my $returned = () = $told =~ /^$id_pattern returned/mg;
    ok all_gone(), 'all are gone';
    $bounces += $returned;
    my $arrived = sub { return scalar grep { $_->{data} =~ /x\.hold\.test/ } $sink->for_address('anna@here.test') };
    ok Petrel::wait_for(sub { $arrived->() == $bounces }), 'and a bounce is for one that was returned' or diag $arrived->(), " of $bounces";
}

# --- Reported results hold after any event

my ($removed, $returned) = map { waiting('anna@here.test', "$_\@dead.test") } qw(removed returned);
says($removed, 'removed', 'rm');
my $told = scalar $sink->for_address('anna@here.test');
says($returned, 'returned to its sender', 'bounce');
$petrel->kill9;
$petrel->start;
ok Petrel::wait_for(sub { $sink->for_address('anna@here.test') > $told }), 'kill -9 after a bounce: the sender is told';
ok all_gone(), 'neither is back' or diag((queue('ls'))[1]);

SKIP: {
    skip 'root is needed to be somebody else', 1 unless $> == 0;
    is $petrel->stop, 0, 'the daemon stops';
    my $daemon = getpwnam 'daemon';
    my $other = Petrel->new(%{ $petrel->{settings} }, spool => undef, listen => undef, user => 'daemon');
    chmod 0755, $other->{dir};
    $other->configure(spool => "$other->{dir}/spool", listen => "127.0.0.1:$other->{port}")->start;
    my @ids = map { $other->send_mail('anna@here.test', $_, $body) =~ /queued as ($id_pattern)/ } 'own1@dead.test', 'own2@x.hold.test';
    ok Petrel::wait_for(sub { (() = ($other->run('queue', 'ls'))[1] =~ / (?:deferred|hold) /g) == 2 }) && $other->wait_filed, 'a daemon that is not root';
    is $other->stop, 0, 'stops';
    is +($other->run('queue', 'hold', $ids[0]))[0], 0, 'root holds a message of its';
    is +($other->run('queue', 'bounce', $ids[1]))[0], 0, 'and bounces one';
    is_deeply [grep { (stat)[4] != $daemon } glob "$other->{dir}/spool/*/*"], [], 'nothing belongs to root';
    $other->start;
    ok Petrel::wait_for(sub { grep { $_->{data} =~ /own2\@x\.hold\.test/ } $sink->for_address('anna@here.test') }), 'the daemon can read what root wrote';
    like +($other->run('queue', 'release', $ids[0]))[1], qr/ released$/, 'and undo it';
    is $other->stop, 0, 'it stops in good order';
    unlike $other->log, qr/error:|denied/, 'and had no trouble';
    $petrel->start;
}

# --- corrupt/

my $damaged = send_one('anna@here.test', 'd@x.hold.test');
ok in_place($damaged, 'hold') && $petrel->wait_filed, 'one is held';
is $petrel->stop, 0, 'the daemon stops';
ok -e "$petrel->{dir}/spool/mess/$damaged", 'its content is a file';
my $content = Petrel::slurp("$petrel->{dir}/spool/mess/$damaged");
Petrel::spit("$petrel->{dir}/spool/mess/$damaged", $content =~ s/letter/lettre/r);
($code, $text) = queue('release', $damaged);
is $code, 69, 'release of a damaged one';
like $text, qr/^petrel queue: $damaged: is still damaged: see its note in corrupt\/$/m, 'is refused';
like +(queue('ls'))[1], qr/^$damaged corrupt  \(the content is damaged\) see corrupt\/$damaged\.note$/m, 'it is in corrupt/, and ls says why';
is_deeply [queue('hold', $damaged)], [65, "petrel queue: $damaged: is damaged: its files are in corrupt/\n"], 'where nothing else reaches it';
is_deeply [queue('release', '--all')], [0, $nothing], 'nor is it meant by --all';
$petrel->start;
is +(queue('release', $damaged))[0], 69, 'the same with a daemon';
Petrel::spit("$petrel->{dir}/spool/corrupt/$damaged.mess", $content);
says($damaged, 'released', 'release');
ok $sink->wait_for('d@x.hold.test'), 'repaired it is delivered';
ok all_gone(), 'and gone';
is scalar(() = glob "$petrel->{dir}/spool/corrupt/*"), 0, 'nothing is left in corrupt/';

# --- A daemon that hangs

my $stuck = send_one('anna@here.test', 's@x.hold.test');
ok in_place($stuck, 'hold'), 'one is held';
my $files = join ' ', sort glob "$petrel->{dir}/spool/*/$stuck*";
kill 'STOP', $petrel->{pid};
($code, $text) = queue('rm', $stuck);
is join(' ', sort glob "$petrel->{dir}/spool/*/$stuck*"), $files, 'nobody else touches the files';
kill 'CONT', $petrel->{pid};
is $code, 69, 'a daemon that hangs';
like $text, qr/\Apetrel queue: [^\n]*daemon[^\n]*answer[^\n]*\n\z/, 'is told of in one line';
is $petrel->stop, 0, 'it stops in good order';
unlike $petrel->log, qr/Assertion|Sanitizer/, 'and had no accident';

done_testing;
