# Perl's Net::SMTP sends $FILE.
use strict;
use warnings;
use Net::SMTP;

my %ssl = (SSL_ca_file => $ENV{CA}, SSL_verifycn_name => '127.0.0.1');
my $s = Net::SMTP->new('127.0.0.1', Port => $ENV{PORT}, Hello => 'client.test', Timeout => 60, $ENV{TLS} eq 'implicit' ? (SSL => 1, %ssl) : ())
    or die "no connection: $@\n";
sub done { my ($what, $ok) = @_; $ok or die "$what: " . $s->code . ' ' . $s->message . "\n"; return }
done('STARTTLS', $s->starttls(%ssl)) if $ENV{TLS} eq 'starttls';
done('AUTH', $s->auth($ENV{AUTH_USER}, $ENV{AUTH_PASSWORD})) if $ENV{AUTH_USER};
open my $file, '<:raw', $ENV{FILE} or die;
my $content = do { local $/; <$file> };
done('MAIL', $s->mail($ENV{FROM}, Size => length $content, Bits => '8'));
done('RCPT', $s->to($ENV{TO}));
done('DATA', $s->data($content));
$s->quit;
