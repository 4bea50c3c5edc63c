#!/usr/bin/perl
# The scripts for OpenRC and OpenWrt, run by busybox's shell with stand-ins for what those systems give them.
use lib 't/e2e';
use E2E;

my ($busybox) = grep { -x } '/opt/petrel-test-busybox/bin/busybox', '/bin/busybox';
plan skip_all => 'no busybox' unless $busybox;
my $scratch = tempdir('init-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $etc = "$Petrel::root/etc";

# A shell with these lines, and what it prints.
sub shell {
    my ($lines, %environment) = @_;
    local @ENV{ keys %environment } = values %environment;
    return Petrel::command(undef, $busybox, 'ash', '-u', '-c', $lines);
}
for my $script ("$etc/openrc/petrel.initd", "$etc/openwrt/petrel.init", "$etc/openrc/petrel.confd") {
    is +(Petrel::command(undef, $busybox, 'ash', '-n', $script))[0], 0, "$script is a script";
}

# --- OpenRC

my $petrel = Petrel->new(routes => '* discard');
my $conf = $petrel->conf;
my $openrc = qq{
    use() { echo "use \$*"; }; after() { echo "after \$*"; }; provide() { echo "provide \$*"; }
    ebegin() { echo "begin \$*"; }; eend() { [ "\$1" = 0 ] || echo "end: \$2"; return \$1; }
    PETREL_COMMAND=$Petrel::binary PETREL_ARGUMENTS="-c $conf" PETREL_FILES=$conf
    . $etc/openrc/petrel.confd
    . $etc/openrc/petrel.initd
};
sub openrc { return shell("$openrc\n$_[0]") }
my ($code, $text) = openrc('depend; echo "$supervisor $command $command_args, $retry, $required_files, $notify"');
is $code, 0, 'OpenRC: it is read';
is $text, "use net dns logger\nafter firewall\nprovide mta\nsupervise-daemon $Petrel::binary -c $conf run, TERM/60/KILL/5, $conf, socket:ready\n", 'what it wants';
is +(openrc('start_pre'))[0], 0, 'good settings are started';
($code, $text) = openrc('reload');
is $code, 69, 'nothing to reload';
like $text, qr/^begin Reloading.*no daemon answers.*^end: the old settings stay$/ms, 'which it says';
# As its supervisor starts it.
$petrel->{pid} = Petrel::spawn($petrel->{log}, $busybox, 'ash', '-c', "$openrc\nexec \$command \$command_args");
ok $petrel->wait_log(qr/listening on/), 'it runs';
ok Petrel::wait_for(sub { ($petrel->run('health'))[0] == 0 }), 'and accepts mail';
is +(openrc('reload'))[0], 0, 'reload';
$petrel->configure(nonsense => 1);
($code, $text) = openrc('reload');
is $code, 78, 'a reload with errors';
like $text, qr/nonsense.*^end: the old settings stay$/ms, 'which it says';
($code, $text) = openrc('start_pre');
is $code, 78, 'nor would it be started';
like $text, qr/nonsense/, 'which it says';
$petrel->configure(nonsense => undef);
is $petrel->stop, 0, 'stops';
($code, $text) = shell(". $etc/openrc/petrel.initd; echo \$command \$command_args", PATH => $ENV{PATH});
is $text, "/usr/local/sbin/petrel -o log_to=syslog run\n", 'without settings of its own';

# --- OpenWrt: config_load is given what the file says.

my $port = Petrel::free_port();
my $stubs = q{
    logger() { shift 3; if [ $# = 0 ]; then cat; else echo "log: $1"; fi; }
    procd_open_instance() { echo open; }; procd_close_instance() { echo close; }
    procd_add_reload_trigger() { echo "trigger $*"; }
    procd_set_param() { printf '%s:' "$1"; shift; for i; do printf ' [%s]' "$i"; done; echo; }
};
sub openwrt {
    my ($config, $then) = @_;
    return shell(qq{$stubs
        PETREL_COMMAND=$Petrel::binary
        config_load() { $config
            config_cb
        }
        . $etc/openwrt/petrel.init
        $then});
}
my $good = qq{
    config_cb other main; option_cb relay nowhere; list_cb listen 127.0.0.1:1
    config_cb petrel spare; option_cb hostname spare.test
    config_cb petrel main; option_cb enabled 1; option_cb hostname box.home.test; option_cb spool $scratch/spool
    list_cb listen 127.0.0.1:$port; list_cb listen 'unix:$scratch/smtp?mode=600'; option_cb smtp_banner 'it'\\''s "ours" \$HOME \`id\`'
    list_cb routes 'a.test hold'; list_cb routes '* discard'
};
($code, $text) = openwrt($good, 'start_service');
is $code, 0, 'OpenWrt: good settings' or diag $text;
my $settings = "env: [PETREL_HOSTNAME=box.home.test] [PETREL_SPOOL=$scratch/spool] [PETREL_LISTEN=127.0.0.1:$port\nunix:$scratch/smtp?mode=600] "
    . "[PETREL_SMTP_BANNER=it's \"ours\" \$HOME `id`] [PETREL_ROUTES=a.test hold\n* discard]\n";
is $text, "open\ncommand: [$Petrel::binary] [run]\n${settings}respawn: [3600] [1] [0]\nstderr: [1]\nfile: [/etc/config/petrel] [/etc/petrel/petrel.conf]\n"
    . "limits: [nofile=4096 4096]\nterm_timeout: [60]\nclose\n", 'become an instance with its environment';
($code, $text) = openwrt("$good\n option_cb hostnam x", 'start_service');
is $code, 1, 'a mistake';
like $text, qr/hostnam/i, 'is said';
unlike $text, qr/^open$/m, 'and nothing is started';
($code, $text) = openwrt("$good\n option_cb 'a;id' x; list_cb 'b\$(id)' x", 'start_service');
like $text, qr/^log: 'a;id' cannot be a setting$/m, 'a name that is none';
unlike $text, qr/uid=/, 'is not run';
($code, $text) = openwrt("$good\n option_cb enabled 0", 'start_service');
is_deeply [$code, $text], [0, ''], 'turned off';
($code, $text) = openwrt('true', 'service_triggers; echo "$START $STOP $USE_PROCD $PROG"');
is $text, "trigger petrel\n95 05 1 $Petrel::binary\n", 'when it starts';
# As procd starts it.
my $daemon = Petrel->new;
$daemon->{port} = $port;
local @ENV{qw(PETREL_HOSTNAME PETREL_SPOOL PETREL_LISTEN PETREL_ROUTES)} = ('box.home.test', "$scratch/spool", "127.0.0.1:$port\nunix:$scratch/smtp?mode=600", "a.test hold\n* discard");
$daemon->{pid} = Petrel::spawn($daemon->{log}, $Petrel::binary, '-c', '/dev/null', '-o', "control=$scratch/control", 'run');
ok $daemon->wait_log(qr/listening on unix:/), 'it runs' or diag $daemon->log;
is $daemon->stop, 0, 'stops';

# The first configuration, as config_load would read it: each key is one.
for my $key (Petrel::slurp("$etc/openwrt/petrel.config") =~ /^#?\s+(?:option|list) (\w+)/mg) {
    next if $key eq 'enabled';
    like +(Petrel::command(undef, $Petrel::binary, 'check', '--example'))[1], qr/^#? ?\Q$key\E(?:_file)? =/m, "$key is a setting" unless $key =~ /_file$/;
}
done_testing;
