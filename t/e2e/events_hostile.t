#!/usr/bin/perl
# Receivers of events that answer with anything but HTTP: an answer without a final 2xx takes nothing, octets of theirs reach
# neither log nor terminal, the daemon and its memory stay as they are, and no event is lost.
use lib 't/e2e';
use E2E;
use MIME::Base64 qw(encode_base64);
use Hook;

plan skip_all => Hook->missing if Hook->missing;
my $hook = Hook->start;
my $sink = Sink->start;
my $petrel = Petrel->new(relay_from => '127.0.0.1', relay => "smtp://127.0.0.1:$sink->{port}?tls=none", events => $hook->url, events_linger => '5ms', events_types => 'delivered');
chmod 0600, $petrel->conf;
$petrel->start;
sub look { return decode_json($petrel->status =~ s/\A[^{]*//r)->{events} }
sub memory_kb { return (Petrel::slurp("/proc/$petrel->{pid}/status") =~ /^VmRSS:\s+(\d+)/m)[0] }

my $ok = "Content-Length: 2\r\n\r\nok";
# Its answer, again and again or once, and the log line about it; undef: it takes the batch.
my @rows = (
    ['interim responses before the final one', raw => "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n$ok", undef],
    ['interim responses for ever', flood => "HTTP/1.1 100 Continue\r\n\r\n", qr/interim/],
    ['an interim response alone', raw => "HTTP/1.1 102 Wait\r\n\r\n", qr/./],
    ['a head for ever', flood => "HTTP/1.1 200 OK\r\nX-More: yes\r\n", qr/./],
    ['one line for ever', flood => 'HTTP/1.1 200 ' . 'x' x 1000, qr/./],
    ['no line end for ever', flood => "\0", qr/./],
    ['status 99', raw => "HTTP/1.1 099 x\r\n$ok", qr/./],
    ['status 2000', raw => "HTTP/1.1 2000 x\r\n$ok", qr/./],
    ['status -200', raw => "HTTP/1.1 -200 x\r\n$ok", qr/./],
    ['status 600', raw => "HTTP/1.1 600 x\r\n$ok", qr/./],
    ['a status of letters', raw => "HTTP/1.1 2oo x\r\n$ok", qr/./],
    ['another protocol', raw => "220 smtp.example ESMTP\r\n200 OK\r\n", qr/./],
    ['HTTP/2', raw => "HTTP/2 200\r\n$ok", qr/./],
    ['escapes in the reason', raw => "HTTP/1.1 503 \e]0;rm\a\e[31m\r\n$ok", qr{status 503|control character}],
    ['a reason that is a log line', raw => "HTTP/1.1 503 x\n2026 main: warning: forged\r\n$ok", qr/./],
    ['Retry-After beyond numbers', raw => "HTTP/1.1 503 x\r\nRetry-After: 99999999999999999999\r\n$ok", qr/status 503/],
    ['Retry-After below zero', raw => "HTTP/1.1 503 x\r\nRetry-After: -99\r\n$ok", qr/status 503/],
    ['lengths that differ', raw => "HTTP/1.1 500 x\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\nok", qr/./],
    ['chunks without an end', raw => "HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n", qr/./],
    ['a failure, then a success', raw => "HTTP/1.1 500 x\r\n${ok}HTTP/1.1 200 OK\r\n$ok", qr/status 500/],
    ['nothing', raw => '', qr/./],
);
my ($mails, $hups) = (0, 0);
my $before;
for my $row (@rows) {
    my ($name, $kind, $octets, $why) = @$row;
    my $seen = () = $hook->requests;
    $hook->mode("$kind:" . encode_base64($octets, ''));
    $mails++;
    $petrel->send_mail('a@example.org', 'r@a.example', "X-Petrel-Tag: n$mails\n\nx") =~ /^250/ or die;
    ok Petrel::wait_for(sub { (() = $hook->requests) > $seen }), "$name: it is asked";
    if ($why) {
        ok Petrel::wait_for(sub { (look()->{why} // '') =~ $why }), '  and takes nothing' or diag explain look();
        unlike look()->{why} // '', qr/[^ -~]/, '  nor puts octets of its own into the status';
    } else {
        ok Petrel::wait_for(sub { !look()->{pending_bytes} }), '  and takes the batch';
    }
    $hook->mode('200');
    $hups++;
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { (() = $petrel->log =~ /settings reloaded/g) == $hups && !look()->{pending_bytes} }), '  a good one has it then' or diag explain look();
    $before //= memory_kb();
}
cmp_ok memory_kb(), '<', $before + 8192, 'memory stays as it is';
my %final = map { $_->{tag} => 1 } map { @{ $_->{events} } } $hook->requests;
is scalar(grep { !$final{"n$_"} } 1 .. $mails), 0, 'no event is lost';
unlike $petrel->log, qr/[\e\a\0]|^2026 main|Assertion|Sanitizer|events_lost=/m, 'the log has nothing of theirs';
is $petrel->stop, 0, 'it ends well';
done_testing;
