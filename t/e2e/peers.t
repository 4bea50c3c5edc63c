#!/usr/bin/perl
# The peers of our own tests: does the sink keep what it was sent, byte for byte, and count right;
# does it fail as told; does the load generator say what happened?
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Select;
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

my $root = abs_path(dirname(__FILE__) . '/../..');
my $build = $ENV{BUILD} || 'build';
$build = "$root/$build" unless $build =~ m{^/};
my ($sink, $load) = map { "$build/t/bench/$_" } qw(sink load);
plan skip_all => "no $sink" unless -x $sink && -x $load;
my $scratch = tempdir(CLEANUP => 1);
my $patience = 30;
my (%running, $count);
$SIG{PIPE} = 'IGNORE'; # a peer that ends is what some tests are about

END { my $code = $?; for my $pid (keys %running) { kill 'KILL', $pid; waitpid $pid, 0 } $? = $code }

# start(OPTIONS): a sink of its own; {pid, at, control, dir}.
sub start
{
    my @options = @_;
    my $dir = "$scratch/" . ++$count;
    my $pid = open(my $out, '-|', $sink, '--control', '127.0.0.1:0', '--directory', $dir, @options)
        // die "cannot start: $!";
    $running{$pid} = 1;
    my ($at, $control);
    while (my $line = <$out>) {
        $at = $1 if $line =~ /^listening (\S+)$/;
        $control = $1, last if $line =~ /^control (\S+)$/;
    }
    return {pid => $pid, at => $at, control => $control, dir => $dir, out => $out};
}

# stop(SINK): SIGTERM; its exit code and last line.
sub stop
{
    my $s = shift;
    kill 'TERM', $s->{pid};
    my @lines = do { my $out = $s->{out}; <$out> };
    waitpid $s->{pid}, 0;
    my $status = $?;
    delete $running{$s->{pid}};
    close $s->{out};
    return ($status, $lines[-1] // '');
}

sub ask
{
    my ($s, $command) = @_;
    $s->{asking} //= IO::Socket::INET->new(PeerAddr => $s->{control}) // die "control: $!";
    my $socket = $s->{asking};
    print $socket "$command\n";
    return scalar <$socket> // '';
}

sub number { my ($json, $key) = @_; return $json =~ /"$key": ([\d.]+)/ ? $1 : undef }

# run(CMD...): its output and exit code, bounded in time.
sub run
{
    my $pid = open(my $out, '-|') // die;
    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        alarm $patience * 2;
        exec @_ or POSIX::_exit(127);
    }
    my $text = join '', <$out>;
    close $out;
    return ($text, $? >> 8);
}

# A client by hand.
package Hand {
    sub new
    {
        my ($class, $s, $name) = @_;
        my $socket = IO::Socket::INET->new(PeerAddr => $s->{at}, Timeout => $patience) or die "connect: $!";
        $socket->autoflush(1);
        return bless {socket => $socket}, $class;
    }
    sub put { my ($self, $bytes) = @_; print { $self->{socket} } $bytes; return $self }

    # One reply, its lines joined; '' when the connection ended.
    sub get
    {
        my $self = shift;
        my $reply = '';
        while (my $line = readline $self->{socket}) {
            $reply .= $line;
            return $reply if $line =~ /^\d\d\d /;
        }
        return '';
    }
    sub say_ { my ($self, $line) = @_; return $self->put("$line\r\n")->get }
    sub greeted { my $self = shift; $self->get; $self->say_('EHLO x'); return $self }
    # Envelope up to 354.
    sub open_ { my ($self, @to) = @_; $self->say_('MAIL FROM:<a@b>'); $self->say_("RCPT TO:<$_>") for @to ? @to : 'c@d'; return $self->say_('DATA') }
}
package main;

sub slurp { my $file = shift; open my $in, '<:raw', $file or return; local $/; return scalar <$in> }

# --- Help and mistakes

for my $program ($sink, $load) {
    my ($text, $code) = run($program, '--help');
    is $code, 0, 'help is no mistake';
    like $text, qr/^(sink|load): /, 'and helps';
    is((run($program, '--no-such-thing'))[1], 64, 'an unknown option');
    is((run($program, 'word'))[1], 64, 'a stray word');
}
is((run($sink, @$_))[1], 64, "sink @$_") for ['--fail', 'data'], ['--fail', 'nowhere:450'], ['--fail', 'data:250'],
    ['--fail', 'data:x'], ['--delay', 'dot'], ['--close', 'nowhere'], ['--listen', 'localhost'], ['--size', '-1'], ['--capture'];
