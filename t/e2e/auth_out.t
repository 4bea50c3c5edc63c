#!/usr/bin/perl
# Smarthosts that want to know who we are: every mechanism, wrong passwords, a smarthost per sender, others to fall
# back on, and settings that change while mail waits.
use lib 't/e2e';
use E2E;
use AuthServer;

plan skip_all => 'no python3' unless Petrel::have('python3');

my %quick = (minimal_backoff_time => '1s', maximal_backoff_time => '2s');
my $secret = 'a secret, with blanks';

sub take {
    my ($petrel, $from, $to) = @_;
    my $reply = $petrel->send_mail($from, $to, "Subject: s\n\nb\n");
    return $reply =~ /queued as (\S+)/ ? $1 : die "not taken: $reply";
}
sub why { my ($petrel, $id) = @_; return ($petrel->run(qw(queue why), $id))[1] }

# --- Every mechanism; passwords and tokens in a file

{
    my %one = (users => { 'joe@corp.test' => $secret });
    my %host = (plain => AuthServer->launch(%one, mechanisms => 'PLAIN'), login => AuthServer->launch(%one, mechanisms => 'LOGIN'),
        scram => AuthServer->launch(%one, mechanisms => 'PLAIN,SCRAM-SHA-256,LOGIN'), only => AuthServer->launch(%one, mechanisms => 'LOGIN,PLAIN'),
        token => AuthServer->launch(mechanisms => 'PLAIN,XOAUTH2', users => { 'joe@corp.test' => 'token-1' }));
    $_->ready for values %host;
    my $petrel = Petrel->new(%quick, smtp_connection_cache_time_limit => '0s');
    my $token = Petrel::spit("$petrel->{dir}/token", "token-1\n");
    my $file = Petrel::spit("$petrel->{dir}/passwords", join "\n", '# host user password',
        (map { "127.0.0.1:$host{$_}{port} joe\@corp.test $secret" } grep { $_ ne 'token' } keys %host),
        "127.0.0.1:$host{token}{port} joe\@corp.test \@$token", '');
    chmod 0600, $file;
    $petrel->configure(auth_passwords => $file, routes => join "\n",
        map { "$_.test smtp://joe%40corp.test\@127.0.0.1:$host{$_}{port}" . ($_ eq 'only' ? '?auth=login' : '') } sort keys %host);
    $petrel->start;
    for my $name (sort keys %host) {
        my $mechanism = { plain => 'PLAIN', login => 'LOGIN', scram => 'SCRAM-SHA-256', only => 'LOGIN', token => 'XOAUTH2' }->{$name};
        take($petrel, 'a@b.test', "x\@$name.test");
        ok $host{$name}->wait_for(qr/^mail joe\@corp\.test <a\@b\.test> <x\@$name\.test>$/), "$name: the mail arrives, from our user";
        is_deeply [$host{$name}->events(qr/^auth/)], ["auth $mechanism joe\@corp.test good"], "$name: by $mechanism";
    }
    $petrel->wait_empty;
    # The token is read anew: without a reload.
    $host{token}->stop;
    my $again = AuthServer->start(mechanisms => 'PLAIN,XOAUTH2', users => { 'joe@corp.test' => 'token-2' }, port => $host{token}{port});
    Petrel::spit($token, "token-2\n");
    Petrel::wait_for(sub { $petrel->status =~ /"sessions":\s*0\b/ }, 10);
    take($petrel, 'a@b.test', 'y@token.test');
    ok $again->wait_for(qr/^mail joe\@corp\.test <a\@b\.test> <y\@token\.test>$/), 'a new token is taken from its file';
    unlink $token;
    $again->stop;
    my $third = AuthServer->start(mechanisms => 'PLAIN,XOAUTH2', users => { 'joe@corp.test' => 'token-2' }, port => $host{token}{port});
    my $id = take($petrel, 'a@b.test', 'z@token.test');
    ok $petrel->wait_log(qr/$id: .*status=deferred .*cannot log in to the smarthost 127\.0\.0\.1 as joe\@corp\.test: its token file: No such file/), 'no token: it waits, and says so';
    is scalar($third->events(qr/^auth/)), 0, 'and nothing is tried';
    Petrel::spit($token, 'token-2');
    ok $third->wait_for(qr/<z\@token\.test>/), 'when it is there the mail goes';
    is $petrel->stop, 0, 'it ends well';
    unlike $petrel->log, qr/\Q$secret\E|token-[12]/, 'no secret in the log';
    $_->stop for $third, grep { $_->{pid} } values %host;
}

