#!/usr/bin/perl
# The twenty errors of a first day as one record: what is set or done, the exit code, the line or the log, what `status` says, and
# what the screen shows: the terminal, or the page in Chromium (screenshots are in BUILD/page/incident-N.png). Its rows, by number:
#    1 wrong password   2 wrong user            3 authority not trusted   4 no name server     5 port taken
#    6 started twice    7 spool of another      8 password not readable   9 spool not writable 10 disk full
#   11 typo at a reload 12 unknown setting     13 name of Postfix        14 listen = 25       15 listen = *:25
#   16 localhost:25     17 open relay          18 TLS at the wrong port  19 sender of others  20 no login at a smarthost
# Elsewhere: more forms of these settings (mistakes.t), two networks that open a relay (findings.t), commands within remedies
# (remedies.t), a full disk under load (full.t), the hint of 18 at ports that are known (t/unit/smtp/trust/security.c).
use lib 't/e2e';
use E2E;
use Mount;
use MoodySmarthost;
use PageBrowser;

my $may_mount = Mount::namespace();
delete $ENV{PETREL_TEST_MAY_MOUNT};
my $dir = tempdir('incident-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
my $taken = Petrel->new(routes => '* hold')->start;
my %ports = (TAKEN => $taken->{port}, NOBODY => Petrel::free_port());
Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $dir);
my $pair = Petrel::spit("$dir/pair.pem", Petrel::slurp("$dir/good.key") . Petrel::slurp("$dir/good.pem"));
my $sink = -s $pair ? Sink->start('--tls', $pair) : undef;
$ports{TLS} = $sink->{port} if $sink;
Petrel::spit("$dir/closed", "x\n");
chmod 0600, "$dir/closed";

