#!/usr/bin/perl
# Three hosts that share the defragment channel by a directory: fragments that reach them in any order meet at one of
# them; a host is away, and the directory takes no files.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use Cluster;
use Test::More;

my $shared = tempdir('shared-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my @hosts = hosts("dir:$shared");
plain('dir', @hosts);
is_deeply [map { complaints($_) } @hosts], [], 'no host complains';
away('dir', @hosts);

# The owner is away, and an operator does not want to wait (check 50 without the waiting: t/unit/defrag/channel_shared.c).
my ($one, $two) = @hosts;
my $set = make_set(2);
waits($one, $set, 1, 'dir: an operator');
$one->kill9;
delete $one->{client};
ok send_part($two, $set, 2), 'the other part';
ok Petrel::wait_for(sub { ($two->run(qw(queue ls --json)))[1] =~ /goes to one, which reassembles it/ }), 'is to go to the first';
is_deeply [let_go(1, $two)], [$set->{parts}[1]], 'and is let go, as it is';
$one->start;
is_deeply [let_go(1, $one)], [$set->{parts}[0]], 'so is the other';

# It takes no files, and takes them again (check 48).
$set = make_set(2);
my @places = map { sprintf "$shared/%02x", $_ } 0 .. 255;
rename $_, "$_.away" for @places;
Petrel::spit($_, '') for @places;
ok send_part($hosts[0], $set, 1), 'dir: broken: a part is taken';
ok wait_figure($hosts[0], 'alone', 1), 'and waits here alone';
is fragments($hosts[0])->{registry}, 'down', 'the registry is down';
my $other = make_set(2);
ok send_part($hosts[1], $other, 1) && send_part($hosts[2], $other, 2), 'two hosts have one of another set each';
ok send_part($hosts[0], $set, 2), 'the first set is whole';
is_whole($set, 'and joined');
unlink @places;
rename "$_.away", $_ for @places;
is_whole($other, 'when all is well again the others meet');
ends('dir', @hosts);
my @left = grep { !/^one / } map { Petrel::slurp($_) } glob "$shared/id/*";
is_deeply \@left, [], 'who ends takes his name away (one was killed before)';
done_testing();
