package E2E;

# All that most end-to-end tests begin with: strict and warnings, the words of Test::More, tempdir(), those of JSON::PP, and
# our own Petrel, Sink and Client.
use strict;
use warnings;
use lib 't/e2e';
use Client;
use File::Temp ();
use JSON::PP ();
use Petrel;
use Sink;
use Test::More ();

sub import {
    my $test = caller;
    strict->import;
    warnings->import;
    eval "package $test; Test::More->import; File::Temp->import('tempdir'); JSON::PP->import; 1" or die $@;
    return;
}

1;
