#!/usr/bin/perl
# A reload meets a FIFO, a socket, a directory or a device where a setting names a file: a user with write access to the directory
# must not be able to stop the daemon. It refuses the reload, says which file, and goes on with the old settings.
use lib 't/e2e';
use E2E;
use Cwd qw(abs_path);
use Fcntl;
use POSIX qw(mkfifo);

my $dir = tempdir('odd-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', "$Petrel::root/t/support/tls_certificates.sh", $dir) == 0 or die 'no certificates';
system("$Petrel::binary -c /dev/null dkim-key example.org s --bits 1024 --directory $dir >/dev/null 2>&1") == 0 or die 'no key';
rename "$dir/s._domainkey.example.org.pem", "$dir/dkim.pem" or die;
Petrel::spit("$dir/users", (Petrel::command("secret\n", $Petrel::binary, 'passwd', 'alice'))[1]);
Petrel::spit("$dir/$_", "canary-secret\n") for 'relay', 'client';
Petrel::spit("$dir/passwords", "smtp.test bob canary-secret\n");
Petrel::spit("$dir/aliases", "root: alice\@example.org\n");
chmod 0600, map { "$dir/$_" } 'users', 'relay', 'client', 'passwords', 'dkim.pem';
my $petrel = Petrel->new(
    log_level       => 'info',
    tls_certificate => "$dir/good.pem",
    tls_key         => "$dir/good.key",
    tls_ca          => "$dir/good.pem",
    auth_users      => "$dir/users",
    auth_cleartext  => 'loopback',
    auth_passwords  => "$dir/passwords",
    aliases         => "$dir/aliases",
    dkim_keys       => "example.org s $dir/dkim.pem",
    oauth           => "other.test joe custom client=x grant=client token=https://127.0.0.1:1/t secret=\@$dir/client",
    relay           => 'smtp://alice@127.0.0.1:1?tls=verify',
    relay_password_file => "$dir/relay",
);
chmod 0600, $petrel->conf;
$petrel->start;

# Puts something odd in the place of the file; returns what must be kept until the end.
my %odd = (
    'a FIFO whose writer says nothing' => sub { my $path = shift; mkfifo($path, 0644) or die $!; sysopen my $h, $path, O_RDWR or die $!; return $h },
    'a FIFO without a writer'          => sub { my $path = shift; mkfifo($path, 0644) or die $!; return 1 },
    'a socket'                         => sub { my $path = shift; return IO::Socket::UNIX->new(Local => $path, Listen => 1) || die $! },
    'a directory'                      => sub { my $path = shift; mkdir $path or die $!; return 1 },
    'an endless device'                => sub { my $path = shift; symlink '/dev/zero', $path or die $!; return 1 },
);
my $reloads = 0;
sub reload {
    my ($pattern) = @_;
    my $before = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    return Petrel::wait_for(sub { substr($petrel->log, $before) =~ /($pattern)/ ? $1 : undef });
}
sub refuses {
    my ($path, $kind, $pattern) = @_;
    rename $path, "$path.kept" or die "$path: $!";
    my $held = $odd{$kind}->($path);
    my $name = "$kind in the place of " . ($path =~ s{.*/}{}r);
    like reload(qr/[^\n]*$pattern.*\n(?:.*\n)*?.*reload refused: [^\n]*; the old settings stay/) // $petrel->log, qr/\Q$path\E'?: (?:cannot read: )?(?:it is not a regular file|Is a directory|Permission denied)/, # the last by the sandbox
        "$name is refused, and the log says so";
    like join('', $petrel->dialogue('EHLO x')), qr/250[- ]AUTH /, '  the daemon answers, with its old settings';
    undef $held;
    -d $path && !-l $path ? rmdir $path : unlink $path;
    rename "$path.kept", $path or die "$path: $!";
    return;
}

my $fifo = 'a FIFO whose writer says nothing';
refuses("$dir/$_->[0]", $fifo, $_->[1])
    for ['good.pem', qr/tls_certificate/], ['good.key', qr/tls_certificate|tls_key/], ['users', qr/auth_users/], ['passwords', qr/auth_passwords/], ['relay', qr/relay_password_file/],
    ['client', qr/oauth/], ['dkim.pem', qr/dkim_keys/], ['aliases', qr/aliases/];
refuses("$dir/dkim.pem", $_, qr/dkim_keys/) for grep { $_ ne $fifo } sort keys %odd;
refuses("$dir/users",    $_, qr/auth_users/) for grep { $_ ne $fifo } sort keys %odd;
refuses(abs_path($petrel->conf), $_, qr/cannot read/) for sort keys %odd;

ok reload(qr/settings reloaded/), 'with its files a reload is accepted';
is $petrel->stop, 0, 'it ends';
unlike $petrel->log, qr/canary-secret/, 'no secret is in the log';
done_testing;
