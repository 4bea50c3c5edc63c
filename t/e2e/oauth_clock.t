#!/usr/bin/perl
# A clock that is an hour off, and is set while the daemon runs: a line that names it, and no mail is lost.
use strict;
use warnings;
use Test::More;
use lib 't/e2e';
use OAuth;
use Petrel;

my $missing = OAuth::missing();
plan skip_all => $missing if $missing;
my ($library) = glob('{/opt/petrel-test-faketime,}/usr/lib/*/faketime/libfaketime.so.1');
plan skip_all => 'no libfaketime' unless $library;
plan skip_all => 'a static binary has a clock of its own' if `file -L ./petrel 2>/dev/null` =~ /statically/;

# A certificate of this minute, as providers have them anew every few weeks.
my $provider = OAuth->start('ok', sub {
    my $keys = shift;
    system("cd $keys && openssl req -x509 -new -sha256 -key good.key -CA ca.pem -CAkey ca.key -subj /CN=provider -days 30 "
        . '-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=CA:FALSE -out good.pem 2>/dev/null') == 0 or die 'no certificate';
});
# Without the sandbox: the library has a file of its own.
my $petrel = Petrel->new($provider->settings('grant=client secret=canary-secret'), sandbox => 'no', default_connection_reuse_count_limit => 1, minimal_backoff_time => '1s', maximal_backoff_time => '1s', smtp_connection_cache_time_limit => '0s');
chmod 0600, $petrel->conf;
sub set_clock { my $offset = shift; Petrel::spit("$petrel->{dir}/clock.new", "$offset\n"); rename "$petrel->{dir}/clock.new", "$petrel->{dir}/clock"; return }
sub take { my $text = shift; return $petrel->send_mail('a@example.org', 'b@example.net', "Subject: $text\n\nhello") }

set_clock('-1h');
{
    local %ENV = (%ENV, LD_PRELOAD => $library, FAKETIME_TIMESTAMP_FILE => "$petrel->{dir}/clock", FAKETIME_NO_CACHE => 1, DONT_FAKE_MONOTONIC => 1, FAKETIME_DONT_FAKE_MONOTONIC => 1);
    $petrel->start;
}
take('behind');
ok $petrel->wait_log(qr/oauth: .*no token for joe at 127\.0\.0\.1: .*certificate .*is not valid before \d{4}-\S+ \S+ UTC, or the clock of this host is wrong/), 'an hour behind: the line names the clock';
is scalar($provider->events(qr/^mail /)), 0, 'the mail waits';
my ($code, $why) = $petrel->run('status');
like $why, qr/the clock of this host is wrong/, 'status says why';
unlike $petrel->log, qr/status=(?:bounced|expired)/, 'nothing is returned';

set_clock('+0');
kill 'HUP', $petrel->{pid};
ok $provider->wait_for(qr/^mail /), 'the clock is set: the mail goes after a reload';

# An hour ahead: the token seems to have ended, so another one is fetched.
set_clock('+1h');
take('ahead');
ok $provider->wait_for(qr/^mail /, 2), 'an hour ahead: mail goes';
ok $provider->wait_for(qr/^granted/, 2), 'with another token';

set_clock('-1h');
take('behind again');
ok $provider->wait_for(qr/^mail /, 3), 'two hours back: mail goes';
ok Petrel::wait_for(sub { ($petrel->run(qw(queue ls)))[1] !~ /-/ }), 'nothing is left';
$petrel->stop;
is scalar(grep { /canary/ } split /\n/, $petrel->log), 0, 'no secret in the log';
$provider->stop;
done_testing;
