#!/usr/bin/perl
# A machine for a page of the guide: guide_machine.pl SCRATCH PAGE, within mounts, network and processes of its own
# (unshare). Only the loopback interface is there, with the addresses of all others in the examples; /etc, /usr, /var and
# /root are copies that vanish. Petrel is installed. Prints a line of JSON for each block.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Guide;
use JSON::PP qw(encode_json);
use POSIX qw(WNOHANG);
use Petrel;
use Resolver;
use Time::HiRes qw(sleep time);

my ($scratch, $page) = @ARGV;
my $patience = 120; # seconds for one block
my %zone = (
    'vps.example.org' => { A => ['192.0.2.10'], MX => ['10 vps.example.org'] },
    'mail.example.org' => { A => ['192.0.2.10'] },
    'example.org' => { MX => ['10 mx.example.org'] },
    'friends.example' => { MX => ['10 mx.example.org'] },
    'mx.example.org' => { A => ['192.0.2.25'] },
    'smtp.provider.example' => { A => ['192.0.2.87'] },
);

sub must { system(@_) == 0 or die "@_: $?" }

sub network {
    must(qw(ip link set lo up));
    must(qw(ip addr add), "$_/32", qw(dev lo)) for qw(192.0.2.10 192.0.2.25 192.0.2.87 192.168.1.5);
}

# The copies, and the spool on a real disk.
sub mounts {
    must('mount', '-t', 'tmpfs', 'none', "$scratch/over");
    for my $dir (qw(etc usr var root)) {
        mkdir "$scratch/over/$dir";
        mkdir "$scratch/over/$dir/$_" for qw(upper work);
        must('mount', '-t', 'overlay', 'none', '-o', "lowerdir=/$dir,upperdir=$scratch/over/$dir/upper,workdir=$scratch/over/$dir/work", "/$dir");
    }
    must('mount', '-t', 'tmpfs', '-o', 'mode=755', 'none', '/run');
    mkdir '/var/spool/petrel';
    must('mount', '--bind', "$scratch/spool", '/var/spool/petrel');
    unlink glob '/etc/petrel/*';
}

sub install {
    must("cp -a $scratch/root/. /");
    must("cd $Petrel::root && sh etc/install-user.sh >$scratch/user.log 2>&1");
    must('install', '-d', '-o', 'petrel', '/run/petrel');
    must(qw(useradd -s /bin/sh alice)) unless getpwnam 'alice';
    Petrel::spit('/etc/resolv.conf', "nameserver 127.0.0.53\n");
    Petrel::spit('/etc/hosts', "127.0.0.1 localhost\n");
    Petrel::spit('/etc/petrel/petrel.conf', "hostname = vps.example.org\nlisten = 127.0.0.1:25\nuser = petrel\nroot = you\@example.org\n");
    must("cat $scratch/certificates/good.pem >>/etc/ssl/certs/ca-certificates.crt");
}

# The name server, the mail host of everybody else, and the smarthost.
sub peers {
    Petrel::spawn("$scratch/sink.log", "$Petrel::root/$Petrel::build/t/bench/sink", '--listen', '192.0.2.25:25', '--directory', "$scratch/sink",
        '--fail-rcpt', 'nobody:550', '--fail-rcpt', 'busy:451');
    Petrel::spawn("$scratch/smarthost.out", 'python3', "$Petrel::root/t/e2e/login_smarthost.py", "$scratch/certificates", "$scratch/smarthost.log", '192.0.2.87', 587);
    my $udp = IO::Socket::INET->new(LocalAddr => '127.0.0.53:53', Proto => 'udp') or die "53: $!";
    my $pid = fork // die;
    Resolver::serve(\%zone, $udp) if $pid == 0;
    Petrel::wait_for(sub { Petrel::slurp("$scratch/sink.log") =~ /^listening /m && Petrel::slurp("$scratch/smarthost.out") =~ /^\d/ }) or die 'no peers: ' . Petrel::slurp("$scratch/sink.log") . Petrel::slurp("$scratch/smarthost.out");
}

