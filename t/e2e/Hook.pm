# A receiver of webhooks (hook_receiver.py), and what arrived there.
package Hook;
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use MIME::Base64 qw(decode_base64 encode_base64);
use Petrel;

sub missing { return Petrel::have('python3') ? undef : 'no python3' }

sub start {
    my ($class, $mode, @tls) = @_; # certificate, key
    my $dir = tempdir('petrel-hook-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $self = bless { dir => $dir, port => Petrel::free_port(), tls => \@tls }, $class;
    return $self->mode($mode // '200')->again;
}

sub again {
    my $self = shift;
    unlink "$self->{dir}/ready";
    $self->{pid} = Petrel::spawn("$self->{dir}/log", 'python3', 't/e2e/hook_receiver.py', $self->{dir}, $self->{port}, @{ $self->{tls} });
    Petrel::wait_for(sub { -e "$self->{dir}/ready" }) or die "no receiver: " . Petrel::slurp("$self->{dir}/log");
    return $self;
}

sub mode { my ($self, $words) = @_; Petrel::spit("$self->{dir}/mode.new", $words); rename "$self->{dir}/mode.new", "$self->{dir}/mode"; return $self }
sub url { my $self = shift; return "http://127.0.0.1:$self->{port}/hook?token=canary-url" }
sub stop { my $self = shift; Petrel::reap(delete $self->{pid}, 'KILL') if $self->{pid}; return $self }
# Read on from where it was left.
sub requests {
    my $self = shift;
    open my $file, '<:raw', "$self->{dir}/events" or return;
    seek $file, $self->{read} // 0, 0;
    while (my $line = <$file>) {
        last unless $line =~ /\n\z/;
        my $request = decode_json($line);
        $request->{body} = decode_base64($request->{body});
        $request->{events} = $request->{body} =~ /\A\{"type":"petrel/ ? eval { decode_json($request->{body})->{data} } : undef; # a message has none
        push @{ $self->{requests} }, $request;
        $self->{read} = tell $file;
    }
    return @{ $self->{requests} // [] };
}

# Events of requests that were answered with 2xx, or of all; in their order.
sub taken { return map { @{ $_->{events} } } grep { $_->{mode} =~ /^(?:2|none|drip|huge|(?:page|cut):2)/ } $_[0]->requests }
sub wait_taken { my ($self, $count, $type) = @_; return Petrel::wait_for(sub { (() = grep { !$type || $_->{type} eq $type } $self->taken) >= $count }) }

# From the text of the standard: the signed content is id.timestamp.body.
sub is_signed {
    my ($request, $key) = @_;
    my ($id, $time, $signatures) = @{ $request->{headers} }{qw(webhook-id webhook-timestamp webhook-signature)};
    my $want = 'v1,' . encode_base64(hmac_sha256("$id.$time.$request->{body}", $key), '');
    return scalar grep { $_ eq $want } split / /, $signatures // '';
}

1;