# --- A wrong password: mail stays, and the account is not locked

{
    my $host = AuthServer->start(mechanisms => 'PLAIN,LOGIN', users => { joe => 'right' });
    my $petrel = Petrel->new(relay => "smtp://joe\@127.0.0.1:$host->{port}", relay_password => 'wrong', minimal_backoff_time => '1h', maximal_backoff_time => '2h');
    $petrel->start;
    my @ids = map { take($petrel, 'a@b.test', "u$_\@c.test") } 1 .. 10;
    for my $id (@ids) { $petrel->wait_log(qr/$id: to=.*status=deferred/) }
    like $petrel->log, qr/$ids[0]: to=<u1\@c\.test>.*, dsn=4\.7\.8, status=deferred \(.*the smarthost 127\.0\.0\.1\[127\.0\.0\.1\] refuses our user joe: 535 5\.7\.8 PLAIN says no; check relay_password\)/, 'the log says what is wrong';
    like why($petrel, $ids[3]), qr/refuses our user joe: 535 5\.7\.8 PLAIN says no; check relay_password/, 'so does queue why';
    is scalar(queued($petrel)), 10, 'all mail stays';
    is scalar($host->events(qr/^auth/)), 1, 'one attempt for all of it';
    $petrel->configure(relay_password => 'right');
    kill 'HUP', $petrel->{pid};
    ok $host->wait_for(qr/^mail joe/, 10), 'after a reload with the right one all of it goes';
    ok $petrel->wait_empty, 'and nothing waits for an old backoff';
    is scalar($host->events(qr/^auth.*bad/)), 1, 'without another wrong attempt';
    is $petrel->stop, 0, 'it ends well';
    unlike $petrel->log, qr/\bwrong\b|\bright\b/, 'no password in the log';
    $host->stop;
}

# --- It bounces when its time is over, with the sentence

{
    my $host = AuthServer->start(users => { joe => 'right' });
    my $open = AuthServer->start(mechanisms => '');
    my $sink = Petrel::sink();
    my $petrel = Petrel->new(%quick, routes => "b.test smtp://127.0.0.1:$sink->{port}\nnone.test smtp://joe\@127.0.0.1:$open->{port}", relay => "smtp://joe\@127.0.0.1:$host->{port}",
        maximal_queue_lifetime => '2s');
    my $file = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1:$host->{port} joe wrong\n127.0.0.1:$open->{port} joe any\n");
    chmod 0600, $file;
    $petrel->configure(auth_passwords => $file)->start;
    unlike $petrel->log, qr/can be read by all users/, 'a file of mode 0600 is no matter';
    chmod 0644, $file;
    kill 'HUP', $petrel->{pid};
    ok $petrel->wait_log(qr/auth_passwords: \S+ can be read by all users: chmod 600/), 'a file that everybody can read is warned of';
    my $id = take($petrel, 'a@b.test', 'u@c.test');
    my $none = take($petrel, 'b@b.test', 'u@none.test');
    ok $petrel->wait_log(qr/$none: .*status=deferred .*cannot log in to the smarthost \S+ as joe: it does not offer AUTH; log in at its submission port/), 'no AUTH offered: it waits';
    my $bounce = Petrel::wait_for(sub { (grep { $_->{to}[0] eq 'a@b.test' } Petrel::arrived($sink))[0] });
    like $bounce->{content}, qr/refuses our user joe: 535 5\.7\.8 PLAIN says no; check\s+auth_passwords/, 'the bounce has the sentence';
    $petrel->stop;
    $_->stop for $host, $open;
}

