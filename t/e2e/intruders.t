#!/usr/bin/perl
# Attackers with more patience than bandwidth: clients that keep descriptors, a next hop that lies, and a
# local user at the open door of the spool.
use lib 't/e2e';
use E2E;
use Fcntl;
use Time::HiRes qw(sleep time);

my $crlf = "\r\n";

# --- Descriptors

# A daemon whose descriptors are limited (soft, hard).
sub limited {
    my ($soft, $hard, %settings) = @_;
    my $petrel = Petrel->new(routes => '* discard', %settings);
    my $script = Petrel::spit("$petrel->{dir}/limited", "#!/bin/sh\nulimit -S -n $soft; ulimit -H -n $hard; exec $Petrel::binary \"\$@\"\n");
    chmod 0755, $script;
    local $Petrel::binary = $script;
    return $petrel->start;
}

sub descriptors { my $petrel = shift; return scalar(() = glob "/proc/$petrel->{pid}/fd/*") }

my $few = limited(60, 3000, server_session_limit => 200, client_session_limit => 200, delivery_session_limit => 10);
my @clients = map { Client->greeted($few->{port}) } 1 .. 150;
is scalar(grep { defined } @clients), 150, 'more clients than the soft limit of descriptors';
like $few->send_mail('a@x.test', 'b@y.test', "Subject: x\n\nx\n"), qr/^250/, 'and mail is taken besides';
unlike $few->log, qr/descriptors are too few/, 'nothing to complain about';
@clients = ();
is $few->stop, 0, 'Petrel ends well';

# A client that hears the last reply, and stays: only a descriptor of ours is left.
my $poor = limited(400, 400, server_session_limit => 50, client_session_limit => 20);
like $poor->log, qr/400 descriptors are too few/, 'too few descriptors are told at the start';
my @leeches = map { my $c = Client->connect($poor->{port}); $c->put("QUIT$crlf") if $c; $c } 1 .. 600;
is scalar(grep { defined } @leeches), 600, '600 clients say QUIT and stay';
my $good = Client->greeted($poor->{port}, LocalAddr => '127.0.0.2');
ok $good, 'another one is greeted all the same';
like $poor->send_mail('a@x.test', 'b@y.test', "Subject: x\n\n" . 'x' x 70 . "\n" x 2000), qr/^250/, 'and its mail is stored';
cmp_ok descriptors($poor), '<', 350, 'not all descriptors are gone';
@leeches = ();
$good->quit if $good;
is $poor->stop, 0, 'Petrel ends well';

# --- A next hop that lies

my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 20, ReuseAddr => 1) or die;
my $flood = '250-KEYWORD' . $crlf;
# A client that closes with unread input resets the connection, and its output may be lost.
my $until_gone = sub { my $c = shift; 1 while IO::Select->new($c)->can_read($Petrel::patience) && sysread $c, my $b, 65536 };
my @lies = (
    ['a line without end' => sub { my $c = shift; 1 while syswrite $c, 'x' x 65536 }, qr/a reply of more than 128 lines, or with a line of more than 4096 bytes/],
    ['a greeting without end' => sub { my $c = shift; 1 while syswrite $c, "220-x$crlf" x 5000 }, qr/a reply of more than 128 lines/],
    ['10,000 keywords' => sub { my $c = shift; syswrite $c, "220 x$crlf"; sysread $c, my $b, 999; syswrite $c, $flood x 10000 . "250 END$crlf"; $until_gone->($c) }, qr/a reply of more than 128 lines/],
    ['all replies at once' => sub { my $c = shift; syswrite $c, "220 x${crlf}250 a${crlf}250 b${crlf}250 c${crlf}354 d${crlf}250 e$crlf"; $until_gone->($c) }, qr/it sent a reply to no command/],
    ['a log line' => sub { my $c = shift; syswrite $c, "554 5.7.1 \e[31mx), dsn=2.0.0, status=sent (\xc2\x85\x00\x7f\rforged$crlf" }, qr/status=deferred \(.*x\)\\x2c dsn=2\.0\.0, status=sent|\Qx)\x2c dsn=2.0.0\x2c status=sent\E/],
    ['350 to RCPT' => sub { my $c = shift; for ('220 x', '250 x', '250 x', '354 x') { syswrite $c, "$_$crlf"; sysread $c, my $b, 999 } }, qr/unexpected reply 354/],
    ['half a code' => sub { my $c = shift; syswrite $c, "22$crlf" }, qr/not an SMTP reply/],
    ['a code of 999' => sub { my $c = shift; syswrite $c, "999 x$crlf" }, qr/not an SMTP reply/],
);
my $target = $listener->sockport;
my $victim = Petrel->new(routes => "* smtp://127.0.0.1:$target", minimal_backoff_time => '1h', maximal_backoff_time => '1h',
    smtp_connection_cache_time_limit => 0, default_destination_concurrency_failed_cohort_limit => 0)->start;
