#!/usr/bin/perl
# The errors of a first day as one record: what is set or done, the exit code, and each word of what the program says of it.
# Elsewhere: a full disk (t/e2e/full.t), a reload with a typo and an open relay by two networks (findings.t), names of
# Postfix, forms of `listen`, and ports against schemes (mistakes.t), commands within remedies (remedies.t).
use lib 't/e2e';
use E2E;
use MoodySmarthost;

my $dir = tempdir('incident-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
my $smarthost = MoodySmarthost->new($dir);
my $taken = Petrel->new(routes => '* hold')->start;
my %ports = (SMARTHOST => $smarthost->{port}, TAKEN => $taken->{port}, NOBODY => Petrel::free_port());
Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $dir);
my $pair = Petrel::spit("$dir/pair.pem", Petrel::slurp("$dir/good.key") . Petrel::slurp("$dir/good.pem"));
my $sink = -s $pair ? Sink->start('--tls', $pair) : undef;
$ports{TLS} = $sink->{port} if $sink;

# Ports and directories by their names, as in the rows.
sub recorded {
    my ($petrel, $text) = @_;
    $text =~ s/:$ports{$_}\b/:$_/g for keys %ports;
    return $text =~ s/\Q$petrel->{dir}\E/HERE/gr =~ s/\Q$taken->{dir}\E/OTHER/gr =~ s/\Q$dir\E/DIR/gr;
}
sub with {
    my %settings = @_;
    for (values %settings) { s/:(SMARTHOST|TAKEN|NOBODY|TLS)\b/:$ports{$1}/g; s/\bOTHER\b/$taken->{dir}/g; s/\bDIR\b/$dir/g }
    return Petrel->new(%settings);
}

# --- It does not start: settings, exit code, its one line

my $CONF = 'HERE/petrel.conf';
for (
    ['an unknown setting', { relai => 'smtp://a.example' }, 78, "$CONF:3: relai: unknown setting; did you mean 'relay'?"],
    ['a name of Postfix', { relayhost => 'smtp.example.org' }, 78, "$CONF:3: relayhost: without brackets Postfix looks up MX records; write relay = HOST:PORT to connect to HOST itself, or relayhost = [HOST]:PORT"],
    ['a listener without its address', { listen => '25' }, 78, "$CONF:2: listen: '25': not an address: write 0.0.0.0:25, [::]:25"],
    ['an open relay', { relay_from => '0.0.0.0/0' }, 78, "$CONF:3: relay_from: '0.0.0.0/0': would make this host an open relay (allow_open_relay = yes permits it)"],
    ['a login without a password', { relay => 'submission://joe@smtp.example.org' }, 78, "$CONF:3: relay: 'submission://joe\@smtp.example.org': no password for the user joe at smtp.example.org; put a line 'smtp.example.org joe PASSWORD' into the file that auth_passwords names, or an account into oauth, or set relay_password or relay_password_file"],
    ['a password that is not there', { relay => 'submission://joe@smtp.example.org', relay_password_file => 'DIR/none' }, 78, "$CONF:4: relay_password_file: cannot read 'DIR/none': No such file or directory"],
    ['a key of DKIM that is not there', { dkim_keys => 'example.org s1 DIR/none.pem' }, 78, "$CONF:1: dkim_keys: cannot read 'DIR/none.pem': No such file or directory"],
    ['authorities that are not there', { tls_ca => 'DIR/none.pem' }, 78, 'petrel: tls_ca: cannot read DIR/none.pem: No such file or directory'],
    ['a user that is not there', { user => 'no-such-user' }, 78, "$CONF:4: user: no such user: 'no-such-user'"],
    ['a spool that cannot be made', { spool => '/proc/none/spool' }, 73, 'petrel: spool /proc/none/spool: cannot make or open the directory: No such file or directory (make it writable for this user, or set `spool` to a directory that is writable)'],
    ['a port that is taken', { listen => '127.0.0.1:TAKEN' }, 69, 'petrel: cannot listen on 127.0.0.1:TAKEN: Address already in use (`ss -ltnp` shows which program listens there)'],
    ['a spool that is taken', { spool => 'OTHER/spool' }, 75, 'petrel: spool OTHER/spool: another petrel runs on it (it holds lock/daemon); stop that one, or set `spool` to another directory'],
) {
    my ($title, $settings, $wanted, $line) = @$_;
    my $petrel = with(%$settings);
    my ($code, $said) = $petrel->run('run');
    is $code, $wanted, "$title: exit code $wanted";
    is recorded($petrel, $said) =~ s/^\S+ main: warning: .*\n//gmr, "$line\n", '  and its line';
}
my ($code, $said) = $taken->run('run');
is $code, 75, 'a second start: exit code 75';
is recorded($taken, $said), "petrel: spool HERE/spool: another petrel runs on it (it holds lock/daemon); stop that one, or set `spool` to another directory\n", '  and its line';

# --- It starts, and mail waits: settings, what the smarthost does; what delivery says, and the finding with its remedy, which
# status shows, and the log in one line

