#!/usr/bin/perl
# XOAUTH2 at a submission server that we did not write: Postfix, and Dovecot, which verifies the tokens by itself.
use lib 't/e2e';
use E2E;
use Dovecot;
use OAuth;
use Peer;

my $missing = OAuth::missing() || Peer::missing('postfix') || Dovecot::missing() || Dovecot::no_tokens();
plan skip_all => $missing if $missing;

my $scratch = tempdir('tokens-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $provider = OAuth->start;
chmod 0755, $scratch;
mkdir "$scratch/dovecot" or die;
my %key = (right => 'a key of thirty-two octets, right', wrong => 'a key of thirty-two octets, wrong');
Petrel::spit("$scratch/$_", $key{$_}) for keys %key;
my $dovecot = Dovecot->start_auth("$scratch/dovecot", jim => 'x', hmac => $key{right});
my $postfix = Peer::postfix($sink->{port}, smtpd_tls_security_level => 'may', smtpd_sasl_type => 'dovecot', smtpd_sasl_path => "inet:127.0.0.1:$dovecot->{port}",
    smtpd_sasl_security_options => 'noanonymous', smtpd_tls_chain_files => '/etc/postfix/good-both.pem', files => { 'good-both.pem' => "$provider->{dir}/keys/good-both.pem" },
    listeners => { submission => { smtpd_sasl_auth_enable => 'yes', smtpd_tls_security_level => 'encrypt', smtpd_relay_restrictions => 'permit_sasl_authenticated, reject' } });

$provider->mode("ok jwt=$scratch/right");
my $petrel = Petrel->new($provider->settings('refresh=@' . $provider->first), relay => "smtp://joe\@127.0.0.1:$postfix->{ports}{submission}?tls=encrypt",
    minimal_backoff_time => '1s', maximal_backoff_time => '2s', smtp_connection_cache_time_limit => '0s')->start;
my $arrives = sub {
    my $subject = shift;
    my ($id) = $petrel->send_mail('a@b.test', 'x@y.test', "Subject: $subject\n\nb\n") =~ /queued as (\S+)/ or die;
    return $id;
};
my $is_there = sub { my $subject = shift; return Petrel::wait_for(sub { grep { $_->{data} =~ /^Subject: $subject\r?$/m } $sink->messages }) };
$arrives->('one');
ok $is_there->('one'), 'Dovecot takes the token, Postfix the mail' or diag $petrel->log, $dovecot && Petrel::slurp($dovecot->{log});
ok $postfix->wait_log(qr/sasl_method=XOAUTH2, sasl_username=joe/), 'from our user' or diag $postfix->log;
is scalar($provider->events(qr/^granted/)), 1, 'one token';

# A token whose signature is wrong is refused, and another one is fetched.
$petrel->stop;
OAuth::expire($petrel);
$provider->mode("ok jwt=$scratch/wrong");
$petrel->start;
my $id = $arrives->('two');
ok $petrel->wait_log(qr/refuses our user joe: 535 5\.7\.8 .*; trying another token/), 'a token that is not good: another one' or diag $petrel->log;
ok $petrel->wait_log(qr/$id: .*status=deferred .*refuses our user joe: 535 5\.7\.8 .*check oauth/), 'which is not good, either';
$provider->mode("ok jwt=$scratch/right");
ok $is_there->('two'), 'the mail goes when they are good again' or diag $petrel->log;
unlike $petrel->log, qr/canary|eyJ/, 'no token in the log';
$petrel->stop;
$postfix->stop;
$dovecot->stop;
done_testing();
