#!/usr/bin/perl
# `petrel oauth login|status|forget`: the device flow, a pasted address, an application's own right; what the provider gets
# wrong meanwhile, and that a login which fails leaves the one before it. The provider is t/support/oauth_provider.py.
use lib 't/e2e';
use E2E;
use OAuth;

plan skip_all => OAuth::missing() if OAuth::missing();

my @said; # all output, to be searched for secrets
my $provider = OAuth->start;
my $secret = Petrel::spit("$provider->{dir}/secret", "canary-secret\n");
chmod 0600, $secret;
my %quick = (minimal_backoff_time => '1s', maximal_backoff_time => '2s', smtp_connection_cache_time_limit => '0s');

sub petrel {
    my %settings = ($provider->settings("secret=\@$secret"), @_);
    my $petrel = Petrel->new(%quick, %settings);
    chmod 0600, $petrel->conf;
    return $petrel;
}
sub said { my ($petrel, @command) = @_; my ($code, $text) = $petrel->run(@command); push @said, $text; return ($code, $text) }
sub login { my ($petrel, @flags) = @_; return said($petrel, qw(oauth login), @flags, '127.0.0.1', 'joe') }
sub account { return decode_json((said($_[0], qw(oauth status --json)))[1])->{accounts}[0] }
sub files { return grep { !/\.lock$/ } glob "$_[0]{settings}{spool}/oauth/*" }
sub state_of { my $petrel = shift; return join '', map { Petrel::slurp($_) } files($petrel) }

