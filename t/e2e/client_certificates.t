#!/usr/bin/perl
# Certificates of clients. Out: a Postfix that takes mail from known certificates alone, renewal, and files that are broken.
use lib 't/e2e';
use E2E;
use Peer;

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
done_testing;
