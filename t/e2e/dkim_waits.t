#!/usr/bin/perl
# DKIM of mail that has waited: over a restart or a kill, also under other settings; as fragments that are reassembled; and
# converted after that. Mail of an untrusted client stays unsigned.
use lib 't/e2e';
use E2E;
use Fragments;

plan skip_all => 'needs dkimpy and PyNaCl (python3-dkim python3-nacl)' if system('/usr/bin/python3 -c "import dkim, nacl" 2>/dev/null') != 0;

my $dir = tempdir('dkim-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$dir/keys";
my $records = '';
for my $selector ('s1', 's2') {
    my ($record) = `$Petrel::binary dkim-key a.test $selector --directory $dir/keys 2>&1` =~ /^(v=DKIM1;.*)$/m;
    $records .= "$selector._domainkey.a.test $record\n";
}
Petrel::spit("$dir/records", $records);

my ($sink, $narrow) = (Sink->start, Sink->start('--no-8bitmime'));
my %settings = (relay_from => '127.0.0.1', local_domains => 'mine.test', log_style => 'petrel',
    routes => "narrow.test smtp://127.0.0.1:$narrow->{port}?defragment=yes\n* smtp://127.0.0.1:$sink->{port}?defragment=yes",
    dkim_keys => "a.test s1 $dir/keys/s1._domainkey.a.test.pem");
my $petrel = Petrel->new(%settings)->start;

# "SELECTOR pass" for each signature of the mail to an address.
sub signatures {
    my ($to, $at) = @_;
    my $mail = ($at // $sink)->wait_for($to) or return 'nothing came';
    my @selectors = $mail->{data} =~ /^DKIM-Signature:.*?\bs=(\w+);/msg;
    my ($results) = `/usr/bin/python3 t/e2e/dkim_verify.py --every 1 $dir/records $mail->{file}` =~ /^\S+ (.*) 0$/;
    my @results = split / /, $results // 'a change does not break it';
    return @selectors ? join ', ', map { "$selectors[$_] $results[$_]" } 0 .. $#selectors : 'none';
}
sub taken {
    my ($to, $data, $address) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => $address // '127.0.0.1') or die 'no greeting';
    my $reply = $client->send(from => 'ann@a.test', to => [$to], mail_parameters => $data =~ /[\x80-\xff]/ ? 'BODY=8BITMIME' : '', data => $data =~ s/\r?\n/\r\n/gr);
    $client->quit;
    return like $reply, qr/^250 /, "taken: $to";
}
my $letter = "From: ann\@a.test\nSubject: it waits\n\nbody  \n\n";

# --- Restarts

$_->stop for $sink, $narrow;
taken("$_\@b.test", $letter) for 'first', 'second';
ok $petrel->wait_log(qr/to=<second\@b\.test>.*status=deferred/), 'nobody is there';
is $petrel->stop, 0, 'a stop';
$sink->again;
$petrel->start;
$petrel->run('queue', 'retry', '--all');
is signatures("$_\@b.test"), 's1 pass', "signed after it: $_" for 'first', 'second';

$sink->stop;
taken("killed\@b.test", $letter);
ok $petrel->wait_log(qr/to=<killed\@b\.test>.*status=deferred/), 'nobody is there again';
ok $petrel->wait_filed, 'it is in files';
$petrel->kill9;
$petrel->configure(%settings, dkim_keys => "$dir/keys");
$sink->again;
$petrel->start;
$petrel->run('queue', 'retry', '--all');
is signatures('killed@b.test'), 's1 pass, s2 pass', 'after a kill by the keys that there are now';
$narrow->again('--no-8bitmime');

# --- Fragments

# Three parts of a message; those named in @untrusted come from a client that may not relay.
sub send_parts {
    my ($id, $to, $whole, @untrusted) = @_;
    my @bodies = Fragments::cut($whole, 3);
    for my $number (1 .. 3) {
        my $part = Fragments::part($id, $number, 3, $bodies[$number - 1]) =~ s/^From: .*$/From: ann\@a.test/mr;
        taken($to, $part, (grep { $_ == $number } @untrusted) ? '127.0.0.2' : '127.0.0.1');
    }
    return;
}
my $inner = "From: ann\@a.test\nSubject: whole\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n";
my $whole = $inner . join '', map { "line $_  with  blanks \n" } 1 .. 30;
my $eight = $whole =~ s/blanks/bl\xc3\xa4nks/gr;
send_parts('plain@x', 'plain@b.test', $whole);
is signatures('plain@b.test'), 's1 pass, s2 pass', 'a reassembled message';
send_parts('eight@x', 'eight@b.test', $eight);
is signatures('eight@b.test'), 's1 pass, s2 pass', 'one of 8 bits';
send_parts('narrow@x', 'eight@narrow.test', $eight);
is signatures('eight@narrow.test', $narrow), 's1 pass, s2 pass', 'one that is converted for its host';
unlike(($narrow->for_address('eight@narrow.test'))[0]{data}, qr/[\x80-\xff]/, 'which it was');
send_parts('ours@x', 'ours@mine.test', $whole);
is signatures('ours@mine.test'), 's1 pass, s2 pass', 'one to a domain that everybody may write to';
send_parts('theirs@x', 'theirs@mine.test', $whole, 1 .. 3);
is signatures('theirs@mine.test'), 'none', 'but not from an untrusted client';
like +($sink->for_address('theirs@mine.test'))[0]{data}, qr/^line 30 /m, 'which is reassembled, too';

# The parts come before and after a restart.
my @bodies = Fragments::cut($whole, 2);
my @parts = map { Fragments::part('halves@x', $_, 2, $bodies[$_ - 1]) =~ s/^From: .*$/From: ann\@a.test/mr } 1, 2;
taken('halves@b.test', $parts[1]);
ok $petrel->wait_log(qr{partial=halves\@x,.*status=waiting}), 'half of a message';
$petrel->kill9;
$petrel->start;
taken('halves@b.test', $parts[0]);
is signatures('halves@b.test'), 's1 pass, s2 pass', 'is signed with the other half, after a kill';

is $petrel->stop, 0, 'it ends well';
done_testing;