for my $case (@lies) {
    my ($name, $lie, $want) = @$case;
    # Petrel reads on for a while where it has heard too much: each lie ends with its host.
    my $liar = fork // die;
    if ($liar == 0) { $SIG{PIPE} = 'IGNORE'; while (1) { my $c = $listener->accept or next; $lie->($c); close $c } }
    my $accepted = $victim->send_mail('', 'someone@y.test', "Subject: x\n\nx\n");
    my ($id) = $accepted =~ /queued as (\S+)/;
    ok $victim->wait_log(qr/^\S+ smtp: $id: .*status=deferred/m), "next hop, $name: deferred";
    my ($line) = $victim->log =~ /^(.*$id: to=.*)$/m;
    like $line // '', $want, "next hop, $name: the log says what it was";
    kill 'KILL', $liar;
    waitpid $liar, 0;
}
is scalar(() = $victim->log =~ /[^\n\x20-\x7e]/g), 0, 'next hop: no control byte reaches the log';
is scalar(() = $victim->log =~ /, status=sent/g), 0, 'next hop: and no forged field';
cmp_ok Petrel::slurp("/proc/$victim->{pid}/status") =~ /^VmHWM:\s+(\d+)/m ? $1 : 1 << 30, '<', $Petrel::binary =~ /san|hunt/ ? 300_000 : 20_000, 'next hop: nor does memory grow';
is $victim->stop, 0, 'Petrel ends well';

# --- The control socket

my $controlled = Petrel->new(routes => '* discard')->start;
my $control = "$controlled->{dir}/spool/control";
is sprintf('%o', (stat $control)[2] & 0777), '600', 'the control socket is for its owner';
for my $garbage ("\0" x 100, "{}\n", "[]\n" x 1000, "{\"command\":\"rm\"}\n", "{\"command\":\"state\",\"id\":5}\n", '[' x 60000 . "\n", "{\"command\":\"" . 'x' x 100000, "\xff\xfe\n", "\n" x 5000,
    "{\"command\":\"state\",\"id\":\"0000000000-00000000\"}\n" x 500) {
    my $s = IO::Socket::UNIX->new(Peer => $control) or next;
    syswrite $s, $garbage;
    shutdown $s, 1;
    1 while sysread $s, my $answer, 65536;
}
my @deaf = map { my $s = IO::Socket::UNIX->new(Peer => $control); $s->blocking(0); 1 while syswrite $s, "{\"command\":\"state\",\"id\":\"0000000000-00000000\"}\n" x 100; $s } 1 .. 10;
like $controlled->send_mail('a@x.test', 'b@y.test', "Subject: x\n\nx\n"), qr/^250/, 'garbage and deaf askers at the control socket harm nobody';
@deaf = ();
is $controlled->stop, 0, 'Petrel ends well';

# --- The local door

