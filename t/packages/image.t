#!/usr/bin/perl
# The image (make image): small on disk and in memory, and its root, read-only, works for a user id that nobody knows with group 0 and no
# capability: a message is accepted and delivered.
use strict;
use warnings;
use File::Find;
use File::Temp qw(tempdir);
use MIME::Base64;
use lib 't/e2e';
use Client;
use Petrel;
use Sink;
use Test::More;

my $image = "$Petrel::root/build-image";
-e "$image/petrel.oci.tar" or plan skip_all => 'no image is built: make image';
Petrel::have($_) or plan skip_all => "$_ is not installed" for qw(unshare chroot);
my $mounts = tempdir('image-XXXXXX', TMPDIR => 1, CLEANUP => 1);
if (!$ENV{PETREL_TEST_IMAGE}) {
    plan skip_all => 'only root may use another root' if $> != 0;
    plan skip_all => 'a mount namespace is refused here' if system("unshare --mount mount -t tmpfs none $mounts >/dev/null 2>&1") != 0;
    $ENV{PETREL_TEST_IMAGE} = 1;
    exec qw(unshare --mount --propagation private), $^X, $0 or die "unshare: $!";
}
my $size = 0;
find(sub { $size += -s _ if -f $_ }, "$image/root");
cmp_ok $size, '<=', 3_000_000, 'the image is small, unpacked';

# Read from disk, as after a boot: of a file that was just written Linux 6.18 maps much that is not used.
system('sync', "$image/root/petrel") == 0 && system('dd', "if=$image/root/petrel", qw(iflag=nocache count=0 status=none)) == 0 or die 'dd';

# As a container has it: the root read-only, the spool a volume of its own with the owner and mode of the image's.
system("mount --bind $image/root $mounts && mount -o remount,bind,ro $mounts && mount -t tmpfs -o mode=770,uid=65532,gid=0 none $mounts/spool") == 0 or die 'mount';
my $sink = Sink->start;
my $port = Petrel::free_port();
my %settings = Petrel::slurp("$Petrel::root/etc/container/Dockerfile") =~ /^ENV (\w+)=(.*)$/mg;
%settings = (%settings, PETREL_LISTEN => "127.0.0.1:$port", PETREL_HTTP => '127.0.0.1:' . Petrel::free_port(), PETREL_HOSTNAME => 'app.example.org', PETREL_RELAY => "smtp://127.0.0.1:$sink->{port}",
    PETREL_AUTH_USERS => '/spool/users', PETREL_AUTH_CLEARTEXT => 'loopback');
Petrel::spit("$mounts/spool/users", 'a:$6$saltsaltsaltsalt$TC.srYZRdhUNd1hUaX8BXmGPkCpq7TP8IIfBuwlVqWVsOskMwYShHaSiuvPe57wq5SGBJgI8u2TksJeC/Zaz50' . "\n");
chmod 0640, "$mounts/spool/users";
# enter(USER, environment...): the command that runs the program of the image as that user.
sub enter {
    my ($user, %more) = (shift, %settings, @_);
    return ('env', '-i', map({ "$_=$more{$_}" } sort keys %more), '/usr/sbin/chroot', "--userspec=$user", '--groups=0', $mounts, '/petrel');
}
my @enter = enter('12345:0');
my $pid = Petrel::spawn("$mounts.log", @enter);
ok Petrel::wait_for(sub { Petrel::slurp("$mounts.log") =~ /listening on 127\.0\.0\.1:$port/ }), 'it starts' or diag Petrel::slurp("$mounts.log");
my ($uids) = Petrel::slurp("/proc/$pid/status") =~ /^Uid:\s+(.*)$/m;
like $uids, qr/^12345\s+12345/, 'as 12345';
like Petrel::slurp("/proc/$pid/status"), qr/^CapEff:\s+0+$/m, 'without a capability';
like Petrel::slurp("$mounts.log"), qr/ sandbox: .*\bseccomp$/m, 'in its sandbox';
is +(Petrel::command('', @enter, 'health'))[0], 0, 'it is healthy';
my ($resident) = Petrel::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m;
cmp_ok($resident * 1024, '<=', 2_900_000, 'it is small in memory, too, with HTTP');
note "$size bytes, ", $resident * 1024, ' resident';
my $client = Client->greeted($port);
like $client->send(from => 'a@example.org', to => 'b@example.net', data => "Subject: x\r\n\r\nhello\r\n"), qr/^250 /, 'a message is accepted';
ok $sink->wait_for('b@example.net'), 'and delivered';
my ($code, $said) = Petrel::command('', @enter, 'test', 'you@example.org');
is $code, 0, '`petrel test`: delivered' or diag $said;
like $said, qr/^<you\@example\.org>: handed to /m, 'as it says';
ok $sink->wait_for('you@example.org'), 'it has arrived';

# What the static program has instead of the C library's, or of which it has a part alone: password hashes, time zones, users.
my $login = Client->greeted($port);
like $login->say('AUTH PLAIN ' . encode_base64("\0a\0pencil", '')), qr/^235 /, 'a password by its SHA-512 crypt';
like +Client->greeted($port)->say('AUTH PLAIN ' . encode_base64("\0a\0pencils", '')), qr/^535 /, 'a wrong one';
my %minutes;
for my $zone ('UTC0', 'XYZ-5:30', 'XYZ3XYS,M1.1.0/0,M12.5.6/24') {
    ($code, $said) = Petrel::command('', enter('12345:0', TZ => $zone), 'trace', 'b@example.net');
    my ($hour, $minute) = $said =~ /^ .* (\d\d):(\d\d):\S+  accepted from /m or diag $said;
    $minutes{$zone} = $hour * 60 + $minute;
}
is +($minutes{'XYZ-5:30'} - $minutes{UTC0}) % 1440, 330, 'the time of a zone';
is +($minutes{'XYZ3XYS,M1.1.0/0,M12.5.6/24'} - $minutes{UTC0}) % 1440, 1440 - 120, 'and its summer';
is +(Petrel::command('', @enter, 'drain', '--empty', '--wait', '50s'))[0], 0, 'nothing waits';
ok !-w "$mounts/etc/passwd" || !open(my $h, '>>', "$mounts/etc/passwd"), 'the root is read-only';
is Petrel::reap($pid, 'TERM'), 0, 'it ends in good order';

# As root it takes the user of its passwd file.
mkdir "$mounts/spool/other" and chown 65532, 0, "$mounts/spool/other" or die "$mounts/spool/other: $!";
unlink "$mounts.log";
$pid = Petrel::spawn("$mounts.log", enter('0:0', PETREL_USER => 'petrel', PETREL_SPOOL => '/spool/other'));
ok Petrel::wait_for(sub { Petrel::slurp("$mounts.log") =~ /listening on 127\.0\.0\.1:$port/ }), 'it starts as root' or diag Petrel::slurp("$mounts.log");
like Petrel::slurp("/proc/$pid/status"), qr/^Uid:\s+65532\s+65532.*^Gid:\s+0\s+0.*^Groups:\s*0\s*$/ms, 'and becomes petrel';
is Petrel::reap($pid, 'TERM'), 0, 'it ends in good order';
system('umount', '-l', "$mounts/spool", $mounts);
unlink "$mounts.log";
done_testing;
