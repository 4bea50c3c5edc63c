#!/usr/bin/perl
# Silence is found: a smarthost refuses the password from the start, then the sender, and nobody sends mail. Each place where
# an operator may look says so, readiness follows after its grace, and the smarthost sees the dialogue alone, and few logins.
use lib 't/e2e';
use E2E;
use MoodySmarthost;

my $scratch = tempdir('silence-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $smarthost = MoodySmarthost->new($scratch);
my $relay = "127.0.0.1:$smarthost->{port}";
$smarthost->mode('login');
for (qw(password token)) { Petrel::spit("$scratch/$_", 'a-secret-of-sixteen-octets'); chmod 0600, "$scratch/$_" }
my $petrel = Petrel->new(hostname => 'petrel.test', relay => "smtp://alice\@$relay", relay_password_file => "$scratch/password",
    ready_when => 'accepting, upstream', canary_grace => '1h', events => "file:$scratch/events", http_token_file => "$scratch/token",
    minimal_backoff_time => '1h', maximal_backoff_time => '1h', http => '127.0.0.1:' . (my $http = Petrel::free_port()))->start;

# (status, body)
sub get {
    my ($path) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $http) or die;
    print $s "GET $path HTTP/1.1\r\nHost: localhost\r\nX-Petrel: 1\r\nAuthorization: Bearer a-secret-of-sixteen-octets\r\nConnection: close\r\n\r\n";
    local $/;
    my ($status, $body) = (<$s> // '') =~ m{^HTTP/1\.1 (\d+) .*?\r\n\r\n(.*)}s or return (0, '');
    return ($status, $body);
}
sub reload { $petrel->configure(@_); return is +($petrel->run('reload'))[0], 0, 'a reload' }
sub found { my $code = shift; my ($found) = grep { $_->{code} eq $code } @{ decode_json(($petrel->run(qw(status --json)))[1])->{findings} }; return $found }
sub told { my ($type, $code) = @_; return grep { $_->{type} eq $type && ($_->{kind} // "") eq $code } map { decode_json($_) } Petrel::slurp("$scratch/events") =~ /^(.*)\n/mg }
sub logins { return Petrel::count($smarthost->heard, qr/^AUTH/m) }

# A finding at every place.
sub everywhere {
    my ($code, $reply, $sentence) = @_;
    ok Petrel::wait_for(sub { found($code) }), "$code: a finding" or return diag $petrel->log;
    my $found = found($code);
    like $found->{text}, $reply, "$code: in the words of the smarthost";
    like $found->{remedy}, qr/^[A-Z][a-z]+ .*\.$/, "$code: with a remedy";
    like +(get('/api/findings'))[1], qr/"\Q$code\E"/, "$code: for the page and for programs";
    like +($petrel->run('status'))[1], qr/^error +\Q$code\E .*\n\s+\Q$found->{remedy}\E/m, "$code: at the top of status, with its remedy";
    like $petrel->log, qr/warning: \Q$relay\E $sentence: .*$reply/, "$code: in the log";
    like $petrel->log, qr/trouble=$code/, "$code: as trouble";
    like +(get('/metrics'))[1], qr/^petrel_finding\w*\{[^}]*"$code"[^}]*\} 1$/m, "$code: a metric" or diag +(get('/metrics'))[1] =~ /^petrel_finding.*/mg;
    return ok(Petrel::wait_for(sub { told('trouble', $code) }), "$code: an event") || diag Petrel::slurp("$scratch/events");
}

# The password. A reload has the canary go a second later; that of the start would come after half a minute.
reload();
everywhere('login_refused', qr/535 5\.7\.8 bad password/, 'refuses the login');
like +(get('/metrics'))[1], qr/^petrel_upstream_up\{relay="\Q$relay\E"\} 0$/m, 'its upstream is down';
my ($status, $body) = get('/readyz');
is $status, 200, 'within canary_grace it is ready' or diag $body;
is $smarthost->heard, "EHLO petrel.test\nAUTH PLAIN\nQUIT\n", 'the smarthost sees the dialogue';
reload(canary_grace => 0);
ok Petrel::wait_for(sub { (get('/readyz'))[0] == 503 }), 'after it it is not';
($status, $body) = get('/readyz');
like $body, qr/^not ready\n(?:.*\n)*upstream fail/, 'because of its upstream';
like $body, qr/535 5\.7\.8 bad password/, 'and who may read is told why';
is +(get('/livez'))[0], 200, 'it lives';

# Mail waits, and logs in no more often than a login may be tried.
my $before = logins();
like $petrel->send_mail("a$_\@x.test", 'b@y.test', "Subject: x\n\nx"), qr/^250/m, 'mail is taken' for 1 .. 5;
ok Petrel::wait_for(sub { my @waiting = $petrel->log =~ /535 5\.7\.8.*/g; $petrel->queued == 5 && @waiting > 1 }), 'and waits' or diag $petrel->log;
cmp_ok logins(), '<=', $before + 1, 'all of it with one login at most';
unlike $smarthost->heard, qr/RCPT|DATA/, 'none of it is offered';

# The sender: the password is right now.
$smarthost->mode('sender');
reload();
$petrel->run(qw(queue retry --all));
everywhere('sender_refused', qr/553 5\.7\.1 sender not owned/, 'refuses the sender');
ok Petrel::wait_for(sub { !found('login_refused') }), 'the password is no trouble any more';
ok Petrel::wait_for(sub { told('recovered', 'login_refused') }), 'which is an event';
ok Petrel::wait_for(sub { (get('/readyz'))[0] == 200 }), 'ready: the smarthost is not down' or diag +(get('/readyz'))[1];

# All is well.
$smarthost->mode('good');
reload();
# A notification may be on its way, and be refused, while the others are told to go.
ok Petrel::wait_for(sub { $petrel->run(qw(queue retry --all)); $petrel->queued == 0 }), 'the mail goes' or diag $petrel->log;
ok Petrel::wait_for(sub { !found('sender_refused') && told('recovered', 'sender_refused') }), 'and the finding with it, told as an event';
like +(get('/metrics'))[1], qr/^petrel_upstream_up\{relay="\Q$relay\E"\} 1$/m, 'its upstream is up';
is $petrel->stop, 0, 'it ends';
done_testing;
