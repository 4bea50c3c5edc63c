#!/usr/bin/perl
# The first day of somebody who tries it as root: where it is started, what root has made, what is wrong in the file.
use lib 't/e2e';
use E2E;
use Cwd qw(getcwd);

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $is_root = $> == 0;
my $scratch = tempdir('first-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $home = getcwd();

# --- In a directory that `user` cannot enter

SKIP: {
    skip 'only root can become somebody else', 1 unless $is_root;
    mkdir "$scratch/root", 0700 or die;
    chdir "$scratch/root" or die;
    my $petrel = Petrel->new(user => 'nobody', routes => '* discard');
    mkdir "$scratch/nobody" or die;
    chown 65534, 65534, "$scratch/nobody";
    $petrel->configure(listen => "127.0.0.1:$petrel->{port}, unix:$scratch/nobody/smtp");
    chmod 0755, $petrel->{dir};
    my @sockets = ("$petrel->{dir}/spool/control", "$scratch/nobody/smtp");
    is $petrel->start->stop, 0, 'from a directory of root alone it starts and stops';
    is_deeply [grep { -e } @sockets], [], 'and takes its sockets away';
    $petrel->start;
    $petrel->kill9;
    is_deeply [grep { -S } @sockets], \@sockets, 'SIGKILL leaves them';
    ok eval { $petrel->start }, 'the next start takes their place' or diag $petrel->log;
    is $petrel->stop, 0, 'and stops';
    is_deeply [grep { -e } @sockets], [], 'without them';
    SKIP: {
        skip 'no setpriv', 4 unless Petrel::have('setpriv');
        Petrel::spit("$scratch/petrel", Petrel::slurp($Petrel::binary));
        chmod 0755, "$scratch/petrel";
        my @other = qw(setpriv --reuid 12345 --regid 12345 --clear-groups);
        my ($code, $text) = Petrel::command('', @other, "$scratch/petrel", 'run');
        is $code, 78, 'who cannot read the current directory starts nothing from it';
        like $text, qr{\A\./petrel\.conf: the current directory comes first, and cannot be read .*\(petrel -c FILE\)\n\z}, 'and is told which file was looked for, and why';
        Petrel::spit("$scratch/petrel.conf", "hostname = a.test\n");
        chmod 0600, "$scratch/petrel.conf";
        chdir $scratch or die;
        ($code, $text) = Petrel::command('', @other, "$scratch/petrel", 'run');
        is $code, 78, 'nor with a file that it cannot read';
        like $text, qr{\A\./petrel\.conf: cannot read: Permission denied; it belongs to root \(mode 0600\): `chown 12345 \./petrel\.conf` if the daemon runs as 12345\n\z}, 'which is named, with its owner';
        unlink "$scratch/petrel.conf";
    }
    chdir $home or die;
}

# --- Relative paths

{
    my $petrel = Petrel->new(routes => '* discard', spool => 'queue', control => 'socket');
    chdir $petrel->{dir} or die;
    my $conf = $petrel->conf;
    no warnings 'redefine';
    local *Petrel::conf = sub { 'petrel.conf' };
    for my $end (qw(TERM KILL TERM)) {
        ok eval { $petrel->start }, "settings, spool and control by relative paths, to the end by $end" or diag $petrel->log;
        is +($petrel->run('status'))[0], 0, 'it answers';
        my $size = length $petrel->log;
        kill 'HUP', $petrel->{pid};
        ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /settings reloaded/ }), 'SIGHUP finds the file' or diag $petrel->log;
        $end eq 'KILL' ? $petrel->kill9 : is $petrel->stop, 0, 'it stops';
        is !!-e "$petrel->{dir}/socket", $end eq 'KILL', 'its socket';
    }
    chdir $home or die;
}

# --- Files made by root

sub owners { my $spool = shift; my %owners; $owners{ (lstat)[4] }++ for $spool, glob "$spool/* $spool/*/* $spool/*/*/*"; return join ' ', sort keys %owners }

