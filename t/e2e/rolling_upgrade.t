#!/usr/bin/perl
# A rolling upgrade: this version, and a build of it whose forms have a number one higher, give their queues to each other.
# The new one reads what the old one gives; the old one refuses the forms of the new one, which stay as they are until some
# other host can read them. On disk the new version reads the spool of the old one; the old one leaves that of a new one alone.
use lib 't/e2e';
use E2E;

my %program = (old => $Petrel::binary, new => "$Petrel::root/$Petrel::build/petrel-next");
plan skip_all => 'no petrel-next: make tests' unless -x $program{new};

my $sink = Sink->start;
$sink->stop;
my @names = qw(one two three);
my %door = map { $_ => Petrel::free_port() } @names;
my $peers = join ', ', map { "$_=127.0.0.1:$door{$_}" } @names;
my (%host, %version, %sent);

sub host {
    my ($name) = @_;
    my $host = Petrel->new(cluster => 'mail', cluster_host => $name, cluster_redis => 'none', cluster_peers => $peers, cluster_secret => 'a secret that all hosts of the group know',
        routes => "held.test hold\n* smtp://127.0.0.1:$sink->{port}", minimal_backoff_time => '1h', maximal_backoff_time => '1h', delay_warning_time => 0, drain_delay => 0, drain_timeout => '1s', log_level => 'info');
    return $host->configure(listen => "127.0.0.1:$host->{port}, 127.0.0.1:$door{$name}?peer");
}
# start(NAME, VERSION)
sub start {
    my ($name, $version) = @_;
    $version{$name} = $version;
    local $Petrel::binary = $program{$version};
    return $host{$name}->start;
}
# A command by the program that the host has.
sub run { my ($name, @command) = @_; local $Petrel::binary = $program{ $version{$name} }; return $host{$name}->run(@command) }
sub mail {
    my ($name, $subject, $to) = @_;
    my $client = Client->greeted($host{$name}{port}) or die 'no greeting';
    my $answer = $client->send(from => 'a@x.test', to => [ $to // "$subject\@y.test" ], data => "Subject: $subject\r\n\r\nm\r\n");
    $client->quit;
    $sent{ $to // "$subject\@y.test" } = 1;
    return $answer =~ /^250/ ? 1 : do { diag $answer; 0 };
}
# What is known of each message, by its subject; without what each host gives anew.
sub known {
    my %all;
    for my $name (@_) {
        my ($code, $listed) = run($name, qw(queue ls --json));
        for my $line (split /\n/, $listed) {
            my $message = decode_json($line);
            next if $message->{queue_name} eq 'corrupt';
            my ($subject) = ((run($name, 'queue', 'cat', $message->{queue_id}))[1] // '') =~ /^Subject: (\S+)/m;
            $subject //= $message->{queue_id};
            fail "$subject is there once" if $all{$subject};
            delete @$message{qw(queue_id came first given forced_expire)};
            $all{$subject} = $message;
        }
    }
    return \%all;
}
# Reasons are hints, which a kill takes away.
sub without_reasons { my $all = decode_json(encode_json($_[0])); delete $_->{delay_reason} for map { @{ $_->{recipients} } } values %$all; return $all }
# Messages that have been tried once, and one that is held, at a host.
sub mail_some {
    my ($name, $word) = @_;
    my $before = Petrel::count($host{$name}->log, qr/status=deferred/);
    ok mail($name, "$word$_"), "$name: a message $word$_" for 1 .. 12;
    ok mail($name, "${word}held", "${word}h\@held.test"), 'and one that is held';
    return ok Petrel::wait_for(sub { Petrel::count($host{$name}->log, qr/status=deferred/) == $before + 12 }), 'all have been tried';
}
sub refusals { my ($name) = @_; return Petrel::count($host{$name}->log, qr/stays here: another host refuses it: This version cannot read its envelope$/m) }

# --- From old to old and new

$host{$_} = host($_) for @names;
start(one => 'old');
start(two => 'old');
start(three => 'new');
mail_some(one => 'a');
my $a = known('one');
is keys %$a, 13, 'all are there';
my ($code, $said) = run(one => qw(drain --wait 60s));
is $code, 0, 'the old one gives all it has' or diag $said, $host{one}->log;
cmp_ok scalar(keys %{ known($_) }), '>', 0, "also to $_" for qw(two three);
is_deeply known(qw(two three)), $a, 'age, attempts, due times, holds are kept';
run(one => qw(drain --cancel));

# --- From new to old: it stays

mail_some(three => 'b');
my $b = known('three');
($code, $said) = run(three => qw(drain --to two --wait 60s));
is $code, 75, 'the new one has mail left';
like $said, qr/^gone: .*; refused: ${\ scalar keys %$b} \(two: This version cannot read its envelope\); sessions: 0 in, 0 out$/m, 'and the reason';
is refusals('three'), scalar(keys %$b), 'the log has it, once for each message';
is_deeply known('three'), $b, 'it stays as it is';
run(three => qw(drain --cancel));

# --- sendmail(1) is newer than the daemon, until that is restarted

($code, $said) = Petrel::command("Subject: sendmail\n\nm\n", $program{new}, '-c', $host{two}->conf, 'sendmail', '-f', 'a@x.test', 'sendmail@y.test');
is $code, 0, 'a newer sendmail stores mail';
$sent{'sendmail@y.test'} = 1;
ok $host{two}->wait_log(qr/a newer version of Petrel wrote the envelope: start that version, then release the message/), 'which is quarantined, with the reason';

# --- Two old hosts, then one of them is upgraded

($code, $said) = run(three => qw(drain --wait 60s));
is $code, 75, 'neither old one takes it';
is_deeply known('three'), $b, 'it stays as it is';
my $two = known('two');
$host{two}->kill9; # what it has in its journal, too, is read by the new one
start(two => 'new');
is_deeply without_reasons(known('two')), without_reasons($two), 'the new version has the queue of the old one';
($code, $said) = run(two => qw(queue release --queue corrupt --all));
is $code, 0, 'what was quarantined is released' or diag $said;
ok $host{two}->wait_log(qr/to=<sendmail\@y\.test>.*status=deferred/), 'and waits like other mail';
$two = known('two');
run(three => qw(drain --cancel));
my $asked = refusals('three');
($code, $said) = run(three => qw(drain --wait 60s));
is $code, 0, 'the one that can read it takes all, though an old one is asked as well' or diag $said, $host{three}->log;
like $said, qr/^gone: no messages; given: ${\ scalar keys %$b}; sessions/m, 'all of it';
is refusals('three'), $asked, 'nothing is said to stay';
is_deeply known('two'), { %$two, %$b }, 'age, attempts, due times, holds are kept';
is_deeply known('one'), {}, 'the old one has none';
run(three => qw(drain --cancel));

# --- The one that can read it comes late

$host{three}->stop;
$two = known('two');
my $drain = fork // die;
if (!$drain) { open STDOUT, '>', "$host{two}{dir}/drain" or die; exec $program{new}, '-c', $host{two}->conf, qw(drain --wait 10m) or die }
ok Petrel::wait_for(sub { Petrel::slurp("$host{two}{dir}/drain") =~ /^giving: .*waiting: three: /m }), 'the old one cannot, the new one is away';
is refusals('two'), 0, 'nothing is said to stay';
start(three => 'new');
waitpid $drain, 0;
is $? >> 8, 0, 'when it is there it takes all' or diag Petrel::slurp("$host{two}{dir}/drain"), $host{two}->log;
is_deeply known('three'), $two, 'age, attempts, due times, holds are kept';

# --- An older version on a newer spool

$host{three}->stop;
my $form = Petrel::slurp("$host{three}{dir}/spool/lock/form");
is $form, "2\n", 'the spool says what it is';
my $spool = sub { return `cd $host{three}{dir}/spool && find . -printf '%p %m %T@\n' -type f -exec sha256sum {} + | sort` };
my $before = $spool->();
($code, $said) = $host{three}->run('run');
is $spool->(), $before, 'the old version changes nothing of it';
is $code, 78, 'the old version does not start on it';
like $said, qr/^petrel: a newer version of Petrel has written this spool \(form 2; this version reads up to 1\): start that version$/m, 'with one line';
ok !-e "$host{one}{dir}/spool/lock/form", 'this version writes no such file';

# --- All arrives, once

start(three => 'new');
is_deeply known('three'), $two, 'nothing was touched';
$sink->again;
run($_ => qw(drain --cancel)), run($_ => qw(queue release --all)), run($_ => qw(queue retry --all)) for @names;
$host{$_}->configure(routes => "* smtp://127.0.0.1:$sink->{port}"), run($_ => 'reload'), run($_ => qw(queue release --all)) for @names;
{
    local $Petrel::binary = $program{new};
    ok $host{$_}->wait_empty, "$_ is empty in the end" for @names;
}
my %times;
$times{$_}++ for map { @{ $_->{to} } } $sink->messages;
is_deeply \%times, \%sent, 'every message has arrived, once';
is $host{$_}->stop, 0, 'a good end' for @names;

done_testing;
