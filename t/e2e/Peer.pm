# Mail programs that we did not write, run from their unpacked packages: each in a root of its own, nothing installed.
package Peer;

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use Petrel;

my %package = (
    postfix => ['POSTFIX_ROOT', 'usr/lib/postfix/sbin/master'],
    exim => ['EXIM_ROOT', 'usr/sbin/exim4'],
    opensmtpd => ['OPENSMTPD_ROOT', 'usr/sbin/smtpd'],
    dma => ['DMA_ROOT', 'usr/sbin/dma'],
    mpack => ['MPACK_ROOT', 'usr/bin/mpack'],
    nodemailer => ['NODEMAILER_ROOT', 'usr/share/nodejs/nodemailer/package.json'],
);
my @groups; # leaders of process groups to end in any case

END {
    my $code = $?;
    kill 'KILL', -$_ for @groups;
    $? = $code;
}

# The folder of an unpacked package.
sub package_root { my $name = shift; return $ENV{ $package{$name}[0] } || "/opt/petrel-test-$name" }

# Why there can be none; empty when there can.
sub missing {
    my $name = shift;
    return "no $name" unless -e package_root($name) . "/$package{$name}[1]";
    return "$name wants root" if $> != 0 && $name !~ /^(?:mpack|nodemailer)$/;
    return '';
}

