#!/usr/bin/perl
# SIGKILL at random moments while refresh tokens are exchanged: no login is lost, and no mail. The provider ends an old
# refresh token as soon as the new one, or the access token that came with it, is used.
#
# SEED=n repeats the moments; ROUNDS=200 makes it longer.
use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep time);
use lib 't/e2e';
use OAuth;
use Petrel;

plan skip_all => OAuth::missing() if OAuth::missing();
my $seed = $ENV{SEED} || time;
my $rounds = $ENV{ROUNDS} || 8;
srand $seed;
diag "SEED=$seed ROUNDS=$rounds";

my $provider = OAuth->start('slow seconds=0.02');
my $petrel = Petrel->new($provider->settings('refresh=@' . $provider->first), minimal_backoff_time => '1s', maximal_backoff_time => '2s',
    smtp_connection_cache_time_limit => '0s');
my $stated = sub { grep { m{/[0-9a-f]{16}\z} } glob "$petrel->{settings}{spool}/oauth/*" };

my ($taken, $between) = (0, 0);
for my $round (1 .. $rounds) {
    OAuth::expire($petrel); # the next start exchanges the refresh token
    my $before = () = $provider->events(qr/^granted/);
    my $read = join '', map { Petrel::slurp($_) } $stated->();
    $petrel->start;
    $taken += $petrel->send_mail('a@b.test', "m$round\@y.test", "Subject: s\n\nb\n") =~ /queued as/;
    sleep rand 0.15;
    $petrel->kill9;
    my $granted = () = $provider->events(qr/^granted/);
    $between++ if $granted > $before && $read eq join '', map { Petrel::slurp($_) } $stated->();
}
$provider->mode('ok');
OAuth::expire($petrel);
$petrel->start;
is $taken, $rounds, 'all mail was taken';
ok Petrel::wait_for(sub {
    my %arrived = map { $_ => 1 } $provider->events(qr/^mail /);
    return keys %arrived == $rounds;
}), 'and arrives';
is scalar($provider->events(qr/^lost/)), 0, 'no refresh token was lost';
ok $petrel->wait_empty, 'nothing is left';
is scalar($stated->()), 1, 'one file of state';
$petrel->stop;
is scalar(grep { /canary/ } split /\n/, $petrel->log), 0, 'no secret in the log';
my $answers = () = $provider->events(qr/^granted/);
diag "$answers tokens; $between times it was killed between the answer and its file";
cmp_ok $answers, '>', 1, 'tokens were exchanged';
done_testing();
