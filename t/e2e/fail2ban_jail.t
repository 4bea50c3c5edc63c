#!/usr/bin/perl
# The jail for fail2ban: its own program reads it, with the filter, and finds what Petrel logs. install puts both where doc/monitoring.md says.
use lib 't/e2e';
use E2E;

my ($client) = grep { -x } '/opt/petrel-test-fail2ban/usr/bin/fail2ban-client', '/usr/bin/fail2ban-client';
plan skip_all => 'no fail2ban' unless $client && Petrel::have('python3');
my $root = $client =~ s{/usr/bin/.*}{}r;
local $ENV{PYTHONPATH} = "$root/usr/lib/python3/dist-packages";

my $scratch = tempdir('jail-XXXXXX', TMPDIR => 1, CLEANUP => 1);
is((Petrel::command('', 'make', '-s', '-o', 'petrel', '-C', $Petrel::root, 'install', "DESTDIR=$scratch/tree"))[0], 0, 'install');
is((Petrel::command('', 'cp', '-r', "$root/etc/fail2ban", "$scratch/fail2ban"))[0], 0, 'the settings of fail2ban');
my ($doc, $conf) = ("$scratch/tree/usr/local/share/doc/petrel", "$scratch/fail2ban");
for (['fail2ban.conf', 'filter.d/petrel.conf'], ['fail2ban-jail.conf', 'jail.d/petrel.conf']) {
    ok -f "$doc/$_->[0]", "$_->[0] is installed";
    Petrel::spit("$conf/$_->[1]", Petrel::slurp("$doc/$_->[0]"));
}
unlink "$conf/jail.d/defaults-debian.conf";
my $dump = sub { return Petrel::command('', 'python3', $client, '-c', $conf, '-d') };
my ($code, $said) = $dump->();
is $code, 0, 'fail2ban reads it' or diag $said;
like $said, qr/\['add', 'petrel', 'systemd'\]/, 'the jail reads the journal';
like $said, qr/'addjournalmatch', '_SYSTEMD_UNIT=petrel\.service'/, 'of the unit';
like $said, qr/'petrel', 'maxretry', 6\]/, 'so many failures';
like $said, qr/'petrel', 'bantime', '1h'\]/, 'so long';
like $said, qr/refused=\(\?:535\|401\) 5\\+\.7\\+\.8/, 'by our filter';
like $said, qr/smtp,submission,submissions/, 'at these ports';
unlike $said =~ s{.*allowipv6.*}{}r, qr/ERROR|WARNING/, 'without complaint';

# For a log in a file, as the comment says.
my ($backend, $logpath) = Petrel::slurp("$conf/jail.d/petrel.conf") =~ /^#   (backend = auto)\n#   (logpath = \S+)$/m;
my $log = Petrel::spit("$scratch/petrel.log", '');
Petrel::spit("$conf/jail.d/petrel.conf", Petrel::slurp("$conf/jail.d/petrel.conf") =~ s/^backend .*$/$backend\nlogpath = $log/mr);
($code, $said) = $dump->();
is $code, 0, 'a log in a file' or diag $said;
like $said, qr/'addlogpath', '\Q$log\E'/, 'is read';
ok $logpath, 'the comment names a path';
done_testing;
