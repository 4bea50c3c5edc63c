#!/usr/bin/perl
# TLS on the way out: hosts with good, wrong, expired, self-signed and unknown certificates, hosts that strip, refuse or break
# STARTTLS, each with tls=may, encrypt and verify, and by smtps://. The bytes of a route with encrypt or verify are read off the
# wire: nothing but EHLO, STARTTLS, TLS records and QUIT.
use lib 't/e2e';
use E2E;

plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('tls-XXXXXX', TMPDIR => 1, CLEANUP => 1);
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';

# The result of mail: clear, verified, unverified (sent so), or the code that it waits with.
my %want;
my @rows = (
    # kind, may, encrypt, verify
    ['good', 'verified', 'verified', 'verified'],
    ['exact', 'unverified', 'unverified', '4.7.5 certificate does not name 127.0.0.1'],
    ['expired', 'unverified', 'unverified', '4.7.5 certificate has expired'],
    ['self', 'unverified', 'unverified', '4.7.5 certificate is self-signed'],
    ['stranger', 'unverified', 'unverified', '4.7.5 unknown issuer'],
    ['stripped', 'clear', '4.7.4 does not offer STARTTLS', '4.7.4 does not offer STARTTLS'],
    ['refused', 'clear', '4.7.4 refused STARTTLS: 454 4.7.0 TLS is not available', '4.7.4 refused STARTTLS: 454'],
    ['garbage', 'clear', '4.7.5 failed in the TLS handshake', '4.7.5 failed in the TLS handshake'],
    ['injected', '4.7.5 bytes in cleartext where TLS should begin', '4.7.5 bytes in cleartext', '4.7.5 bytes in cleartext'],
);
my @implicit = (
    ['smtps:good', 'verified', 'verified'],
    ['smtps:self', 'unverified', '4.7.5 certificate is self-signed'],
    ['smtps:clear', '4.7.5 failed in the TLS handshake', '4.7.5 failed in the TLS handshake'],
);
my (%kind, %level);
sub host {
    my ($kind, $level, $want) = @_;
    (my $name = "$kind-$level") =~ s/://;
    @kind{$name} = $kind;
    $level{$name} = $level;
    $want{$name} = $want;
}
for my $row (@rows) { my ($kind, @wants) = @$row; host($kind, $_, shift @wants) for qw(may encrypt verify) }
for my $row (@implicit) { my ($kind, @wants) = @$row; host($kind, $_, shift @wants) for qw(encrypt verify) }
my @names = sort keys %want;

Petrel::spawn("$dir/peer", 'python3', 't/e2e/tls_peer.py', "$dir/certificates", $dir, map { "$_=$kind{$_}" } @names);
Petrel::wait_for(sub { Petrel::slurp("$dir/peer") =~ /^ready$/m }) or die Petrel::slurp("$dir/peer");
my %port = Petrel::slurp("$dir/peer") =~ /^(\S+) (\d+)$/mg;

sub route {
    my $name = shift;
    my $scheme = $kind{$name} =~ /^smtps/ ? 'smtps' : 'smtp';
    return "$name.test $scheme://127.0.0.1:$port{$name}?tls=$level{$name}";
}
my %settings = (routes => join("\n", map { route($_) } @names), tls_ca => "$dir/certificates/ca.pem",
    default_connection_reuse_count_limit => 1);
my $petrel = Petrel->new(%settings)->start;
my $secret = 'what nobody else may read';
sub letter { return "Subject: $secret\n\nletter of $secret\n" }
for my $name (@names) {
    like $petrel->send_mail("anna\@sender.test", "x\@$name.test", letter()), qr/^250/, "mail for $name";
}

# --- Outcomes, as the log tells them

