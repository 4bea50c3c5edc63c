package Report;

# Reads a delivery report with a parser that is not ours: Python's.
use strict;
use warnings;
use JSON::PP;
use lib 't/e2e';
use Petrel;

my $program = <<'END';
import email, json, sys
from email import policy
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=policy.default)
parts = list(m.iter_parts())
original = parts[2].get_payload()
if isinstance(original, list):
    original = original[0].as_string()
print(json.dumps({
    "type": m.get_content_type(), "report_type": m.get_param("report-type"),
    "header": {k.lower(): str(v) for k, v in m.items()},
    "types": [p.get_content_type() for p in parts],
    "text": parts[0].get_content(),
    "status": [{k.lower(): str(v) for k, v in block.items()} for block in parts[1].get_payload()],
    "original": original,
    "defects": [repr(d) for p in m.walk() for d in p.defects]}))
END

# parse(MESSAGE): {type, report_type, header, types, text, status => [for the message, for each
# recipient...], original, defects}.
sub parse {
    my $message = shift;
    my ($code, $said) = Petrel::command($message, 'python3', '-c', $program);
    die "not a report ($code): $said" if $code != 0;
    my $report = JSON::PP->new->utf8->decode($said);
    $report->{$_} =~ s/\r\n/\n/g for qw(text original);
    return $report;
}

1;