# Copies files with what they link into a root.
sub copy_programs {
    my ($root, $library_path, @files) = @_;
    my %library;
    for my $line (split /\n/, (Petrel::command('', 'env', "LD_LIBRARY_PATH=$library_path", 'ldd', @files))[1]) {
        $library{$1}++ if $line =~ m{(?:=> |^\s+)(/\S+) \(0x};
    }
    for my $file (keys %library) {
        my $to = "$root/" . ($file =~ m{^\Q$library_path\E/} && $library_path ? '/lib/' . ($file =~ s{.*/}{}r) : $file);
        make_path(dirname($to));
        system('cp', '-L', '--', $file, $to) == 0 or die "$file: cannot copy";
    }
    return;
}

# A new root with an unpacked package, its libraries and what every program wants to find; users are lines of passwd.
sub root {
    my ($name, $programs, @users) = @_;
    my $root = tempdir("$name-XXXXXX", TMPDIR => 1, CLEANUP => 1);
    my $package = package_root($name);
    chmod 0755, $root;
    make_path("$root/$_") for qw(bin dev etc lib tmp var/log var/spool var/lib run usr/bin);
    for my $directory (grep { -d "$package/$_" } qw(etc usr/sbin usr/lib usr/libexec)) {
        system('cp', '-a', "$package/$directory", dirname("$root/$directory")) == 0 or die "cannot copy $package/$directory";
    }
    chmod 01777, "$root/tmp";
    symlink 'lib', "$root/lib64" unless -e '/lib64';
    copy_programs($root, $name eq 'postfix' ? "$package/usr/lib/postfix" : '', map { glob "$package/$_" } @$programs);
    system('mknod', '-m', '666', "$root/dev/null", 'c', 1, 3);
    system('mknod', '-m', '666', "$root/dev/urandom", 'c', 1, 9);
    system('mknod', '-m', '666', "$root/dev/random", 'c', 1, 8);
    Petrel::spit("$root/etc/passwd", join "\n", 'root:x:0:0::/:/bin/sh', 'nobody:x:65534:65534::/:/bin/false', @users, '');
    Petrel::spit("$root/etc/group", join "\n", 'root:x:0:', 'nogroup:x:65534:', (map { /^([^:]+):x:\d+:(\d+)/ ? "$1:x:$2:" : () } @users), 'postdrop:x:65102:', '');
    Petrel::spit("$root/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n");
    Petrel::spit("$root/etc/hosts", "127.0.0.1 localhost\n127.0.0.1 mail.example.net\n");
    Petrel::spit("$root/etc/resolv.conf", "nameserver 127.0.0.1\n");
    return $root;
}

# Starts a program in a root, at the head of its own process group, and waits for the 220 of port.
sub start {
    my ($self, $port, @command) = @_;
    $self->{port} = $port;
    $self->{output} = "$self->{root}/output";
    $self->{pid} = Petrel::spawn($self->{output}, Petrel::have('setsid'), Petrel::have('chroot'), $self->{root}, @command);
    push @groups, $self->{pid};
    my $up = Petrel::wait_for(sub {
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port", Timeout => 5) or return 0;
        my $line = $self->{silent} ? '220' : <$s>;
        return $line && $line =~ /^220/;
    });
    die "$command[0] does not start: " . $self->log unless $up;
    return $self;
}

sub log { my $self = shift; return join '', map { Petrel::slurp($_) } $self->{output} // (), @{ $self->{logs} || [] } }
sub wait_log { my ($self, $pattern) = @_; return Petrel::wait_for(sub { $self->log =~ $pattern }) }

sub stop {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    Petrel::reap($pid, 'TERM', 5);
    kill 'KILL', -$pid;
    @groups = grep { $_ != $pid } @groups;
    return;
}

# Puts files into a folder of a root; private ones belong to uid.
sub install {
    my ($to, $files, $uid) = @_;
    make_path($to);
    for my $name (keys %{ $files || {} }) {
        Petrel::spit("$to/$name", Petrel::slurp($files->{$name}));
        chmod 0600, "$to/$name";
        chown $uid, 0, "$to/$name" if $uid;
    }
    return;
}

# Postfix that relays everything to 127.0.0.1:PORT (none: discards it), changed by SETTINGS of main.cf. files: NAME => FILE
# go to /etc/postfix. listeners: NAME => {settings}, further ports ({ports}{NAME}) with settings of their own; clients:
# NAME => {settings}, further kinds of smtp (command) that NAME.test goes by, to the setting nexthop. resolver: its resolv.conf.
sub postfix {
    my ($next, %settings) = @_;
    my $files = delete $settings{files};
    my $listeners = delete $settings{listeners} || {};
    my $clients = delete $settings{clients} || {};
    my $resolver = delete $settings{resolver};
    my %ports = map { $_ => Petrel::free_port() } keys %$listeners;
    my $root = root('postfix', [ map { "usr/lib/postfix/sbin/$_" } qw(master smtpd smtp tlsmgr cleanup) ], 'postfix:x:65101:65101::/:/bin/false');
    Petrel::spit("$root/etc/resolv.conf", $resolver) if $resolver;
    my @plugins = map { glob "/usr/lib/*/sasl2/lib$_.so" } qw(plain login scram);
    copy_programs($root, '', @plugins) if @plugins;
    for my $plugin (@plugins) {
        make_path(dirname("$root$plugin"));
        system 'cp', '-L', $plugin, "$root$plugin";
    }
    my $port = Petrel::free_port();
    my %main = (
        compatibility_level => '3.6', queue_directory => '/var/spool/postfix', data_directory => '/var/lib/postfix', command_directory => '/usr/sbin',
        daemon_directory => '/usr/lib/postfix/sbin', shlib_directory => 'no', mail_owner => 'postfix', setgid_group => 'postdrop',
        maillog_file => '/var/log/postfix.log', myhostname => 'postfix.test', inet_interfaces => '127.0.0.1', inet_protocols => 'ipv4',
        mynetworks => '127.0.0.0/8', mydestination => '', local_recipient_maps => '', alias_maps => '', disable_dns_lookups => 'yes', smtp_host_lookup => 'native',
        smtpd_peername_lookup => 'no', smtpd_relay_restrictions => 'permit_mynetworks, permit_sasl_authenticated, reject', in_flow_delay => '0',
        smtpd_client_connection_count_limit => '0', default_transport => $next ? 'smtp' : 'discard', relayhost => $next ? "[127.0.0.1]:$next" : '', %settings,
    );
    $main{transport_maps} = 'inline:{ ' . join(', ', map { "{ $_.test = $_:" . ($clients->{$_}{nexthop} // $main{relayhost}) . ' }' } sort keys %$clients) . ' }' if %$clients;
    install("$root/etc/postfix", $files);
    Petrel::spit("$root/etc/postfix/main.cf", join '', map { "$_ = $main{$_}\n" } sort keys %main);
    utime time - 60, time - 60, "$root/etc/postfix/main.cf"; # it would wait for one just written to settle
    my %limit = (bounce => 0, anvil => 1, scache => 1); # of processes
    my @private = map { "$_->[0] unix - - n - " . ($limit{ $_->[1] } // '-') . " $_->[1]" } map { [ split ' ' ] } 'rewrite trivial-rewrite',
        'bounce bounce', 'defer bounce', 'trace bounce', 'proxymap proxymap', 'smtp smtp', 'relay smtp', 'error error', 'retry error',
        'discard discard', 'anvil anvil', 'scache scache';
    Petrel::spit("$root/etc/postfix/master.cf", join "\n", "127.0.0.1:$port inet n - n - 50 smtpd", 'pickup unix n - n 60 1 pickup', 'cleanup unix n - n - 0 cleanup',
        (map { my $name = $_; ("127.0.0.1:$ports{$name} inet n - n - 50 smtpd", "  -o syslog_name=postfix/$name", map { "  -o { $_ = $listeners->{$name}{$_} }" } sort keys %{ $listeners->{$name} }) } sort keys %ports),
        (map { my $name = $_; ("$name unix - - n - - " . ($clients->{$name}{command} // 'smtp'), "  -o syslog_name=postfix/$name", map { "  -o { $_ = $clients->{$name}{$_} }" } grep { !/^(?:nexthop|command)$/ } sort keys %{ $clients->{$name} }) } sort keys %$clients),
        'qmgr unix n - n 300 1 qmgr', 'flush unix n - n 1000? 0 flush', 'tlsmgr unix - - n 1000? 1 tlsmgr', 'postlog unix-dgram n - n - 1 postlogd', @private, '');
    my $queue = "$root/var/spool/postfix";
    make_path("$queue/pid", "$root/var/lib/postfix");
    for my $directory (qw(active bounce corrupt defer deferred flush hold incoming private saved trace)) {
        make_path("$queue/$directory", { mode => 0700 });
        chown 65101, 0, "$queue/$directory";
    }
    make_path("$queue/maildrop", "$queue/public");
    chown 65101, 65102, "$queue/maildrop", "$queue/public";
    chmod 01730, "$queue/maildrop";
    chmod 02710, "$queue/public";
    chown 65101, 0, "$root/var/lib/postfix";
    my $self = bless { root => $root, ports => \%ports, logs => ["$root/var/log/postfix.log"] }, 'Peer';
    return $self->start($port, '/usr/lib/postfix/sbin/master', '-c', '/etc/postfix');
}

# Exim that relays everything to PORT of host (127.0.0.1); out: lines of its transport; files: NAME => FILE go to
# /etc/exim4. clients: NAME => lines of a transport that NAME.test goes by; client_send: its login as a client. password:
# of its user joe, without whom and without TLS it takes nothing, unless rcpt, the end of the ACL for RCPT, says otherwise;
# its certificate is pair.pem; {tls} is a port with TLS from the first byte. main: further settings.
sub exim {
    my ($next, %option) = @_;
    my $host = $option{host} || '127.0.0.1';
    my ($rcpt, @login, $tls) = ('accept');
    my $tls_port = Petrel::free_port();
    if ($option{password}) {
        $rcpt = 'accept authenticated = *';
        $tls = "tls_certificate = /etc/exim4/pair.pem\ntls_on_connect_ports = $tls_port";
        @login = map { "  $_" } 'server_prompts = :', "server_condition = \${if and{{eq{\$auth2}{joe}}{eq{\$auth3}{$option{password}}}}}", 'server_set_id = $auth2',
            'server_advertise_condition = ${if def:tls_in_cipher}';
    }
    push @login, "  client_send = $option{client_send}" if $option{client_send};
    my %out = (out => "port = $next\n  " . ($option{out} // ''), %{ $option{clients} || {} });
    my $transports = join '', map { "$_:\n  driver = smtp\n  allow_localhost\n  $out{$_}\n" } sort keys %out;
    my $routers = join '', map { "$_:\n  driver = manualroute\n" . ($_ eq 'out' ? '' : "  domains = $_.test\n") . "  route_list = * $host byname\n  transport = $_\n  self = send\n" }
        sort { ($a eq 'out') <=> ($b eq 'out') || $a cmp $b } keys %out;
    my $login = @login ? join "\n", 'begin authenticators', 'plain:', '  driver = plaintext', '  public_name = PLAIN', @login : '';
    my $root = root('exim', ['usr/sbin/exim4'], 'Debian-exim:x:65103:65103::/:/bin/false');
    my $port = Petrel::free_port();
    install("$root/etc/exim4", $option{files}, 65103);
    make_path("$root/var/spool/exim4", "$root/var/log/exim4");
    chown 65103, 65103, "$root/var/spool/exim4", "$root/var/log/exim4";
    Petrel::spit("$root/etc/exim4/exim4.conf", <<"END");
primary_hostname = exim.test
daemon_smtp_ports = $port : $tls_port
local_interfaces = 127.0.0.1
acl_smtp_rcpt = rcpt
acl_smtp_data = accept
smtp_accept_queue_per_connection = 0
smtp_accept_max = 50
queue_run_max = 5
host_lookup =
rfc1413_query_timeout = 0s
${\($tls // 'tls_advertise_hosts =')}
log_selector = +smtp_protocol_error +smtp_syntax_error
${\($option{main} // '')}
begin acl
rcpt:
${\($option{rcpt} // $rcpt)}
begin routers
$routers
begin transports
$transports
begin retry
* * F,2h,1m
$login
END
    my $self = bless { root => $root, tls => $tls_port, logs => [ map { "$root/var/log/exim4/$_" } qw(mainlog rejectlog paniclog) ] }, 'Peer';
    return $self->start($port, '/usr/sbin/exim4', '-bdf', '-q30m');
}

# OpenSMTPD that relays everything to NEXT, a URL ("smtp://127.0.0.1:PORT", "smtp+tls://..."); pair is a certificate and
# its key to offer STARTTLS with, ca what it trusts. clients: NAME => [URL, OPTIONS], what NAME.test goes by; secrets:
# LABEL => USER:PASSWORD, their logins in the table <secrets>. password: of its user joe, for whom the ports {auth}
# (STARTTLS) and {tls} are; filters: lines that define the filter "checks" of all ports; main: further settings.
sub opensmtpd {
    my ($next, %option) = @_;
    my $root = root('opensmtpd', ['usr/sbin/smtpd'],
        'opensmtpd:x:65104:65104::/var/lib/opensmtpd/empty:/bin/false', 'opensmtpq:x:65105:65105::/var/lib/opensmtpd/empty:/bin/false');
    my $port = Petrel::free_port();
    make_path("$root/var/lib/opensmtpd/empty", "$root/run/smtpd", "$root/etc/ssl/certs");
    symlink '../run', "$root/var/run";
    make_path("$root/var/spool/smtpd", { mode => 0711 });
    Petrel::spit("$root/etc/aliases", '');
    Petrel::spit("$root/etc/ssl/cert.pem", Petrel::slurp($option{ca})) if $option{ca};
    Petrel::spit("$root/etc/ssl/certs/ca-certificates.crt", Petrel::slurp($option{ca})) if $option{ca};
    Petrel::spit("$root/etc/mailname", "smtpd.test\n");
    my ($main, $tls, $options) = ($option{main} // '', '', $option{filters} ? ' filter "checks"' : '');
    if ($option{pair}) {
        Petrel::spit("$root/etc/ssl/pair.$_", Petrel::slurp("$option{pair}.$_")) for qw(pem key);
        chmod 0600, "$root/etc/ssl/pair.key";
        $main .= qq(\npki mail.example.net cert "/etc/ssl/pair.pem"\npki mail.example.net key "/etc/ssl/pair.key");
        $tls = ' tls pki mail.example.net';
    }
    my (%port, @listen) = ();
    if ($option{password}) {
        $main .= "\ntable users { joe = \"" . crypt($option{password}, '$6$petrel') . '" }';
        %port = map { $_ => Petrel::free_port() } qw(auth tls);
        @listen = ("$port{auth} tls-require pki mail.example.net auth <users>", "$port{tls} smtps pki mail.example.net auth <users>");
    }
    my %secret = %{ $option{secrets} || {} };
    if (%secret) {
        Petrel::spit("$root/etc/secrets", join '', map { "$_ $secret{$_}\n" } sort keys %secret);
        $main .= "\ntable secrets file:/etc/secrets";
    }
    my %client = %{ $option{clients} || {} };
    Petrel::spit("$root/etc/smtpd.conf", join "\n", $main, $option{filters} // '', (map { "listen on 127.0.0.1 port $_ hostname smtpd.test$options" } "$port$tls", @listen),
        (map { qq(action "$_" relay host "$client{$_}[0]") . " " . ($client{$_}[1] // '') } sort keys %client), qq(action "out" relay host "$next") . ($option{action} // ''),
        (map { qq(match from any for domain "$_.test" action "$_") } sort keys %client), 'match from any for any action "out"', '');
    my $self = bless { root => $root, logs => [], %port }, 'Peer';
    return $self->start($port, '/usr/sbin/smtpd', '-d', '-f', '/etc/smtpd.conf');
}

1;
