#!/usr/bin/perl
# A smarthost says that our account has reached its limit, and until when: mail waits there until that time, the operator hears of
# it immediately, and then mail goes by itself. The clock of the daemon is set by the test.
use lib 't/e2e';
use E2E;
use AuthServer;

plan skip_all => 'no python3' unless Petrel::have('python3');
my ($library) = glob('{/opt/petrel-test-faketime,}/usr/lib/*/faketime/libfaketime.so.1');
plan skip_all => 'no libfaketime' unless $library;
plan skip_all => 'a static binary has a clock of its own' if `file -L ./petrel 2>/dev/null` =~ /statically/;

my $host = AuthServer->start(users => { joe => 'secret' }, mechanisms => 'PLAIN');
# Without the sandbox: the library has a file of its own.
my $petrel = Petrel->new(sandbox => 'no', smtp_connection_cache_time_limit => '0s', minimal_backoff_time => '1s', maximal_backoff_time => '1s');
chmod 0600, my $file = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1:$host->{port} joe secret\n");
$petrel->configure(auth_passwords => $file, routes => "* smtp://joe\@127.0.0.1:$host->{port}");
sub set_clock { my $offset = shift; Petrel::spit("$petrel->{dir}/clock.new", "$offset\n"); rename "$petrel->{dir}/clock.new", "$petrel->{dir}/clock"; return }
sub take { $petrel->send_mail('a@here.test', 'x@one.test', "Subject: s\n\nb\n") =~ /queued as ([0-9A-Z-]+)/ or die 'not taken'; return $1 }
sub tries { return scalar(() = $host->events(qr/^auth/)) }

set_clock('+0');
{
    local %ENV = (%ENV, LD_PRELOAD => $library, FAKETIME_TIMESTAMP_FILE => "$petrel->{dir}/clock", FAKETIME_NO_CACHE => 1, DONT_FAKE_MONOTONIC => 1, FAKETIME_DONT_FAKE_MONOTONIC => 1);
    $petrel->start;
}
$host->says('550 5.4.5 Daily user sending limit exceeded, try again in 2 hours');
my $first = take();
ok $petrel->wait_log(qr/$first: to=.*class=quota.*status=deferred/), 'over the limit, mail waits';
ok $petrel->wait_log(qr/warning: .*the account has reached its limit/), 'the operator is told immediately' or diag $petrel->log;
my @more = map { take() } 1 .. 3;
like +($petrel->run(qw(queue why), $more[0]))[1], qr/the next delivery may begin .*in (?:1 h 59 min|2 h)/, 'why says until when';
is tries(), 1, 'one attempt';

set_clock('+115m');
take();
$petrel->run('status');
is tries(), 1, 'none before the time that the text tells';

$host->says(undef);
set_clock('+121m');
$petrel->run('status'); # a turn of the loop, which sees the time
ok $petrel->wait_empty, 'then all mail goes by itself';
is Petrel::count($petrel->log, qr/status=sent/), 5, 'each message';
unlike $petrel->log, qr/status=bounced/, 'nothing was bounced';
is $petrel->stop, 0, 'it ends well';
$host->stop;
done_testing;
