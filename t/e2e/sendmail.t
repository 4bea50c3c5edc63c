#!/usr/bin/perl
# sendmail(1) in surroundings that are broken or hostile: closed descriptors, umask, limits, kills, an endless input,
# thousands of arguments, somebody else's directory.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep);

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scratch = tempdir('sendmail-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chdir $scratch or die;
my $spool = "$scratch/spool";
%ENV = (%ENV, PETREL_SPOOL => $spool, PETREL_HOSTNAME => 'petrel.test', B => $Petrel::binary);
symlink $Petrel::binary, "$scratch/sendmail" or die;

# sh('script', input) -> (code, output of both streams); $B is the binary.
sub sh { my ($script, $input) = @_; return Petrel::command($input // '', 'bash', '-c', $script) }
sub queued { return scalar(() = glob "$spool/todo/*") }
sub shown { return scalar `$Petrel::binary queue cat --all 2>&1` }
sub clear { `$Petrel::binary queue rm --all`; return is(scalar(() = glob("$spool/{pid,mess,intd,todo}/*")), 0, 'nothing is left in the spool') }

my ($code, $text);
my $letter = "Subject: x\n\n" . "all of the body\n" x 5000;
(my $crlf = $letter) =~ s/\n/\r\n/g;

# --- Descriptors that the caller has closed

for my $closed ('1>&-', '2>&-', '1>&- 2>&-') {
    ($code, $text) = sh("\$B sendmail -v -Z -f me\@a.test b\@b.test $closed", $letter);
    is $code, 0, "sendmail $closed" or diag $text;
    is queued(), 1, 'the message is there';
    like shown(), qr/\r\n\Q$crlf\E\z/, 'and holds nothing that was said';
    clear();
}
($code, $text) = sh('$B sendmail -f me@a.test b@b.test 0<&-');
is $code, 0, 'sendmail 0<&-: an empty message' or diag $text;
like shown(), qr/From: [^\n]*<me\@a\.test>\r\n(?:[^\n]+\r\n)+\r\n\z/, 'is an empty message';
clear();
($code, $text) = sh('$B sendmail -Z "a b" 0<&- 1>&- 2>&-');
is $code, 65, 'all three closed, and a mistake';
is queued(), 0, 'nothing is queued';
($code, $text) = sh('$B sendmail b@b.test <.');
is $code, 74, 'an input that cannot be read: EX_IOERR' or diag $text;
clear();
($code, $text) = sh('$B queue ls >/dev/full; echo $?');
is $text, "0\n", 'queue ls of nothing writes nothing';
sh('$B sendmail b@b.test', $letter);
($code, $text) = sh('$B queue ls >/dev/full');
is $code, 74, 'queue ls >/dev/full: EX_IOERR';
($code, $text) = sh('$B queue ls --json | head -c 5');
is $text, '{"que', 'a reader that goes away';
clear();

# --- Limits

for my $umask ('0000', '0777') {
    ($code, $text) = sh("umask $umask; \$B sendmail -f me\@a.test b\@b.test", $letter);
    is $code, 0, "umask $umask" or diag $text;
    is sprintf('%04o', (stat((glob("$spool/mess/*"))[0]))[2] & 07777), '0600', 'the mode is ours';
    like shown(), qr/all of the body/, 'and readable';
    clear();
}
($code, $text) = sh('ulimit -f 16; $B sendmail b@b.test', $letter);
is $code, 75, 'a file size limit: try later' or diag $text;
like $text, qr/^sendmail: [^\n]+\n\z/m, 'is explained';
clear();
($code, $text) = sh('ulimit -n 5; $B sendmail b@b.test', $letter);
isnt $code, 0, 'no descriptors';
unlike $text, qr/Assert|fault|dumped/i, 'but no crash';
clear();
($code, $text) = sh('yes | PETREL_MESSAGE_SIZE_LIMIT=1M timeout 60 $B sendmail b@b.test');
is $code, 65, 'an endless input';
is $text, "sendmail: the message is larger than message_size_limit\n", 'has an end';
clear();
($code, $text) = sh('tr -d "\n" </dev/zero | tr "\0" x | PETREL_MESSAGE_SIZE_LIMIT=1M timeout 60 $B sendmail b@b.test');
is $code, 65, 'an endless line';
clear();
($code, $text) = sh('(printf "Subject: "; tr "\0" x </dev/zero) | timeout 60 $B sendmail b@b.test');
is $code, 65, 'an endless header';
is $text, "sendmail: the header is larger than 1 MB\n", 'has an end';
clear();

# --- Many arguments

($code, $text) = sh('$B sendmail $(seq -f u%g@b.test 1000)', $letter);
is $code, 0, '1,000 recipients' or diag $text;
is scalar(() = `$Petrel::binary queue show --all` =~ /^to: /mg), 1000, 'all of them';
clear();
($code, $text) = sh('PETREL_RECIPIENT_LIMIT=10 $B sendmail -v $(seq -f u%g@b.test 3000)', $letter);
is $code, 0, '3,000, since recipient_limit is for SMTP' or diag $text;
like $text, qr/^queued as [0-9A-Z-]+\n\z/, 'one message';
clear();

# --- More than an envelope takes

sub list_of { my $count = shift; return "Subject: news\nTo: list\@a.test\nBcc: " . join(",\n u", '', map {"$_\@b.test"} 2 .. $count) =~ s/^,\n //r . "\n\nthe news\n" }
($code, $text) = sh('$B sendmail -t -v -f list@a.test', list_of(20_001));
is $code, 0, '20,001 recipients' or diag $text;
like $text, qr/^queued as [0-9A-Z-]+ and 2 more\n\z/, 'become three messages';
is queued(), 3, 'in the queue';
my $shown = `$Petrel::binary queue show --all`;
is scalar(() = $shown =~ /^to: /mg), 20_001, 'with all of them';
my %seen;
$seen{$_}++ for $shown =~ /^to: +(\S+)/mg;
is scalar keys %seen, 20_001, 'each in one message';
my $whole = `$Petrel::binary queue cat --all`;
my %names = map { $_ => 1 } $whole =~ /^Message-ID: (\S+)/mg;
is scalar keys %names, 1, 'of the same Message-ID';
is scalar(() = $whole =~ /^the news/mg), 3, 'and content';
unlike $whole, qr/^Bcc/m, 'without Bcc';
clear();
($code, $text) = sh('PETREL_MESSAGE_SIZE_LIMIT=5000 $B sendmail -t', list_of(20_001) . "x\n" x 3000);
is $code, 65, 'when the content is too large';
is queued(), 0, 'none of them is queued';
($code, $text) = sh('ulimit -n 12; $B sendmail -t', list_of(100_000));
isnt $code, 0, 'no descriptors for all' or diag $text;
is queued(), 0, 'is no message at all';
is scalar(() = glob "$spool/{pid,mess,intd,todo}/*"), 0, 'and leaves no files';

# --- Signals at any moment

for my $signal ('KILL', 'HUP', 'TERM', 'INT') {
    for my $delay (0, 0.005, 0.02, 0.1) {
        pipe my $end, my $open or die; # as long as this is, the message has no end
        local @SIG{qw(HUP TERM INT)} = ('DEFAULT') x 3; # Perl keeps a signal for its handler, and exec() forgets it
        my $pid = fork // die;
        if ($pid == 0) {
            POSIX::dup2(fileno $end, 9);
            open STDIN, '-|', 'bash', '-c', 'printf "Subject: x\n\n"; sleep 0.01; yes body 2>/dev/null | head -c 300000 2>/dev/null; exec cat <&9' or POSIX::_exit(1);
            POSIX::close(9);
            exec $Petrel::binary, 'sendmail', 'b@b.test' or POSIX::_exit(127);
        }
        sleep $delay;
        kill $signal, $pid;
        waitpid $pid, 0;
        isnt $?, 0, "SIG$signal after $delay s";
    }
}
is queued(), 0, 'what was killed is not queued';
sh('$B sendmail b@b.test', $letter);
is queued(), 1, 'and stops nobody else';
`$Petrel::binary queue rm --all`;

# --- Somebody else's directory, and environment

mkdir "$scratch/theirs" or die;
Petrel::spit("$scratch/theirs/petrel.conf", "spool = $scratch/theirs/spool\nhostname = evil.test\n");
delete local @ENV{qw(PETREL_SPOOL PETREL_HOSTNAME)};
$ENV{PETREL_SERVICE_HOST} = '10.0.0.1';
SKIP: {
    skip 'only root can give a file away', 3 if $> != 0;
    chown 12345, 12345, "$scratch/theirs/petrel.conf" or die;
    ($code, $text) = sh("cd $scratch/theirs && PETREL_SPOOL=$spool ../sendmail -f me\@a.test b\@b.test", $letter);
    is $code, 0, 'a stranger\'s petrel.conf where sendmail is called' or diag $text;
    ok !-e "$scratch/theirs/spool", 'is not read';
    unlike scalar(`PETREL_SPOOL=$spool $Petrel::binary queue cat --all`), qr/evil\.test/, 'at all';
    chown 0, 0, "$scratch/theirs/petrel.conf" or die;
}
($code, $text) = sh("cd $scratch/theirs && ../sendmail -f me\@a.test b\@b.test", $letter);
is $code, 0, 'our own';
is scalar(() = glob "$scratch/theirs/spool/todo/*"), 1, 'is';
chdir '/';
done_testing;
