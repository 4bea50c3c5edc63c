#!/usr/bin/perl
# The packages for Debian (make check-packages, as root): what lintian says of them, that two builds are equal, and their
# life in roots of a bare Debian: beside Postfix, in the place of Postfix and Exim, upgrade, removal and purge with and
# without mail, a first mail with the fewest commands, and once more what systemd does of it, booted. SUITE=trixie builds
# and installs those of another release; DEBS=build-deb takes what `make deb` has made, to try the scripts of debian/ alone.
use strict;
use warnings;
use File::Compare qw(compare);
use lib 't/e2e', 't/packages';
use Petrel;
use POSIX ();
use Roots;
use Test::More;

Roots::enter(qw(dpkg-buildpackage dh lintian nsenter ip));
my $top = $Petrel::root;

# --- Built, twice, in two directories

my (@debs, $builder);
if ($ENV{DEBS}) {
    @debs = ($ENV{DEBS}) x 2;
} elsif ($suite eq $here) {
    @debs = ("$work/1", "$work/a/longer/name");
    run('make deb', 'make', '-s', '-C', $top, 'deb', "DEB=$_") for @debs;
} else {
    $builder = fresh('builder');
    into('what building needs', $builder, 'apt-get install -y -q --no-install-recommends make dpkg-dev debhelper lintian');
    Roots::source($builder);
    into('build-dep', $builder, 'cd /src && apt-get build-dep -y -q --no-install-recommends ./');
    into('make deb', $builder, 'cd /src && make -s deb DEB=/1 && make -s deb DEB=/a/longer/name');
    @debs = ("$builder/1", "$builder/a/longer/name");
}
my %deb; # name without version => file
for my $file (map { s{.*/}{}r } glob "$debs[0]/*.deb") {
    $deb{ $file =~ s/_.*//r } = "$debs[0]/$file";
    is compare("$debs[0]/$file", "$debs[1]/$file"), 0, "$file is the same from both directories";
}
is_deeply [ sort keys %deb ], [qw(petrel petrel-dbgsym petrel-mta)], 'the packages';
SKIP: {
    skip 'lintian is that of another release', 2 if $suite ne $here && !$builder;
    Roots::lintian(glob("$debs[0]/petrel_*.changes"), $builder // ());
}
like run('contents', 'dpkg-deb', '-c', $deb{petrel}), qr{^-\S+ root/root .* \./usr/$_$}m, "petrel has $_"
    for qw(sbin/petrel lib/sysusers\.d/petrel\.conf lib/tmpfiles\.d/petrel\.conf share/man/man8/petrel\.8\.gz share/man/man5/petrel\.conf\.5\.gz
    share/bash-completion/completions/petrel share/doc/petrel/petrel\.rules\.yml share/doc/petrel/README\.md share/doc/petrel/doc/monitoring\.md share/petrel/petrel\.conf);
my %pages;
push @{ $pages{"$_->[2] of $_->[0] bytes"} }, $_->[1] . $_->[2] for map { [m{ (\d+) \S+ \S+ \./(usr/share/doc/\S*/)(\S+\.(?:md|png))$}] } grep { m{ \./usr/share/doc/.*\.(?:md|png)$} } split /\n/, run('contents', 'dpkg-deb', '-c', $deb{petrel});
is_deeply [ map { @$_ } grep { @$_ > 1 } values %pages ], [], 'no page is in it twice';
like run('contents', 'dpkg-deb', '-c', $deb{petrel}), qr{ \./(?:usr/)?lib/systemd/system/petrel\Q$_\E$}m, "petrel$_" for qw(.service @.service .socket);
like run('contents', 'dpkg-deb', '-c', $deb{'petrel-mta'}), qr{ \./usr/$_ -> \S*petrel$}m, "petrel-mta has $_" for qw(sbin/sendmail lib/sendmail bin/mailq bin/newaliases);

# A newer version of both, as dpkg sees it.
mkdir "$work/next" or die;
for my $name (qw(petrel petrel-mta)) {
    system("dpkg-deb -R $deb{$name} $work/$name && sed -i 's/^Version: .*/&+next/' $work/$name/DEBIAN/control && dpkg-deb -b --root-owner-group $work/$name $work/next/$name.deb >/dev/null") == 0 or die;
}
bootstrapped();

# Hosts have port 25 here, even if this machine uses its own.
my $net = Petrel::spawn("$work/net.log", qw(unshare --net sh -c), 'ip link set lo up && echo up && exec sleep 3600');
Petrel::wait_for(sub { Petrel::slurp("$work/net.log") =~ /up/ }) or die Petrel::slurp("$work/net.log");
my @alone = ('nsenter', "--net=/proc/$net/ns/net");
sub host { my ($name, $root, $words) = @_; return run($name, @alone, inside($root, $words)) }
# The daemon, as the unit would start it.
sub daemon {
    my $root = shift;
    unlink "$work/log";
    my $pid = Petrel::spawn("$work/log", @alone, inside($root, 'exec petrel run'));
    ok Petrel::wait_for(sub { Petrel::slurp("$work/log") =~ /listening on 127\.0\.0\.1:25\b/ || waitpid($pid, POSIX::WNOHANG()) > 0 }), 'petrel listens' or diag Petrel::slurp("$work/log");
    return $pid;
}
# How many messages wait.
sub queued { my $root = shift; return scalar(() = host('queue ls', $root, 'petrel queue ls --json') =~ /^\{/mg) }
sub packages { my ($root) = @_; return join ' ', map { /^ii  (petrel|petrel-mta|postfix|exim4-daemon-light) / ? $1 : () } split /\n/, run('dpkg -l', inside($root, "dpkg -l | sed 's/  */  /;s/^\\(ii  [^ ]*\\).*/\\1 /'")) }
sub copy { my $root = shift; system('cp', @_, "$root/root/") == 0 or die 'cp'; return }

# --- Beside Postfix, then in its place

my $root = fresh('postfix');
copy($root, $deb{petrel}, $deb{'petrel-mta'});
into('postfix', $root, 'apt-get install -y -q --no-install-recommends postfix');
my $said = into('petrel beside it', $root, 'apt-get install -y -q --no-install-recommends /root/petrel_*.deb');
like $said, qr/^petrel: another program is the sendmail of this system: set `listen`, then systemctl enable --now petrel$/m, 'what is to be done is said';
is packages($root), 'petrel postfix', 'both are installed';
ok !-l "$root/etc/systemd/system/multi-user.target.wants/petrel.service", 'petrel is not enabled, as it has no port';
is readlink("$root/usr/sbin/sendmail") // 'a file', 'a file', 'sendmail is that of Postfix';
like Petrel::slurp("$root/etc/petrel/petrel.conf"), qr/\A# petrel: as installed\n/, 'the settings as installed';
like into('the spool', $root, 'stat -c "%U:%G %a" /var/spool/petrel'), qr/^petrel:petrel 711$/, 'its user and spool';
$said = into('petrel-mta', $root, 'apt-get install -y -q --no-install-recommends /root/petrel-mta_*.deb');
is packages($root), 'petrel petrel-mta', 'Postfix is gone';
ok -l "$root/etc/systemd/system/multi-user.target.wants/petrel.service", 'petrel is enabled';
like into('links', $root, 'for f in /usr/sbin/sendmail /usr/lib/sendmail /usr/bin/mailq /usr/bin/newaliases; do readlink -f $f; done'), qr{\A(?:/usr/sbin/petrel\n){4}\z}, 'sendmail is Petrel';

# --- Mail before anything is set: held, and said

host('sendmail without a daemon', $root, 'echo "Subject: x\n\nfirst" | sendmail root');
my $daemon = daemon($root);
my $smtp = q{use IO::Socket::INET; my $s = IO::Socket::INET->new("127.0.0.1:25") or die; print scalar <$s>;
    for ("HELO a", "MAIL FROM:<a\@example.org>", "RCPT TO:<b\@example.net>", "DATA", "Subject: y\r\n\r\nsecond\r\n.", "QUIT") { print $s "$_\r\n"; print scalar <$s> }};
like run('SMTP', @alone, $^X, '-e', $smtp), qr/^250 2\.0\.0 Ok: queued as/m, 'mail by SMTP, too';
ok Petrel::wait_for(sub { `@{[ join ' ', @alone ]} chroot $root /usr/sbin/petrel status` =~ /^warning +hold_by_route: 2 messages are held.*\n +Say where mail goes with `petrel init --force`/m }), 'status names petrel init';
is queued($root), 2, 'both wait';

# --- Upgrade with mail queued

copy($root, glob "$work/next/*.deb");
$said = into('upgrade', $root, 'dpkg -i /root/petrel.deb /root/petrel-mta.deb </dev/null');
is queued($root), 2, 'both wait still';
Petrel::reap($daemon, 'TERM');
$daemon = daemon($root);
is queued($root), 2, 'and with the new daemon';
host('petrel init', $root, 'petrel init --yes --relay hold --hostname mail.example.org');
like Petrel::slurp("$root/etc/petrel/petrel.conf"), qr/\A# Written by `petrel init`/, 'init replaces the settings as installed';
$said = into('an upgrade after that', $root, 'dpkg -i /root/petrel.deb </dev/null');
like Petrel::slurp("$root/etc/petrel/petrel.conf"), qr/\A# Written by `petrel init`/, 'asks nothing, and keeps them';
Petrel::reap($daemon, 'TERM');

# --- Removal, purge

$said = into('remove', $root, 'apt-get remove -y -q petrel petrel-mta');
like $said, qr{^petrel: mail stays in /var/spool/petrel; petrel sends it when it is installed and started again$}m, 'mail that waits is said';
ok -e "$root/etc/petrel/petrel.conf", 'settings stay';
ok !-e "$root/usr/sbin/petrel" && !-l "$root/usr/sbin/sendmail", 'the program does not';
$said = into('install again', $root, 'dpkg -i /root/petrel_*.deb');
is queued($root), 2, 'the mail is there';
$said = into('purge', $root, 'dpkg --purge petrel');
like $said, qr{^petrel: mail may be in /var/spool/petrel: it stays$}m, 'a purge with mail keeps the spool';
ok !-e "$root/etc/petrel", 'but no settings';
into('install once more', $root, 'dpkg -i /root/petrel_*.deb');
is queued($root), 2, 'the mail is there still';
host('rm', $root, 'petrel queue rm --all');
into('remove', $root, 'dpkg --remove petrel');
ok -e "$root/var/spool/petrel/.empty", 'an empty spool is noted';
system('cp', '-a', "$root/var/spool/petrel", "$work/spool") == 0 or die;
Petrel::spit("$root/var/spool/petrel/journal/later", 'x');
utime time + 10, time + 10, "$root/var/spool/petrel/journal/later";
like into('purge', $root, 'dpkg --purge petrel'), qr/it stays$/m, 'what came since then keeps it';
ok -e "$root/var/spool/petrel/journal/later", 'all of it';
system('rm', '-rf', "$root/var/spool/petrel");
into('install for the last time', $root, 'dpkg -i /root/petrel_*.deb');
$said = into('purge', $root, 'dpkg --purge petrel');
like $said, qr{^petrel: no mail was in /var/spool/petrel: it is removed$}m, 'a purge without mail says so';
ok !-e "$root/var/spool/petrel" && !-e "$root/etc/petrel", 'and leaves nothing';

# --- In the place of Exim; a first mail with four commands

$root = fresh('exim');
copy($root, $deb{petrel}, $deb{'petrel-mta'});
into('exim4', $root, 'apt-get install -y -q --no-install-recommends exim4-daemon-light');
my $start = (times)[2] + (times)[3];
into('petrel-mta', $root, 'apt-get install -y -q --no-install-recommends /root/petrel_*.deb /root/petrel-mta_*.deb');
is packages($root), 'petrel petrel-mta', 'Exim is gone';
my $sink = Petrel::spawn("$work/sink.log", @alone, "$top/$Petrel::build/t/bench/sink", '--listen', '127.0.0.1:2525', '--directory', $work);
Petrel::wait_for(sub { Petrel::slurp("$work/sink.log") =~ /^listening/m }) or die 'no sink';
# The four: install, init, and what init says comes next.
like host('petrel init', $root, 'petrel init --yes --hostname mail.example.org --relay smtp://127.0.0.1:2525 --root me@example.org'),
    qr/^Next:\n  systemctl enable petrel && systemctl restart petrel\n  petrel test me\@example\.org\n\z/m, 'petrel init names the next two';
$daemon = daemon($root);
like host('petrel test', $root, 'petrel test you@example.org'), qr/delivered|sent/, 'and petrel test: delivered';
cmp_ok((times)[2] + (times)[3] - $start, '<=', 60, 'within a minute of the processor');
ok scalar(() = glob "$work/*.eml"), 'the sink has it';
Petrel::reap($_, 'TERM') for $daemon, $sink, $net;

# --- With systemd

$root = fresh('booted');
copy($root, $deb{petrel}, $deb{'petrel-mta'}, glob "$work/next/*.deb");
into('systemd', $root, 'apt-get install -y -q --no-install-recommends systemd systemd-sysv dbus iproute2');
into('what comes later', $root, 'apt-get install -y -q --no-install-recommends --download-only postfix && apt-get install -y -q --no-install-recommends --download-only /root/petrel_*.deb');
unlink "$root/usr/sbin/policy-rc.d" or die;
my @booted = Roots::boot($root);
SKIP: {
    skip 'a control group of its own is refused here', 1 if !@booted;
    my $in = sub { my ($name, $words) = @_; return run($name, @booted, $words) };
    # enabled and active, as systemctl says them.
    my $unit = sub { my ($name) = @_; return $in->("$name:", "systemctl is-enabled $name 2>/dev/null || true; systemctl is-active $name || true") =~ s/\n/ /gr };
    my $pid = sub { return $in->('its process', 'systemctl show -p MainPID --value petrel') + 0 };
    my $waiting = sub { return scalar(() = $in->('queue ls', 'petrel queue ls --json') =~ /^\{/mg) };

    $in->('postfix', 'apt-get install -y -q --no-install-recommends postfix');
    $in->('petrel beside it', 'apt-get install -y -q --no-install-recommends /root/petrel_*.deb');
    is $unit->('petrel.service'), 'disabled inactive ', 'it is not started';
    is $unit->('petrel.socket'), 'disabled inactive ', 'nor is its socket';
    $in->('a port of its own', 'sed -i "s/^listen = .*/listen = 127.0.0.1:2525/" /etc/petrel/petrel.conf && systemctl enable --now petrel');
    is $unit->('petrel.service'), 'enabled active ', 'as that line says, it runs';
    like $in->('postfix', 'systemctl is-active postfix'), qr/^active/, 'beside Postfix';
    $in->('stopped', 'systemctl disable --now petrel; sed -i "s/^listen = .*/listen = 127.0.0.1:25, [::1]:25/" /etc/petrel/petrel.conf');
    $in->('an upgrade', 'dpkg -i /root/petrel_*.deb </dev/null');
    is $unit->('petrel.service'), 'disabled inactive ', 'leaves it stopped';

    $in->('petrel-mta', 'apt-get install -y -q --no-install-recommends /root/petrel-mta_*.deb');
    is $unit->('petrel.service'), 'enabled active ', 'it runs in the place of Postfix';
    like $in->('port 25', 'ss -Hltn'), qr/127\.0\.0\.1:25 /, 'on port 25';
    is $in->('user', 'ps -o user= -p $(systemctl show -p MainPID --value petrel) 2>/dev/null || stat -c %U /proc/$(systemctl show -p MainPID --value petrel)'), "petrel\n", 'as petrel';
    $in->('sendmail', 'echo "Subject: x\n\nfirst" | sendmail root');
    ok Petrel::wait_for(sub { `@{[ join ' ', @booted ]} 'petrel status'` =~ /1 message is held/ }), 'a message waits';

    my $old = $pid->();
    $in->('upgrade', 'dpkg -i /root/petrel.deb /root/petrel-mta.deb </dev/null');
    is $unit->('petrel.service'), 'enabled active ', 'it runs after an upgrade';
    isnt $pid->(), $old, 'which has started the new one';
    is $waiting->(), 1, 'the message waits still';
    $in->('its socket', 'sed -i "s/^listen = .*/listen = fd:smtp/" /etc/petrel/petrel.conf && systemctl stop petrel && systemctl enable --now petrel.socket && systemctl start petrel');
    $in->('upgrade', 'dpkg -i /root/petrel.deb </dev/null');
    is $unit->($_), 'enabled active ', "$_ after an upgrade" for qw(petrel.service petrel.socket);

    like $in->('postfix instead of petrel-mta', 'apt-get install -y -q --no-install-recommends postfix'), qr/^petrel-mta: petrel does not run any more, until: systemctl enable --now petrel$/m, 'that is said';
    is $unit->($_), 'disabled inactive ', "$_ steps aside" for qw(petrel.service petrel.socket);
    is $in->('postfix', 'systemctl is-active postfix; ss -Hltn "sport = :25" | wc -l'), "active\n2\n", 'Postfix has port 25';
    is $waiting->(), 1, 'the message waits still';
    $in->('petrel-mta', 'sed -i "s/^listen = .*/listen = 127.0.0.1:25/" /etc/petrel/petrel.conf && apt-get install -y -q --no-install-recommends /root/petrel_*.deb /root/petrel-mta_*.deb --allow-downgrades');
    is $unit->('petrel.service'), 'enabled active ', 'it runs again';

    my $said = $in->('remove', 'apt-get remove -y -q petrel petrel-mta');
    like $said, qr{^petrel: mail stays in /var/spool/petrel}m, 'mail that waits is said by the daemon, too';
    unlike $in->('port 25', 'ss -Hltn'), qr/:25 /, 'nothing listens';
    $in->('both again', 'apt-get install -y -q --no-install-recommends /root/petrel_*.deb /root/petrel-mta_*.deb');
    is $waiting->(), 1, 'the message is there';
    $in->('nothing waits', 'petrel queue rm --all');
    like $in->('purge', 'apt-get purge -y -q petrel petrel-mta'), qr{^petrel: no mail was in /var/spool/petrel: it is removed$}m, 'a purge of what runs';
    ok !-e "$root/var/spool/petrel" && !-e "$root/etc/petrel", 'leaves nothing';
    is_deeply [glob "$root/etc/systemd/system/*.wants/petrel*"], [], 'not even a link to a unit';
}
done_testing;
