#!/usr/bin/perl
# Certificates of clients. Out: a Postfix that takes mail from known certificates alone, renewal, and files that are broken.
# In: a Postfix and openssl as clients with certificates that are known, below an authority, expired, or nobody's.
use lib 't/e2e';
use E2E;
use Peer;
use Client;
use IPC::Open2;

plan skip_all => 'no openssl' unless Petrel::have('openssl');
if (my $why = Peer::missing('postfix')) { plan skip_all => $why }

my $dir = tempdir('certs-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;

# pair(NAME, DAYS, [EXTENSION...]): NAME.pem and NAME.key, self-signed.
sub pair {
    my ($name, @more) = @_;
    system('openssl', 'req', '-x509', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', "/CN=$name.test", '-days', 3650,
        '-addext', "subjectAltName=DNS:$name.test", '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem", @more) == 0 or die 'no openssl';
    chmod 0600, "$dir/$name.key";
    return;
}
open my $quiet, '>', "$dir/openssl" or die;
open my $stderr, '>&', \*STDERR or die;
open STDERR, '>&', $quiet or die;
pair($_) for qw(one two unknown server);
open STDERR, '>&', $stderr or die;

sub fingerprint {
    my $name = shift;
    my ($print) = qx(openssl x509 -in '$dir/$name.pem' -noout -fingerprint -sha256) =~ /=(\S+)/ or die;
    return $print;
}

my %demanding = (smtpd_tls_security_level => 'encrypt', smtpd_tls_req_ccert => 'yes', smtpd_tls_cert_file => '/etc/postfix/server.pem',
    smtpd_tls_key_file => '/etc/postfix/server.key', smtpd_tls_fingerprint_digest => 'sha256', smtpd_tls_loglevel => '1',
    smtpd_tls_CAfile => '/etc/postfix/authorities', smtpd_tls_mandatory_protocols => '>=TLSv1.2', smtpd_tls_received_header => 'yes',
    smtpd_relay_restrictions => 'permit_tls_clientcerts, reject', smtpd_recipient_restrictions => 'permit_tls_clientcerts, reject',
);
my $known = join ', ', map { "{ " . fingerprint($_) . " = $_ }" } qw(one two);
$demanding{relay_clientcerts} = "inline:{ $known }";
my %files = (files => { 'server.pem' => "$dir/server.pem", 'server.key' => "$dir/server.key", authorities => do {
    Petrel::spit("$dir/authorities", join '', map { Petrel::slurp("$dir/$_.pem") } qw(one two unknown)) } });
my $postfix = Peer::postfix(undef, %demanding, %files, listeners => { old => { %demanding, smtpd_tls_mandatory_protocols => '>=TLSv1.2, <=TLSv1.2' } });
sub letter { return "Subject: s\n\nb\n" }
my $live = "$dir/live";
system('cp', "$dir/one.pem", "$live.pem") == 0 && system('cp', '-p', "$dir/one.key", "$live.key") == 0 or die;
my $to = "smtp://127.0.0.1:$postfix->{port}";
my %quick = (minimal_backoff_time => '1h', maximal_backoff_time => '2h', smtp_connection_cache_time_limit => '0s');
my $petrel = Petrel->new(%quick, routes => join "\n",
    "new.test $to?cert=$live.pem&key=$live.key",
    "two.test $to?cert=$dir/two.pem&key=$dir/two.key",
    "old.test smtp://127.0.0.1:$postfix->{ports}{old}?cert=$live.pem&key=$live.key",
    "unknown.test $to?cert=$dir/unknown.pem&key=$dir/unknown.key",
    "none.test $to?tls=encrypt")->start;

sub sent {
    my ($domain) = @_;
    my ($id) = $petrel->send_mail('a@b.test', "x\@$domain", letter()) =~ /queued as (\S+)/ or die;
    return $id;
}

for my $domain (qw(new.test two.test old.test)) {
    my $id = sent($domain);
    ok $petrel->wait_log(qr/$id: to=<x\@\Q$domain\E>.*status=sent/), "$domain: sent";
}
my $id = sent('new.test');
ok $petrel->wait_log(qr/$id: .*status=sent/), 'again';
# On the same port, within the life of sessions of TLS to it.
$id = sent('unknown.test');
ok $petrel->wait_log(qr/$id: .*status=(?:bounced|failed).*(?:Access denied|rejected)/i), 'an unknown certificate is refused by Postfix';
$id = sent('none.test');
ok $petrel->wait_log(qr/$id: .*status=deferred/), 'without one the handshake fails, and mail waits';

# --- A reload, and broken files

sub take {
    my $name = shift;
    system('cp', "$dir/$name.$_", "$live.$_") == 0 or die for qw(pem key);
    kill 'HUP', $petrel->{pid};
    return;
}
take('unknown');
ok $petrel->wait_log(qr/settings reloaded/), 'other files, and a reload';
$id = sent('old.test');
ok $petrel->wait_log(qr/$id: .*status=(?:bounced|failed)/), 'the new one counts';
take('one');
ok Petrel::wait_for(sub { 2 == (() = $petrel->log =~ /settings reloaded/g) }), 'and back';
Petrel::spit("$live.pem", 'broken');
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/reload refused: routes: cert=\Q$live.pem: no certificate in $live.pem; the old/), 'a broken one is refused';
$id = sent('old.test');
ok $petrel->wait_log(qr/$id: .*status=sent/), 'and the old one stays';
chmod 0644, "$dir/two.key";
system('cp', "$dir/one.pem", "$live.pem") == 0 or die;
like +($petrel->run('check'))[1], qr/key= of a route: \Q$dir\E\/two\.key can be read by all users: chmod 600/, 'a key that all can read';
is $petrel->stop, 0, 'it ends well';

my @wrong = (
    ["?cert=$dir/missing.pem", qr{routes: cert=$dir/missing\.pem: cannot read $dir/missing\.pem: No such file}],
    ["?cert=$dir/one.pem&key=$dir/two.key", qr{cert=$dir/one\.pem: the key in $dir/two\.key is not that of the certificate in}],
    ["?cert=$dir/one.pem", qr{cert=$dir/one\.pem: $dir/one\.pem: has no private key}],
    ["?cert=$dir/one.key", qr{cert=$dir/one\.key: no certificate in}],
    ['?cert=one.pem', qr{cert=one\.pem: use the absolute path of a PEM file}],
    ["?key=$dir/one.key", qr{key= needs cert=}],
    ["?cert=$dir/one.pem&tls=none", qr{cert= needs TLS, and tls=none forbids it}],
);
for my $wrong (@wrong) {
    my ($options, $line) = @$wrong;
    my $bad = Petrel->new(routes => "x.test $to$options");
    my ($code, $out) = $bad->run('check');
    is $code, 78, "refused: $options";
    like $out, $line, 'in a line that says why';
    is scalar(my @lines = $out =~ /\n/g), 1, 'one line' or diag $out;
}
$postfix->stop;

# --- In: clients that present one

# below(NAME, FROM, UNTIL, USAGE): NAME.pem and NAME.key below the authority.
sub below {
    my ($name, $from, $until, $usage) = @_;
    my $quiet = ">>'$dir/openssl' 2>&1";
    Petrel::spit("$dir/$name.cnf", "[ca]\ndefault_ca=one\n[one]\ndatabase=$dir/$name.index\nrand_serial=yes\nnew_certs_dir=$dir\ndefault_md=sha256\npolicy=any\n"
        . "[any]\ncommonName=optional\n[x]\nbasicConstraints=CA:FALSE\nextendedKeyUsage=$usage\nsubjectAltName=DNS:$name.corp.test\n");
    Petrel::spit("$dir/$name.index", '');
    system("cd '$dir' && openssl ecparam -name prime256v1 -genkey -noout -out $name.key && openssl req -new -key $name.key -subj /CN=$name -out $name.csr $quiet && "
        . "openssl ca -batch -config $name.cnf -cert authority.pem -keyfile authority.key -in $name.csr -out $name.pem -notext -extensions x -startdate $from -enddate $until $quiet") == 0 or die;
    return;
}
open STDERR, '>&', $quiet or die;
pair('authority', '-addext', 'basicConstraints=critical,CA:TRUE');
pair('lapsed');
open STDERR, '>&', $stderr or die;
below('inside', '20200101000000Z', '20490101000000Z', 'clientAuth');
below('other', '20200101000000Z', '20490101000000Z', 'clientAuth');
below('expired', '20200101000000Z', '20210101000000Z', 'clientAuth');
below('early', '20480101000000Z', '20490101000000Z', 'clientAuth');
below('usage', '20200101000000Z', '20490101000000Z', 'serverAuth');

my $table = Petrel::spit("$dir/table", "# who may relay\n" . fingerprint('one') . " printer\n\nca:$dir/authority.pem inside.corp.test expired.corp.test\n"
    . "ca:$dir/authority.pem EARLY.corp.test usage.corp.test\n");
my $users = Petrel::spit("$dir/users", "joe:{PLAIN}secret\n");
my $tls = Petrel::free_port();
my $server = Petrel->new(tls_certificate => "$dir/server.pem", tls_key => "$dir/server.key", relay_from => '192.0.2.0/24', 
    relay_client_certificates => $table, auth_users => $users, sender_login => "joe joe\@b.test\n    inside.corp.test inside\@b.test\n    printer *");
my $listen = "127.0.0.1:$server->{port}";
my $mail = "$server->{dir}/mail";
mkdir $mail or die;
$server->configure(routes => "far.test maildir:$mail/%u?create=all\n    * discard", listen => "$listen, 127.0.0.1:$tls?tls&auth=required");
$server->start;

# The replies to lines by openssl's client.
sub dialogue {
    my ($certificate, $version, $port, @lines) = @_;
    my @with = $certificate ? ('-cert', "$dir/$certificate.pem", '-key', "$dir/$certificate.key") : ();
    my @start = $port == $tls ? () : (qw(-starttls smtp));
    my ($code, $out) = Petrel::command(join('', map { "$_\r\n" } @lines, 'QUIT'), 'timeout', 20, 'openssl', 's_client', '-quiet', '-ign_eof', @start, "-$version", @with, '-connect', "127.0.0.1:$port");
    return $out;
}
my %open;

# A command in an open session, and the last line of its reply.
sub say_to {
    my ($name, $line) = @_;
    my ($in, $out) = @{ $open{$name} }{qw(in out)};
    print $in "$line\r\n";
    $in->flush;
    while (defined(my $reply = <$out>)) { return $reply if $reply =~ /^\d{3} \d\.\d\.\d/ } # not the lines of EHLO
    return 'closed';
}
my @mail = ('EHLO c.test', 'MAIL FROM:<a@b.test>', 'RCPT TO:<x@far.test>');
my @versions = $server->log =~ /never/ ? () : grep { $_ eq 'tls1_2' || `./petrel version` =~ /mbedTLS 3/ } qw(tls1_2 tls1_3);
for my $version (@versions) {
    like dialogue('one', $version, $server->{port}, @mail), qr/^250 2\.1\.5/m, "$version: a fingerprint";
    for my $no (qw(two other expired early usage)) {
        my $out = dialogue($no, $version, $server->{port}, @mail);
        like $out, qr/^250 2\.1\.0/m, "$version, $no: the handshake does not fail";
        like $out, qr/^55\d 5\.7\.\d.*relay/im, "$version, $no: untrusted";
    }
    like dialogue('', $version, $server->{port}, @mail), qr/^55\d 5\.7\.\d.*relay/im, "$version: none";
    like dialogue('inside', $version, $server->{port}, 'EHLO c.test', 'MAIL FROM:<inside@b.test>', 'RCPT TO:<x@far.test>'), qr/^250 2\.1\.5/m, "$version: a name below an authority";
    like dialogue('inside', $version, $server->{port}, @mail), qr/^553 5\.7\.1.*not owned/m, "$version: with the senders of that name";
    like dialogue('one', $version, $tls, @mail), qr/^250 2\.1\.5/m, "$version: it is a login where one is required";
    like dialogue('two', $version, $tls, @mail), qr/^530/m, "$version: where logins are required an unknown certificate is none";
}
my $auth = 'AUTH PLAIN AGpvZQBzZWNyZXQ=';
like dialogue('inside', 'tls1_2', $server->{port}, 'EHLO c.test', $auth, 'MAIL FROM:<joe@b.test>', 'RCPT TO:<x@far.test>'), qr/^235.*^250 2\.1\.5/ms, 'AUTH replaces the name';

# A Postfix that hands on by its certificate.
my $sender = Peer::postfix($server->{port}, smtp_tls_security_level => 'encrypt', smtp_tls_cert_file => '/etc/postfix/one.pem', smtp_tls_key_file => '/etc/postfix/one.key',
    files => { 'one.pem' => "$dir/one.pem", 'one.key' => "$dir/one.key" });
$server->configure(sender_login => '');
kill 'HUP', $server->{pid};
ok $server->wait_log(qr/settings reloaded/), 'no senders';
my $letter = Client->greeted($sender->{port});
like $letter->send(from => 'a@b.test', to => 'y@far.test', data => "Subject: s\r\n\r\nb\r\n"), qr/^250/, 'mail for Postfix';
ok $server->wait_log(qr/sasl_method=EXTERNAL, sasl_username=printer/), 'the name is in the log';
ok Petrel::wait_for(sub { glob "$mail/y/new/*" }), 'it arrives';
my ($file) = glob "$mail/y/new/*";
like Petrel::slurp($file), qr/^Received: from postfix\.test.*with ESMTPS\s/ms, 'Received has no login';

# A reload without the line ends the rights of sessions that have begun, but not those of a login.
open STDERR, '>&', $quiet or die;
for (['one'], ['inside', $auth]) {
    my ($name, @login) = @$_;
    my $pid = open2(my $out, my $in, 'timeout', 60, 'openssl', 's_client', '-quiet', '-ign_eof', '-starttls', 'smtp', '-cert', "$dir/$name.pem", '-key', "$dir/$name.key", '-connect', $listen);
    $open{$name} = { pid => $pid, out => $out, in => $in };
    say_to($name, "EHLO c.test\r\nNOOP");
    like say_to($name, $_), qr/^235/, 'a login' for @login;
    like say_to($name, 'MAIL FROM:<a@b.test>'), qr/^250/, "$name: a session";
    like say_to($name, 'RCPT TO:<x@far.test>'), qr/^250/, 'may relay';
    like say_to($name, 'RSET'), qr/^250/, 'and waits';
}
open STDERR, '>&', $stderr or die;
Petrel::spit($table, "ca:$dir/authority.pem other.corp.test\n");
kill 'HUP', $server->{pid};
ok Petrel::wait_for(sub { 2 == (() = $server->log =~ /settings reloaded/g) }), 'the line is removed';
like dialogue('one', 'tls1_2', $server->{port}, @mail), qr/^55\d 5\.7\.\d.*relay/im, 'and with it the rights';
for (['one', qr/^55\d 5\.7\.\d.*relay/i, 'its session has no rights'], ['inside', qr/^250/, 'the login has them']) {
    my ($name, $reply, $what) = @$_;
    say_to($name, 'MAIL FROM:<a@b.test>');
    like say_to($name, 'RCPT TO:<x@far.test>'), $reply, "$name: $what";
    say_to($name, 'QUIT');
    waitpid $open{$name}{pid}, 0;
}
is $server->stop, 0, 'it ends well';

my @bad = (
    ["abc name\n", qr{table:1: write a SHA-256 fingerprint and a name, or ca:FILE and names}],
    [fingerprint('one') . "\n", qr{table:1: not a valid name, of 1 to 128 bytes}],
    [fingerprint('one') . " a\n" . lc(fingerprint('one')) . " b\n", qr{table:2: is in a line above}],
    ["ca:$dir/missing a\n", qr{table:1: cannot read $dir/missing: No such file}],
    ["ca:x.pem a\n", qr{table:1: ca: needs the absolute path}],
    ["\n\nca:$dir/authority.pem\n", qr{table:3: no names follow: each certificate of this authority would do}],
);
for my $bad (@bad) {
    Petrel::spit($table, $bad->[0]);
    my ($code, $out) = $server->run('check');
    is $code, 78, 'refused';
    like $out, $bad->[1], 'with the line';
}
my ($code, $out) = Petrel->new(relay_client_certificates => $table)->run('check');
like $out, qr/relay_client_certificates: needs tls_certificate/, 'without a certificate of ours nobody presents one';
$sender->stop;
done_testing;