# --- A smarthost per sender

{
    my %host = map { $_ => AuthServer->launch(users => { $_ => "of $_" }) } qw(corp home all);
    $_->ready for values %host;
    my $petrel = Petrel->new(%quick, relay => "smtp://all\@127.0.0.1:$host{all}{port}", local => 'maildir:/nowhere/%u', local_domains => 'here.test',
        routes => "partner.test smtp://home\@127.0.0.1:$host{home}{port}",
        sender_routes => "corp.test smtp://corp\@127.0.0.1:$host{corp}{port}\nme\@home.test smtp://home\@127.0.0.1:$host{home}{port}\nnobody.test error:5.7.1 nobody sends this");
    my $file = Petrel::spit("$petrel->{dir}/passwords", join '', map { "127.0.0.1:$host{$_}{port} $_ of $_\n" } keys %host);
    chmod 0600, $file;
    $petrel->configure(auth_passwords => $file)->start;
    take($petrel, 'x@corp.test', 'a@c.test');
    take($petrel, 'me@home.test', 'b@c.test');
    take($petrel, 'you@home.test', 'c@c.test');
    take($petrel, '', 'd@c.test');
    take($petrel, 'x@corp.test', 'e@partner.test');
    ok $petrel->wait_empty, 'all are sent';
    is_deeply [sort $host{corp}->events(qr/^mail/)], ['mail corp <x@corp.test> <a@c.test>'], 'by domain';
    is_deeply [sort $host{home}->events(qr/^mail/)], ['mail home <me@home.test> <b@c.test>', 'mail home <x@corp.test> <e@partner.test>'], 'by address; a route for the recipient comes first';
    is_deeply [sort $host{all}->events(qr/^mail/)], ['mail all <> <d@c.test>', 'mail all <you@home.test> <c@c.test>'], 'the others by relay';
    my @r = $petrel->dialogue('EHLO x', 'MAIL FROM:<x@nobody.test>', 'RCPT TO:<a@c.test>', 'RCPT TO:<a@partner.test>');
    like $r[3], qr/^550 5\.7\.1 nobody sends this/, 'a sender who is refused hears it at RCPT';
    like $r[4], qr/^250/, 'but not for a recipient with a route';
    is $petrel->stop, 0, 'it ends well';
    $_->stop for values %host;
}

# --- A list: the next one, with its own password; and back to the first

{
    my $first = AuthServer->start(users => { one => 'first' });
    my $second = AuthServer->start(mechanisms => 'LOGIN', users => { two => 'second' });
    my $petrel = Petrel->new(%quick, smtp_connection_cache_time_limit => '0s', relay => "smtp://one\@127.0.0.1:$first->{port}, smtp://two\@127.0.0.1:$second->{port}");
    my $file = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1:$first->{port} one first\n127.0.0.1:$second->{port} two second\n");
    chmod 0600, $file;
    $petrel->configure(auth_passwords => $file)->start;
    take($petrel, 'a@b.test', '1@c.test');
    ok $first->wait_for(qr/^mail one .*<1\@c/), 'the first of the list';
    $first->stop;
    take($petrel, 'a@b.test', '2@c.test');
    ok $second->wait_for(qr/^mail two .*<2\@c/), 'it is gone: the second, with its own user';
    is_deeply [$second->events(qr/^auth/)], ['auth LOGIN two good'], 'who got no other password';
    ok $petrel->wait_empty, 'nothing waits';
    is $petrel->stop, 0, 'it ends well';
    # After a restart nobody remembers that the first was gone.
    $first = AuthServer->start(users => { one => 'changed' }, port => $first->{port});
    $petrel->start;
    take($petrel, 'a@b.test', '3@c.test');
    ok $second->wait_for(qr/^mail two .*<3\@c/), 'the first refuses our user: the second again';
    is_deeply [$first->events(qr/^auth/)], ['auth PLAIN one bad'], 'asked once';
    like $petrel->log, qr/refuses our user one: 535 .*; check auth_passwords/, 'and the log says so';
    $petrel->stop;
    $first->stop;
    $first = AuthServer->start(users => { one => 'first' }, port => $first->{port});
    $petrel->start;
    take($petrel, 'a@b.test', '4@c.test');
    ok $first->wait_for(qr/^mail one .*<4\@c/), 'it is well: the first';
    is $petrel->stop, 0, 'it ends well';
    $_->stop for $first, $second;
}

