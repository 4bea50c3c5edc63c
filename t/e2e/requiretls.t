#!/usr/bin/perl
# REQUIRETLS (RFC 8689): a message that came with it goes only to hosts that DANE, MTA-STS or a route proves, and that have it, or
# comes back; with another Petrel as the next hop, over restarts. What a client may ask for, and what a notification has.
use lib 't/e2e';
use E2E;
use JSON::PP qw(decode_json);
use Nginx;
use Nsd;

plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no python3 or openssl' unless (my $python = Petrel::have('python3')) && Petrel::have('openssl');

my $dir = tempdir('requiretls-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';
my $ca = "$dir/certificates/ca.pem";

# Domain => [mode of the policy or undef, MX hosts, what becomes of mail]. Hosts are at loopback addresses, with one port.
my %address = (good => 1, old => 2, bare => 3, foreign => 1, dead => 9);
my $none = qr/dsn=5\.7\.10, status=(?:bounced|failed).*neither DANE nor MTA-STS proves the mail hosts of/;
my $lacks = qr/dsn=5\.7\.30, status=(?:bounced|failed).*does not offer REQUIRETLS, which the sender requires/;
my %rows = (
    'good' => ['enforce', ['good'], 'good'],
    'both' => ['enforce', ['old', 'good'], 'good'],
    'old' => ['enforce', ['old'], $lacks],
    'bare' => ['enforce', ['bare'], qr/dsn=5\.7\.10.*does not offer STARTTLS/],
    'named' => ['enforce', ['foreign'], qr/dsn=5\.7\.10.*certificate does not name foreign\.test/],
    'plain' => [undef, ['good'], $none],
    'testing' => ['testing', ['good'], $none],
    'other' => ['other', ['good'], qr/dsn=5\.7\.10.*MTA-STS of other\.example does not allow good\.test/],
    'dead' => ['enforce', ['old', 'dead'], qr/dsn=4\.\S+ status=deferred/],
);
Nginx::certify($dir, 'web', [map { "mta-sts.$_.example" } sort keys %rows]);
Nginx::certify($dir, 'mail', [map { "$_.test" } qw(good old bare next)]);
mkdir $_ for "$dir/www", "$dir/box", "$dir/box/x";
my %zone = ('test' => "next IN A 127.0.0.1\nnext IN MX 10 good.test.\n" . join('', map { "$_ IN A 127.0.0.$address{$_}\n" } sort keys %address), 'example' => '');
for my $name (sort keys %rows) {
    my ($mode, $hosts) = @{ $rows{$name} };
    my $preference = 10;
    $zone{example} .= "$name IN MX " . $preference++ . " $_.test.\n" for @$hosts;
    next unless $mode;
    $zone{example} .= "mta-sts.$name IN A 127.0.0.1\n" . qq(_mta-sts.$name IN TXT "v=STSv1; id=1;"\n);
    Petrel::spit("$dir/www/mta-sts.$name.example", "version: STSv1\r\nmode: " . ($mode eq 'testing' ? $mode : 'enforce') . "\r\n"
        . join('', map { "mx: $_.test\r\n" } $mode eq 'other' ? 'else' : @$hosts) . "max_age: 86400\r\n");
}
my ($https, $http) = (Petrel::free_port(), Petrel::free_port());
my $web = Nginx->start($dir, '', Nginx::policies($dir, $https));
my $port = Petrel::free_port();
Petrel::spawn("$dir/peer", $python, 't/e2e/tls_peer.py', $dir, $dir, "good=requiretls:mail\@127.0.0.1:$port", "old=mail\@127.0.0.2:$port", "bare=requiretls:stripped\@127.0.0.3:$port");
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my %file = map { ($_ => Petrel::spit("$dir/$_.zone", "\$ORIGIN $_.\n\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 60\n\@ IN NS ns\nns IN A 127.0.0.1\n$zone{$_}")) } keys %zone;
my $nsd = Nsd->start($dir, %file);
my %common = (dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => $ca, smtp_port => $port, mta_sts_port => $https, relay => '',
    tls_certificate => "$dir/mail.pem", tls_key => "$dir/mail.key");
my $next = Petrel->new(%common, hostname => 'next.test', routes => '* hold')->start;
my $petrel = Petrel->new(%common, hostname => 'here.test', http => "127.0.0.1:$http", aliases => Petrel::spit("$dir/aliases", "list\@here.test: a\@good.example, b\@old.example\nonly\@here.test: x\@cleartext.example\n"), local_domains => 'here.test', srs => 'yes',
    routes => "cleartext.example mx?tls=none\nhop.example smtp://next.test:$next->{port}\nold-hop.example smtp://old.test:$port\n"
        . "listed.example smtp://dead.test:$port|next.test:$port?mx=yes\n"
        . "mail.example smtp://good.test:$port\nlocal.example maildir:$dir/box/%u\n* mx")->start;
my $says = sub { return (Petrel::command('', $python, '-c', <<'END', $petrel->{port}, $ca, @_))[1] };
import smtplib, ssl, sys
port, ca, tls, sender, options, data, *to = sys.argv[1:]
s = smtplib.SMTP('127.0.0.1', int(port), local_hostname='[127.0.0.1]', timeout=60)
s.ehlo()
print('before', s.has_extn('requiretls'))
if tls == 'tls':
    context = ssl.create_default_context(cafile=ca)
    context.check_hostname = False
    s.starttls(context=context)
    s.ehlo()
    print('after', s.has_extn('requiretls'))
code, said = s.docmd('MAIL', 'FROM:<%s> %s' % (sender, options))
print(code, said.decode())
if code == 250:
    replies = [s.rcpt(one) for one in to]
    for code, said in replies:
        if code != 250:
            print(code, said.decode())
    if any(code == 250 for code, said in replies):
        code, said = s.data(data)
        print(code, said.decode())
END
sub ask { my ($sender, $options, @to) = @_; my $said = $says->('tls', $sender, $options, "From: $sender\r\nSubject: secret\r\n\r\nwithin\r\n", @to); return $said =~ /queued as (\S+)/ ? $1 : $said }
sub line_of { my ($address) = @_; return ($petrel->log =~ /^(.*to=<\Q$address\E>.*)$/mg)[-1] // '' }
sub said { my ($host) = @_; return Petrel::slurp("$dir/$host.said") =~ s/\r//gr }

# --- What a client may ask for

like $says->('clear', 'a@here.test', 'REQUIRETLS', ''), qr/\Abefore False\n530 5\.7\.0 REQUIRETLS is offered under TLS alone\n\z/, 'not without TLS';
like $says->('tls', 'a@here.test', 'REQUIRETLS=x', ''), qr/\Abefore False\nafter True\n501 5\.5\.4 REQUIRETLS takes no value\n\z/, 'offered under TLS, without a value';
like $says->('tls', 'a@here.test', 'REQUIRETLS REQUIRETLS', ''), qr/^501 /m, 'once';

is $says->('tls', 'a@here.test', 'REQUIRETLS', '', 'x@cleartext.example', 'only@here.test') =~ s/\A.*?^250 .*?\n//msr, <<'END', 'a route without TLS is refused at RCPT, and the only member of an alias, too';
550 5.7.10 the sender requires TLS (REQUIRETLS), and the route has no TLS
550 5.7.10 the sender requires TLS (REQUIRETLS), and the route has no TLS
END
like $says->('tls', 'a@here.test', '', "Subject: x\r\n\r\nx\r\n", 'x@cleartext.example'), qr/^250 .*queued as/m, 'other mail goes there';
like $says->('tls', '', 'REQUIRETLS', "Subject: x\r\n\r\nx\r\n", 'x@cleartext.example'), qr/^250 .*queued as/m, 'and notifications, which would be lost';

# --- Where the message goes

my %mail = map { ($_ => ask("$_\@good.example", 'RET=FULL REQUIRETLS', "x\@$_.example")) } sort keys %rows;
for my $name (sort keys %rows) {
    Petrel::wait_for(sub { line_of("x\@$name.example") ne '' });
    my ($line, $want) = (line_of("x\@$name.example"), $rows{$name}[2]);
    if (ref $want) { like $line, $want, $name }
    else { like $line, qr{relay=$want\.test.*, tls=TLSv1\.[23]/[A-Z0-9_-]+/sts, dsn=2\.0\.0, status=sent}, $name }
}
is scalar(() = said('good') =~ /^MAIL FROM:<(?:good|both)\@good\.example>.* REQUIRETLS/mg), 2, 'the parameter leaves with it' or diag said('good');
is said('old') . said('bare'), '', 'no host without it has heard of it';
is scalar(() = $petrel->log =~ /^.*x\@dead\.example.*status=bounced/mg), 0, 'a host that is away may have it';

# --- Notifications

ok Petrel::wait_for(sub { (() = said('good') =~ /^MAIL FROM:<> .*/mg) >= 6 }), 'they arrive' or diag said('good');
my @notifications = said('good') =~ /^MAIL FROM:<>(.*)$/mg;
is scalar(grep { / REQUIRETLS/ } @notifications), scalar @notifications, 'with the parameter' or diag explain \@notifications;
like said('good'), qr/^Status: 5\.7\.30$/m, 'with the code';
my (undef, $metrics) = Petrel::command('', $python, '-c', 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())', "http://127.0.0.1:$http/metrics");
like $metrics, qr/^petrel_requiretls_total\{result="accepted"\} 9$/m, 'metrics count messages';
like $metrics, qr/^petrel_requiretls_total\{result="returned"\} 6$/m, 'and recipients that came back' or diag $metrics;
is scalar(grep { /^within$/m } grep { /\AMAIL FROM:<>/ } split /^(?=MAIL FROM:)/m, said('good')), 0, 'and the header alone, in spite of RET=FULL';
ask('anna@old.example', 'REQUIRETLS', 'x@plain.example');
ok Petrel::wait_for(sub { said('old') =~ /^MAIL FROM:<>/m }), 'a host without REQUIRETLS gets one, too';
unlike said('old'), qr/^MAIL.* REQUIRETLS/m, 'without the parameter';

# --- Other mail for the same hosts

like $petrel->send_mail('anna@here.test', "y\@$_.example", "Subject: y\n\ny\n"), qr/^250/, "other mail for $_" for qw(old plain good);
ok $petrel->wait_log(qr/to=<y\@$_\.example>.*status=sent/), 'is sent' or diag $petrel->log for qw(old plain good);
unlike said('good'), qr/^MAIL FROM:<anna\@here\.test>.*REQUIRETLS/m, 'without the parameter';

# --- Routes; aliases; the header field, which does not count beside it

like ask('r@good.example', 'REQUIRETLS', 'x@mail.example'), qr/^\w+-\w+$/, 'by a route';
ok $petrel->wait_log(qr{to=<x\@mail\.example>.*/verified, dsn=2\.0\.0, status=sent}), 'whose host is proven' or diag $petrel->log;
ask('r@good.example', 'REQUIRETLS', 'x@listed.example');
ok $petrel->wait_log(qr{to=<x\@listed\.example>.*relay=good\.test.*/verified, dsn=2\.0\.0, status=sent}), 'or the name in a list that has led to it' or diag $petrel->log;
ask('r@good.example', 'REQUIRETLS', 'x@old-hop.example');
ok $petrel->wait_log(qr/to=<x\@old-hop\.example>.*dsn=5\.7\.30, status=bounced/), 'or has not REQUIRETLS' or diag $petrel->log;
ask('r@good.example', 'REQUIRETLS', 'x@local.example');
ok $petrel->wait_log(qr/to=<x\@local\.example>.*status=sent/), 'a Maildir is no hop' or diag $petrel->log;
ask('r@good.example', 'REQUIRETLS', 'list@here.test');
ok $petrel->wait_log(qr/to=<a\@good\.example>.*status=sent/), 'members of an alias' or diag $petrel->log;
ok $petrel->wait_log(qr/to=<b\@old\.example>.*dsn=5\.7\.30, status=bounced/), 'have it, too';
$says->('tls', 'f@good.example', 'REQUIRETLS', "TLS-Required: No\r\nSubject: x\r\n\r\nx\r\n", 'z@plain.example');
ok $petrel->wait_log(qr/to=<z\@plain\.example>.*dsn=5\.7\.10, status=bounced/), 'the field does not count' or diag $petrel->log;

my (undef, $doctor) = $petrel->run('doctor', 'x@mail.example', 'x@old-hop.example');
like $doctor, qr/good\.test\S* takes mail .* it\s+offers\s+REQUIRETLS/s, 'doctor says who has it' or diag $doctor;
like $doctor, qr/old\.test\S* takes mail .* does\s+not\s+offer\s+REQUIRETLS/s, 'and who has not';

# --- Another Petrel, and restarts

my $id = ask('p@good.example', 'REQUIRETLS', 'x@hop.example');
ok $petrel->wait_log(qr{to=<x\@hop\.example>.*/verified, dsn=2\.0\.0, status=sent}), 'another Petrel takes it' or diag $petrel->log;
my ($there) = $petrel->log =~ /to=<x\@hop\.example>.*queued as (\S+?)[)\s]/;
$next->kill9;
$next->start;
is decode_json(($next->run('queue', 'show', '--json', $there))[1])->{tls_required}, 'yes', 'and knows of it after a kill';
my (undef, $why) = $petrel->run('queue', 'why', $mail{dead});
like $why, qr/requiretls=yes|REQUIRETLS/, 'why says it' or diag $why;
$petrel->kill9;
$petrel->start;
$petrel->run('queue', 'retry', '--all');
ok Petrel::wait_for(sub { (() = $petrel->log =~ /^.*x\@dead\.example.*status=deferred/mg) >= 2 }), 'mail that waits does so after a kill';
is scalar(() = said('old') =~ /^MAIL.* REQUIRETLS|dead\@good/mg), 0, 'and has not left';
done_testing;
