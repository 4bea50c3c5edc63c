#!/usr/bin/perl
# FUTURERELEASE (RFC 4865): mail that is accepted now and delivered at its time, over restarts and kills; never before. Who may ask for it,
# what is refused, what the operator sees and may do, and what a report says of it.
use lib 't/e2e';
use E2E;
use JSON::PP qw(decode_json);
use POSIX qw(strftime);
use Time::Local qw(timegm);

my $sink = Sink->start('--fail-rcpt', 'gone:550');
my $petrel = Petrel->new(hostname => 'here.test', relay_from => '127.0.0.1', future_release => '7d', routes => "* smtp://127.0.0.1:$sink->{port}")->start;

sub mail {
    my ($parameters, $to) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    my $first = $client->say("MAIL FROM:<ann\@here.test>$parameters");
    return $first if $first !~ /^250/;
    $client->say('RCPT TO:<' . ($to // 'you@far.test') . '>');
    $client->say('DATA');
    my $reply = $client->say("Subject: later\r\n\r\nx\r\n.");
    $client->quit;
    return $reply =~ /queued as (\S+)/ ? $1 : $reply;
}
sub utc { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time + $_[0])) }

# --- EHLO and MAIL

my $client = Client->connect($petrel->{port});
$client->reply;
my $hello = $client->say('EHLO client.test');
ok $hello =~ /^250[- ]FUTURERELEASE 604800 (\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)Z\r?$/m, 'offered, with the longest time' or diag $hello;
cmp_ok abs(timegm($6, $5, $4, $3, $2 - 1, $1) - time - 604800), '<', 60, 'which is a week from now';
$client->quit;
my %refused = (
    ' HOLDFOR=0' => qr/^501 5\.5\.4 HOLDFOR/, ' HOLDFOR=' => qr/^501/, ' HOLDFOR' => qr/^501/, ' HOLDFOR=-5' => qr/^501/, ' HOLDFOR=1x' => qr/^501/, ' HOLDFOR=1000000000' => qr/^501/,
    ' HOLDFOR=604801' => qr/^501 5\.5\.4 released too late/, ' HOLDFOR=5 HOLDFOR=6' => qr/^501/, ' HOLDFOR=5 HOLDUNTIL=2030-01-01T00:00:00Z' => qr/^501 5\.5\.4 HOLDFOR and HOLDUNTIL/,
    ' HOLDUNTIL=' => qr/^501 5\.5\.4 HOLDUNTIL/, ' HOLDUNTIL' => qr/^501/, ' HOLDUNTIL=tomorrow' => qr/^501/, ' HOLDUNTIL=2030-02-30T00:00:00Z' => qr/^501/, ' HOLDUNTIL=2030-01-01T00:00:00' => qr/^501/,
    ' HOLDUNTIL=' . utc(8 * 86400) => qr/^501 5\.5\.4 released too late/,
);
like mail($_), $refused{$_}, "refused:$_" for sort keys %refused;

# --- Never before, and then

my $id = mail(' HOLDFOR=4');
my $asked = time;
my $far = mail(' HOLDUNTIL=' . utc(3 * 86400));
ok $petrel->wait_log(qr/$id: waits: released at \S+Z, as its sender asked/), 'it waits';
ok $petrel->wait_log(qr/$far: waits: released at /), 'so does another';
$petrel->kill9;
$petrel->start;
ok Petrel::wait_for(sub { $sink->messages }), 'after SIGKILL it comes';
cmp_ok time - $asked, '>=', 3, 'not before its time';
is scalar($sink->messages), 1, 'and only it';
my $past = mail(' HOLDUNTIL=2020-01-01T00:00:00Z');
ok Petrel::wait_for(sub { $sink->messages == 2 }), 'a time of the past is none' or diag $petrel->log;

# --- The operator

my (undef, $why) = $petrel->run('queue', 'why', $far);
like $why, qr/released at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, as its sender asked/, 'why says until when' or diag $why;
my ($listed) = grep { $_->{queue_id} eq $far } map { decode_json($_) } split /\n/, ($petrel->run(qw(queue ls --json)))[1];
is $listed->{queue_name}, 'deferred', 'it is deferred' or diag explain $listed;
cmp_ok abs($listed->{release_time} - time - 3 * 86400), '<', 120, 'until then' or diag explain $listed;
$petrel->run('queue', 'retry', '--all');
$petrel->stop;
$petrel->start;
$petrel->run('queue', 'retry', $far);
sleep 1;
is scalar($sink->messages), 2, 'a retry and a restart do not release it';
is(($petrel->run('queue', 'release', $far))[0], 0, 'release does');
ok Petrel::wait_for(sub { $sink->messages == 3 }), 'now' or diag $petrel->log;
my $gone = mail(' HOLDFOR=86400');
ok Petrel::wait_for(sub { ($petrel->run('queue', 'rm', $gone))[0] == 0 }), 'another is removed';
ok $petrel->wait_empty, 'nothing is left' or diag $petrel->log;

# --- A report

mail(' HOLDFOR=1', 'gone@far.test');
ok Petrel::wait_for(sub { $sink->for_address('ann@here.test') }), 'a report' or diag $petrel->log;
like(($sink->for_address('ann@here.test'))[0]{data}, qr/^Future-Release-Request: for;1\r$/m, 'says what was asked for');
$petrel->stop;

# --- Who may not

$petrel->configure(relay_from => '192.0.2.1', local_domains => 'here.test', local => 'discard')->start;
$client = Client->connect($petrel->{port});
$client->reply;
unlike $client->say('EHLO client.test'), qr/FUTURERELEASE/, 'not offered to untrusted clients';
like $client->say('MAIL FROM:<eve@far.test> HOLDFOR=5'), qr/^555 5\.5\.4/, 'nor taken';
$client->quit;
$petrel->stop;
$petrel->configure(relay_from => '127.0.0.1', future_release => 0)->start;
like mail(' HOLDFOR=5'), qr/^555 5\.5\.4 FUTURERELEASE is not offered/, 'not set';
$petrel->stop;

done_testing;
