#!/usr/bin/perl
# petrel doctor: a host and domains that are all right, and faults, each by itself in a domain or on a host: it is found,
# under the right code, and the record that the remedy prints, pasted into the zone, ends it.
use lib 't/e2e';
use E2E;
use Doctor;

plan skip_all => 'no nsd' unless Nsd->available;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $dir = tempdir('doctor-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $world = Doctor->new($dir);

# --- Keys: one for all domains.
for my $bits (1024, 2048) { system("openssl genrsa -out $dir/$bits.pem $bits 2>/dev/null") == 0 or die 'openssl'; chmod 0600, "$dir/$bits.pem" }
sub public { my ($bits) = @_; return join '', grep { !/-----/ } map { s/\n//r } qx(openssl pkey -in $dir/$bits.pem -pubout) }
my ($public, $other) = (public(2048), public(1024));
sub strings { my ($t) = @_; return join ' ', map { "\"$_\"" } $t =~ /(.{1,250})/g }
my $record = 'v=DKIM1; k=rsa; p=' . $public;

# A domain that is all right; the fault removes and adds lines. "@" is the domain.
sub domain {
    return ('@. MX 10 mail.example.org.', '@. TXT "v=spf1 ip4:192.0.2.10 -all"', '_dmarc.@. TXT "v=DMARC1; p=none; rua=mailto:a@x.test"',
        's1._domainkey.@. TXT ' . strings($record));
}
sub spf { my ($text) = @_; return ['spf.record', '-@. TXT', $text =~ /^"/ ? "\@. TXT $text" : "\@. TXT \"$text\""] }
sub dkim { my (@lines) = @_; return ['dkim.key', '-s1._domainkey.@. TXT', map { "s1._domainkey.\@. TXT $_" } @lines] }
sub dmarc { my (@lines) = @_; return ['dmarc.record', '-_dmarc.@. TXT', map { "_dmarc.\@. TXT $_" } @lines] }
sub mx { my (@lines) = @_; return ['mx.record', '-@. MX', @lines] }
my %fault = (
    # SPF
    'spf-none' => ['spf.record', '-@. TXT'],
    'spf-fail' => spf('v=spf1 -all'),
    'spf-softfail' => spf('v=spf1 ~all'),
    'spf-neutral' => spf('v=spf1 ?all'),
    'spf-empty' => spf('v=spf1'),
    'spf-other-ip4' => spf('v=spf1 ip4:192.0.2.11 -all'),
    'spf-other-net' => spf('v=spf1 ip4:198.51.100.0/24 -all'),
    'spf-other-mx' => spf('v=spf1 mx:receiver.test ~all'),
    'spf-a-of-other' => spf('v=spf1 a:mx.receiver.test -all'),
    'spf-include-other' => spf('v=spf1 include:good.inc.test -all'),
    'spf-redirect' => spf('v=spf1 redirect=good.inc.test'),
    'spf-minus' => spf('v=spf1 -ip4:192.0.2.10 +ip4:192.0.2.0/24 -all'),
    'spf-question' => spf('v=spf1 ?ip4:192.0.2.0/24 -all'),
    'spf-all-early' => spf('v=spf1 -all ip4:192.0.2.10'),
    'spf-plus-all' => spf('v=spf1 +all'),
    'spf-bare-all' => spf('v=spf1 ip4:192.0.2.10 all'),
    'spf-two' => ['spf.record', '@. TXT "v=spf1 ip4:192.0.2.10 ~all"'],
    'spf-three' => ['spf.record', '@. TXT "v=spf1 a ~all"', '@. TXT "v=spf1 mx ~all"'],
    'spf-typo' => spf('v=spf1 ipv4:192.0.2.10 -all'),
    'spf-no-colon' => spf('v=spf1 ip4 192.0.2.10 -all'),
    'spf-bare-ip' => spf('v=spf1 192.0.2.10 -all'),
    'spf-comma' => spf('v=spf1 ip4:192.0.2.10, -all'),
    'spf-bits' => spf('v=spf1 ip4:192.0.2.0/33 -all'),
    'spf-octet' => spf('v=spf1 ip4:192.0.2.256 -all'),
    'spf-empty-include' => spf('v=spf1 ip4:192.0.2.10 include: -all'),
    'spf-include-none' => spf('v=spf1 include:gone.test ip4:192.0.2.10 -all'),
    'spf-include-nowhere' => spf('v=spf1 include:nowhere.test ip4:192.0.2.10 -all'),
    'spf-include-bad' => spf('v=spf1 include:bad.inc.test ip4:192.0.2.10 -all'),
    'spf-include-loop' => spf('v=spf1 include:loop.inc.test ip4:192.0.2.10 -all'),
    'spf-late-bad' => spf('v=spf1 ip4:192.0.2.10 include:bad.inc.test -all'),
    'spf-late-none' => spf('v=spf1 ip4:192.0.2.10 include:gone.test -all'),
    'spf-deep' => spf('v=spf1 include:deep.inc.test ip4:192.0.2.10 -all'),
    'spf-late-deep' => spf('v=spf1 ip4:192.0.2.10 include:deep.inc.test -all'),
    'spf-eleven' => spf('v=spf1 ' . join(' ', map { "include:i$_.inc.test" } 1 .. 11) . ' ip4:192.0.2.10 -all'),
    'spf-voids' => spf('v=spf1 a:v1.test a:v2.test a:v3.test ip4:192.0.2.10 -all'),
    'spf-mx-many' => spf('v=spf1 mx:many.inc.test ip4:192.0.2.10 -all'),
    'spf-redirect-none' => spf('v=spf1 redirect=gone.test'),
    'spf-redirects' => spf('v=spf1 redirect=good.inc.test redirect=good.inc.test'),
    'spf-ptr' => spf('v=spf1 ip4:192.0.2.10 ptr -all'),
    'spf-ptr-named' => spf('v=spf1 ip4:192.0.2.10 ptr:example.org ~all'),
    'spf-macro' => spf('v=spf1 exists:%{z}.x.test -all'),
    'spf-split' => spf('"v=spf1 ip4:192.0.2.10" "include:good.inc.test -all"'),
    'spf-tab' => spf('"v=spf1 \009ip4:192.0.2.10 -all"'),
    'spf-escape' => spf('"v=spf1 \027[31mip4:192.0.2.10 -all"'),
    'spf-not-ascii' => spf('"v=spf1 ip4:192.0.2.10\195\169 -all"'),
    'spf-version' => spf('v=spf2 ip4:192.0.2.10 -all'),
    'spf-missing-version' => spf('ip4:192.0.2.10 -all'),
    'spf-quoted' => spf('"\"v=spf1 ip4:192.0.2.10 -all\""'),
    'spf-long' => spf(join ' ', map { "\"$_\"" } 'v=spf1 ', map { 'ip4:198.51.' . $_ . '.0/24 ' } 100 .. 140),
    'spf-redirect-loop' => spf('v=spf1 redirect=loop.inc.test'),
    'spf-mx-bits' => spf('v=spf1 ip4:192.0.2.10 mx/33 -all'),
    'spf-ip6-bits' => spf('v=spf1 ip6:2001:db8::/129 ip4:192.0.2.10 -all'),
    'spf-ip6-in-ip4' => spf('v=spf1 ip4:2001:db8::1 ip4:192.0.2.10 -all'),
    'spf-leading-zero' => spf('v=spf1 ip4:192.0.2.010 -all'),
    'spf-exp-twice' => spf('v=spf1 ip4:192.0.2.10 exp=a.inc.test exp=b.inc.test -all'),
    'spf-redirect-colon' => spf('v=spf1 ip4:192.0.2.10 redirect:good.inc.test'),
    'spf-percent' => spf('v=spf1 ip4:192.0.2.10 include:%x.test -all'),
    'spf-macro-bomb' => spf('v=spf1 exists:' . ('%{l128}%{s}%{o}%{h}.' x 8) . 'x.test ip4:192.0.2.11 -all'),
    'spf-include-ip' => spf('v=spf1 include:192.0.2.10 -all'),
    # DKIM
    'dkim-none' => dkim(),
    'dkim-other' => dkim(strings("v=DKIM1; k=rsa; p=$other")),
    'dkim-cut' => dkim(strings('v=DKIM1; k=rsa; p=' . substr $public, 0, 200)),
    'dkim-doubled' => dkim(strings("v=DKIM1; k=rsa; p=$public$public")),
    'dkim-revoked' => dkim('"v=DKIM1; k=rsa; p="'),
    'dkim-kind' => dkim(strings("v=DKIM1; k=ed25519; p=$public")),
    'dkim-version' => dkim(strings("v=DKIM2; k=rsa; p=$public")),
    'dkim-case' => dkim(strings("v=dkim1; k=rsa; p=$public")),
    'dkim-version-late' => dkim(strings("k=rsa; v=DKIM1; p=$public")),
    'dkim-no-p' => dkim('"v=DKIM1; k=rsa"'),
    'dkim-two' => dkim(strings($record), strings("v=DKIM1; k=rsa; p=$other")),
    'dkim-two-same' => dkim(strings($record), strings("v=DKIM1; p=$public")),
    'dkim-testing' => dkim(strings("v=DKIM1; k=rsa; t=y; p=$public")),
    'dkim-testing-s' => dkim(strings("v=DKIM1; k=rsa; t=s:y; p=$public")),
    'dkim-sha1' => dkim(strings("v=DKIM1; k=rsa; h=sha1; p=$public")),
    'dkim-service' => dkim(strings("v=DKIM1; k=rsa; s=chat; p=$public")),
    'dkim-quotes' => dkim('"\"v=DKIM1; k=rsa; p=' . substr($public, 0, 200) . '" "' . substr($public, 200) . '\""'),
    'dkim-semicolon' => dkim(strings("v=DKIM1 k=rsa p=$public")),
    'dkim-pem' => dkim(strings("-----BEGIN PUBLIC KEY-----$public")),
    'dkim-name' => ['dkim.key', '-s1._domainkey.@. TXT', 's1.@. TXT ' . strings($record)],
    'dkim-spf' => dkim('"v=spf1 -all"'),
    'dkim-alias' => ['dkim.key', '-s1._domainkey.@. TXT', 's1._domainkey.@. CNAME gone.test.'],
    'dkim-base64' => dkim('"v=DKIM1; k=rsa; p=not*base64"'),
    'dkim-note' => dkim('"hello"', '"world"'),
    # DMARC
    'dmarc-none' => dmarc(),
    'dmarc-two' => dmarc('"v=DMARC1; p=none"', '"v=DMARC1; p=reject"'),
    'dmarc-no-p' => dmarc('"v=DMARC1; rua=mailto:a@x.test"'),
    'dmarc-p-empty' => dmarc('"v=DMARC1; p="'),
    'dmarc-p-word' => dmarc('"v=DMARC1; p=on"'),
    'dmarc-case' => dmarc('"v=dmarc1; p=none"'),
    'dmarc-late' => dmarc('"p=none; v=DMARC1"'),
    'dmarc-comma' => dmarc('"v=DMARC1, p=none"'),
    'dmarc-space' => dmarc('"v=DMARC1 p=none"'),
    'dmarc-version' => dmarc('"v=DMARC2; p=none"'),
    'dmarc-rua' => dmarc('"v=DMARC1; p=none; rua=a@x.test"'),
    'dmarc-rua-http' => dmarc('"v=DMARC1; p=none; rua=https://x.test/"'),
    'dmarc-rua-second' => dmarc('"v=DMARC1; p=none; rua=mailto:a@x.test,b@x.test"'),
    'dmarc-at-domain' => ['dmarc.record', '-_dmarc.@. TXT', '@. TXT "v=DMARC1; p=none"'],
    'dmarc-other' => dmarc('"hello"'),
    'dmarc-quotes' => dmarc('"\"v=DMARC1; p=none\""'),
    'dmarc-three' => dmarc(('"v=DMARC1; p=none"') x 1, '"v=DMARC1; p=none; pct=1"', '"v=DMARC1; p=none; pct=2"'),
    'dmarc-p-quoted' => dmarc('"v=DMARC1; p=\"none\""'),
    # MX
    'mx-null' => mx('@. MX 0 .'),
    'mx-none' => mx(),
    'mx-nowhere' => mx('@. MX 10 nowhere.test.'),
    'mx-no-address' => mx('@. MX 10 gone.test.'),
    'mx-alias' => mx('@. MX 10 host.aliased.test.'),
    'mx-alias-nowhere' => mx('@. MX 10 nowhere.aliased.test.'),
    'mx-second-null' => mx('@. MX 10 mail.example.org.', '@. MX 20 .'),
    'mx-second-nowhere' => mx('@. MX 10 mail.example.org.', '@. MX 20 nowhere.test.'),
    'mx-second-alias' => mx('@. MX 10 mail.example.org.', '@. MX 20 host.aliased.test.'),
    'mx-address' => mx('@. MX 10 192.0.2.10.'),
);
my @faults = sort keys %fault;
my @domains = ('right.test', map { "$_.test" } @faults);
for my $domain (@domains) {
    my $fault = $fault{ $domain =~ s/\.test$//r };
    my @lines = map { s/\@(?=\. )/$domain/gr } domain();
    $world->change(@lines);
    $world->change(map { s/\@(?=\. )/$domain/gr } @$fault[1 .. $#$fault]) if $fault;
}
$world->serve;
my $keys = join "\n", map { "$_ s1 $dir/2048.pem" } @domains, 'mail.example.org';
$world->change('s1._domainkey.mail.example.org. TXT ' . strings($record));
$world->serve;
my $petrel = $world->petrel(dkim_keys => $keys);

# --- All right

my ($code, $checks) = $world->run($petrel, 'right.test');
is $code, 0, 'a domain and a host that are all right';
is_deeply [map { "$_->{code}: $_->{text}" } grep { $_->{severity} =~ /warning|error/ } @$checks], [], 'nothing is wrong';
is_deeply [map { $_->{code} } grep { $_->{severity} eq 'hint' } @$checks], ['dns.resolver'], 'a hint: NSD does not validate';
my %codes = map { $_->{code} => 1 } @$checks;
ok $codes{$_}, "$_ is checked" for qw(dns.resolver net.port25 host.address host.name host.ptr spf.record dkim.key dmarc.record mx.record);
like((grep { $_->{code} eq 'host.address' } @$checks)[0]{text}, qr/see 192\.0\.2\.10$/, 'the address that the receiver sees');
ok((grep { $_->{text} =~ /bulk senders: met/ } @$checks), 'the rules for bulk senders are met');
my ($text_code, $text) = $petrel->run('doctor', 'right.test');
like $text, qr/^0 errors, 0 warnings, 1 hint; \d+ checks are ok$/m, 'the same as text';

# --- Faults of domains, each in a domain of its own

($code, $checks) = $world->run($petrel, map { "$_.test" } @faults);
is $code, 1, 'faults: exit code 1';
my %remedy;
for my $name (@faults) {
    my $wanted = $fault{$name}[0];
    my @found = grep { $_->{severity} =~ /warning|error/ && $_->{subject} =~ /(?:^|\.)\Q$name.test\E$/ } @$checks;
    is join(' ', map { $_->{code} } @found), $wanted, "$name: $wanted alone" or diag explain \@found;
    $remedy{$name} = $found[0]{remedy} // '';
    like $remedy{$name}, qr/\n    \S+ 3600 IN (?:TXT|MX) /, '  its remedy has a record';
    ok $world->paste($remedy{$name}), '  which is pasted';
}
$world->serve;
($code, $checks) = $world->run($petrel, map { "$_.test" } @faults);
is $code, 0, 'with the records: exit code 0';
for my $name (@faults) {
    my @left = grep { $_->{severity} =~ /warning|error/ && $_->{subject} =~ /(?:^|\.)\Q$name.test\E$/ } @$checks;
    is_deeply [map { "$_->{code}: $_->{text}" } @left], [], "$name: its record ends it";
}
cmp_ok scalar @faults, '>=', 110, scalar(@faults) . ' faults of domains';
done_testing;
