#!/usr/bin/perl
# HTTPS calls (base/http/) at servers that we did not write: Python's http.server and nginx, every form of body.
use lib 't/e2e';
use E2E;

plan skip_all => 'no python3 or openssl' unless Petrel::have('python3') && Petrel::have('openssl');

my $dir = tempdir('http-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $fetch = "$Petrel::root/$Petrel::build/t/bench/fetch";
system('sh', 't/support/tls_certificates.sh', "$dir/certificates") == 0 or die 'no certificates';

sub peer {
    my ($name, @how) = @_;
    Petrel::spawn("$dir/$name", 'python3', 't/e2e/http_peer.py', "$dir/certificates", @how);
    Petrel::wait_for(sub { Petrel::slurp("$dir/$name") =~ /^port (\d+)$/m }) or die Petrel::slurp("$dir/$name");
    return Petrel::slurp("$dir/$name") =~ /^port (\d+)$/m;
}

# The output of fetch for that URL.
sub fetch {
    my ($url, %with) = @_;
    open my $out, '-|', $fetch, $with{anchors} // "$dir/certificates/ca.pem", $url, $with{deadline} // 30000,
        defined $with{body} ? $with{body} : () or die "$fetch: $!";
    local $/;
    my $text = <$out> // '';
    close $out;
    return $text;
}
sub body { my $text = shift; return $text =~ /^\r\n(.*)\z/ms ? $1 : "($text)" }

my %port = (tls => peer('tls', 'tls'), clear => peer('clear'));
my %base = (tls => "https://127.0.0.1:$port{tls}", clear => "http://127.0.0.1:$port{clear}");
for my $way (sort keys %base) {
    my $base = $base{$way};
    my $got = fetch("$base/length?a=b");
    like $got, qr/^status 200\n/, "$way: Python, a length";
    is body($got), 'hello', 'its body';
    like $got, qr{^X-Seen: /length\?a=b 127\.0\.0\.1:$port{$way}\r$}m, 'target and host arrived';
    is body(fetch("$base/chunks")), 'hello world', 'chunks with extensions and trailers, in pieces';
    is body(fetch("$base/close")), 'up to the end', 'a body that the end of the connection ends';
    is body(fetch("$base/interim")), 'hello', '1xx before the response';
    is body(fetch("$base/file", body => 'x' x 50000)), 'x' x 50000, 'POST of 50,000 octets';
    like fetch("$base/none"), qr/^status 204\n.*\r\n\r\n\z/s, '204 No Content';
    like fetch("$base/same"), qr/^status 304\n.*^Content-Length: 77\r\n\r\n\z/sm, '304, whatever length it names';
    like fetch("$base/moved"), qr{^status 302\n.*^Location: /length\r\n.*\r\n\r\n\z}sm, 'a redirect is not followed';
    like fetch("$base/nowhere"), qr/^status 404\n.*File not found/s, 'a page of an error';
    is body(fetch("$base/LICENSE")), Petrel::slurp('LICENSE'), 'a file';
    like fetch("$base/endless"), qr/^error 127\.0\.0\.1: the body is too large$/, 'an endless body';
    like fetch("$base/endless_head"), qr/^error 127\.0\.0\.1: the header has too many lines$/, 'an endless header';
    like fetch("$base/slow", deadline => 300), qr/^error 127\.0\.0\.1: no complete response in 0 s$/, 'a slow body';
}
like fetch("$base{tls}/cut"), qr/^error 127\.0\.0\.1: TLS: .*without close_notify$/, 'a body that is cut';
is body(fetch("$base{clear}/cut")), 'up to the e', 'without TLS nobody can tell';
like fetch("$base{tls}/length", anchors => "$dir/certificates/other-ca.pem"),
    qr/^error 127\.0\.0\.1: TLS: unknown issuer/, 'a certificate of an unknown issuer';
like fetch("https://localhost:$port{tls}/length"),
    qr/^error localhost: TLS: certificate does not name localhost/, 'a certificate of another name';
like fetch("https://127.0.0.1:$port{clear}/"), qr/^error 127\.0\.0\.1: (TLS: )?\S/, 'no TLS where it must be';
like fetch("http://127.0.0.1:$port{tls}/"), qr/^error 127\.0\.0\.1: /, 'TLS where it must not be';

SKIP: {
    my $nginx = Petrel::have('nginx') or skip 'no nginx', 1;
    my ($https, $http) = (Petrel::free_port(), Petrel::free_port());
    mkdir "$dir/www";
    Petrel::spit("$dir/www/small", 'hello from nginx');
    Petrel::spit("$dir/www/full", 'x' x (256 * 1024));
    Petrel::spit("$dir/www/large", 'x' x (256 * 1024 + 1));
    Petrel::spit("$dir/nginx.conf", <<"END");
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events { }
http {
    access_log off;
    client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
    uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
    server {
        listen 127.0.0.1:$http;
        listen 127.0.0.1:$https ssl;
        ssl_certificate $dir/certificates/good.pem;
        ssl_certificate_key $dir/certificates/good.key;
        root $dir/www;
        location /chunks { proxy_pass http://127.0.0.1:$port{clear}; proxy_http_version 1.1; }
        location /close { proxy_pass http://127.0.0.1:$port{clear}; chunked_transfer_encoding off; }
        location /none { return 204; }
        location /moved { return 301 /small; }
        location /refused { return 429 "later"; }
        location /interim { proxy_pass http://127.0.0.1:$port{clear}; proxy_http_version 1.1; }
        location /dead { proxy_pass http://127.0.0.1:1; }
    }
}
END
    Petrel::spawn("$dir/nginx.out", $nginx, '-e', "$dir/nginx.log", '-c', "$dir/nginx.conf", '-p', $dir);
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$https") && IO::Socket::INET->new(PeerAddr => "127.0.0.1:$http") })
        or die Petrel::slurp("$dir/nginx.out"), Petrel::slurp("$dir/nginx.log");
    for my $base ("https://127.0.0.1:$https", "http://127.0.0.1:$http") {
        is body(fetch("$base/small")), 'hello from nginx', "$base: a file";
        is length(body(fetch("$base/full"))), 256 * 1024, '256 KiB';
        like fetch("$base/large"), qr/^error 127\.0\.0\.1: the body is too large$/, 'and an octet more';
        like fetch("$base/chunks"), qr/^status 200\n.*^Transfer-Encoding: chunked\r\n.*hello world\z/ims, 'chunks';
        my $close = fetch("$base/close");
        like $close, qr/^status 200\n.*up to the end\z/s, 'up to the end';
        unlike $close, qr/^(Content-Length|Transfer-Encoding):/mi, 'which neither length nor chunks name';
        is body(fetch("$base/interim")), 'hello', '1xx upstream';
        like fetch("$base/none"), qr/^status 204\n/, '204 No Content';
        like fetch("$base/moved"), qr{^status 301\n.*^Location: \S+/small\r$}sm, 'a redirect';
        like fetch("$base/refused"), qr/^status 429\n.*later\z/s, '429 with a text';
        like fetch("$base/dead"), qr/^status 502\n/, 'a gateway without a server';
        like fetch("$base/small", body => 'x'), qr/^status 405\n/, 'POST to a file';
    }
}
done_testing;
