#!/usr/bin/perl
# `user` by number: an image need not have /etc/passwd.
use lib 't/e2e';
use E2E;

plan skip_all => 'root alone can become somebody' if $> != 0;

sub ids { my ($petrel, $what) = @_; my ($line) = Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^$what:[ \t]*(.*)$/m; return $line =~ s/\s+/ /gr =~ s/ $//r }

my $sink = Sink->start;
for (['54321', 54321, 54321], ['54321:54322', 54321, 54322], ['0065534', 65534, getgrnam('nogroup') // 65534]) {
    my ($user, $uid, $gid) = @$_;
    my $petrel = Petrel->new(user => $user, routes => "* smtp://127.0.0.1:$sink->{port}");
    chmod 0755, $petrel->{dir};
    for my $start (1, 2) {
        $petrel->start;
        is ids($petrel, 'Uid'), join(' ', ($uid) x 4), "$user: start $start is that user's";
        is ids($petrel, 'Gid'), join(' ', ($gid) x 4), "$user: and that group's";
        is ids($petrel, 'Groups'), '', "$user: and no other";
        like $petrel->send_mail('a@b.test', "u\@$user.$start.test" =~ s/:/-/r, "Subject: x\n\nx\n"), qr/^250/, "$user: mail is taken";
        $petrel->wait_log(qr/(?:.*status=sent.*){$start}/s);
        my ($code, $said) = $petrel->run('status');
        is $code, 0, "$user: root may ask it" or diag $said;
        is $petrel->stop, 0, "$user: it stops";
    }
    is((stat "$petrel->{dir}/spool/mess")[4], $uid, "$user: the spool is that user's");
}
for my $user ('nobody-of-that-name', '-1', '4294967295', '4294967296', '54321:', ':54321', '54321:x', '1:2:3', '54321 ') {
    my $petrel = Petrel->new(user => $user, routes => '* hold');
    my ($code, $said) = Petrel::command('', 'timeout', '20', $Petrel::binary, '-c', $petrel->conf, '-o', 'spool=/dev/null/none', '-o', "user=$user");
    $user eq '54321 ' ? unlike($said, qr/no such user/, "'$user': blanks are not part of it") : like($said, qr/no such user/, "'$user' is refused");
}

# Files that sendmail(1) leaves in the spool are for the daemon alone, though its name is known (it stands in Received) and the
# directories may be passed through.
SKIP: {
    skip 'needs setpriv', 1 unless Petrel::have('setpriv');
    my ($daemon, $writer, $other) = (54321, 54322, 54323);
    my $petrel = Petrel->new(user => $daemon, routes => "* smtp://127.0.0.1:$sink->{port}");
    chmod 0755, $petrel->{dir};
    Petrel::spit("$petrel->{dir}/petrel", Petrel::slurp($Petrel::binary));
    chmod 0755, "$petrel->{dir}/petrel";
    chmod 0644, $petrel->conf;
    $petrel->start;
    is $petrel->stop, 0, 'a spool is made';
    my $as = sub { my ($id, $input, @command) = @_; return Petrel::command($input, 'setpriv', '--reuid', $id, '--regid', $id, '--clear-groups', @command) };
    my ($code, $said) = $as->($writer, "Subject: confidential\n\nx\n", "$petrel->{dir}/petrel", '-c', $petrel->conf, 'sendmail', 'u@private.test');
    is $code, 0, 'mail is handed in without a daemon' or diag $said;
    my @files = glob "$petrel->{dir}/spool/{mess,todo,intd}/*";
    is scalar(@files), 3, 'its files';
    for my $file (@files) {
        my ($name) = $file =~ m{spool/(\w+)};
        is +($as->($writer, '', 'cat', $file))[0], 0, "$name: its owner reads it";
        is +($as->($daemon, '', 'cat', $file))[0], 0, "$name: so does the daemon's user";
        SKIP: {
            skip 'the file system has no access control lists', 1 if ((stat $file)[2] & 07777) == 0644;
            isnt +($as->($other, '', 'cat', $file))[0], 0, "$name: nobody else does";
        }
    }
    $petrel->start;
    ok $petrel->wait_log(qr/to=<u\@private\.test>.*status=sent/), 'and the daemon delivers it' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
}

# `user` is no longer set: root has the spool of another user.
{
    my $daemon = 54321;
    my $petrel = Petrel->new(user => $daemon, routes => '* hold');
    chmod 0755, $petrel->{dir};
    $petrel->start;
    like $petrel->send_mail('a@b.test', 'held@former.test', "Subject: x\n\nx\n"), qr/^250/, 'mail is taken';
    $petrel->wait_log(qr/held by a route/);
    is $petrel->stop, 0, 'it stops';
    $petrel->configure(user => '', routes => "* smtp://127.0.0.1:$sink->{port}");
    my ($code, $said) = Petrel::command('', 'timeout', '20', $Petrel::binary, '-c', $petrel->conf, 'run');
    is $code, 78, 'root does not start there' or diag $said;
    like $said, qr/it belongs to the user $daemon, .*: set `user` to that user, or give the spool to root: `chown -R root \S+`$/m, 'and says why';
    is system('chown', '-R', 'root', "$petrel->{dir}/spool"), 0, 'given to root';
    $petrel->start;
    is(($petrel->run('queue', 'release', '--all'))[0], 0, 'released');
    ok $petrel->wait_log(qr/to=<held\@former\.test>.*status=sent/), 'root delivers it' or diag $petrel->log;
    ok Petrel::wait_for(sub { !glob "$petrel->{dir}/spool/{mess,todo,intd,info,remote,hold}/*" }), 'and removes its files' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
}
done_testing;
