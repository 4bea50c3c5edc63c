#!/usr/bin/perl
# A message whose first line is that of a mailbox ("From SENDER DATE") comes by SMTP: its header is read, here and behind us.
use lib 't/e2e';
use E2E;
use File::Find;
use Fragments;

my $line = 'From a@x.test Sat Nov 21 03:05:08 2026';
my $sink = Sink->start;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes", relay_from => "192.0.2.0/24", local_domains => "y.test, z.test")->start;
my $client = Client->greeted($petrel->{port});

# Without Received, in LF.
sub plain { my $data = shift; $data =~ s/\r\n/\n/g; 1 while $data =~ s/\AReceived: [^\n]*\n(?:[ \t][^\n]*\n)*//; return $data }
sub received { my $to = shift; ok Petrel::wait_for(sub { grep { $_->{to}[0] eq $to } $sink->messages }), "$to: arrives" or diag $petrel->log; return map { plain($_->{data}) } grep { $_->{to}[0] eq $to } $sink->messages }

# A message/partial pair with such a line is joined; what is made has the fields of the first.
my ($first, $second) = Fragments::cut("Subject: whole\nMessage-ID: <w\@x.test>\n\none\ntwo\nthree\nfour\n", 2);
for my $number (1, 2) {
    my $part = "$line\n" . Fragments::part('mbox@x.test', $number, 2, $number == 1 ? $first : $second, header => "X-Outer: kept\n");
    like $client->send(from => 'a@x.test', to => 'pair@y.test', data => $part =~ s/\n/\r\n/gr), qr/^250/, "part $number";
}
my ($joined) = received('pair@y.test');
like $joined, qr/\AMailbox-Line: \Q$line\E\n(?:[^\n]+\n)*X-Outer: kept\n(?:[^\n]+\n)*Subject: whole\n(?:[^\n]+\n)*\none\ntwo\nthree\nfour\n\z/, 'the pair is joined';
is scalar(grep { $_->{to}[0] eq 'pair@y.test' } $sink->messages), 1, 'to one message';

# The corpus.
my (@files, $count);
my $corpus = $ENV{PETREL_CORPUS} // '../shared/corpus';
find(sub { push @files, $File::Find::name if -f && Petrel::slurp($_) =~ /\A>*From [^:]/i }, $corpus) if -d $corpus;
for my $file (sort @files) {
    my $content = Petrel::slurp($file) =~ s/\r\n/\n/gr =~ s/[\r\0]//gr =~ s/\n?\z/\n/r;
    my $to = 'file' . ++$count . '@z.test';
    like $client->send(from => 'a@x.test', to => $to, data => $content =~ s/\n/\r\n/gr), qr/^250/, $file;
    my ($got) = received($to);
    is $got, "Mailbox-Line: $content", "$file: nothing else is changed";
}
diag scalar(@files) . ' messages of the corpus';
$client->quit;
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
