#!/usr/bin/perl
# Clients of a few addresses that try to keep the daemon from others, and a good client of another address that gets through
# while they stand: in their order, not by the clock. What they cost is measured by t/bench/flood.pl.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Client;
use MIME::Base64;
use Petrel;
use Test::More;

my %daemon = (routes => '* hold', relay_from => '192.0.2.0/24', local_domains => 'here.test', max_sessions_per_client => 100);
sub petrel { my %settings = @_; return Petrel->new(%daemon, %settings) }
sub from { my ($petrel, $ip) = @_; return Client->greeted($petrel->{port}, LocalAddr => $ip) }
sub plain { my ($user, $password) = @_; return 'AUTH PLAIN ' . encode_base64("\0$user\0$password", '') }

# --- AUTH

{
    my $petrel = petrel(auth_clear_text => 'loopback', smtpd_error_sleep_time => 0);
    my ($code, $line) = Petrel::command("right\n", $Petrel::binary, 'passwd', 'alice');
    is $code, 0, 'petrel passwd';
    chmod 0600, Petrel::spit("$petrel->{dir}/users", $line);
    $petrel->configure(auth_users => "$petrel->{dir}/users")->start;
    like from($petrel, '127.0.0.9')->say(plain(alice => 'right')), qr/^235/, 'AUTH: a user logs in';

    my @bad = map { from($petrel, '127.0.0.2') } 1 .. 95;
    $_->put(('AUTH PLAIN ' . encode_base64('garbage', '') . "\r\n") x 5) for @bad;
    like $bad[-1]->reply, qr/^(?:501|421|454)/, 'AUTH: 95 connections of one address say what is no login, and are answered';
    like from($petrel, '127.0.0.3')->say(plain(alice => 'right')), qr/^235/, 'AUTH: while they stand a new client logs in';
    is scalar(() = $petrel->log =~ /refused=501 5\.5\.2/g), 9, 'AUTH: what is no login counts as a failure...';
    like $petrel->log, qr/auth=locked, client=\[127\.0\.0\.2\], failures=10/, 'AUTH: ...which locks out';

    my @guessing = map { from($petrel, "127.0.1.$_") } 1 .. 100;
    $_->put(plain(alice => 'wrong') . "\r\n") for @guessing;
    like from($petrel, '127.0.0.9')->say(plain(alice => 'right')), qr/^235/, 'AUTH: 100 addresses guess; the user that was there before logs in';
    is $petrel->stop, 0, 'AUTH: the daemon ends well';
}

done_testing;
