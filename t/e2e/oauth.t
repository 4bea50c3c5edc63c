#!/usr/bin/perl
# Tokens of OAuth2 for a smarthost: fetched, renewed, refused; what the provider gets wrong while mail waits. The provider
# and the smarthost are t/support/oauth_provider.py.
use lib 't/e2e';
use E2E;
use OAuth;

plan skip_all => OAuth::missing() if OAuth::missing();

my %quick = (default_connection_reuse_count_limit => 1, minimal_backoff_time => '1s', maximal_backoff_time => '2s', smtp_connection_cache_time_limit => '0s');
my @said; # all output, to be searched for secrets
my $number = 0;

sub take {
    my $petrel = shift;
    my $reply = $petrel->send_mail('a@b.test', 'm' . ++$number . '@y.test', "Subject: s\n\nb\n");
    return $reply =~ /queued as (\S+)/ ? $1 : die "not taken: $reply";
}
sub said { my ($petrel, @command) = @_; my ($code, $text) = $petrel->run(@command); push @said, $text; return $text }
sub why { return said($_[0], qw(queue why), $_[1]) }
sub account { return decode_json(said($_[0], qw(status --json)))->{oauth}[0] }
sub reload { my $petrel = shift; kill 'HUP', $petrel->{pid}; return }
sub finish { my $petrel = shift; $petrel->stop; push @said, $petrel->log; return }

# --- An application that has the right itself

{
    my $provider = OAuth->start;
    my $secret = Petrel::spit("$provider->{dir}/secret", "canary-secret\n");
    chmod 0644, $secret;
    my $petrel = Petrel->new(%quick, $provider->settings("grant=client secret=\@$secret"));
    chmod 0600, $petrel->conf;
    $petrel->start;
    ok $provider->wait_for(qr/^granted/), 'a token is asked for at startup, before there is mail';
    take($petrel) for 1 .. 3;
    ok $provider->wait_for(qr/^mail /, 3), 'mail goes out';
    is scalar($provider->events(qr/^request/)), 1, 'with one token';
    is scalar($provider->events(qr/^auth joe \w+ bad/)), 0, 'the smarthost took it';
    like $petrel->log, qr/oauth: token for joe at 127\.0\.0\.1 until \d{4}-/, 'the log says until when';
    is account($petrel)->{state}, 'ready', 'so does the status';
    like said($petrel, 'status'), qr/^oauth      joe at 127\.0\.0\.1: token until /m, 'for people, too';
    like said($petrel, 'check'), qr/^oauth = \*{8} /m, 'check shows no account';
    like $petrel->log, qr/warning: oauth: \Q$secret\E can be read by all users: chmod 600/, 'a file that everybody can read is warned of';
    my @state = glob "$petrel->{settings}{spool}/oauth/*";
    is scalar(grep { !/\.lock$/ } @state), 1, 'one file of state';
    is((stat $_)[2] & 07777, 0600, 'readable for its owner alone') for @state;
    is((stat "$petrel->{settings}{spool}/oauth")[2] & 07777, 0700, 'so is its directory');

    # Over a restart.
    $petrel->stop;
    $petrel->start;
    take($petrel);
    ok $provider->wait_for(qr/^mail /, 4), 'after a restart';
    is scalar($provider->events(qr/^request/)), 1, 'with the same token';

    # The file is read at startup and reload alone.
    unlink $secret or die;
    reload($petrel);
    ok $petrel->wait_log(qr/petrel\.conf:\d+: oauth: cannot read '\Q$secret\E': No such file or directory\n.*reload refused: .*; the old settings stay/), 'a reload without the file is refused';

    # The smarthost forgets its tokens: a new one is fetched once, and mail does not notice.
    $provider->mode('ok smtp=revoke');
    take($petrel);
    ok $provider->wait_for(qr/^mail /, 5), 'the last mail with that token';
    $provider->mode('ok');
    my $id = take($petrel);
    ok $provider->wait_for(qr/^mail /, 6), 'the token was revoked: the mail goes with another one';
    is scalar($provider->events(qr/^request/)), 2, 'by one more request';
    ok !grep({ /then/ && !/then '\\r\\n'/ } $provider->events(qr/^then/)), 'the refusal in JSON was answered by an empty line';
    unlike $petrel->log, qr/$id: .*status=deferred/, 'the mail was not deferred for that';

    # Refused again: as a wrong password.
    $provider->mode('ok smtp=535');
    $id = take($petrel);
    ok $petrel->wait_log(qr/$id: .*status=deferred .*refuses our user joe: 535 5\.7\.139 .*check oauth, and the rights of the account there/), 'a fresh token is refused: the reason';
    my $logins = () = $provider->events(qr/^auth/);
    $provider->mode('ok');
    ok $provider->wait_for(qr/^mail /, 7), 'it goes when the smarthost takes tokens again';
    finish($petrel);
    like $petrel->log, qr/535 5\.7\.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant\. \*+/, 'a token in a reply is hidden';
}

