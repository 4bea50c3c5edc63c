package Schema;

# Every --json that a test reads is checked by its schema in t/e2e/schema/, at the end of the test and in one go:
# by schema.py, with python3-jsonschema.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempfile);
use JSON::PP;

my $folder = abs_path(dirname(__FILE__)); # tests change the directory
my $limit = 200;              # different objects of a kind: a test may ask for thousands
my (%seen, %count, $file, $path);
my $owner = $$;

# The schema for a command, by its name; undef: it has none, or prints no JSON.
sub kind {
    my @words = @_;
    return unless grep { $_ eq '--json' } @words;
    my $all = (grep { $_ eq '--cluster' } @words) ? '-cluster' : '';
    return 'status-site' if grep { $_ eq '--site' } @words;
    for my $at (0 .. $#words) {
        return "$words[$at]$all" if $words[$at] =~ /^(?:version|check|status|trace|series|fragments|doctor|cluster|import)$/;
        return 'oauth-status' if $words[$at] eq 'oauth';
        return 'suppress-ls' if $words[$at] eq 'suppress';
        next unless $words[$at] eq 'queue';
        my $verb = $words[$at + 1] // '';
        return "queue-change$all" if $verb =~ /^(?:hold|release|retry|rm|bounce)$/;
        return $all ? 'queue-cluster' : "queue-$verb";
    }
    return;
}

# The objects in what a command has printed, of a line or of several, which may have other lines in between: standard error is
# with it.
sub objects {
    my $text = shift;
    my $whole = eval { decode_json($text) };
    return $text if ref $whole eq 'HASH';
    my ($end, @found);
    for (my @lines = split /\n/, $text; @lines;) {
        my $one = shift @lines;
        $one = join "\n", $one, splice @lines, 0, $end + 1 if $one eq '{' && (($end) = grep { $lines[$_] eq '}' } 0 .. $#lines);
        push @found, $one if ref eval { decode_json($one) } eq 'HASH';
    }
    return @found;
}

# Keeps what a command has printed.
sub record {
    my ($command, $text) = @_;
    my $kind = kind(@$command) or return;
    for my $object (objects($text)) {
        next if $seen{"$kind $object"}++ || ++$count{$kind} > $limit;
        ($file, $path) = tempfile('schema-XXXXXX', TMPDIR => 1) unless $file;
        print $file JSON::PP->new->utf8->canonical->encode({ kind => $kind, object => decode_json($object) }), "\n";
    }
    return;
}

# 0, or the test fails.
sub check {
    return 0 unless $file && $$ == $owner;
    close $file;
    my $code = system 'python3', "$folder/schema.py", $path;
    unlink $path;
    return $code == 0 ? 0 : 1;
}

1;