SKIP: {
    skip 'only root can become somebody else', 1 unless $is_root;
    my $letter = "To: bob\@x.test\nSubject: hi\n\nhello\n";
    my $sink = Petrel::sink();
    my $petrel = Petrel->new(user => 'nobody', routes => "* smtp://127.0.0.1:$sink->{port}");
    chmod 0755, $petrel->{dir};
    is +($petrel->run({ input => $letter }, 'sendmail', '-t'))[0], 0, 'sendmail of root before the daemon ever ran';
    is +(stat "$petrel->{dir}/spool/lock")[4], 65534, 'makes the spool for `user`';
    ok eval { $petrel->start }, 'which the daemon can use' or diag $petrel->log;
    ok Petrel::wait_arrived($sink, 1), 'and delivers from' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
    is owners("$petrel->{dir}/spool"), '65534', 'nothing is root\'s';

    $petrel = Petrel->new(routes => '* hold')->start;
    chmod 0755, $petrel->{dir};
    like $petrel->send_mail('a@x.test', 'b@y.test', $letter), qr/^250/, 'a daemon without `user` took mail';
    $petrel->kill9;
    like owners("$petrel->{dir}/spool"), qr/\b0\b/, 'files of root are left';
    $petrel->configure(user => 'nobody', routes => "* smtp://127.0.0.1:$sink->{port}");
    ok eval { $petrel->start }, 'the daemon of `user` starts' or diag $petrel->log;
    is owners("$petrel->{dir}/spool"), '65534', 'all of them were given to it';
    like $petrel->log, qr/main: spool \S+: \d+ files and directories of root now belong to 'nobody'$/m, 'the log says so';
    is +($petrel->run(qw(queue release --all)))[0], 0, 'what was held';
    ok Petrel::wait_arrived($sink, 2), 'is not lost' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
}

SKIP: {
    skip 'needs root and setpriv', 1 unless $is_root && Petrel::have('setpriv');
    my $petrel = Petrel->new(routes => '* hold', user => 'nobody');
    chmod 0755, $petrel->{dir};
    Petrel::spit("$scratch/petrel", Petrel::slurp($Petrel::binary));
    chmod 0755, "$scratch/petrel";
    my @nobody = ('setpriv', '--reuid', 65534, '--regid', 65534, '--clear-groups', "$scratch/petrel", '-c', $petrel->conf);
    $petrel->configure(user => undef)->start;
    $petrel->stop;
    my ($code, $text) = Petrel::command('', @nobody, 'run');
    is $code, 73, 'who is not root cannot take root\'s spool';
    like $text, qr/cannot lock lock\/daemon: Permission denied \(chown -R nobody \Q$petrel->{dir}\E\/spool, or /, 'and hears how to get it';
    my $other = "$scratch/tmpfiles";
    mkdir $other or die;
    chown 65534, 65534, $other;
    $petrel->configure(spool => $other);
    is +($petrel->run({ input => "To: b\@y.test\n\nx\n" }, 'sendmail', '-t'))[0], 0, 'sendmail of root in an empty directory of the daemon\'s';
    ($code, $text) = Petrel::command('', @nobody, 'queue', 'ls');
    like $text, qr/b\@y\.test/, 'makes rooms that are the daemon\'s, without `user`, too';
}

# --- Settings with mistakes, or of root alone

my $letter = "To: bob\@x.test\nSubject: hi\n\nhello\n";
{
    my $sink = Petrel::sink();
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", message_size_limit => '10K')->start;
    my $about = Petrel::slurp("$petrel->{dir}/spool/lock/about");
    like $about, qr/^hostname = petrel\.test\nmessage_size_limit = 10240\n/m, 'the daemon says what sendmail needs';
    is +(stat "$petrel->{dir}/spool/lock/about")[2] & 07777, 0644, 'to everybody';
    $petrel->configure(listne => 'x');
    my ($code, $text) = $petrel->run({ input => $letter }, 'sendmail', '-t');
    is $code, 0, 'sendmail takes mail with a mistake elsewhere' or diag $text;
    like $text, qr/\Apetrel: warning: \S+petrel\.conf:3: listne: unknown setting; did you mean 'listen'\?; continuing without it \(`petrel check` shows all errors\)\n\z/, 'and warns, in one line';
    ok Petrel::wait_arrived($sink, 1), 'which is delivered';
    is +($petrel->run('status'))[0], 0, 'status answers';
    is +($petrel->run('queue', 'ls'))[0], 0, 'so does queue';
    is +($petrel->run('check'))[0], 78, 'check does not';
    is +($petrel->run('run'))[0], 78, 'nor does a start';
    ($code, $text) = $petrel->run({ input => $letter }, 'sendmail', '-bs');
    is $code, 0, '-bs neither' or diag $text;
    $petrel->configure(listne => undef, routes => '* nowhere://x', hostname => 'no name', recipient_limit => 'many', message_size_limit => 'lots');
    ($code, $text) = $petrel->run({ input => $letter }, 'sendmail', '-t', '-fme');
    is $code, 0, 'mistakes in what it needs' or diag $text;
    my $arrived = Petrel::wait_arrived($sink, 2);
    is $arrived->{from}, 'me@petrel.test', 'the daemon knows better';
    is +($petrel->run({ input => $letter . ('x' x 70 . "\n") x 200 }, 'sendmail', '-t'))[0], 65, 'its limits, too';
    ($code, $text) = $petrel->run({ input => $letter }, 'sendmail', '-bs');
    is $code, 78, '-bs needs the routes';
    $petrel->configure(hostname => 'petrel.test', routes => '* discard', recipient_limit => undef, message_size_limit => '20K', spol => 'x');
    $petrel->configure(spol => undef);
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { Petrel::slurp("$petrel->{dir}/spool/lock/about") =~ /^message_size_limit = 20480$/m }), 'a reload tells anew';
    Petrel::spit($petrel->conf, "spol = $petrel->{dir}/spool\n");
    ($code, $text) = $petrel->run('queue', 'rm', '--all');
    is $code, 78, 'a mistake in spool is not guessed around';
    like $text, qr/did you mean 'spool'/, 'but told';
    is $petrel->stop, 0, 'it stops';
}

