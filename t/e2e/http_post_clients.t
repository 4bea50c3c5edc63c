#!/usr/bin/perl
# Mail by HTTP with the clients that programs use; what doc/openapi.yaml says; and each message once, over connections that are
# cut and a daemon that is killed.
use lib 't/e2e';
use E2E;

plan skip_all => 'python3 is not installed' unless my $python = Petrel::have('python3');

my $scratch = tempdir(CLEANUP => 1);
my $port = Petrel::free_port();
my $url = "http://127.0.0.1:$port/v1/messages";
my $petrel = Petrel->new(http => "127.0.0.1:$port", http_keys => "$scratch/keys", routes => 'held.test hold');
my ($key) = ($petrel->run('key', 'add', 'app', 'app@a.test'))[1] =~ /^(petrel_\S+)$/m;
$petrel->start;
sub client { my ($code, $out) = Petrel::command('', $python, '-W', 'ignore', 't/e2e/http_post_clients.py', @_); return $out }
my $accepted = qr/^202 \{'id': '\w{10}-\w{8}'\}$/;

like client('urllib', $url, $key), $accepted, 'urllib';
like client('chunks', $url, $key), qr/\A(?:202 \{'id': '\w{10}-\w{8}'\}\n){2}\z/, 'http.client in chunks, twice on a connection';
SKIP: {
    skip 'python3-requests is not installed', 1 if (Petrel::command('', $python, '-c', 'import requests'))[0] != 0;
    like client('requests', $url, $key), $accepted, 'requests';
}
SKIP: {
    skip 'Node is not installed', 1 unless my $node = Petrel::have('node');
    like +(Petrel::command('', $node, '-e', <<'END', $url, $key))[1], qr/^202 \w{10}-\w{8}$/m, 'fetch of Node';
const [url, key] = process.argv.slice(1);
fetch(url, {method: 'POST', headers: {Authorization: 'Bearer ' + key, 'Content-Type': 'application/json'},
    body: JSON.stringify({from: 'app@a.test', to: 'u@held.test', subject: 'grün', text: 'hello'})})
    .then(async r => console.log(r.status, (await r.json()).id));
END
}
SKIP: {
    skip 'python3-yaml or python3-jsonschema is not installed', 1 if (Petrel::command('', $python, '-W', 'ignore', '-c', 'import yaml, jsonschema'))[0] != 0;
    like client('schema', $url, $key, 'doc/openapi.yaml'), qr/^the description is right$/m, 'doc/openapi.yaml';
}

# --- Each once

my $number = 60;
my $many = Petrel::spawn("$scratch/many.log", $python, 't/e2e/http_post_clients.py', 'many', $port, $key, $number, $ENV{SEED} // 7, "$scratch/state");
sub accepted { return Petrel::count(Petrel::slurp("$scratch/state"), qr/\n/) }
for my $kill (1 .. 4) {
    Petrel::wait_for(sub { accepted() >= $kill * $number / 5 }, 120);
    $petrel->kill9;
    $petrel->start;
}
ok Petrel::wait_for(sub { accepted() == $number }, 240), 'all are accepted' or diag accepted(), Petrel::slurp("$scratch/many.log");
Petrel::reap($many);
my %sent;
for (grep { ($_->{recipients}[0]{address} // '') eq 'once@held.test' } map { decode_json($_) } split /\n/, ($petrel->run('queue', 'ls', '--json'))[1]) {
    my ($subject) = ($petrel->run('queue', 'cat', $_->{queue_id}))[1] =~ /^Subject: (number \d+)/m;
    push @{ $sent{$subject} }, $_->{queue_id};
}
is_deeply [sort map { "$_: @{ $sent{$_} }" } keys %sent], [sort map { /^(\d+) (\S+)/ ? "number $1: $2" : () } split /\n/, Petrel::slurp("$scratch/state")],
    'each once, by the id of its answer';
$petrel->stop;
done_testing;