# --- A person who logs in; with any act of the provider mail waits and leaves

{
    my $provider = OAuth->start;
    my $first = Petrel::spit("$provider->{dir}/first", '');
    chmod 0600, $first;
    my $petrel = Petrel->new(%quick, $provider->settings("refresh=\@$first"))->start;
    ok $petrel->wait_log(qr/oauth: error: no token for joe at 127\.0\.0\.1: nobody has logged in; run: petrel oauth login 127\.0\.0\.1 joe/), 'nobody has logged in: an error, and what to do';
    my $id = take($petrel);
    ok $petrel->wait_log(qr/$id: .*dsn=4\.7\.0, status=deferred \(no token of joe from 127\.0\.0\.1: nobody has logged in; run: petrel oauth login 127\.0\.0\.1 joe\)/), 'the deferral says the same';
    like why($petrel, $id), qr/it lacks a token to log in: no token of joe from 127\.0\.0\.1: .*run: petrel oauth login 127\.0\.0\.1 joe/, 'so does queue why';
    my $sites = decode_json(said($petrel, qw(status --json)))->{sites};
    is_deeply [ @{ $sites->[0] }{qw(state bound)} ], [qw(alive token)], 'the bound of its site';
    is account($petrel)->{state}, 'failed', 'the account';
    like said($petrel, 'status'), qr/^oauth      joe at 127\.0\.0\.1: no token: .*run: petrel oauth login/m, 'for people, too';
    said($petrel, qw(queue flush));
    ok Petrel::wait_for(sub { Petrel::count($petrel->log, qr/$id: .*status=deferred/) > 2 }), 'it is due again and again';
    like why($petrel, $id), qr/^attempts: 1 so far/m, 'which uses up no attempts';
    is scalar($provider->events(qr/^connection/)), 0, 'and no connection';
    ok $petrel->wait_log(qr/trouble=oauth_refused.*joe at 127\.0\.0\.1/), 'and of findings: oauth_refused';
    $provider->first;
    reload($petrel);
    ok $provider->wait_for(qr/^mail /), 'a refresh token is there: the mail goes';
    ok $petrel->wait_log(qr/recovered=oauth_refused/), 'and it is over';

    # Each of these is a clear line; the mail waits, and goes afterwards.
    my %line = (
        html => qr/the answer is a web page, not JSON: check the provider's address in oauth \(tenant, token\), and proxies on the way/, nojson => qr/not JSON/, notoken => qr/access_token/, crlf => qr/token/, negative => qr/expires_in|lifetime/,
        large => qr/token/, 500 => qr/status 500/, 429 => qr/status 429/, redirect => qr/status 302/, closed => qr/127\.0\.0\.1: /, cut => qr/127\.0\.0\.1: /,
        endless => qr/too large/, invalid_grant => qr/invalid_grant: AADSTS70000: it is so; run: petrel oauth login 127\.0\.0\.1 joe/,
        invalid_client => qr/invalid_client.*; run: petrel oauth login/, consent_required => qr/consent_required.*run: petrel oauth login/,
        echo => qr/invalid_grant.*run: petrel oauth login/,
    );
    my $mails = 1;
    for my $fault (sort keys %line) {
        $petrel->stop;
        OAuth::expire($petrel);
        $provider->mode($fault);
        $petrel->start;
        my $waits = take($petrel);
        ok $petrel->wait_log(qr/oauth: (?:error|warning): no token for joe at 127\.0\.0\.1: .*$line{$fault}/), "$fault: a line" or diag $petrel->log =~ s/.*\n(?=(?:.*\n){4})//sr;
        ok $petrel->wait_log(qr/$waits: .*status=deferred \(no token of joe from 127\.0\.0\.1: /), "$fault: the mail waits";
        push @said, $petrel->log;
        Petrel::spit($petrel->{log}, '');
        $provider->mode('ok');
        # A reload makes the account ask again; so does the operator who wants mail to be tried.
        if ($mails % 2) { reload($petrel) } else { said($petrel, qw(queue retry --all)) }
        ok $provider->wait_for(qr/^mail /, ++$mails), "$fault: and goes afterwards";
        ok Petrel::wait_for(sub { account($petrel)->{state} eq 'ready' }), "$fault: the account is well";
    }
    is scalar($provider->events(qr/^lost/)), 0, 'no refresh token was lost by any of them';

    # The host takes no logins at the moment: as at other times, without a new token.
    my $requests = () = $provider->events(qr/^request/);
    $provider->mode('ok smtp=454');
    my $waits = take($petrel);
    ok $petrel->wait_log(qr/$waits: .*status=deferred .*454 4\.7\.0 Temporary authentication failure/), '454: deferred';
    is scalar($provider->events(qr/^request/)), $requests, 'it says nothing about the token';
    $provider->mode('ok');
    ok $provider->wait_for(qr/^mail /, ++$mails), 'and goes';

    # Another certificate.
    $petrel->stop;
    OAuth::expire($petrel);
    $petrel->configure(tls_ca => "$provider->{dir}/keys/other-ca.pem")->start;
    ok $petrel->wait_log(qr/no token for joe at 127\.0\.0\.1: 127\.0\.0\.1: TLS: unknown issuer/), 'a certificate that nobody vouches for';
    take($petrel);
    $petrel->configure(tls_ca => $provider->{ca});
    reload($petrel);
    ok $provider->wait_for(qr/^mail /, ++$mails), 'tls_ca is read again';

    # Slow, with many messages: one request.
    $petrel->stop;
    OAuth::expire($petrel);
    $requests = () = $provider->events(qr/^request/);
    $provider->mode('slow seconds=2');
    $petrel->start;
    # Each message has a session of its own, and a login.
    my ($last, $logins_before) = (undef, scalar($provider->events(qr/^auth/)));
    $last = take($petrel) for 1 .. 200;
    ok $provider->wait_for(qr/^request \S+ slow/), 'the provider is slow';
    ok Petrel::wait_for(sub { why($petrel, $last) =~ /it lacks a token to log in: waits for a token of joe from 127\.0\.0\.1|delivered|no such/ }), 'what mail waits for meanwhile';
    ok $provider->wait_for(qr/^mail /, $mails += 200), 'all mail goes';
    is scalar($provider->events(qr/^auth/)), $logins_before + 200, 'in 200 sessions';
    is scalar($provider->events(qr/^request/)), $requests + 1, 'with one request';
    # Stopped while the provider is asked: its answer may have the only refresh token that is good.
    $petrel->stop;
    OAuth::expire($petrel);
    $provider->mode('slow seconds=1');
    $petrel->start;
    ok $provider->wait_for(qr/^request/, $requests + 2), 'it is asked';
    push @said, $petrel->log;
    Petrel::spit($petrel->{log}, '');
    $petrel->stop;
    like $petrel->log, qr/oauth: token for joe/, 'a stop waits for the answer';
    push @said, $petrel->log;
    $provider->stop;
    OAuth::expire($petrel);
    $petrel->start;
    ok $petrel->wait_log(qr/no token for joe at 127\.0\.0\.1: .*127\.0\.0\.1: .*refused/i), 'nobody is there';
    finish($petrel);
}

# --- A lifetime that is over

{
    my $provider = OAuth->start('invalid_grant');
    my $petrel = Petrel->new(%quick, $provider->settings('refresh=@' . $provider->first), maximal_queue_lifetime => '3s')->start;
    my $id = take($petrel);
    ok $petrel->wait_log(qr/$id: .*status=expired.*invalid_grant/), 'mail without a token expires in time';
    finish($petrel);
}

# --- Accounts come and go with a reload; mistakes

{
    my $provider = OAuth->start;
    my %with = $provider->settings('grant=client secret=canary-secret');
    my $petrel = Petrel->new(%quick, tls_ca => $provider->{ca}, relay => "smtp://127.0.0.1:$provider->{smtp}")->start;
    is_deeply decode_json(said($petrel, qw(status --json)))->{oauth}, [], 'no accounts';
    ok !-e "$petrel->{settings}{spool}/oauth", 'nor a directory for them';
    $petrel->configure(%with);
    reload($petrel);
    ok $petrel->wait_log(qr/oauth: token for joe/), 'an account comes with a reload';
    take($petrel);
    ok $provider->wait_for(qr/^mail /), 'and mail goes';
    $petrel->configure(oauth => $with{oauth} =~ s/custom/bespoke/r);
    reload($petrel);
    ok $petrel->wait_log(qr/petrel\.conf:\d+: oauth: account 1: PROVIDER: say microsoft, google or custom\n.*reload refused: .*; the old settings stay/), 'a mistake is refused';
    take($petrel);
    ok $provider->wait_for(qr/^mail /, 2), 'mail goes on';
    $petrel->configure(oauth => undef, relay => "smtp://127.0.0.1:$provider->{smtp}");
    reload($petrel);
    ok Petrel::wait_for(sub { !@{ decode_json(said($petrel, qw(status --json)))->{oauth} } }), 'and goes with one';
    my $passwords = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1 joe canary-password\n");
    chmod 0600, $passwords;
    for ([ { auth_passwords => $passwords }, qr/^\S+petrel\.conf:\d+: oauth: the user joe at 127\.0\.0\.1 has a second line, here or in auth_passwords: remove one$/m ],
        [ { oauth => $with{oauth} =~ s{\S+$}{secret=\@/none}r }, qr{^\S+petrel\.conf:\d+: oauth: cannot read '/none': No such file or directory$}m ],
        [ { oauth => $with{oauth} =~ s/^127/128/r }, qr/^\S+petrel\.conf:\d+: relay: .*no password for the user joe .*or an account into oauth/m ]) {
        my ($differs, $line) = @$_;
        my $wrong = Petrel->new(%with, %$differs);
        my ($code, $text) = $wrong->run('check');
        push @said, $text;
        like "$code $text", qr/^78 .*/, 'a mistake';
        like $text, $line, 'its line';
    }
    finish($petrel);
    $petrel = Petrel->new(%with, oauth => "$with{oauth}\n127.0.0.2 jim google client=x");
    like said($petrel, 'check'), qr/oauth: no route logs in to 127\.0\.0\.2 as jim/, 'an account without a route';
}

my @leaks = grep { /canary-/ } map { split /\n/ } @said;
is_deeply \@leaks, [], 'no secret, token or body in any output';
ok @said > 30, 'of which there was enough';
done_testing();
