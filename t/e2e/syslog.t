#!/usr/bin/perl
# log_to: lines as datagrams of a syslog service, which may be slow, stop and come back; the journal's priorities.
use lib 't/e2e';
use E2E;
use Socket qw(SOCK_DGRAM MSG_DONTWAIT);

my $scratch = tempdir('syslog-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $data = "From: me\@here.test\r\nMessage-ID: <1\@here.test>\r\n\r\nx\r\n";

sub service { my $path = shift; unlink $path; return IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $path) // die "$path: $!" }
my @heard;
sub hear { my $s = shift; my $line; push @heard, $line while defined recv($s, $line, 65536, MSG_DONTWAIT) && length $line; return @heard }
sub heard { my ($s, $what) = @_; return Petrel::wait_for(sub { scalar grep { /$what/ } hear($s) }) }

my %prefix = (
    petrel => qr{^<22>[A-Z][a-z]{2} [ 0-9][0-9] \d\d:\d\d:\d\d petrel/smtp\[\d+\]: [0-9A-Z-]{19}: to=},
    postfix => qr{^<22>[A-Z][a-z]{2} [ 0-9][0-9] \d\d:\d\d:\d\d postfix/smtp\[\d+\]: [0-9A-Z]{18}: to=},
    json => qr/^<22>[A-Z][a-z]{2} [ 0-9][0-9] \d\d:\d\d:\d\d petrel\[\d+\]: \{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",.*"event":"delivered"/,
);
for my $style (qw(petrel postfix json)) {
    my $service = service("$scratch/log");
    @heard = ();
    my $petrel = Petrel->new(log_style => $style, log_to => "syslog:$scratch/log", log_level => 'info', routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    ok heard($service, qr/ is petrel\.test, spool /), "$style: it starts";
    my $client = Client->greeted($petrel->{port});
    like $client->send(from => 'me@here.test', to => 'you@there.test', data => $data), qr/^250/, "$style: mail is taken";
    ok heard($service, $prefix{$style}), "$style: its line comes by syslog" or diag @heard;
    is scalar(grep { /\n/ } @heard), 0, 'no datagram has a line end';
    is $petrel->stop, 0, "$style: stops";
    hear($service);
    is $petrel->log, '', "$style: nothing on standard error";
}

# A service that stops, and comes back: mail goes on, no line is lost.
{
    my $service = service("$scratch/log");
    @heard = ();
    my $petrel = Petrel->new(log_to => "syslog:$scratch/log", routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    ok heard($service, qr/ is petrel\.test, spool /), 'a service';
    close $service;
    my $client = Client->greeted($petrel->{port});
    like $client->send(from => 'me@here.test', to => "away$_\@there.test", data => $data), qr/^250/, 'it is gone, mail is taken' for 1 .. 3;
    ok $sink->wait_for("away3\@there.test", 1), 'and delivered';
    $service = service("$scratch/log");
    ok heard($service, qr/to=<away3\@there\.test>/), 'it is back and gets the lines';
    ok scalar(grep { /to=<away1\@there\.test>/ } @heard), 'all of them';
    is $petrel->stop, 0, 'stops';
}

# Not there at startup: a warning, and standard error.
{
    my $petrel = Petrel->new(log_to => "syslog:$scratch/none", routes => '* discard')->start;
    ok $petrel->wait_log(qr{warning: log_to: \Q$scratch\E/none: No such file or directory: the log goes to standard error}), 'no service: a warning';
    is $petrel->stop, 0, 'stops';
    my ($code, $said) = Petrel->new(log_to => 'syslogd')->run('check');
    is $code, 78, 'a bad value is an error';
    like $said, qr{log_to.*must be stderr, syslog or syslog:/PATH}, 'which says what is good';
}
done_testing;
