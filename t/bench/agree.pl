#!/usr/bin/perl
# Whether the simulation and the daemon agree: scenarios of the feed (t/scenarios/feed-*), at a part of their size, in
# virtual time and over sockets. For each the daemon gets the scenario's settings, a sink its servers and load
# its mail. How long mail waits in both: median, 99 %, longest, and the ratio of the daemon's to the simulation's.
# CASES=NAME,NAME takes some of them.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use List::Util qw(max sum0);
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Sink;

my $within = 10;   # %
my $hitch_s = 0.02; # of the machine, and the log has hundredths: no difference either

# Name, scenario, and what is changed in it: times and numbers alike, so that limits bind as they do there.
my @cases = (
    ['order', 'feed-order'],
    ['overload', 'feed-overload', 'for=90m' => 'for=3m', '^site ' => "active_limit 667\nsite "],
    flush('calm', 'feed-flush', 'at 1m flush' => 'until 125s'),
    flush('flush', 'feed-flush'),
    flush('flush-small', 'feed-flush-small', 'active_limit 1000' => 'active_limit 500'),
    ['targets', 'feed-targets', 'at=2s' => 'at=2200ms'],
    ['targets-steady', 'feed-targets-steady'],
);

# Half of the messages and of the speed; deferred mail is flushed after a minute.
sub flush {
    my ($name, $file, @more) = @_;
    return [$name, $file, 'delay.message=50ms' => 'delay.message=100ms', 'count=12000' => 'count=6000', 'rate=100/s' => 'rate=50/s',
        'at 2m ' => 'at 50s ', 'at 3m ' => 'at 1m ', 'at=3m' => 'at=1m', $file =~ /small/ ? () : ('^site ' => "active_limit 10000\nsite "), @more];
}

sub scenario {
    my ($file, @changes) = @_;
    my $text = Petrel::slurp("$Petrel::root/t/scenarios/$file.scenario");
    while (my ($from, $to) = splice @changes, 0, 2) { $text =~ s/$from/$to/m or die "$file has no $from" }
    return $text;
}

# --- In virtual time

