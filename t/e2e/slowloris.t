#!/usr/bin/perl
# 5,000 connections that are silent, drip, stop half-way, or talk and never listen: others are served meanwhile, none
# costs much, and one too many is told so.
use lib 't/e2e';
use E2E;
use Cwd qw(abs_path);
use IPC::Open2;
use Time::HiRes qw(time);

# Descriptors for all of them, here and in Petrel.
my $wanted = 12_000;
my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX()) // 0;
if ($files < $wanted && !$ENV{PETREL_TEST_FILES}) {
    $ENV{PETREL_TEST_FILES} = 1;
    exec 'sh', '-c', 'ulimit -n ' . $wanted . ' 2>/dev/null || ulimit -n $(ulimit -Hn); exec "$0" "$1"', $^X, $0;
}
my $crowd = $files < $wanted ? int(($files - 500) / 2) : 5000;
plan skip_all => "only $files descriptors are allowed" if $crowd < 300;
plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');
diag "only $crowd clients: $files descriptors are allowed" if $crowd < 5000;

my $keys = tempdir('slow-XXXXXX', TMPDIR => 1, CLEANUP => 1);
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my $room = 50; # sessions beyond the crowd
my $sink = Sink->start;
my $implicit = Petrel::free_port();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", server_session_limit => $crowd + $room, client_session_limit => $crowd, smtpd_hard_error_limit => 1000, server_tls_session_limit => 0, smtpd_starttls_timeout => '1h',
    tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key");
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$implicit?tls")->start;

sub memory { return Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^VmRSS:\s+(\d+)/m ? $1 : 0 }
sub busy { my @stat = split ' ', Petrel::slurp("/proc/$petrel->{pid}/stat") =~ s/^.*\) //sr; return ($stat[11] + $stat[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK()) }

my $count = 0;
sub served {
    my $name = shift;
    my $to = 'good' . ++$count . '@normal.test';
    my $began = time;
    my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.9');
    ok $client, "$name: a good client is greeted" or return;
    like $client->send(from => 'a@sender.test', to => $to, data => "Subject: good\r\n\r\nb\r\n"), qr/^250/, "$name: its message is taken";
    $client->quit;
    ok $sink->wait_for($to), "$name: and arrives";
    return time - $began;
}

served('before');
my $before = memory();
my $pid = open2(my $said, my $tell, 'python3', "$Petrel::root/t/e2e/crowd.py", $petrel->{port}, $implicit, $crowd, "$keys/ca.pem");
my $told = sub { local $SIG{ALRM} = sub { die "the crowd is mute\n" }; alarm 600; my $line = readline $said; alarm 0; return $line // '' };
my ($ready) = $told->() =~ /^ready (\d+)/;
is $ready, $crowd, "$crowd clients are there, each at its place";
my $each = (memory() - $before) * 1024 / $crowd;
diag sprintf 'resident: %d KB before, %d KB with %d clients: %d bytes each', $before, memory(), $crowd, $each;
cmp_ok $each, '<', 32 * 1024, 'they cost little';
my ($start, $cpu) = (time, busy());
my @took = map { served("meanwhile $_") } 1 .. 5;
diag sprintf 'a good client, to its message at the sink: %s s; %.0f %% of a processor for all of them', join(' ', map { sprintf '%.3f', $_ } @took),
    100 * (busy() - $cpu) / (time - $start);

# One by one, until there is no more room.
ok Petrel::wait_for(sub { my ($in) = $petrel->status =~ /"in":\s*(\d+)/; $in == $crowd }), 'only the crowd is in';
print $tell 'more ', 2 * $room, "\n";
my ($greeted, $refused) = $told->() =~ /greeted=(\d+) refused=(\d+)/;
is $greeted, $room, 'server_session_limit: so many more are greeted';
is $refused, $room, 'server_session_limit: and the others hear 421';
ok Petrel::wait_for(sub { my ($in) = $petrel->status =~ /"in":\s*(\d+)/; $in == $crowd }), 'which leaves room again';
served('after');
cmp_ok((memory() - $before) * 1024 / $crowd, '<', 32 * 1024, 'and they cost no more later');

print $tell "stop\n";
my $lived = $told->();
diag $lived =~ s/\n//r;
like $lived, qr/ \Q$_\E=(\d+)\/\1 /, "none that was $_ was dropped before its time" for qw(silent ehlo half drip hello tls);
waitpid $pid, 0;
is $?, 0, 'the crowd leaves';
ok Petrel::wait_for(sub { my ($in) = $petrel->status =~ /"in":\s*(\d+)/; $in == 0 }), 'and nothing is left of them';
served('alone again');
diag 'resident: ' . memory() . ' KB in the end';
is $petrel->stop, 0, 'Petrel ends well';
is scalar(grep { $_->{to}[0] =~ /slow/ } $sink->messages), 0, 'no message of theirs came out';
done_testing;
