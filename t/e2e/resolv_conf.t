#!/usr/bin/perl
# The system's name servers change while the daemon runs, in its sandbox: the next look-up asks the new ones.
use lib 't/e2e';
use E2E;
use Mount;
use Resolver;

plan skip_all => 'needs root, and mounts' unless Mount::is_root() && Mount::namespace();

# An /etc and a /run of our own. Without shadow, /etc has nothing that root could read and others could not.
my $etc = tempdir(CLEANUP => 1);
my $etc_of_all = 'cp -a /etc/passwd /etc/group /etc/ssl /etc/localtime "$0" 2>/dev/null; chmod 755 "$0"; echo "127.0.0.1 localhost" >"$0/hosts"';
system('sh', '-c', $etc_of_all, $etc);
system('mount', '--bind', $etc, '/etc') == 0 && system('mount', '-t', 'tmpfs', 'none', '/run') == 0 or plan skip_all => 'no mounts';
mkdir $_ for '/run/systemd', '/run/systemd/resolve';
END { my $code = $?; system('umount', '-l', $_) for '/etc', '/run'; $? = $code }

my $sink = Sink->start;
my ($host, $port) = $sink->{listen} =~ /^(.*):(\d+)$/;
my %zone = ('mail.test' => { A => [$host] }, map { ("d$_.test" => { MX => ['10 mail.test'] }) } 1 .. 9);
my $good = Resolver->start(\%zone);
my $petrel = Petrel->new(smtp_port => $port, smtp_bind => '127.0.0.1', routes => '* mx', minimal_backoff_time => '1h', maximal_backoff_time => '1h')->start;

my $number = 0;

sub deliver {
    my ($what, $before) = @_;
    $number++;
    $petrel->send_mail('a@sender.test', "x\@d$number.test", "Subject: x\n\nx\n");
    $petrel->wait_log(qr/ to=<x\@d$number\.test>, .*status=deferred/) if $before;
    if ($before) { $before->(); $petrel->run(qw(queue retry --all)) }
    ok $petrel->wait_log(qr/ to=<x\@d$number\.test>, .*status=sent/), $what;
    return;
}

my $line = "nameserver 127.0.0.1:$good->{port}\n";
my $dead = 'nameserver 127.0.0.1:' . Petrel::free_port() . "\n";
my $replace = sub { Petrel::spit('/etc/new', shift); rename '/etc/new', '/etc/resolv.conf' or die; return };

like $petrel->log, qr{warning: .*/etc/resolv\.conf is missing; asked is 127\.0\.0\.1}, 'it is missing: a warning';
like $petrel->status, qr/"name_servers"/, 'and a finding';
deliver('made later', sub { $replace->($line); sleep 1; return });
unlike $petrel->status, qr/"name_servers"/, 'the finding has ended';
$replace->($dead);
$petrel->run('reload');
deliver('replaced by a rename', sub { $replace->($line); sleep 1; return });
like $petrel->log, qr/cannot look up d2\.test: the name server 127\.0\.0\.1:\d+ cannot be reached for the MX of d2\.test/, 'the reason names the server';
$replace->($dead);
$petrel->run('reload');
deliver('a link to the file of systemd-resolved, made at its first start', sub {
    Petrel::spit('/run/systemd/resolve/stub-resolv.conf', $line);
    unlink '/etc/resolv.conf';
    symlink '../run/systemd/resolve/stub-resolv.conf', '/etc/resolv.conf' or die;
    sleep 1;
    return;
});
Petrel::spit('/run/systemd/resolve/new', $dead);
rename '/run/systemd/resolve/new', '/run/systemd/resolve/stub-resolv.conf';
$petrel->run('reload');
deliver('and replaced there', sub { Petrel::spit('/run/systemd/resolve/new', $line); rename '/run/systemd/resolve/new', '/run/systemd/resolve/stub-resolv.conf'; sleep 1; return });
is $petrel->stop, 0, 'ends well';
$good->stop;
done_testing;
