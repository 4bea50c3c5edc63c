#!/usr/bin/perl
# petrel doctor, this host: faults of its names, addresses, name servers and way out, of smarthosts, certificates and the
# daemon, one at a time. Each is found under the right code, says what to do, and ends by that.
use lib 't/e2e';
use E2E;
use Doctor;

plan skip_all => 'no nsd' unless Nsd->available;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $dir = tempdir('doctor-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $world = Doctor->new($dir);
$world->serve;
my @good = @{ $world->{lines} };
sub listing { my ($code, $checks) = @_; return map { "$_->{severity} $_->{code}: $_->{text}" } grep { !$code || $_->{code} eq $code } @$checks }

# --- In zones: the lines that differ, the code, and what its text says.

my @zone = (
    ['no address', 'host.name', qr/does not resolve/, '-mail.example.org. A', 'example.net. A 192.0.2.10'],
    ['another address', 'host.name', qr/other addresses/, '-mail.example.org. A', 'mail.example.org. A 192.0.2.77'],
    ['no PTR', 'host.ptr', qr/no name/, '-10.2.0.192.in-addr.arpa. PTR'],
    ['PTR to nowhere', 'host.ptr', qr/does not resolve back/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR nowhere.example.org.'],
    ['PTR to another host', 'host.ptr', qr/does not resolve back/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR mx.receiver.test.'],
    ['PTR that is generic', 'host.ptr', qr/any customer/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR 192-0-2-10.hoster.test.', '192-0-2-10.hoster.test. A 192.0.2.10'],
    ['PTR backwards', 'host.ptr', qr/any customer/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR 10-2-0-192.hoster.test.', '10-2-0-192.hoster.test. A 192.0.2.10'],
    ['PTR of a pool', 'host.ptr', qr/any customer/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR pool.hoster.test.', 'pool.hoster.test. A 192.0.2.10'],
    ['PTR with another name', 'host.ptr', qr/which EHLO says/, '-10.2.0.192.in-addr.arpa. PTR', '10.2.0.192.in-addr.arpa. PTR www.example.org.', 'www.example.org. A 192.0.2.10'],
);
# Each on a host of its own, so that one zone has them all: a name, an address, a receiver that sees it.
my @hosts;
for my $at (0 .. $#zone) {
    my ($name, $code, $words, @lines) = @{ $zone[$at] };
    my $number = 30 + $at;
    my $own = sub { return map { s/mail\.example\.org/h$at.example.org/gr =~ s/10\.2\.0\.192/$number.2.0.192/gr =~ s/192\.0\.2\.10\b/192.0.2.$number/gr =~ s/10-2-0-192/$number-2-0-192/gr =~ s/192-0-2-10/192-0-2-$number/gr } @_ };
    $world->change($own->('mail.example.org. A 192.0.2.10', '10.2.0.192.in-addr.arpa. PTR mail.example.org.'));
    $world->change($own->(@lines));
    push @hosts, {name => $name, code => $code, words => $words, petrel => [hostname => "h$at.example.org", smtp_port => Doctor::receiver("[192.0.2.$number]")]};
}
$world->serve;
for my $host (@hosts) {
    my ($exit, $checks) = $world->run($world->petrel(@{ $host->{petrel} }), 'example.org');
    my @found = Doctor::wrong($checks, $host->{code});
    is scalar @found, 1, "$host->{name}: $host->{code}" or diag explain [listing(undef, $checks)];
    like $found[0]{text}, $host->{words}, '  says what is wrong';
    is $exit, (grep { $_->{severity} eq 'error' } @$checks) ? 1 : 0, '  exit code';
    ok $world->paste($found[0]{remedy}), '  has a record' or diag $found[0]{remedy};
}
$world->serve;
for my $host (@hosts) {
    my ($exit, $checks) = $world->run($world->petrel(@{ $host->{petrel} }), 'example.org');
    is_deeply [map { $_->{text} } Doctor::wrong($checks, $host->{code})], [], "$host->{name}: its record ends it";
}
$world->{lines} = [@good];
$world->serve;

# --- In settings: what is set, the code, the text, and the setting that the remedy names.

my $closed = Petrel::free_port();
for my $row (
    ['one label', 'host.name', qr/not the full name/, qr/hostname/, hostname => 'mail'],
    ['localhost', 'host.name', qr/not the full name/, qr/hostname/, hostname => 'localhost.localdomain'],
    ['a name of the LAN', 'host.name', qr/not the full name/, qr/hostname/, hostname => 'mail.lan'],
    ['an address', 'host.name', qr/not the full name/, qr/hostname/, hostname => '192.0.2.10'],
    ['port 25 is closed', 'net.port25', qr/no large receiver answers/, qr/hoster.*smarthost/s, smtp_port => $closed],
    ['refused', 'net.port25', qr/554 5\.7\.1 go away \\x1b\[31m/, qr/hoster/, smtp_port => Doctor::receiver(undef)],
    ['trust without validation', 'dns.resolver', qr/dns_trust = yes/, qr/dns_trust = auto/, dns_trust => 'yes'],
) {
    my ($name, $code, $words, $remedy, @settings) = @$row;
    my ($exit, $checks) = $world->run($world->petrel(@settings), 'example.org');
    my @found = Doctor::wrong($checks, $code);
    is scalar @found, 1, "$name: $code" or diag explain [listing(undef, $checks)];
    like $found[0]{text}, $words, '  says what is wrong';
    like $found[0]{remedy}, $remedy, '  and what to set';
}
my $words = Doctor::receiver('Hello [IPv6:2001:db8::7], [192.0.2.10]');
my ($exit, $checks) = $world->run($world->petrel(smtp_port => $words), 'example.org');
like((listing('host.ptr', $checks))[0], qr/^error/, 'an IPv6 address without a name');
like((grep { $_->{code} eq 'host.ptr' && $_->{severity} eq 'error' } @$checks)[0]{remedy}, qr/^    7\.0\.0\.0\.(?:0\.){20}8\.b\.d\.0\.1\.0\.0\.2\.ip6\.arpa\. 3600 IN PTR mail\.example\.org\.$/m, '  and its record');
like((grep { $_->{code} eq 'spf.record' && $_->{severity} eq 'error' } @$checks)[0]{text} // '', qr/no SPF record/, 'the domain has no SPF record');

# --- Lists of spammers

$world->change('10.2.0.192.bl.spamcop.net. A 127.0.0.2', '10.2.0.192.zen.spamhaus.org. A 127.255.255.254');
$world->serve;
($exit, $checks) = $world->run($world->petrel, '--blocklists', 'example.org');
my %listed = map { ($_->{text} =~ /((?:zen|bl|psbl)\.\S+?)(?::| |$)/)[0] => $_ } grep { $_->{code} eq 'list.blocked' } @$checks;
is $listed{'bl.spamcop.net'}{severity}, 'error', 'on a list';
like $listed{'bl.spamcop.net'}{remedy}, qr/https:/, '  with its page';
is $listed{'zen.spamhaus.org'}{severity}, 'hint', 'a list that refuses the name server';
is $listed{'psbl.surriel.com'}{severity}, 'ok', 'not on a list';
($exit, $checks) = $world->run($world->petrel, 'example.org');
is_deeply [listing('list.blocked', $checks)], [], 'no list is asked without --blocklists';

# --- Smarthosts

my $mode = "$dir/mode";
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20, ReuseAddr => 1) or die;
my $port = $listener->sockport;
my $server = fork // die;
if ($server == 0) {
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    my @silent;
    while (my $s = $listener->accept) {
        my $how = Petrel::slurp($mode);
        next if $how eq 'down';
        $s->autoflush;
        if ($how eq 'silent') { push @silent, $s; next }
        if ($how eq 'mute') { print $s "220 smarthost.test\r\n"; push @silent, $s; next }
        print $s "220 smarthost.test\r\n";
        while (defined(my $line = <$s>)) {
            print $s $line =~ /^EHLO/ ? "250-smarthost.test\r\n250 AUTH PLAIN\r\n" : $line =~ /^AUTH/ ? ($how eq 'login' ? "535 5.7.8 bad \e[31mpassword\r\n" : "235 2.7.0 ok\r\n")
                : $line =~ /^MAIL FROM:<(.*?)>/ && $how eq 'sender' && $1 ne 'alerts@example.org' ? "553 5.7.1 $1 is not owned by this account\r\n" : "250 2.0.0 ok\r\n";
        }
    }
    POSIX::_exit(0);
}
push @Petrel::running, $server;
Petrel::spit("$dir/password", 'secret');
chmod 0600, "$dir/password";
my @relay = (relay => "smtp://alice\@127.0.0.1:$port", relay_password_file => "$dir/password");
for my $row (
    ['good', qr/^ok smarthost\.login: it accepts the login/, undef],
    ['login', qr/^error smarthost\.login: it refuses the login: .*535 5\.7\.8 bad .\[31mpassword/, qr/relay_password/],
    ['sender', qr/^error smarthost\.login: .*refuses our sender: .*root\@mail\.example\.org is not owned/, qr/rewrite/],
    ['down', qr/^error smarthost\.login: no mail can be handed to it/, qr/relay/],
) {
    Petrel::spit($mode, $row->[0]);
    ($exit, $checks) = $world->run($world->petrel(@relay));
    like join("\n", listing('smarthost.login', $checks)), $row->[1], "a smarthost, $row->[0]";
    like((Doctor::wrong($checks, 'smarthost.login'))[0]{remedy}, $row->[2], '  and what to do') if $row->[2];
    unlike join("\n", listing(undef, $checks)), qr/net\.port25/, '  port 25 does not matter then';
}
# One that accepts and says nothing, or nothing more: the others are examined meanwhile, and it ends when the time is over.
for my $how ('silent', 'mute') {
    Petrel::spit($mode, $how);
    ($exit, $checks) = $world->run($world->petrel(@relay));
    my ($found) = Doctor::wrong($checks, 'smarthost.login');
    is $exit, 1, "a smarthost that is $how";
    like $found->{text} // '', qr/(?:no (?:answer|greeting|reply)|time|silent)/, '  is an error that says so' or diag explain $checks;
    like $found->{remedy} // '', qr/firewall/, '  and what to look at';
    ok scalar(grep { $_->{code} eq 'dns.resolver' } @$checks), '  the other checks are there' or diag explain [listing(undef, $checks)];
}
# Without a user nothing is tried, which is said, and is wrong only where a login is known to be needed.
for my $row (
    ["smtp://127.0.0.1:$port", qr/^ok smarthost\.login: not tried: no user is set for it/, undef],
    ['submission://smtp.gmail.com', qr/^warning smarthost\.login: not tried: no user is set for it, and Gmail/, qr{submission://USER\@smtp\.gmail\.com}],
) {
    Petrel::spit($mode, 'good');
    ($exit, $checks) = $world->run($world->petrel(relay => $row->[0]));
    like join("\n", listing('smarthost.login', $checks)), $row->[1], "no user: $row->[0]";
    like((Doctor::wrong($checks, 'smarthost.login'))[0]{remedy}, $row->[2], '  and what to set') if $row->[2];
}
# Nobody reads the mail for root: in local_domains it is refused.
($exit, $checks) = $world->run($world->petrel(relay => '', local_domains => 'example.org'));
like join("\n", listing('mx.record', $checks)), qr/^warning mx\.record: nobody gets mail for root and postmaster: set root$/m, 'nobody has the mail for root';
like join("\n", map { $_->{remedy} // '' } grep { $_->{code} eq 'mx.record' } @$checks), qr/^    root = you\@example\.org$/m, '  and what to set';
($exit, $checks) = $world->run($world->petrel(relay => '', local_domains => 'example.org', root => 'ann@example.net'));
unlike join("\n", listing('mx.record', $checks)), qr/nobody/, 'with root somebody has';
Petrel::spit($mode, 'sender');
($exit, $checks) = $world->run($world->petrel(@relay, rewrite => 'local alerts@example.org'));
like join("\n", listing('smarthost.login', $checks)), qr/^ok/, 'with rewrite the sender is accepted';
ok((grep { $_->{subject} eq 'example.org' } @$checks), 'and the domain of rewrite is examined');

# --- OAuth2

Petrel::spit("$dir/client", 'secret-of-the-client');
chmod 0600, "$dir/client";
($exit, $checks) = $world->run($world->petrel(relay => 'submission://joe@smtp.office365.com', oauth => "smtp.office365.com joe microsoft tenant=example.org client=ID secret=\@$dir/client"));
like join("\n", listing('oauth.token', $checks)), qr/^error oauth\.token: nobody has logged in/, 'an account without a token';
like((Doctor::wrong($checks, 'oauth.token'))[0]{remedy}, qr/^    petrel oauth login smtp\.office365\.com joe$/m, '  and the command');

# --- Certificates

system('sh', 't/support/tls_certificates.sh', "$dir/c") == 0 or die;
my $here = "$dir/c";
for my $row (
    ['good', 'mail.example.net', qr/^ok tls\.certificate: for mail\.example\.net until/],
    ['good', 'mail.example.org', qr/^warning tls\.certificate: it is for mail\.example\.net, not for hostname/, qr/made for mail\.example\.org/],
    ['expired', 'mail.example.net', qr/^error tls\.certificate: it has expired/, qr/Renew/],
    ['future', 'mail.example.net', qr/^error tls\.certificate: it is not valid before/, qr/clock/],
    ['self', 'mail.example.net', qr/^hint tls\.certificate: no authority/, qr/authority/],
    ['stranger', 'mail.example.net', qr/^warning tls\.certificate: its chain/, qr/fullchain/],
) {
    my ($what, $host, $text, $remedy) = @$row;
    ($exit, $checks) = $world->run($world->petrel(hostname => $host, tls_certificate => "$here/$what.pem", tls_key => "$here/$what.key", tls_ca => "$here/ca.pem"));
    like join("\n", listing('tls.certificate', $checks)), $text, "a certificate, $what for $host";
    like((grep { $_->{code} eq 'tls.certificate' } @$checks)[0]{remedy}, $remedy, '  and what to do') if $remedy;
}

# --- The running daemon

my $daemon = $world->petrel(hostname => 'mail')->start;
($exit, $checks) = $world->run($daemon);
like join("\n", listing('queue.health', $checks)), qr/hostname_odd/, 'a finding of the running daemon';
like((grep { $_->{code} eq 'queue.health' && $_->{text} =~ /hostname_odd/ } @$checks)[0]{remedy}, qr/\w/, '  with its remedy');
$daemon->stop;
($exit, $checks) = $world->run($daemon);
like join("\n", listing('queue.health', $checks)), qr/^hint queue\.health: no daemon runs: /, 'without a daemon';

# --- A user who may not read secrets

SKIP: {
    skip 'needs root', 2 if $> != 0;
    chmod 0755, $dir;
    my $petrel = $world->petrel(@relay);
    chmod 0755, $petrel->{dir};
    my ($code, $said) = Petrel::command('', 'setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', $Petrel::binary, '-c', $petrel->conf, 'doctor', 'example.org');
    like $said, qr/keys and passwords cannot be read by this user/, 'another user: what cannot be checked is named';
    like $said, qr/^ok +mx\.record +example\.org/m, '  the rest is checked';
}
for my $bad (['--nonsense'], ['not-a-domain'], ['a b.test']) {
    my ($code, $said) = $world->petrel->run('doctor', @$bad);
    is $code, 64, "@$bad: exit code 64";
    like $said, qr/^usage: petrel doctor /, '  and usage';
}
done_testing;
