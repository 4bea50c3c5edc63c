#!/usr/bin/perl
# doc/recipes.md as it stands there, started as the unit starts them (another user, no root), and `make install` and
# its kin in a root directory of their own. Only places, ports and names of users are others than there.
use lib 't/e2e';
use E2E;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $is_root = $> == 0;
my $scratch = tempdir('recipes-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $readme = Petrel::slurp("$Petrel::root/README.md");
my ($petrel_id, $alice, $stranger) = (65534, 12345, 12346);

my $recipes = Petrel::slurp("$Petrel::root/doc/recipes.md");

# The fenced blocks behind a heading, until the next one.
sub blocks {
    my $heading = shift;
    my ($part) = $recipes =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms or die "no '$heading' in doc/recipes.md";
    return $part =~ /^```\w+\n(.*?)^```$/gms;
}

# Its places are below $scratch, its user and ports those that a test may have.
my %ports;
sub moved {
    my $text = shift;
    $text =~ s{(/etc/petrel|/var/mail|/var/spool/petrel|/run/dovecot)}{$scratch$1}g;
    $text =~ s{(?:0\.0\.0\.0|127\.0\.0\.1|192\.168\.1\.5):(\d+)}{'127.0.0.1:' . ($ports{$1} ||= Petrel::free_port())}ge;
    $text =~ s/-o petrel\b/-o $petrel_id/g;
    $text =~ s/-g \$u\b/-g $alice/g;
    return $text;
}

# --- The first page

my ($first) = $readme =~ /\A(.*?)^## Where/ms;
ok -e "$Petrel::root/$_", "$_, which the first page shows" for $first =~ /^!\[[^\]]+\]\(([^)]+)\)$/mg;
cmp_ok -s "$Petrel::root/doc/page.png", '<=', 60_000, 'a picture that is small';
my @hurry = $first =~ /^    (.+)$/mg;
is scalar @hurry, 2, 'two commands for people in a hurry';
my %target = map { $_ => 1 } Petrel::slurp("$Petrel::root/Makefile") =~ /^([a-z-]+):/mg;
is_deeply [grep { !$target{$_} } map { split ' ' } join("\n", @hurry) =~ /(?<!-y )\bmake ([a-z -]+?)(?: &&|$)/mg], [], 'whose targets are there';
is +(Petrel::command('', $Petrel::binary, 'help', $_))[0], 0, "and petrel $_" for join(' ', @hurry) =~ /\bpetrel (init|test)\b/g;

my $make_code = system("make -s -C $Petrel::root install DESTDIR=$scratch/root >$scratch/make.log 2>&1");
is $make_code, 0, 'make install' or diag Petrel::slurp("$scratch/make.log");
my $root = "$scratch/root";
my @installed = map { chomp; $_ } `cd $root && find . -type f | sort`;
ok -x "$root/usr/local/sbin/petrel", 'the program';
ok -s "$root/usr/local/sbin/petrel" < -s $Petrel::binary, 'without what debuggers need';
ok -e "$root/etc/petrel/petrel.conf", 'first settings';
is system("$root/usr/local/sbin/petrel -c $root/etc/petrel/petrel.conf -o user= check >$scratch/check.log 2>&1"), 0, 'that are without mistakes' or diag Petrel::slurp("$scratch/check.log");
Petrel::spit("$root/etc/petrel/petrel.conf", "hostname = mine\n");
is system("make -s -C $Petrel::root install DESTDIR=$root >/dev/null 2>&1"), 0, 'an upgrade';
is Petrel::slurp("$root/etc/petrel/petrel.conf"), "hostname = mine\n", 'leaves them as they are';
my $unit = Petrel::slurp("$root/usr/local/lib/systemd/system/petrel.service");
like $unit, qr/^Type=notify$/m, 'the unit waits for READY';
like $unit, qr/^ExecReload=\S+petrel reload$/m, 'and reloads by a command that waits';
like $unit, qr/^User=petrel$/m, 'the unit has the user that the recipes name';
like $unit, qr/^Restart=on-failure\n.*^RestartPreventExitStatus=78$/ms, 'it restarts whatever ends, but for mistakes in the settings';
like $unit, qr/^After=.*\bremote-fs\.target\b/m, 'which may be on any mount of the system';
for ('listne = 127.0.0.1:25', "tls_cert = $scratch/missing\ntls_key = $scratch/missing", "relay_password_file = $scratch/missing", 'user = nobody-here') {
    Petrel::spit("$scratch/bad.conf", "hostname = mail.example.org\nspool = $scratch/bad\n$_\n");
    is +(Petrel::command('', $Petrel::binary, '-c', "$scratch/bad.conf", 'run'))[0], 78, "which it says of $_";
}
Petrel::spit("$scratch/bad.conf", "hostname = mail.example.org\nspool = /dev/null/bad\n");
is +(Petrel::command('', $Petrel::binary, '-c', "$scratch/bad.conf", 'run'))[0], 73, 'and not of a disk, which may come back';
my ($writable) = $unit =~ /^ReadWritePaths=(.*)$/m;
like $writable, qr{-\Q$_\E( |$)}, "and lets it write to $_" for qw(/var/spool/petrel /var/mail);
like Petrel::slurp("$root/usr/local/lib/sysusers.d/petrel.conf"), qr/^u petrel /m, 'that user is made';
like Petrel::slurp("$root/usr/local/lib/tmpfiles.d/petrel.conf"), qr{^d /var/spool/petrel 0711 petrel petrel}m, 'so is the spool';

