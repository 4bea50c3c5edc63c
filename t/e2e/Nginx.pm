# nginx (a policy host of MTA-STS, a web server before a receiver), and certificates by the tests' authority.
package Nginx;
use strict;
use warnings;
use Petrel;

# Before Petrel's, which kills: a worker would outlive its killed master.
my %running;
END { local $?; $_->stop for values %running }

sub missing { return Petrel::have('nginx') ? Petrel::have('openssl') ? undef : 'no openssl' : 'no nginx' }

# certify($dir, NAME, [names of hosts], CA of $dir/certificates, options of `openssl x509`): $dir/NAME.pem and .key.
sub certify {
    my ($dir, $name, $hosts, $authority, $options) = @_;
    my $ca = "certificates/" . ($authority // 'ca');
    # OpenSSL 3.4 refuses an end before now without a beginning; the older ones know no beginning.
    $options = qx(openssl x509 -help 2>&1) =~ /-not_before/ ? '-not_before 20200101000000Z -not_after 20200102000000Z' : '-days -1' if ($options // '') eq 'expired';
    Petrel::spit("$dir/$name.ext", 'subjectAltName=' . join ',', map { "DNS:$_" } @$hosts);
    system("cd $dir && openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $name.key -out $name.csr -subj /CN=x 2>>log && "
        . "openssl x509 -req -in $name.csr -CA $ca.pem -CAkey $ca.key -CAcreateserial " . ($options // '-days 10') . " -extfile $name.ext -out $name.pem 2>>log") == 0
        or die Petrel::slurp("$dir/log");
    return;
}

# A server{} that has policies of MTA-STS as files $dir/www/mta-sts.DOMAIN, with the certificate $dir/web.pem. more: lines of it.
sub policies {
    my ($dir, $port, $more) = @_;
    $more //= '';
    return <<"END";
    server {
        listen 127.0.0.1:$port ssl default_server;
        ssl_certificate $dir/web.pem;
        ssl_certificate_key $dir/web.key;
        root $dir/www;
        $more
        location = /.well-known/mta-sts.txt { types { } default_type text/plain; try_files /\$host =404; }
    }
END
}

# start($dir, texts of server{}...): its files are in $dir, access.log among them.
sub start {
    my ($class, $dir, @servers) = @_;
    Petrel::spit("$dir/nginx.conf", <<"END");
daemon off;
worker_processes 1;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events { }
http {
    access_log $dir/access.log;
    server_names_hash_bucket_size 128;
    client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3; uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
@servers
}
END
    return (bless { dir => $dir }, $class)->again;
}

sub again {
    my $self = shift;
    my $dir = $self->{dir};
    $self->{pid} = Petrel::spawn("$dir/nginx.out", Petrel::have('nginx'), '-e', "$dir/nginx.log", '-c', "$dir/nginx.conf", '-p', $dir);
    Petrel::wait_for(sub { -s "$dir/nginx.pid" }) or die Petrel::slurp("$dir/nginx.out"), Petrel::slurp("$dir/nginx.log");
    return $running{$dir} = $self;
}

# With its worker.
sub stop {
    my ($self, $signal) = @_;
    Petrel::reap($self->{pid}, $signal // 'TERM');
    unlink "$self->{dir}/nginx.pid";
    delete $running{ $self->{dir} };
    return;
}

1;
