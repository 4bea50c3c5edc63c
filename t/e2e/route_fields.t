#!/usr/bin/perl
# add_header and remove_header of a route: fixed fields of its mail, in the header of others' mail and of our own, with a
# signature over what leaves.
use lib 't/e2e';
use E2E;

my $sink = Petrel::sink();
my $host = "smtp://127.0.0.1:$sink->{port}?tls=none";
my $options = 'add_header=X-Env:%20a%26b&add_header=X-Mailer:new&remove_header=x-mailer&remove_header=User-Agent&remove_header=Subject';
my $petrel = Petrel->new(hostname => 'mail.example.org', relay_from => '127.0.0.1', control => undef, local_domains => 'fields.example plain.example',
    routes => "fields.example $host&$options\nplain.example $host&timeout_scale=2");
$petrel->start;
my $count = 0;
sub sent {
    my ($to, $text) = @_;
    $petrel->send_mail('me@example.org', $to, $text);
    return Petrel::wait_arrived($sink, ++$count)->{content} =~ s/\r//gr;
}
my $mail = "From: me\@example.org\nX-Mailer: old\n and folded\nSubject: secret\nUser-Agent: x\nX-Keep: yes\nDate: Sun, 29 Nov 2026 20:00:00 +0000\n" .
    "Message-ID: <a\@b>\nTo: a\@fields.example\n\nSubject: of the body\nUser-Agent: stays\n";
for my $trusted ('127.0.0.1', '192.0.2.1') {
    $petrel->configure(relay_from => $trusted);
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { (() = $petrel->log =~ /reload/gi) >= ($trusted eq '127.0.0.1' ? 1 : 2) }), 'a reload';
    my $content = sent('a@fields.example', $mail);
    my ($header, $body) = split /\n\n/, $content, 2;
    like $header, qr/\AX-Env: a&b\nX-Mailer: new\nReceived: from /, "added, relay_from = $trusted";
    unlike $header, qr/secret|old|folded|User-Agent/, 'removed, also a folded one, in any case';
    like $header, qr/^X-Keep: yes$/m, 'another one stays';
    like $body, qr/\ASubject: of the body\nUser-Agent: stays\n/, 'and the body';
}
like sent('a@plain.example', $mail), qr/X-Mailer: old\n and folded\nSubject: secret\nUser-Agent: x/, 'another route changes nothing';
like sent('a@fields.example', "X-Mailer: old\n\n" . 'x' x 60 . "\n"), qr/\AX-Env: a&b\nX-Mailer: new\nReceived: /, 'a short header';
is $petrel->stop, 0, 'stopped';

for (
    ['add_header=Subject:x', qr/add_header=Subject: a message has its own/],
    ['add_header=Received:x', qr/add_header=Received: a message has its own/],
    ['add_header=X-A', qr/needs NAME:VALUE/],
    ['add_header=X%20A:b', qr/needs NAME:VALUE/],
    ['add_header=X-A:b%0d%0aX-B:c', qr/needs NAME:VALUE/],
    ['add_header=X-A:%zz', qr/badly encoded/],
    ['add_header=X-A:' . 'x' x 500, qr/longer than 400 bytes/],
    ['add_header=X-A:' . 'x' x 380 . '&add_header=X-B:' . 'y' x 380, qr/at most 511 bytes/],
    ['remove_header=From', qr/remove_header=From: other hosts need it/],
    ['remove_header=content-type', qr/other hosts need it/],
    ['remove_header=a:b', qr/needs the name of a field/],
    ) {
    my ($option, $wanted) = @$_;
    $petrel->configure(routes => "* $host&$option");
    my ($status, $said) = $petrel->run('check');
    ok $status == 78 && $said =~ $wanted, substr($option, 0, 60) or diag substr $said, 0, 500;
}
$petrel->configure(routes => '* maildir:/x/%u?add_header=X-A:b');
like +($petrel->run('check'))[1], qr/add_header= is for SMTP and LMTP/, 'no Maildir';
done_testing;
