package Cluster;

# Hosts that share the defragment channel, a Redis for them, and sets of fragments to send them.
use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use List::Util qw(shuffle sum);
use lib 't/e2e';
use Client;
use Petrel;
use Test::More;

our @EXPORT = qw(hosts fragments figure wait_figure let_go complaints make_set send_part arrivals is_whole waits plain away ends);
our @names = qw(one two three);
my $sink; # where all mail ends
my @started; # by the last hosts()
my %taken; # of its files

srand($ENV{SEED} ||= time % 100_000);
note "SEED=$ENV{SEED}";

# --- Hosts ---------------------------------------------------------------------------------------------------------

# hosts(REGISTRY, settings...): started; REGISTRY may be a list, one for each. Clients come from 127.0.0.1, hosts from 127.0.0.2 and so on: by that
# they know each other. y.test waits for fragments.
sub hosts {
    my ($registry, %more) = @_;
    $sink //= Petrel::sink();
    my @addresses = map { '127.0.0.' . ($_ + 2) } 0 .. $#names;
    my @ports = map { Petrel::free_port($_) } @addresses;
    my $peers = join ', ', map { "$names[$_]=$addresses[$_]:$ports[$_]" } 0 .. $#names;
    my $to = "smtp://127.0.0.1:$sink->{port}";
    return @started = map {
        my $host = Petrel->new(
            defrag_registry => ref $registry ? $registry->[$_] : $registry, defrag_host => "$names[$_]=$addresses[$_]", defrag_peers => $peers, hostname => "$names[$_].test",
            minimal_backoff_time => '1s', maximal_backoff_time => '2s', routes => "y.test $to?defragment=yes&notices=4d\n* $to", %more,
        );
        $host->{name} = $names[$_];
        chmod 0755, $host->{dir}; # for who is to be another user
        $host->configure(listen => "127.0.0.1:$host->{port}, $addresses[$_]:$ports[$_]")->start;
    } 0 .. $#names;
}