# --- make install-sendmail

SKIP: {
    skip 'needs dpkg-divert, and root', 1 unless Petrel::have('dpkg-divert') && $is_root;
    mkdir $_ for map { my $sum = ''; map { $sum .= "/$_"; "$root$sum" } split m{/} } 'var/lib/dpkg', 'usr/sbin', 'usr/bin';
    Petrel::spit("$root/var/lib/dpkg/$_", '') for qw(status diversions);
    Petrel::spit("$root/usr/sbin/sendmail", 'exim4');
    my $make = sub { return system("make -s -C $Petrel::root $_[0] DESTDIR=$root >$scratch/make.log 2>&1") };
    for my $time (1, 2) {
        is $make->('install-sendmail'), 0, "install-sendmail, time $time" or diag Petrel::slurp("$scratch/make.log");
        is readlink "$root$_", '/usr/local/sbin/petrel', $_ for qw(/usr/sbin/sendmail /usr/lib/sendmail /usr/bin/mailq /usr/bin/newaliases);
        is Petrel::slurp("$root/usr/sbin/sendmail.before-petrel"), 'exim4', 'what was there stepped aside';
    }
    like `dpkg-divert --root=$root --list`, qr{local diversion of /usr/sbin/sendmail to /usr/sbin/sendmail\.before-petrel}, 'and an upgrade of it stays there';
    is $make->('uninstall-sendmail'), 0, 'uninstall-sendmail' or diag Petrel::slurp("$scratch/make.log");
    is Petrel::slurp("$root/usr/sbin/sendmail"), 'exim4', 'it is back';
    ok !-l "$root/usr/bin/mailq", 'the links are gone';
    is `dpkg-divert --root=$root --list`, '', 'so are the diversions';
}
# Without dpkg, and a link of which the other end is gone.
{
    my $other = "$scratch/other";
    mkdir $_ for $other, "$other/usr", "$other/usr/lib";
    symlink '../sbin/gone', "$other/usr/lib/sendmail" or die;
    is system("make -s -C $Petrel::root $_ DESTDIR=$other >$scratch/make.log 2>&1"), 0, "$_ without dpkg" or diag Petrel::slurp("$scratch/make.log")
        for qw(install-sendmail uninstall-sendmail);
    is readlink "$other/usr/lib/sendmail", '../sbin/gone', 'what was there is back';
    is `find $other/usr/sbin $other/usr/bin $other/usr/lib -name '*petrel*' -o -name mailq`, '', 'and nothing else is';
}
is system("make -s -C $Petrel::root uninstall DESTDIR=$root >/dev/null 2>&1"), 0, 'uninstall';
is `cd $root && find . -type f -path '*petrel*'`, "./etc/petrel/petrel.conf\n", 'leaves the settings alone';

unless ($is_root && Petrel::have('setpriv')) {
    diag 'the recipes need root, which becomes another user';
    done_testing;
    exit;
}

# --- The recipes

