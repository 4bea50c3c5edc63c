#!/usr/bin/perl
# Aliases and SRS beside others: Postfix's postalias reads the same file and says the same; postsrsd, at the next host and
# at the one before, and ours lead back through each other.
use lib 't/e2e';
use E2E;

my $dir = tempdir('alias_peers-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($postsrsd) = grep { -x } '/opt/petrel-test-postsrsd/usr/sbin/postsrsd', Petrel::have('postsrsd') // ();
my $postfix = $ENV{POSTFIX_ROOT} // '/opt/petrel-test-postfix';
my $postalias = "$postfix/usr/sbin/postalias";

my $file = Petrel::spit("$dir/aliases", <<'END');
# /etc/aliases
mailer-daemon: postmaster
postmaster:    root
nobody:        root
www:           webmaster,
               ann@far.test
Webmaster: Bob
# between
root: ann@far.test, bob@far.test
"quoted name": ann@far.test
bob: bob@far.test
dots.in.it: "x y"@far.test
team: ann@far.test, Bob, carl@far.test
END
my $sink = Sink->start;
my $petrel = Petrel->new(hostname => 'here.test', aliases => $file, routes => "* smtp://127.0.0.1:$sink->{port}",
    check_helo => 'no', check_sender => 'no', relay_from => '192.0.2.1')->start;

sub send_to {
    my ($from, $to) = @_;
    my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.1') or die 'no greeting';
    my @replies = map { $client->say($_) } "MAIL FROM:<$from>", "RCPT TO:<$to>", 'DATA', "Subject: for $to\r\n\r\nx\r\n.";
    $client->quit;
    return $replies[1] =~ /^250/ && $replies[3] =~ /^250/;
}

SKIP: {
    skip 'no postalias', 1 unless -x $postalias;
    mkdir "$dir/postfix";
    Petrel::spit("$dir/postfix/main.cf", "compatibility_level = 3.6\nqueue_directory = $dir\nmail_owner = daemon\nsetgid_group = tty\n");
    Petrel::spit("$dir/postfix/master.cf", '');
    local $ENV{LD_LIBRARY_PATH} = "$postfix/usr/lib/postfix";
    my $type;
    for (qw(hash cdb lmdb)) {
        ($type) = (Petrel::command('', $postalias, '-c', "$dir/postfix", "$_:$file"))[0] == 0 ? $_ : $type;
        last if $type;
    }
    skip 'postalias has no type of table here', 1 unless $type;
    my $ask = sub {
        my $name = shift;
        my ($code, $said) = Petrel::command('', $postalias, '-c', "$dir/postfix", '-q', $name, "$type:$file");
        return $code == 0 ? [map { s/^\s+|\s+$//gr } split /,/, $said =~ s/^postalias: warning.*\n//gmr] : undef;
    };
    my %final;
    my $walk;
    $walk = sub {
        my $name = shift;
        my $members = $name =~ /\@/ ? undef : $ask->(lc $name);
        return ($name =~ /\@/ ? $name : "$name\@here.test") unless $members;
        return map { lc $_ eq lc $name ? "$_\@here.test" : $walk->($_) } @$members;
    };
    for my $name (qw(mailer-daemon postmaster nobody www Webmaster root bob dots.in.it team)) {
        my %want = map { $_ => 1 } $walk->($name);
        ok send_to('me@here.test', "$name\@here.test"), "$name is taken";
        my $has = sub { map { $_ => 1 } map { @{ $_->{to} } } grep { $_->{data} =~ /^Subject: for \Q$name\E\@/m } $sink->messages };
        Petrel::wait_for(sub { my %h = $has->(); keys %h >= keys %want });
        my %got = $has->();
        is_deeply [sort keys %got], [sort keys %want], 'and goes where Postfix would send it';
    }
}

SKIP: {
    skip 'no postsrsd (t/e2e/get-peers.sh)', 1 unless $postsrsd;
    Petrel::spit("$dir/secret", "another secret of the next host\n");
    my ($forward, $reverse) = (Petrel::free_port(), Petrel::free_port());
    my $pid = Petrel::spawn("$dir/postsrsd.log", $postsrsd, "-f$forward", "-r$reverse", '-dnext.test', "-s$dir/secret", "-l127.0.0.1");
    my $get = sub {
        my ($port, $address) = @_;
        my $socket;
        Petrel::wait_for(sub { $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }) or return 'nobody';
        print $socket "get $address\n";
        my $line = readline $socket;
        return $line =~ /^200 (\S+)/ ? $1 : $line;
    };
    # Ours first, then theirs.
    ok send_to('author@far-away.test', 'root@here.test'), 'mail that is forwarded';
    my $ours;
    ok Petrel::wait_for(sub { ($ours) = map { $_->{from} } grep { $_->{from} =~ /far-away/ } $sink->messages; $ours }), 'leaves with our sender';
    my $theirs = $get->($forward, $ours);
    like $theirs, qr/^SRS1=.*=here\.test==.*\@next\.test$/, 'the next host makes its own of it';
    my $back = $get->($reverse, $theirs);
    is $back, $ours, 'and gives it back';
    ok send_to('', $back), 'the bounce is taken';
    ok $sink->wait_for('author@far-away.test', 1), 'and comes to the author';
    # Theirs first, then ours.
    my $first = $get->($forward, 'writer@far.test');
    like $first, qr/^SRS0=.*\@next\.test$/, 'a sender that postsrsd has made';
    ok send_to($first, 'bob@here.test'), 'is forwarded';
    my $second;
    ok Petrel::wait_for(sub { ($second) = map { $_->{from} } grep { $_->{from} =~ /^SRS1/ } $sink->messages; $second }), 'with SRS1';
    like $second, qr/^SRS1=[A-Z2-7]{6}=next\.test==.*\@here\.test$/, 'that names the first host';
    ok send_to('', $second), 'its bounce is taken';
    my $returned = $sink->wait_for($first, 1);
    ok $returned, 'and goes to the first host';
    is $get->($reverse, $first), 'writer@far.test', 'which knows the writer';
    Petrel::reap($pid, 'TERM');
}
$petrel->stop;
done_testing;