my $refuses = 'the smarthost 127.0.0.1[127.0.0.1] refuses our user joe: 535 5.7.8 bad password; check relay_password';
my $owned = 'host 127.0.0.1[127.0.0.1] said: 553 5.7.1 sender not owned by this account (in reply to MAIL FROM command)';
my $no_tls = 'TLS is demanded by the route (tls=verify) but host 127.0.0.1[127.0.0.1] failed in the TLS handshake: the peer does not speak TLS';
my $untrusted = 'TLS is demanded by the route (tls=verify) but host 127.0.0.1[127.0.0.1] failed in the TLS handshake: unknown issuer O=Petrel tests, CN=Good CA';
my $unnamed = 'cannot look up smtp.example.org: the name server 127.0.0.1:NOBODY cannot be reached for the Address of smtp.example.org';
my $down = 'Apply the remedy that the reason names; if it names none, check the host, its port and the network between. Mail waits until it answers.';
my @login = (relay_password => 'x');
for (
    ['a wrong password, or user', { relay => 'smtp://joe@127.0.0.1:SMARTHOST', @login }, 'login', "deferred ($refuses)", 'login_refused', '127.0.0.1:SMARTHOST', "127.0.0.1:SMARTHOST refuses the login: $refuses", 'Correct the user or the password of this smarthost, then `petrel reload`; `petrel doctor` tries it.'],
    ['a sender of others', { relay => 'smtp://joe@127.0.0.1:SMARTHOST', @login }, 'sender', "deferred ($owned)", 'sender_refused', '127.0.0.1:SMARTHOST', "127.0.0.1:SMARTHOST refuses the sender: $owned", 'Allow this sender at the smarthost, or set `rewrite` to one that may send there.'],
    ['the same without a login', { relay => 'smtp://127.0.0.1:SMARTHOST' }, 'sender', "bounced ($owned)", 'reports_lost', '127.0.0.1', "notifications of failed mail are lost, so nobody learns of it: $owned", 'If it refuses MAIL FROM:<>, set `bounce_sender` to an address that may send there; else follow its reply.'],
    ['TLS where there is none', { relay => 'smtps://joe@127.0.0.1:SMARTHOST', @login }, 'good', "deferred ($no_tls)", 'upstream_down', '127.0.0.1:SMARTHOST', "127.0.0.1:SMARTHOST does not take our mail: $no_tls", $down],
    $sink ? ['an authority that is not trusted', { relay => 'smtps://joe@127.0.0.1:TLS', @login, tls_ca => 'DIR/other-ca.pem' }, 'good', "deferred ($untrusted)", 'upstream_down', '127.0.0.1:TLS', "127.0.0.1:TLS does not take our mail: $untrusted", $down] : (),
    ['a name server that is not there', { relay => 'smtp://smtp.example.org', dns_servers => '127.0.0.1:NOBODY' }, 'good', "deferred ($unnamed)", 'name_servers', '', '1 of 1 name servers does not answer: 127.0.0.1:NOBODY', 'Correct /etc/resolv.conf, which is then read again, or set `dns_servers`; restart if the sandbox does not let it be read.'],
) {
    my ($title, $settings, $mode, $status, $finding, $subject, $text, $remedy) = @$_;
    $smarthost->mode($mode);
    my $petrel = with(%$settings)->start;
    like $petrel->send_mail('a@b.example', 'you@fine.example', "Subject: x\r\n\r\nx\r\n"), qr/^250 /, "$title: it takes mail";
    ok $petrel->wait_log(qr/ status=/), '  and tries';
    my ($trouble) = Petrel::wait_for(sub { $petrel->run('status'); ($petrel->log =~ /(trouble=$finding\b.*)/)[0] });
    my ($result) = recorded($petrel, $petrel->log) =~ / to=<you\@fine\.example>.* status=(.*)/;
    is $result, $status, '  the log of the delivery';
    is recorded($petrel, $trouble // ''), "trouble=$finding" . ($subject && ", subject=$subject") . " ($text) ($remedy)", '  the log of the finding';
    my ($code, $said) = $petrel->run('status');
    is $code, 0, '  status answers';
    my $shown = "$finding" . ($subject && " $subject") . ": $text\n" . ' ' x 11 . "$remedy\n";
    like recorded($petrel, $said), qr/^(?:error|warning) +\Q$shown\E/m, '  and shows it with its remedy';
    is $petrel->stop, 0, '  it stops';
}

# --- Only warned of

{
    my ($code, $said) = with(relay => 'smtps://smtp.example.org:587')->run('check');
    is $code, 0, 'TLS from the first byte at port 587: check finds no error';
    like $said, qr/warning: smtp\.example\.org:587: port 587 begins without TLS: write submission:\/\/$/m, '  but says what to write';
    ($code, $said) = Petrel::command('', $Petrel::binary, '-c', "$dir/new.conf", qw(init --print --yes --hostname vps.example.org --relay smtp.provider.example));
    is $code, 0, 'a smarthost without a login: init writes it';
    like $said, qr/^petrel init: warning: nobody logs in at the smarthost, and most want a login; give the user, --relay-user USER, unless yours knows this host by its address$/m, '  and says what most want';
}

is $taken->stop, 0, 'the other one was not disturbed';
$sink->stop if $sink;
done_testing;
