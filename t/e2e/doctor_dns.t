#!/usr/bin/perl
# petrel doctor behind name servers that are slow, fail or lie: it ends in bounded time, and what could not be asked is not
# called missing. Behind one that validates a world that is all right has no finding at all.
use lib 't/e2e';
use E2E;
use Doctor;
use Liar;

plan skip_all => 'no nsd' unless Nsd->available;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $dir = tempdir('doctor-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $world = Doctor->new($dir);
system("openssl genrsa -out $dir/key.pem 2048 2>/dev/null") == 0 or die 'openssl';
chmod 0600, "$dir/key.pem";
my $public = join '', grep { !/-----/ } map { s/\n//r } qx(openssl pkey -in $dir/key.pem -pubout);
for my $domain (qw(right.test mail.example.org)) {
    $world->change("-$domain. TXT", "-$domain. MX", "$domain. MX 10 mail.example.org.", "$domain. TXT \"v=spf1 ip4:192.0.2.10 -all\"",
        "-_dmarc.$domain. TXT", "_dmarc.$domain. TXT \"v=DMARC1; p=none; rua=mailto:a\@x.test\"", "s1._domainkey.$domain. TXT " . join ' ', map { "\"$_\"" } "v=DKIM1; k=rsa; p=$public" =~ /(.{1,250})/g);
}
$world->serve;
my $liar = Liar->start($world->{nsd}{port}, "$dir/mode", 'honest');
sub petrel { my (%settings) = @_; return $world->petrel(dns_servers => "127.0.0.1:$liar->{port}", dkim_keys => "right.test s1 $dir/key.pem\n    mail.example.org s1 $dir/key.pem", root => 'ann@example.net', local_domains => 'localhost', dns_trust => 'yes', %settings) }
sub said { my ($checks, $code) = @_; return join "\n", map { "$_->{severity} $_->{code} $_->{subject}: $_->{text}" } grep { !$code || $_->{code} eq $code } @$checks }

# --- All right

$liar->says('validated');
my ($code, $checks) = $world->run(petrel());
is $code, 0, 'a configuration that is all right: exit code 0';
is_deeply [map { "$_->{severity} $_->{code} $_->{subject}: $_->{text}" } grep { $_->{severity} ne 'ok' && $_->{code} ne 'queue.health' } @$checks], [], '  and no finding but that no daemon runs';
cmp_ok scalar @$checks, '>=', 12, '  of a dozen checks';

# --- Name servers that fail: nothing is called missing.

# Checks that wait for a time-out, at the same time: each has a name server of its own.
sub judge_failure {
    my ($mode, $code, $checks) = @_;
    my $missing = qr/has no |does not resolve|no MX|no SPF|no name|the name has no|no such/;
    # c-ares 1.34 does not read them either.
    ok $code == 1 || $mode eq 'pointers' && $code == 0, "$mode: exit code" or diag said($checks);
    like said($checks, 'dns.resolver'), qr/^error dns\.resolver name servers: the name servers do not answer/m, '  the name servers are the error' unless $mode eq 'pointers';
    is_deeply [map { "$_->{code}: $_->{text}" } grep { $_->{severity} ne 'ok' && $_->{text} =~ $missing } @$checks], [], '  what could not be asked is not missing';
    like said($checks, $_), qr/^(?:error|warning) .*(?:cannot|no large receiver can) be looked up/m, "  $_ says so" for qw(net.port25 host.name spf.record dkim.key dmarc.record mx.record);
    like said($checks, 'dmarc.record'), qr/bulk senders: not known: SPF DKIM DMARC$/m, '  nor are the rules of bulk senders';
    is_deeply [map { $_->{code} } grep { $_->{severity} ne 'ok' && $_->{remedy} !~ /\w/ } @$checks], [], '  each finding has a remedy';
    return;
}
my %silent;
for my $mode (qw(silent wrong_id short garbage dead)) {
    my $port = $mode eq 'dead' ? Petrel::free_port() : Liar->start($world->{nsd}{port}, "$dir/$mode", $mode)->{port};
    my $conf = petrel(dns_servers => "127.0.0.1:$port")->conf;
    $silent{$mode} = fork // die "fork: $!";
    next if $silent{$mode};
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    open STDOUT, '>', "$dir/$mode.json" or POSIX::_exit(126);
    exec $Petrel::binary, '-c', $conf, 'doctor', '--json', 'right.test' or POSIX::_exit(127);
}
my $began = time;
for my $mode (qw(servfail refused truncated pointers)) {
    $liar->says($mode);
    judge_failure($mode, $world->run(petrel(), 'right.test'));
}
for my $mode (sort keys %silent) {
    waitpid $silent{$mode}, 0;
    judge_failure($mode, $? >> 8, decode_json(Petrel::slurp("$dir/$mode.json"))->{checks});
}
cmp_ok time - $began, '<', 120, 'it ends in bounded time';
$liar->says('loop');
($code, $checks) = $world->run(petrel(), 'right.test');
is $code, 1, 'aliases that lead to themselves: exit code 1';
unlike said($checks), qr/^ok (?:spf|dkim|dmarc|mx|host\.name)/m, '  nothing is right';

# --- Lies

$liar->says('nxdomain');
($code, $checks) = $world->run(petrel(), 'right.test');
is $code, 1, 'no name exists: exit code 1';
like said($checks, $_), qr/^(?:error|warning) \Q$_\E/m, "  $_ says so" for qw(host.name spf.record dkim.key dmarc.record mx.record);
$liar->says('wildcard');
($code, $checks) = $world->run(petrel(), 'right.test');
is $code, 1, 'every name exists: exit code 1';
like said($checks, $_), qr/^(?:error|warning) \Q$_\E/m, "  $_ is not deceived" for qw(spf.record dkim.key dmarc.record);

# --- Large answers

$liar->says('huge');
($code, $checks) = $world->run(petrel(), 'right.test');
like said($checks, 'spf.record'), qr/^(?:error|warning) spf\.record right\.test: /m, 'a TXT record of 64 KiB';
$liar->says('many');
($code, $checks) = $world->run(petrel(), 'right.test');
like said($checks, 'mx.record'), qr/^(?:error|warning) mx\.record right\.test: /m, '2,000 MX records';
like said($checks, 'spf.record'), qr/^(?:error|warning) spf\.record right\.test: /m, '2,000 TXT records';
$liar->says('honest');
($code, $checks) = $world->run(petrel(), 'right.test');
is $code, 0, 'honest again: exit code 0';
done_testing;
