#!/usr/bin/perl
# Two instances of one spool keep and post events each by itself: files, order and what was taken; over a kill of one.
use lib 't/e2e';
use E2E;
use Hook;

plan skip_all => Hook->missing if Hook->missing;
my @hooks = map { Hook->start('500') } 0, 1;
my $sink = Petrel::sink();
my %common = (relay_from => '127.0.0.1', relay => "smtp://127.0.0.1:$sink->{port}?tls=none", events_linger => '20ms', slices => 2);
my $first = Petrel->new(%common, slice => 0, control => undef, events => $hooks[0]->url);
my $second = Petrel->new(%common, slice => 1, control => undef, events => $hooks[1]->url, spool => $first->{settings}{spool});
my @slices = ($first, $second);
$_->start for @slices;
my (@sent, %of);
for my $n (1 .. 8) {
    my $slice = $n % 2;
    my ($id) = $slices[$slice]->send_mail('app@example.org', "r$n\@a.example", "X-Petrel-Tag: n$n\n\nhello") =~ /queued as (\S+)/ or die;
    $of{$id} = $slice;
}
my $spool = $first->{settings}{spool};
my @kept = map { "$spool/events/$_" } '0000-0511', '0512-1023';
ok Petrel::wait_for(sub { 2 == grep { my @files = glob "$_/0*"; @files > 0 } @kept }), 'each has files of its own';
ok !(grep { -f } glob "$spool/events/*"), 'and nothing is in common';
for my $slice (0, 1) {
    my @mine = grep { $of{$_} == $slice } keys %of;
    ok Petrel::wait_for(sub { my $lines = join '', map { Petrel::slurp($_) } glob "$kept[$slice]/0*"; !grep { $lines !~ /"message":"$_"/ } @mine }), 'its events are there';
    my $lines = join '', map { Petrel::slurp($_) } glob "$kept[$slice]/0*";
    ok !(grep { $lines =~ /"message":"$_"/ } grep { $of{$_} != $slice } keys %of), 'those of the other are not';
}
$first->kill9;
$_->mode('200') for @hooks;
kill 'HUP', $second->{pid};
sub have { my $slice = shift; my %d = map { $_->{message} => 1 } grep { $_->{type} eq 'delivered' } $hooks[$slice]->taken; return join ' ', sort grep { $d{$_} } keys %of }
sub want { my $slice = shift; return join ' ', sort grep { $of{$_} == $slice } keys %of }
ok Petrel::wait_for(sub { have(1) eq want(1) }), 'one posts while the other is dead';
$first->start;
ok Petrel::wait_for(sub { have(0) eq want(0) }), 'which goes on after a start';
is have(1), want(1), 'each has posted its own';
for my $slice (0, 1) {
    my %seen;
    my @first = grep { !$seen{ $_->{id} }++ } $hooks[$slice]->taken;
    ok !(grep { $first[$_]{time_ms} < $first[ $_ - 1 ]{time_ms} } 1 .. $#first), 'in order';
}
is $_->stop, 0, 'it ends well' for @slices;
$_->stop for @hooks;
done_testing;
