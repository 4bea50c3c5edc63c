#!/usr/bin/perl
# New certificates are taken up by themselves: openssl s_client sees them without a reload, sessions keep theirs, what is wrong with the files
# is a finding. `status` has the listeners and the certificates. The clock of the daemon is set by the test.
use lib 't/e2e';
use E2E;
use File::Copy qw(copy);
use IPC::Open2;
use POSIX qw(strftime);

plan skip_all => 'no openssl' unless Petrel::have('openssl');
my ($library) = glob('{/opt/petrel-test-faketime,}/usr/lib/*/faketime/libfaketime.so.1');
plan skip_all => 'no libfaketime' unless $library;
plan skip_all => 'a static binary has a clock of its own' if `file -L ./petrel 2>/dev/null` =~ /statically/;

my $scratch = tempdir('certificates-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($keys, $live) = ("$scratch/keys", "$scratch/live");
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
# As Kubernetes has them: names that lead through ..data to a directory.
mkdir $_ or die for $live, "$live/..1", "$live/..2";
chmod 0755, $scratch, $keys, $live, "$live/..1", "$live/..2";
symlink '..1', "$live/..data" or die;
for (qw(crt key)) { symlink "..data/tls.$_", "$live/tls.$_" or die }
sub put {
    my ($from, $to) = @_;
    copy("$keys/$from", "$to.new") or die "$from: $!";
    chmod 0644, "$to.new";
    rename "$to.new", $to or die;
    return;
}
sub put_pair { my ($name, $folder) = @_; put("$name.pem", "$live/$folder/tls.crt"); put("$name.key", "$live/$folder/tls.key"); return }
put_pair('good', '..1');

# As another user, to whom files can be unreadable.
my %port = map { $_ => Petrel::free_port() } qw(tls http);
my $petrel = Petrel->new(sandbox => 'no', routes => '* hold', tls_certificate => "$live/tls.crt", tls_key => "$live/tls.key", $> == 0 ? (user => 54321) : ());
chmod 0755, $petrel->{dir};
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$port{tls}?tls, unix:$petrel->{dir}/lmtp?lmtp", http => "127.0.0.1:$port{http}?tls");
sub set_clock { my $offset = shift; Petrel::spit("$petrel->{dir}/clock.new", "$offset\n"); rename "$petrel->{dir}/clock.new", "$petrel->{dir}/clock"; return }
set_clock('+0');
{
    local %ENV = (%ENV, LD_PRELOAD => $library, FAKETIME_TIMESTAMP_FILE => "$petrel->{dir}/clock", FAKETIME_NO_CACHE => 1, NO_FAKE_STAT => 1);
    $petrel->start;
}
my $passed = 0;
sub status { my ($code, $text) = $petrel->run(qw(status --json)); return decode_json($text) }
# Time passes: a question wakes the daemon.
sub advance { my $seconds = shift; set_clock('+' . ($passed += $seconds)); status(); status(); return }
sub looked { advance(61); advance(6); return }

sub s_client {
    my (@to) = @_;
    my (undef, $said) = Petrel::command("QUIT\r\n", 'openssl', 's_client', '-CAfile', "$keys/ca.pem", '-nocommands', '-connect', @to);
    return $said =~ /^subject=(?:O ?= ?Petrel tests, )?CN ?= ?(.*)$/m ? $1 : '(none)';
}
sub shown { return join ' ', s_client("127.0.0.1:$petrel->{port}", '-starttls', 'smtp'), s_client("127.0.0.1:$port{tls}"), s_client("127.0.0.1:$port{http}") }
sub everywhere { my $name = shift; return join ' ', ($name) x 3 }
sub trouble { my ($one) = grep { $_->{code} eq 'certificate_mismatch' } @{ status()->{findings} }; return $one ? $one->{text} : '' }

# --- status

my $status = status();
my ($smtp, $tls, $lmtp, $http, $control) = @{ $status->{listeners} };
is_deeply [@$smtp{qw(address kind tls)}], ["127.0.0.1:$petrel->{port}", 'smtp', 'starttls'], 'SMTP';
is_deeply [@$tls{qw(address kind tls)}], ["127.0.0.1:$port{tls}", 'smtp', 'tls'], 'by TLS';
is_deeply [@$lmtp{qw(address kind tls)}], ["unix:$petrel->{dir}/lmtp", 'lmtp', 'starttls'], 'LMTP';
is_deeply [@$http{qw(address kind tls accepted)}], ["127.0.0.1:$port{http}", 'http', 'tls', 0], 'HTTP';
is $control->{kind}, 'control', 'the control socket';
cmp_ok $control->{accepted}, '>=', 1, 'by which this was asked';
my $client = Client->greeted($petrel->{port});
is status()->{listeners}[0]{sessions}, 1, 'a session';
cmp_ok status()->{listeners}[0]{accepted}, '>=', 2, 'and those before it';
$client->close;
ok Petrel::wait_for(sub { status()->{listeners}[0]{sessions} == 0 }), 'it has gone';
my ($certificate) = @{ $status->{certificates} };
is $certificate->{file}, "$live/tls.crt", 'a certificate: its file';
is_deeply $certificate->{names}, ['mail.example.net', 'mx.example.net', '127.0.0.1', '::1'], 'its names';
is strftime('%Y-%m-%d', gmtime $certificate->{not_after_ms} / 1000), '2049-01-01', 'its end';
cmp_ok abs($certificate->{days_left} - ($certificate->{not_after_ms} / 1000 - time) / 86400), '<', 1.5, 'in days';
ok $certificate->{valid}, 'valid now';
like +($petrel->run('status'))[1], qr/^certs      mail\.example\.net and 3 more: valid until 2049-01-01/m, 'for people';
like +($petrel->run('status'))[1], qr/^listening  127\.0\.0\.1:$petrel->{port} smtp, starttls; connections: /m, 'and who listens';

# --- New files

is shown(), everywhere('mail.example.net'), 'the certificate';
my $session = open2(my $heard, my $said, 'openssl', 's_client', '-quiet', '-CAfile', "$keys/ca.pem", '-connect', "127.0.0.1:$port{tls}");
like scalar <$heard>, qr/^220/, 'a session';
put_pair('exact', '..1');
advance(61);
is shown(), everywhere('mail.example.net'), 'seen, and not taken before the files rest';
advance(6);
is shown(), everywhere('exact'), 'new ones are taken, without a reload, for SMTP and HTTP';
ok $petrel->wait_log(qr/main: new certificate in use: one\.example\.org, valid until 2049-01-01 00:00:00Z/), 'the log says so';
unlike $petrel->log, qr/reloaded/, 'there was no reload';
is status()->{certificates}[0]{names}[0], 'one.example.org', 'status, too';
print $said "NOOP\r\nQUIT\r\n";
$said->flush;
like scalar <$heard>, qr/^250 /, 'a session goes on with the old one';
close $said;
waitpid $session, 0;

# The directory behind the link is another one.
put_pair('good', '..2');
symlink '..2', "$live/..new" or die;
rename "$live/..new", "$live/..data" or die;
looked();
is shown(), everywhere('mail.example.net'), 'a link that leads elsewhere';

# --- Errors

for (['the key before the certificate', 'tls.key', sub { put('exact.key', "$live/..2/tls.key") }, qr/key in .*tls\.key is not that of the certificate in .*tls\.crt/],
     ['half a certificate', 'tls.crt', sub { Petrel::spit("$live/..2/tls.crt", substr Petrel::slurp("$keys/exact.pem"), 0, 300) }, qr/tls\.crt: /],
     ['an expired one', 'tls.crt', sub { put_pair('expired', '..2') }, qr/tls\.crt: the certificate expired on 2021-02-03/],
     ['a deleted file', 'tls.crt', sub { unlink "$live/..2/tls.crt" }, qr/tls\.crt: No such file/],
     ['a key that the user cannot read', 'tls.key', sub { put_pair('exact', '..2'); chmod 0, "$live/..2/tls.key" }, qr/tls\.key: Permission denied/]) {
    my ($name, $file, $do, $why) = @$_;
    $do->();
    looked();
    ok Petrel::wait_for(sub { trouble() =~ $why }), "$name is a finding" or diag trouble();
    is s_client("127.0.0.1:$port{tls}"), 'mail.example.net', "$name: the old ones stay";
}
is Petrel::count($petrel->log, qr/trouble=certificate_mismatch/), 1, 'once within the hour';
chmod 0644, "$live/..2/tls.key";
looked();
is shown(), everywhere('exact'), 'readable: taken up';
ok $petrel->wait_log(qr/recovered=certificate_mismatch/), 'the finding ends';
is trouble(), '', 'it is over';
is $petrel->stop, 0, 'it stops';
done_testing;
