#!/usr/bin/perl
# Every command with --json has a schema, which the real thing fulfils, and which finds what is missing, new, or of another type.
# Tests that read JSON check it in passing: Schema.pm.
use lib 't/e2e';
use E2E;
use FindBin;
use Schema;

plan skip_all => 'python3-jsonschema is not installed' if system("python3 -c 'import jsonschema' 2>/dev/null") != 0;
my $dir = tempdir('schemas-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $dead = Petrel::free_port();
my $petrel = Petrel->new(suppress => 'yes', routes => "dead.test smtp://127.0.0.1:$dead\n* hold")->start;
my $body = "From: a\@b.test\nSubject: hi\n\nletter";
my ($late) = $petrel->send_mail('me@here.test', ['x@dead.test'], $body) =~ /queued as (\S+)/;
my ($held) = $petrel->send_mail('me@here.test', ['x@y.test', 'é@y.test'], $body) =~ /queued as (\S+)/;
ok $petrel->wait_log(qr/ $late: to=.*status=deferred/) && $petrel->wait_log(qr/$held: held/) && $petrel->wait_filed, 'mail waits';

is +($petrel->run(qw(suppress add z@y.test gone)))[0], 0, 'an address is suppressed';

# Whether an object fulfils the schema.
sub valid {
    my ($kind, $object) = @_;
    Petrel::spit("$dir/record", JSON::PP->new->utf8->encode({ kind => $kind, object => $object }) . "\n");
    return system("python3 $FindBin::Bin/schema.py $dir/record 2>$dir/said") == 0;
}

my $other = Petrel::spit("$dir/msmtprc", "account default\nhost smtp.provider.example\nfrom me\@here.test\n");
my %line = (version => 'version', import => "import $other", check => 'check', status => 'status', 'status-site' => "status --site smtp:[127.0.0.1]:$dead", trace => "trace --json $late", 'oauth-status' => 'oauth status', 'queue-ls' => 'queue ls', 'queue-show' => "queue show $late",
    'queue-why' => "queue why $late", 'queue-shape' => 'queue shape', 'queue-change' => "queue hold $late", 'suppress-ls' => 'suppress ls');
my %any = (check => 1); # of a member for each setting
for my $kind (sort keys %line) {
    my @words = split / /, $line{$kind};
    push @words, '--json' unless $words[1] && $words[1] eq '--json';
    is Schema::kind(@words), $kind, "$line{$kind}: its schema";
    my ($code, $text) = $petrel->run(@words);
    is $code, 0, 'exit code 0' or diag $text;
    my ($first) = Schema::objects($text);
    my $object = decode_json($first // '{}');
    ok valid($kind, $object), 'the real thing fulfils it' or diag Petrel::slurp("$dir/said");
    my ($some) = grep { !ref $object->{$_} } sort keys %$object;
    $some //= (sort keys %$object)[0];
    ok !valid($kind, { map { $_ => $object->{$_} } grep { $_ ne $some } keys %$object }), "but not without $some";
    ok !valid($kind, { %$object, $some => { a => [] } }), "nor with another type of $some";
    ok !valid($kind, { %$object, nonsense => {} }), 'nor with what is not there' unless $kind eq 'status'; # its parts are many rooms'
}

# Copies and adoption, in the status of a daemon that has them.
my $copier = Petrel->new(copies => "redis://127.0.0.1:$dead", copies_required => 'no', cluster_host => 'one')->start;
my $status = decode_json(($copier->run(qw(status --json)))[1]);
my $copies = $status->{copies};
ok valid('status', $status), 'the status of copies' or diag Petrel::slurp("$dir/said");
# Settings that are warned of: the warnings are no part of the object.
{
    my ($code, $text) = Petrel::command('', $Petrel::binary, '-c', '/dev/null', '-o', "copies=redis://127.0.0.1:$dead", qw(-o suppress=yes -o hostname=here -o spool=here check --json));
    my ($first) = Schema::objects($text);
    ok $code == 0 && $text =~ /^main: warning: /m, 'check warns of settings';
    ok valid('check', decode_json($first // '{}')), 'and its JSON fulfils the schema' or diag $text;
}
ok !valid('status', { %$status, copies => { %$copies, nonsense => 1 } }), 'but not with what is not there';
ok !valid('status', { %$status, copies => { map { $_ => $copies->{$_} } grep { $_ ne 'adopted' } keys %$copies } }), 'nor without what is';

# Each command of the usage that has --json is among them.
my %known = map { (split / /, $line{$_})[0] => 1 } keys %line;
for my $command ((Petrel::command('', $Petrel::binary, 'help'))[1] =~ /^  ([a-z][-a-z]*) +\S/mg) {
    my $help = (Petrel::command('', $Petrel::binary, 'help', $command))[1];
    ok $known{$command}, "$command --json has a schema" if $help =~ /--json/ && $command !~ /^(?:doctor|cluster)$/; # doctor.t, group.t
}
is_deeply [sort map { m{([^/]+)\.json$} } glob "$FindBin::Bin/schema/*.json"], [sort 'cluster', 'doctor', 'fragments', 'queue-change-cluster', 'queue-cluster', 'series', 'status-cluster', keys %line], 'and there are no others but those of HTTP, of doctor.t, group.t and cluster_view.t';

# Objects that a test would record, and others.
is Schema::kind('-c', 'x', 'queue', 'rm', '--json', '--all'), 'queue-change', 'flags may stand anywhere';
is Schema::kind('queue', 'ls', '--cluster', '--json'), 'queue-cluster', 'of all hosts';
is Schema::kind('status'), undef, 'no JSON, no schema';
is_deeply [Schema::objects(qq(petrel: warning: x\n{"a":1}\n{"b"\n[1]\n{"c":2}\n))], ['{"a":1}', '{"c":2}'], 'objects between other lines';
is_deeply [Schema::objects(qq(petrel: x\n{\n "a": {\n }\n}\nmain: y\n{\n}\n{\n))], [qq({\n "a": {\n }\n}), qq({\n})], 'of several lines, too';
is_deeply [Schema::objects(qq({\n "a": 1\n}\n))], [qq({\n "a": 1\n}\n)], 'an object of several lines';
done_testing;
