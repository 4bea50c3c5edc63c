#!/usr/bin/perl
# Storms over three hosts that share the defragment channel, by a directory and by a real Redis: while fragments come in
# at random the registry dies or a host is killed, and comes back. Every fragment that was accepted arrives, joined or
# as it was; none is bounced.
#
# ROUNDS=n makes it longer; SEED=n repeats the choices, not the interleaving.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use List::Util qw(shuffle);
use Cluster;
use Test::More;

my $rounds = $ENV{ROUNDS} || 3;
my $redis = Cluster::redis();
my $shared = tempdir('shared-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my %hosts = (dir => [hosts("dir:$shared", server_session_limit => 50)]);
my $without = ($hosts{dir}[0]->run('check', '-o', 'defrag_registry=redis://h'))[1] =~ /without hiredis/;
$hosts{redis} = [hosts($redis->url)] if $redis && !$without;

# The directory takes no files; it does again.
sub break_directory { my $break = shift;
    for my $place (map { sprintf "$shared/%02x", $_ } 0 .. 255) {
        if ($break) { rename $place, "$place.away"; Petrel::spit($place, '') }
        else { unlink $place; rename "$place.away", $place }
    }
    return }

# Events, by name: first it goes, later it comes back.
my %storms = (
    host => sub { my ($host, $kind) = @_; return (sub { $host->kill9; delete $host->{client} }, sub { $host->start }) },
    stop => sub { my ($host, $kind) = @_; return (sub { $host->stop; delete $host->{client} }, sub { $host->start }) },
    registry => sub { my ($host, $kind) = @_;
        return $kind eq 'dir' ? (sub { break_directory(1) }, sub { break_directory(0) })
            : (sub { $redis->kill_redis }, sub { $redis->start_redis }) },
);

# All that the hosts have said of a set and its messages.
sub history { my ($id, @hosts) = @_;
    my %log = map { $_->{name} => [split /\n/, $_->log] } @hosts;
    my %names = map { $_ => 1 } map { grep { /\Q$id\E/ } @$_ } values %log;
    my ($queued) = map { qr/$_/ } join '|', map { /: ([0-9A-Z]{10}-[0-9A-Z]{8}): / ? $1 : () } keys %names;
    my %wholes = map { /continues in (\S+?)\)/ ? ($1 => 1) : () } grep { /$queued/ } map { @$_ } values %log;
    ($queued) = map { qr/$queued|$_/ } join '|', keys %wholes if %wholes;
    return join "\n", '', sort map { my $host = $_; map { s/ /  $host  /r } grep { /$queued/ } @{ $log{$host} } } keys %log }

for my $round (1 .. $rounds) {
    my ($kind) = grep { $hosts{$_} } $round % 2 ? qw(redis dir) : qw(dir);
    my @hosts = @{ $hosts{$kind} };
    my @sets = map { make_set(2 + int rand 4) } 1 .. 30;
    my @all = shuffle map { my $s = $_; map { [$s, $_] } 1 .. @{ $s->{parts} } } @sets;
    # Two things happen, somewhere in the middle, for a while.
    my (%at, @what);
    for my $storm ('registry', (shuffle qw(host host stop))[0]) {
        my ($goes, $comes) = $storms{$storm}->($hosts[ rand @hosts ], $kind);
        my ($from, $to) = sort { $a <=> $b } map { int rand @all } 1 .. 2;
        push @{ $at{$from} }, $goes;
        push @{ $at{ $to + 1 } }, $comes;
        push @what, "$storm away from $from to $to";
    }
    my (%accepted, $tries);
    for my $i (0 .. @all) {
        $_->() for @{ $at{$i} || [] };
        last if $i == @all;
        my ($set, $n) = @{ $all[$i] };
        # A host that is away, or dies before it answers, is no reason not to ask another.
        $tries++ until send_part($hosts[ rand @hosts ], $set, $n);
        $accepted{ $set->{parts}[ $n - 1 ] } = $set;
    }
    is scalar(keys %accepted), scalar @all, "round $round ($kind; " . join(', ', @what) . '): all ' . @all . ' parts are taken, by one or another';
    # Those that can meet do, within the time in which who was away is asked again; the others are let go.
    my %arrived;
    my $look = sub { $arrived{$_}++ for arrivals(); return !grep { !$arrived{ $_->{whole} } } @sets };
    Petrel::wait_for(sub { $look->(); return grep { $arrived{ $_->{whole} } } @sets });
    Petrel::wait_for($look, 8);
    my $joined = grep { $arrived{ $_->{whole} } } @sets;
    Petrel::wait_for(sub { $arrived{$_}++ for let_go(0, @hosts); return !grep { $_->queued } @hosts }, 3 * $Petrel::patience);
    $look->();
    my @lost = grep { !$arrived{$_} && !$arrived{ $accepted{$_}{whole} } } keys %accepted;
    is_deeply \@lost, [], 'each arrives';
    diag history($accepted{$_}{id}, @hosts) for @lost;
    my %known = map { $_ => 1 } keys %accepted, map { $_->{whole} } @sets;
    is_deeply [grep { !$known{$_} } keys %arrived], [], 'and nothing else';
    note "$joined of 30 sets joined";
    cmp_ok $joined, '>', 0, 'some joined';
    is_deeply [grep { /status=bounced| error: |sandbox: system call/ } map { complaints($_) } @hosts], [], 'nothing is bounced';
}
for my $host (map { @$_ } values %hosts) {
    is $host->stop, 0, "$host->{name} ends well";
    unlike $host->log, qr/has the name/, 'and was never thought to be two';
}
done_testing();
