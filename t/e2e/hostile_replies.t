#!/usr/bin/perl
# Replies that mean harm: NUL, 8-bit and control bytes, escape sequences of terminals, long lines, many lines. Mail gets its
# verdict, and log, commands, JSON and the report to the sender have no such byte.
use lib 't/e2e';
use E2E;
use Report;

my $esc = "\e[2J\e]0;owned\a";
my %reply = (
    nul => "550 5.1.1 user\0unknown\r\n",
    esc => "550 5.1.1 no such user $esc\r\n",
    eight => "550 5.1.1 no such user \xff\xfe caf\xe9 \xc3\xa9 \xc2\x9b2J \xe2\x80\xae\r\n",
    long => '550 5.1.1 no such user ' . 'x' x 600 . "\r\n",
    longest => '550 5.1.1 no such user ' . 'y' x 4000 . "\r\n",
    many => join('', map { "550-5.1.1 line $_\r\n" } 1 .. 99) . "550 5.1.1 no such user\r\n",
    bare => "550 5.1.1 no such user\rstatus=sent\r\n",
    quote => "550 5.1.1 no such user \"a\\\", \"class\": \"x\" <b> & \$(reboot) `x` %s%n\r\n",
    forged => "550 5.1.1 no such user) to=<z>, status=sent (250 ok\r\n",
    # Beyond the limits: mail waits, since that is no reply.
    toolong => '550 5.1.1 ' . 'z' x 5000 . "\r\n",
    toomany => "550-5.1.1 no such user\r\n" x 200 . "550 5.1.1 no such user\r\n",
    endless => "550-5.1.1 no such user\r\n" x 20000,
);
my %waits = map { $_ => 1 } qw(toolong toomany endless);

# Answers RCPT by the local part: from this table, or with 450 and the same words for "later-" before it.
# Each has a host of its own, since what is no reply speaks against a site.
my %listener = map { $_ => IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) || die "no port: $!" } keys %reply;
my $parent = $$;
my $pid = fork // die "fork: $!";
if (!$pid) {
    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';
    my $ready = IO::Select->new(values %listener);
    while (getppid == $parent) {
        my ($listener) = $ready->can_read(1) or next;
        my $c = $listener->accept or next;
        next if fork;
        binmode $c;
        $c->autoflush(1);
        print {$c} "220 $esc peer.test\r\n";
        while (my $line = <$c>) {
            my ($later, $name) = $line =~ /^RCPT TO:<(later-)?(\w+)@/;
            my $r = $name ? $reply{$name} : $line =~ /^DATA/ ? "503 no\r\n" : $line =~ /^QUIT/ ? "221 bye\r\n" : "250 yes\r\n";
            $r =~ s/^550/450/mg, $r =~ s/\b5\.1\.1/4.1.1/g if $later;
            print {$c} $r;
            last if $line =~ /^QUIT/;
        }
        POSIX::_exit(0);
    }
    POSIX::_exit(0);
}
my $sink = Sink->start;
my $petrel = Petrel->new(minimal_backoff_time => '1h', smtp_connection_cache_time_limit => '0s',
    routes => "sender.test smtp://127.0.0.1:$sink->{port}\n"
        . join "\n", map { "$_.test smtp://127.0.0.1:" . $listener{$_}->sockport } sort keys %reply)->start;

# Printable ASCII, or UTF-8 without control characters (those of U+0080 to U+009F, too) and signs that turn text around.
sub clean {
    my ($text, $name) = @_;
    my $copy = $text;
    my $good = utf8::decode($copy) && $copy !~ /[^\n\t\x20-\x7e\xa0-\x{10ffff}]/ && $copy !~ /[\x{202a}-\x{202e}]/;
    ok $good, "$name: nothing of it reaches a terminal" or diag join ' ', map { sprintf '%02x', ord } split //, substr $text, 0, 3000;
    return;
}
sub take {
    my ($from, $to) = @_;
    return $petrel->send_mail($from, $to, "Subject: s\n\nb\n") =~ /queued as ([0-9A-Z-]+)/ ? $1 : die 'not taken';
}

for my $name (sort keys %reply) {
    my $id = take("$name\@sender.test", "$name\@$name.test");
    my $want = $waits{$name} ? qr/status=deferred/ : qr/class=no_user.*status=bounced/;
    ok $petrel->wait_log(qr/$id: to=<$name\@$name\.test>.*$want/), "$name: it has its verdict";
    my $log = join "\n", grep { /$id/ } split /\n/, $petrel->log;
    clean($log, "$name: log");
    is Petrel::count($log, qr/^[^\n]*$id: to=/m), 1, "$name: one line";
    if (!$waits{$name}) {
        my $bounce = $sink->wait_for("$name\@sender.test");
        ok $bounce, "$name: its sender hears";
        my $parts = Report::parse($bounce->{data});
        is $parts->{status}[1]{action}, 'failed', "$name: of a failure";
        is scalar(@{ $parts->{status} }), 2, "$name: with one recipient";
        clean($bounce->{data} =~ s/\r\n/\n/gr, "$name: bounce");
        is scalar(grep { length > 998 } split /\r?\n/, $bounce->{data}), 0, "$name: lines as RFC 5322 wants them";
    }
    my $later = take("me\@sender.test", "later-$name\@$name.test");
    ok $petrel->wait_log(qr/$later: to=.*status=deferred/), "$name: as 450 it waits";
    for my $command ([qw(queue show)], [qw(queue why)], [qw(queue show --json)], [qw(queue why --json)]) {
        my ($code, $out) = $petrel->run(@$command, $later);
        is $code, 0, "$name: @$command";
        clean($out, "$name: @$command");
        next unless $command->[-1] eq '--json';
        my $json = eval { decode_json($out) };
        ok $json && $json->{recipients}[0]{delay_reason}, "$name: is JSON";
    }
}
for my $command ([qw(queue ls)], [qw(queue ls --json)], ['status'], [qw(status --json)]) {
    my ($code, $out) = $petrel->run(@$command);
    is $code, 0, "@$command";
    clean($out, "@$command");
}
clean($petrel->log, 'the whole log');
is $petrel->stop, 0, 'it ends well';
$petrel->start;
my ($code, $out) = $petrel->run(qw(queue ls));
clean($out, 'after a restart');
$petrel->stop;
kill 'TERM', $pid;
waitpid $pid, 0;
$sink->stop;
done_testing;
