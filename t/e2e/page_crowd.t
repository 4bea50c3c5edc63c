#!/usr/bin/perl
# The page with a queue of thousands of messages, and a host that answers with markup, in Chromium: every view opens, search and an
# action work, what others say is text. Screenshots are in BUILD/page.
use lib 't/e2e';
use E2E;
use PageBrowser;

plan skip_all => PageBrowser::missing() if PageBrowser::missing();

# Its greeting and its refusals are markup, turn the direction of text, and are long.
my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die "listen: $!";
my $host = fork // die "fork: $!";
if ($host == 0) {
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
    $SIG{CHLD} = 'IGNORE';
    while (my $peer = $listener->accept) {
        next if fork;
        $peer->autoflush(1);
        print $peer "220 hostile.example <b>ESMTP</b>\r\n";
        while (my $line = <$peer>) {
            print $peer $line =~ /^EHLO/i ? "250-<script>alert(1)</script>\r\n250 PIPELINING\r\n"
                : $line =~ /^RCPT/i ? "451 4.7.1 <img src=x onerror=alert(1)>\xe2\x80\xaegpj." . 'y' x 3000 . "\r\n"
                : $line =~ /^DATA/i ? "554 5.5.1 no\r\n" : "250 2.0.0 ok\r\n";
            last if $line =~ /^QUIT/i;
        }
        POSIX::_exit(0);
    }
    POSIX::_exit(0);
}
push @Petrel::running, $host;

my ($count, $port) = (3_000, Petrel::free_port());
my $petrel = Petrel->new(http => "127.0.0.1:$port", routes => 'hostile.example smtp://127.0.0.1:' . $listener->sockport . "\n* smtp://127.0.0.1:9");
$petrel->start->stop; # makes the spool
is system("$Petrel::root/$Petrel::build/t/bench/fill", "$petrel->{dir}/spool", $count, 36_000), 0, "$count messages wait";
$petrel->start;
like $petrel->send_mail('mallory@b.example', 'eve@hostile.example', "Subject: x\r\n\r\nx\r\n"), qr/^250/, 'one is for a hostile host';
ok $petrel->wait_log(qr/to=<eve\@hostile\.example>.*status=deferred/), 'which defers it' or diag $petrel->log;
ok Petrel::wait_for(sub { decode_json($petrel->status)->{queue}{deferred} == $count + 1 }), 'all are known';

my $site = 'smtp:[127.0.0.1]:' . $listener->sockport;
mkdir "$Petrel::root/$Petrel::build/page";
PageBrowser::run(600, 40, { held => sub { return decode_json($petrel->status)->{queue}{hold} } },
    'crowd.mjs', "http://127.0.0.1:$port/", PageBrowser::key($petrel), "$Petrel::root/$Petrel::build/page", $count + 1, $site);
$petrel->stop;
done_testing;
