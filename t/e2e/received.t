#!/usr/bin/perl
# received: how much of a client that may relay the Received field tells. Mail of others keeps it whole, and what has a
# field already gets another one, so that loops end.
use lib 't/e2e';
use E2E;

my $sink = Petrel::sink();
my $petrel = Petrel->new(hostname => 'mail.example.org', relay_from => '127.0.0.1', control => undef, local_domains => 'here.example',
    routes => "* smtp://127.0.0.1:$sink->{port}?tls=none");
my $count = 0;
my $body = "From: me\@example.org\nTo: you\@here.example\nDate: Sun, 29 Nov 2026 20:00:00 +0000\nMessage-ID: <a\@b>\nSubject: x\n\nhello\n";
sub sent { my ($text) = @_; $petrel->send_mail('me@example.org', 'you@here.example', $text); return Petrel::wait_arrived($sink, ++$count)->{content} =~ s/\r//gr }
my $earlier = "Received: from a by b with SMTP; Sun, 29 Nov 2026 20:00:00 +0000\n";
for (
    ['full', '127.0.0.1', $body, qr/\AReceived: from client\.test \(\[127\.0\.0\.1\]\) by mail\.example\.org \(Petrel\)\n/],
    ['short', '127.0.0.1', $body, qr/\AReceived: by mail\.example\.org \(Petrel\) with ESMTP id \S+;\n\t[A-Z][^\n]*\nFrom: /],
    ['none', '127.0.0.1', $body, qr/\AFrom: /],
    ['none', '127.0.0.1', "$earlier$body", qr/\AReceived: by mail\.example\.org \(Petrel\) with ESMTP id \S+;\n\t[^\n]*\nReceived: from a by b/],
    ['none', '192.0.2.1', $body, qr/\AReceived: from client\.test \(\[127\.0\.0\.1\]\)/],
    ['none', '127.0.0.1', "Subject: y\n\nhello\n", qr/\A(?!Received)/],
    ) {
    my ($form, $trusted, $text, $wanted) = @$_;
    $petrel->configure(received => $form, relay_from => $trusted);
    $petrel->start;
    my $content = sent($text);
    like $content, $wanted, "$form, relay_from = $trusted";
    unlike $content, qr/client\.test|127\.0\.0\.1/, '  and no client' if $form ne 'full' && $trusted eq '127.0.0.1';
    like $petrel->log, qr/127\.0\.0\.1/, '  which the log has';
    $petrel->stop;
}
$petrel->configure(received => 'none', relay_from => '127.0.0.1', hopcount_limit => 50);
$petrel->start;
like $petrel->send_mail('me@example.org', 'you@here.example', ($earlier x 51) . $body), qr/^554 5\.4\.6/, 'a loop ends';
is $petrel->stop, 0, 'stopped';

# Two hosts that both add nothing, and take each other's mail.
my @two = map { Petrel->new(hostname => "host$_.example.org", relay_from => '127.0.0.1', control => undef, received => 'none', hopcount_limit => 10) } 1, 2;
$two[$_]->configure(routes => "far.example smtp://127.0.0.1:$two[1 - $_]{port}?tls=none\n* discard") for 0, 1;
$_->start for @two;
$two[0]->send_mail('me@example.org', 'you@far.example', $body);
ok Petrel::wait_for(sub { grep { $_->log =~ /status=bounced .*5\.4\.6/ } @two }), 'their loop ends, too';
is $_->stop, 0, 'stopped' for @two;
$petrel->configure(received => 'some');
like +($petrel->run('check'))[1], qr/received: 'some'.*full, short.* none/s, 'another word is an error';
done_testing;
