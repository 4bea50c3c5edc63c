#!/usr/bin/perl
# Envelopes that another user of the machine writes into todo/: what he says of other people's mail is not believed.
use lib 't/e2e';
use E2E;
use Forge;

plan skip_all => 'only root can be two users' if $> != 0;

my $nobody = 65534;
my $plain = "Subject: x\r\n\r\nx\r\n";

# A daemon that puts fragments together, and mail of somebody that waits.
sub scene {
    my %settings = @_;
    my $sink = Sink->start('--fail-rcpt', 'victim:451');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes", minimal_backoff_time => '1h', maximal_backoff_time => '1h', %settings)->start;
    my $reply = $petrel->send_mail('ann@a.test', 'victim@b.test', "Subject: important\n\nimportant\n");
    my ($victim) = $reply =~ /queued as (\S+)/ or die $reply;
    $petrel->wait_log(qr/ $victim: .*status=deferred/) or die;
    return ($sink, $petrel, $victim);
}

# Still there, and nothing else was said of it.
sub is_left_alone {
    my ($petrel, $victim, $name) = @_;
    unlike $petrel->log, qr/ $victim: .*status=sent/, "$name: the other mail is not ended";
    like +($petrel->run(qw(queue show), $victim))[1], qr/victim\@b\.test/, "$name: it waits";
    unlike $petrel->log, qr/$victim.*(?:quarantined|corrupt)/, "$name: where it was";
    return;
}

# J in all its forms, of another user and (as older versions may have left it) our own.
for my $journal ('4M', '0') {
    for my $case ([ 'J', '%s 0' ], [ 'J of an index that is none', '%s 4000000000' ], [ 'J of nobody', '01JD3ZK5Q8-9F3K2C7A 0 1 2' ]) {
        my ($name, $format) = @$case;
        for my $owner ($nobody, 0) {
            my ($sink, $petrel, $victim) = scene(journal_size => $journal);
            my $what = "$name, of uid $owner, journal $journal";
            $petrel->stop;
            my $id = Forge::inject($petrel, from => 'm@x.test', to => ['m@x.test'], content => $plain, owner => $owner,
                named => time * 1000 - 60_000, records => Forge::record('J', "1\n" . ($format =~ s{%s}{$victim}r) . "\n"));
            $petrel->start;
            ok $petrel->wait_log(qr/ $id: to=<m\@x\.test>.*status=sent/), "$what: the forged one is delivered" or diag $petrel->log;
            is_left_alone($petrel, $victim, $what);
            is $petrel->stop, 0, "$what: the daemon lives";
            $sink->stop;
        }
    }
}

# Records that are another's, values that are nobody's.
{
    my ($sink, $petrel, $victim) = scene(minimal_backoff_time => '1h');
    my $huge = '9223372036854775807';
    my $crc = Forge::crc($plain);
    my $length = length $plain;
    my @wild = (
        [ 'born at the end of time', numbers => "$huge $length $crc 0 0 0 0 1 0 0" ],
        [ 'a huge count of failures', numbers => "1 $length $crc 0 0 0 0 1 0 $huge" ],
        [ 'urgent', numbers => "1 $length $crc 0 0 0 1 1 0 0 19" ],
        [ 'trusted', records => Forge::record('C', 'auth:alice') ],
        [ 'by a peer', records => Forge::record('S', ('0' x 64) . ';3;999999999999') ],
    );
    for my $case (@wild) {
        my ($name, %fields) = @$case;
        my $id = Forge::inject($petrel, from => '', to => ['m@x.test'], content => $plain, owner => $nobody, %fields);
        Forge::trigger($petrel);
        ok $petrel->wait_log(qr/ $id: to=<m\@x\.test>.*status=sent/), "$name: delivered as any other" or diag $petrel->log;
    }
    my @refused = (
        [ 'a sender of two parameters', from => 'm@x> AUTH=<root@else.example' ],
        [ 'a huge content', numbers => "1 $huge $crc 0 0 0 0 1 0 0" ],
        [ 'nobody', to => [] ],
        [ 'a recipient of 100 KB', to => [ 'x' x 100_000 ] ],
    );
    for my $case (@refused) {
        my ($name, %fields) = @$case;
        my $id = Forge::inject($petrel, from => 'm@x.test', to => ['m@x.test'], content => $plain, owner => $nobody, %fields);
        Forge::trigger($petrel);
        ok Petrel::wait_for(sub { -e "$petrel->{dir}/spool/corrupt/$id.note" }), "$name: put aside, with a note" or diag $petrel->log;
    }
    is_left_alone($petrel, $victim, 'after all of these');
    is $petrel->stop, 0, 'the daemon lives';
    $sink->stop;
}

# A journaled message with a namesake in todo/ at the next start.
for my $size (30, 300_000) {
    my $sink = Sink->start('--delay', 'dot:600000');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    my $reply = $petrel->send_mail('ann@a.test', 'bob@b.test', "Subject: genuine\n\n" . ("x" x 28 . "\n") x ($size / 30));
    my ($id) = $reply =~ /queued as (\S+)/ or die $reply;
    $petrel->kill9;
    $sink->stop;
    $sink = Sink->start;
    my @owner = $size > 256 * 1024 ? () : (owner => $nobody); # there the content is ours, and stays
    Petrel::spit("$petrel->{dir}/spool/todo/$id", Forge::envelope($id, from => 'm@x.test', to => ['m@x.test'], content => $plain));
    chown $nobody, $nobody, "$petrel->{dir}/spool/todo/$id";
    Forge::inject($petrel, id => $id, from => 'm@x.test', to => ['m@x.test'], content => $plain, owner => $nobody) if @owner;
    $petrel->configure(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    ok $petrel->wait_log(qr/ $id: to=<bob\@b\.test>.*status=sent/), "$size bytes: the genuine one is delivered" or diag $petrel->log;
    unlike $petrel->log, qr/to=<m\@x\.test>/, "$size bytes: the planted one is not";
    like $petrel->log, qr/$id.*removing an envelope of the same name/, "$size bytes: the log tells";
    ok $petrel->wait_empty, "$size bytes: nothing is left";
    like +($sink->for_address('bob@b.test'))[0]{data} // '', qr/genuine/, "$size bytes: with its content";
    is $petrel->stop, 0, "$size bytes: Petrel ends well";
    $petrel->start;
    is $petrel->queued, 0, "$size bytes: nor comes it again";
    $petrel->stop;
    unlike $petrel->log, qr/to=<m\@x\.test>/, "$size bytes: in no later start";
    $sink->stop;
}

done_testing;
