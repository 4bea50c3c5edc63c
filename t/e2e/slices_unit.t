#!/usr/bin/perl
# From one daemon to slices and back, as doc/cluster.md says, by the command line and the environment of etc/petrel@.service: all
# have one settings file; a daemon of another number of slices waits for the last old one; no message is lost or has two.
use lib 't/e2e';
use E2E;

my $unit = Petrel::slurp("$Petrel::root/etc/petrel\@.service");
my ($variable) = $unit =~ /^Environment=(\w+)=%i$/m;
is $variable, 'PETREL_SLICE', 'an instance says which slice it is';
my ($start) = $unit =~ m{^ExecStart=/usr/local/sbin/petrel (.*)$}m;
is $start, 'run', 'by the command that starts any daemon';
my ($reload) = $unit =~ m{^ExecReload=/usr/local/sbin/petrel (.*)$}m;

my $sink = Sink->start;
$sink->stop;
my $port = Petrel::free_port();
my $one = Petrel->new(routes => "held.test hold\n* smtp://127.0.0.1:$sink->{port}", minimal_backoff_time => '1h', maximal_backoff_time => '1h', client_session_limit => 1000, log_level => 'info');
$one->{port} = $port;
my (%sent, $number);

# Instance i of the unit: the settings file of all, a log of its own.
sub instance { my ($i) = @_; return bless { %$one, log => "$one->{dir}/log.$i", slice => $i }, 'Petrel' }
sub run { my ($petrel, @command) = @_; local $ENV{$variable} = $petrel->{slice}; return $petrel->run(@command) }
sub begin { my ($petrel) = @_; local $ENV{$variable} = $petrel->{slice}; delete $ENV{$variable} unless defined $petrel->{slice}; return $petrel->start }
# slices(COUNT): in the settings.
sub slices { my ($count) = @_; return $one->configure(slices => $count, listen => "127.0.0.1:$port" . ($count > 1 ? '?share' : '')) }
# To any of those who listen.
sub mail {
    my ($count, $word) = @_;
    my $taken = 0;
    for (1 .. $count) {
        my $to = "$word" . ++$number . ($number % 5 ? '@x.test' : '@held.test');
        my $client = Client->greeted($port) or return $taken;
        $sent{$to} = 1, $taken++ if $client->send(from => 'a@y.test', to => [$to], data => "Subject: $number\r\n\r\nbody\r\n") =~ /^250 /;
        $client->quit;
    }
    return $taken;
}
sub queued { return scalar grep { !/"queue_name":"corrupt"/ } split /\n/, ($_[0]->run(qw(queue ls --json)))[1] }

# --- One

slices(1);
begin($one);
is mail(20, 'one'), 20, 'one daemon takes mail';
my ($code, $said) = run(instance(1), $start);
is $code, 78, 'an instance that slices does not mean is a mistake in the settings';
like $said, qr/PETREL_SLICE: 1: with slices = 1 it is 0 to 0/, 'told';

# --- Four, of which none starts before the one has stopped

slices(4);
my @four = map { instance($_) } 0 .. 3;
($code, $said) = run($four[2], $start);
is $code, 75, 'a slice beside it ends, and is started again by systemd';
like $said, qr/slice 2 of 4 is handled by another petrel/, 'told';
is $one->stop, 0, 'the one stops';
begin($_) for @four;
is mail(40, 'four'), 40, 'four slices take mail';
is queued($four[0]), 60, 'and have all of it' or diag map { $_->log } @four;
for my $slice (@four) {
    my ($code, $said) = run($slice, $reload);
    is $code, 0, "$reload by the environment of slice $slice->{slice}" or diag $said;
    ok $slice->wait_log(qr/reload/), 'reaches that slice';
}
ok -S "$one->{settings}{spool}/control.$_", "control.$_" for 0 .. 3;

# --- Two: a kill, and old ones that still run

$four[3]->kill9;
is $_->stop, 0, 'a slice stops' for @four[0, 1];
slices(2);
my @two = map { instance("$_") } 0, 1;
begin($two[0]);
($code, $said) = run($two[1], $start);
is $code, 75, 'one whose part an old slice has ends';
like $said, qr/slice 1 of 2 is handled by another petrel/, 'told';
is $four[2]->stop, 0, 'the last old one stops';
begin($two[1]);
is mail(20, 'two'), 20, 'two slices take mail';
is queued($two[0]), 80, 'and have all of it';

# --- One again

is $_->stop, 0, 'a slice stops' for @two;
slices(1);
begin($one);
is mail(5, 'last'), 5, 'one daemon takes mail';
is queued($one), 85, 'and has all of it';
$sink->again;
$one->configure(routes => "* smtp://127.0.0.1:$sink->{port}");
is(($one->run('reload'))[0], 0, 'the next hop is back');
$one->run(qw(queue release --all));
$one->run(qw(queue retry --all));
ok $one->wait_empty, 'nothing is left';
my %times;
$times{$_}++ for map { @{ $_->{to} } } $sink->messages;
is_deeply \%times, \%sent, 'every message has arrived, once';
is $one->stop, 0, 'a good end';
done_testing;