is((run($load, @$_))[1], 64, "load @$_") for [], ['--to', 'localhost:25'], ['--to', '127.0.0.1:1', '--messages', '0'],
    ['--to', '127.0.0.1:1', '--rcpt', "a\nb"];

# --- Load against sink

for my $case (
    [], ['--pipeline'], ['--per-connection', 7], ['--pipeline', '--per-connection', 7], ['--connections', 1],
    ['--size', 0], ['--size', 239], ['--pipeline', '--size', 100_000], ['--recipients', 5], ['--pipeline', '--recipients', 5],
    )
{
    my $s = start();
    my %option = (messages => 300, connections => 5, size => 1000, recipients => 1);
    my %given = map { s/^--//r } grep { $_ ne '--pipeline' } @$case;
    $option{$_} = $given{$_} for keys %given;
    my ($text, $code) = run($load, '--to', $s->{at}, (map { ("--$_", $option{$_}) } sort keys %option), grep { $_ eq '--pipeline' } @$case);
    is $code, 0, "load @$case" or diag $text;
    is number($text, 'accepted'), 300, '... all are accepted';
    is number($text, 'refused') + number($text, 'lost'), 0, '... none refused or lost';
    my $stats = ask($s, 'stats');
    is number($stats, 'messages'), 300, '... the sink has counted them';
    is number($stats, 'recipients'), 300 * $option{recipients}, '... and their recipients';
    is number($stats, 'bytes'), 300 * $option{size}, '... and their bytes' if $option{size} > 250;
    my @kept = glob "$s->{dir}/*.eml";
    is scalar @kept, 300, '... all are kept';
    my $wrong = grep { my $t = slurp($_); $t !~ /\r\n\z/ || $t =~ /\r(?!\n)|(?<!\r)\n/ } @kept;
    is $wrong, 0, '... with CRLF line ends only';
    my %to;
    for my $file (glob "$s->{dir}/*.envelope") { $to{$_}++ for slurp($file) =~ /^X-Sink-To: (.*)$/mg }
    is scalar(keys %to), 300 * $option{recipients}, '... each recipient is another';
    is scalar(grep { !/^[0-9]{8}\.(eml|envelope)$/ } map { s{.*/}{}r } glob "$s->{dir}/*"), 0, '... nothing half is left';
    my ($status, $last) = stop($s);
    is $status, 0, '... it ends on SIGTERM';
    is number($last, 'messages'), 300, '... and says its numbers';
}

{
    my $s = start();
    my ($text) = run($load, '--to', $s->{at}, '--messages', 200, '--rate', 400, '--answers', "$scratch/answers");
    my $seconds = number($text, 'seconds');
    ok $seconds > 0.4 && $seconds < 60, 'a rate is kept' or diag $text;
    my @answers = split /\n/, slurp("$scratch/answers");
    is scalar @answers, 200, 'an answer for each message';
    is scalar(grep { /^\d+ 250 2\.0\.0 / } @answers), 200, 'all of them good';
    my %seen = map { /^(\d+)/ => 1 } @answers;
    is scalar(keys %seen), 200, 'for all numbers';
    ok defined number($text, $_), "prints $_" for qw(messages per_second p50 p99 max);
    stop($s);
}

# --- Byte for byte

my @contents = (
    "", "\r\n", "x\r\n", ".\r\n", "..\r\n", ".x\r\n", "a\r\n.\r\nb\r\n", "\r\n.\r\n\r\n", "a: b\r\n\r\n" . ("." x 1000) . "\r\n",
    "x" x 100_000 . "\r\n", "bare\nLF\n.\nhere\r\n", "bare\rCR\r.\rhere\r\n", "\r\r\n.\r\r\nx\r\n", "nul\0s\r\n", "\x80\xff\xfc\r\n",
    "\n.\r\nx\r\n", "\r.\r\nx\r\n", join('', map { "line $_\r\n" . ("." x ($_ % 4)) . "\r\n" } 1 .. 500), "x\r\n" x 20_000,
);
sub stuffed { my $t = shift; $t =~ s/(\A|\r\n)\./$1../g; return $t }
{
    my $s = start('--capture');
    my $n = 0;
    my $hand = Hand->new($s)->greeted;
    my $sent = "EHLO x\r\n";
    for my $content (@contents) {
        like $hand->open_('one@x', 'two words"@y'), qr/^354 /, 'content may come';
        like $hand->put(stuffed($content) . ".\r\n")->get, qr/^250 /, 'and is taken';
        ok slurp(sprintf '%s/%08d.eml', $s->{dir}, $n) eq $content, "content $n is kept byte for byte";
        is slurp(sprintf '%s/%08d.envelope', $s->{dir}, $n++),
            qq(X-Sink-Protocol: ESMTP\nX-Sink-Connection: 1\nX-Sink-From: <a\@b>\nX-Sink-To: <one\@x>\n), 'with its envelope';
        $sent .= qq(MAIL FROM:<a\@b>\r\nRCPT TO:<one\@x>\r\nRCPT TO:<two words"\@y>\r\nDATA\r\n) . stuffed($content) . ".\r\n";
    }
    $hand->say_('QUIT');
    ok slurp("$s->{dir}/connection.1.raw") eq $sent . "QUIT\r\n", 'and all that was sent, raw';

    # Every split of an end of data, and byte by byte.
    my $tricky = "a\r\n..\r\n.b\r\n\r\n";
    my $wire = stuffed($tricky) . ".\r\n";
    $hand = Hand->new($s)->greeted;
    my $wrong = 0;
    for my $cut (0 .. length $wire) {
        $hand->open_;
        $hand->put(substr $wire, 0, $cut);
        sleep 0.003;
        $wrong++ unless $hand->put(substr $wire, $cut)->get =~ /^250/;
        $wrong++ unless slurp(sprintf '%s/%08d.eml', $s->{dir}, $n++) eq $tricky;
    }
    is $wrong, 0, 'wherever it was cut';
    $hand->open_;
    for my $byte (split //, $wire) { $hand->put($byte); sleep 0.001 }
    like $hand->get, qr/^250/, 'byte by byte';
    ok slurp(sprintf '%s/%08d.eml', $s->{dir}, $n++) eq $tricky, 'nothing changes';

    # Two messages in one segment.
    $hand->put(qq(MAIL FROM:<> BODY=8BITMIME SIZE=5\r\nRCPT TO:<"a>b"\@c> NOTIFY=NEVER\r\nDATA\r\n));
    like join('', map { $hand->get } 1 .. 3), qr/^250.*\n250.*\n354/, 'pipelined commands';
    $hand->put("one\r\n.\r\nMAIL FROM:<x\@y>\r\nRCPT TO:<z\@z>\r\nDATA\r\n");
    like join('', map { $hand->get } 1 .. 4), qr/^250.*\n250.*\n250.*\n354/, 'the next envelope with the dot';
    is slurp(sprintf '%s/%08d.envelope', $s->{dir}, $n),
        qq(X-Sink-Protocol: ESMTP\nX-Sink-Connection: 2\nX-Sink-From: <>\nX-Sink-From-Parameters: BODY=8BITMIME SIZE=5\n)
        . qq(X-Sink-To: <"a>b"\@c>\nX-Sink-To-Parameters: NOTIFY=NEVER\n), 'parameters are kept';
    undef $hand;
    for (1 .. 1200) { last unless glob "$s->{dir}/incoming.*"; sleep 0.05 }
    is scalar(() = glob "$s->{dir}/incoming.*"), 0, 'content that broke off is not kept';
    is number(ask($s, 'stats'), 'messages'), $n + 1, 'nor counted';
    stop($s);
}

# --- Commands out of place

{
    my $s = start('--size', 1000);
    my $hand = Hand->new($s);
    like $hand->get, qr/^220 /, 'greets';
    my $ehlo = $hand->say_('EHLO x');
    like $ehlo, qr/^250-$_\r$/m, "offers $_" for 'PIPELINING', 'SIZE 1000', '8BITMIME', 'SMTPUTF8', 'DSN';
    like $hand->say_($_->[0]), qr/^$_->[1] /, "$_->[1] to $_->[0]" for ['RCPT TO:<a@b>', 503], ['DATA', 503], ['WHAT', 502], ['', 502],
        ['MAIL', 501], ['MAIL FROM:<a@b> SIZE=1001', 552], ['MAIL FROM:<a@b> SIZE=1000', 250], ['MAIL FROM:<a@b>', 503], ['DATA', 554],
        ['RCPT TO:<>', 501], ['RSET', 250], ['RCPT TO:<a@b>', 503], ['noop', 250], ['VRFY x', 252], ['HELO', 501], ['LHLO x', 500];
    $hand->open_;
    like $hand->put("x" x 1001 . "\r\n.\r\n")->get, qr/^552 /, 'too much is refused behind the dot';
    $hand->open_;
    like $hand->put("x" x 998 . "\r\n.\r\n")->get, qr/^250 /, 'and no less';
    is number(ask($s, 'stats'), 'messages'), 1, 'one is counted';
    like $hand->put('x' x 5000)->get, qr/^500 /, 'an endless line';
    is $hand->get, '', 'is the end';
    stop($s);
}

# --- Faults

# [options], [line => reply]...
for my $case (
    [['--fail', 'helo:450'], 'EHLO x' => 450],
    [['--fail', 'mail:451:2'], 'MAIL FROM:<a@b>' => 451, 'MAIL FROM:<a@b>' => 451, 'MAIL FROM:<a@b>' => 250],
    [['--fail', 'rcpt=550'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 550, 'DATA' => 554],
    [['--code', 'data=452:1'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 250, 'DATA' => 452, 'DATA' => 354],
    [['--fail', 'dot:451:1'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 250, 'DATA' => 354, '.' => 451, 'MAIL FROM:<a@b>' => 250],
    [['--fail-rcpt', 'bad:550', '--fail-rcpt', 'busy@:450:1', '--reject-rcpt', 'a:b=553'], 'MAIL FROM:<a@b>' => 250,
        'RCPT TO:<very-bad@x>' => 550, 'RCPT TO:<busy@x>' => 450, 'RCPT TO:<busy@x>' => 250, 'RCPT TO:<bad@x>' => 550,
        'RCPT TO:<"a:b"@x>' => 553, 'RCPT TO:<good@x>' => 250, 'DATA' => 354, '.' => 250],
    [['--fail', 'mail:421'], 'MAIL FROM:<a@b>' => 421, 'NOOP' => ''],
    [['--close', 'helo'], 'EHLO x' => ''],
    [['--close', 'mail:1'], 'MAIL FROM:<a@b>' => ''],
    [['--close', 'rcpt'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => ''],
    [['--close', 'data'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 250, 'DATA' => ''],
    [['--close', 'body'], 'MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 250, 'DATA' => 354, 'x' => ''],
    [['--no-ehlo'], 'EHLO x' => 502, 'HELO x' => 250],
    [['--max-messages', 1], ('MAIL FROM:<a@b>' => 250, 'RCPT TO:<x@y>' => 250, 'DATA' => 354, '.' => 250), 'MAIL FROM:<a@b>' => 421, 'NOOP' => ''],
    [['--fail', 'banner:554'], 'EHLO x' => 503, 'MAIL FROM:<a@b>' => 503, 'QUIT' => 221],
    )
{
    my ($options, @dialogue) = @$case;
    my $s = start(@$options);
    my $hand = Hand->new($s);
    my $banner = $hand->get;
    like $banner, "@$options" =~ /banner/ ? qr/^554 / : qr/^220 /, "banner with @$options";
    while (my ($line, $reply) = splice @dialogue, 0, 2) {
        my $got = $hand->say_($line);
        is substr($got, 0, 3), $reply, "$line: " . ($reply || 'the end');
    }
    is((stop($s))[0], 0, 'lives');
}

{
    my $s = start('--close', 'dot:1');
    my $hand = Hand->new($s)->greeted;
    $hand->open_;
    is $hand->put("x\r\n.\r\n")->get, '', 'the last reply is lost';
    is number(ask($s, 'stats'), 'messages'), 1, 'but the message is taken';
    is slurp("$s->{dir}/00000000.eml"), "x\r\n", 'and kept';
    stop($s);
    $s = start('--no-pipelining', '--no-8bitmime', '--delay', 'mail:300', '--delay', 'banner:200', '--delay', 'dot:200');
    my $from = time;
    $hand = Hand->new($s);
    $hand->get;
    cmp_ok time - $from, '>=', 0.19, 'a late banner';
    unlike $hand->say_('EHLO x'), qr/PIPELINING|8BITMIME/, 'less is offered';
    $from = time;
    is substr($hand->say_('NOOP'), 0, 3), 250, 'others are not late';
    $hand->put("MAIL FROM:<a\@b>\r\nRCPT TO:<c\@d>\r\nDATA\r\n.x\r\n.\r\nNOOP\r\n");
    my @replies = map { substr $hand->get, 0, 3 } 1 .. 5;
    is "@replies", '250 250 354 250 250', 'what follows waits as well';
    cmp_ok time - $from, '>=', 0.49, 'for both';
    is slurp("$s->{dir}/00000000.eml"), "x\r\n", 'and nothing is lost';
    stop($s);
}

{
    my $s = start('--lmtp', '--fail-lmtp', 'full@:452', '--fail-lmtp', 'gone@:550:1');
    my $hand = Hand->new($s);
    $hand->get;
    like $hand->say_('EHLO x'), qr/^500 /, 'LMTP has no EHLO';
    like $hand->say_('LHLO x'), qr/^250/, 'but LHLO';
    $hand->open_(qw(one@x full@x gone@x two@x));
    $hand->put("x\r\n.\r\n");
    my @replies = map { substr $hand->get, 0, 3 } 1 .. 4;
    is "@replies", '250 452 550 250', 'a reply for each recipient, in order';
    $hand->open_('gone@x');
    like $hand->put(".\r\n")->get, qr/^250/, 'one fault was for once';
    like slurp("$s->{dir}/00000000.envelope"), qr/^X-Sink-Protocol: LMTP$/m, 'its protocol is kept';
    stop($s);
}

# --- Load against trouble

{
    my $s = start('--fail', 'dot:451:7', '--fail-rcpt', 'user13@:550');
    for my $flag ([], ['--pipeline']) {
        my ($text, $code) = run($load, '--to', $s->{at}, '--messages', 100, @$flag);
        is $code, 0, "refusals are answers too (@$flag)";
        is number($text, 'refused'), @$flag ? 1 : 8, 'they are counted';
        is number($text, 'accepted'), @$flag ? 99 : 92, 'and the others accepted';
    }
    stop($s);
    $s = start('--close', 'dot:3', '--close', 'mail:3', '--close', 'data:2', '--max-messages', 10);
    for my $flag ([], ['--pipeline']) {
        my ($text, $code) = run($load, '--to', $s->{at}, '--messages', 200, '--connections', 4, @$flag);
        is number($text, 'lost'), @$flag ? 0 : 3, "replies that never came are told (@$flag)";
        is $code, @$flag ? 0 : 1, 'and make a difference to the exit code';
        is number($text, 'accepted'), @$flag ? 200 : 197, 'all others went through';
    }
    is number(ask($s, 'stats'), 'messages'), 400, 'the sink has them all';
    stop($s);
    my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die;
    my ($text, $code) = run($load, '--to', '127.0.0.1:' . $silent->sockport, '--give-up', 1);
    is $code, 1, 'gives up when nobody speaks';
    is number($text, 'accepted'), 0, 'with nothing';
    my $port = $silent->sockport;
    close $silent;
    is((run($load, '--to', "127.0.0.1:$port", '--give-up', 1))[1], 1, 'or when nobody listens');
}

# --- Control port, signals

{
    my $s = start('--count-file', "$scratch/counts");
    is number(ask($s, 'stats'), 'messages'), 0, 'nothing at first';
    like ask($s, 'what'), qr/error/, 'an unknown command';
    like ask($s, 'wait x y'), qr/error/, 'a bad wait';
    my $from = time;
    is number(ask($s, 'wait 1 1'), 'messages'), 0, 'a wait for nothing';
    cmp_ok time - $from, '>=', 0.9, 'takes its time';
    my $pid = fork // die;
    if ($pid == 0) { sleep 0.3; open STDOUT, '>', '/dev/null'; exec $load, '--to', $s->{at}, '--messages', 30 }
    $from = time;
    cmp_ok number(ask($s, 'wait 30 3600'), 'messages'), '>=', 30, 'a wait that is rewarded';
    cmp_ok time - $from, '<', 3600, 'at once';
    waitpid $pid, 0;
    is number(ask($s, 'wait 30 9'), 'messages'), 30, 'what is there need not be waited for';
    kill 'USR1', $s->{pid};
    my $line = readline $s->{out};
    is number($line, 'messages'), 30, 'SIGUSR1 prints the numbers';
    is number(slurp("$scratch/counts"), 'messages'), 30, 'into the file as well';
    is number(ask($s, 'reset'), 'messages'), 0, 'reset';
    my $control = $s->{asking};
    print $control "wait 5 600\n";
    my ($status) = stop($s);
    is $status, 0, 'SIGTERM ends it while somebody waits';
}

# --- Someone who never reads

{
    my $s = start();
    my $deaf = Hand->new($s)->greeted;
    $deaf->{socket}->blocking(0);
    my $sent = 0;
    for (1 .. 2000) {
        my $n = syswrite $deaf->{socket}, "NOOP\r\n" x 10_000;
        $sent += $n // 0;
        last if !defined $n && $_ > 50;
        sleep 0.001 unless defined $n;
    }
    my $hand = Hand->new($s)->greeted;
    $hand->open_;
    like $hand->put(".\r\n")->get, qr/^250/, "somebody who does not read stops nobody else ($sent bytes sent)";
    my ($rss) = slurp("/proc/$s->{pid}/status") =~ /VmRSS:\s+(\d+)/;
    cmp_ok $rss, '<', 30_000 + (slurp("$sink") =~ /__asan_init/ ? 500_000 : 0), 'nor eats memory';
    stop($s);
}

# --- A client that we did not write

SKIP: {
    skip 'no python3', 10 if system('python3 -c "import smtplib" >/dev/null 2>&1') != 0;
    my $s = start('--fail-rcpt', 'nobody:550');
    my $l = start('--lmtp', '--fail-lmtp', 'full:452');
    my $script = <<'PYTHON';
import smtplib, sys
host, port = sys.argv[1].split(":")
c = smtplib.SMTP(host, int(port), timeout=30)
c.ehlo()
print("features", *sorted(c.esmtp_features))
body = b"Subject: x\r\n\r\n.\r\n..two\r\n" + bytes(range(128, 256)) + b"\r\n" + b"y" * 5000 + b"\r\n"
print("refused", c.sendmail("me@a", ["one@b", "nobody@b", "two@b"], body, mail_options=["BODY=8BITMIME"]))
try:
    c.sendmail("me@a", ["nobody@b"], body)
except smtplib.SMTPRecipientsRefused as e:
    print("none", e.recipients["nobody@b"][0])
print("again", c.sendmail("", ["three@b"], body))
print("quit", c.quit()[0])
host, port = sys.argv[2].split(":")
l = smtplib.LMTP(host, int(port))
print("lmtp", l.sendmail("me@a", ["one@b"], body))
print("quit", l.quit()[0])
PYTHON
    my ($text, $code) = run('python3', '-c', $script, $s->{at}, $l->{at});
    is $code, 0, 'smtplib is content' or diag $text;
    is $text, "features 8bitmime dsn enhancedstatuscodes pipelining size smtputf8\n"
        . "refused {'nobody\@b': (550, b'5.0.0 Refused, as told')}\nnone 550\nagain {}\nquit 221\nlmtp {}\nquit 221\n", 'and heard what it should';
    my $body = "Subject: x\r\n\r\n.\r\n..two\r\n" . join('', map { chr } 128 .. 255) . "\r\n" . "y" x 5000 . "\r\n";
    ok slurp("$s->{dir}/0000000$_.eml") eq $body, "message $_ is kept byte for byte" for 0, 1;
    ok slurp("$l->{dir}/00000000.eml") eq $body, 'by LMTP as well';
    my @to = slurp("$s->{dir}/00000000.envelope") =~ /^X-Sink-To: (.*)$/mg;
    is "@to", '<one@b> <two@b>', 'with the recipients that were not refused';
    my $stats = ask($s, 'stats');
    is number($stats, 'messages'), 2, 'two messages';
    is number($stats, 'recipients'), 3, 'three recipients';
    is number($stats, 'refused'), 2, 'two refusals';
    is number($stats, 'bytes'), 2 * length $body, 'and their bytes';
    stop($_) for $s, $l;
}

done_testing;
