#!/usr/bin/perl
# Events: a receiver hears of the events of mail, with any answer, over crashes and reloads.
use lib 't/e2e';
use E2E;
use Hook;

plan skip_all => Hook->missing if Hook->missing;
my $hook = Hook->start;
my $sink = Petrel::sink('--fail-rcpt', 'gone:550');
my $key = 'canary-secret-of-24-octets';
my $petrel = Petrel->new(
    hostname => 'mail.example.org', relay_from => '127.0.0.1', events => $hook->url, events_linger => '50ms',
    events_secret => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, $key", events_batch => 50,
    events_types => 'accepted delivered deferred bounced expired trouble recovered', control => undef,
    routes => "a.example smtp://127.0.0.1:$sink->{port}?tls=none\ngone.example smtp://127.0.0.1:$sink->{port}?tls=none\nlater.example smtp://127.0.0.1:1",
);
chmod 0600, $petrel->conf;
$petrel->start;
sub hup { kill 'HUP', $petrel->{pid}; return }
sub events_status { return decode_json($petrel->status =~ s/\A[^{]*//r)->{events} }

# Their content.
like $petrel->send_mail('app@example.org', [ map { "r\@$_.example" } qw(a gone later) ],
    "From: app\@example.org\nTo: r\@a.example\nMessage-ID: <1\@app>\nX-Petrel-Tag: order 17\nSubject: x\n\nhello"), qr/^250/, 'accepted';
ok $hook->wait_taken(1, $_), "$_ comes" for qw(accepted delivered bounced deferred);
my %told = map { $_->{type} => $_ } reverse $hook->taken;
my ($message) = $told{accepted}{id} =~ /^(.*)-0-0$/;
is $told{delivered}{id}, "$message-1-1", 'ids';
is $told{bounced}{id}, "$message-2-1", 'of each recipient';
is $told{deferred}{id}, "$message-3-1d", 'and each attempt';
is_deeply [@{ $told{delivered} }{qw(message sender recipient message_id tag host code attempt)}],
    [$message, 'app@example.org', 'r@a.example', '<1@app>', 'order 17', 'mail.example.org', 250, 1], 'members';
like $told{delivered}{relay}, qr/127\.0\.0\.1.*:$sink->{port}$/, 'the next hop';
is $told{bounced}{code}, 550, 'of a failure';
my $rest = $told{deferred}{next_ms} - $told{deferred}{time_ms};
ok $rest >= 299_000 && $rest <= 301_000, 'when it is tried again' or diag $rest;
ok !(grep { exists $_->{next_ms} } @told{qw(accepted delivered bounced)}), 'which others are not';
unlike Petrel::wait_arrived($sink, 1)->{content}, qr/petrel-tag/i, 'the tag does not leave';
my ($first) = $hook->requests;
like $first->{request}, qr{^POST /hook\?token=canary-url HTTP/1\.1$}, 'a POST';
is $first->{headers}{'content-type'}, 'application/json', 'of JSON';
my $body = decode_json($first->{body});
is $body->{type}, 'petrel.events', 'its type';
like $body->{timestamp}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'its time';
is $first->{headers}{'webhook-id'}, $body->{data}[0]{id}, 'the id is that of the first event';
ok Hook::is_signed($first, $_), 'each secret signs' for MIME::Base64::decode_base64('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), $key;
ok !Hook::is_signed($first, 'another secret of 24 octets'), 'others do not';
ok abs($first->{headers}{'webhook-timestamp'} - time) < 600, 'at this time';
my $log = $petrel->log;
unlike $log, qr/canary/, 'no secret in the log';

# Mail of sendmail(1).
Petrel::command("From: x\nX-Petrel-Tag: by hand\nMessage-ID: <2\@app>\nSubject: y\n\nhello\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', '-f', 'me@example.org', 'r@a.example');
ok Petrel::wait_for(sub { grep { ($_->{tag} // '') eq 'by hand' && $_->{type} eq 'delivered' && $_->{message_id} eq '<2@app>' } $hook->taken }), 'the same for sendmail(1)';

# After any answer of a receiver the same batch comes again.
my $number = 0;
for my $mode ('500', 'close', 'garbage', "302:http://127.0.0.1:$hook->{port}/else", '429:3000') {
    my $before = () = $hook->requests;
    $hook->mode($mode);
    $petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: n" . ++$number . "\n\nhello");
    ok Petrel::wait_for(sub { (events_status()->{why} // '') ne '' }), "$mode is a failure";
    my $status = events_status();
    is $status->{state}, 'waiting', 'it waits';
    cmp_ok $status->{next_ms} / 1000 - time, '>', 2400, 'as long as Retry-After says' if $mode =~ /429/;
    $hook->mode('204');
    hup();
    ok Petrel::wait_for(sub { grep { $_->{type} eq 'delivered' && $_->{tag} eq "n$number" } grep { $_->{tag} } $hook->taken }), 'it is taken after a reload';
    my @tries = ($hook->requests)[$before .. $before + 1];
    is $tries[0]{headers}{'webhook-id'}, $tries[1]{headers}{'webhook-id'}, 'under the same id';
    is $tries[0]{body}, $tries[1]{body}, 'the same body';
    ok Hook::is_signed($tries[1], $key), 'signed anew';
}
is scalar(grep { $_->{request} =~ /else/ } $hook->requests), 0, 'redirects are not followed';
# A page behind the status does not matter.
$hook->mode('huge');
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: page\n\nhello");
ok Petrel::wait_for(sub { grep { ($_->{tag} // '') eq 'page' && $_->{type} eq 'delivered' } $hook->taken }), 'a large page';
ok Petrel::wait_for(sub { my $e = events_status(); $e->{state} eq 'idle' && !$e->{pending_bytes} && !$e->{why} }), 'with 200 takes it';
$hook->mode('drip');
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: slow\n\nhello");
ok Petrel::wait_for(sub { grep { ($_->{tag} // '') eq 'slow' && $_->{type} eq 'delivered' } $hook->taken }), 'a byte at a time';
ok Petrel::wait_for(sub { events_status()->{state} eq 'idle' }), 'is an answer';
ok $petrel->wait_log(qr{ events: warning: http://127\.0\.0\.1 does not take events, which wait: status 500}), 'the log' or diag $petrel->log;
ok $petrel->wait_log(qr{ events: http://127\.0\.0\.1 takes events again}), 'says both' or diag $petrel->log;

# 410 stops until a reload.
$hook->mode('410 200');
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: stopped\n\nhello");
ok Petrel::wait_for(sub { events_status()->{state} eq 'stopped' }), '410 stops';
cmp_ok events_status()->{pending_bytes}, '>', 0, 'events wait';
like +($petrel->run('status'))[1], qr/^events +stopped; \d+ bytes wait; the receiver does not take them: status 410/m, 'status';
ok Petrel::wait_for(sub { ($petrel->run('status'))[1] =~ /^warning +events_stuck: /m }, 25), 'the finding events_stuck';
hup();
ok Petrel::wait_for(sub { grep { ($_->{tag} // '') eq 'stopped' && $_->{type} eq 'delivered' } $hook->taken }), 'a reload goes on';
for my $type ('trouble', 'recovered') {
    ok Petrel::wait_for(sub { grep { $_->{type} eq $type && $_->{kind} eq 'events_stuck' } $hook->taken }), "$type comes";
    my ($event) = grep { $_->{type} eq $type && $_->{kind} eq 'events_stuck' } $hook->taken;
    ok $event->{since_ms} > 1.7e12 && $event->{since_ms} <= $event->{time_ms}, 'and since when';
}

# Killed while the receiver is down: nothing is missing, ids are the same.
$hook->stop;
my @sent = map { $petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: k$_\n\nhello") =~ /queued as (\S+)/ } 1 .. 20;
Petrel::wait_arrived($sink, 28);
ok Petrel::wait_for(sub { (events_status()->{why} // '') ne '' }), 'it is tried';
$petrel->kill9;
$hook->mode('200')->again;
$petrel->start;
ok Petrel::wait_for(sub { my %d = map { $_->{message} => 1 } grep { $_->{type} eq 'delivered' } $hook->taken; @sent == grep { $d{$_} } @sent }), 'each came after the kill';

# A file; it is opened anew at a reload.
my $file = "$petrel->{dir}/events.jsonl";
$petrel->stop;
$petrel->configure(events => "file:$file");
chmod 0600, $petrel->conf;
$petrel->start;
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: filed\n\nhello");
ok Petrel::wait_for(sub { grep { /"tag":"filed"/ && /"type":"delivered"/ } split /\n/, Petrel::slurp($file) }), 'a file gets a line an event';
ok !(grep { !eval { decode_json($_) } } split /\n/, Petrel::slurp($file)), 'of JSON';
rename $file, "$file.1";
hup();
ok $petrel->wait_log(qr/settings reloaded/), 'after a reload';
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: anew\n\nhello");
ok Petrel::wait_for(sub { Petrel::slurp($file) =~ /"tag":"anew"/ }), 'a new file is made';

# Off: nothing is kept.
$petrel->configure(events => undef, events_secret => undef);
hup();
ok Petrel::wait_for(sub { !events_status() }), 'off after a reload';
$petrel->send_mail('app@example.org', 'r@a.example', "X-Petrel-Tag: off\n\nhello");
Petrel::wait_arrived($sink, 31);
unlike Petrel::slurp($file), qr/"tag":"off"/, 'nothing is written';
is $petrel->stop, 0, 'stops';

# Output of check.
sub check { my @o = map { ('-o', $_) } @_; return $petrel->run(@o, 'check') }
for ([ 'events = http://example.org/', qr/http:\/\/ is for loopback/ ], [ 'events = http://192.0.2.1/x', qr/http:/ ], [ 'events = ftp://x/', qr/events:/ ],
    [ 'events = file:x', qr/absolute path/ ], [ 'events_types = delivered gone', qr/events_types: 'gone': no such event/ ],
    [ 'events_secret = short', qr/events_secret: secret 1/ ], [ 'events_secret = whsec_!!!!', qr/events_secret: secret 1/ ], [ 'events_batch = 0', qr/events_batch/ ]) {
    my ($code, $text) = check($_->[0]);
    is $code, 78, "$_->[0] is refused";
    like $text, $_->[1], 'in a sentence';
    unlike $text, qr/short|!!!!/, 'without the secret' if $_->[0] =~ /secret/;
}
for ('http://127.0.0.1:1/x', 'http://[::1]/x', 'http://10.1.2.3/x', 'http://receiver:8080/x', 'https://example.org/x', 'file:/tmp/x') {
    my ($code, $text) = check("events = $_");
    is $code, 0, "$_ may be";
    (/https|receiver|10\./ ? \&like : \&unlike)->($text, qr/events_secret is not set/, 'with a warning where it is needed');
}
$hook->stop;
done_testing;
