#!/usr/bin/perl
# The sandbox of the real daemon: as root, as its user, as nobody, in a container; what it keeps, what a reload may
# need besides, and systems that lack it.
use lib 't/e2e';
use E2E;
use Config;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $is_root = $> == 0;
my $letter = "Subject: hi\n\nletter\n";
my $offer = decode_json((Petrel::command('', $Petrel::binary, 'version', '--json'))[1])->{sandbox};
plan skip_all => "this system lacks: $offer->{missing}" if $offer->{missing} ne '';

# Where everybody can reach the binary and the directories.
my $scratch = tempdir('sandbox-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
Petrel::spit("$scratch/petrel", Petrel::slurp($Petrel::binary));
chmod 0755, "$scratch/petrel";

sub field { my ($petrel, $name) = @_; return Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^$name:\s*(.*)$/m ? $1 : '' }
sub reload {
    my ($petrel) = @_;
    my $size = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    Petrel::wait_for(sub { substr($petrel->log, $size) =~ /settings reloaded|reload refused/ });
    return substr($petrel->log, $size);
}

# Mail in by SMTP, through the queue, into a Maildir; the end without a complaint.
sub works {
    my ($name, $petrel, $uid) = @_;
    is field($petrel, 'Seccomp'), 2, "$name: filtered";
    is field($petrel, 'NoNewPrivs'), 1, 'no new privileges';
    is field($petrel, 'Uid'), join("\t", ($uid) x 4), 'the user';
    is field($petrel, $_), ($uid ? '0' x 16 : field($petrel, 'CapEff')), $_ for qw(CapPrm CapEff CapBnd);
    is field($petrel, 'CapAmb'), '0' x 16, 'no capability is inherited';
    like $petrel->log, qr/ sandbox: Landlock \(ABI \d+\), seccomp$/m, 'it says so';
    my $status = decode_json($petrel->status)->{sandbox};
    ok $status->{landlock} >= 2 && $status->{seccomp}, 'and so does the status';
    like +($petrel->run('status'))[1], qr/^sandbox +Landlock \(ABI \d+\), seccomp$/m, 'for people too';
    like $petrel->send_mail('a@here.test', 'u@petrel.test', $letter), qr/^250 /, 'mail comes in';
    ok Petrel::wait_for(sub { my @new = glob "$petrel->{dir}/mail/u/new/*"; @new == 1 }), 'and into a Maildir' or diag $petrel->log;
    ok $petrel->wait_empty, 'nothing is left';
    is decode_json($petrel->status)->{sandbox}{refused}, 0, 'no system call was refused';
    is $petrel->stop, 0, 'it stops';
    unlike $petrel->log, qr/ error: |sandbox: system call/, 'without a complaint';
    return;
}

sub petrel {
    my %settings = @_;
    my $petrel = Petrel->new(routes => '* discard', %settings);
    chmod 0755, $petrel->{dir};
    $petrel->configure(local => "maildir:$petrel->{dir}/mail/%u?create=all") unless $settings{local};
    return $petrel;
}

works('as who we are', petrel()->start, $>);

if ($is_root) {
    my $petrel = petrel(user => 'nobody');
    mkdir "$petrel->{dir}/mail" and chown 65534, 65534, "$petrel->{dir}/mail";
    works('as root with a user', $petrel->start, 65534);
}

# start_by(PETREL, COMMAND...): the daemon behind another command.
sub start_by {
    my ($petrel, @before) = @_;
    $petrel->{pid} = Petrel::spawn($petrel->{log}, @before, "$scratch/petrel", '-c', $petrel->conf, 'run');
    $petrel->wait_log(qr/ petrel \S+ is /) or diag $petrel->log;
    return $petrel;
}

SKIP: {
    skip 'needs root and setpriv', 1 unless $is_root && Petrel::have('setpriv');
    my $petrel = petrel();
    chown 65534, 65534, $petrel->{dir};
    works('as nobody', start_by($petrel, 'setpriv', '--reuid', 65534, '--regid', 65534, '--clear-groups', '--bounding-set', '-all'), 65534);
}

# Root of nothing: a user namespace, a root directory that cannot be written but for the spool.
SKIP: {
    skip 'needs unshare with user namespaces', 1
        unless Petrel::have('unshare') && (Petrel::command('', 'unshare', '-Urm', 'true'))[0] == 0;
    my $petrel = petrel(sandbox => 'require');
    my $script = "mount --bind $petrel->{dir} $petrel->{dir} && mount -o remount,bind,ro / &&"
        . ' ! touch /var/petrel-test 2>/dev/null && exec "$@"';
    start_by($petrel, 'unshare', '-Urm', 'sh', '-c', $script, 'sh');
    like $petrel->send_mail('a@here.test', 'u@petrel.test', $letter), qr/^250 /, 'in a container with a read-only root mail comes in';
    ok Petrel::wait_for(sub { my @new = glob "$petrel->{dir}/mail/u/new/*"; @new == 1 }), 'and into a Maildir' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
    like $petrel->log, qr/ sandbox: Landlock \(ABI \d+\), seccomp$/m, 'with all of it';
}

# --- Reloads

{
    my $petrel = petrel();
    my $elsewhere = tempdir('elsewhere-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0777, $elsewhere;
    $petrel->start;
    unlike reload($petrel), qr/restart: /, 'a reload without changes';

    # The file is replaced, as editors do.
    $petrel->configure(message_size_limit => '10K');
    Petrel::spit("$petrel->{dir}/new.conf", Petrel::slurp($petrel->conf));
    rename "$petrel->{dir}/new.conf", $petrel->conf or die;
    like reload($petrel), qr/settings reloaded/, 'a file in the place of the old one is read';
    like +($petrel->dialogue('EHLO x', 'MAIL FROM:<a@here.test> SIZE=20000'))[2], qr/^552 /, 'and counts';

    $petrel->configure(local => "maildir:$elsewhere/%u?create=all");
    like reload($petrel), qr{warning: needs a restart: the sandbox does not allow to write to \Q$elsewhere\E/$}m,
        'a Maildir elsewhere needs a restart, which is said';
    like $petrel->send_mail('a@here.test', 'v@petrel.test', $letter), qr/^250 /, 'its mail is taken';
    ok $petrel->wait_log(qr{to=<v\@petrel\.test>.*dsn=4\.3\.5, status=deferred \(the sandbox does not permit writing to \Q$elsewhere\E/: restart Petrel\)}),
        'and waits, with a plain sentence' or diag $petrel->log;
    is $petrel->queued, 1, 'it is safe';
    is $petrel->stop, 0, 'it stops';
    $petrel->start;
    is +($petrel->run('queue', 'retry', '--all'))[0], 0, 'after a restart';
    ok Petrel::wait_for(sub { my @new = glob "$elsewhere/v/new/*"; @new == 1 }), 'it is delivered' or diag $petrel->log;

    # A file that a value comes from, in a directory nobody knew of.
    my $key = tempdir('key-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    chmod 0755, $key;
    Petrel::spit("$key/limit", "20K\n");
    $petrel->configure(message_size_limit => undef, message_size_limit_file => "$key/limit");
    my $said = reload($petrel);
    like $said, qr/cannot read '\Q$key\E\/limit': Permission denied/, 'a file elsewhere cannot be read';
    like $said, qr/reload refused: .*the sandbox allows .* restart/, 'which is said, and what helps';
    is $petrel->stop, 0, 'it stops';
    $petrel->start;
    Petrel::spit("$key/next", "30K\n");
    rename "$key/next", "$key/limit" or die;
    like reload($petrel), qr/settings reloaded/, 'after a restart it can, and what takes its place too';
    like +($petrel->dialogue('EHLO x'))[1], qr/SIZE 30720/, 'and counts';
    is $petrel->stop, 0, 'it stops';
    unlike $petrel->log, qr/sandbox: system call/, 'no system call was refused';
}

# Certificates: renewed behind a link, as by certbot; then elsewhere.
SKIP: {
    my $openssl = Petrel::have('openssl') or skip 'openssl is not installed', 1;
    my $dir = tempdir('tls-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $make = sub {
        my ($number) = @_;
        Petrel::command('', $openssl, qw(req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj), "/CN=number$number",
            '-keyout', "$dir/archive/key$number", '-out', "$dir/archive/cert$number");
        for my $what (qw(cert key)) {
            symlink "../archive/$what$number", "$dir/live/next" and rename "$dir/live/next", "$dir/live/$what" or die;
        }
    };
    my $shown = sub {
        my ($petrel) = @_;
        return (Petrel::command("QUIT\n", $openssl, 's_client', '-connect', "127.0.0.1:$petrel->{port}", qw(-starttls smtp)))[1] =~ /CN ?= ?(\w+)/ ? $1 : '';
    };
    mkdir "$dir/$_" for qw(live archive other);
    $make->(1);
    my $petrel = petrel(tls_certificate => "$dir/live/cert", tls_key => "$dir/live/key")->start;
    is $shown->($petrel), 'number1', 'a certificate';
    $make->(2);
    unlike reload($petrel), qr/restart: /, 'is renewed';
    is $shown->($petrel), 'number2', 'and the new one is shown';
    my $other = tempdir('tls-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    Petrel::spit("$other/$_", Petrel::slurp("$dir/live/$_")) for qw(cert key);
    $petrel->configure(tls_certificate => "$other/cert", tls_key => "$other/key");
    like reload($petrel), qr{cannot read \Q$other\E/cert: Permission denied\n.*reload refused: .*the sandbox allows .* restart}, 'elsewhere it needs a restart';
    is $shown->($petrel), 'number2', 'the old one stays';
    is $petrel->stop, 0, 'it stops';
}

# --- Off, and systems that lack it

{
    my $petrel = petrel(sandbox => 'no')->start;
    is field($petrel, 'Seccomp'), 0, 'sandbox = no: no filter';
    is field($petrel, 'NoNewPrivs'), 0, 'nor anything else';
    like $petrel->log, qr/ sandbox: off, as `sandbox` says$/m, 'which is said';
    like +($petrel->run('status'))[1], qr/^sandbox +off$/m, 'in the status too';
    is $petrel->stop, 0, 'it stops';
    like +($petrel->run('-o', 'sandbox=perhaps', 'check'))[1], qr/sandbox: 'perhaps': say yes, no or require/, 'another word';
}

# Landlock and seccomp are answered as an old kernel would, by a filter that this program puts on itself.
sub act_old {
    my ($arch) = @_;
    my %prctl = (x86_64 => 157, aarch64 => 167);
    my %seccomp = (x86_64 => 317, aarch64 => 277);
    my @code = ([0x20, 0, 0, 0], [0x15, 0, 1, 444], [0x06, 0, 0, 0x50000 | 38], [0x15, 0, 1, $seccomp{$arch}],
        [0x06, 0, 0, 0x50000 | 1], [0x15, 0, 3, $prctl{$arch}], [0x20, 0, 0, 16], [0x15, 0, 1, 22],
        [0x06, 0, 0, 0x50000 | 1], [0x06, 0, 0, 0x7fff0000]);
    my $filter = join '', map { pack 'SCCL', @$_ } @code;
    my $program = pack 'Sx6P', scalar @code, $filter;
    syscall($prctl{$arch}, 38, 1, 0, 0, 0) == 0 or POSIX::_exit(120);
    syscall($prctl{$arch}, 22, 2, $program, 0, 0) == 0 or POSIX::_exit(121);
    return;
}

SKIP: {
    my ($arch) = $Config{archname} =~ /^(x86_64|aarch64)/ or skip 'numbers of system calls', 1;
    my $old = sub {
        my ($petrel, @command) = @_;
        my $pid = fork // die;
        if ($pid == 0) {
            open STDOUT, '>>', $petrel->{log};
            open STDERR, '>&', \*STDOUT;
            act_old($arch);
            exec $Petrel::binary, '-c', $petrel->conf, @command or POSIX::_exit(127);
        }
        return $pid;
    };
    my $lacks = qr/Landlock \(not in this kernel.*; seccomp \(/;
    my $petrel = petrel(sandbox => 'require');
    waitpid $old->($petrel, 'run'), 0;
    is $? >> 8, 71, 'required and lacking: no start';
    like $petrel->log, qr/^petrel: sandbox: required, but this system lacks: $lacks/m, 'and why';
    $petrel = petrel();
    my $pid = $old->($petrel, 'run');
    ok $petrel->wait_log(qr/ warning: sandbox: off; this system lacks: $lacks/), 'else one loud line' or diag $petrel->log;
    ok $petrel->wait_log(qr/ petrel \S+ is /), 'and it runs';
    $petrel->{pid} = $pid;
    is field($petrel, 'NoNewPrivs'), 1, 'with what there is';
    like +($petrel->run('status'))[1], qr/^sandbox +off; this system lacks: $lacks/m, 'the status tells';
    is $petrel->stop, 0, 'it stops';
    waitpid $old->($petrel, '-o', 'sandbox=require', 'check'), 0;
    is $? >> 8, 71, 'check knows it before';
    waitpid $old->($petrel, 'check'), 0;
    is $? >> 8, 0, 'and does not insist otherwise';
}
done_testing();
