#!/usr/bin/perl
# MTA-STS policies and records of every form beside postfix-mta-sts-resolver: both ask the same NSD and the same nginx.
# Each row says what the policy is; where the other one differs the sentence of RFC 8461 stands in it.
use lib 't/e2e';
use E2E;
use Nginx;
use Nsd;

my $package = '/opt/petrel-test-mta-sts';
plan skip_all => 'no nsd or nginx' unless Nsd->available && !Nginx->missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $reference = -e "$package/usr/bin/mta-sts-daemon" && system('/usr/bin/python3 -c "import aiodns, aiohttp, yaml" 2>/dev/null') == 0;
plan skip_all => 'no postfix-mta-sts-resolver' unless $reference;

my $dir = tempdir('sts_policies-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
my $certificates = "$dir/certificates";
system('sh', 't/support/tls_certificates.sh', $certificates) == 0 or die 'no certificates';

my (@rows, %row);
# row(name, policy or undef, what the file holds, ...): txt: other records than one with id 1; type, status, certificate, ...
# of the answer; other: [what the reference says, why].
sub row { my ($name, $want, $file, %more) = @_; push @rows, $row{"$name.example"} = { name => $name, want => $want, file => $file, %more }; return }
sub lines { return join "\n", @_, '' }
my @fields = ('version: STSv1', 'mode: enforce', 'mx: mx.test', 'max_age: 86400');
my ($text, $good) = (lines(@fields), 'enforce 86400 mx.test');

# The file (3.2).
row('lf', $good, $text);
row('crlf', $good, $text =~ s/\n/\r\n/gr);
row('mixed', $good, $text =~ s/STSv1\n/STSv1\r\n/r);
row('no-end', $good, $text =~ s/\n\z//r);
row('blanks', $good, "version:   STSv1  \nmode:enforce\nmx:\tmx.test \nmax_age: 86400\t\n\n\n");
row('order', $good, lines(reverse @fields));
row('unknown', $good, lines('version: STSv1', 'x_future.key-1: a b; c', 'mode: enforce', 'mx: mx.test', 'max_age: 86400', 'later: 1'));
row('version-2', undef, $text =~ s/STSv1/STSv2/r);
row('version-none', undef, lines(@fields[ 1 .. 3 ]));
row('version-case', undef, $text =~ s/STSv1/stsv1/r);
row('key-case', undef, $text =~ s/mode/Mode/r);
row('mode-none', 'none 86400', lines('version: STSv1', 'mode: none', 'max_age: 86400'));
row('mode-none-mx', 'none 86400', $text =~ s/enforce/none/r, other => ['none 86400 mx.test', 'without a demand its hosts mean nothing (3.2: "mx" is for the others)']);
row('mode-testing', 'testing 86400 mx.test', $text =~ s/enforce/testing/r);
row('mode-case', undef, $text =~ s/enforce/Enforce/r);
row('mode-unknown', undef, $text =~ s/enforce/report/r);
row('mode-missing', undef, lines(@fields[ 0, 2, 3 ]));
row('mode-twice', $good, lines(@fields[ 0, 1 ], 'mode: none', @fields[ 2, 3 ]), other => ['none 86400 mx.test', '3.2: if a key other than mx is duplicated, all entries but the first are ignored']);
row('age-0', 'enforce 0 mx.test', $text =~ s/86400/0/r);
row('age-max', 'enforce 31557600 mx.test', $text =~ s/86400/31557600/r);
row('age-beyond', undef, $text =~ s/86400/31557601/r);
row('age-negative', undef, $text =~ s/86400/-1/r);
row('age-huge', undef, $text =~ s/86400/99999999999999999999/r);
row('age-word', undef, $text =~ s/86400/1d/r);
row('age-missing', undef, lines(@fields[ 0 .. 2 ]));
row('mx-star', 'enforce 86400 *.mx.test', $text =~ s/mx\.test/*.mx.test/r);
row('mx-many', 'enforce 86400 *.b.test a.test mx.test', lines(@fields, 'mx: a.test', 'mx: *.b.test'));
row('mx-case', 'enforce 86400 mx.test', $text =~ s/mx\.test/MX.Test/r);
row('mx-missing', undef, lines(@fields[ 0, 1, 3 ]));
row('mx-stars', undef, $text =~ s/mx\.test/*.*.test/r, other => ['enforce 86400 *.*.test', '3.2: sts-policy-mx-value = ["*."] Domain']);
row('mx-empty', undef, $text =~ s/mx\.test//r, other => ['enforce 86400', '3.2: sts-policy-mx-value = ["*."] Domain']);
row('mx-address', undef, $text =~ s/mx\.test/[192.0.2.1]/r, other => ['enforce 86400 [192.0.2.1]', '3.2: sts-policy-mx-value = ["*."] Domain']);
row('junk-line', undef, "junk\n$text", other => [$good, '3.2: a file that is not key/value pairs is not syntactically valid']);
row('html', undef, "<html><body>moved</body></html>\n");
row('empty', undef, '');
row('mark', undef, "\xef\xbb\xbf$text");
row('nul', undef, $text . "\0\0\n", other => [$good, '3.2: a file that is not key/value pairs is not syntactically valid']);
row('octets', undef, $text . "\xff: \xfe\n");
# The answer (3.3).
row('large', undef, $text . ("x: y\n" x 20000));
row('long-line', undef, $text . 'x: ' . 'y' x 70000 . "\n");
row('nearly-large', $good, $text . ("x: y\n" x 13000));
row('type-html', undef, $text, type => 'text/html');
row('type-charset', $good, $text, type => 'text/plain; charset=utf-8');
row('type-case', $good, $text, type => 'Text/Plain');
row('type-octets', undef, $text, type => 'application/octet-stream');
row('type-near', undef, $text, type => 'text/plainer');
row('redirect', undef, $text, answer => 'return 301 https://mta-sts.lf.example/.well-known/mta-sts.txt;');
row('redirect-file', undef, $text, answer => 'return 302 file:///etc/passwd;');
row('missing', undef, undef);
row('status-500', undef, $text, answer => 'return 500;');
row('status-204', undef, $text, answer => 'return 204;');
row('closed', undef, $text, answer => 'return 444;');
# The certificate (3.3).
row('cert-wrong', undef, $text, certificate => ['wrong', ['mta-sts.lf.example'], 'ca', '-days 10']);
row('cert-other', undef, $text, certificate => ['other', ['mta-sts.cert-other.example'], 'other-ca', '-days 10']);
row('cert-expired', undef, $text, certificate => ['expired', ['mta-sts.cert-expired.example'], 'ca', 'expired']);
row('cert-star', $good, $text, certificate => ['star', ['*.cert-star.example'], 'ca', '-days 10']);
row('cert-high-star', undef, $text, certificate => ['high', ['*.example'], 'ca', '-days 10']);
row('cert-self', undef, $text, certificate => ['self']);
# The record (3.1).
row('txt-none', undef, $text, txt => []);
row('txt-other', undef, $text, txt => ['v=spf1 -all']);
row('txt-two', undef, $text, txt => ['v=STSv1; id=1', 'v=STSv1; id=2']);
row('txt-beside', $good, $text, txt => ['hello', 'v=STSv1; id=1']);
row('txt-near', $good, $text, txt => ['v=STSv10; id=1', 'v=STSv1; id=1'], other => [undef, '3.1: records that do not begin with "v=STSv1;" are discarded']);
row('txt-no-id', undef, $text, txt => ['v=STSv1;']);
row('txt-empty-id', undef, $text, txt => ['v=STSv1; id=;'], other => [$good, '3.1: sts-id is 1*32(ALPHA / DIGIT)']);
row('txt-bad-id', undef, $text, txt => ['v=STSv1; id=2026-01-01;'], other => [$good, '3.1: sts-id is 1*32(ALPHA / DIGIT)']);
row('txt-long-id', undef, $text, txt => [ 'v=STSv1; id=' . 'a' x 33 ], other => [$good, '3.1: sts-id is 1*32(ALPHA / DIGIT)']);
row('txt-32', $good, $text, txt => [ 'v=STSv1; id=' . 'a' x 32 ]);
row('txt-fields', $good, $text, txt => ['v=STSv1 ; x=y; id=1 ; z=1;']);
row('txt-tight', $good, $text, txt => ['v=STSv1;id=1']);
row('txt-case', undef, $text, txt => ['V=stsv1; id=1']);
row('txt-blank', undef, $text, txt => [' v=STSv1; id=1']);
row('txt-order', undef, $text, txt => ['id=1; v=STSv1']);
row('txt-pieces', $good, $text, txt => [ [ 'v=STS', 'v1; i', 'd=1;' ] ]);
row('txt-255', $good, $text, txt => [ [ 'v=STSv1; x=' . 'a' x 244, 'a' x 255, 'a' x 255, '; id=1' ] ]);
row('changed', $good, $text, serial => 1);
row('kept', $good, $text);

Nginx::certify($dir, 'web', [map { "mta-sts.$_->{name}.example" } grep { !$_->{certificate} } @rows]);
Nginx::certify($dir, @{ $_->{certificate} }) for grep { $_->{certificate} && @{ $_->{certificate} } > 1 } @rows;
Petrel::spit("$dir/self.$_", Petrel::slurp("$certificates/self.$_")) for qw(pem key);

mkdir "$dir/www";
my $zone = "\$ORIGIN example.\n\$TTL 60\n\@ IN SOA ns hostmaster 1 7200 3600 86400 60\n\@ IN NS ns\nns IN A 127.0.0.1\n";
my $https = Petrel::free_port();
my $servers = '';
sub write_policy { my ($r) = @_; Petrel::spit("$dir/www/mta-sts.$r->{name}.example", $r->{file}) if defined $r->{file}; return }
sub zone_text {
    my ($serial) = @_;
    my $all = $zone =~ s/hostmaster 1/hostmaster $serial/r;
    for my $r (@rows) {
        my $id = $r->{serial} ? $serial : 1;
        $all .= "$r->{name} IN MX 10 mx$serial.lf\nmta-sts.$r->{name} IN A 127.0.0.1\n";
        $all .= "_mta-sts.$r->{name} IN TXT " . join(' ', map { qq("$_") } ref ? @$_ : $_) . "\n" for @{ $r->{txt} // ["v=STSv1; id=$id;"] };
    }
    return $all . "mx$serial.lf IN A 127.0.0.1\n"; # a site of its own: it is tried
}
for my $r (@rows) {
    write_policy($r);
    my $pair = $r->{certificate} ? $r->{certificate}[0] : 'web';
    next unless $r->{certificate} || $r->{type} || $r->{answer};
    my $answer = $r->{answer} // "types { } default_type '" . ($r->{type} // 'text/plain') . "'; try_files /mta-sts.$r->{name}.example =404;";
    $servers .= "server { listen 127.0.0.1:$https ssl; server_name mta-sts.$r->{name}.example; ssl_certificate $dir/$pair.pem; ssl_certificate_key $dir/$pair.key;"
        . " root $dir/www; location = /.well-known/mta-sts.txt { $answer } }\n";
}
Nginx->start($dir, Nginx::policies($dir, $https), $servers);
my $nsd = Nsd->start($dir, 'example' => Petrel::spit("$dir/example.zone", zone_text(1)));

# The reference's verdict on domains, each perhaps with the id that it knows.
sub ask_reference {
    my @words = @_;
    my ($code, $said) = Petrel::command('', 'env', "SSL_CERT_FILE=$certificates/ca.pem", '/usr/bin/python3', 't/e2e/sts_reference.py', $package, $nsd->{port}, $https, @words);
    my %result = map { /^(\S+) (\w+)(?: (\S*) (\w+) (\d+)(.*))?$/ ? ($1 => [ $2, defined $4 ? "$4 $5" . join '', map { ' ' . lc } sort grep { $_ ne '' } split ' ', $6 : undef, $3 ]) : () } split /\n/, $said;
    return (\%result, $said);
}

my $petrel = Petrel->new(dns_servers => "127.0.0.1:$nsd->{port}", smtp_bind => '127.0.0.1', tls_ca => "$certificates/ca.pem", smtp_port => Petrel::free_port(),
    mta_sts_port => $https, relay => '')->start;
my $round = 0;
sub send_to {
    my @domains = @_;
    $round++;
    for my $domain (@domains) {
        die "$domain: no 250" unless $petrel->send_mail('', "x$round\@$domain", "Subject: x\n\nx\n") =~ /^250/;
    }
    ok Petrel::wait_for(sub { my $log = $petrel->log; !grep { $log !~ /to=<x$round\@\Q$_\E>.* status=/ } @domains }), 'mail for ' . @domains . ' domains is tried';
    return;
}
sub policy_of {
    my ($domain) = @_;
    my ($mode, $age, $mx) = ($petrel->log =~ /MTA-STS policy of \Q$domain\E: mode (\w+) for (\d+) s, mx (.*)$/mg)[ -3, -2, -1 ];
    return defined $mode ? join ' ', $mode, $age, grep { $_ ne '-' } split ' ', $mx : undef;
}

my @domains = map { "$_->{name}.example" } @rows;
send_to(@domains);
my ($theirs, $said) = ask_reference(@domains);
is scalar(keys %$theirs), scalar(@domains), 'the reference answers for each' or diag $said;
cmp_ok scalar(@rows), '>=', 60, 'there are ' . @rows . ' domains';
for my $domain (@domains) {
    my $r = $row{$domain};
    is policy_of($domain), $r->{want}, "$domain: " . ($r->{want} // 'no policy') or diag join "\n", $petrel->log =~ /(.*sts: .*\Q$domain\E.*)/g;
    # Another version of it may be as strict.
    my ($theirs, $expected, $why) = ($theirs->{$domain}[1], $r->{want}, 'so says the reference');
    ($expected, $why) = @{ $r->{other} } if $r->{other} && ($theirs // '') ne ($r->{want} // '');
    is $theirs, $expected, "  $why" or diag $said;
}

# A new id, and a new file under the old id.
for my $name ('changed', 'kept') {
    my $r = $row{"$name.example"};
    $r->{file} = $text =~ s/86400/604800/r;
    write_policy($r);
}
$petrel->stop;
$nsd->stop;
Petrel::spit("$dir/example.zone", zone_text(2));
$nsd->again;
($theirs, $said) = ({}, '');
ok Petrel::wait_for(sub { ($theirs, $said) = ask_reference('changed.example=1', 'kept.example=1'); ($theirs->{'changed.example'}[1] // '') eq 'enforce 604800 mx.test' }),
    'a new id brings the new policy to the reference' or diag $said;
is $theirs->{'kept.example'}[0], 'NOT_CHANGED', 'the same id keeps the old one' or diag $said;
$petrel->start;
send_to('changed.example', 'kept.example');
# The site may still be at rest: an operator has it tried.
ok Petrel::wait_for(sub { (policy_of('changed.example') // '') eq 'enforce 604800 mx.test' or $petrel->run('queue', 'retry', '--all') && 0 }), 'and so it is here'
    or diag $petrel->log =~ /(.*changed\.example.*)/g;
is policy_of('kept.example'), $good, 'for each';
$petrel->stop;
done_testing;
