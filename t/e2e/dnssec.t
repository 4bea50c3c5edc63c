#!/usr/bin/perl
# Which answers count as validated (base/dns/): Unbound validates zones that NSD serves and ldnsutils signed.
use lib 't/e2e';
use E2E;
use Cwd qw(getcwd);
use Nsd;

plan skip_all => 'no nsd' unless Nsd->available;
plan skip_all => 'no unbound' unless Petrel::have('unbound');
plan skip_all => 'no ldnsutils' unless Petrel::have('ldns-signzone') && Petrel::have('ldns-keygen');

my $dir = tempdir('dnssec-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $resolve = "$Petrel::root/$Petrel::build/t/bench/resolve";
my $head = '@ 3600 IN SOA ns hostmaster 1 7200 3600 86400 300';
my $long = join ' ', map { '"' . $_ . 'x' x 200 . '"' } 1 .. 9;
my $data = <<"END";
@ IN NS ns
@ IN MX 10 mail
@ IN MX 20 alias
@ IN TXT "v=spf1 -all"
long IN TXT $long
ns IN A 127.0.0.1
mail IN A 192.0.2.25
mail IN AAAA 2001:db8::25
four IN A 192.0.2.4
alias IN CNAME mail
_25._tcp.mail IN TLSA 3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
_25._tcp.mail IN TLSA 2 0 1 ff23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
below IN NS ns
END
my $reverse = "\@ IN NS ns.signed.example.\n25 IN PTR mail.signed.example.\n";
my %zone = (
    'signed.example' => $data, 'bogus.example' => $data, 'plain.example' => $data, 'below.signed.example' => $data,
    '2.0.192.in-addr.arpa' => $reverse, '100.51.198.in-addr.arpa' => $reverse
);
my %signed = map { $_ => 1 } 'signed.example', 'bogus.example', '2.0.192.in-addr.arpa';

sub run_in {
    my ($where, @command) = @_;
    my $here = getcwd();
    chdir $where or die "$where: $!";
    open my $out, '-|', @command or die "$command[0]: $!";
    my $said = do { local $/; <$out> } // '';
    close $out or die "@command: $?";
    chdir $here or die "$here: $!";
    return $said;
}

my (%file, @anchors);
for my $name (sort keys %zone) {
    $file{$name} = Petrel::spit("$dir/$name", "\$ORIGIN $name.\n\$TTL 600\n$head\n$zone{$name}");
    next unless $signed{$name};
    my ($key) = run_in($dir, 'ldns-keygen', '-k', '-a', 'ECDSAP256SHA256', $name) =~ /(\S+)/;
    run_in($dir, 'ldns-signzone', '-o', $name, '-f', "$name.signed", $name, $key);
    $file{$name} = "$dir/$name.signed";
    push @anchors, "$dir/$key.key";
}
# Somebody between changes an address, but cannot sign it.
my $text = Petrel::slurp($file{'bogus.example'});
$text =~ s/^(\S+\s.*\sA\s+)192\.0\.2\.25$/${1}192.0.2.66/m or die 'nothing to falsify';
$text =~ s/TLSA\s+3 1 1 01/TLSA 3 1 1 99/ or die 'no TLSA to falsify';
Petrel::spit($file{'bogus.example'}, $text);

my $nsd = Nsd->start($dir, %file);
my ($port, $docker) = (Petrel::free_port(), '127.0.0.11');
Petrel::spit("$dir/unbound.conf", <<"END" . join '', map { "stub-zone:\n    name: $_\n    stub-addr: 127.0.0.1\@$nsd->{port}\n" } sort keys %zone);
server:
    interface: 127.0.0.1\@$port
    interface: $docker\@$port
    access-control: 127.0.0.0/8 allow
    username: ""
    chroot: ""
    directory: "$dir"
    pidfile: ""
    logfile: "$dir/unbound.log"
    use-syslog: no
    num-threads: 1
    do-not-query-localhost: no
    do-daemonize: no
    module-config: "validator iterator"
    root-hints: ""
    local-zone: 2.0.192.in-addr.arpa nodefault
    local-zone: 100.51.198.in-addr.arpa nodefault
@{[map { qq(    trust-anchor-file: "$_"\n) } @anchors]}
remote-control:
    control-enable: no
END
Petrel::spawn("$dir/unbound.out", Petrel::have('unbound'), '-d', '-c', "$dir/unbound.conf");
Petrel::wait_for(sub { Nsd::is_up($port) }) or BAIL_OUT(Petrel::slurp("$dir/unbound.out") . Petrel::slurp("$dir/unbound.log"));

# The lines that resolve prints: trust, status, records in order.
sub resolve {
    my ($trust, $type, $name, $server) = @_;
    open my $out, '-|', $resolve, ($server // '127.0.0.1') . ":$port", $trust, $type, $name or die "$resolve: $!";
    my ($trusted, $status, @records) = map { s/\n//r } <$out>;
    close $out;
    return ($trusted // '', $status // '', join '; ', sort @records);
}

my %records = (
    'mx DOMAIN' => '10 mail.DOMAIN; 20 alias.DOMAIN',
    'address mail.DOMAIN' => '192.0.2.25; 2001:db8::25',
    'address four.DOMAIN' => '192.0.2.4',
    'address alias.DOMAIN' => '192.0.2.25; 2001:db8::25',
    'txt DOMAIN' => 'v=spf1 -all',
    'txt long.DOMAIN' => join('', map { $_ . 'x' x 200 } 1 .. 9),
    'tlsa _25._tcp.mail.DOMAIN' => '2 0 1 ff23456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef; '
        . '3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'
);
for my $domain ('signed.example', 'plain.example', 'below.signed.example') {
    my $want = $domain eq 'signed.example' ? 'secure' : 'insecure';
    for (sort keys %records) {
        my ($question, $records) = map { s/DOMAIN/$domain/gr } $_, $records{$_};
        is_deeply [resolve('auto', split(' ', $question))], ['trusted', "found $want", $records], "$question is $want";
    }
    for my $type (qw(mx address txt tlsa)) {
        is((resolve('auto', $type, "ns.$domain"))[1], "no data $want", "$type: NO_DATA is $want") unless $type eq 'address';
        is((resolve('auto', $type, "nobody.$domain"))[1], "no name $want", "$type: NO_NAME is $want");
    }
}
is_deeply [resolve('auto', 'ptr', '192.0.2.25')], ['trusted', 'found secure', 'mail.signed.example'], 'PTR of a signed zone';
is((resolve('auto', 'ptr', '192.0.2.26'))[1], 'no name secure', '  and that there is none');
is_deeply [resolve('auto', 'ptr', '198.51.100.25')], ['trusted', 'found insecure', 'mail.signed.example'], 'PTR of another zone';

# A falsified answer does not count, with any trust; an honest one does.
for my $trust (qw(auto yes no)) {
    like join(' ', resolve($trust, 'tlsa', '_25._tcp.mail.bogus.example')), $trust eq 'no' ? qr/^untrusted no data insecure no TLSA record is asked for/
        : qr/^trusted try again insecure the name server \S+ answered SERVFAIL for the TLSA of /, "$trust: a false TLSA record";
    my (undef, $status, $records) = resolve($trust, 'address', 'mail.bogus.example');
    is $records, '2001:db8::25', "$trust: a false A record is not there";
    is((resolve($trust, 'txt', 'bogus.example'))[1], $trust eq 'no' ? 'found insecure' : 'found secure', "$trust: an intact one");
}

# Whom we trust. Docker's forwarder has this address.
for (['auto', '127.0.0.1', 'trusted'], ['yes', '127.0.0.1', 'trusted'], ['no', '127.0.0.1', 'untrusted'],
    ['auto', $docker, 'untrusted'], ['yes', $docker, 'trusted'], ['no', $docker, 'untrusted'],
    ['auto', "127.0.0.1:$port,$docker", 'untrusted']) {
    my ($trust, $server, $want) = @$_;
    my ($trusted, $status) = resolve($trust, 'mx', 'signed.example', $server);
    is "$trusted, $status", "$want, found " . ($want eq 'trusted' ? 'secure' : 'insecure'), "dns_trust = $trust, $server";
    my (undef, $tlsa, $why) = resolve($trust, 'tlsa', '_25._tcp.mail.signed.example', $server);
    is $tlsa, $want eq 'trusted' ? 'found secure' : 'no data insecure', '  TLSA';
}
done_testing;