# The figures of the channel: sets, messages, reassembled, redirected, alone, registry, ...
# A host that waits for a file system says none.
sub fragments { my $status = shift->status; return $status =~ /^\{/ ? JSON::PP::decode_json($status)->{fragments} : {} }
sub figure { my ($name, @hosts) = @_; return sum map { fragments($_)->{$name} // 0 } @hosts }
sub wait_figure { my ($host, $name, $value) = @_; return Petrel::wait_for(sub { (fragments($host)->{$name} // '') eq $value }) }

# let_go(COUNT, HOSTS...): operators let go of all fragments, as they are; until so many more have arrived. One that is
# being tried at that moment hears of the second command only.
sub let_go {
    my ($count, @hosts) = @_;
    my @new;
    Petrel::wait_for(sub {
        for my $host (@hosts) { $host->run('queue', $_, '--all') for qw(hold release) }
        push @new, arrivals();
        return @new >= $count;
    });
    return @new;
}

# Log lines of a host that are no news.
sub complaints { my $host = shift; return grep { / (?:warning|error): |status=bounced/ && !/running as root|can be read by all users/ } split /\n/, $host->log }

# --- Redis ---------------------------------------------------------------------------------------------------------

# redis(LINES): a new one with that in its configuration, started; undef where there is none. One program has several
# names, of which Debian's redis-tools lacks that of the server.
sub redis {
    my $lines = shift // '';
    my ($program) = grep { defined && -x } Petrel::have('redis-server'), '/usr/bin/redis-check-rdb';
    return unless $program;
    my $dir = tempdir('redis-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $self = bless { program => $program, dir => $dir, port => Petrel::free_port() }, 'Cluster';
    Petrel::spit("$dir/redis.conf", "port $self->{port}\nbind 127.0.0.1\nsave \"\"\ndir $dir\n$lines");
    $self->start_redis;
    return $self;
}

sub start_redis {
    my $self = shift;
    $self->{pid} = Petrel::spawn("$self->{dir}/log", $^X, '-e', 'exec { shift @ARGV } @ARGV', $self->{program}, 'redis-server', "$self->{dir}/redis.conf");
    return Petrel::wait_for(sub { Petrel::slurp("$self->{dir}/log") =~ /Ready to accept connections/ }) || die 'no Redis: ' . Petrel::slurp("$self->{dir}/log");
}

sub kill_redis { my $self = shift; my $status = Petrel::reap(delete $self->{pid}, 'KILL'); unlink "$self->{dir}/log"; return $status }
sub url { my $self = shift; return "redis://127.0.0.1:$self->{port}/1" }

# The reply to one command in that database, as its lines; undef when nobody answers.
sub ask {
    my ($self, $command) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) or return;
    print $socket "SELECT 1\r\n$command\r\nQUIT\r\n";
    local $/;
    my $all = <$socket> // return;
    return $all =~ s/\A\+OK\r\n(.*)\+OK\r\n\z/$1/sr;
}

# --- Sets ----------------------------------------------------------------------------------------------------------

my $sets = 0;

# A set of so many parts: {id, whole, parts => [...]}.
sub make_set {
    my $count = shift;
    my $id = 'set' . ++$sets . '.' . int(rand 1e9) . '@x.test';
    my $outer = "Date: Sat, 21 Nov 2026 03:05:08 +0000\r\nFrom: a\@x.test\r\nTo: b\@y.test\r\n";
    my $inner = "Message-ID: <whole.$id>\r\nSubject: whole\r\nMIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\n";
    my @bodies = map { "$id $_ " . 'x' x int(rand 200) . "\r\n" } 1 .. $count;
    my @parts = map {
        "${outer}Subject: part $_\r\nMessage-ID: <$_.$id>\r\nMIME-Version: 1.0\r\n"
            . "Content-Type: message/partial; id=\"$id\"; number=$_; total=$count\r\n\r\n" . ($_ == 1 ? $inner : '') . $bodies[ $_ - 1 ]
    } 1 .. $count;
    return { id => $id, whole => $outer . $inner . join('', @bodies), parts => \@parts };
}

# The n-th part to a host; true when he has taken it.
sub send_part {
    my ($host, $set, $n) = @_;
    my $client = $host->{client} //= Client->greeted($host->{port}) or return 0;
    my $reply = $client->send(from => 'a@x.test', to => ['b@y.test'], data => $set->{parts}[ $n - 1 ]);
    delete $host->{client} unless $reply =~ /^[245]/;
    return $reply =~ /^250 /;
}

# A message without the traces of all the hosts it came by.
sub untraced { my $c = shift; 1 while $c =~ s/\AReceived: [^\n]*\n(?:[ \t][^\n]*\n)*//; return $c }

# arrivals(COUNT): what has arrived since the last time, untraced; once it is so much, if that is told.
sub arrivals {
    my $count = shift // 0;
    my @files;
    # A directory that is just being written may show a file before an older one.
    Petrel::wait_for(sub { @files = grep { !$taken{$_} } glob "$sink->{dir}/*.eml"; return @files >= $count });
    $taken{$_} = 1 for @files;
    return map { untraced(Petrel::slurp($_)) } @files;
}

# --- Checks of every registry --------------------------------------------------------------------------------------

# The one message that came is the whole.
sub is_whole {
    my ($set, $name) = @_;
    my @new = arrivals(1);
    is scalar @new, 1, "$name: one message";
    return is($new[0], $set->{whole}, "$name: the whole") || diag map { ("$_->{name}:\n", $_->log) } @started;
}

# A part that waits where it is.
sub waits {
    my ($host, $set, $n, $name) = @_;
    my $before = fragments($host)->{waited};
    ok send_part($host, $set, $n), "$name: part $n at $host->{name}";
    return ok wait_figure($host, 'waited', $before + 1), 'waits';
}

# They meet, in any order. Numbers of checks are those of the channel's specification.
sub plain {
    my ($kind, @hosts) = @_;
    my ($one, $two, $three) = @hosts;
    # By turns: joined where the first was (checks 46, E12).
    my $set = make_set(4);
    waits($one, $set, 2, "$kind: by turns");
    ok send_part($hosts[ $_ % 3 ], $set, $_), "part $_ at another" for 1, 4;
    ok send_part($one, $set, 3), 'part 3 at the first';
    is_whole($set, "$kind: by turns");
    is figure('reassembled', $one), 1, 'at the host of the first part';
    is figure('reassembled', $two, $three), 0, 'at no other';
    is figure('redirected', $two, $three), 2, 'to whom the others sent theirs';
    # All at once, 60 sets at random (check 47).
    my @sets = map { make_set(5) } 1 .. 60;
    my @all = shuffle map { my $s = $_; map { [$s, $_] } 1 .. 5 } @sets;
    my $refused = grep { !send_part($hosts[ rand @hosts ], @$_) } @all;
    is $refused, 0, "$kind: 300 parts at random are taken";
    my %got;
    $got{$_}++ for arrivals(60);
    is scalar(grep { ($got{ $_->{whole} } // 0) == 1 } @sets), 60, 'all 60 sets arrive whole, once';
    is scalar(keys %got), 60, 'and nothing else';
    is figure('reassembled', @hosts), 61, 'each was joined at one host';
    ok $_->wait_empty, "nothing is left at $_->{name}" for @hosts;
    # A route from a stranger is no redirection (check 52).
    $set = make_set(2);
    waits($one, $set, 1, "$kind: a stranger");
    my $redirected = figure('redirected', $one);
    my @replies = $two->dialogue('EHLO stranger', 'MAIL FROM:<a@x.test>', 'RCPT TO:<@one.test,@two.test:b@y.test>', 'DATA', ["$set->{parts}[1].\r\n"]);
    like $replies[-1], qr/^250 /, 'sends one by a route';
    is_whole($set, 'it finds the first as any other would');
    is figure('redirected', $one), $redirected, 'where the first was';
    unlike +($two->dialogue('EHLO stranger'))[-1], qr/XDEFRAG/, 'no stranger is offered the parameter';
    return;
}

# The owner is away: what is his waits for him.
sub away {
    my ($kind, @hosts) = @_;
    my ($one, $two) = @hosts;
    my $set = make_set(3);
    waits($one, $set, 1, "$kind: the owner goes");
    $one->kill9;
    delete $one->{client};
    ok send_part($two, $set, $_), "part $_ at another" for 2, 3;
    ok $two->wait_log(qr/status=deferred/), 'waits for him';
    is scalar(arrivals()), 0, 'and is not sent on';
    $one->start;
    is_whole($set, 'when he is back');
    is figure('reassembled', $one), 1, 'he joins it';
    return;
}

# Nothing is left.
sub ends {
    my ($kind, @hosts) = @_;
    ok $_->wait_empty, "$kind: nothing is left at $_->{name}" for @hosts;
    is scalar(arrivals()), 0, 'and nothing more has come';
    is $_->stop, 0, "$_->{name} ends well" for @hosts;
    return;
}

1;
