#!/usr/bin/perl
# From which address mail leaves, under which name, and to which family: by route, by the sender's domain, and
# when this host does not have the address. The peer is a server that reports its client.
use lib 't/e2e';
use E2E;

# Takes mail and notes "CLIENT-ADDRESS EHLO-NAME" of each connection.
sub peer {
    my $file = tempdir('source-XXXXXX', TMPDIR => 1, CLEANUP => 1) . '/peer.log';
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1:0', Listen => 20) or die "listen: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        while (my $c = $server->accept) {
            next if fork;
            print {$c} "220 peer.test\r\n";
            my $in_data;
            while (my $line = <$c>) {
                $line =~ s/\r?\n$//;
                if ($in_data) { next if $line ne '.'; $in_data = 0; print {$c} "250 taken\r\n"; next }
                if ($line =~ /^EHLO (.*)/) { open my $out, '>>', $file; print {$out} $c->peerhost, " $1\n"; close $out }
                if ($line eq 'DATA') { $in_data = 1; print {$c} "354 go on\r\n"; next }
                print {$c} $line eq 'QUIT' ? "221 bye\r\n" : "250 yes\r\n";
                last if $line eq 'QUIT';
            }
            exit 0;
        }
        exit 0;
    }
    return { pid => $pid, port => $server->sockport, seen => sub { Petrel::slurp($file) } };
}

my $peer = peer();
my $at = "127.0.0.1:$peer->{port}";
my $petrel = Petrel->new(
    hostname => 'host.test', smtp_bind => '127.0.0.8', smtp_connection_cache_time_limit => '0s', local_domains => 'nobody.test',
    routes => "own.test smtp://$at?bind=127.0.0.41&helo=mail.own.test\nlist.test smtp://$at?bind=127.0.0.42,::1\n"
        . "missing.test smtp://$at?bind=192.0.2.77\nsix.test smtp://localhost:$peer->{port}?family=ipv6\n* smtp://$at",
    sender_routes => "news.test smtp://$at?bind=127.0.0.43&helo=news.test")->start;

sub goes {
    my ($from, $to, $want, $what) = @_;
    my $before = () = $peer->{seen}->() =~ /\n/g;
    like $petrel->send_mail($from, $to, "Subject: x\n\nx\n"), qr/^250 /m, "$from to $to";
    ok Petrel::wait_for(sub { (() = $peer->{seen}->() =~ /\n/g) > $before }), 'arrives';
    is((split /\n/, $peer->{seen}->())[-1], $want, $what);
    return;
}
goes('a@here.test', 'b@own.test', '127.0.0.41 mail.own.test', 'the address and the name of the route');
goes('a@here.test', 'b@list.test', '127.0.0.42 host.test', 'the address of the family');
goes('a@here.test', 'b@other.test', '127.0.0.8 host.test', 'smtp_bind and hostname');
goes('a@news.test', 'b@other.test', '127.0.0.43 news.test', 'those of the sender\'s domain');

like $petrel->send_mail('a@here.test', 'b@missing.test', "Subject: x\n\nx\n"), qr/^250 /m, 'mail for a route whose address is missing';
ok $petrel->wait_log(qr/to=<b\@missing\.test>, .*dsn=4\.3\.5, status=deferred \(this host does not have the source address 192\.0\.2\.77 of bind=/), 'waits, and the log says why';
ok $petrel->wait_log(qr/warning: bind=: this host does not have the address 192\.0\.2\.77: mail waits until it has/), 'as did the startup' or diag $petrel->log;
like +($petrel->run('check'))[1], qr/bind=: this host does not have the address 192\.0\.2\.77/, 'and check';

like $petrel->send_mail('a@here.test', 'b@six.test', "Subject: x\n\nx\n"), qr/^250 /m, 'mail for IPv6 alone';
ok $petrel->wait_log(qr/to=<b\@six\.test>, .*status=deferred/), 'does not go to the IPv4 address of that host';

# Other settings find the mail.
$petrel->configure(routes => "missing.test smtp://$at?bind=127.0.0.44\nsix.test hold\n* smtp://$at");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings reloaded|reload/), 'a reload';
goes('a@here.test', 'c@missing.test', '127.0.0.44 host.test', 'after a reload');
is(($petrel->run(qw(queue retry --all)))[0], 0, 'retry');
ok $petrel->wait_log(qr/to=<b\@missing\.test>, .*status=sent/), 'and what waited leaves';

for (['smtp_family=ipv5', qr/smtp_family: 'ipv5': say any, ipv4 or ipv6/], ["routes=* smtp://$at?bind=x.test", qr/'x\.test' is not an IP address/],
    ["routes=* smtp://$at?helo=pod", qr/helo=pod: use a full host name/], ["routes=* smtp://$at?family=ipv6", qr/family=ipv6 excludes the address 127\.0\.0\.1/]) {
    my ($code, $out) = Petrel::command('', $Petrel::binary, '-c', $petrel->conf, '-o', $_->[0], 'check');
    is $code, 78, "$_->[0]";
    like $out, $_->[1], 'the error';
}
is $petrel->stop, 0, 'it ends well';
kill 'TERM', $peer->{pid};
waitpid $peer->{pid}, 0;
done_testing;