SKIP: {
    skip 'needs root and setpriv', 1 unless $is_root && Petrel::have('setpriv');
    my $petrel = Petrel->new(routes => '* hold', spool => undef, user => 'nobody');
    my $spool = "$petrel->{dir}/spool";
    chmod 0755, $petrel->{dir};
    chmod 0600, $petrel->conf;
    local $ENV{PETREL_SPOOL} = $spool;
    my @stranger = ('setpriv', '--reuid', 12345, '--regid', 12345, '--clear-groups', "$scratch/petrel", '-c', $petrel->conf);
    my ($code, $text) = Petrel::command($letter, @stranger, 'sendmail', '-t');
    isnt $code, 0, 'a file that only root can read, and no daemon' or diag $text;
    like $text, qr/cannot read/, 'is told';
    $petrel->start;
    ($code, $text) = Petrel::command($letter, @stranger, 'sendmail', '-t', '-fme');
    is $code, 0, 'with a daemon the mail is taken' or diag $text;
    is $text, '', 'and nothing is wrong: cron would mail a warning each time';
    ok Petrel::wait_for(sub { ($petrel->run('queue', 'ls', '--json'))[1] =~ /"sender":\s*"me\@petrel\.test"/ }), 'by its host name';
    is $petrel->stop, 0, 'it stops';
}

# --- The operator's commands by others, and about nothing

