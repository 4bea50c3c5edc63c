#!/usr/bin/perl
# A host in a network namespace is cut off while it delivers; a sibling adopts its mail; then it is back. All that was
# acknowledged arrives, and again comes only what was under way. ROUNDS=n (1), CUT=180 for three minutes (25 s).
use lib 't/e2e';
use E2E;
use Cluster;
use Time::HiRes qw(sleep time);

plan skip_all => 'needs root, for a network namespace' if $> != 0 || !Petrel::have('ip');
my $space = "petrel$$";
system("ip netns add $space 2>/dev/null") == 0 or plan skip_all => 'this system allows no network namespace';
my @net = (100 + $$ / 250 % 100, $$ % 250);
my ($here, $there) = map { "10.$net[0].$net[1].$_" } 1, 2;
my ($outer, $inner) = map { "pt${$}$_" } 'a', 'b';
END { local $?; system "ip netns del $space 2>/dev/null; ip link del $outer 2>/dev/null" if $outer && $$ == ($ENV{CUT_OFF_PID} // 0) }
$ENV{CUT_OFF_PID} = $$;
my $made = system("ip link add $outer type veth peer name $inner && ip link set $inner netns $space && ip addr add $here/30 dev $outer && ip link set $outer up"
    . " && ip netns exec $space ip addr add $there/30 dev $inner && ip netns exec $space ip link set $inner up && ip netns exec $space ip link set lo up") == 0;
plan skip_all => 'this system allows no veth' unless $made;

# Packets vanish, both ways: they go to a card that nobody has.
sub cut { my $verb = shift; return system("ip neigh $verb $there lladdr 02:00:00:00:00:99 dev $outer nud permanent && ip netns exec $space ip neigh $verb $here lladdr 02:00:00:00:00:98 dev $inner nud permanent") == 0 }

my $redis = Cluster::redis("appendonly yes\nappendfsync always\nmaxmemory-policy noeviction\nbind 127.0.0.1 $here\nprotected-mode no\n") or plan skip_all => 'no redis-server here (Debian: redis-tools)';
my $url = "redis://$here:$redis->{port}/1";
my $sink = Sink->start("--listen", "$here:0");
my ($port) = $sink->{listen} =~ /:(\d+)\z/;
my $rounds = $ENV{ROUNDS} || 1;
my $cut_s = $ENV{CUT} || 25;
sub host {
    my ($name, $address, %more) = @_;
    my $host = Petrel->new(
        cluster => 'mail', cluster_host => $name, cluster_redis => $url, copies => $url, adopt_after => '5s', routes => "* smtp://$sink->{listen}?concurrency=4",
        minimal_backoff_time => '1s', maximal_backoff_time => '2s', relay_from => '10.0.0.0/8, 127.0.0.0/8', %more,
    );
    return $host->configure(listen => "127.0.0.1:$host->{port}" . ($address ? ", $address:$host->{port}" : ''));
}
sub copies_of { my $host = shift; return JSON::PP::decode_json($host->status || '{}')->{copies} // {} }
sub send_one {
    my ($address, $port, $number) = @_;
    my $client = Client->greeted($port, PeerAddr => $address) or return 0;
    my $reply = $client->send(from => 'a@x.test', to => ['b@y.test'], data => "Subject: number $number.\r\n\r\nbody\r\n");
    $client->quit;
    return $reply =~ /^250/;
}
my (%came, %read);
sub came { for my $file (grep { !$read{$_}++ } $sink->files) { $came{$1}++ if Petrel::slurp($file) =~ /^Subject: number (\d+)\./m } return \%came }

my $wrapper = Petrel::spit(tempdir(CLEANUP => 1) . '/petrel', "#!/bin/sh\nexec ip netns exec $space $Petrel::binary \"\$@\"\n");
chmod 0755, $wrapper;
my $far = host('relay1', $there);
$far->{pid} = Petrel::spawn($far->{log}, $wrapper, '-c', $far->conf, 'run');
my @near = map { host("relay$_", $here)->start } 2, 3;
ok Petrel::wait_for(sub { copies_of($_)->{ready} }), 'ready' for $far, @near;

my ($number, @accepted) = (0);
for my $round (1 .. $rounds) {
    $sink->tell($sink->{listen}, 'set delay.dot=3000');
    push @accepted, grep { send_one($there, $far->{port}, $_) } map { ++$number } 1 .. 120;
    cut('replace');
    my $begin = time;
    $sink->tell($sink->{listen}, 'set delay.dot=0');
    ok Petrel::wait_for(sub { grep { copies_of($_)->{adopted} } @near }, 60), 'a sibling adopts';
    my $rest = $cut_s - (time - $begin);
    sleep $rest if $rest > 0;
    cut('del');
    ok Petrel::wait_for(sub { my $came = came(); return !grep { !$came->{$_} } @accepted }, 90), 'all that was acknowledged arrives';
    ok Petrel::wait_for(sub { my $c = copies_of($far); $c->{ready} && !$c->{comparing} }, 90), 'the host is back';
    ok $_->wait_empty(60), 'nothing is left' for $far, @near;
}
my @lost = grep { !$came{$_} } @accepted;
came();
my $again = 0;
$again += $came{$_} - 1 for grep { $came{$_} } @accepted;
cmp_ok scalar @accepted, '>=', 100 * $rounds, 'mail was accepted';
is "@lost", '', 'nothing is lost';
cmp_ok $again, '<=', 4 * $rounds + 4, 'again came what was under way';
cmp_ok copies_of($far)->{given_up}, '>', 0, 'the host gave up what was adopted';
note sprintf 'accepted %d, delivered %d, again %d, lost %d, given up %d', scalar @accepted, scalar(grep { $came{$_} } @accepted), $again, scalar @lost, copies_of($far)->{given_up};
is $_->stop, 0, 'a good end' for @near;
kill 'TERM', $far->{pid};
waitpid delete $far->{pid}, 0;
is $?, 0, 'also there';

done_testing;