# The rows of its report: group => { sent, median, p99, longest }.
sub simulate {
    my $text = shift;
    my $file = Petrel::spit(Bench::work_dir() . '/scenario', $text);
    my ($code, $report) = Petrel::command('', "$Petrel::build/t/bench/simulate", '-c', '/dev/null', $file);
    die $report unless $code == 0 || $report =~ /^stopped/;
    my %group;
    for ($report =~ /^mail \(times.*?\n(.*?)\n\n/ms ? split /\n/, $1 : ()) {
        my ($name, @figures) = /^(.+?)\s+(\d+)\s+(\d+)\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+\d+$/ or die "report: $_";
        $group{$name} = { sent => $figures[1], median => $figures[3], p99 => $figures[4], longest => $figures[5] };
    }
    return \%group;
}

# --- Over sockets

sub seconds { my ($number, $unit) = shift =~ /^(\d+)(ms|s|m)$/ or die "time: @_"; return $number * { ms => 0.001, s => 1, m => 60 }->{$unit} }
sub pairs { return map { /^(.*?)=(.*)$/ } @_ }

# The meaning of the statements here; others have no counterpart: { settings, target, site, domain, arrive,
# flush, until }.
sub meaning {
    my %m = (settings => {}, target => { '' => '' }, site => {}, domain => {}, arrive => []);
    my $line = 0;
    for (split /\n/, shift) {
        $line++;
        my ($word, @rest) = split ' ', s/#.*//r or next;
        if    ($word =~ /_(limit|share)$/) { $m{settings}{$word} = $rest[0] }
        elsif ($word eq 'transport')       { $m{target}{''} = '?' . join '&', @rest }
        elsif ($word eq 'target')          { $m{target}{ $rest[0] } = @rest > 1 ? die "cannot do: $_" : $m{target}{''} }
        elsif ($word eq 'site')            { $m{site}{ $rest[0] } = { pairs(@rest[1 .. $#rest]) } }
        elsif ($word eq 'domain')          { $m{domain}{ $rest[0] } = { target => '', pairs("site=$rest[2]", @rest > 3 ? "target=$rest[4]" : ()) } }
        elsif ($word eq 'arrive')          { push @{ $m{arrive} }, { name => "line $line", at => '0s', pairs(@rest) } }
        elsif ($word eq 'until')           { $m{until} = seconds($rest[0]) }
        elsif ("@rest" =~ /^(\S+) flush$/) { $m{flush} = seconds($1) }
        elsif ("@rest" !~ / tempfail=0\/1$/) { die "cannot do: $_" }
    }
    $_->{count} //= int(seconds($_->{for}) * ($_->{rate} =~ /^(\d+)\/s$/)[0] + 0.5) for @{ $m{arrive} };
    return \%m;
}

# One sink for all sites, an address each. A site that defers all at first defers each message of the first group once.
sub servers {
    my $m = shift;
    my @names = sort keys %{ $m->{site} };
    my @options = map { my $s = $m->{site}{$_}; ('--address', '127.0.0.1:0' . ($s->{sessions} ? ",sessions=$s->{sessions}" : '') . ',delay.dot=' . 1000 * seconds($s->{'delay.message'})) } @names;
    my $first = $m->{arrive}[0];
    push @options, '--fail-rcpt', "$first->{name}:450:$first->{count}" if grep { ($_->{tempfail} // '') eq '1/1' } values %{ $m->{site} };
    my $sink = Sink->start(@options);
    @{ $m->{port} }{@names} = map { /:(\d+)$/ } @{ $sink->{addresses} };
    return $sink;
}

sub arrive {
    my ($petrel, $a) = @_;
    my @rate = $a->{rate} ? ('--rate', $a->{rate} =~ /(\d+)/) : ('--pipeline');
    my $local = $a->{name} =~ tr/ /-/r;
    return Petrel::spawn(Bench::work_dir() . '/load.log', "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$petrel->{port}",
        '--messages', $a->{count}, '--connections', $a->{count} > 1000 && !$a->{rate} ? 20 : 1, '--rcpt', "$local-%d\@$a->{domain}", @rate);
}

# The messages in the log: group => [ their delays ].
sub delays {
    my $petrel = shift;
    my ($log, %group) = ($petrel->log);
    push @{ $group{ $1 =~ tr/-/ /r } }, $2 while $log =~ /to=<([^>]+)-\d+@[^>]*>.* delay=([\d.]+).*status=sent/g;
    return \%group;
}

# As simulate().
sub relay {
    my $m = meaning(shift);
    my $sink = servers($m);
    my $routes = join "\n", map { my $d = $m->{domain}{$_}; "$_ smtp://127.0.0.1:$m->{port}{$d->{site}}$m->{target}{$d->{target}}" } sort keys %{ $m->{domain} };
    my $petrel = Petrel->new(dir => Bench::work_dir(), routes => $routes, %{ $m->{settings} })->start;
    my @todo = map { my $a = $_; [seconds($a->{at}), sub { arrive($petrel, $a) }] } @{ $m->{arrive} };
    unshift @todo, [$m->{flush}, sub { $petrel->run(qw(queue retry --all)) }] if defined $m->{flush};
    my ($start, $all) = (time, sum0(map { $_->{count} } @{ $m->{arrive} }));
    for (sort { $a->[0] <=> $b->[0] } @todo) { my $left = $start + $_->[0] - time; sleep $left if $left > 0; $_->[1]->() }
    sleep 1 until time > $start + ($m->{until} // 900) || Petrel::count($petrel->log, qr/status=sent/) >= $all;
    my $delays = delays($petrel);
    $petrel->stop;
    $sink->stop;
    my %group;
    for my $name (keys %$delays) {
        my @each = sort { $a <=> $b } @{ $delays->{$name} };
        $group{$name} = { sent => scalar @each, median => $each[ $#each / 2 ], p99 => $each[ int((@each * 99 + 99) / 100) - 1 ], longest => $each[-1] };
    }
    return \%group;
}

# --- Both

$| = 1;
my (%p99, %wanted);
$wanted{$_} = 1 for split /,/, $ENV{CASES} // '';
print "The same case in virtual time and over sockets: how long mail waits, in s, and the daemon's in % of the simulation's\n\n";
printf "%-15s %-10s %-8s %9s %9s %7s\n", '', 'mail', '', 'simulated', 'daemon', '';
for (@cases) {
    my ($name, @how) = @$_;
    next if %wanted && !$wanted{$name};
    my $text = scenario(@how);
    my ($simulated, $relayed) = (simulate($text), relay($text));
    for my $group (sort keys %$simulated) {
        next unless $simulated->{$group}{sent};
        warn "$name: $relayed->{$group}{sent} of $simulated->{$group}{sent}\n" if ($relayed->{$group}{sent} // 0) != $simulated->{$group}{sent};
        $p99{$name} = [$simulated->{$group}{p99}, $relayed->{$group}{p99}] if $group eq 'new';
        for (qw(median p99 longest)) {
            my ($s, $d) = ($simulated->{$group}{$_}, $relayed->{$group}{$_} // 0);
            my $off = 100 * $d / $s - 100;
            printf "%-15s %-10s %-8s %9.2f %9.2f %6.0f%% %s\n", $name, $group, $_, $s, $d, 100 + $off,
                abs($off) <= $within ? "within $within %" : abs($d - $s) <= $hitch_s ? 'within 20 ms' : 'DIFFERS';
        }
    }
}
for my $name (qw(flush flush-small)) {
    next unless $p99{calm} && $p99{$name};
    printf "%-15s 99 %% of new mail, to that of calm: simulated %.1f, daemon %.1f\n", $name, map { $p99{$name}[$_] / $p99{calm}[$_] } 0, 1;
}