Petrel::spit("$scratch/petrel", Petrel::slurp($Petrel::binary));
chmod 0755, "$scratch/petrel";
sub as { my $id = shift; return ('setpriv', '--reuid', $id, '--regid', $id, '--clear-groups') }
for (qw(etc etc/petrel var var/mail var/spool var/spool/petrel run run/dovecot)) { mkdir "$scratch/$_"; chmod 0755, "$scratch/$_" }
chown $petrel_id, $petrel_id, "$scratch/var/spool/petrel", "$scratch/run/dovecot";
my $conf = "$scratch/etc/petrel/petrel.conf";

# daemon(SETTINGS, KEY=VALUE...): the settings as the unit starts them; more settings where a test needs them.
sub daemon {
    my ($settings, @more) = @_;
    %ports = ();
    my $text = moved($settings);
    $text .= "spool = $scratch/var/spool/petrel\n" unless $text =~ /^spool/m; # the default elsewhere
    $text .= "$_\n" for @more;
    Petrel::spit($conf, $text);
    chmod 0644, $conf;
    system("rm -rf $scratch/var/spool/petrel/*");
    my $petrel = bless { dir => $scratch, log => "$scratch/log", starts => 0, port => (values %ports)[0] }, 'Petrel';
    unlink "$scratch/log";
    $petrel->{pid} = Petrel::spawn("$scratch/log", as($petrel_id), "$scratch/petrel", '-c', $conf, 'run');
    ok $petrel->wait_log(qr/main: petrel \S+ is /), 'it starts' or diag $petrel->log;
    return $petrel;
}
sub submit { my ($to, @uid) = @_; return Petrel::command("To: $to\nSubject: hi\n\nhello\n", as($uid[0] || $stranger), "$scratch/petrel", '-c', $conf, 'sendmail', '-t') }
sub sh { my $command = moved(shift); return system('sh', '-c', "set -e; $command") }
{ no warnings 'redefine', 'once'; *Petrel::conf = sub { $conf } }

