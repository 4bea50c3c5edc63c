# The provider and smarthost of t/support/oauth_provider.py, for the tests.
package OAuth;

use strict;
use warnings;
use File::Temp qw(tempdir);
use JSON::PP;
use Petrel;

# Why there can be none; empty when there can.
sub missing {
    return 'no python3' unless Petrel::have('python3');
    return 'no openssl' unless Petrel::have('openssl');
    return '';
}

# start(MODE, PREPARE): {port} of the provider, {smtp} of the smarthost, {ca} that has signed its certificate.
# PREPARE->(DIRECTORY) may change the certificates.
sub start {
    my ($class, $mode, $prepare) = @_;
    my $dir = tempdir('oauth-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $self = bless { dir => $dir, ca => "$dir/keys/ca.pem" }, $class;
    system('sh', "$Petrel::root/t/support/tls_certificates.sh", "$dir/keys") == 0 or die 'no certificates';
    $prepare->("$dir/keys") if $prepare;
    $self->mode($mode // 'ok');
    $self->{pid} = Petrel::spawn("$dir/output", Petrel::have('python3'), "$Petrel::root/t/support/oauth_provider.py", $dir, "$dir/keys");
    Petrel::wait_for(sub { Petrel::slurp("$dir/output") =~ /^ports \d+ \d+$/m }) or die 'no provider: ' . Petrel::slurp("$dir/output");
    @$self{qw(port smtp)} = Petrel::slurp("$dir/output") =~ /^ports (\d+) (\d+)$/m;
    return $self;
}

sub mode { my ($self, $words) = @_; Petrel::spit("$self->{dir}/mode.new", $words); rename "$self->{dir}/mode.new", "$self->{dir}/mode"; return $self }
# Somebody has logged in: the file of a first refresh token.
sub first { my $self = shift; Petrel::spit("$self->{dir}/first", 'canary-refresh-first'); chmod 0600, "$self->{dir}/first"; return "$self->{dir}/first" }
# The token in the file of state, which is whole, has ended, as after an hour.
sub expire {
    my $petrel = shift;
    for my $file (grep { m{/[0-9a-f]{16}\z} } glob "$petrel->{settings}{spool}/oauth/*") {
        my $state = decode_json(Petrel::slurp($file));
        $state->{expires} = 1000;
        Petrel::spit($file, encode_json($state));
    }
    return;
}
sub events { my ($self, $pattern) = @_; return grep { $_ =~ $pattern } split /\n/, Petrel::slurp("$self->{dir}/events") }
sub wait_for { my ($self, $pattern, $count) = @_; return Petrel::wait_for(sub { (() = $self->events($pattern)) >= ($count || 1) }) }
sub stop { my $self = shift; Petrel::reap(delete $self->{pid}, 'KILL') if $self->{pid}; return }

# Settings of a daemon that relays by it as joe; keys: of the account.
sub settings {
    my ($self, $keys) = @_;
    return (relay => "smtp://joe\@127.0.0.1:$self->{smtp}", tls_ca => $self->{ca},
        oauth => "127.0.0.1 joe custom client=id token=https://127.0.0.1:$self->{port}/token device=https://127.0.0.1:$self->{port}/device authorize=https://127.0.0.1:$self->{port}/authorize $keys");
}

1;
