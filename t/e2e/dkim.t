#!/usr/bin/perl
# DKIM: every signed message verifies with dkimpy, OpenDKIM and Mail::DKIM, in any form and by any way in; a change of any signed
# field or of the body breaks it. The key that signs, unsigned mail, rotation at reload, and no part of a key in any output.
use lib 't/e2e';
use E2E;
use Nsd;

plan skip_all => 'needs dkimpy and PyNaCl (python3-dkim python3-nacl)' if system('/usr/bin/python3 -c "import dkim, nacl" 2>/dev/null') != 0;
plan skip_all => 'needs openssl' unless Petrel::have('openssl');

my $seed = $ENV{SEED} || time;
my $count = $ENV{MESSAGES} || 300;
srand $seed;
diag "SEED=$seed";

# --- Keys

my $dir = tempdir('dkim-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my (%record, @private);
sub key_for {
    my ($domain, $selector, $kind) = @_;
    my $file = "$dir/$selector.$domain.pem";
    system($kind eq 'ed25519' ? "openssl genpkey -algorithm ed25519 -out $file 2>/dev/null" : "openssl genrsa -out $file $kind 2>/dev/null") == 0 or die;
    chmod 0600, $file;
    my $public = join '', grep { !/-----/ } map { chomp; $_ } `openssl pkey -in $file -pubout 2>/dev/null`;
    # The 32 octets of an Ed25519 key are the last of its SubjectPublicKeyInfo.
    if ($kind eq 'ed25519') { require MIME::Base64; $public = MIME::Base64::encode_base64(substr(MIME::Base64::decode_base64($public), -32), '') }
    $record{"$selector._domainkey.$domain"} = 'v=DKIM1; k=' . ($kind eq 'ed25519' ? 'ed25519' : 'rsa') . "; p=$public";
    push @private, grep { length > 20 && !/-----/ } map { chomp; $_ } split /\n/, Petrel::slurp($file);
    return "$domain $selector $file";
}
my ($has_ed25519) = `$Petrel::binary version` =~ /libsodium/ ? 1 : 0;
my @rows = (key_for('a.test', 's1', 2048), $has_ed25519 ? key_for('a.test', 'ed', 'ed25519') : key_for('a.test', 'ed', 1024), key_for('deep.a.test', 'd1', 1024));
my $later = key_for('a.test', 's2', 2048);
my $records = "$dir/records";
Petrel::spit($records, join '', map { "$_ $record{$_}\n" } sort keys %record);

# --- The hosts

my $sink = Sink->start;
my $plain = Sink->start('--no-8bitmime');
my %settings = (relay_from => '127.0.0.1', local_domains => 'here.test, mine.test', log_style => 'petrel',
    routes => "plain.test smtp://127.0.0.1:$plain->{port}\nno.test smtp://127.0.0.1:$sink->{port}?dkim=no\n* smtp://127.0.0.1:$sink->{port}");
my $petrel = Petrel->new(%settings, dkim_keys => join("\n", @rows))->start;

sub verify {
    my @files = map { $_->{file} } @_;
    my %got;
    Petrel::spit("$dir/list", join "\n", @files);
    for (`xargs -a $dir/list /usr/bin/python3 t/e2e/dkim_verify.py $records`) {
        my ($name, $results, $left) = /^(\S+) (.*) (\d+)$/ or die $_;
        $got{$name} = [$results, $left];
    }
    return map { $got{ $_->{file} =~ s{.*/}{}r } // ['nothing', 0] } @_;
}
sub send_from {
    my ($address, %mail) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => $address) or die 'no greeting';
    my $reply = $client->send(%mail);
    $client->quit;
    like $reply, qr/^250 /, "taken: $mail{to}[0]";
    return;
}

# --- Random messages, every way in

sub octets { my $n = shift; return join '', map { my $c = int rand 255; chr($c == 9 || $c == 12 ? 64 : $c + 1) } 1 .. $n }
sub white { return join '', map { (' ', "\t", "\r\n ", "\r\n\t")[rand 4] } 1 .. 1 + rand 3 }
sub words { return join white(), map { join '', map { chr(33 + rand 90) } 1 .. 1 + rand 12 } 1 .. 1 + rand(shift) }
my @names = ('Subject', 'To', 'Cc', 'Reply-To', 'Message-ID', 'X-Odd', 'References', 'List-Id', 'List-Unsubscribe', 'Sender', 'Comments', 'sUBJECT', 'In-Reply-To', 'Subject ', "To\t ");
sub header {
    my @fields = map { $names[rand @names] . ':' . ('', ' ', white())[rand 3] . words(8) . ('', ' ', " \t")[rand 3] } 1 .. rand 8;
    push @fields, 'MIME-Version: 1.0', 'Content-Type: text/plain; charset=utf-8', 'Content-Transfer-Encoding: 8bit' if rand() < 0.3;
    splice @fields, rand @fields, 0, 'From:' . (' ', white())[rand 2] . ('ann@a.test', '"A, B" <ann@a.test>', "Ann\r\n <ann\@a.test>", 'Ann (x@other.test) <ann@sub.a.test>')[rand 4];
    return join('', map { "$_\r\n" } @fields);
}
my @bodies = (
    sub { '' }, sub { "\r\n" }, sub { "\r\n" x (2 + rand 50) }, sub { "no last line end" }, sub { " \t \r\n\r\n \r\n" },
    sub { "text\r\n" . "\r\n" x rand 20 }, sub { join '', map { words(6) =~ s/\r\n//gr . (' ', '', "\t \t")[rand 3] . "\r\n" } 1 .. 20 },
    sub { ".\r\n..\r\n.a\r\n" }, sub { octets(rand 3000) . "\r\n" }, sub { 'x' x 10_000 . "\r\n" }, sub { 'x  ' x 3_000 . "\r\n\r\n" },
    sub { "\xc3\xbcber \r\n  alles\r\n" x (1 + rand 30) }, sub { "\r\n\r\n  indented\r\n\r\n\r\nagain\r\n\r\n" }, sub { words(3) . "\r\n" x 3 },
);
my $client = Client->greeted($petrel->{port});
my $refused = 0;
for my $i (1 .. $count) {
    my ($end, $body) = rand() < 0.05 ? ('', '') : ("\r\n", $bodies[rand @bodies]->());
    my %mail = (from => 'ann@a.test', to => ["m$i\@" . ($i % 3 ? 'b.test' : 'plain.test')], data => header() . $end . $body);
    $mail{data} .= "\r\n" if $i % 2 && $mail{data} !~ /\r\n\z/;
    my $reply = $i % 2 ? $client->send(%mail) : $client->send_chunks([map { 1 + int rand 500 } 1 .. 3], %mail);
    $refused++ if $reply !~ /^250/;
}
$client->quit;
is $refused, 0, "$count random messages are taken";
ok $petrel->wait_empty(120), 'and sent';
my @came = ($sink->messages, $plain->messages);
is scalar(@came), $count, 'each has come';
my @results = verify(@came);
my @bad = grep { $results[$_][0] ne 'pass pass' } 0 .. $#came;
is scalar(@bad), 0, 'both signatures of each verify' or diag "$came[$bad[0]]{file}: $results[$bad[0]][0]\n" . $came[$bad[0]]{data} =~ s/\r/\\r/gr =~ s/([^\n -~])/sprintf '\\x%02x', ord $1/ger;
is scalar(grep { $_->[1] > 0 } @results), 0, 'every change of a signed field, or one more of it, breaks both';
is scalar(grep { !/\ADKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=a\.test;/ } map { $_->{data} } @came), 0, 'that of RSA is the first field';
is scalar(grep { length > 76 } map { split /\r\n/, (split /\r\nReceived:/)[0] } map { $_->{data} } @came), 0, 'no line of them has more than 75 columns';
is scalar(grep { my ($size) = $_->{parameters} =~ /SIZE=(\d+)/; $size + 2 < length $_->{data} } @came), 0, 'SIZE counts them';
ok Petrel::count($petrel->log, qr/ dkim=a\.test\/s1,a\.test\/ed, /) >= $count, 'the log says who signed';

# --- OpenDKIM

SKIP: {
    my $opendkim = Petrel::have('opendkim') or skip 'needs opendkim', 1;
    Petrel::spit("$dir/opendkim.conf", "Mode v\nTestDNSData file:$dir/opendkim.records\n");
    Petrel::spit("$dir/opendkim.records", join '', map { "$_ $record{$_}\n" } sort keys %record);
    my @some = @came[0 .. ($#came < 39 ? $#came : 39)];
    my $failed = 0;
    for my $m (@some) {
        my $said = `$opendkim -x $dir/opendkim.conf -t $m->{file} 2>&1`;
        $failed++, diag "$m->{file}: $said" unless $said =~ /verification \(s=s1,? d=a\.test[^)]*\) succeeded/;
    }
    is $failed, 0, 'OpenDKIM verifies ' . @some . ' of them';
}

# --- Mail::DKIM, which asks a name server

SKIP: {
    eval { require Mail::DKIM::Verifier; require Mail::DKIM::DNS; require Net::DNS } or skip 'needs Mail::DKIM (libmail-dkim-perl)', 1;
    skip 'needs nsd', 1 unless Nsd->available;
    mkdir "$dir/nsd";
    Petrel::spit("$dir/zone", "a.test. 60 IN SOA ns.a.test. x.a.test. 1 60 60 60 60\na.test. 60 IN NS ns.a.test.\n"
        . join '', map { my $name = $_; "$name. 60 IN TXT " . join(' ', map { "\"$_\"" } unpack '(a255)*', $record{$name}) . "\n" } grep { /\ba\.test\z/ } sort keys %record);
    my $nsd = Nsd->start("$dir/nsd", 'a.test' => "$dir/zone");
    Mail::DKIM::DNS::resolver(Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $nsd->{port}, recurse => 0));
    my ($verified, $some) = (0, $#came < 199 ? $#came : 199);
    for my $m (@came[0 .. $some]) {
        my $verifier = Mail::DKIM::Verifier->new;
        $verifier->PRINT($m->{data});
        $verifier->CLOSE;
        my @said = map { $_->result_detail } $verifier->signatures;
        # That of Debian 12 knows RSA alone.
        if ("@said" =~ /^pass (?:pass|invalid \(unsupported algorithm ed25519-sha256\))$/) { $verified++ } else { diag "$m->{file}: @said" }
    }
    is $verified, $some + 1, 'Mail::DKIM verifies ' . ($some + 1) . ' of them';
}

# --- The key

my %letter = (from => 'ann@a.test', data => "From: Ann <ann\@a.test>\r\nSubject: s\r\n\r\nx\r\n");
sub signers { my $to = shift; my $m = $sink->wait_for($to, 1) or return 'nothing came'; return join ' ', $m->{data} =~ /^DKIM-Signature:.*? d=(\S+);(?:\r\n)?\s*s=/msg }
my @cases = (
    ['sub', 'the key of the domain above', 'a.test a.test', data => "From: ann\@x.y.a.test\r\n\r\nx\r\n"],
    ['deep', 'the nearest one', 'deep.a.test', data => "From: ann\@x.deep.A.test\r\n\r\nx\r\n"],
    ['list', "that of the envelope's sender", 'a.test a.test', data => "From: ann\@other.test\r\n\r\nx\r\n"],
    ['none', 'none', '', from => 'ann@other.test', data => "From: ann\@other.test\r\n\r\nx\r\n"],
    ['near', 'a name that only ends so has none', '', from => 'x@ya.test', data => "From: ann\@ya.test\r\n\r\nx\r\n"],
    ['two', 'more than one From: none', '', data => "From: ann\@a.test\r\nFrom: ann\@a.test\r\n\r\nx\r\n"],
    ['bad', 'a malformed From: made of the sender, and signed', 'a.test a.test', data => "From: <<ann\@a.test\r\n\r\nx\r\n"],
    ['many', '11 of a field: none', '', data => "From: ann\@a.test\r\n" . "Cc: x\@y.test\r\n" x 11 . "\r\nx\r\n"],
    ['signed', 'signed mail is signed again', 'other.test a.test a.test', data => "DKIM-Signature: v=1; a=rsa-sha256; d=other.test; s=x; h=from; bh=; b=\r\nFrom: ann\@a.test\r\n\r\nx\r\n"],
);
for (@cases) {
    my ($name, $what, $want, %mail) = @$_;
    send_from('127.0.0.1', %letter, to => ["$name\@c.test"], %mail);
    is join(' ', sort split / /, signers("$name\@c.test")), join(' ', sort split / /, $want), $what;
}
ok $petrel->wait_log(qr/warning: not signed: \Q$_\E/), "a warning: $_" or diag $petrel->log for 'it has more than one From', 'it has a field more than 10 times that is signed';
send_from('127.0.0.2', %letter, to => ['stranger@mine.test']);
is signers('stranger@mine.test'), '', "an untrusted client's mail with our From: unsigned";
send_from('127.0.0.1', %letter, to => ['friend@mine.test']);
is signers('friend@mine.test'), 'a.test a.test', 'and that of one who may relay: signed';
send_from('127.0.0.1', %letter, to => ['x@no.test']);
is signers('x@no.test'), '', 'dkim=no: unsigned';

# One operation for many hosts, and for a second attempt.
my ($before) = $petrel->status =~ /"signed": (\d+)/;
send_from('127.0.0.1', %letter, to => [map { "r\@d$_.test" } 1 .. 50]);
ok $petrel->wait_empty, 'a message for 50 domains';
my ($after) = $petrel->status =~ /"signed": (\d+)/;
is $after - $before, 2, 'is signed once with each key';

# sendmail(1)
open my $mail, '|-', "$Petrel::binary -c $petrel->{dir}/petrel.conf sendmail -f cron\@a.test cron\@c.test" or die;
print $mail "From: cron\@a.test\nSubject: s\n\nx\n";
ok close $mail, 'sendmail(1)';
is signers('cron@c.test'), 'a.test a.test', 'is signed';
is((verify($sink->for_address('cron@c.test')))[0][0], 'pass pass', 'and verifies');

# --- Rotation, bad keys, secrets

$petrel->configure(%settings, dkim_keys => $later);
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded/), 'reload';
send_from('127.0.0.1', %letter, to => ['rotated@c.test']);
my $rotated = $sink->wait_for('rotated@c.test', 1);
like $rotated->{data}, qr/d=a\.test; s=s2;/, 'the new key signs';
is((verify($rotated))[0][0], 'pass', 'and verifies');

Petrel::spit("$dir/broken.pem", join "\n", '-----BEGIN RSA PRIVATE KEY-----', $private[3], '-----END RSA PRIVATE KEY-----', '');
Petrel::spit("$dir/open.pem", Petrel::slurp((split / /, $later)[2]));
chmod 0644, "$dir/open.pem";
mkdir "$dir/keys";
Petrel::spit("$dir/keys/odd.pem", 'x');
my @mistakes = (
    ["a.test s1 $dir/missing.pem", qr/petrel\.conf:\d+: dkim_keys: cannot read '\S+missing\.pem': No such file/],
    ["a.test s1 $dir/broken.pem", qr/petrel\.conf:\d+: dkim_keys: '\S+broken\.pem' has a private key that is damaged/],
    ["a.test s1", qr/'a\.test s1': write DOMAIN SELECTOR PATH/],
    ["a.test s! $dir/open.pem", qr/'s!' is not a selector/],
    ["a..test s1 $dir/open.pem", qr/'a\.\.test' is not a domain/],
    [join("\n", ($later) x 2), qr/selector 's2' of 'a\.test' is there twice/],
    [join("\n", map { "a.test s$_ $dir/open.pem" } 1 .. 5), qr/more than 4 keys for 'a\.test'/],
    ["$dir/keys", qr/'odd\.pem': name it SELECTOR\._domainkey\.DOMAIN\.pem/],
    ["$dir/nowhere", qr/cannot read the directory/],
);
my $said = '';
for (@mistakes) {
    my ($value, $want) = @$_;
    $petrel->configure(%settings, dkim_keys => $value);
    my $text = `$Petrel::binary -c $petrel->{dir}/petrel.conf check 2>&1`;
    is $? >> 8, 78, 'refused: ' . ($value =~ s/\n.*//sr);
    like $text, $want, 'with what is wrong';
    $said .= $text;
}
my $reloads = Petrel::count($petrel->log, qr/reload refused/);
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/reload refused/), 'a reload with such a key is refused';
send_from('127.0.0.1', %letter, to => ['kept@c.test']);
like $sink->wait_for('kept@c.test', 1)->{data}, qr/d=a\.test; s=s2;/, 'and the old key goes on';

unlink "$dir/keys/odd.pem";
Petrel::spit("$dir/keys/s9._domainkey.a.test.pem", Petrel::slurp("$dir/open.pem"));
Petrel::spit("$dir/keys/readme", 'x');
chmod 0600, "$dir/keys/s9._domainkey.a.test.pem";
$petrel->configure(%settings, dkim_keys => "$dir/keys");
$said .= my $text = `$Petrel::binary -c $petrel->{dir}/petrel.conf check 2>&1`;
is $? >> 8, 0, 'a directory of keys';
unlike $text, qr/dkim_keys: .*chmod/, 'no warning of a file that is private';
$petrel->configure(%settings, dkim_keys => "a.test s9 $dir/open.pem\nweak.test w " . (split / /, key_for('weak.test', 'w', 1024))[2]);
$said .= $text = `$Petrel::binary -c $petrel->{dir}/petrel.conf check 2>&1`;
like $text, qr/dkim_keys: \S+open\.pem can be read by all users: chmod 600/, 'a warning of one that is not';
like $text, qr/dkim_keys: the key w of weak\.test has 1024 bits: 2048 are advised/, 'and of a short key';
# The key of `petrel dkim-key` fits the daemon: from the first key to a mail that verifies.
mkdir "$dir/made";
my $told = `$Petrel::binary dkim-key new.test k1 --directory $dir/made 2>&1`;
is $? >> 8, 0, 'petrel dkim-key';
my ($value) = $told =~ /^(v=DKIM1;.*)$/m;
Petrel::spit($records, Petrel::slurp($records) . "k1._domainkey.new.test $value\n");
# The first lines have the modulus, which the record shows.
push @private, (grep { length > 20 && !/-----/ } split /\n/, Petrel::slurp("$dir/made/k1._domainkey.new.test.pem"))[7 .. 20];
system("$Petrel::binary dkim-key new.test k2 --bits 1024 --directory $dir/made >/dev/null 2>&1") == 0 or die;
$petrel->configure(%settings, log_style => 'json', dkim_keys => "$dir/made");
my $before_made = Petrel::count($petrel->log, qr/settings reloaded/);
kill 'HUP', $petrel->{pid};
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/settings reloaded/) > $before_made }), 'its directory is read at a reload';
send_from('127.0.0.1', from => 'x@new.test', to => ['made@c.test'], data => "From: x\@new.test\r\n\r\nx\r\n");
is((verify($sink->wait_for('made@c.test', 1)))[0][0], 'pass fail', 'and a mail verifies by the record that it printed');
ok $petrel->wait_log(qr/"to":"made\@c\.test".*"dkim":\["new\.test\/k1","new\.test\/k2"\]/), 'dkim is an array in log_style=json';
$said .= $told;
is $petrel->stop, 0, 'it ends well';
$said .= $petrel->log . $petrel->status;
is scalar(grep { index($said, $_) >= 0 } @private), 0, 'no part of a private key is in any output';

done_testing;