# --- A reload with another smarthost: mail goes there without waiting

{
    my $dead = Petrel::free_port();
    my $host = AuthServer->start(mechanisms => '');
    my $petrel = Petrel->new(relay => "smtp://127.0.0.1:$dead", minimal_backoff_time => '1h', maximal_backoff_time => '2h')->start;
    my @ids = map { take($petrel, 'a@b.test', "u$_\@c.test") } 1 .. 5;
    $petrel->wait_log(qr/$_: .*status=deferred .*refused/) for @ids;
    $petrel->configure(relay => "smtp://127.0.0.1:$host->{port}");
    kill 'HUP', $petrel->{pid};
    ok $host->wait_for(qr/^mail/, 5), 'all of it is delivered by the new smarthost';
    ok $petrel->wait_empty, 'nothing is left';
    is $petrel->stop, 0, 'it ends well';
    $host->stop;
}

# --- Bad starts

{
    my $petrel = Petrel->new->start; # makes the spool
    is $petrel->stop, 0, 'it has run before';
    $petrel->configure(relay => 'submission://joe@smtp.test');
    my $run = sub { my ($code, $said) = $petrel->configure(@_)->run('check'); return "$code $said" };
    like $run->(), qr/^78 \S+:\d+: relay: 'submission:\/\/joe\@smtp\.test': no password for the user joe at smtp\.test; put a line 'smtp\.test joe PASSWORD' into the file that auth_passwords names, or an account into oauth, or set relay_password or relay_password_file\n\z/, 'a user without a password';
    is +($petrel->run('queue', 'ls'))[0], 0, 'which is nothing to those who only look';
    like $run->(relay_password => $secret), qr/^0 .*^relay_password = \*{8} /ms, 'with it: masked';
    unlike $run->(), qr/\Q$secret\E/, 'and not shown';
    my $file = Petrel::spit("$petrel->{dir}/password", "$secret\n");
    like $run->(relay_password => undef, relay_password_file => $file), qr/^0 .*^relay_password = \*{8}   # .*, from \Q$file\E$/ms, 'from a file';
    like $run->(relay_password_file => "$file.none"), qr/^78 .*relay_password_file: cannot read/, 'a file that is not there';
    is +($petrel->run('sendmail', '-bv', 'x@y.test'))[0], 0, 'who sends mail does not need it';
    like $run->(relay_password_file => undef, auth_passwords => "$file.none"), qr/^78 \S+:\d+: auth_passwords: cannot read '\S+': No such file or directory\n\z/, 'nor a list';
    Petrel::spit($file, "lonely-word\n");
    like $run->(auth_passwords => $file), qr/^78 \S+:\d+: auth_passwords: line 1: /, 'a line that is none';
    unlike $run->(), qr/lonely/, 'is not shown';
    like $run->(auth_passwords => undef, relay => "smtp://joe:$secret\@smtp.test"), qr/^78 \S+:\d+: relay: /, 'a password in the settings';
    my $said = $run->(relay => 'smtp://joe:hush-hush@smtp.test');
    like $said, qr/^78 \S+:\d+: relay: 'smtp:\/\/joe:\*\@smtp\.test': no password is allowed here.*use relay_password or auth_passwords/, 'is refused';
    unlike $said, qr/hush/, 'and not shown';
}

sub queued { my $petrel = shift; return grep { /"queue_id"/ } split /\n/, ($petrel->run(qw(queue ls --json)))[1] }
done_testing;
