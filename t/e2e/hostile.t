#!/usr/bin/perl
# Clients that mean harm or do it: slow ones, idle ones, deaf ones, too many of them, and those that try to
# have one message taken for two.
use strict;
use warnings;
use IO::Select;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use lib 't/e2e';
use Client;
use Petrel;
use Sink;

my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) // 0;

# Kilobytes of resident memory.
sub memory { my $petrel = shift; return Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }

# A client like all others is served, and its mail goes through, while something is going on.
sub served {
    my ($petrel, $sink, $name) = @_;
    my $began = time;
    my $client = Client->greeted($petrel->{port});
    ok $client, "$name: a normal client is greeted" or return;
    like $client->send(from => 'a@sender.test', to => "$name\@normal.test", data => "Subject: $name\r\n\r\nb\r\n"), qr/^250/, "$name: its message is taken";
    like $client->quit, qr/^221/, "$name: it is said goodbye";
    ok $sink->wait_for("$name\@normal.test"), "$name: and its message arrives";
    cmp_ok time - $began, '<', 10, "$name: soon";
    return;
}

sub fresh {
    my ($sink, %settings) = @_;
    return Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", max_sessions => 3000, max_sessions_per_client => 3000, %settings)->start;
}

# --- One byte a second, 500 times

# In a process of its own: half of them dawdle over commands, half over content. Says how many lasted.
sub dawdle {
    my ($petrel, $dir) = @_;
    my $parent = getppid;
    my @clients = map { Client->connect($petrel->{port}) } 1 .. 500;
    $_->reply for @clients;
    for my $client (@clients[250 .. 499]) {
        $client->say($_) for 'EHLO slow.test', 'MAIL FROM:<slow@sender.test>', 'RCPT TO:<slow@slow.test>', 'DATA';
    }
    my $words = "EHLO slow.example.test\r\nMAIL FROM:<slow\@sender.test>\r\n";
    for (my $round = 0; !-e "$dir/stop" && getppid == $parent; $round++) {
        for my $i (0 .. $#clients) { $clients[$i]->put($i < 250 ? substr($words, $round % length $words, 1) : 'x') }
        Petrel::spit("$dir/round", $round + 1);
        sleep 1;
    }
    my ($commands, $contents) = (0, 0);
    for my $client (@clients[250 .. 499]) { $contents++ if $client->put("\r\n.\r\n") && $client->reply =~ /^250/ }
    for my $client (@clients[0 .. 249]) { $commands++ if $client->put("\r\nRSET\r\nNOOP slow\r\n") && $client->reply =~ /^[25]/ }
    Petrel::spit("$dir/lasted", "$commands $contents");
    return;
}

SKIP: {
    skip "only $files open files are allowed", 1 if $files < 1200;
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $pid = fork // die;
    if ($pid == 0) { eval { dawdle($petrel, $petrel->{dir}) }; warn $@ if $@; POSIX::_exit($@ ? 1 : 0) }
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/round") >= 1 if -e "$petrel->{dir}/round" }), 'slow: 500 clients are there';
    served($petrel, $sink, "slow$_") for 1 .. 3;
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/round") >= 4 }), 'slow: they go on';
    served($petrel, $sink, "slow$_") for 4 .. 6;
    diag '500 slow clients: ' . memory($petrel) . ' KB resident';
    Petrel::spit("$petrel->{dir}/stop", '');
    waitpid $pid, 0;
    is $?, 0, 'slow: they come to their end';
    is Petrel::slurp("$petrel->{dir}/lasted"), '250 250', 'slow: and none was cut off';
    ok Petrel::wait_for(sub { $sink->for_address('slow@slow.test') == 250 }), 'slow: their messages arrive, too';
    is $petrel->stop, 0, 'slow: Petrel ends well';
    $sink->stop;
}

# --- 1,000 that say nothing

SKIP: {
    skip "only $files open files are allowed", 1 if $files < 2200;
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $before = memory($petrel);
    my @idle = map { Client->connect($petrel->{port}) } 1 .. 1000;
    is scalar(grep { $_ && $_->reply =~ /^220/ } @idle), 1000, 'idle: 1,000 clients are greeted';
    is scalar(grep { $_->say('EHLO idle.test') =~ /^250/ } @idle), 1000, 'idle: and answered';
    my $during = memory($petrel);
    diag "1,000 idle clients: $before KB resident without, $during KB with them";
    cmp_ok $during - $before, '<', 64 * 1024, 'idle: they cost little';
    served($petrel, $sink, 'idle');
    is scalar(grep { $_->say('NOOP') =~ /^250/ } @idle), 1000, 'idle: none was dropped';
    $_->close for @idle;
    served($petrel, $sink, 'after');
    is $petrel->stop, 0, 'idle: Petrel ends well';
    $sink->stop;
}

# --- One that talks and never listens

{
    my $sink = Sink->start;
    my $petrel = fresh($sink);
    my $before = memory($petrel);
    my $deaf = Client->greeted($petrel->{port});
    my $socket = $deaf->{socket};
    $socket->blocking(0);
    my $line = "HELP\r\n";
    my $block = $line x 10_000;
    my ($sent, $quiet) = (0, 0);
    while ($sent < 200_000_000 && IO::Select->new($socket)->can_write(1)) {
        my $at = $sent % length $block;
        my $wrote = syswrite $socket, $block, length($block) - $at, $at;
        $sent += $wrote if $wrote;
    }
    cmp_ok $sent, '<', 200_000_000, "deaf: it is not listened to without end ($sent bytes)";
    served($petrel, $sink, 'deaf');
    my $grown = memory($petrel) - $before;
    cmp_ok $grown, '<', 16 * 1024, "deaf: nor does it cost memory ($grown KB)";
    # It listens at last: every command has its reply.
    my $left = length($line) - $sent % length $line;
    my ($tail, $replies, $got) = (substr($line, -$left) . "QUIT\r\n", 0, '');
    my $end = time + $Petrel::patience;
    while (time < $end && IO::Select->new($socket)->can_read(5)) {
        sysread($socket, $got, 65536, length $got) or last;
        $replies++ while $got =~ s/\A2.*\n//;
        if ($tail) { my $wrote = syswrite $socket, $tail; substr $tail, 0, $wrote, '' if $wrote }
    }
    is $replies, 1 + int(($sent + $left) / length $line), 'deaf: in the end every command was answered';
    is $petrel->stop, 0, 'deaf: Petrel ends well';
    $sink->stop;
}

# --- Too many

{
    my $sink = Sink->start;
    my $petrel = fresh($sink, max_sessions => 5, max_sessions_per_client => 3);
    my $from = sub { return Client->connect($petrel->{port}, LocalAddr => $_[0]) };
    ok Petrel::wait_for(sub { $petrel->status =~ /"in": 0\b/ }), 'limits: nobody is there'; # who asked whether it runs has gone
    my @one = map { $from->('127.0.0.1') } 1 .. 3;
    like $_->reply, qr/^220/, 'limits: three from one address' for @one;
    for (1 .. 3) {
        my $extra = $from->('127.0.0.1');
        like $extra->reply, qr/^421 4\.7\.0 .*your address/, 'limits: the fourth is turned away';
        is $extra->rest, '', 'limits: and cut off';
    }
    my @two = map { $from->('127.0.0.2') } 1 .. 2;
    like $_->reply, qr/^220/, 'limits: two from another' for @two;
    for (1 .. 3) {
        my $extra = $from->('127.0.0.3');
        like $extra->reply, qr/^421 4\.7\.0/, 'limits: the sixth of all is turned away';
        is $extra->rest, '', 'limits: and cut off';
    }
    like $_->say('EHLO client.test'), qr/^250/, 'limits: the others are still served' for @one, @two;
    $_->quit for @two;
    ok Petrel::wait_for(sub { my $next = $from->('127.0.0.3'); $next->reply =~ /^220/ }), 'limits: whoever goes makes room';
    $_->quit for @one;
    ok Petrel::wait_for(sub { my $next = $from->('127.0.0.1'); $next->reply =~ /^220/ }), 'limits: for the same address, too';
    my $log = () = $petrel->log =~ /refused=421 4\.7\.0, client=\[127\.0\.0\.[13]\]/g;
    cmp_ok $log, '>=', 6, 'limits: the log names whom';
    is $petrel->stop, 0, 'limits: Petrel ends well';
    $sink->stop;
}

# --- One message or two? (spec: SMTP smuggling)

my ($cr, $lf, $crlf) = ("\r", "\n", "\r\n");
my %ends = (
    'LF.LF' => "$lf.$lf", 'LF.CRLF' => "$lf.$crlf", 'CRLF.LF' => "$crlf.$lf", 'CR.CR' => "$cr.$cr", 'CR.CRLF' => "$cr.$crlf",
    'CRLF.CR' => "$crlf.$cr", 'CR.LF' => "$cr.$lf", 'LF.CR' => "$lf.$cr", 'CRCRLF.CRCRLF' => "$cr$crlf.$cr$crlf", 'CRLF.CRCRLF' => "$crlf.$cr$crlf",
    'CRCRLF.CRLF' => "$cr$crlf.$crlf", 'LFLF.LFLF' => "$lf$lf.$lf$lf", 'CRLF.LFLF' => "$crlf.$lf$lf", 'LFCR.LFCR' => "$lf$cr.$lf$cr",
    'CR NUL LF.CRLF' => "$cr\0$lf.$crlf", 'CRLF NUL.CRLF' => "$crlf\0.$crlf", 'CRLF.NUL CRLF' => "$crlf.\0$crlf", 'CRLF.CR NUL LF' => "$crlf.$cr\0$lf",
    'NUL CRLF.CRLF NUL' => "\0$crlf.$lf\0", 'CRLF.SP CRLF' => "$crlf. $crlf", 'CRLF.TAB CRLF' => "$crlf.\t$crlf", 'CRLF SP.CRLF' => "$crlf .$crlf",
    'CRLF TAB.CRLF' => "$crlf\t.$crlf", 'VT.VT' => "\x0b.\x0b", 'CRLF.VT' => "$crlf.\x0b", 'FF.FF' => "\x0c.\x0c", 'CRLF.FF CRLF' => "$crlf.\x0c$crlf",
    'NEL.NEL' => "\x85.\x85", 'UTF-8 NEL' => "\xc2\x85.\xc2\x85", 'U+2028' => "\xe2\x80\xa8.\xe2\x80\xa8", 'CRLF EOT CRLF' => "$crlf\x04$crlf",
    'CRLF.EOT' => "$crlf.\x04$crlf", 'CRLF..CRLF' => "$crlf..$crlf",
);
my %starts = ('.LF' => ".$lf", '.CR' => ".$cr", '.CRCRLF' => ".$cr$crlf", 'LF.LF' => "$lf.$lf", '.NUL CRLF' => ".\0$crlf", '. CRLF' => ". $crlf", 'CR.CRLF' => "$cr.$crlf");

my $sink = Sink->start('--capture');
my $petrel = fresh($sink, smtpd_hard_error_limit => 1000);
my $inner = 'MAIL FROM:<evil@sender.test>' . $crlf . 'RCPT TO:<smuggled@evil.test>' . $crlf . 'DATA' . $crlf . 'Subject: smuggled' . $crlf . $crlf . 'evil' . $crlf;
my (%copies, %odd); # recipient => how many may arrive
my $tries = 0;

# Sends the pieces as content; returns "250" or the like, and remembers what may arrive.
sub try_content {
    my ($name, @pieces) = @_;
    my $to = 'try' . ++$tries . '@x.test';
    my $client = Client->greeted($petrel->{port});
    $client->say($_) for 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA';
    $client->{socket}->setsockopt(6, 1, 1); # TCP_NODELAY: each piece by itself
    for my $i (0 .. $#pieces) {
        $client->put($pieces[$i]) or last;
        sleep 0.002 if $i < $#pieces;
    }
    my $answer = $client->reply;
    $client->put("QUIT$crlf");
    my $after = $client->rest;
    push @{ $odd{$name} }, $after if $after !~ /\A(?:221[^\n]*\n)?\z/;
    $copies{$to} = $answer =~ /^250 2\.0\.0 Ok: queued/ ? 1 : 0;
    return substr $answer, 0, 3;
}

sub cut { my ($bytes, $at) = @_; return (substr($bytes, 0, $at), substr $bytes, $at) }

my %answers;
for my $name (sort keys %ends) {
    my $end = $ends{$name};
    my ($front, $behind) = ("Subject: front$crlf${crlf}text", "$inner.$crlf");
    my @ways = ([$front . $end . $behind]);
    push @ways, [cut($front . $end . $behind, length($front) + $_)] for 0 .. length $end;
    push @ways, [$front, split(//, $end), $behind];
    # Across the borders of buffers.
    for my $border (4096, 16384) {
        my $fill = 'f' x 62 . $crlf;
        my $long = $front . $crlf . $fill x ($border / 64);
        my $at = $border - 1 - int(length($end) / 2);
        push @ways, [substr($long, 0, $at - 1) =~ s/[\r\n]*\z//r . $end . $behind];
    }
    $answers{$name} = join ' ', map { try_content($name, @$_) } @ways;
}
for my $name (sort keys %starts) {
    my $all = $starts{$name} . "$inner.$crlf";
    $answers{"start $name"} = join ' ', map { try_content("start $name", @$_) } [$all], (map { [cut($all, $_)] } 1 .. length $starts{$name}), [split(//, $starts{$name}), "$inner.$crlf"];
}
for my $name (sort keys %answers) {
    like $answers{$name}, qr/\A(250|5\d\d)(?: \1)*\z/, "smuggling $name: one answer, however it is cut";
    is scalar(@{ $odd{$name} // [] }), 0, "smuggling $name: and no other" or diag $odd{$name}[0];
}
like $answers{$_}, qr/\A521/, "smuggling $_: refused" for grep { ($ends{$_} =~ s/\r\n//gr) =~ /[\r\n\0]/ } sort grep { $ends{$_} } keys %answers;

# --- Chunks

# Sends bytes after the envelope, then QUIT; all that was answered until the end, or until nothing more
# comes for so many seconds after the first reply.
sub try_bytes {
    my ($to, $seconds, @pieces) = @_;
    my $client = Client->greeted($petrel->{port});
    $client->say($_) for 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>";
    for my $piece (@pieces) { $client->put($piece) or last; sleep 0.002 }
    $client->put("QUIT$crlf");
    return ($client->reply . $client->rest($seconds)) =~ s/\r//gr;
}

my $content = "Subject: c$crlf${crlf}one$crlf.$crlf$inner.$crlf..two";
my $size = length $content;
for my $cut (0 .. 3, 10, index($content, "$crlf.$crlf") + 1 .. index($content, "$crlf.$crlf") + 6, $size - 6 .. $size) {
    my $to = "chunk$cut\@x.test";
    my ($one, $two) = cut($content, $cut);
    my $all = try_bytes($to, undef, "BDAT $cut$crlf$one", 'BDAT ' . ($size - $cut) . " LAST$crlf", $two);
    like $all, qr/\A250 [^\n]*\n250 2\.0\.0 Ok: queued as \S+\n221 [^\n]*\n\z/, "chunks cut at $cut: one reply each";
    $copies{$to} = 1;
}
for my $size ('-1', '+5', '0x10', '4294967296', '4294967301', '9223372036854775808', '18446744073709551615', '18446744073709551616', '18446744073709551621', '', '5 5', '5 LASTX', '5LAST', 'LAST', '5.0', '1e3', ' ') {
    my $to = 'size' . ++$tries . '@x.test';
    # A size that is a number is swallowed, QUIT included.
    my $all = try_bytes($to, $size =~ /^\d+$/ ? 1 : undef, "BDAT $size$crlf", $inner, ".$crlf");
    like $all, qr/\A5\d\d [^\n]*\n/, "BDAT '$size': refused";
    unlike $all, qr/queued as|^354/m, "BDAT '$size': and nothing is taken";
    $copies{$to} = 0;
}
my $long = length $inner;
for my $case (
    ['bare LF' => 0, "BDAT 9 LAST${crlf}a$lf.${lf}b$crlf$crlf"], ['bare CR' => 0, "BDAT 9 LAST${crlf}a$cr.${cr}b$crlf$crlf"],
    ['NUL' => 0, "BDAT 5 LAST${crlf}a\0b$crlf"], ['bare CR at the end of a chunk' => 0, "BDAT 2${crlf}a$cr", "BDAT 3 LAST${crlf}b$crlf"],
    ['CRLF across chunks' => 1, "BDAT 2${crlf}a$cr", "BDAT 4 LAST$crlf${lf}b$crlf"], ['DATA behind a chunk' => 0, "BDAT 3${crlf}a$crlf", "DATA$crlf"],
    ['a second envelope behind a chunk' => 0, "BDAT 3${crlf}a$crlf", $inner], ['LF for the line of BDAT' => 0, "BDAT 5 LAST${lf}abc$crlf"],
    )
{
    my ($name, $good, @pieces) = @$case;
    my $to = 'chunks' . ++$tries . '@x.test';
    my $all = try_bytes($to, undef, @pieces);
    is scalar(() = $all =~ /queued as/g), $good, "chunks, $name: " . ($good ? 'taken' : 'refused') or diag $all;
    unlike $all, qr/^354/m, "chunks, $name: nothing else begins";
    $copies{$to} = $good;
}

# A chunk that is refused is swallowed, not run.
my $client = Client->greeted($petrel->{port});
$client->put("BDAT $long LAST$crlf$inner" . "NOOP$crlf" . "QUIT$crlf");
like $client->rest =~ s/\r//gr, qr/\A503 [^\n]*\n250 [^\n]*\n221 [^\n]*\n\z/, 'a chunk without an envelope: one refusal, nothing of it is run';

# --- Commands

for my $case (['LF' => $lf], ['CR' => $cr], ['LFCR' => "$lf$cr"], ['NUL' => "\0$crlf"]) {
    my ($name, $end) = @$case;
    my $to = 'command' . ++$tries . '@x.test';
    my $client = Client->greeted($petrel->{port});
    $client->put(join $end, 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA', 'Subject: x', '', 'x', ".$crlf", "QUIT$crlf");
    unlike $client->reply . $client->rest(1), qr/queued as|^354/m, "commands that end with $name: nothing is taken";
    $copies{$to} = 0;
}

# --- What the next hop saw

ok $petrel->wait_empty, 'all that was taken is gone';
my %arrived;
for my $message ($sink->messages) { $arrived{$_}++ for @{ $message->{to} } }
is scalar(grep { /smuggled|evil/ } keys %arrived), 0, 'no smuggled envelope reached the next hop';
is scalar(grep { $_->{from} =~ /evil/ } $sink->messages), 0, 'nor a smuggled sender';
my @wrong = grep { ($arrived{$_} // 0) != $copies{$_} } sort keys %copies;
is "@wrong", '', 'what was answered with 250 arrived once, what was refused did not';
is scalar($sink->messages), scalar(grep { $_ } values %copies), 'and nothing else did';
my @raw = glob "$sink->{base}/1/connection.*.raw";
cmp_ok scalar(@raw), '>', 0, 'what came over the wire was kept';
is scalar(grep { (Petrel::slurp($_) =~ s/\r\n//gr) =~ /[\r\n\0]/ } @raw), 0, 'no bare CR, bare LF or NUL was ever sent on';
for my $message ($sink->for_address('chunk0@x.test')) { is substr($message->{data}, -$size - 2), "$content$crlf", 'content in chunks is whole, its last line ended' }
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