# Runs the command with a person: answers what it prints by what the code returns.
sub with_person {
    my ($petrel, $person, @flags) = @_;
    my $log = "$provider->{dir}/person";
    unlink $log;
    pipe my $in, my $out or die;
    my $pid = fork // die;
    if ($pid == 0) {
        close $out;
        open STDIN, '<&', $in;
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec $Petrel::binary, '-c', $petrel->conf, qw(oauth login), @flags, '127.0.0.1', 'joe' or POSIX::_exit(127);
    }
    close $in;
    Petrel::wait_for(sub { Petrel::slurp($log) =~ /here: $/ });
    my ($url) = Petrel::slurp($log) =~ m{^(https://\S+)$}m;
    local $SIG{PIPE} = 'IGNORE';
    my $answer = $person->($url // '', $pid);
    syswrite $out, $answer if defined $answer;
    close $out;
    waitpid $pid, 0;
    my $status = $?;
    push @said, Petrel::slurp($log);
    return ($status & 127 ? -1 : $status >> 8, Petrel::slurp($log));
}

# The address that the browser is sent to.
sub browse {
    my $url = shift;
    my ($code, $text) = Petrel::command(undef, Petrel::have('python3'), '-c',
        'import ssl,sys,urllib.request as u; print(u.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())', $url);
    $text =~ s/\s+$//;
    return $text;
}

# Uses the code of an address before we do.
sub spend {
    my ($code) = $_[0] =~ /code=([^&]*)/;
    Petrel::command(undef, Petrel::have('python3'), '-c',
        "import ssl,sys,urllib.request as u\ntry: u.urlopen(sys.argv[1], data=sys.argv[2].encode(), context=ssl._create_unverified_context())\nexcept Exception: pass",
        "https://127.0.0.1:$provider->{port}/token", "grant_type=authorization_code&code=$code");
    return;
}

my $petrel = petrel();
$petrel->start;
$petrel->stop;

# --- Words

is((said($petrel, 'oauth'))[0], 64, 'no word: usage');
is((said($petrel, qw(oauth login), '127.0.0.1'))[0], 64, 'no user: usage');
is((said($petrel, qw(oauth status joe)))[0], 64, 'too many words: usage');
is((said($petrel, qw(oauth status --browser)))[0], 64, 'a flag of another verb: usage');
my ($code, $text) = said($petrel, qw(oauth login 127.0.0.1 jane));
is $code, 65, 'a user without account';
like $text, qr/oauth has no account of that user at: 127\.0\.0\.1/, 'named';
is((said($petrel, qw(oauth forget 127.0.0.1 joe)))[0], 65, 'nothing to forget');
($code, $text) = said($petrel, qw(oauth status));
is $code, 0, 'status without a login';
like $text, qr/^joe at 127\.0\.0\.1: nobody has logged in; run: petrel oauth login 127\.0\.0\.1 joe$/m, 'says what to do';
is account($petrel)->{state}, 'none', 'so does the JSON';

# --- The device flow

$provider->mode('ok pending=2');
($code, $text) = login($petrel);
is $code, 0, 'device flow' or diag $text;
like $text, qr{^Open https://login\.test/device$}m, 'the address';
like $text, qr/enter the code ABCD-EFGH$/m, 'the code';
unlike $text, qr/refresh token/, 'there is no complaint';
like $text, qr/^Logged in as joe at 127\.0\.0\.1\. The token is valid until /m, 'the end';
like $text, qr/^127\.0\.0\.1 accepts the login\.$/m, 'and that the smarthost takes it';
is scalar($provider->events(qr/^request .*device_code/)), 3, 'it was asked until the person had answered';
is account($petrel)->{state}, 'ready', 'status: ready';
my ($file) = files($petrel);
is((stat $file)[2] & 07777, 0600, 'the state is readable by its owner alone');
my $kept = state_of($petrel);
like $kept, qr/canary-refresh/, 'it has the refresh token';

# --- Any failure leaves the login

sub fails {
    my ($mode, $want, $pattern, $name, @flags) = @_;
    $provider->mode($mode);
    my ($code, $text) = login($petrel, @flags);
    is $code, $want, "$name: exit code" or diag $text;
    like $text, $pattern, "$name: a sentence";
    is state_of($petrel), $kept, "$name: the login before it stays";
}
fails('html', 75, qr/the provider gives no code: the answer is a web page, not JSON: check the provider's address in oauth/, 'HTML');
fails('nojson', 75, qr/the provider gives no code/, 'cut JSON');
fails('500', 75, qr/the provider gives no code: status 500/, 'status 500');
fails('429', 75, qr/the provider gives no code: status 429/, 'status 429');
fails('closed', 75, qr/the provider gives no code/, 'closes');
fails('cut', 75, qr/the provider gives no code/, 'closes within the answer');
fails('endless', 75, qr/the provider gives no code/, 'endless');
fails('redirect', 77, qr/redirects are not followed/, 'a redirect');
fails('invalid_client', 77, qr/status 401: invalid_client/, 'a wrong client');
fails('ok pending=9 poll=access_denied', 77, qr/the provider gives no token: status 400: access_denied/, 'denied by the person');
fails('ok pending=9 poll=expired_token', 77, qr/status 400: expired_token/, 'an expired code');
fails('ok pending=9 expires=2', 75, qr/nobody has entered the code in time: run it again/, 'a code that nobody enters');
fails('ok pending=9 poll=slow_down expires=7', 75, qr/nobody has entered the code in time/, 'slow_down');
fails('ok pending=0 rotate=no', 77, qr/the provider sent no refresh token/, 'no refresh token');

# --- A pasted address

$provider->mode('ok');
($code, $text) = with_person($petrel, sub { browse($_[0]) . "\n" }, '--browser');
is $code, 0, 'a pasted address' or diag $text;
like $text, qr/^Logged in as joe|here: Logged in as joe/m, 'logged in';
isnt state_of($petrel), $kept, 'another token';
$kept = state_of($petrel);

my $used;
($code, $text) = with_person($petrel, sub { $used = browse($_[0]); $used =~ s/state=[^&]*/state=other/; "$used\n" }, '--browser');
is $code, 65, 'a wrong state';
like $text, qr/this address belongs to another login/, 'says so';
($code, $text) = with_person($petrel, sub { my ($own) = $_[0] =~ /[?&]state=([^&]*)/; (my $old = $used) =~ s/state=other/state=$own/; browse($_[0]); "$old\n" }, '--browser');
is $code, 77, 'a code of another verifier';
like $text, qr/status 400: invalid_grant/, 'says so';
($code, $text) = with_person($petrel, sub { my $address = browse($_[0]); spend($address); "$address\n" }, '--browser');
is $code, 77, 'a code that was used already';
($code, $text) = with_person($petrel, sub { my $address = browse($_[0]); $provider->mode('500'); "$address\n" }, '--browser');
is $code, 75, 'status 500 for a code';
$provider->mode('ok');
($code, $text) = with_person($petrel, sub { my ($own) = $_[0] =~ /[?&]state=([^&]*)/; "http://127.0.0.1:8976/?error=access_denied&state=$own\n" }, '--browser');
is $code, 65, 'refused in the browser';
like $text, qr/the provider refuses: access_denied/, 'says so';
is((with_person($petrel, sub { "hello\n" }, '--browser'))[0], 65, 'no address');
is((with_person($petrel, sub { 'x' x 9000 . "\n" }, '--browser'))[0], 65, 'an address without end');
is((with_person($petrel, sub { undef }, '--browser'))[0], 65, 'no input');
is((with_person($petrel, sub { kill 'INT', $_[1]; undef }, '--browser'))[0], -1, 'interrupted');
is state_of($petrel), $kept, 'all of them leave the login';

# --- With a running daemon

my ($kept_file) = files($petrel);
is((said($petrel, qw(oauth forget 127.0.0.1 joe)))[0], 0, 'forgotten');
chmod 0600, Petrel::spit("$kept_file.new", 'secrets');
is((said($petrel, qw(oauth forget 127.0.0.1 joe)))[0], 0, 'so is what a crash has left of a login');
is scalar(files($petrel)), 0, 'all of it';
is account($petrel)->{state}, 'none', 'nothing is left';
$petrel->start;
my $reply = $petrel->send_mail('a@b.test', 'm@y.test', "Subject: s\n\nb\n");
ok $petrel->wait_log(qr/no token for joe at 127\.0\.0\.1: nobody has logged in; run: petrel oauth login 127\.0\.0\.1 joe/), 'a daemon without a login';
($code, $text) = login($petrel);
is $code, 0, 'a login beside the daemon';
ok $provider->wait_for(qr/^mail m\@y\.test/), 'the daemon finds it, and mail goes out';
like((said($petrel, qw(status)))[1], qr/^oauth      joe at 127\.0\.0\.1: token until /m, 'it has a token');
is((said($petrel, qw(oauth forget 127.0.0.1 joe)))[0], 0, 'forgotten beside it');
ok Petrel::wait_for(sub { (said($petrel, qw(status)))[1] =~ /^oauth      joe at 127\.0\.0\.1: no token: nobody has logged in/m }), 'the daemon forgets it, too';
is((login($petrel))[0], 0, 'and the next login');
ok Petrel::wait_for(sub { (said($petrel, qw(status)))[1] =~ /joe at 127\.0\.0\.1: token until /m }), 'is known immediately';
$petrel->stop;
push @said, $petrel->log;

# --- An application's own right; an account without URLs for people

my $app = petrel($provider->settings("grant=client secret=\@$secret"));
$app->start;
$app->stop;
is((login($app))[0], 0, 'an application');
is account($app)->{grant}, 'client', 'its grant';
$provider->mode('invalid_client');
($code, $text) = login($app);
is $code, 77, 'refused';
like $text, qr/status 401: invalid_client/, 'with the error';
$provider->mode('echo');
($code, $text) = login($app);
is $code, 77, 'a provider that repeats the secret';
like $text, qr/\(hidden\)/, 'is not repeated by us';
$provider->mode('ok');
my $bare = petrel(oauth => "127.0.0.1 joe custom client=id token=https://127.0.0.1:$provider->{port}/token");
$bare->start;
$bare->stop;
($code, $text) = login($bare);
is $code, 78, 'an account without device= and authorize=';
like $text, qr/neither device= nor authorize=/, 'says so';

my $distrustful = petrel(tls_ca => "$provider->{dir}/keys/other-ca.pem");
$distrustful->start;
$distrustful->stop;
my $before = $provider->events(qr/^device/);
($code, $text) = login($distrustful);
is $code, 75, 'a certificate of another authority';
like $text, qr/the provider gives no code: .*TLS: unknown issuer/, 'says so';
is scalar($provider->events(qr/^device/)), $before, 'nothing was asked';

# --- A slow provider; a disk that cannot be written

$provider->mode('slow seconds=2');
is((login($petrel))[0], 0, 'a slow provider');
$provider->mode('ok pending=0');
my $spool = $petrel->{settings}{spool};
rename "$spool/oauth", "$spool/aside" or die;
Petrel::spit("$spool/oauth", '');
($code, $text) = login($petrel);
is $code, 74, 'no directory for the state';
like $text, qr/the login cannot be kept: Not a directory/, 'says so';
unlink "$spool/oauth";
rename "$spool/aside", "$spool/oauth" or die;
is account($petrel)->{state}, 'ready', 'the login before it stays';
my ($state_file) = files($petrel);
my $state = decode_json(Petrel::slurp($state_file));
for (['a clock that was set back' => 48 * 3600, 'due'], ['a clock an hour ahead' => -1, 'due'], ['the time of the login' => 3600, 'ready']) {
    my ($name, $left, $want) = @$_;
    Petrel::spit($state_file, encode_json({ %$state, expires => (time + $left) * 1000 }));
    is account($petrel)->{state}, $want, $name;
}
Petrel::spit($state_file, '{"host":');
($code, $text) = said($petrel, qw(oauth status));
is $code, 74, 'status of a damaged file';
like $text, qr/damaged, or of another account/, 'says so';
is((login($petrel))[0], 0, 'a login repairs it');
like state_of($petrel), qr/canary-refresh/, 'with new tokens';

# --- The smarthost's reply

$provider->mode('ok pending=0 smtp=535');
($code, $text) = login($petrel);
is $code, 77, 'a smarthost that refuses the login';
like $text, qr/^Logged in as joe/m, 'the provider has not';
like $text, qr/^petrel oauth: 127\.0\.0\.1 refuses the login, which is kept: .*535 5\.7\.139 /m, 'in its words';
like state_of($petrel), qr/canary-refresh/, 'the state is kept';
$provider->mode('ok pending=0');
{
    my $closed = petrel(relay => 'smtp://joe@127.0.0.1:1', spool => $petrel->{settings}{spool});
    ($code, $text) = login($closed);
    is $code, 0, 'a smarthost that cannot be reached is no error';
    like $text, qr/^petrel oauth: the login is kept, but 127\.0\.0\.1 could not be asked whether it accepts it: .*refused/m, 'but said';
    my $unused = petrel(relay => "smtp://127.0.0.1:$provider->{smtp}", spool => $petrel->{settings}{spool});
    ($code, $text) = login($unused);
    is $code, 0, 'an account that no route uses';
    like $text, qr/^No route logs in at 127\.0\.0\.1 as joe yet\.$/m, 'is said to be one';
}

# --- As root: the files belong to the owner of the spool

SKIP: {
    skip 'not root', 3 if $> != 0;
    my $owned = petrel($provider->settings(''));
    chmod 0755, $owned->{dir};
    $owned->start;
    $owned->stop;
    my $uid = getpwnam('nobody');
    system('chown', '-R', $uid, $owned->{settings}{spool});
    ($code, $text) = login($owned);
    is $code, 0, 'as root' or diag $text;
    my ($file) = files($owned);
    is((stat $file)[4], $uid, 'the state belongs to the owner of the spool');
    is((stat "$owned->{settings}{spool}/oauth")[4], $uid, 'so does its directory');
}

is scalar(grep { /canary/ } @said), 0, 'no secret in any output' or diag grep { /canary/ } @said;
$provider->stop;
($code, $text) = login($petrel);
is $code, 75, 'no provider';
like $text, qr/the provider gives no code: /, 'says so';
done_testing;
