#!/usr/bin/perl
# A disk that fails, under the real program: a sync or a write that answers EIO, a file system that turns read-only or
# dies as a whole, and what is said at the start of disks that cannot keep mail.
use lib 't/e2e';
use E2E;
use Mount;

my $may_mount = Mount::namespace();
my $may_trace = system('strace -D -o /dev/null true 2>/dev/null') == 0;
plan skip_all => 'neither strace nor mount may be used here' unless $may_mount || $may_trace;

sub send_mail {
    my ($petrel, $name, $size) = @_;
    my $client = Client->greeted($petrel->{port}) or return 'no connection';
    my $data = "Subject: $name\r\n\r\n" . ("$name is all here\r\n" x (($size // 500) / 20)) . "end of $name\r\n";
    my $reply = $client->send(from => "a\@source.test", to => ["$name\@x.test"], data => $data);
    $client->close;
    return $reply;
}

sub count { my ($sink, $name) = @_; return scalar grep { $_->{data} =~ /\r\nend of $name\r\n\z/ } $sink->for_address("$name\@x.test") }
sub rooms { my ($petrel, $rooms) = @_; return grep { -f } glob "$petrel->{settings}{spool}/{$rooms}/*" }
# Once, so that it goes into files.
my @refuses_old = ('--fail-rcpt', 'old:451:1');

sub is_alive { my $petrel = shift; return Petrel::slurp("/proc/$petrel->{pid}/stat") =~ /\) [^Z]/ }

# Mail of both kinds that is accepted and not delivered: one in files, one in the journal, which the sink lets hang.
sub accept_two {
    my ($title, $petrel, $sink) = @_;
    like send_mail($petrel, 'old'), qr/^250 /, "$title: one is accepted";
    ok Petrel::wait_for(sub { $petrel->status =~ /"deferred":\s*1/ }) && $petrel->wait_filed, "$title: and waits in files";
    kill 'STOP', $sink->{pid};
    like send_mail($petrel, 'young'), qr/^250 /, "$title: one is young";
    return;
}

# No mail any more, and why; what was accepted is delivered as long as it can be read.
sub is_latched {
    my ($title, $petrel, $sink, $error, $unreadable) = @_;
    like send_mail($petrel, 'later'), qr/^451 4\.3\.0 /, "$title: nor is any other";
    my $told = () = $petrel->log =~ /spool unhealthy: no new mail until a restart \(cannot .*: $error\); repair the disk .*, then restart petrel$/mg;
    is $told, 1, "$title: the log says so once, why, and until when";
    like $petrel->status, qr/"accepting":\s*false.*cannot .*: $error/s, "$title: status too";
    kill 'CONT', $sink->{pid};
    ok $sink->wait_for('young@x.test'), "$title: what was young is delivered";
    $petrel->run(qw(queue retry --all));
    if ($unreadable) { ok $petrel->wait_log(qr/cannot read the message now: .*$error/), "$title: what lies in files stays there" }
    else { ok $sink->wait_for('old@x.test'), "$title: and what lay in files" }
    ok is_alive($petrel), "$title: it stays alive";
    return;
}

sub is_well_again {
    my ($title, $petrel, $sink, %most) = @_;
    like send_mail($petrel, 'after'), qr/^250 /, "$title: after a restart mail is taken again";
    ok $sink->wait_for('after@x.test'), "$title: and delivered";
    $petrel->run(qw(queue retry --all));
    ok $petrel->wait_empty, "$title: everything" or diag $petrel->run(qw(queue ls));
    for my $name (qw(old young)) {
        my $count = count($sink, $name);
        ok $count >= 1 && $count <= ($most{$name} // 1), "$title: $name is not lost" or diag "$count copies";
    }
    is count($sink, $_), 0, "$title: $_, which was refused, never comes" for qw(victim later);
    is $petrel->stop, 0, "$title: Petrel ends well";
    is join(' ', rooms($petrel, 'pid,mess,intd,todo,info,local,remote,bounce,hold,corrupt')), '', "$title: the spool is empty";
    unlike $petrel->log, qr/Assertion|Sanitizer|corrupt/, "$title: nothing else went wrong";
    return;
}

# --- A call that fails

sub tracer { my $petrel = shift; return Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^TracerPid:\s*(\d+)/m ? $1 : 0 }

# From now on, until the process ends.
sub inject {
    my ($petrel, @injections) = @_;
    my $log = "$petrel->{dir}/strace.log";
    if (my $before = tracer($petrel)) { kill 'TERM', $before; Petrel::wait_for(sub { !tracer($petrel) }) }
    Petrel::spawn($log, 'strace', '-p', $petrel->{pid}, '-y', '-o', "$petrel->{dir}/trace", '-e', 'trace=fsync,fdatasync,io_submit,pwrite64', map { ('-e', "inject=$_") } @injections);
    return Petrel::wait_for(sub { Petrel::slurp($log) =~ /attached/ || tracer($petrel) });
}

# Files of which a sync has failed, and those of them that were synced again.
sub failed_syncs {
    my $petrel = shift;
    my (%failed, @again);
    for (split /\n/, Petrel::slurp("$petrel->{dir}/trace")) {
        my ($file, $result) = /^f(?:data)?sync\(\d+<(.*)>(?:\(deleted\))?\)\s*= (.*)/ or next;
        push @again, $file if $failed{$file};
        $failed{$file} = 1 if $result =~ /^-1 EIO/;
    }
    return (scalar keys %failed, "@again");
}

sub call_fails {
    my ($title, %case) = @_;
    my $sink = Sink->start(@refuses_old);
    # strace makes a call fail by turning it into number -1, which the sandbox refuses in its own way.
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", sandbox => 'no', journal_size => '8M', journal_message_max => '100K', minimal_backoff_time => '1h', maximal_backoff_time => '1h');
    if ($case{start}) {
        my $script = Petrel::spit("$petrel->{dir}/traced", "#!/bin/sh\nexec strace -D -I 2 -qq -o /dev/null -e trace=io_setup -e inject=$case{start} $Petrel::binary \"\$@\"\n");
        chmod 0755, $script;
        local $Petrel::binary = $script;
        $petrel->start;
    } else {
        $petrel->start;
    }
    ok $petrel->wait_log(qr/cannot be synced in the background: .*allow io_setup/), "$title: which is warned of" if $case{start};
    accept_two($title, $petrel, $sink);
    ok inject($petrel, @{ $case{inject} }), "$title: the fault is set";
    like send_mail($petrel, 'victim', $case{size}), qr/^451 4\.3\.0 /, "$title: the message is not acknowledged";
    is_latched($title, $petrel, $sink, 'Input/output error');
    ok $petrel->wait_empty && $petrel->wait_quiet, "$title: nothing is left to do" or diag $petrel->run(qw(queue ls));
    like Petrel::slurp("$petrel->{dir}/trace"), qr/EIO.*INJECTED/, "$title: it was the fault";
    my ($failed, $again) = failed_syncs($petrel);
    cmp_ok $failed, '>=', $case{inject}[-1] =~ /sync/ ? 1 : 0, "$title: a sync has failed";
    is $again, '', "$title: and was not tried again";
    $petrel->kill9;
    $petrel->start;
    is_well_again($title, $petrel, $sink, $case{for_good} ? (young => 2, old => 2) : ());
    $sink->stop;
    return;
}

SKIP: {
    skip 'strace may not trace here', 1 unless $may_trace;
    my @blocking = 'io_submit:error=EAGAIN'; # then the call blocks, and can be made to fail
    call_fails('a sync of the journal', inject => [@blocking, 'fdatasync:error=EIO:when=1']);
    call_fails('a sync of the journal, without AIO', start => 'io_setup:error=ENOSYS', inject => ['fdatasync:error=EIO:when=1']);
    call_fails('a write of the journal', inject => ['pwrite64:error=EIO:when=1']);
    call_fails('a sync of a large message', inject => [@blocking, 'fsync:error=EIO:when=1'], size => 300_000);
    call_fails('every sync from now on', inject => [@blocking, 'fdatasync,fsync:error=EIO:when=1+'], for_good => 1);
}

# --- A file system that fails

# Where ext4 does as it would after an error, or gives up as though its disk had gone.
sub turn_read_only {
    my $disk = shift;
    my $source = (grep { /^\S+ \Q$disk->{dir}\E / } split /\n/, Petrel::slurp('/proc/mounts'))[0] // '';
    my ($device) = $source =~ m{^/dev/(\S+)} or return 0;
    open my $trigger, '>', "/sys/fs/ext4/$device/trigger_fs_error" or return 0;
    print $trigger "test\n";
    return close $trigger;
}

sub shut_down {
    my $disk = shift;
    open my $directory, '<', $disk->{dir} or return 0;
    my $how = pack 'I', 2; # its journal is not written
    return ioctl $directory, 0x8004587d, $how; # EXT4_IOC_SHUTDOWN
}

sub repaired { my $disk = shift; return $disk->unmount && system("PATH=\$PATH:/sbin:/usr/sbin e2fsck -fy $disk->{image} >/dev/null 2>&1") >> 8 <= 1 && $disk->mount }

# Once, on a spool that cannot be written: one line, one code.
sub refuses_to_start {
    my ($title, $petrel, $error) = @_;
    my ($code, $said) = $petrel->run('run');
    is $code, 73, "$title: a start says that it cannot create";
    my @lines = grep { !/warning/ } split /\n/, $said;
    is scalar(@lines), 1, "$title: in one line" or diag $said;
    like $said, qr/spool \S+: .*$error/, "$title: which names spool and error";
    return;
}

sub disk_fails {
    my ($title, $break, $error, $unreadable) = @_;
    SKIP: {
        my $disk = $may_mount ? Mount->ext4(56, 900) : undef;
        skip "$title: no ext4 may be mounted here", 1 unless $disk;
        my $sink = Sink->start(@refuses_old);
        my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", spool => "$disk->{dir}/spool", control => "$disk->{dir}.control", journal_size => '8M', minimal_backoff_time => '1h', maximal_backoff_time => '1h')->start;
        accept_two($title, $petrel, $sink);
        if (!$break->($disk)) { $sink->stop; $petrel->kill9; skip "$title: ext4 cannot be made to", 1 }
        like send_mail($petrel, 'victim'), qr/^45[12] 4\.3\.[01] /, "$title: no message is acknowledged";
        # A sync that was under way when the file system changed says EIO.
        is_latched($title, $petrel, $sink, "(?:$error|Input/output error)", $unreadable);
        $petrel->kill9;
        refuses_to_start($title, $petrel, $error);
        ok repaired($disk), "$title: it is repaired";
        $petrel->start;
        # The history of mail could not be written.
        is_well_again($title, $petrel, $sink, young => 2, old => 2);
        $sink->stop;
        unlink "$disk->{dir}.control";
        $disk->unmount;
    }
    return;
}

# A sync that the error meets says EIO, what comes after it EROFS.
disk_fails('read-only after an error', \&turn_read_only, '(?:Read-only file system|Input/output error)', 0);
disk_fails('a disk that is gone', \&shut_down, 'Input/output error', 1);

# --- A spool that is mounted read-only

for my $kind ($may_mount ? qw(ext4 tmpfs) : ()) {
    my $disk = Mount->$kind(56, 900) or do { note "no $kind here"; next };
    my $title = "$kind, mounted read-only";
    my $sink = Sink->start(@refuses_old);
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", spool => "$disk->{dir}/spool", journal_size => '8M', minimal_backoff_time => '1h', maximal_backoff_time => '1h')->start;
    accept_two($title, $petrel, $sink);
    is $petrel->stop('INT'), 0, "$title: stopped with mail";
    kill 'CONT', $sink->{pid};
    if (!$disk->remount('ro')) {
        # Root of a name space only may mount, but perhaps not that.
        ok $kind eq 'tmpfs' && !Mount::is_root(), "$title: it may not be" and note "$title: not allowed";
        $sink->stop;
        next;
    }
    refuses_to_start($title, $petrel, 'Read-only file system');
    my ($code, $said) = Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'e@x.test');
    ok $code == 75 || $code == 73, "$title: sendmail takes nothing" or diag "$code $said";
    ok $disk->remount('rw'), "$title: and back";
    $petrel->start;
    is_well_again($title, $petrel, $sink);
    $sink->stop;
    $disk->unmount;
}

# --- Messages at startup

sub warnings_on {
    my ($disk) = @_;
    my $petrel = Petrel->new(spool => "$disk->{dir}/spool", journal_size => '8M', log_level => 'debug')->start;
    $petrel->wait_log(qr/queue: spool \S+: \w+, syncs in/);
    my $end = $petrel->stop; # after the last line
    is $end, 0, "$disk->{kind}: Petrel ends well";
    return $petrel->log;
}

if (my $disk = $may_mount && Mount->tmpfs(56, 900)) {
    like warnings_on($disk), qr/queue: warning: spool \Q$disk->{dir}\E\S* is in memory \(tmpfs\): mail does not survive a reboot; set `spool` to/, 'a spool in memory is warned of';
}
if (my $disk = $may_mount && Mount->ext4(56, 900, '-O fast_commit')) {
    my $log = warnings_on($disk);
    like $log, qr/queue: warning: spool \Q$disk->{dir}\E\S* is on ext4 with fast_commit, .*tune2fs -O \^fast_commit/, 'ext4 with fast_commit is warned of';
    unlike $log, qr/is in memory/, 'and nothing else said of it';
}
done_testing;