{
    my $long = 'a' x 35 . '.test';
    my $petrel = Petrel->new(routes => "slow.test smtp://$long\n* hold", dns_servers => '127.0.0.1:1')->start;
    my ($code, $text) = $petrel->run(qw(queue rm --to nobody@x.test));
    is $code, 0, 'queue rm that matches nothing';
    is $text, "petrel queue: nothing to do: no message matches, or none needs a change\n", 'says so';
    is +($petrel->run(qw(queue rm --json --to nobody@x.test)))[1], $text, 'on standard error';
    like $petrel->send_mail('a@x.test', 'b@slow.test', "Subject: x\n\nx\n"), qr/^250/, 'mail for a site with a long name';
    ok Petrel::wait_for(sub { $text = ($petrel->run('status'))[1]; $text =~ /^  smtp:\[\Q$long\E/m }), 'status lists it' or diag $text;
    my ($head) = $text =~ /^(  site +waiting)/m;
    my ($row) = $text =~ /^(  smtp:\[\Q$long\E\S+ +\d+)/m;
    is length($row // ''), length($head // '-'), 'in the same columns as the others' or diag $text;
    SKIP: {
        skip 'needs root and setpriv', 3 unless $is_root && Petrel::have('setpriv');
        chmod 0755, $petrel->{dir};
        my @stranger = ('setpriv', '--reuid', 12345, '--regid', 12345, '--clear-groups', "$scratch/petrel", '-c', $petrel->conf, 'queue');
        ($code, $text) = Petrel::command('', @stranger, 'ls');
        is $code, 77, 'the queue is not for everybody';
        like $text, qr/\Apetrel queue: control socket '\S+': Permission denied \(only root and the daemon's user may connect\)\n\z/, 'which is said at once';
        ($code, $text) = Petrel::command('', @stranger, 'rm', '--all');
        is $code, 77, 'nor its changes';
    }
    is $petrel->stop, 0, 'it stops';
}

# --- The submitter

{
    my $petrel = Petrel->new(routes => '* hold');
    chmod 0755, $petrel->{dir};
    my @uid = $is_root && Petrel::have('setpriv') ? (12345, 'setpriv', '--reuid', 12345, '--regid', 12345, '--clear-groups') : ($>);
    my ($uid, @as) = @uid;
    my @sendmail = (@as, @as ? "$scratch/petrel" : $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-f', 'php@x.test', 'a@y.test', 'b@y.test');
    my $many = "Subject: hi\n\nhello\n";
    $petrel->start; # makes the rooms
    $petrel->stop;
    is +(Petrel::command($many, @sendmail))[0], 0, 'a message while no daemon runs';
    $petrel->start;
    my $line = qr/ sendmail: (\S+): uid=$uid, from=<php\@x\.test>, size=22, nrcpt=2 \(queued\)$/m;
    ok $petrel->wait_log($line), 'the daemon tells whose it was' or diag $petrel->log;
    is +(Petrel::command($many, @sendmail))[0], 0, 'one beside it';
    my $count = sub { my $pattern = shift; return scalar(() = $petrel->log =~ /$pattern/g) };
    ok Petrel::wait_for(sub { $count->($line) == 2 }), 'is told, too';
    like $petrel->send_mail('c@x.test', 'd@y.test', $many), qr/^250/, 'one by SMTP';
    ok $petrel->wait_log(qr/held by a route(?s:.*held by a route){2}/), 'all are held';
    $petrel->stop;
    $petrel->configure(log_style => 'postfix', journal_size => 0)->start;
    like $petrel->send_mail('c@x.test', 'd@y.test', $many), qr/^250/, 'one without a journal';
    is +(Petrel::command($many, @sendmail))[0], 0, 'and one by sendmail';
    ok $petrel->wait_log(qr/postfix\/pickup/), 'as Postfix says it' or diag $petrel->log;
    like $petrel->log, qr/ ?postfix\/pickup\[\d+\]: \S+: uid=$uid from=<php\@x\.test>$/m, 'to the letter';
    $petrel->stop;
    $petrel->configure(log_style => 'json')->start;
    $petrel->run('status');
    is +(Petrel::command($many, @sendmail))[0], 0, 'another';
    ok $petrel->wait_log(qr/\{[^\n]*"program":\s*"sendmail"[^\n]*"uid":\s*$uid\b/), 'as JSON' or diag $petrel->log;
    $petrel->stop;
    is $count->($line), 2, 'nothing was told again after a restart';
    is $count->(qr/postfix\/pickup/), 1, 'nor mail by SMTP as if it were';
}

done_testing;
