#!/usr/bin/perl
# A host that refuses mail over IPv6 for our address gets it over IPv4 at once, and later mail over IPv4 alone.
use lib 't/e2e';
use E2E;
use IO::Socket::IP;
use Resolver;

my $six = IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 20) or plan skip_all => "no IPv6: $!";
my $four = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $six->sockport, Listen => 20) or plan skip_all => "its port is in use for IPv4: $!";

# Says that of IPv6 clients and takes mail of others.
sub serve {
    my ($listener, $rcpt) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    $SIG{TERM} = 'DEFAULT';
    while (my $c = $listener->accept) {
        my $in_data;
        print {$c} "220 peer.test\r\n";
        while (my $line = <$c>) {
            if ($in_data) { $in_data = 0, print {$c} "250 taken\r\n" if $line eq ".\r\n"; next }
            $in_data = $line =~ /^DATA/;
            print {$c} $line =~ /^RCPT/ ? $rcpt : $in_data ? "354 go on\r\n" : $line =~ /^QUIT/ ? "221 bye\r\n" : "250 yes\r\n";
            last if $line =~ /^QUIT/;
        }
    }
    exit 0;
}
my @pids = (serve($six, "550-5.7.25 The IP address sending this message does not have a PTR record\r\n550 5.7.25 setup.\r\n"), serve($four, "250 yes\r\n"));
my $resolver = Resolver->start({'both.test' => {MX => ['10 mx.test']}, 'other.test' => {MX => ['10 mx.test']}, 'six.test' => {MX => ['10 mx6.test']},
        'mx.test' => {AAAA => ['::1'], A => ['127.0.0.1']}, 'mx6.test' => {AAAA => ['::1']}});
my $petrel = Petrel->new(dns_servers => "127.0.0.1:$resolver->{port}", smtp_port => $six->sockport, smtp_bind => '127.0.0.1 ::1',
    smtp_connection_cache_time_limit => '0s', routes => "here.test discard\n* mx")->start;

sub goes {
    my ($to, $want, $what) = @_;
    $petrel->send_mail('me@here.test', $to, "Subject: x\n\nx\n");
    return ok $petrel->wait_log(qr/to=<\Q$to\E>, relay=$want/, 10), $what;
}
# Which address comes first is drawn: in 60 times IPv6 is.
my $first;
for (1 .. 60) {
    $first = "a$_\@both.test";
    $petrel->send_mail('me@here.test', $first, "Subject: x\n\nx\n");
    last unless $petrel->wait_log(qr/to=<\Q$first\E>, .*status=/) && $petrel->log =~ /to=<\Q$first\E>, .*status=sent/;
}
ok $petrel->wait_log(qr/to=<\Q$first\E>, relay=mx\.test\[::1\]\S+ .*class=ptr, dsn=4\.7\.25, status=deferred/), 'refused over IPv6, it is deferred' or diag $petrel->log;
ok $petrel->wait_log(qr/to=<\Q$first\E>, relay=mx\.test\[127\.0\.0\.1\]\S+ .*status=sent/), 'and leaves over IPv4 at once';
goes("b\@$_", qr/mx\.test\[127\.0\.0\.1\]\S+ .*status=sent/, "$_: later mail goes there") for 'both.test', 'other.test';
is Petrel::count($petrel->log, qr/mx\.test\[::1\] refuses our IPv6 address: using IPv4/), 1, 'one refusal, one line';
goes('a@six.test', qr/mx6\.test\[::1\]\S+ .*dsn=5\.7\.25, status=bounced/, 'a host with IPv6 alone: the refusal stands');
unlike $petrel->log, qr/to=<b\@\S+ relay=mx\.test\[::1\]/, 'IPv6 rests';
is $petrel->stop, 0, 'it ends well';
kill 'TERM', @pids;
waitpid $_, 0 for @pids;
done_testing;
