#!/usr/bin/perl
# log_to = syslog with real services behind the socket: rsyslogd and busybox's syslogd. One that is stopped costs no mail.
use lib 't/e2e';
use E2E;
use Mount;

my $scratch = tempdir('services-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $data = "From: me\@here.test\r\nMessage-ID: <1\@here.test>\r\n\r\nx\r\n";

# Mail while the service writes to FILE: each line has its tag, process and text there.
sub serves {
    my ($name, $pid, $socket, $file) = @_;
    ok Petrel::wait_for(sub { -S $socket }), "$name has its socket" or return;
    for my $style (qw(petrel postfix)) {
        my $petrel = Petrel->new(log_style => $style, log_to => "syslog:$socket", log_level => 'info', routes => "* smtp://127.0.0.1:$sink->{port}")->start;
        my $client = Client->greeted($petrel->{port});
        like $client->send(from => 'me@here.test', to => "$name$style$_\@there.test", data => $data), qr/^250/, "$name: mail is taken" for 1 .. 2;
        ok Petrel::wait_for(sub { Petrel::slurp($file) =~ m{ \Q$style\E/smtp\[$petrel->{pid}\]: [0-9A-Z-]+: to=<$name${style}2\@there\.test>, .*status=sent} }),
            "$name: a line has the tag $style/smtp and our process" or diag Petrel::slurp($file);
        # Stopped, it reads nothing: its socket is full after some lines. Mail goes on.
        kill STOP => $pid;
        my $sent = 0;
        for (1 .. 300) { $sent++ if $client->send(from => 'me@here.test', to => "$name$style-s$_\@there.test", data => $data) =~ /^250/ }
        is $sent, 300, "$name is stopped: 300 messages are taken";
        ok $sink->wait_for("$name$style-s300\@there.test", 1), 'and delivered';
        kill CONT => $pid;
        ok Petrel::wait_for(sub { Petrel::slurp($file) =~ m{to=<$name$style-s300\@there\.test>|\d+ lines? lost} }), "$name goes on: so do the lines, or they are counted";
        is $petrel->stop, 0, 'stops';
    }
    return;
}

SKIP: {
    my $root = '/opt/petrel-test-rsyslog';
    skip 'no rsyslogd', 1 unless -x "$root/usr/sbin/rsyslogd";
    my ($modules) = glob "$root/usr/lib/*/rsyslog";
    Petrel::spit("$scratch/rsyslog.conf", qq{global(workDirectory="$scratch")\nmodule(load="imuxsock" SysSock.Use="off")\ninput(type="imuxsock" Socket="$scratch/rsyslog" RateLimit.Interval="0")\naction(type="omfile" file="$scratch/rsyslog.out")\n});
    my $pid = Petrel::spawn("$scratch/rsyslog.log", "$root/usr/sbin/rsyslogd", '-n', '-M', $modules, '-f', "$scratch/rsyslog.conf", '-i', "$scratch/rsyslog.pid");
    serves('rsyslogd', $pid, "$scratch/rsyslog", "$scratch/rsyslog.out");
    diag Petrel::slurp("$scratch/rsyslog.log") unless -S "$scratch/rsyslog";
    Petrel::reap($pid, 'TERM');
}

# busybox knows /dev/log alone: it has a /dev of its own.
SKIP: {
    my $busybox = '/opt/petrel-test-busybox/bin/busybox';
    skip 'no busybox', 1 unless -x $busybox;
    skip 'only root may give it a /dev of its own', 1 unless $> == 0 && Mount::is_root() && system('unshare -m true 2>/dev/null') == 0;
    my $pid = Petrel::spawn("$scratch/busybox.log", 'unshare', '-m', 'sh', '-c',
        "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && exec $busybox syslogd -n -O $scratch/busybox.out");
    serves('busybox', $pid, "/proc/$pid/root/dev/log", "$scratch/busybox.out");
    Petrel::reap($pid, 'TERM');
}
done_testing;
