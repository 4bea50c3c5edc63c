#!/usr/bin/perl
# debian/ agrees with the rest, and install and uninstall are each other's inverse. Packages are built and
# installed by t/packages/packages.t (make check-packages).
use lib 't/e2e';
use E2E;
use File::Find;

delete @ENV{ grep { /^PETREL_|^(?:DESTDIR|PREFIX|SYSCONFDIR)$/ } keys %ENV };
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)}; # of the make that runs the tests
my $scratch = tempdir('packaging-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $root = $Petrel::root;
my $makefile = Petrel::slurp("$root/Makefile") =~ s/\\\n//gr;
sub variable { my $name = shift; return $makefile =~ /^\Q$name\E \??:?= *(.*)$/m ? $1 : '' }

# --- debian/ and the Makefile

my ($version) = Petrel::slurp("$root/debian/changelog") =~ /\Apetrel \(([^)]+)\) /;
is $version, variable('VERSION'), 'debian/changelog has the version of the Makefile';
like +(Petrel::command('', $Petrel::binary, 'version'))[1], qr/\A\S+ \Q$version\E\b/, 'which the program says, too';

my $control = Petrel::slurp("$root/debian/control");
my %needed = map { $_ => 1 } split ' ', variable('PACKAGES');
my ($build_depends) = $control =~ /^Build-Depends:((?:\n? .*)+)/m;
my @libraries = $build_depends =~ /([\w.+-]+-dev)\b/g;
cmp_ok scalar @libraries, '>=', 8, 'debian/control names libraries';
is_deeply [ sort @libraries ], [ sort grep { /-dev$/ && $_ ne 'libc6-dev' } keys %needed ], 'those that `make deps` installs';
my ($mta) = $control =~ /^(Package: petrel-mta\n(?:.+\n)+)/m;
like $mta, qr/^$_: mail-transport-agent$/m, "petrel-mta: $_" for qw(Provides Conflicts Replaces);
my ($alone) = $control =~ /^(Package: petrel\n(?:.+\n)+)/m;
unlike $alone, qr/mail-transport-agent/, 'petrel alone stands beside another MTA';

is_deeply [ map { (split)[1] } split /\n/, Petrel::slurp("$root/debian/petrel-mta.links") ], [ map { s{^/}{}r } split ' ', variable('SENDMAIL') ],
    'petrel-mta has the links of install-sendmail';
is_deeply [ split ' ', Petrel::slurp("$root/debian/petrel-mta.manpages") ], [ map { "man/$_" } split ' ', variable('SENDMAIL_MAN') ], 'and its pages';

my $words = sub { return join ' ', split ' ', shift =~ s/^ \.$//mgr };
my ($licence) = Petrel::slurp("$root/LICENSE") =~ /^(Permission .*)\z/ms;
my ($copyright) = Petrel::slurp("$root/debian/copyright") =~ /^License: ISC\n (Permission .*)\z/ms;
is $words->($copyright), $words->($licence), 'the licence is ours';

for my $script (glob "$root/debian/*.p{ost,re}{inst,rm}") {
    my ($code, $said) = Petrel::command('', 'sh', '-n', $script);
    is $code, 0, $script =~ s{.*/}{}r . ' is a script' or diag $said;
    like Petrel::slurp($script), qr/^#DEBHELPER#$/m, 'with a place for what debhelper adds';
}

# --- The settings as installed

my $settings = Petrel::slurp("$root/debian/petrel.conf");
like $settings, qr/\A# petrel: as installed\n/, 'the mark that petrel init replaces';
my $conf = Petrel::spit("$scratch/petrel.conf", $settings =~ s/^user = petrel$/spool = $scratch\/spool/mr);
my ($code, $said) = Petrel::command('', $Petrel::binary, '-c', $conf, 'check', '--changed');
is $code, 0, 'the settings of the package are right' or diag $said;
like $said, qr/^listen = 127\.0\.0\.1:25,? \[::1\]:25\b/m, 'it hears this host alone' or diag $said;
like $said, qr/^routes = \* hold\b/m, 'and holds all mail';
($code, $said) = Petrel::command('', $Petrel::binary, '-c', $conf, '-o', 'dns_servers=127.0.0.1:' . Petrel::free_port(),
    qw(init --yes --relay hold --hostname mail.example.org));
is $code, 0, 'petrel init replaces them' or diag $said;
like Petrel::slurp($conf), qr/\A# Written by `petrel init`/, 'by its own';

# --- install and uninstall

sub files {
    my @found;
    find({ no_chdir => 1, wanted => sub { push @found, $_ . (-l $_ ? ' -> ' . readlink $_ : '') unless -d $_ && !-l $_ } }, $scratch . '/tree');
    return [ sort map { s{^\Q$scratch\E/tree}{}r } @found ];
}
sub make { my ($code, $said) = Petrel::command('', 'make', '-s', '-o', 'petrel', '-C', $root, @_, "BUILD=$scratch/none", "DESTDIR=$scratch/tree"); is $code, 0, "make @_" or diag $said; return }

mkdir "$scratch/tree" or die;
Petrel::command('', 'mkdir', '-p', "$scratch/tree/usr/sbin", "$scratch/tree/usr/lib");
Petrel::spit("$scratch/tree/usr/sbin/sendmail", 'of another');
symlink '../sbin/sendmail', "$scratch/tree/usr/lib/sendmail" or die;
my $before = files();
make(qw(install install-sendmail));
my %there = map { $_ => 1 } @{ files() };
ok $there{"/usr/local/$_"}, "/usr/local/$_" for split ' ', (Petrel::command('', 'make', '-s', '-C', $root, '--eval=installed: ; @echo $(INSTALLED)', 'installed'))[1];
ok $there{"$_ -> /usr/local/sbin/petrel"}, "$_ is Petrel" for split ' ', variable('SENDMAIL');
ok $there{"/usr/local/share/man/man1/$_"}, "$_ is there" for split ' ', variable('SENDMAIL_MAN');
ok -x "$scratch/tree/usr/local/sbin/petrel", 'the program';
like Petrel::slurp("$scratch/tree/usr/local/lib/systemd/system/petrel.service"), qr{^ExecStart=/usr/local/sbin/petrel run$}m, 'the unit starts it there';
Petrel::spit("$scratch/tree/etc/petrel/petrel.conf", "# mine\n");
make(qw(install install-sendmail));
is Petrel::slurp("$scratch/tree/etc/petrel/petrel.conf"), "# mine\n", 'an upgrade keeps the settings';
is_deeply files(), [ sort keys %there ], 'and changes no other file';
make(qw(uninstall-sendmail uninstall));
is_deeply [ grep { $_ ne '/etc/petrel/petrel.conf' } @{ files() } ], $before, 'nothing else is left, and what was there is back';
is Petrel::slurp("$scratch/tree/usr/sbin/sendmail"), 'of another', 'with its content';
ok -e "$scratch/tree/etc/petrel/petrel.conf", 'the settings stay';
done_testing;
