#!/usr/bin/perl
# The response of XOAUTH2 is that of msmtp, for users and tokens of several forms.
use lib 't/e2e';
use E2E;

my $msmtp = Petrel::have('msmtp');
plan skip_all => 'needs msmtp with XOAUTH2' unless $msmtp && `$msmtp --version` =~ /xoauth2/i;

# A smarthost that takes XOAUTH2, and notes the responses, initial or after 334.
my $dir = tempdir('xoauth2-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1:0', Listen => 20) or die "listen: $!";
my $parent = $$;
my $pid = fork // die "fork: $!";
if (!$pid) {
    while (my $c = $server->accept) {
        print {$c} "220 peer.test\r\n";
        while (my $line = <$c>) {
            if ($line =~ /^AUTH XOAUTH2\s*(\S*)/) {
                my $response = $1;
                if ($response eq '') { print {$c} "334 \r\n"; ($response) = <$c> =~ /^(\S*)/ }
                open my $log, '>>', "$dir/seen" or die;
                print $log "$response\n";
                close $log;
            }
            print {$c} $line =~ /^EHLO/ ? "250-peer.test\r\n250 AUTH XOAUTH2\r\n" : $line =~ /^AUTH/ ? "235 2.7.0 Ok\r\n" : $line =~ /^DATA/ ? "354 go on\r\n" : "250 2.0.0 Ok\r\n";
            if ($line =~ /^DATA/) { 1 while defined($line = <$c>) && $line ne ".\r\n"; print {$c} "250 2.0.0 Ok\r\n" }
            last if $line =~ /^QUIT/;
        }
        close $c;
    }
    exit 0;
}
END { local $?; kill 'KILL', $pid if $pid && $$ == $parent; waitpid $pid, 0 if $pid && $$ == $parent }
my $port = $server->sockport;
sub seen { return [ map { s/\n//r } split /^/, Petrel::slurp("$dir/seen") ] }

for (['joe@example.org', 'ya29.vF9dft4qmTc2Nvb3RlckBhdHRhdmlzdGEuY29tCg=='], ['joe', 'x'], ["j'o.e+tag\@sub.example.org", 'eyJ0' . 'a-_.~+/' x 300]) {
    my ($user, $token) = @$_;
    unlink "$dir/seen";
    Petrel::spit("$dir/seen", '');
    my $file = Petrel::spit("$dir/token", "$token\n");
    chmod 0600, $file;
    open my $mail, '|-', $msmtp, '--host=127.0.0.1', "--port=$port", '--tls=off', '--auth=xoauth2', "--user=$user", "--passwordeval=cat $file", '--from=a@b.test', 'c@d.test' or die;
    print $mail "Subject: x\n\nx\n";
    close $mail;
    is scalar(@{ seen() }), 1, "msmtp logs in as $user" or next;
    my $theirs = seen()->[0];
    my $passwords = Petrel::spit("$dir/passwords", "127.0.0.1 $user \@$file\n");
    chmod 0600, $passwords;
    my $petrel = Petrel->new(relay => 'smtp://' . ($user =~ s/@/%40/r) . "\@127.0.0.1:$port", relay_from => '127.0.0.1', auth_passwords => $passwords)->start;
    $petrel->send_mail('a@b.test', 'c@d.test', "Subject: x\n\nx\n");
    ok Petrel::wait_for(sub { @{ seen() } > 1 }), 'and so do we' or diag $petrel->log;
    is seen()->[1], $theirs, 'with the same words';
    is $petrel->stop, 0, 'it ends well';
}
done_testing;
