#!/usr/bin/perl
# Slices of a spool on one port (?share): both get connections; who does not share it cannot start; a slice that stops
# answers all clients whom the kernel has told that they are connected.
use lib 't/e2e';
use E2E;

my $dir = File::Temp::tempdir('share-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($port, $tls) = (Petrel::free_port(), Petrel::free_port());
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", "$dir/keys"))[0], 0, 'certificates are made');

# Slice i of two; each has its own settings file and log.
sub slice {
    my ($i, %more) = @_;
    mkdir "$dir/$i";
    my $petrel = Petrel->new(dir => "$dir/$i", spool => "$dir/spool", slices => 2, slice => $i, routes => '* hold', tls_certificate => "$dir/keys/good.pem",
        tls_key => "$dir/keys/good.key", client_session_limit => 1000, %more);
    $petrel->{port} = $port;
    return $petrel;
}
sub accepted { my ($petrel, $at) = @_; my ($one) = grep { $_->{address} =~ /:$at$/ } @{ JSON::PP::decode_json($petrel->status)->{listeners} }; return $one->{accepted} }

my $listen = "127.0.0.1:$port?share, 127.0.0.1:$tls?tls&share";
my @slices = map { slice($_, listen => $listen)->start } 0, 1;
is scalar(grep { defined } @slices), 2, 'two slices on one port';
ok $slices[1]->wait_log(qr/listening on 127\.0\.0\.1:$tls by TLS, shared/), 'as the log says, also by TLS';
my $tried = 0;
ok Petrel::wait_for(sub { $tried++; my $client = Client->greeted($port) or return; $client->quit; !grep { accepted($_, $port) < 10 } @slices }), "both get connections ($tried)";
my $taken = 0;
for (1 .. 20) { my $client = Client->greeted($port) or next; $taken++ if $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: m\r\n\r\nm\r\n") =~ /^250 /; $client->quit }
is $taken, 20, 'both take mail';

# --- Slices that do not share

my $other = slice(1, listen => "127.0.0.1:$port", spool => "$dir/other");
my ($code, $said) = $other->run('run');
isnt $code, 0, 'a port that others share is not for one that does not';
like $said, qr/cannot listen on 127\.0\.0\.1:$port: Address already in use \(`ss -ltnp` shows/, 'told';
my $alone = Petrel->new(routes => '* hold')->start;
$other = slice(1, listen => "127.0.0.1:$alone->{port}?share", spool => "$dir/other");
($code, $said) = $other->run('run');
isnt $code, 0, 'nor is one that somebody has alone';
like $said, qr/cannot listen on 127\.0\.0\.1:$alone->{port}: Address already in use \(a program listens there without \?share/, 'told';
$alone->stop;
SKIP: {
    skip 'not root', 2 unless $> == 0;
    my $mine = Petrel::free_port();
    # As this user from the beginning: a port that root binds is root's.
    local $> = 54321;
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $mine, Listen => 1, ReusePort => 1) or die "no socket: $!";
    $> = 0;
    $other = slice(1, listen => "127.0.0.1:$mine?share", spool => "$dir/other");
    ($code, $said) = $other->run('run');
    isnt $code, 0, 'nor the port of another user';
    like $said, qr/or as another user/, 'told';
}

# --- A slice that stops

is $slices[0]->stop, 0, 'one slice stops';
my @clients;
kill 'STOP', $slices[1]{pid};
push @clients, Client->connect($port) // die 'not connected' for 1 .. 150;
kill 'TERM', $slices[1]{pid};
kill 'CONT', $slices[1]{pid};
my %first;
for (@clients) { $first{ substr $_->reply, 0, 3 }++; close $_->{socket} }
is_deeply [ grep { !/^(?:220|421)$/ } keys %first ], [], 'all clients that waited get an answer' or diag explain \%first;
is $slices[1]->stop, 0, 'and the slice ends well';
done_testing;
