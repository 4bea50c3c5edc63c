#!/usr/bin/perl
# GET /api/fragments of the real binary: the sets that wait, their missing parts, in pages; none when all has arrived.
use lib 't/e2e';
use E2E;
use Fragments;
use Schema;

plan skip_all => 'curl is not installed' unless Petrel::have('curl');

my $port = Petrel::free_port();
my $sink = Sink->start;
my $petrel = Petrel->new(http => "127.0.0.1:$port?access=read", routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d")->start;

sub ask { my ($path, @more) = @_; return (Petrel::command('', 'curl', '-s', '-m', '30', '-w', '%{http_code}', '-H', 'X-Petrel: 1', @more, "http://127.0.0.1:$port$path"))[1] }
sub sets {
    my $said = ask('/api/fragments' . ($_[0] // ''));
    $said =~ s/200\z// or return fail("/api/fragments: $said");
    my $answer = decode_json($said);
    Schema::record(['fragments', '--json'], encode_json($answer));
    return @{ $answer->{sets} };
}
sub send_part {
    my ($of, $number, $total) = @_;
    my $part = Fragments::part($of, $number, $total, $number == 1 ? "Subject: whole\n\none\n" : "body $number\n");
    chomp $part;
    like $petrel->send_mail('a@x.test', 'b@y.test', $part), qr/^250/, "part $number of $of";
}
sub waits { my $count = shift; return Petrel::wait_for(sub { my @sets = sets(); my $all = 0; $all += $_->{messages} for @sets; return $all == $count }) }

is_deeply [sets()], [], 'none waits';
send_part('first', 2, 4);
send_part('first', 3, 4);
ok waits(2), 'two wait';
my ($set) = sets();
is $set->{sender}, 'a@x.test', 'its sender';
is $set->{recipient}, 'b@y.test', 'its recipient';
is_deeply [@$set{qw(have missing have_count total recipients)}], [[2, 3], [1, 4], 2, 4, 1], 'what is there and what is missing';
is $set->{owner}, 'this host', 'which host reassembles it';
ok $set->{until_ms} > $set->{since_ms}, 'until when it waits';
ok $petrel->wait_log(qr/ set=$set->{set}\b/), 'its name is that of the log' or diag $petrel->log;
send_part("more$_", 1, 2) for 1 .. 23;
ok waits(25), 'many sets';
is_deeply [map { $_->{set} } sets('?from=20')], [map { $_->{set} } (sets())[20 .. 23]], 'but for the first twenty';
is_deeply [sets('?from=24')], [], 'behind the last';
like ask('/api/fragments?from=x'), qr/400\z/, 'a place that is no number';
like ask('/api/fragments', '-H', 'Origin: https://evil.example'), qr/403\z/, 'not for a foreign page';
$petrel->stop;
$petrel->start;
ok waits(25), 'they are there after a restart';
send_part('first', 1, 4);
send_part('first', 4, 4);
ok Petrel::wait_for(sub { scalar($sink->messages) == 1 }), 'the last part comes';
ok !(grep { $_->{set} eq $set->{set} } sets()), 'the set is gone';
is scalar(my @left = sets()), 23, 'the others are not';
$petrel->stop;
done_testing;
