#!/usr/bin/perl
# One message or two? Every way of spec "SMTP smuggling" to have one message taken for two, sent through Petrel to a
# sink that keeps the bytes, to Postfix as Debian ships it and to Exim: one message comes out, or a refusal. From an
# untrusted client, whose bare LF, bare CR and NUL are refused, from one that may relay, in whose content they are repaired,
# from an old device and by sendmail -bs.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep time);
use Peer;

my ($cr, $lf, $crlf) = ("\r", "\n", "\r\n");
my %ends = (
    'LF.LF' => "$lf.$lf", 'LF.CRLF' => "$lf.$crlf", 'CRLF.LF' => "$crlf.$lf", 'CR.CR' => "$cr.$cr", 'CR.CRLF' => "$cr.$crlf",
    'CRLF.CR' => "$crlf.$cr", 'CR.LF' => "$cr.$lf", 'LF.CR' => "$lf.$cr", 'CRCRLF.CRCRLF' => "$cr$crlf.$cr$crlf", 'CRLF.CRCRLF' => "$crlf.$cr$crlf",
    'CRCRLF.CRLF' => "$cr$crlf.$crlf", 'LFLF.LFLF' => "$lf$lf.$lf$lf", 'CRLF.LFLF' => "$crlf.$lf$lf", 'LFCR.LFCR' => "$lf$cr.$lf$cr",
    'NUL CRLF.CRLF NUL' => "\0$crlf.$lf\0", 'CRLF.SP CRLF' => "$crlf. $crlf", 'CRLF.TAB CRLF' => "$crlf.\t$crlf", 'CRLF SP.CRLF' => "$crlf .$crlf",
    'CRLF TAB.CRLF' => "$crlf\t.$crlf", 'VT.VT' => "\x0b.\x0b", 'CRLF.VT' => "$crlf.\x0b", 'FF.FF' => "\x0c.\x0c", 'CRLF.FF CRLF' => "$crlf.\x0c$crlf",
    'NEL.NEL' => "\x85.\x85", 'UTF-8 NEL' => "\xc2\x85.\xc2\x85", 'U+2028' => "\xe2\x80\xa8.\xe2\x80\xa8", 'CRLF EOT CRLF' => "$crlf\x04$crlf",
    'CRLF.NEL CRLF' => "$crlf.\x85$crlf", 'CRLF.EOT' => "$crlf.\x04$crlf", 'CRLF..CRLF' => "$crlf..$crlf", 'CRLF...CRLF' => "$crlf...$crlf",
    map { my $all = "$crlf.$crlf"; substr $all, $_, 0, "\0"; ("NUL at $_ of CRLF.CRLF" => $all) } 1 .. 4,
);
my %starts = ('.LF' => ".$lf", '.CR' => ".$cr", '.CRCRLF' => ".$cr$crlf", 'LF.LF' => "$lf.$lf", '.NUL CRLF' => ".\0$crlf", '. CRLF' => ". $crlf",
    'CR.CRLF' => "$cr.$crlf", 'LF' => $lf, 'CR' => $cr);