{
    my ($settings, $password, $here, $rewrite, $mailboxes) = blocks('A VPS that sends for its own programs');
    is sh('exec </dev/null; ' . $password), 0, 'a VPS: the password';
    is +(stat "$scratch/etc/petrel/password")[2] & 07777, 0600, 'is for petrel alone';
    Petrel::spit("$scratch/etc/petrel/password", "secret\n");
    # The smarthost has no name here, and so neither TLS nor a login.
    my $sink = Sink->start;
    my $by_sink = sub { return shift =~ s{^relay = .*}{relay = smtp://[127.0.0.1]:$sink->{port}}mr =~ s/^relay_password_file.*\n//mr };
    is +(Petrel::command(moved($settings), $Petrel::binary, '-c', '/dev/stdin', '-o', "spool=$scratch/var/spool/petrel", '-o', 'user=', 'check'))[0], 0, 'settings as they stand there';
    my $petrel = daemon($by_sink->($settings));
    is +(submit('root'))[0], 0, 'mail of cron';
    my $mail = $sink->wait_for('you@example.org');
    is $mail && $mail->{from}, 'you@example.org', 'comes from an address that the smarthost knows' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';

    my $with_mailboxes = $settings =~ s/^(?:root|rewrite) = .*\n//mgr . $here . $rewrite;
    $petrel = daemon($by_sink->($with_mailboxes));
    is +(submit('you@far.example'))[0], 0, 'with mailboxes here, too, mail for elsewhere';
    $mail = $sink->wait_for('you@far.example');
    is $mail && $mail->{from}, 'you@example.org', 'has that sender' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';

    $petrel = daemon($with_mailboxes);
    is sh($mailboxes), 0, 'a VPS: the mailboxes';
    is +(submit('alice@vps.example.org'))[0], 0, 'mail of a program for a person here';
    my $mailbox = "$scratch/var/mail/alice";
    ok Petrel::wait_for(sub { my @new = glob "$mailbox/new/*"; @new == 1 }), 'arrives' or diag $petrel->log;
    my ($code, $text) = Petrel::command('', as($alice), 'sh', '-c', "cat $mailbox/new/* && mv $mailbox/new/* $mailbox/cur/ && rm $mailbox/cur/*");
    is $code, 0, 'and that person can read and remove it' or diag $text;
    like $text, qr/^hello$/m, 'all of it';
    isnt +(Petrel::command('', as($stranger), 'ls', "$mailbox/new"))[0], 0, 'nobody else can';
    is +(submit('typo@vps.example.org'))[0], 0, 'a name that is none';
    ok $petrel->wait_log(qr/to=<typo\@vps\.example\.org>.*status=bounced/), 'is refused' or diag $petrel->log;
    ok !-e "$scratch/var/mail/typo", 'and gets no mailbox';
    ok Petrel::wait_for(sub { my @new = glob "$scratch/var/mail/root/new/*"; @new == 1 }), 'what nobody else may be told root reads' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
    unlike $petrel->log, qr/ (?:error|warning): (?!tls_ca)(?!nobody gets mail for \w+: set root)(?!hostname)/, 'without a complaint' or diag $petrel->log;

    $petrel = daemon($with_mailboxes);
    is +(submit('alice@vps.example.org', $alice))[0], 0, 'who may not read the password still sends';
    ok $petrel->wait_log(qr/to=<alice\@vps\.example\.org>.*status=sent/), 'mail for people here stays here';
    is $petrel->stop, 0, 'it stops';
}

{
    my $block = (blocks('A sidecar in a container'))[0];
    my $sink = Sink->start;
    mkdir "$scratch/spool" or die;
    chown 54321, 0, "$scratch/spool";
    chmod 0700, "$scratch/spool";
    my $port = Petrel::free_port();
    (my $line = $block) =~ s/0\.0\.0\.0:2525/127.0.0.1:$port/;
    $line =~ s/smtp\.provider\.example:2525/127.0.0.1:$sink->{port}/;
    $line =~ s{=/spool}{=$scratch/spool};
    $line =~ s{ petrel\s*\z}{ exec $scratch/petrel};
    $line =~ s{10\.0\.0\.0/8}{127.0.0.0/8};
    my $pid = Petrel::spawn("$scratch/sidecar.log", as(54321), 'sh', '-c', $line);
    my $petrel = bless { port => $port, pid => $pid, log => "$scratch/sidecar.log" }, 'Petrel';
    ok $petrel->wait_log(qr/main: petrel \S+ is app\.example\.org/), 'a sidecar starts as any user' or diag $petrel->log;
    like $petrel->send_mail('app@app.example.org', 'you@there.test', "Subject: x\n\nx\n"), qr/^250/, 'takes mail';
    ok $sink->wait_for('you@there.test'), 'and hands it on' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
}

{
    my ($settings) = blocks('An appliance that takes mail from old devices');
    my $sink = Sink->start('--lmtp');
    $settings =~ s{lmtp://unix:/run/dovecot/lmtp}{lmtp://[127.0.0.1]:$sink->{port}};
    my $petrel = daemon($settings, "user = nobody");
    my ($port) = values %ports;
    like $petrel->send_mail('scan@example.org', 'alice@example.org', "Subject: scan\n\nx\n"), qr/^250/, 'an appliance takes mail';
    ok $sink->wait_for('alice@example.org'), 'and hands it to the mail store' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
}

SKIP: {
    skip 'needs openssl', 1 unless Petrel::have('openssl');
    my ($settings, $users, $hook) = blocks('People with mail programs');
    my $live = "$scratch/live";
    mkdir $live, 0700 or die;
    is system("openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=mail.example.org -days 90 -keyout $live/privkey.pem -out $live/fullchain.pem >/dev/null 2>&1"), 0, 'a certificate of root';
    $hook =~ s/systemctl reload petrel/true/;
    local $ENV{RENEWED_LINEAGE} = $live;
    is sh($hook), 0, 'certbot\'s hook copies it';
    $users =~ s{petrel passwd (\w+)}{echo "long enough for $1" | $scratch/petrel passwd $1}g;
    is sh($users), 0, 'users';
    like Petrel::slurp("$scratch/etc/petrel/users"), qr/\Aalice:.*\nbob:.*\n\z/, 'two of them';
    is +(stat "$scratch/etc/petrel/users")[2] & 07777, 0600, 'for petrel alone';
    my $petrel = daemon("hostname = mail.example.org\nlocal_domains = example.org\nlocal = maildir:/var/mail/%u\n$settings");
    my $size = length $petrel->log;
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /settings reloaded/ }), 'and reloads what the hook has copied' or diag $petrel->log;
    is $petrel->stop, 0, 'it stops';
    unlike $petrel->log, qr/ (?:error|warning): (?!tls_ca)(?!nobody gets mail for \w+: set root)/, 'without a complaint' or diag $petrel->log;
}

done_testing;