# Runs a block: (exit code, output). Processes that it leaves stay until the machine ends.
sub run {
    my ($script) = @_;
    my $file = Petrel::spit("$scratch/block.sh", "set -e\n$script");
    my $pid = fork // die;
    if ($pid == 0) {
        $ENV{PATH} = "$Petrel::root/t/e2e/guide_bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        $ENV{HOME} = '/root';
        $ENV{BUILD} = $Petrel::build;
        delete @ENV{ grep { /^(?:PETREL_|HARNESS_|PERL_TEST_HARNESS|MAKE|MFLAGS)/ } keys %ENV };
        $SIG{PIPE} = 'DEFAULT';
        chdir $Petrel::root;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$scratch/output";
        open STDERR, '>&', \*STDOUT;
        exec 'sh', $file or POSIX::_exit(127);
    }
    my $end = time + $patience;
    while (time < $end) {
        my $ended = waitpid -1, WNOHANG; # of daemons, too: this is process 1
        return ($? & 127 ? 128 + ($? & 127) : $? >> 8, Petrel::slurp("$scratch/output")) if $ended == $pid;
        sleep 0.02 if $ended <= 0;
    }
    kill 'KILL', $pid;
    return (124, Petrel::slurp("$scratch/output"));
}

# Files that an example names, and nobody has made.
sub make_missing {
    for my $file ($_[0] =~ m{(/etc/aliases|/(?:etc/petrel|run/secrets)/[\w.-]+)}g) {
        next if -e $file;
        must('mkdir', '-p', $file =~ s{/[^/]+$}{}r);
        if ($file =~ m{/users$}) { must("echo 'long enough for alice' | petrel passwd alice >$file") }
        elsif ($file =~ m{/(?:fullchain|key)\.pem$}) { must('cp', "$scratch/certificates/good." . ($file =~ /key/ ? 'key' : 'pem'), $file) }
        elsif ($file =~ m{/dkim$}) { mkdir $file; must("petrel dkim-key example.org --ed25519 --directory $file >/dev/null && chown petrel $file/*") }
        elsif ($file =~ m{/passwords$}) { Petrel::spit($file, "smtp.provider.example you\@example.org x\nsmtp.provider.example me x\n") }
        elsif ($file eq '/etc/aliases') { Petrel::spit($file, "postmaster: root\n") }
        else { Petrel::spit($file, "0123456789abcdef0123456789abcdef\n") }
        chown scalar getpwnam('petrel'), -1, $file;
        chmod -d $file ? 0700 : $file eq '/etc/aliases' ? 0644 : 0600, $file;
    }
}

# The needs of a setting of an example.
sub complete {
    my ($text) = @_;
    my $users = $text =~ /auth=|^auth_users/m;
    $text .= "auth_users = /etc/petrel/users\n" if $users && $text !~ /^auth_users/m;
    $text .= "tls_certificate = /etc/petrel/fullchain.pem\n" if ($users || $text =~ /[?&]tls\b|^tls_key/m) && $text !~ /^tls_certificate/m;
    $text .= "tls_key = /etc/petrel/key.pem\n" if $text =~ /^tls_certificate/m && $text !~ /^tls_key/m;
    $text .= "relay = submission://you\@smtp.provider.example\n" if $text =~ /^relay_password_file/m && $text !~ /^relay =/m;
    $text .= "auth_passwords = /etc/petrel/passwords\n" if $text =~ m{(?:submission|smtps)://\S+@} && $text !~ /^(?:auth_passwords|relay_password_file|oauth)/m;
    $text .= "hostname = mail.example.org\n" if $text !~ /^hostname =/m;
    return $text;
}

sub check {
    my ($kind, $text) = @_;
    my $file = $kind eq 'conf instead' ? "$scratch/instead.conf" : '/etc/petrel/petrel.conf';
    $text = Petrel::slurp($file) . $text if $kind eq 'conf more';
    $text = complete($text) if $kind eq 'conf instead';
    make_missing($text);
    Petrel::spit($file, $text);
    return Petrel::command('', '/usr/local/sbin/petrel', '-c', $file, 'check', '--changed');
}

$| = 1;
network();
mounts();
install();
peers();
my ($blocks) = Guide::blocks(Petrel::slurp($page));
push @$blocks, map { { line => 0, kind => 'conf instead', text => "$_\n" } } Guide::inline(Petrel::slurp($page));
for my $block (@$blocks) {
    my $began = time;
    my @result = $block->{kind} =~ /^conf/ ? check($block->{kind}, $block->{text}) : $block->{kind} =~ /^sh(?: reports)?$/ ? run($block->{text}) : next;
    print encode_json({ %$block, code => $result[0], output => $result[1], seconds => sprintf '%.1f', time - $began }), "\n";
}
print encode_json({ end => 1, log => Petrel::slurp('/var/log/petrel.log') }), "\n";
