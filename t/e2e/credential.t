#!/usr/bin/perl
# credential:NAME: files that a service manager passes, in values and as the path of a KEY_file.
use lib 't/e2e';
use E2E;

my $dir = tempdir('credentials-XXXXXX', TMPDIR => 1, CLEANUP => 1);
Petrel::spit("$dir/users", (Petrel::command("secret\n", $Petrel::binary, 'passwd', 'alice'))[1]);
Petrel::spit("$dir/relay", "alice's password\n");
chmod 0600, "$dir/users", "$dir/relay";
my $petrel = Petrel->new(auth_users => 'credential:users', auth_cleartext => 'loopback', relay => 'smtp://alice@127.0.0.1:1', relay_password_file => 'credential:relay');
{
    local $ENV{CREDENTIALS_DIRECTORY} = $dir;
    $petrel->start;
    like join('', $petrel->dialogue('EHLO x')), qr/250[- ]AUTH /, 'users come from a credential';
    my ($code, $text) = $petrel->run('check');
    is $code, 0, 'check reads it' or diag $text;
    like $text, qr{^auth_users = \Q$dir\E/users}m, 'and shows the path';
    is $petrel->stop, 0, 'it ends';
    $petrel->configure(relay_password_file => 'credential:../relay');
    ($code, $text) = $petrel->run('check');
    is $code, 78, 'no path';
    like $text, qr/petrel\.conf:\d+: relay_password_file: credential:NAME needs the name of a file, without a slash/, 'says its line';
    $petrel->configure(relay_password_file => 'credential:missing');
    ($code, $text) = $petrel->run('check');
    like $text, qr{petrel\.conf:\d+: relay_password_file: cannot read '\Q$dir\E/missing': No such file}, 'one that is not there';
    # An account of OAuth2 and a key of DKIM.
    Petrel::spit("$dir/ms", "zq-client-secret\n");
    is system("$Petrel::binary -o spool=$dir/none dkim-key example.org s1 --bits 1024 --directory $dir >/dev/null 2>&1"), 0, 'a key';
    rename "$dir/s1._domainkey.example.org.pem", "$dir/dkim" or die;
    my $other = Petrel->new(relay => 'submission://joe@smtp.test', dkim_keys => 'example.org s1 credential:dkim',
        oauth => 'smtp.test joe custom client=x grant=client token=https://127.0.0.1:1/t secret=@credential:ms');
    chmod 0600, "$dir/ms", $other->conf;
    ($code, $text) = $other->run('check');
    is $code, 0, 'secrets in tables, too' or diag $text;
    unlike $text, qr/zq-client/, 'which are not shown';
}
$petrel->configure(relay_password_file => 'credential:relay');
my ($code, $text) = $petrel->run('check');
is $code, 78, 'without the variable';
like $text, qr/petrel\.conf:\d+: auth_users: CREDENTIALS_DIRECTORY is not set: credential:NAME is for LoadCredential= in a unit of systemd/, 'a line each';
is((Petrel::command(undef, $Petrel::binary, '-c', $petrel->conf, 'queue', 'ls'))[0], 0, 'but commands that open none of the files need none');
is((Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'a@b.test'))[0], 0, 'nor does sendmail(1)');
done_testing;
