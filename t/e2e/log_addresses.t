#!/usr/bin/perl
# log_addresses: no local part of any address is in the log or in a file of events, in any style and at any level, whatever a
# client, a next hop or a Maildir makes of it; the queue and its commands have addresses whole. One address has one hash.
use lib 't/e2e';
use E2E;
use MIME::Base64;

my @names = qw(quartz onyx beryl topaz garnet opal jasper agate zircon);
my $sink = Sink->start;
my $liar = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die; # its replies quote addresses
my $answers = fork // die;
if ($answers == 0) {
    while (my $peer = $liar->accept) {
        print $peer "220 liar\r\n";
        while (my $line = <$peer>) {
            my ($to) = $line =~ /^RCPT TO:<(.*)>/;
            print $peer !defined $to ? ($line =~ /^EHLO/ ? "250 liar\r\n" : $line =~ /^DATA/ ? "354 go\r\n" : "250 ok\r\n")
                : $to =~ /^opal/ ? "550 5.1.1 <$to>: \"$to\" has moved: mailto:agate\@else.example, see <agate\@else.example\r\n"
                : "450 4.2.1 $to (or agate\@else.example) is over quota\r\n";
        }
    }
    exit 0;
}
my $petrel;
my ($password, $scratch) = ('correct horse', tempdir('mask-XXXXXX', TMPDIR => 1, CLEANUP => 1));
Petrel::spit("$scratch/users", (Petrel::command("$password\n", $Petrel::binary, 'passwd', 'zircon@here.example'))[1]);
chmod 0600, "$scratch/users";
mkdir "$scratch/mail";
for my $user (qw(topaz quartz)) { mkdir "$scratch/mail/$user$_" for "", qw(/Maildir /Maildir/tmp /Maildir/new /Maildir/cur) }
my %settings = (
    relay_from => '127.0.0.1', auth_users => "$scratch/users", auth_cleartext => 'loopback', log_level => 'debug', user => undef,
    local_domains => 'here.example', events_types => 'accepted, delivered, deferred, bounced', events_linger => '5ms', control => undef,
    routes => "here.example maildir:$scratch/mail/%u/Maildir\nliar.example smtp://127.0.0.1:@{[$liar->sockport]}?tls=none\n" .
        "held.example hold\n* smtp://127.0.0.1:$sink->{port}?tls=none&verp=yes", bounces => 'bounce@here.example',
);
sub events { return Petrel::slurp("$petrel->{dir}/events.jsonl") }
sub fresh {
    my (%more) = @_;
    $petrel = Petrel->new(%settings, %more);
    return $petrel->configure(events => "file:$petrel->{dir}/events.jsonl")->start;
}

# Mail of every fate, from every door.
sub traffic {
    my $client = Client->greeted($petrel->{port});
    $client->say('AUTH PLAIN ' . encode_base64("\0zircon\@here.example\0$password", '')) =~ /^235/ or die 'no login';
    $client->send(from => 'quartz@here.example', to => $_, data => "From: quartz\@here.example\r\nX-Petrel-Tag: t\r\n\r\nx\r\n") =~ /^250/ or die "$_: ", $petrel->log
        for qw(onyx@there.example "beryl"@there.example topaz@here.example opal@liar.example garnet@liar.example jasper@held.example);
    $client->say('VRFY agate@there.example');
    $client->say('MAIL FROM:<agate lapis@there.example>');
    $client->say('MAIL FROM:agate@there.example');
    $client->quit;
    my $bad = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.9');
    $bad->say('AUTH PLAIN ' . encode_base64("\0agate\@here.example\0x", ''));
    $bad->say('MAIL FROM:<agate@there.example>');
    $bad->say('RCPT TO:<beryl@elsewhere.example>') =~ /^5/ or die 'not refused';
    $bad->close;
    $bad = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.8');
    $bad->say('AUTH PLAIN ' . encode_base64("\0moonstone\0x", '')) =~ /^5/ or die 'not refused'; # a name without a domain
    $bad->close;
    my ($code, $text) = $petrel->run({ input => "Subject: x\n\nx\n" }, 'sendmail', '-f', 'quartz@here.example', 'onyx@there.example');
    die $text if $code;
    # Two more come back to quartz, or wait: the bounce of opal, and garnet.
    return Petrel::wait_for(sub { Petrel::count($petrel->log, qr/status=sent|"status":"sent"/) >= 5 && Petrel::count(events(), qr/"deferred"/) >= 1 && Petrel::count(events(), qr/"bounced"/) >= 1 });
}
sub leaks { my $text = shift; return [grep { $text =~ /\Q$_\E/i } @names, qw(lapis moonstone)] }