my $sink = Sink->start('--capture');
my $routes = "raw.test smtp://127.0.0.1:$sink->{port}\n";
my (%peer, @absent);
my $behind = Sink->start; # what the peers relay to
for my $name (qw(postfix exim)) {
    if (my $why = Peer::missing($name)) { push @absent, $why; next }
    $peer{$name} = Peer->can($name)->($behind->{port}, $name eq 'postfix' ? (smtpd_forbid_bare_newline => 'no', smtpd_forbid_unauth_pipelining => 'no') : ());
    $routes .= "$name.test smtp://127.0.0.1:$peer{$name}{port}\n";
}
my $petrel = Petrel->new(routes => "$routes* hold", relay_from => '127.0.0.1/32', local_domains => 'raw.test, postfix.test, exim.test', server_session_limit => 1000, client_session_limit => 1000, smtpd_hard_error_limit => 1000);
my $legacy = Petrel::free_port();
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$legacy?profile=legacy")->start;
my $inner = 'MAIL FROM:<evil@sender.test>' . $crlf . 'RCPT TO:<smuggled@evil.test>' . $crlf . 'DATA' . $crlf . 'Subject: smuggled' . $crlf . $crlf . 'evil' . $crlf;
my $header = join $crlf, 'From: a@sender.test', 'To: b@x.test', 'Date: Sat, 21 Nov 2026 03:00:00 +0000', 'Message-ID: <1@here.test>', 'Subject: front', '', '';
my $front = "${header}text";
my (%copies, %odd, %sent); # recipient => how many may arrive; name => answers out of turn; recipient => content
my $tries = 0;
my %from = (untrusted => '127.0.0.2', trusted => '127.0.0.1');
my $who; # of these: who tries
# The resulting content: beside what is repaired, a dot alone in its line is content.
sub repaired {
    my $lines = $_[0] =~ s/\r\n\.\r\n\z/\r\n/r =~ s/\r+\n|\r+|\n/$crlf/gr =~ s/\0//gr;
    return join $crlf, map { $_ eq '.' ? $_ : s/\A\.//r } split /$crlf/, $lines, -1;
}

# Sends the pieces as content; returns "250" or the like, and remembers what may arrive.
sub try_content {
    my ($name, $domain, @pieces) = @_;
    my $to = 'try' . ++$tries . "\@$domain";
    my $client = Client->connect($petrel->{port}, LocalAddr => $from{$who});
    $client->{socket}->setsockopt(6, 1, 1); # TCP_NODELAY: each piece by itself
    $client->reply;
    $client->put(join $crlf, 'EHLO client.test', 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA', '');
    $client->reply for 1 .. 4;
    for my $i (0 .. $#pieces) {
        $client->put($pieces[$i]) or last;
        sleep 0.002 if $i < $#pieces;
    }
    my $answer = $client->reply;
    $client->put("QUIT$crlf");
    my $after = $client->rest;
    push @{ $odd{"$who $name"} }, $after if $after !~ /\A(?:221[^\n]*\n)?\z/;
    $copies{$to} = $answer =~ /^250 2\.0\.0 Ok: queued/ ? 1 : 0;
    $sent{$to} = repaired(join '', @pieces);
    return substr $answer, 0, 3;
}

sub cut { my ($bytes, $at) = @_; return (substr($bytes, 0, $at), substr $bytes, $at) }

# --- Ends that are none, whole and cut anywhere

for (qw(untrusted trusted)) {
    $who = $_;
    my %answers;
    for my $name (sort keys %ends) {
        my ($end, $rest) = ($ends{$name}, "$inner.$crlf");
        my @ways = ([$front . $end . $rest]);
        push @ways, [cut($front . $end . $rest, length($front) + $_)] for 0 .. length $end;
        push @ways, [$front, split(//, $end), $rest];
        # Across the borders of buffers.
        for my $border (4096, 16384) {
            my $long = $front . $crlf . ('f' x 62 . $crlf) x ($border / 64);
            my $at = $border - 1 - int(length($end) / 2);
            push @ways, [substr($long, 0, $at - 1) =~ s/[\r\n]*\z//r . $end . $rest];
        }
        $answers{$name} = join ' ', (map { try_content($name, 'raw.test', @$_) } @ways), map { try_content($name, "$_.test", @{ $ways[0] }) } sort keys %peer;
    }
    for my $name (sort keys %starts) {
        my $all = $starts{$name} . "$inner.$crlf";
        my @ways = ([$all], (map { [cut($all, $_)] } 1 .. length $starts{$name}), [split(//, $starts{$name}), "$inner.$crlf"]);
        $answers{"start $name"} = join ' ', (map { try_content("start $name", 'raw.test', @$_) } @ways), map { try_content("start $name", "$_.test", $all) } sort keys %peer;
    }
    for my $name (sort keys %answers) {
        like $answers{$name}, qr/\A(250|5\d\d)(?: \1)*\z/, "$who, $name: one answer, however it is cut";
        is scalar(@{ $odd{"$who $name"} // [] }), 0, "$who, $name: and no other" or diag $odd{"$who $name"}[0];
    }
    for my $name (sort keys %answers) {
        my $end = $ends{$name} // $starts{ $name =~ s/^start //r };
        my $bare = $who eq 'untrusted' && ($end =~ s/\r\n//gr) =~ /[\r\n\0]/;
        like $answers{$name}, $bare ? qr/\A521/ : qr/\A250/, "$who, $name: is " . ($bare ? 'refused' : 'taken');
    }
}

# --- Long lines: where somebody cuts one, no lone dot may begin

for my $domain ('raw.test', map { "$_.test" } sort keys %peer) {
    for my $length (510, 996 .. 1002, 1022 .. 1025, 2046 .. 2048, 4094 .. 4097, 8190 .. 8193, 16382 .. 16385) {
        next if $domain ne 'raw.test' && $length % 2; # a process each, at the peers
        my $all = $header . 'k' x $length . ".$crlf$inner.$crlf";
        like try_content("long $length", $domain, $all), qr/^(?:250|5\d\d)/, "a line of $length letters and a dot to $domain";
    }
}
is_deeply [grep { /^\S+ long/ } keys %odd], [], 'long lines: nothing else is answered';

# --- Chunks

# Sends bytes after the envelope, then QUIT; all that was answered until the end, or until nothing more
# comes for so many seconds after the first reply.
sub try_bytes {
    my ($to, $seconds, @pieces) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => $from{$who});
    $client->say($_) for 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>";
    for my $piece (@pieces) { $client->put($piece) or last; sleep 0.002 }
    $client->put("QUIT$crlf");
    return ($client->reply . $client->rest($seconds)) =~ s/\r//gr;
}

my $content = "${header}one$crlf.$crlf$inner.$crlf..two";
my $size = length $content;
for my $domain ('raw.test', map { "$_.test" } sort keys %peer) {
    my $at = index $content, "$crlf.$crlf";
    for my $cut ($domain eq 'raw.test' ? (0 .. 3, 10, $at + 1 .. $at + 6, $size - 6 .. $size) : (0, $at + 3, $size)) {
        my $to = "chunk$cut\@$domain";
        my ($one, $two) = cut($content, $cut);
        my $all = try_bytes($to, undef, "BDAT $cut$crlf$one", 'BDAT ' . ($size - $cut) . " LAST$crlf", $two);
        like $all, qr/\A250 [^\n]*\n250 2\.0\.0 Ok: queued as \S+\n221 [^\n]*\n\z/, "chunks cut at $cut to $domain: one reply each";
        ($copies{$to}, $sent{$to}) = (1, $content . $crlf);
    }
}
for my $size ('-1', '+5', '0x10', '4294967296', '4294967301', '9223372036854775808', '18446744073709551615', '18446744073709551616', '18446744073709551621', '', '5 5', '5 LASTX', '5LAST', 'LAST', '5.0', '1e3', ' ') {
    my $to = 'size' . ++$tries . '@raw.test';
    # A size that is a number is swallowed, QUIT included.
    my $all = try_bytes($to, $size =~ /^\d+$/ ? 0.3 : undef, "BDAT $size$crlf", $inner, ".$crlf");
    like $all, qr/\A5\d\d [^\n]*\n/, "BDAT '$size': refused";
    unlike $all, qr/queued as|^354/m, "BDAT '$size': and nothing is taken";
    $copies{$to} = 0;
}
for (qw(untrusted trusted)) {
    $who = $_;
    my $is_good = $who eq 'trusted' ? 1 : 0;
    for my $case (
        ['bare LF' => $is_good, "BDAT 9 LAST${crlf}a$lf.${lf}b$crlf$lf$lf"], ['bare CR' => $is_good, "BDAT 9 LAST${crlf}a$cr.${cr}b$crlf$crlf"],
        ['NUL' => $is_good, "BDAT 5 LAST${crlf}a\0b$crlf"], ['bare CR at the end of a chunk' => $is_good, "BDAT 2${crlf}a$cr", "BDAT 3 LAST${crlf}b$crlf"],
        ['bare CR at the end of the last chunk' => $is_good, "BDAT 2 LAST${crlf}a$cr"], ['a lone LF as the last chunk' => $is_good, "BDAT 1${crlf}a", "BDAT 1 LAST$crlf$lf"],
        ['CRLF across chunks' => 1, "BDAT 2${crlf}a$cr", "BDAT 4 LAST$crlf${lf}b$crlf"], ['DATA behind a chunk' => 0, "BDAT 3${crlf}a$crlf", "DATA$crlf"],
        ['a second envelope behind a chunk' => 0, "BDAT 3${crlf}a$crlf", $inner], ['LF for the line of BDAT' => 0, "BDAT 5 LAST${lf}abc$crlf"],
        )
    {
        my ($name, $good, @pieces) = @$case;
        my $to = 'chunks' . ++$tries . '@raw.test';
        my $all = try_bytes($to, undef, @pieces);
        is scalar(() = $all =~ /queued as/g), $good, "$who, chunks, $name: " . ($good ? 'taken' : 'refused') or diag $all;
        unlike $all, qr/^354/m, "$who, chunks, $name: nothing else begins";
        $copies{$to} = $good;
    }
}

# A chunk that is refused is swallowed, not run.
my $client = Client->greeted($petrel->{port});
my $long = length $inner;
$client->put("BDAT $long LAST$crlf$inner" . "NOOP$crlf" . "QUIT$crlf");
like $client->rest =~ s/\r//gr, qr/\A503 [^\n]*\n250 [^\n]*\n221 [^\n]*\n\z/, 'a chunk without an envelope: one refusal, nothing of it is run';

# --- Commands

for my $case (['LF' => $lf], ['CR' => $cr], ['LFCR' => "$lf$cr"], ['NUL' => "\0$crlf"], ['CRCRLF' => "$cr$crlf"]) {
    my ($name, $end) = @$case;
    my $to = 'command' . ++$tries . '@raw.test';
    my $client = Client->greeted($petrel->{port});
    $client->put(join $end, 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA', 'Subject: x', '', 'x', ".$crlf", "QUIT$crlf");
    unlike $client->reply . $client->rest(1), qr/queued as|^354/m, "commands that end with $name: nothing is taken";
    $copies{$to} = 0;
}
for my $case ('MAIL FROM:<a@sender.test>' . $cr . 'RCPT TO:<b@raw.test>', 'NO' . $cr . 'OP', 'MAIL FROM:<a' . $lf . '@sender.test>', 'NOOP ' . $cr) {
    my $client = Client->greeted($petrel->{port});
    like $client->say($case), qr/^5/, 'a CR or LF inside a command: refused';
    unlike $client->say('RCPT TO:<b@raw.test>'), qr/^250/, 'and no envelope begun';
}

# --- From a device that ends lines with LF, at an address that lets it

my $front_door = Client->greeted($legacy);
for my $case (['LF' => "one\n..\n.two\n\n", "one\r\n.\r\ntwo\r\n\r\n"], ['mixed' => "one\r\n..\n..\r\nx\n", "one\r\n.\r\n.\r\nx\r\n"]) {
    my ($name, $text, $wanted) = @$case;
    my $to = 'legacy' . ++$tries . '@raw.test';
    $front_door->say($_) for 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA';
    $front_door->put(($header =~ s/\r//gr) . "$text.\n");
    like $front_door->reply, qr/^250/, "old device, $name: taken";
    ($copies{$to}, $sent{$to}) = (1, "$header$wanted");
}
# Its NULs and bare CRs end no message, and no command.
for my $text ("a\r.\rb\n", "a\0b\n\0.\n", "a\r\r\nb\n", "a\r\n.\r\0\nb\n") {
    my $to = 'legacy' . ++$tries . '@raw.test';
    my $client = Client->greeted($legacy);
    $client->say($_) for 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA';
    $client->put("Subject: x\n\n$text.\n");
    like $client->reply, qr/^250/, 'old device, odd bytes: taken';
    like $client->say('QUIT'), qr/^221/, 'old device, odd bytes: and nothing else';
    ($copies{$to}, $sent{$to}) = (1, repaired("$crlf$text"));
}
for my $case ("NO\rOP", "NOOP\0", "MAIL FROM:<a\@sender.test>\rRCPT TO:<b\@raw.test>") {
    like(Client->greeted($legacy)->say($case), qr/^5/, 'old device, odd bytes in a command: refused');
}

# --- From a program that writes to sendmail -bs

for my $case (['LF' => $lf, "one\n.\n"], ['CRLF' => $crlf, "one\r\n.\r\n"], ['CRLF, LF in content' => $crlf, "one\n.\ntwo\n.\r\nthree\r\n.\r\n"]) {
    my ($name, $end, $text) = @$case;
    my $to = 'standard' . ++$tries . '@raw.test';
    my ($code, $said) = Petrel::command(
        (join $end, 'EHLO x', 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA', '') . ($end eq $lf ? $header =~ s/\r//gr : $header) . $text . "QUIT$end",
        $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-bs');
    is scalar(() = $said =~ /queued as/g), 1, "sendmail -bs, $name: one message" or diag $said;
    like $said, qr/^221/m, "sendmail -bs, $name: and the next command";
    is scalar(() = $said =~ /^250-CHUNKING/mg), $end eq $lf ? 0 : 1, "sendmail -bs, $name: chunks where their bytes are counted";
    ($copies{$to}, $sent{$to}) = (1, $header . repaired($end eq $lf ? $text =~ s/\n/\r\n/gr : $text));
}
for my $text ("one$cr.${cr}two$lf", "one\0$lf") {
    my $to = 'standard' . ++$tries . '@raw.test';
    my ($code, $said) = Petrel::command((join $lf, 'EHLO x', 'MAIL FROM:<a@sender.test>', "RCPT TO:<$to>", 'DATA', '') . "Subject: x$lf$lf$text.${lf}QUIT$lf",
        $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-bs');
    is scalar(() = $said =~ /queued as/g), 1, 'sendmail -bs: a bare CR or NUL is repaired';
    ($copies{$to}, $sent{$to}) = (1, repaired("$crlf$text"));
}

# --- Input of the next hop

ok $petrel->wait_empty, 'all that was taken is gone' or diag $petrel->log =~ s/^.*status=sent.*\n//mgr;
sub count { my ($sink) = @_; my %count; for my $message ($sink->messages) { $count{$_}++ for @{ $message->{to} } } return \%count }
sub to_domain { my $domain = shift; return grep { /\@\Q$domain\E\z/ } keys %copies }

my $arrived = count($sink);
my @wrong = grep { ($arrived->{$_} // 0) != $copies{$_} } sort(to_domain('raw.test'));
is "@wrong", '', 'what was answered with 250 arrived once, what was refused did not';
is scalar($sink->messages), scalar(grep { $copies{$_} } to_domain('raw.test')), 'and nothing else did';
my @differ = grep { my $to = $_->{to}[0]; defined $sent{$to} && substr($_->{data}, -length $sent{$to}) ne $sent{$to} } $sink->messages;
is join(' ', map { $_->{to}[0] } @differ), '', 'byte for byte, long lines too';
my @raw = glob "$sink->{base}/1/connection.*.raw";
cmp_ok scalar(@raw), '>', 0, 'what came over the wire was kept';
is scalar(grep { (Petrel::slurp($_) =~ s/\r\n//gr) =~ /[\r\n\0]/ } @raw), 0, 'no bare CR, bare LF or NUL was ever sent on';

SKIP: {
    skip "@absent", 1 if @absent;
    my %log = map { $_ => $peer{$_} } keys %peer;
    # The messages that each peer took, by its own log; long lines Exim takes and then sends back.
    my %taken = (postfix => sub { my %n; $n{$_}++ for $_[0] =~ / to=<([^>]*)>/g; \%n }, exim => sub { my %n; $n{$_}++ for $_[0] =~ / (?:=>|\*\*) (\S+@\S+) /g; \%n });
    for my $name (sort keys %peer) {
        my @due = sort(grep { $copies{$_} } to_domain("$name.test"));
        ok Petrel::wait_for(sub { my $has = $taken{$name}->($peer{$name}->log); !grep { !$has->{$_} } @due }), "$name has what it was sent";
        my $got = $taken{$name}->($peer{$name}->log);
        delete $got->{$_} for grep { /^a\@sender\.test$/ } keys %$got; # its bounces of long lines
        is_deeply $got, { map { $_ => 1 } @due }, "$name: once each, and nothing else";
        unlike $peer{$name}->log, qr/evil/, "$name: no smuggled envelope";
    }
    ok Petrel::wait_for(sub { my $all = count($behind); !grep { $copies{$_} && !$all->{$_} } to_domain('postfix.test') }), 'and Postfix has sent it on';
    my $all = count($behind);
    is join(' ', grep { $all->{$_} > 1 && $_ ne 'a@sender.test' } keys %$all), '', 'once each';
    my ($chunked) = grep { $_->{to}[0] =~ /^chunk\d+\@postfix/ } $behind->messages;
    is substr($chunked->{data}, -$size - 2), $content . $crlf, 'dots and commands within are content still behind Postfix';
}
for my $sink ($sink, $behind) {
    is scalar(grep { "@{ $_->{to} } $_->{from}" =~ /smuggled|evil/ } $sink->messages), 0, 'no smuggled envelope reached a next hop';
}
is $petrel->stop, 0, 'Petrel ends well';

# Without Petrel before it, this Postfix takes one for two: what was tried is a danger.
SKIP: {
    skip "@absent", 1 unless $peer{postfix};
    my $straight = Client->greeted($peer{postfix}{port});
    $straight->say($_) for 'MAIL FROM:<a@sender.test>', 'RCPT TO:<b@postfix.test>', 'DATA';
    $straight->put("$front$lf.$crlf$inner.$crlf" . "QUIT$crlf");
    $straight->rest;
    ok $peer{postfix}->wait_log(qr/from=<evil/), 'sent straight to Postfix the same makes two of one';
}
$_->stop for values %peer;
done_testing;