# Ports and directories by their names, as in the rows.
sub recorded {
    my ($petrel, $text) = @_;
    my %all = (%ports, HTTP => $petrel->{http} // 0, SMARTHOST => $petrel->{smarthost} // 0);
    $text =~ s/:$all{$_}\b/:$_/g for keys %all;
    return $text =~ s/\Q$petrel->{dir}\E/HERE/gr =~ s/\Q$taken->{dir}\E/OTHER/gr =~ s/\Q$dir\E/DIR/gr;
}
sub with {
    my ($smarthost, %settings) = @_;
    my %all = (%ports, SMARTHOST => $smarthost, HTTP => Petrel::free_port());
    for (values %settings) { s/:(SMARTHOST|TAKEN|NOBODY|TLS|HTTP)\b/:$all{$1}/g; s/\bOTHER\b/$taken->{dir}/g; s/\bDIR\b/$dir/g }
    my $petrel = Petrel->new(%settings);
    chmod 0755, $petrel->{dir};
    @$petrel{qw(http smarthost)} = ($all{HTTP}, $smarthost);
    return $petrel;
}

# --- It does not start: the errors, settings, exit code, its one line; status knows no daemon

my $CONF = 'HERE/petrel.conf';
my @unprivileged = ('setpriv', '--reuid=nobody', '--clear-groups');
for (
    [12, 'an unknown setting', { relai => 'smtp://a.example' }, 78, "$CONF:3: relai: unknown setting; did you mean 'relay'?"],
    [13, 'a name of Postfix', { relayhost => 'smtp.example.org' }, 78, "$CONF:3: relayhost: without brackets Postfix looks up MX records; write relay = HOST:PORT to connect to HOST itself, or relayhost = [HOST]:PORT"],
    [14, 'a listener without its address', { listen => '25' }, 78, "$CONF:2: listen: '25': not an address: write 0.0.0.0:25, [::]:25"],
    [15, 'one of all addresses', { listen => '*:25' }, 78, "$CONF:2: listen: '*:25': not an address: write 0.0.0.0:25, [::]:25"],
    [16, 'one by a name', { listen => 'localhost:25' }, 78, "$CONF:2: listen: 'localhost:25': not an address: write 127.0.0.1:25, [::1]:25"],
    [17, 'an open relay', { relay_from => '0.0.0.0/0' }, 78, "$CONF:3: relay_from: '0.0.0.0/0': would make this host an open relay (allow_open_relay = yes permits it)"],
    [20, 'a login without a password', { relay => 'submission://joe@smtp.example.org' }, 78, "$CONF:3: relay: 'submission://joe\@smtp.example.org': no password for the user joe at smtp.example.org; put a line 'smtp.example.org joe PASSWORD' into the file that auth_passwords names, or an account into oauth, or set relay_password or relay_password_file"],
    [8, 'a password that is not there', { relay => 'submission://joe@smtp.example.org', relay_password_file => 'DIR/none' }, 78, "$CONF:4: relay_password_file: cannot read 'DIR/none': No such file or directory"],
    $> == 0 ? [8, 'a password that the user may not read', { relay => 'submission://joe@smtp.example.org', relay_password_file => 'DIR/closed' }, 78, "$CONF:4: relay_password_file: cannot read 'DIR/closed': Permission denied; it belongs to root (mode 0600): `chown nobody DIR/closed` if the daemon runs as nobody", @unprivileged] : (),
    [8, 'a key of DKIM that is not there', { dkim_keys => 'example.org s1 DIR/none.pem' }, 78, "$CONF:1: dkim_keys: cannot read 'DIR/none.pem': No such file or directory"],
    [3, 'authorities that are not there', { tls_ca => 'DIR/none.pem' }, 78, 'petrel: tls_ca: cannot read DIR/none.pem: No such file or directory'],
    [9, 'a user that is not there', { user => 'no-such-user' }, 78, "$CONF:4: user: no such user: 'no-such-user'"],
    [9, 'a spool that cannot be made', { spool => '/proc/none/spool' }, 73, 'petrel: spool /proc/none/spool: cannot make or open the directory: No such file or directory (make it writable for this user, or set `spool` to a directory that is writable)'],
    $> == 0 ? [9, 'one that the user may not make', {}, 73, 'petrel: spool HERE/spool: cannot make or open the directory: Permission denied (make it writable for this user, or set `spool` to a directory that is writable)', @unprivileged] : (),
    [5, 'a port that is taken', { listen => '127.0.0.1:TAKEN' }, 69, 'petrel: cannot listen on 127.0.0.1:TAKEN: Address already in use (`ss -ltnp` shows which program listens there)'],
    [7, 'a spool that is taken', { spool => 'OTHER/spool', control => 'DIR/none' }, 75, 'petrel: spool OTHER/spool: another petrel runs on it (it holds lock/daemon); stop that one, or set `spool` to another directory'],
) {
    my ($number, $title, $settings, $wanted, $line, @as) = @$_;
    my $petrel = with(0, %$settings);
    my ($code, $said) = Petrel::command('', @as, $Petrel::binary, '-c', $petrel->conf, 'run');
    is $code, $wanted, "$number. $title: exit code $wanted";
    is recorded($petrel, $said) =~ s/^\S+ main: warning: .*\n//gmr, "$line\n", '  and its line';
    ($code, $said) = $petrel->run('status');
    is $code, 69, '  status: exit code 69';
    like $said, qr/^petrel status: no daemon answers: /m, '  and its line';
}
my ($code, $said) = $taken->run('run');
is $code, 75, '6. a second start: exit code 75';
is recorded($taken, $said), "petrel: spool HERE/spool: another petrel runs on it (it holds lock/daemon); stop that one, or set `spool` to another directory\n", '  and its line';
($code, $said) = $taken->run('status');
is $code, 0, '  status is of the first';
like $said, qr/^accepting +yes$/m, '  which goes on';

# --- It starts: the errors; settings, what the smarthost does; what delivery says, or else the log; and the finding with its
# remedy, which the log has in one line, and status and the page as it is

my $refuses = 'the smarthost 127.0.0.1[127.0.0.1] refuses our user joe: 535 5.7.8 bad password; check relay_password';
my $owned = 'host 127.0.0.1[127.0.0.1] said: 553 5.7.1 sender not owned by this account (in reply to MAIL FROM command)';
my $no_tls = 'TLS is demanded by the route (tls=verify) but host 127.0.0.1[127.0.0.1] failed in the TLS handshake: the peer does not speak TLS';
my $untrusted = 'TLS is demanded by the route (tls=verify) but host 127.0.0.1[127.0.0.1] failed in the TLS handshake: unknown issuer O=Petrel tests, CN=Good CA';
my $unnamed = 'cannot look up smtp.example.org: the name server 127.0.0.1:NOBODY cannot be reached for the Address of smtp.example.org';
my $down = 'Apply the remedy that the reason names; if it names none, check the host, its port and the network between. Mail waits until it answers.';
my @login = (relay_password => 'x');
my $disk = $may_mount ? Mount->tmpfs(60, 4000) : undef;
my $fills = sub { my $petrel = shift; $disk->leave_bytes(4096); $petrel->wait_log(qr/ MB free: mail is refused until /); return $petrel->send_mail('a@b.example', 'you@fine.example', "Subject: x\r\n\r\nx\r\n") };
my $mistypes = sub { my $petrel = shift; Petrel::spit($petrel->conf, Petrel::slurp($petrel->conf) . "relai = x\n"); return ($petrel->run('reload'))[0] != 0 };
my @shown;
for (
    ['1, 2', 'a wrong password, or user', { relay => 'smtp://joe@127.0.0.1:SMARTHOST', @login }, 'login', "deferred ($refuses)", 'login_refused', '127.0.0.1:SMARTHOST', "refuses the login: $refuses", 'Correct the user or the password of this smarthost, then `petrel reload`; `petrel doctor` tries it.'],
    [19, 'a sender of others', { relay => 'smtp://joe@127.0.0.1:SMARTHOST', @login }, 'sender', "deferred ($owned)", 'sender_refused', '127.0.0.1:SMARTHOST', "refuses the sender: $owned", 'Allow this sender at the smarthost, or set `rewrite` to one that may send there.'],
    ['19, 20', 'the same without a login', { relay => 'smtp://127.0.0.1:SMARTHOST' }, 'sender', "bounced ($owned)", 'reports_lost', '127.0.0.1', "notifications of failed mail are lost, so nobody learns of it: $owned", 'If it refuses the sender, set `rewrite` for mail of this host, and `bounce_sender` for notifications (MAIL FROM:<>); else follow its reply.'],
    [18, 'TLS where there is none', { relay => 'smtps://joe@127.0.0.1:SMARTHOST', @login }, 'good', "deferred ($no_tls)", 'upstream_down', '127.0.0.1:SMARTHOST', "does not take our mail: $no_tls", $down],
    $sink ? [3, 'an authority that is not trusted', { relay => 'smtps://joe@127.0.0.1:TLS', @login, tls_ca => 'DIR/other-ca.pem' }, 'good', "deferred ($untrusted)", 'upstream_down', '127.0.0.1:TLS', "does not take our mail: $untrusted", $down] : (),
    [4, 'a name server that is not there', { relay => 'smtp://smtp.example.org', dns_servers => '127.0.0.1:NOBODY' }, 'good', "deferred ($unnamed)", 'name_servers', '', '1 of 1 name servers does not answer: 127.0.0.1:NOBODY', 'Correct /etc/resolv.conf, which is then read again, or set `dns_servers`; restart if the sandbox does not let it be read.'],
    $disk ? [10, 'a disk that is full', { routes => '* hold', spool => "$disk->{dir}/spool" }, $fills, qr/refused=452 4\.3\.1, .*\(Insufficient system storage\)$/m, 'not_accepting', '', 'new mail is refused for now: the disk is full', 'Remove the cause: mail is then accepted again automatically, but after an error of the disk only by a restart.'] : (),
    [11, 'a typo at a reload', { routes => '* hold' }, $mistypes, qr/petrel\.conf:\d+: relai: unknown setting; did you mean 'relay'\?$/m, 'reload_refused', '', 'the last reload was refused: the old settings stay', 'Correct the errors that `petrel check` names, then `petrel reload`.'],
) {
    my ($number, $title, $settings, $mode, $result, $finding, $subject, $text, $remedy) = @$_;
    my $own = "$dir/" . @shown;
    mkdir $own or die;
    my $smarthost = MoodySmarthost->new($own);
    my $petrel = with($smarthost->{port}, http => '127.0.0.1:HTTP', %$settings)->start;
    if (ref $mode) {
        ok $mode->($petrel), "$number. $title: it is done";
        ok $petrel->wait_log($result), '  the log of it' or diag $petrel->log;
    } else {
        $smarthost->mode($mode);
        like $petrel->send_mail('a@b.example', 'you@fine.example', "Subject: x\r\n\r\nx\r\n"), qr/^250 /, "$number. $title: it takes mail";
        ok $petrel->wait_log(qr/ status=/), '  and tries';
    }
    my ($trouble) = Petrel::wait_for(sub { $petrel->run('status'); ($petrel->log =~ /(trouble=$finding\b.*)/)[0] });
    is +(recorded($petrel, $petrel->log) =~ / to=<you\@fine\.example>.* status=(.*)/)[0], $result, '  the log of the delivery' unless ref $mode;
    is recorded($petrel, $trouble // ''), "trouble=$finding" . ($subject && ", subject=$subject") . " ($text) ($remedy)", '  the log of the finding';
    my ($code, $said) = $petrel->run('status');
    is $code, $finding eq 'not_accepting' ? 75 : 0, '  status: exit code';
    my $shown = "$finding" . ($subject && " $subject") . ": $text\n" . ' ' x 11 . "$remedy\n";
    like recorded($petrel, $said), qr/^(?:error|warning) +\Q$shown\E/m, '  and shows it with its remedy';
    push @shown, { petrel => $petrel, title => "$number. $title", subject => $subject, text => $text, remedy => $remedy =~ tr/`//dr };
}
my $why = PageBrowser::missing();
SKIP: {
    skip $why, 1 if $why;
    mkdir "$Petrel::root/$Petrel::build/page";
    my %answers = (
        page => sub { my $at = $_[0]; return $at < @shown ? "http://127.0.0.1:$shown[$at]{petrel}{http}/#k=" . PageBrowser::key($shown[$at]{petrel}) : 'end' },
        # A finding as it is on the screen, in one line.
        is => sub { my ($at, $screen) = split / /, $_[0], 2; my $s = $shown[$at]; like recorded($s->{petrel}, $screen), qr/(?:error|warning) \Q@{[$s->{subject} ? "$s->{subject}: " : '']}$s->{text}\E .*\Q$s->{remedy}\E/, "$s->{title}: the screen"; return 'seen' });
    PageBrowser::run(120, 1, \%answers, 'incident.mjs', "$Petrel::root/$Petrel::build/page");
}
is $_->{petrel}->stop, 0, "$_->{title}: it stops" for @shown;

# --- Only warned of

{
    my ($code, $said) = with(0, relay => 'smtps://joe@smtp.example.org:587', relay_password => 'x')->run('check');
    is $code, 0, '18. TLS from the first byte at port 587: check finds no error';
    like $said, qr/warning: smtp\.example\.org:587: port 587 begins without TLS: write submission:\/\/$/m, '  but says what to write';
    ($code, $said) = with(0, relay => 'submission://smtp.example.org')->run('check');
    is $code, 0, '20. a smarthost without a login: check finds no error';
    like $said, qr/warning: smtp\.example\.org:587: port 587 usually takes mail only after a login, and no user is set: write submission:\/\/USER\@smtp\.example\.org, /, '  but says what to write';
    ($code, $said) = Petrel::command('', $Petrel::binary, '-c', "$dir/new.conf", qw(init --print --yes --hostname vps.example.org --relay smtp.provider.example));
    is $code, 0, '  init writes it';
    like $said, qr/^petrel init: warning: nobody logs in at the smarthost, and most want a login; give the user, --relay-user USER, unless yours knows this host by its address$/m, '  and says what most want';
}

is $taken->stop, 0, 'the other one was not disturbed';
$sink->stop if $sink;
done_testing;