for my $style (qw(petrel postfix json)) {
    for my $form (qw(domain hash)) {
        fresh(log_style => $style, log_addresses => $form);
        ok traffic(), "$style, $form: all of it has happened" or diag $petrel->log, events();
        my ($code, $queue) = $petrel->run('queue', 'ls');
        like $queue, qr/jasper\@held\.example/, 'the queue has addresses whole';
        like +($petrel->run('trace', 'onyx@there.example'))[1], qr/onyx\@there\.example/, 'and so has the history';
        is $petrel->stop, 0, 'stops';
        is_deeply leaks($petrel->log), [], 'no local part in the log' or diag grep { my $l = $_; grep { $l =~ /$_/i } @names } split /^/, $petrel->log;
        is_deeply leaks(events()), [], 'nor in the events' or diag events();
        my $want = $form eq 'domain' ? qr/\*\*\*\@there\.example/ : qr/\b[0-9a-f]{10}\@there\.example/;
        like $petrel->log, $want, 'the domain is there';
        like events(), qr/"recipient":"${want}"/, 'also in events';
    }
}

# The hash of an address is the same in log and events, after a reload and a restart; of another spool it is another.
fresh();
$petrel->send_mail('quartz@here.example', 'onyx@there.example', 'x');
ok Petrel::wait_for(sub { events() =~ /"delivered"/ }), 'full: an event';
like $petrel->log, qr/to=<onyx\@there\.example>/, 'full: the log is as it was';
sub hashes { my $log = shift; return keys %{ { map { $_ => 1 } $log =~ /([0-9a-f]{10})\@there\.example/g } } }
my $from = length $petrel->log;
$petrel->configure(log_addresses => 'hash');
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/settings .*read again|reload/i), 'a reload';
my $all = sub { my $start = shift; $petrel->send_mail('quartz@here.example', $_, 'x') for qw(onyx@there.example Onyx@There.Example); return Petrel::wait_for(sub { Petrel::count(substr($petrel->log, $start), qr/status=sent/) >= 2 }) };
ok $all->($from), 'more mail';
my @first = hashes(substr($petrel->log, $from) =~ s/There\.Example/there.example/gr);
is scalar @first, 1, 'one hash for one address, in any case of its letters' or diag substr $petrel->log, $from;
is $petrel->stop, 0, 'stops';
$petrel->start;
ok $all->(0), 'after a restart';
is_deeply [hashes($petrel->log =~ s/There\.Example/there.example/gr)], \@first, 'the same' or diag $petrel->log;
ok Petrel::wait_for(sub { events() =~ /\Q$first[0]\E\@there\.example/ }), 'in events, too';
is $petrel->stop, 0, 'stops';
fresh(log_addresses => 'hash');
ok $all->(0), 'another spool';
isnt +(hashes($petrel->log))[0], $first[0], 'has another key';
is $petrel->stop, 0, 'stops';

# A fleet that shares its secret shares its hashes.
my @shared = map { fresh(log_addresses => 'hash', srs_secret => 'of-the-whole-fleet-alone'); $all->(0); $petrel->stop; (hashes($petrel->log))[0] } 1, 2;
is $shared[0], $shared[1], 'srs_secret: the same hash on each host';
Petrel::reap($answers, 'KILL');
done_testing;
