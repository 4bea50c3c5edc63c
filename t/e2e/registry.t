#!/usr/bin/perl
# The registry of a daemon that has given up what it does not need (user, sandbox): Redis by a name and by TLS that is
# verified, and a directory.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use Cluster;
use Test::More;

my $dir = tempdir('registry-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;
my @user = $> == 0 ? (user => 'nobody') : ();

# A certificate that is its own CA.
sub certificate { my $name = shift;
    my ($code, $out) = Petrel::command('', qw(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30), '-subj', "/CN=$name",
        '-addext', "subjectAltName=DNS:$name", '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem");
    die $out if $code;
    return "$dir/$name" }

# Two hosts: what reaches the second goes to the first.
sub meet { my ($name, @hosts) = @_;
    my $set = make_set(2);
    waits($hosts[0], $set, 1, $name);
    is fragments($hosts[0])->{registry}, 'up', 'the registry is up';
    ok send_part($hosts[1], $set, 2), 'part 2 at another';
    is_whole($set, $name);
    is_deeply [map { complaints($_) } @hosts], [], 'no complaint';
    is Petrel::slurp("/proc/$hosts[0]{pid}/status") =~ /^Uid:\s*(\d+)/m ? $1 : '', @user ? 65534 : $>, 'as the user who should be';
    return ends($name, @hosts) }

mkdir "$dir/shared" and (@user ? chown 65534, 65534, "$dir/shared" : 1) or die;
meet('dir', hosts("dir:$dir/shared", @user));

# The directory is moved away and made anew; nobody restarts. Waiting sets are claimed again.
sub make_shared { my $place = shift; return mkdir($place, 0755) && (@user ? chown 65534, 65534, $place : 1) || die "$place: $!" }
{
    mkdir "$dir/registry" or die;
    make_shared("$dir/registry/shared");
    my @hosts = hosts("dir:$dir/registry/shared", @user);
    my $set = make_set(3);
    waits($hosts[0], $set, 1, 'moved');
    rename "$dir/registry/shared", "$dir/registry/away" or die;
    ok $_->wait_log(qr{the registry dir:\S+/shared does not answer, this host works alone: No such file or directory}), "$_->{name} has lost it" for @hosts;
    my $other = make_set(2);
    waits($hosts[1], $other, 1, 'meanwhile');
    make_shared("$dir/registry/shared");
    ok $_->wait_log(qr{the registry dir:\S+/shared answers again}), "$_->{name} has it again" for @hosts;
    ok $_->wait_log(qr{the registry dir:\S+/shared has forgotten this host, which claims its messages again}), 'and finds it empty' for @hosts;
    ok wait_figure($hosts[1], 'alone', 0), 'all is claimed';
    ok send_part($hosts[1], $set, 2), 'another part at another';
    ok send_part($hosts[2], $set, 3), 'the last at the third';
    is_whole($set, 'moved');
    is figure('reassembled', $hosts[0]), 1, 'at the host of the first part';
    ok send_part($hosts[2], $other, 2), 'the other part of what came meanwhile';
    is_whole($other, 'meanwhile');
    is_deeply [map { grep { !/does not answer, this host works alone|trouble=registry_down/ } complaints($_) } @hosts], [], 'no other complaint';
    ends('moved', @hosts);
}

SKIP: {
    skip 'built without hiredis', 1 if (Petrel->new->run('check', '-o', 'defrag_registry=redis://h'))[1] =~ /without hiredis/;
    my ($good, $other) = map { certificate($_) } qw(redis.localhost other.localhost);
    my $port = Petrel::free_port();
    my $redis = Cluster::redis("port 0\ntls-port $port\ntls-cert-file $good.pem\ntls-key-file $good.key\ntls-auth-clients no\n"
        . "tls-ca-cert-file $good.pem\nrequirepass s%cret\n") or skip 'no Redis here', 1;
    my %password = (defrag_registry_password => 's%cret');
    meet('rediss', hosts("rediss://redis.localhost:$port/3", @user, %password, tls_ca => "$good.pem"));
    # Nobody vouches for it; or it is another one.
    for my $case (["rediss://redis.localhost:$port", $other, qr/TLS: /], ["rediss://other.localhost:$port", $good, qr/TLS: certificate does not name other\.localhost/]) {
        my ($url, $ca, $why) = @$case;
        my @hosts = hosts($url, @user, %password, tls_ca => "$ca.pem");
        ok $hosts[0]->wait_log(qr/the registry \Q$url\E\S* does not answer, this host works alone: $why/), "$url: is told";
        my $set = make_set(2);
        ok send_part($hosts[0], $set, $_), "part $_" for 1, 2;
        is_whole($set, 'joined by one host alone');
        unlike $_->log, qr/s%cret/, 'no password in the log' for @hosts;
        ends($url, @hosts);
    }
}
done_testing();
