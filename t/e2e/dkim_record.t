#!/usr/bin/perl
# Key records in DNS, asked of a real name server when a key has signed: a record that does not fit is one warning, which has
# the record to publish; mail leaves signed all the same.
use lib 't/e2e';
use E2E;
use Nsd;

plan skip_all => 'no nsd' unless Nsd->available;

my $dir = tempdir('dkim-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$dir/$_" for 'keys', 'nsd', 'other';
my %cases = (good => '', none => 'has no TXT record', several => 'has more than one TXT record', revoked => 'has a revoked key (p= is empty)',
    other => 'has another key (p=)', spf => 'has a TXT record that is not one of DKIM');
my (%record, $zone);
for my $case (sort keys %cases) {
    ($zone, $record{$case}) = `$Petrel::binary dkim-key $case.test s1 --directory $dir/keys 2>&1` =~ /^(s1\S+ 3600 IN TXT .*)\n.*\n(v=DKIM1;.*)$/m or die;
    ($zone) = `$Petrel::binary dkim-key $case.test s1 --bits 1024 --directory $dir/other 2>&1` =~ /^(s1\S+ 3600 IN TXT .*)$/m if $case eq 'other';
    my $name = "s1._domainkey.$case.test.";
    Petrel::spit("$dir/$case.zone", "$case.test. 60 IN SOA ns.$case.test. x.$case.test. 1 60 60 60 60\n$case.test. 60 IN NS ns.$case.test.\n" . {
        good => "$zone\n", other => "$zone\n", none => '', several => "$zone\n$name 60 IN TXT \"v=DKIM1; p=\"\n",
        revoked => "$name 60 IN TXT \"v=DKIM1; k=rsa; p=\"\n", spf => "$name 60 IN TXT \"v=spf1 -all\"\n" }->{$case});
}
my $nsd = Nsd->start("$dir/nsd", map { ("$_.test" => "$dir/$_.zone") } keys %cases);
my $sink = Sink->start;
my $petrel = Petrel->new(relay_from => '127.0.0.1', local_domains => 'here.test', log_style => 'petrel', dns_servers => "127.0.0.1:$nsd->{port}",
    dkim_keys => "$dir/keys", routes => "* smtp://127.0.0.1:$sink->{port}")->start;
for my $round (1, 2) {
    for my $case (sort keys %cases) {
        my $client = Client->greeted($petrel->{port}) or die;
        like $client->send(from => "x\@$case.test", to => ["$case$round\@b.test"], data => "From: x\@$case.test\r\n\r\nx\r\n"), qr/^250/, "mail of $case.test";
        $client->quit;
        like $sink->wait_for("$case$round\@b.test")->{data}, qr/\ADKIM-Signature:.*? d=$case\.test;/s, 'leaves signed';
        my $said = qr/warning: dkim_keys: s1\._domainkey\.$case\.test \Q$cases{$case}\E: receivers cannot verify mail signed for $case\.test; publish this TXT record there, and no other: \Q$record{$case}\E$/m;
        ok $petrel->wait_log($said), "a warning: it $cases{$case}" if $cases{$case};
    }
}
is Petrel::count($petrel->log, qr/warning: dkim_keys:/), keys(%cases) - 1, 'one for each that does not fit, however often it signs';
my $findings = sub { return join ' ', sort map { $_->{subject} } grep { $_->{code} eq 'dkim_failed' } @{ decode_json(($petrel->run(qw(status --json)))[1])->{findings} } };
my $failing = join ' ', sort map { "s1._domainkey.$_.test" } grep { $cases{$_} } keys %cases;
ok Petrel::wait_for(sub { $findings->() eq $failing }), 'each is a finding dkim_failed' or diag $findings->();
like +($petrel->run('status'))[1], qr/^warning +dkim_failed s1\._domainkey\.none\.test: it has no TXT record: receivers cannot verify its signatures/m, 'which says why';

# The record that it says to publish is the wanted one.
Petrel::spit("$dir/none.zone", Petrel::slurp("$dir/none.zone") . 's1._domainkey.none.test. 60 IN TXT ' . join(' ', map { "\"$_\"" } unpack '(a255)*', $record{none}) . "\n");
$nsd->stop;
$nsd->again;
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/recovered=dkim_failed.*s1\._domainkey\.none\.test/), 'which ends with a reload';
is $petrel->stop, 0, 'it ends well';
$petrel->start;
my $client = Client->greeted($petrel->{port}) or die;
like $client->send(from => "x\@$_.test", to => ["again\@$_.test"], data => "From: x\@$_.test\r\n\r\nx\r\n"), qr/^250/, "mail of $_.test" for 'none', 'spf';
$client->quit;
ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/warning: dkim_keys: \S+spf\.test/) == 2 }), 'after a start it is asked for again';
is Petrel::count($petrel->log, qr/warning: dkim_keys: \S+none\.test/), 1, 'and the record that was published fits';
is $petrel->stop, 0, 'it ends well';
done_testing;
