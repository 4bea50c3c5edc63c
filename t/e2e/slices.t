#!/usr/bin/perl
# Several daemons on one spool, each with its part of the names: no two take the same part, each message is handled by
# one of them, and a change of `slices` finds the mail of the old journals.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(sleep);

my $sink = Sink->start('--fail-rcpt', 'later:451');
my $dir = File::Temp::tempdir('slices-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $number = 0;
my %sent;

# Instance i of n; each has its own settings file, log and port, and all the same spool.
sub instance {
    my ($n, $i, %settings) = @_;
    mkdir "$dir/$n.$i";
    return Petrel->new(dir => "$dir/$n.$i", spool => "$dir/spool", slices => $n, slice => $i, routes => "* smtp://127.0.0.1:$sink->{port}",
        minimal_backoff_time => '1h', maximal_backoff_time => '1h', journal_size => '4M', %settings);
}

sub send_some {
    my ($petrel, $count, $word) = @_;
    my $client = Client->greeted($petrel->{port}) or return 0;
    my $taken = 0;
    for (1 .. $count) {
        my $to = "$word" . ++$number . '@x.test';
        my $reply = $client->send(from => 'me@source.test', to => [$to], data => "Subject: $number\r\n\r\nbody\r\n");
        if ($reply =~ /^250 /) { $taken++; $sent{$to} = 1 }
    }
    return $taken;
}

sub arrived { my %seen; for my $file ($sink->files) { $seen{$_}++ for @{ Sink::read_message($file)->{to} } } return \%seen }

# --- Starts

my @four = map { instance(4, $_)->start } 0 .. 3;
is scalar(grep { defined } @four), 4, 'four daemons on one spool';
is scalar(() = glob "$dir/spool/journal/*"), 4, 'each with its own journal';
my $twin = instance(4, 2, listen => '127.0.0.1:' . Petrel::free_port());
my ($code, $said) = $twin->run('run');
is $code, 75, 'a second one for the same slice ends';
like $said, qr/slice 2 of 4 is handled by another petrel/, 'and says why';
my $whole = instance(1, 0);
($code, $said) = $whole->run('run');
is $code, 75, 'one for all slices, too';
for my $bad (['3', 0, qr/slices: 3 is not a power of two/], [4, 4, qr/slice: 4: with slices = 4 it is 0 to 3/], [2048, 0, qr/slices/]) {
    my ($n, $i, $want) = @$bad;
    ($code, $said) = instance($n, $i)->run('check');
    ok $code != 0, "slices = $n, slice = $i is a mistake";
    like $said, $want, 'told';
}

# --- They share the work

is send_some($_, 20, 'now'), 20, 'mail is taken' for @four;
ok Petrel::wait_for(sub { $sink->count('messages') == 80 }), 'and delivered';
is send_some($_, 5, 'later'), 5, 'some must wait' for @four;
ok Petrel::wait_for(sub { scalar(() = glob "$dir/spool/info/*") == 20 }), 'in the same spool';
($code) = Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $four[1]->conf, 'sendmail', '-f', 'me@source.test', "now0\@x.test") for 1 .. 8;
is $code, 0, 'sendmail works beside them';
ok Petrel::wait_for(sub { $sink->count('messages') == 88 }), 'its mail is found by whoever is to handle it' or diag $sink->count('messages');
$four[2]->kill9;
my $restarted = instance(4, 2);
$restarted->start;
is send_some($restarted, 5, 'now'), 5, 'one that was killed comes back';
$four[2] = $restarted;
ok Petrel::wait_for(sub { $sink->count('messages') == 93 }), 'with all others at work';

# --- Another number of slices

$sink->stop;
my $held = 0;
$held += send_some($_, 10, 'now') for @four;
is $held, 40, 'mail is taken while the next hop is away';
$_->kill9 for @four;
my @two = map { instance(2, $_)->start } 0, 1;
is scalar(grep { defined } @two), 2, 'two daemons instead of four';
is send_some($_, 5, 'now'), 5, 'take mail' for @two;

# --- A dead one's slice

sub adopt { return $two[0]->run('queue', 'adopt', @_) }
is((adopt())[0], 64, 'adopt needs a slice');
is((adopt('x'))[0], 64, 'and a number');
($code, $said) = adopt(2);
is $code, 69, 'one that does not exist';
like $said, qr/no such slice: there are 0 to 1/, 'told';
($code, $said) = adopt(1);
is $code, 69, 'one that is alive';
like $said, qr/handled by another petrel, which runs/, 'told';
$two[1]->kill9;
my $before = () = ($two[0]->run('queue', 'ls'))[1] =~ /^/mg;
is $before, 70, 'ls shows the mail of all, alive or dead' or diag(($two[0]->run('queue', 'ls'))[1]);
($code, $said) = adopt(1);
is $code, 0, 'the slice of a dead one' or diag $said;
like $said, qr/^slice 1 of 2 belongs to this daemon until it stops; messages from its journal: \d+$/, 'told';
like((adopt(1))[1], qr/handled here already/, 'once');
my ($late) = instance(2, 1);
($code, $said) = $late->run('run');
is $code, 75, 'its own daemon must wait';
like $said, qr/slice 1 of 2 is handled by another petrel/, 'and says so';
sub scheduled {
    my $sum = 0;
    $sum += $_ for ($two[0]->run('status', '--json'))[1] =~ /"(?:incoming|active|deferred)": (\d+)/g;
    return $sum;
}
ok Petrel::wait_for(sub { scheduled() == 70 }), 'the other one has all of it' or diag(($two[0]->run('status'))[1]);
is $two[0]->stop, 0, 'and ends well';
ok $sink->again, 'the next hop is back';
my $one = instance(1, 0)->start;
$one->run(qw(queue retry --all));
my $total = () = %sent;
ok Petrel::wait_for(sub { my $a = arrived(); !grep { !$a->{$_} } keys %sent }), 'one daemon instead of two: everything arrives' or diag join ' ', grep { !arrived()->{$_} } keys %sent;
ok $one->wait_empty, 'nothing is left';
ok Petrel::wait_for(sub { !grep { -f } glob "$dir/spool/{todo,info,local,remote,bounce,hold,corrupt}/*" }), 'no file either';
my $arrived = arrived();
is scalar(grep { $arrived->{$_} > 1 && !/^now0@/ } keys %$arrived), 0, 'nothing arrived twice';
is $one->stop, 0, 'Petrel ends well';
$sink->stop;
done_testing;