sub line_of { my ($name) = @_; return ($petrel->log =~ /^(.*to=<x\@\Q$name\E\.test>.*)$/mg)[-1] // '' }
Petrel::wait_for(sub { !grep { line_of($_) eq '' } @names });
for my $name (@names) {
    my $line = line_of($name);
    if ($want{$name} =~ /^(4\S+) (.*)/) {
        like $line, qr/dsn=\Q$1\E, status=deferred \(.*\Q$2\E/, "$name: waits, and why";
        like $line, qr/demanded by the route \(tls=$level{$name}\)/, "$name: who demands it" if $level{$name} ne 'may';
        unlike $line, qr/, tls=T/, "$name: no TLS";
    } elsif ($want{$name} eq 'clear') {
        like $line, qr/status=sent/, "$name: sent";
        unlike $line, qr/, tls=/, "$name: in clear text";
    } else {
        like $line, qr{, tls=TLSv1\.[23]/[A-Z0-9_-]+/$want{$name}, dsn=2.0.0, status=sent}, "$name: sent, $want{$name}";
    }
}
like $petrel->log, qr/warning: host 127\.0\.0\.1\[127\.0\.0\.1\] failed in the TLS handshake: .*; sending one message to it in cleartext, as tls=may allows/,
    'the way back is told';

# --- The wire

# The connections of a host: what the client sent.
sub wires { my $name = shift; return map { Petrel::slurp($_) } sort glob "$dir/$name.*.wire" }
# TLS records and nothing behind them but the beginning of one.
sub is_records {
    my $bytes = shift;
    while (length $bytes) {
        return 0 unless $bytes =~ /\A[\x14-\x17]\x03[\x00-\x04]/ || length $bytes < 3;
        return 1 if length $bytes < 5;
        my $length = unpack 'n', substr $bytes, 3, 2;
        return 0 if $length > 16384 + 256;
        return 1 if length $bytes < 5 + $length;
        $bytes = substr $bytes, 5 + $length;
    }
    return 1;
}
sub is_kept {
    my ($name, $wire) = @_;
    return is_records($wire) if $kind{$name} =~ /^smtps/;
    return 1 unless length $wire; # one that was opened in vain
    $wire =~ s/\AEHLO petrel\.test\r\n// or return 0;
    return 1 if $wire eq '' || $wire eq "QUIT\r\n";
    $wire =~ s/\ASTARTTLS\r\n// or return 0;
    return 1 if $wire eq "QUIT\r\n";
    return is_records($wire);
}
sub watch {
    my $when = shift;
    for my $name (grep { $level{$_} ne 'may' } @names) {
        my @wires = wires($name);
        ok @wires > 0, "$name: there were connections $when" or next;
        is scalar(grep { !is_kept($name, $_) } @wires), 0, "$name: EHLO, STARTTLS, TLS and QUIT were all $when" or diag explain \@wires;
        is scalar(grep { /$secret|MAIL FROM:|RCPT TO:|anna\@sender|x\@$name/i } @wires), 0, "$name: no word of the mail $when";
    }
}
watch('at first');
is scalar(grep { /MAIL FROM.*$secret/s } wires('stripped-may')), 1, 'the proxy sees what goes in clear text';
is scalar(grep { /\AEHLO petrel\.test\r\nSTARTTLS\r\n/ } wires('garbage-may')), 1, 'a broken handshake is tried once';
is scalar(grep { /\AEHLO petrel\.test\r\nMAIL FROM/ } wires('garbage-may')), 1, 'and then there is one connection in clear text';
is scalar(grep { /MAIL/ } wires('injected-may')), 0, 'who injects gets no mail';

# --- Sessions are resumed

# All these hosts have one name here, so none of the others may come in between.
for my $user (qw(y z)) {
    $petrel->send_mail("anna\@sender.test", "$user\@good-verify.test", letter());
    ok $petrel->wait_log(qr{to=<$user\@good-verify\.test>.*/verified, dsn=2\.0\.0, status=sent}), "mail for $user";
}
like Petrel::slurp("$dir/good-verify.mail"), qr/^TLSv1\.[23] resumed \d+\n\z/m, 'a host that is known resumes its session';

# --- Once more: what waits still waits

my %before = map { $_ => scalar wires($_) } @names;
my ($code, $out) = $petrel->run(qw(queue retry --all));
is $code, 0, 'retry' or diag $out;
my @waiting = grep { $want{$_} =~ /^4/ } @names;
Petrel::wait_for(sub { !grep { wires($_) == $before{$_} } @waiting });
is scalar(grep { wires($_) == $before{$_} } @waiting), 0, 'all are tried again';
watch('again');
is scalar(grep { -s "$dir/$_.mail" } @waiting), 0, 'none of those that waited came through';
is $petrel->stop, 0, 'the end';

# --- Postfix's words; settings

$petrel = Petrel->new(%settings, log_style => 'postfix')->start;
$petrel->send_mail("anna\@sender.test", "z\@good-verify.test", letter());
ok $petrel->wait_log(qr{to=<z\@good-verify\.test>, relay=\S+, delay=\S+, delays=\S+, dsn=2\.0\.0, status=sent}), 'the fields of Postfix';
like $petrel->log, qr{postfix/smtp\[\d+\]: Verified TLS connection established to 127\.0\.0\.1\[127\.0\.0\.1\]:\d+: TLSv1\.[23] with cipher \S+},
    'its line about TLS';
$petrel->configure(tls_ca => "$dir/nothing.pem");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/reload refused: tls_ca: .*nothing\.pem/), 'a bundle that is not there is refused, the old one stays';
($code, $out) = $petrel->run('check');
is $code, 78, 'as by check';
like $out, qr/^tls_ca: /, 'with a line';
$petrel->configure(tls_ca => "$dir/certificates/other-ca.pem");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'another authority';
$petrel->send_mail("anna\@sender.test", "z\@stranger-encrypt.test", letter());
ok $petrel->wait_log(qr{to=<z\@stranger-encrypt\.test>.*status=sent}), 'and mail goes';
$petrel->send_mail("anna\@sender.test", "w\@good-verify.test", letter());
ok $petrel->wait_log(qr{to=<w\@good-verify\.test>.*dsn=4\.7\.5, status=deferred .*unknown issuer}), 'the old one counts no more';
is $petrel->stop, 0, 'the end of the second';
done_testing;
