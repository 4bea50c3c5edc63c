#!/usr/bin/perl
# Commands that ask the daemon about itself: reload, log-level, health, unlock; with and without one that answers.
use lib 't/e2e';
use E2E;
use MIME::Base64;

my $scratch = tempdir('daemon-XXXXXX', TMPDIR => 1, CLEANUP => 1);
Petrel::spit("$scratch/users", (Petrel::command("secret\n", $Petrel::binary, 'passwd', 'alice'))[1]);
chmod 0600, "$scratch/users";
my $petrel = Petrel->new(routes => '* discard', log_level => 'warning', auth_users => "$scratch/users", auth_cleartext => 'loopback', auth_failure_limit => 2,
    smtpd_error_sleep_time => '0');

sub says {
    my ($code, $pattern, @command) = @_;
    my ($got, $text) = $petrel->run(@command);
    is $got, $code, "@command: exit code $code" or diag $text;
    like $text, $pattern, "@command: what it says";
    return;
}

# Nobody answers.
says(69, qr/\Apetrel reload: no daemon answers: control socket .*\n\z/, 'reload');
says(69, qr/no daemon answers/, 'log-level');
says(69, qr/no daemon answers/, 'unlock');
says(1, qr/\Apetrel health: no daemon answers: .*\n\z/, 'health');
says(1, qr/no daemon answers/, qw(health --live));

$petrel->start;
says(0, qr/^ready\n\z/, 'health');

# A daemon answers, but not this user.
SKIP: {
    my @other = ('setpriv', '--reuid', scalar(getpwnam 'nobody') // 65534, '--clear-groups');
    skip 'only root can become another user', 1 if $> != 0 || !Petrel::have('setpriv');
    chmod 0755, $petrel->{dir};
    my %code = (health => 1, map { $_ => 77 } qw(status page reload drain log-level unlock), 'status --site x', 'status --cluster', 'queue adopt 0');
    for (sort keys %code) {
        my ($got, $text) = Petrel::command('', @other, $Petrel::binary, '-c', $petrel->conf, split / /);
        skip "another user cannot run it: $text", 1 if $got == 127;
        is $got, $code{$_}, "$_ of another user: exit code $code{$_}";
        like $text, qr/\Apetrel [a-z -]+: control socket '\S+': Permission denied \(only root and the daemon's user may connect\)\n\z/, 'and not that there is no daemon';
    }
    my ($got, $text) = Petrel::command('', @other, $Petrel::binary, '-c', $petrel->conf, 'trace', 'x');
    is $got, 77, 'trace of another user';
    is $text, "petrel trace: only root and the daemon's user may read the history: Permission denied\n", 'is refused in one line';
}
says(0, qr/\Aok\n\z/, qw(health --live));
says(1, qr/\Ausage: petrel health \[--live\]\n/, qw(health --dead));

# The level.
says(0, qr/\Awarning\n\z/, 'log-level');
says(0, qr/\Adebug until .* \(in (?:1 h|59 min).*\), then warning\n\z/, qw(log-level debug));
Client->greeted($petrel->{port})->quit;
ok $petrel->wait_log(qr/smtpd: /), 'a line that a warning is not';
says(0, qr/\Ainfo until the settings are reloaded, then warning\n\z/, qw(log-level info --for 0));
says(0, qr/\Ainfo until the settings are reloaded, then warning\n\z/, 'log-level');
says(65, qr/\Apetrel log-level: level is error, warning, info or debug\n\z/, qw(log-level loud));
says(64, qr/\Ausage: petrel log-level /, qw(log-level info --for));
says(64, qr/\Ausage: petrel log-level /, qw(log-level info --for ever));

# A reload waits for its end; what is wrong is said, and changes nothing.
$petrel->configure(log_level => 'error');
says(0, qr/\Asettings reloaded\n\z/, 'reload');
says(0, qr/\Aerror\n\z/, 'log-level');
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:" . Petrel::free_port());
says(0, qr/\Asettings reloaded; without effect before a restart: listen\n\z/, 'reload') for 1 .. 2;
$petrel->configure(log_level => 'info', smtpd_timeout => 'soon', nonsense => 1);
says(78, qr/smtpd_timeout.*\n(?:.*\n)*petrel reload: reload refused: the settings have errors; the old settings stay: correct them, and reload again\n/, 'reload');
says(78, qr/smtpd_timeout/, 'reload');
$petrel->configure(smtpd_timeout => undef, nonsense => undef, listen => "127.0.0.1:$petrel->{port}");
says(0, qr/\Asettings reloaded\n\z/, 'reload');
says(0, qr/\Ainfo\n\z/, 'log-level');

# Lockouts.
says(0, qr/\Ano client is locked out\n\z/, 'unlock');
sub fail_login {
    my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.7') or return;
    my $reply = $client->say('AUTH PLAIN ' . encode_base64("\0alice\0wrong", ''));
    $client->close;
    return $reply;
}
like fail_login(), qr/^(?:535|421)/, 'a failure' for 1 .. 2;
says(0, qr/\A127\.0\.0\.7 until .*\(in [45] min.*\), lockout 1\n\z/, 'unlock');
says(65, qr/\Apetrel unlock: clients are /, qw(unlock somebody));
says(0, qr/\A127\.0\.0\.7 may log in again\n2001:db8::\/64 was not locked out\n\z/, qw(unlock 127.0.0.7 2001:db8::1));
says(0, qr/\Ano client is locked out\n\z/, 'unlock');
my $client = Client->greeted($petrel->{port}, LocalAddr => '127.0.0.7');
like $client->say('AUTH PLAIN ' . encode_base64("\0alice\0secret", '')), qr/^235/, 'it may log in';
$client->quit;
ok $petrel->wait_log(qr/smtpd: 127\.0\.0\.7 is no longer locked out, requested by root/), 'the log has it' or diag $petrel->log;

# One that hangs.
kill STOP => $petrel->{pid};
says(1, qr/\Apetrel health: the daemon runs, but does not answer\n\z/, 'health');
says(69, qr/does not answer/, 'status');
kill CONT => $petrel->{pid};
says(0, qr/^ready\n\z/, 'health');

# One that stops is not ready.
my $slow = Client->greeted($petrel->{port});
$slow->say('MAIL FROM:<a@b.test>');
kill TERM => $petrel->{pid};
ok $petrel->wait_log(qr/terminating/), 'it stops, with a session open';
says(1, qr/\Anot ready: accepting: the daemon stops\n\z/, 'health');
says(78, qr/\Apetrel reload: the daemon stops\n\z/, 'reload');
$slow->quit;
$petrel->stop;
done_testing;
