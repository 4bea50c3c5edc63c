#!/usr/bin/perl
# The page of the real binary: its files without a key, and every view and action in Chromium, looked at by axe, with
# hostile mail in the queue. Screenshots are in BUILD/page.
use lib 't/e2e';
use E2E;
use PageBrowser;

my ($port, $dead) = (Petrel::free_port(), Petrel::free_port());
my $sink = Sink->start('--fail-rcpt', 'nobody:550', '--fail-rcpt', 'grey:451');
# TLS for the listener, so that there is a certificate to show.
my $keys = tempdir('page-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my %tls = Petrel::have('openssl') && (Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0] == 0 ? (tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key") : ();
my ($operates, $reads) = map { "page-page-page-page-$_" } qw(operates reads);
my $petrel = Petrel->new(%tls, show_subjects => 'yes', http_token => $operates, http_read_token => $reads, http => "127.0.0.1:$port", routes => "\n    dead.example smtp://127.0.0.1:$dead\n    held.example hold\n"
    . "    frag.example smtp://127.0.0.1:$sink->{port}?defragment=yes\n    * smtp://127.0.0.1:$sink->{port}")->start;

sub get {
    my ($path, $fields) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 20) or return '';
    print $socket "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" . ($fields // '') . "\r\n";
    local $/;
    my ($head, $body) = split /\r\n\r\n/, scalar <$socket> // '', 2;
    $body = Petrel::unpacked($body) if ($head // '') =~ /^Content-Encoding: gzip\r?$/m;
    return defined $body ? "$head\r\n\r\n$body" : '';
}

# --- The files

my %type = ('/' => 'text/html; charset=utf-8', '/page.css' => 'text/css; charset=utf-8', '/page.js' => 'text/javascript; charset=utf-8', '/icon.svg' => 'image/svg+xml');
for my $path (sort keys %type) {
    my $answer = get($path);
    like $answer, qr/^HTTP\/1\.1 200 .*^Content-Type: \Q$type{$path}\E\r$/ms, "$path is there without a key";
    like $answer, qr/^Content-Security-Policy: default-src 'none'; script-src 'self'; /m, 'with the policy';
    like $answer, qr/^Cache-Control: no-cache\r$/m, 'kept by the browser, which asks';
    my ($tag) = $answer =~ /^ETag: ("[0-9a-f]+")\r$/m;
    for my $known ($tag, "W/$tag", "\"x\", $tag", '*') {
        like get($path, "If-None-Match: $known\r\n"), qr/^HTTP\/1\.1 304 (?!.*Content-Length).*\r\n\r\n\z/s, "which is not sent again: $known";
    }
    like get($path, "If-None-Match: \"0000000000000000\"\r\n"), qr/^HTTP\/1\.1 200 /, 'another version is';
    unlike $answer, qr/\bstyle=|\bon[a-z]+=|<script>|https?:(?!\/\/www\.w3\.org\/2000\/svg)/, 'nothing inline, nothing of others' unless $path eq '/page.js';
}
unlike get('/page.js'), qr/innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|https?:\/\/(?!www\.w3\.org\/2000\/svg)/, 'the script makes no markup of texts';
cmp_ok -s "$Petrel::root/admin/page/page.js", '<=', 48 * 1024, 'and is small';
for my $row ([ 200, '' ], [ 200, 'gzip, br' ], [ 200, 'br;q=1, GZIP;q=0.5' ], [ 200, '*' ], [ 406, 'identity' ], [ 406, 'br, gzip;q=0' ]) {
    my ($code, $accepted) = @$row;
    my $answer = get('/page.js', length $accepted ? "Accept-Encoding: $accepted\r\n" : '');
    like $answer, qr/^HTTP\/1\.1 $code .*^Vary: Accept-Encoding\r$/ms, "$code in gzip: '$accepted'";
    is $answer =~ /^Content-Encoding: gzip\r$/m ? 200 : 406, $code, 'and said so';
    is length($answer =~ s/.*?\r\n\r\n//sr) == -s "$Petrel::root/admin/page/page.js" ? 200 : 406, $code, 'whole';
}
unlike get('/'), qr/^(?:Content-Encoding|Vary):/m, 'small files are as they are';
like get('/index.html'), qr/^HTTP\/1\.1 (401|403)/, 'there are no other files';

# --- In a browser

my $why = PageBrowser::missing();
SKIP: {
    skip $why, 1 if $why;
    my ($rtl, $markup) = ("\xe2\x80\xae", '"<img/src=x/onerror=alert(1)>"@x.example');
    sub mail { my ($to, $subject, $from, $more) = @_; return $petrel->send_mail($from // 'a@b.example', $to, "Subject: $subject\r\nFrom: a\@b.example\r\n" . ($more // '') . "\r\nx\r\n") }
    mail('erin@dead.example', "<script>alert($_)</script>") for 1 .. 15;
    mail('erin@dead.example', "${rtl}gpj.exe", $markup);
    mail('frank@held.example', $_ == 1 ? "=?utf-8?B?R3LDvMOfZQ==?=\r\n =?iso-8859-1?q?_f=FCr_uns?= =?x?q?x?=" : '<img src=x onerror=alert(1)>') for 1 .. 3;
    mail('nobody@fine.example', 'x');
    mail('zoe@frag.example', 'part', undef, "MIME-Version: 1.0\r\nContent-Type: message/partial; id=\"a\@b\"; number=$_; total=4\r\n") for 1, 3;
    ok Petrel::wait_for(sub { my $q = decode_json($petrel->status)->{queue}; $q->{deferred} == 16 && $q->{hold} == 3 && $q->{defrag} == 2 && $q->{active} == 0 }), 'mail waits';

    # Subjects are for those who may read content.
    my $listed = sub { my $answer = get('/api/queue?queue=hold', "Authorization: Bearer $_[0]\r\n") =~ s/\r\n[0-9a-f]+\r\n//gr; return decode_json($answer =~ /(\{.*\})/s ? $1 : '{}')->{messages} };
    is_deeply [map { $_->{subject} } @{ $listed->($operates) }], ['=?utf-8?B?R3LDvMOfZQ==?= =?iso-8859-1?q?_f=FCr_uns?= =?x?q?x?=', ('<img src=x onerror=alert(1)>') x 2], 'subjects as they are written';
    is_deeply [map { $_->{subject} } @{ $listed->($reads) }], [(undef) x 3], 'none for who may only read';
    $petrel->configure(show_subjects => undef);
    kill 'HUP', $petrel->{pid};
    ok $petrel->wait_log(qr/settings reloaded/), 'a reload without the setting';
    is_deeply [map { $_->{subject} } @{ $listed->($operates) }], [(undef) x 3], 'none without it';
    $petrel->configure(show_subjects => 'yes');
    kill 'HUP', $petrel->{pid};
    ok Petrel::wait_for(sub { defined $listed->($operates)->[0]{subject} }), 'and with it again';

    # A message that cannot be read is listed without its envelope.
    open my $damaged, '>', "$petrel->{dir}/spool/corrupt/01JD3ZK5Q8-9F3K2C7A.note" or die $!;
    close $damaged;

    mkdir "$Petrel::root/$Petrel::build/page";
    my %answers = (
        held => sub { return decode_json((split /\n/, ($petrel->run('queue', 'ls', '--json', shift))[1])[0])->{queue_name} eq 'hold' ? 'yes' : 'no' },
        deferred => sub { return decode_json($petrel->status)->{queue}{deferred} },
        send => sub { mail('bob@fine.example', 'now'); return 'sent' },
        key => sub { return PageBrowser::key($petrel) },
        freeze => sub { kill 'STOP', $petrel->{pid}; return 'frozen' },
        thaw => sub { kill 'CONT', $petrel->{pid}; return 'goes on' },
        stop => sub { $petrel->stop; return 'stopped' },
        start => sub { $petrel->start; return 'started' });
    PageBrowser::run(300, 70, \%answers, 'page.mjs', "http://127.0.0.1:$port/", PageBrowser::key($petrel), "$Petrel::root/$Petrel::build/page");
}
$petrel->stop;
done_testing;