SKIP: {
    skip 'only root can be two users', 1 if $> != 0;
    my $nobody = 65534;
    my ($mail) = (getpwnam 'mail')[2];
    for my $user ('', defined $mail ? 'mail' : ()) {
        my $who = $user || 'root';
        my $home = tempdir('petrel-XXXXXX', TMPDIR => 1, CLEANUP => 1);
        chmod 0755, $home;
        # Nobody may not be let in where this is built.
        system('cp', $Petrel::binary, "$home/petrel") == 0 or die 'cannot copy';
        mkdir "$home/box";
        chmod 0777, "$home/box";
        my $petrel = Petrel->new(dir => $home, routes => "* maildir:$home/box/%u?create=all", $user ? (user => $user) : ())->start;
        my $spool = "$home/spool";
        Petrel::spit("$home/secret", "top secret\n");
        chmod 0600, "$home/secret";
        my ($counter, $since) = (0, time);
        # As nobody; the sub gets a name that no message has.
        my $as_nobody = sub {
            my $what = shift;
            my $id = sprintf '01JD3ZK5Q8-%08d', ++$counter;
            my $pid = fork // die;
            if ($pid == 0) {
                $) = "$nobody $nobody";
                POSIX::setgid($nobody);
                POSIX::setuid($nobody);
                umask 0;
                my $good = eval { $what->($id); 1 };
                if (sysopen my $trigger, "$spool/lock/trigger", O_WRONLY | O_NONBLOCK) { syswrite $trigger, '!' }
                POSIX::_exit($good ? 0 : 1);
            }
            waitpid $pid, 0;
            return $id;
        };
        my $touch = sub { my ($path, $bytes) = @_; sysopen my $h, $path, O_WRONLY | O_CREAT | O_EXCL, 0644 or die "$path: $!"; syswrite $h, $bytes; close $h };
        my %odd = (
            'a link to a secret' => sub { symlink "$home/secret", shift or die },
            'a directory' => sub { mkdir shift, 0700 or die },
            'a FIFO' => sub { POSIX::mkfifo(shift, 0666) or die },
            'a sparse terabyte' => sub { my $path = shift; $touch->($path, ''); truncate $path, 1 << 40 or die },
            'a closed file' => sub { my $path = shift; $touch->($path, 'x'); chmod 0, $path },
            'rubbish' => sub { $touch->(shift, join '', map { chr int rand 256 } 1 .. 5000) },
            'a socket' => sub { IO::Socket::UNIX->new(Local => shift, Listen => 1) or die },
        );
        # What can never be a message goes; other damaged mail is kept.
        my $is_junk = sub { shift =~ /^a (?:link|directory|FIFO|socket)/ };
        my (@ids, @junk);
        for my $name (sort keys %odd) {
            my $make = $odd{$name};
            my $todo = $is_junk->($name) ? \@junk : \@ids;
            push @$todo, [$as_nobody->(sub { my $id = shift; $touch->("$spool/mess/$id", 'x'); $make->("$spool/todo/$id") }), "todo is $name"];
            push @ids, [$as_nobody->(sub { my $id = shift; $make->("$spool/mess/$id"); $touch->("$spool/todo/$id", 'x') }), "mess is $name"];
            push @$todo, [$as_nobody->(sub { my $id = shift; $make->("$spool/todo/$id") }), "todo alone is $name"];
            $as_nobody->(sub { my $id = shift; $make->("$spool/$_/$id") for 'pid', 'intd' });
            $as_nobody->(sub { $make->("$spool/$_/odd\n\e[31m" . ++$counter) for 'pid', 'intd', 'todo', 'mess' });
        }
        for my $case (@ids) { ok $petrel->wait_log(qr/\Q$case->[0]\E: error: quarantined/), "local door of $who, $case->[1]: quarantined" }
        for my $case (@junk) { ok Petrel::wait_for(sub { !lstat "$spool/todo/$case->[0]" }), "local door of $who, $case->[1]: removed" }
        unlike $petrel->log, qr/$junk[0][0]|$junk[-1][0]/, "local door of $who: without a line for each";
        is Petrel::slurp("$home/secret"), "top secret\n", "local door of $who: the secret is still there";
        is +(stat "$home/secret")[3], 1, "local door of $who: with one name";
        my $lines = () = $petrel->log =~ /quarantined in corrupt/g;
        for (1 .. 5) { $as_nobody->(sub { }); sleep 0.15 }
        is scalar(() = $petrel->log =~ /quarantined in corrupt/g), $lines, "local door of $who: none is quarantined twice";
        is scalar(() = $petrel->log =~ /[^\n\x20-\x7e]/g), 0, "local door of $who: no control byte reaches the log";

        # Thousands of empty files, a full directory, names that are none, and a trigger that is never left alone.
        my $full = $as_nobody->(sub { my $id = shift; mkdir "$spool/todo/$id"; $touch->("$spool/todo/$id/x", 'x') });
        my $flood = sub { my $from = shift; return sub { $touch->(sprintf("$spool/todo/01JD3ZK5R8-%08d", $_), ''), $touch->("$spool/todo/odd-$from$_", '') for $from .. $from + 499 } };
        my $corrupt = () = glob "$spool/corrupt/*";
        $as_nobody->($flood->(500 * $_)) for 1 .. 6;
        ok Petrel::wait_for(sub { !(() = glob "$spool/todo/01JD3ZK5R8-*") }), "local door of $who: empty files are removed";
        $as_nobody->(sub { }) for 1 .. 20;
        is scalar(() = glob "$spool/corrupt/*"), $corrupt, "local door of $who: and leave nothing";
        ok lstat "$spool/todo/$full", "local door of $who: a full directory stays";
        unlike $petrel->log, qr/$full/, "local door of $who: and has no line";
        cmp_ok scalar(() = $petrel->log =~ m{in todo/}g), '<=', 4 * (2 + (time - $since) / 60), "local door of $who: all are told once a minute";

        # The right way in still works, and what was taken cannot be changed any more.
        my $id = $as_nobody->(sub {
            my $input = "$home/box/input";
            Petrel::spit($input, "Subject: by hand\n\nhello\n");
            open STDIN, '<', $input or die;
            exec "$home/petrel", '-c', "$home/petrel.conf", 'sendmail', '-f', 'me@x.test', 'you@y.test';
        });
        $as_nobody->(sub { });
        ok Petrel::wait_for(sub { () = glob "$home/box/you/new/*" }), "local door of $who: sendmail is served";
        my ($file) = glob "$home/box/you/new/*";
        like Petrel::slurp($file // '/dev/null'), qr/^Subject: by hand\n\nhello\n\z/m, "local door of $who: with its message";
        like $petrel->send_mail('a@x.test', 'b@y.test', "Subject: x\n\nx\n"), qr/^250/, "local door of $who: SMTP, too";
        is $petrel->stop, 0, "local door of $who: Petrel ends well";
        $petrel->start;
        like $petrel->send_mail('a@x.test', 'b@y.test', "Subject: x\n\nx\n"), qr/^250/, "local door of $who: and starts again";
        is $petrel->stop, 0, "local door of $who: and ends well";
    }
}
done_testing;
