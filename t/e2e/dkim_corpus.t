#!/usr/bin/perl
# DKIM over the messages of other projects' tests, as they are and converted to 7 bits: each is signed, a broken
# header once it is repaired; dkimpy and OpenDKIM verify every signature, and a change of a signed field or of the body breaks it.
use lib 't/e2e';
use E2E;
use File::Basename;

my $corpus = '../shared/corpus';
my $opendkim = Petrel::have('opendkim');
plan skip_all => 'no corpus here' unless -d $corpus;
plan skip_all => 'needs dkimpy and PyNaCl (python3-dkim python3-nacl)' if system('/usr/bin/python3 -c "import dkim, nacl" 2>/dev/null') != 0;
plan skip_all => 'needs opendkim' unless $opendkim;

# `opendkim -t` reads no field of 64 KiB.
my %known = (dkimpy => '', opendkim => 'mime_trunc.in');

# --- The messages, to a host that takes 8 bits and to one that does not

my $dir = tempdir('dkim-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($record) = `$Petrel::binary dkim-key a.test s1 --directory $dir 2>&1` =~ /^(v=DKIM1;.*)$/m;
Petrel::spit("$dir/records", "s1._domainkey.a.test $record\n");
my ($sink, $narrow) = (Sink->start, Sink->start('--no-8bitmime'));
my $petrel = Petrel->new(relay_from => '127.0.0.1', local_domains => 'here.test', log_style => 'petrel', dkim_keys => $dir,
    routes => "wide.test smtp://127.0.0.1:$sink->{port}\nnarrow.test smtp://127.0.0.1:$narrow->{port}")->start;

my @corpus = sort map { glob "$corpus/$_" } 'mime4j/*/*.msg', 'cpython/*.txt', 'enmime/*/*.raw', 'enmime/*/*/*.raw', 'postfix/*.in';
my $client = Client->greeted($petrel->{port});
my @refused;
for my $i (0 .. $#corpus) {
    my %mail = (from => 'ann@a.test', to => ["$i\@wide.test", "$i\@narrow.test"], data => Petrel::slurp($corpus[$i]) =~ s/\r?\n/\r\n/gr);
    $mail{data} .= "\r\n" if $mail{data} !~ /\r\n\z/;
    my $reply = $i % 2 ? $client->send(%mail) : $client->send_chunks([500, 1], %mail);
    push @refused, "$corpus[$i]: $reply" if $reply !~ /^250/;
}
$client->quit;
cmp_ok scalar(@corpus), '>=', 200, 'the messages';

is "@refused", '', 'are taken';
ok $petrel->wait_empty(120), 'and sent';

sub name_of { my ($i) = shift->{to}[0] =~ /^(\d+)@/; return basename($corpus[$i]) }
sub names_of { my %names = map { name_of($_) => 1 } @_; return join ' ', sort keys %names }
my @came = ($sink->messages, $narrow->messages);
my @signed = grep { $_->{data} =~ /\ADKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=a\.test;/ } @came;
my %is_signed = map { $_->{file} => 1 } @signed;
is scalar(@came), 2 * @corpus, 'all of them twice';
is names_of(grep { !$is_signed{ $_->{file} } } @came), '', 'all are signed: a header that is broken is repaired before';
my $log = $petrel->log;
unlike $log, qr/not signed/, 'none is warned of';
cmp_ok scalar(grep { $_->{data} =~ /[\x80-\xff]/ } @signed), '>=', 10, 'some have 8 bits';
cmp_ok Petrel::count($log, qr/: converted for /), '>=', 5, 'and some of these are converted';

# --- The verifiers

Petrel::spit("$dir/list", join "\n", map { $_->{file} } @signed);
my (@failed, @survived);
my @lines = `xargs -a $dir/list /usr/bin/python3 t/e2e/dkim_verify.py --every 1 $dir/records`;
for my $i (0 .. $#signed) {
    my ($results, $left) = ($lines[$i] // '') =~ /^\S+ (.*) (\d+)$/ or next;
    # Behind ours are those that the message came with: there is no record of them.
    push @failed, $signed[$i] if $results !~ /^pass\b/;
    push @survived, $signed[$i] if $left > 0;
}
is scalar(@lines), scalar(@signed), 'dkimpy reads all of them';
is names_of(@failed), $known{dkimpy}, 'and verifies them, but for those it cannot read';
is names_of(@survived), '', 'every change of a signed field or of the body, or one more such field, breaks it';

Petrel::spit("$dir/opendkim.conf", "Mode v\nTestDNSData file:$dir/records\n");
my @wrong = grep { `$opendkim -x $dir/opendkim.conf -t $_->{file} 2>&1` !~ /verification \(s=s1,? d=a\.test[^)]*\) succeeded/ } @signed;
is names_of(@wrong), $known{opendkim}, 'OpenDKIM verifies them, too';
my %cannot = map { $_ => 1 } map { split } values %known;
is scalar(grep { my $m = $_; $cannot{ name_of($m) } && grep({ $_ eq $m } @failed) && grep({ $_ eq $m } @wrong) } @signed), 0, 'each is verified by one of them';

is $petrel->stop, 0, 'it ends well';
done_testing;
