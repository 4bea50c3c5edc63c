#!/usr/bin/perl
# Passing trouble with aliases: files that are missing, damaged or no files at startup, at a reload and between;
# too many members, a secret that cannot be read, a disk that is full: 4yz or the old table, and no mail is lost or doubled.
use lib 't/e2e';
use E2E;
use POSIX qw(mkfifo);
use Mount;

my $may_mount = Mount::namespace();
my $dir = tempdir('alias_trouble-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $next = "m.test discard\n* smtp://127.0.0.1:$sink->{port}";
mkdir "$dir/mail";
my %base = (hostname => 'here.test', local => "maildir:$dir/mail/%u", routes => $next, check_helo => 'no', check_sender => 'no', relay_from => '192.0.2.0/24', minimal_backoff_time => '1s', maximal_backoff_time => '1s');
my $file = "$dir/aliases";
my $good = "team: ann\@home.test, bob\@home.test, carl\@home.test\nroot: ann\@home.test\n";

sub asks { my ($petrel, $from, @to) = @_; my @r = $petrel->dialogue('EHLO x', "MAIL FROM:<$from>", (map { "RCPT TO:<$_>" } @to), 'QUIT'); return map { /^(\d+ \S+)/ ? $1 : $_ } @r[3 .. 2 + @to] }
sub have { my ($subject, $to) = @_; return scalar grep { $_->{data} =~ /^Subject: \Q$subject\E\r$/m } $sink->for_address($to) }
sub mail { my ($petrel, $subject, $flags) = @_; return Petrel::command("Subject: $subject\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', split ' ', $flags) }
sub remove { system('rm', '-rf', $_[0]) == 0 or die }

# --- At startup: a bad start is one line, and exit code 78; neither a FIFO nor a device keeps it. -------------------
my %bad = (
    missing => [sub { }, qr/aliases: cannot read '\Q$file\E': No such file or directory/],
    'a directory' => [sub { mkdir $file }, qr/aliases: cannot read '\Q$file\E': /],
    'a FIFO' => [sub { mkfifo($file, 0600) }, qr/aliases: cannot read '\Q$file\E': /],
    'a device' => [sub { symlink '/dev/zero', $file }, qr/aliases: cannot read '\Q$file\E': /],
    'a circle of links' => [sub { symlink $file, $file }, qr/aliases: cannot read '\Q$file\E': Too many levels/],
    binary => [sub { Petrel::spit($file, "a: b\n\0\1\2\n") }, qr/aliases: \Q$file\E:2: a control character/],
    'a database' => [sub { Petrel::spit($file, "\x61\x15\x06\x00" x 1000) }, qr/aliases: \Q$file\E:1: a control character/],
    'too large' => [sub { Petrel::spit($file, '#' x (17 << 20)) }, qr/aliases: cannot read '\Q$file\E': File too large/],
    'for all to write' => [sub { Petrel::spit($file, $good); chmod 0666, $file }, qr/all users can write it/],
    'a circle' => [sub { Petrel::spit($file, "a: b\nb: a\n") }, qr/aliases: \Q$file\E:1: 'a' leads back to itself/],
    '|program' => [sub { Petrel::spit($file, "a: b\nc: \"|/bin/sh\"\n") }, qr/aliases: \Q$file\E:2: .*Petrel starts no programs/],
    'an include that is missing' => [sub { Petrel::spit($file, "a: :include:$dir/none\n") }, qr/aliases: \Q$file\E:1: :include:\Q$dir\E\/none: No such file/],
);
for my $name (sort keys %bad) {
    my ($make, $line) = @{ $bad{$name} };
    remove($file);
    $make->();
    my $petrel = Petrel->new(%base, aliases => $file);
    for my $command ('run', 'check') {
        my ($code, $said) = $petrel->run($command);
        is $code, 78, "$name: $command ends";
        like $said, $line, "$name: and says why";
    }
}

# --- At a reload, and when the file is looked at: the old table stays. ---------------------------------------------
remove($file);
Petrel::spit($file, $good);
my $petrel = Petrel->new(%base, aliases => $file, recipient_limit => 50000)->start;
for my $name ('missing', 'a FIFO', 'binary', 'a circle', 'an include that is missing') {
    my ($make, $line) = @{ $bad{$name} };
    remove($file);
    $make->();
    my ($code, $said) = $petrel->run('reload');
    isnt $code, 0, "$name: the reload fails";
    like $said, $line, "$name: and says why";
    is_deeply [asks($petrel, 'x@far.test', 'team@here.test', 'nobody@here.test')], ['250 2.1.5', '550 5.1.1'], "$name: the old aliases stay";
}
Petrel::spit($file, "new: dora\@home.test\n");
is +($petrel->run('reload'))[0], 0, 'repaired: the reload succeeds';
is_deeply [asks($petrel, 'x@far.test', 'team@here.test', 'new@here.test')], ['550 5.1.1', '250 2.1.5'], 'and counts';
remove($file);
ok $petrel->wait_log(qr/aliases: cannot read '\Q$file\E': No such file[^\n]*\n[^\n]*the old aliases stay in use/), 'removed while it runs: logged';
is_deeply [asks($petrel, 'x@far.test', 'new@here.test')], ['250 2.1.5'], 'and the old ones stay';
like $petrel->send_mail('x@far.test', 'new@here.test', "Subject: meanwhile\n\nx\n"), qr/^250/, 'mail goes on';
ok $sink->wait_for('dora@home.test'), 'to where it should';
# A message of sendmail(1) is expanded by the aliases that are in use.
is +(mail($petrel, 'injected', '-f x@far.test new@here.test'))[0], 0, 'sendmail(1), too';
ok Petrel::wait_for(sub { have('injected', 'dora@home.test') }), 'comes' or diag $petrel->log;

# --- A list of nobody: its last member has left. ----------------------------------------------------------------------
Petrel::spit("$dir/nobody", "# nobody any more\n");
Petrel::spit($file, "empty: :include:$dir/nobody\nowned: :include:$dir/nobody\nowner-owned: ann\@home.test\nboth: empty, ann\@home.test\n");
is +($petrel->run('reload'))[0], 0, 'a list may be empty';
is_deeply [asks($petrel, 'x@far.test', 'empty@here.test', 'owned@here.test', 'both@here.test', 'empty+tag@here.test')], ['550 5.1.1', '550 5.1.1', '250 2.1.5', '550 5.1.1'], 'which is no address';
is +(mail($petrel, 'to nobody', '-f x@far.test empty@here.test both@here.test'))[0], 0, 'sendmail(1) takes it';
ok Petrel::wait_for(sub { grep { $_->{data} =~ /the alias has no address/ } $sink->for_address('x@far.test') }), 'and it bounces' or diag $petrel->log;
ok Petrel::wait_for(sub { have('to nobody', 'ann@home.test') == 1 }), 'the others get it';

# --- Too many ------------------------------------------------------------------------------------------------------
Petrel::spit($file, $good . join '', map { my $l = $_; "l$l: " . join(', ', map { "m$l-$_\@m.test" } 1 .. 1000) . "\n" } 1 .. 51);
is +($petrel->run('reload'))[0], 0, 'lists of 1,000';
my @replies = asks($petrel, 'x@far.test', map { "l$_\@here.test" } 1 .. 51);
is_deeply [@replies[0, 48, 49, 50]], [('250 2.1.5') x 3, '452 4.5.3'], 'fifty of them fit into a message, and no more';
is_deeply [asks($petrel, 'x@far.test', (map { "l$_\@here.test" } 1 .. 50), 'one@far.test', 'team@here.test')]->[51], '452 4.5.3', 'also not for a shorter one';
is_deeply [asks($petrel, 'x@far.test', 'l51@here.test')], ['250 2.1.5'], 'which is taken in the next';
# A client that may not relay: members count for recipient_limit, but for those of the first name, and for its rate.
my $strict = Petrel->new(hostname => 'here.test', local_domains => 'here.test', local => "maildir:$dir/mail/%u", aliases => $file, routes => '* discard',
    relay_from => '', rate_exempt => '', client_recipient_rate => '2000/h,burst=1500')->start;
my @strange = asks($strict, 'x@far.test', 'l1@here.test', 'l2@here.test', 'one@here.test');
is_deeply \@strange, ['250 2.1.5', '452 4.5.3', '452 4.5.3'], 'a stranger has one list of 1,000 in a message';
is_deeply [asks($strict, 'x@far.test', 'l2@here.test')], ['250 2.1.5'], 'and another in the next';
is_deeply [asks($strict, 'x@far.test', 'l3@here.test')], ['450 4.7.1'], 'as long as its rate has tokens for the members';
is $strict->stop, 0, 'it ends well';
# Memory of all sessions: a client waits for memory that others keep.
my @held;
my $full = '';
for my $n (1 .. 12) {
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    $client->say('MAIL FROM:<x@far.test>');
    for my $l (1 .. 45) { my $reply = $client->say("RCPT TO:<l$l\@here.test>"); $full = $reply if $reply !~ /^250/; last if $full }
    push @held, $client;
    last if $full;
}
like $full, qr/^452 4\.3\.1 /, 'expanded recipients count in the memory of all sessions' or diag $full;
is_deeply [asks($petrel, 'x@far.test', 'team@here.test')], ['250 2.1.5'], 'a short message passes';
$_->close for @held;
ok Petrel::wait_for(sub { (asks($petrel, 'x@far.test', 'l1@here.test', 'l2@here.test'))[1] eq '250 2.1.5' }), 'when they have gone there is room';
# More than a message may have, from sendmail(1): returned, and delivered to none of them.
my $lists = join ' ', map { "l$_\@here.test" } 1 .. 51;
is +(mail($petrel, 'many', "-f x\@far.test $lists team\@here.test"))[0], 0, 'sendmail(1) takes 51 lists';
ok Petrel::wait_for(sub { grep { $_->{data} =~ /more than 50000 recipients/ } $sink->for_address('x@far.test') }), 'which bounce' or diag substr $petrel->log, -3000;
is have('many', 'ann@home.test'), 0, 'as a whole';

# --- The secret of SRS ---------------------------------------------------------------------------------------------
like $petrel->send_mail('author@far.test', 'team@here.test', "Subject: srs\n\nx\n"), qr/^250/, 'mail is forwarded';
ok Petrel::wait_for(sub { have('srs', 'ann@home.test') }), 'and leaves';
my ($srs) = map { $_->{from} } grep { $_->{data} =~ /^Subject: srs\r$/m } $sink->for_address('ann@home.test');
like $srs, qr/^SRS0=/, 'with a sender of SRS';
my $secret = "$petrel->{dir}/spool/lock/srs";
my $whole = Petrel::slurp($secret);
Petrel::spit($secret, substr $whole, 0, 7);
is +($petrel->run('reload'))[0], 0, 'its file is damaged';
ok $petrel->wait_log(qr/warning: srs: lock\/srs: damaged/), 'which is logged';
is_deeply [asks($petrel, '', $srs, 'team@here.test')], ['451 4.3.0', '250 2.1.5'], 'what comes back waits, aliases do not';
like $petrel->send_mail('author@far.test', 'team@here.test', "Subject: blind\n\nx\n"), qr/^250/, 'mail is still forwarded';
ok Petrel::wait_for(sub { have('blind', 'ann@home.test') }), 'and leaves';
is +(map { $_->{from} } grep { $_->{data} =~ /^Subject: blind\r$/m } $sink->for_address('ann@home.test'))[0], 'author@far.test', 'with its own sender';
is +(mail($petrel, 'back', "-f <> $srs"))[0], 0, 'sendmail(1) takes an address of SRS';
ok $petrel->wait_log(qr/ ([0-9A-Z-]{19}): waits: addresses of SRS cannot be verified now: their secret cannot be read/), 'which waits';
my ($waits) = $petrel->log =~ / ([0-9A-Z-]{19}): waits: addresses of SRS/;
like +($petrel->run('queue', 'why', $waits))[1], qr/addresses of SRS cannot be verified now/, 'queue why says so';
is have('back', 'author@far.test'), 0, 'and goes to nobody';
Petrel::spit($secret, $whole);
ok Petrel::wait_for(sub { have('back', 'author@far.test') == 1 }), 'restored: it goes by itself' or diag $petrel->log;
unlike $petrel->log, qr/ \Q$waits\E: [^\n]*status=(?:bounced|expired)/, 'nothing was returned';
ok Petrel::wait_for(sub { (asks($petrel, '', $srs))[0] eq '250 2.1.5' }), 'restored: nobody has to ask for it' or diag $petrel->log;
is $petrel->stop, 0, 'it ends well';

# --- A full disk ---------------------------------------------------------------------------------------------------
SKIP: {
    skip 'nothing may be mounted here', 1 unless $may_mount;
    my $disk = Mount->tmpfs(64, 4000) or skip 'no tmpfs', 1;
    Petrel::spit($file, $good);
    my $p = Petrel->new(%base, aliases => $file, spool => "$disk->{dir}/spool", journal_size => '8M', journal_message_max => '100K')->start;
    $sink->stop;
    like $p->send_mail('x@far.test', 'team@here.test', "Subject: before\n\nx\n"), qr/^250/, 'full disk: there is room';
    is +(mail($p, 'injected before', '-f x@far.test team@here.test'))[0], 0, 'for sendmail(1), too';
    # In the middle of a transaction: the alias is expanded, and the content finds no room.
    my $client = Client->greeted($p->{port}) or die;
    $client->say('MAIL FROM:<x@far.test>') =~ /^250/ or die;
    like $client->say('RCPT TO:<team@here.test>'), qr/^250/, 'an alias is expanded';
    $disk->leave_bytes(0);
    like $client->say('DATA'), qr/^(?:354|452)/, 'then the disk is full';
    $client->put("Subject: during\r\n\r\n" . "x" x 70 . "\r\n");
    $client->put(("y" x 70 . "\r\n") x 5000 . ".\r\n");
    like $client->reply, qr/^(?:452|451) 4\.3\.[01] |^5/, 'it is refused for a while';
    $client->close;
    ok Petrel::wait_for(sub { ($p->dialogue('EHLO x', 'MAIL FROM:<x@far.test>', 'QUIT'))[2] =~ /^452 4\.3\.1/ }), 'so is MAIL';
    is +(mail($p, 'injected during', '-f x@far.test team@here.test'))[0], 75, 'and sendmail(1)';
    $p->kill9;
    $p->start;
    ok Petrel::wait_for(sub { ($p->dialogue('EHLO x', 'MAIL FROM:<x@far.test>', 'QUIT'))[2] =~ /^452 4\.3\.1/ }), 'after SIGKILL it is as before';
    $sink->again;
    $disk->relieve;
    ok $p->wait_empty, 'with room again all goes on' or diag $p->log;
    for my $to (map { "$_\@home.test" } qw(ann bob carl)) {
        is have('before', $to), 1, "$to: what was accepted, once";
        is have('injected before', $to), 1, "$to: also of sendmail(1)";
        is have('during', $to) + have('injected during', $to), 0, "$to: nothing of what was refused";
    }
    unlike $p->log, qr/Assertion|Sanitizer|corrupt/, 'nothing else went wrong';
    is $p->stop, 0, 'it ends well';
}
done_testing;
