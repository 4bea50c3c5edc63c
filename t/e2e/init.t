#!/usr/bin/perl
# petrel init: files, modes and owners; what is asked on a terminal; and mail that leaves by the settings it has written,
# through a smarthost with TLS and a login, with every odd character in the password.
use lib 't/e2e';
use E2E;
use Encode qw(encode);

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $base = tempdir('init-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $base;
my $dns = Petrel::free_port(); # nobody answers there: doctor is quick
my $number = 0;
sub folder { my $dir = "$base/" . $number++; mkdir $dir or die; return $dir }
# (exit code, output) of init with settings in a directory.
sub init { my ($dir, @arguments) = @_; return Petrel::command('', $Petrel::binary, '-c', "$dir/petrel.conf", '-o', "dns_servers=127.0.0.1:$dns", 'init', @arguments) }
sub mode { my @stat = stat shift; return sprintf '%o', ($stat[2] // 0) & 07777 }
my $hold = '--relay hold --yes --hostname mail.example.org';

# --- Files

my $dir = folder();
my ($code, $said) = init($dir, split / /, $hold);
is $code, 0, 'into an empty directory' or diag $said;
like $said, qr/^Written: \Q$dir\E\/petrel\.conf\n/m, 'it says where';
like $said, qr/^Next:\n  petrel -c \Q$dir\E\/petrel\.conf\n  petrel -c \Q$dir\E\/petrel\.conf test you\@example\.org\n\z/m, 'the next two commands';
is mode("$dir/petrel.conf"), '644', 'everybody may read it';
my $settings = Petrel::slurp("$dir/petrel.conf");
SKIP: { # in the usual place, which is that of a namespace
    my @apart = qw(unshare --mount --propagation private sh -euc);
    skip 'a mount namespace is refused here', 3 if $> != 0 || (Petrel::command('', @apart, 'mount -t tmpfs none /mnt'))[0] != 0;
    mkdir "$base/etc" or die;
    my ($usual, $usually) = Petrel::command('', @apart, 'cp -a /etc "$0"; rm -rf "$0/etc/petrel"; mount --bind "$0/etc" /etc; exec "$@"', "$base/etc", $Petrel::binary, 'init', split / /, $hold);
    is $usual, 0, 'in /etc/petrel' or diag $usually;
    # A package has started the service already, `make install` has not; beside another mail server it is not enabled.
    like $usually, qr/^Next:\n  systemctl enable petrel && systemctl restart petrel\n  petrel test you\@example\.org\n\z/m, 'it starts, now and with the machine, whether it runs or not';
    ok -e "$base/etc/etc/petrel/petrel.conf", 'the settings are there';
}
like $settings, qr/\A# Written by `petrel init`/, 'not the mark of the package';
is join(' ', sort $settings =~ /^(\w+) =/mg), $> == 0 && getpwnam('petrel') ? 'hostname listen routes user' : $> == 0 ? 'hostname listen routes' : 'hostname routes', 'only what differs from the defaults';
is_deeply [sort map { s{.*/}{}r } glob "$dir/*"], ['petrel.conf'], 'nothing else';

($code, $said) = init($dir, split / /, $hold);
is $code, 73, 'settings are not replaced';
like $said, qr/\Apetrel init: \Q$dir\E\/petrel\.conf has settings already; run it with --force/, 'it says how';
is Petrel::slurp("$dir/petrel.conf"), $settings, 'they are as before';
($code, $said) = init($dir, qw(--force --yes --relay mx --hostname other.example.org));
is $code, 0, '--force';
like $said, qr/name server|resolver/, 'doctor has looked, as mail leaves' or diag $said;
is Petrel::slurp("$dir/petrel.conf.old"), $settings, 'the old ones stay';
like Petrel::slurp("$dir/petrel.conf"), qr/^hostname = other\.example\.org$/m, 'the new ones are there';
($code, $said) = init($dir, qw(--print --yes --relay hold --hostname third.example.org));
is $code, 0, '--print needs no --force';
like $said, qr/^hostname = third\.example\.org$/m, 'and prints';
like Petrel::slurp("$dir/petrel.conf"), qr/^hostname = other/m, 'nothing is written';

$dir = folder();
Petrel::spit("$dir/petrel.conf", Petrel::slurp("$Petrel::root/etc/petrel.conf"));
like Petrel::slurp("$dir/petrel.conf"), qr/\A# petrel: as installed\n/, 'the file of the package has its mark';
($code, $said) = init($dir, split / /, $hold);
is $code, 0, 'which may be replaced' or diag $said;
ok !-e "$dir/petrel.conf.old", 'and is not kept';
Petrel::spit("$dir/petrel.conf", "# petrel: as installed, and changed\n");
is +(init($dir, split / /, $hold))[0], 73, 'a mark that is not whole';

($code) = init("$dir/new", split / /, $hold);
is $code, 0, 'the directory is made';
is mode("$dir/new"), '755', 'for all';
is +(init("$dir/a/b", split / /, $hold))[0], 73, 'one of them';

$dir = folder();
symlink "$dir/target", "$dir/petrel.conf";
($code, $said) = init($dir, split(/ /, $hold), '--force');
is $code, 73, 'a link';
like $said, qr/is a link or no file; remove it/, 'is not followed';
ok !-e "$dir/target" && -l "$dir/petrel.conf", 'nor replaced';
unlink "$dir/petrel.conf";
mkdir "$dir/petrel.conf";
is +(init($dir, split / /, $hold))[0], 73, 'a directory';

$dir = folder();
Petrel::spit("$dir/password", "old\n");
my $pw = Petrel::spit("$base/pw", "new\n");
my @login = ('--yes', '--hostname', 'mail.example.org', '--relay', 'smtp.example.org', '--relay-user', 'a@example.org', '--password-file', $pw);
($code, $said) = init($dir, @login);
is $code, 73, 'a password is not replaced';
like $said, qr/password is there already; remove it, or run it with --force/, 'it says how';
is Petrel::slurp("$dir/password"), "old\n", 'it is as before';
ok !-e "$dir/petrel.conf", 'and there are no settings';
is +(init($dir, @login, '--force'))[0], 0, '--force';
is Petrel::slurp("$dir/password.old") . Petrel::slurp("$dir/password"), "old\nnew", 'both are there';
is mode("$dir/password"), '600', 'only for its owner';
is((stat "$dir/password")[4], $> == 0 && defined getpwnam('petrel') ? scalar getpwnam('petrel') : $>, 'the user of the daemon');
($code, $said) = Petrel::command('', $Petrel::binary, '-c', "$dir/petrel.conf", 'check');
is $code, 0, 'check has nothing to say' or diag $said;

SKIP: {
    my $nobody = getpwnam 'nobody';
    skip 'only root can become another user', 4 if $> != 0 || !defined $nobody || !Petrel::have('setpriv');
    $dir = folder();
    my @as = ('setpriv', '--reuid', $nobody, '--clear-groups', $Petrel::binary);
    skip 'the program is out of reach', 4 if (Petrel::command('', @as, 'version'))[0] != 0;
    ($code, $said) = Petrel::command('', @as, '-c', "$dir/petrel.conf", 'init', split / /, $hold);
    is $code, 77, 'who may not write';
    like $said, qr/\Apetrel init: \Q$dir\E: Permission denied; run `sudo petrel init`/, 'the command to use';
    chown $nobody, -1, $dir;
    ($code, $said) = Petrel::command('', @as, '-c', "$dir/petrel.conf", '-o', "dns_servers=127.0.0.1:$dns", 'init', split / /, $hold);
    is $code, 0, 'a user in a directory of their own' or diag $said;
    unlike Petrel::slurp("$dir/petrel.conf"), qr/^(?:listen|user) =/m, 'on a port that everybody may use';
}

# --- On a terminal

sub keys_of { return 'send ' . join ' ', map { sprintf '%02x', ord } split //, shift }
sub typed {
    my ($dir, $steps, @arguments) = @_;
    my ($code, $said) = Petrel::command(join('', map { "$_\n" } @$steps), 'python3', 't/e2e/terminal.py', $Petrel::binary, '-c', "$dir/petrel.conf", '-o', "dns_servers=127.0.0.1:$dns", 'init', @arguments);
    return $said;
}
SKIP: {
    skip 'python3 is not installed', 14 unless Petrel::have('python3');
    $dir = folder();
    my $secret = "  p\@ss \"'\\#%;=" . encode('UTF-8', "\x{e9}\x{20ac}") . ' ';
    my $out = typed($dir, ['expect 1. Name of this host (--hostname)', keys_of("a..b\n"), 'expect is not a host name', keys_of("mail.example.org\n"), 'expect 2. Where mail goes (--relay)',
        'expect gmail, googleworkspace', keys_of("\n"), 'expect an answer is needed', keys_of("smtp.example.org\n"), 'expect 3. User there', keys_of("you\@example.org\n"), 'expect Password: ',
        keys_of("\n"), 'expect the password is empty', 'expect Password: ', keys_of("$secret\n"), 'expect 4. Clients that may send mail here', keys_of("\n"), 'expect 5. Reader of the mail of root', keys_of("\x{c3}\x{28}\n"), 'expect not UTF-8',
        keys_of("me\@example.org\n"), 'expect 6. Where health checks', keys_of("yes\n"), 'expect Written: ', 'expect test me@example.org']);
    like $out, qr/^exit 0$/m, 'six questions, and wrong answers' or diag $out;
    is Petrel::slurp("$dir/password"), $secret, 'the password is as typed';
    like Petrel::slurp("$dir/petrel.conf"), qr/^hostname = mail\.example\.org\n.*^relay = submission:\/\/you%40example\.org\@smtp\.example\.org\n.*^root = me\@example\.org\n.*^http = 127\.0\.0\.1:8025\n/ms, 'the answers are the settings';

    for my $case (['the end of the input', 'send 04', 'the input has ended, nothing was written', 'exit 65'], ['Ctrl-C', 'send 03', undef, 'signal 2']) {
        my ($name, $key, $text, $end) = @$case;
        $dir = folder();
        $out = typed($dir, ['expect 1. Name', $key, defined $text ? "expect $text" : ()]);
        like $out, qr/^$end$/m, "$name ends it" or diag $out;
        is_deeply [glob "$dir/*"], [], 'nothing is written';
    }
    $dir = folder();
    $out = typed($dir, ['expect Password', 'send 03', 'expect interrupted, nothing was written'], qw(--hostname a.test --relay zoho --relay-user a@b.test));
    like $out, qr/^exit 130$/m, 'Ctrl-C instead of a password' or diag $out;
    is_deeply [glob "$dir/*"], [], 'nothing is written';
    $out = typed($dir, ['expect 2. Where', keys_of("x\n"), 'expect neither a provider', keys_of("y\n"), 'expect neither a provider', keys_of("z\n"), 'expect three answers were wrong'], qw(--hostname a.test));
    like $out, qr/^exit 65$/m, 'three wrong answers' or diag $out;
    $out = typed($dir, ['expect Password (empty: log in with OAuth2)', keys_of("\n"), 'expect 4. Clients that may send mail here', keys_of("\n"), 'expect 5.', keys_of("\n"), 'expect 6.', keys_of("\n"), 'expect Mail is kept, because there is no password. Microsoft 365 wants OAuth2: register', 'expect oauth login smtp.office365.com a@b.test'],
        qw(--hostname a.test --relay microsoft --relay-user a@b.test));
    like $out, qr/^exit 0$/m, 'OAuth2' or diag $out;
    like Petrel::slurp("$dir/petrel.conf"), qr/^routes = \* hold\n.*^# oauth = smtp\.office365\.com a\@b\.test microsoft client=ID$/ms, 'keeps the mail until there is a token';
}
($code, $said) = init(folder(), '--hostname', 'a.test');
is $code, 64, 'no terminal';
like $said, qr/\Apetrel init: an answer is missing, and standard input is not a terminal; add --relay/, 'it says which answer';

# --- Mail leaves by these settings

SKIP: {
    skip 'python3 or openssl is not installed', 9 unless Petrel::have('python3') && Petrel::have('openssl');
    my $certificates = folder();
    system("sh t/support/tls_certificates.sh $certificates >$base/certificates.log 2>&1") == 0 or die Petrel::slurp("$base/certificates.log");
    Petrel::spawn("$base/smarthost.out", 'python3', 't/e2e/login_smarthost.py', $certificates, "$base/smarthost.log");
    my $port = Petrel::wait_for(sub { Petrel::slurp("$base/smarthost.out") =~ /^(\d+)$/m ? $1 : 0 }) or die;
    for my $password ('plain', join('', map { chr } 33 .. 126), encode('UTF-8', "  \x{e9}\x{20ac} \x{1f426} # \"x\" \\ %40 ")) {
        $dir = folder();
        chmod 0711, $dir;
        my $file = Petrel::spit("$base/secret", "$password\n");
        my $listen = Petrel::free_port();
        my ($code, $said) = init($dir, '--yes', '--hostname', 'mail.example.org', '--relay', "submission://127.0.0.1:$port?tls=encrypt", '--relay-user', 'you@example.org', '--password-file', $file,
            '--listen', "127.0.0.1:$listen", '--root', 'me@example.org');
        is $code, 0, 'init' or diag $said;
        my $petrel = bless { dir => $dir, port => $listen, log => "$dir/log", starts => 0, settings => { spool => "$dir/spool" } }, 'Petrel';
        local $ENV{PETREL_SPOOL} = "$dir/spool";
        local $ENV{PETREL_TLS_CA} = "$certificates/ca.pem";
        $petrel->start;
        my ($sent, $text) = $petrel->run('test', 'friend@far.test');
        is $sent, 0, 'test: delivered' or diag $text . $petrel->log;
        my ($last) = reverse Petrel::slurp("$base/smarthost.log") =~ /^auth tls ([0-9a-f]+)$/mg;
        is pack('H*', $last // ''), "\0you\@example.org\0$password", 'by that user, with that password, in TLS';
        # As cron sends it. The smarthost takes mail of the account's own address alone.
        my $before = () = Petrel::slurp("$base/smarthost.log") =~ /^message$/mg;
        is +($petrel->run({ input => "Subject: Cron <root\@vps> backup\n\nfailed\n" }, 'sendmail', '-oi', '-FCronDaemon', 'root'))[0], 0, 'mail of cron';
        ok Petrel::wait_for(sub { (() = Petrel::slurp("$base/smarthost.log") =~ /^message$/mg) > $before }), 'reaches its reader' or diag $petrel->log;
        unlike Petrel::slurp("$base/smarthost.log"), qr/^refused/m, 'and no sender is refused';
        $petrel->stop;
    }
}
done_testing;
