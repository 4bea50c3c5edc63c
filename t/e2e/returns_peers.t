#!/usr/bin/perl
# Postfix, Exim and OpenSMTPD take mail with tagged senders and fail later: their own reports, given back as they are, are read
# right, in any case of the address, with the whole message or its header alone.
use lib 't/e2e';
use E2E;
use Peer;

my %peer = (
    postfix => sub { my ($next, $short) = @_; return Peer::postfix($next, $short ? (bounce_size_limit => 1) : ()) },
    exim => sub { my ($next, $short) = @_; return Peer::exim($next, main => $short ? 'bounce_return_body = false' : '') },
    opensmtpd => sub { my ($next) = @_; return Peer::opensmtpd("smtp://127.0.0.1:$next") },
);
my %missing = map { $_ => Peer::missing($_) } sort keys %peer;
plan skip_all => join ', ', values %missing unless grep { !$_ } values %missing;

my $sink = Sink->start('--fail-rcpt', 'nobody:550', '--fail-rcpt', 'full:552');
for my $case (map { ([$_, 0], $_ eq "opensmtpd" ? () : [$_, 1]) } sort keys %peer) {
    my ($name, $short) = @$case;
SKIP: {
        skip $missing{$name}, 1 if $missing{$name};
        my $label = "$name, " . ($short ? 'header alone' : 'whole message');
        my $hop = $peer{$name}->($sink->{port}, $short);
        my $petrel = Petrel->new(hostname => 'mail.shop.test', bounces => 'bounce@shop.test', verp => 'yes',
            routes => "far.test smtp://127.0.0.1:$hop->{port}?tls=none")->start;
        my @to = map { "$_.$name$short\@far.test" } qw(nobody full);
        like $petrel->send_mail('news@shop.test', \@to, "From: news\@shop.test\nSubject: x\nMessage-ID: <$name$short\@shop.test>\n\nhello"), qr/^250/, "$label: the message";
        my @reports;
        ok Petrel::wait_for(sub { @reports = grep { $_->{from} eq '' && $_->{data} =~ /\.\Q$name$short\E\@far\.test/ } $sink->messages; @reports == 2 }), "$label: two reports"
            or diag $hop->log, $petrel->log;
        my ($id) = $petrel->log =~ /: (\S+): client=.*from=<news\@shop\.test>/;
        for my $report (@reports) {
            my ($tagged) = @{ $report->{to} };
            like $tagged, qr/^bounce\+\w{36}\@shop\.test$/i, "$label: to a tag";
            $petrel->send_mail('', $short ? lc $tagged : $tagged, $report->{data} =~ s/\r?\n\z//r);
        }
        for (['nobody', '5\.\d\.\d'], ['full', '5\.\d\.\d']) {
            my ($who, $status) = @$_;
            ok $petrel->wait_log(qr/ $id: to=<$who\.$name$short\@far\.test>, returned=failed, (?:class=\w+, )?dsn=$status/), "$label: $who"
                or diag $petrel->log, map { $_->{data} } @reports;
        }
        is $petrel->stop, 0, "$label: Petrel ends well";
        $hop->stop;
    }
}
done_testing;
