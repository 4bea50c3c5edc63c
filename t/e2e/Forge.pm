# Messages put into a spool by hand, as any local user can: the form of todo/ID, with any records that a test wants.
package Forge;

use strict;
use warnings;
use Petrel;
use Time::HiRes qw(time);

my @table = map { my $c = $_; $c = $c & 1 ? ($c >> 1) ^ 0x82f63b78 : $c >> 1 for 1 .. 8; $c } 0 .. 255;
my $made = 0;

# CRC32C of the pieces.
sub crc {
    my $crc = 0xffffffff;
    $crc = ($crc >> 8) ^ $table[ ($crc ^ $_) & 255 ] for unpack 'C*', join '', @_;
    return $crc ^ 0xffffffff;
}

# A queue id of that time in ms.
sub id {
    my ($ms) = @_;
    my @digits = split //, '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
    my ($name, $hash) = ('', ++$made * 7919);
    for (1 .. 10) { $name = $digits[ $ms % 32 ] . $name; $ms = int($ms / 32) }
    my $rest = '';
    for (1 .. 8) { $rest = $digits[ $hash % 32 ] . $rest; $hash = int($hash / 32) }
    return "$name-$rest";
}

sub record { my ($letter, $bytes) = @_; return $letter . length($bytes) . ":$bytes\n" }

# envelope(ID, from => , to => [...], content => , birth => ms, ret =>, body =>, utf8 =>, double =>, records => 'more records',
# originals => [...], notify => [...], numbers => 'all of M')
sub envelope {
    my ($id, %mail) = @_;
    my @to = @{ $mail{to} };
    my $numbers = $mail{numbers} // join ' ', $mail{birth} // int(time * 1000), length $mail{content}, crc($mail{content}), $mail{ret} // 0,
        $mail{body} // 0, $mail{utf8} // 0, $mail{double} // 0, scalar @to, 0, 0, defined $mail{priority} ? $mail{priority} : ();
    my $records = record('M', $numbers) . record('F', $mail{from} // '') . record('E', $mail{envid} // '') . record('P', $mail{prefix} // '') . ($mail{records} // '');
    for my $i (0 .. $#to) {
        my $original = ($mail{originals} || [])->[$i] // '';
        $records .= sprintf "T%d %d %d %d:%s%s\n", $i, ($mail{notify} || [])->[$i] // 0, length $to[$i], length $original, $to[$i], $original;
    }
    my $title = "petrel-todo   1\n";
    my $body = sprintf("length %010d\n", length($title) + 18 + length($records) + 17) . $records;
    return $title . $body . sprintf "crc %08x\nend\n", crc($id, $title, $body);
}

# Puts a message into a spool; owner: a uid (root alone may say so). Returns its id.
sub inject {
    my ($petrel, %mail) = @_;
    my $spool = "$petrel->{dir}/spool";
    my $id = $mail{id} // id(int($mail{named} // time * 1000));
    for (['mess', $mail{stored} // $mail{content}], ['todo', $mail{bytes} // envelope($id, %mail)]) {
        unlink "$spool/$_->[0]/$id"; # fs.protected_regular: in there even root may not write a file of somebody else
        Petrel::spit("$spool/$_->[0]/$id", $_->[1]);
        chmod 0644, "$spool/$_->[0]/$id";
        chown $mail{owner}, $mail{owner}, "$spool/$_->[0]/$id" or die if defined $mail{owner};
    }
    return $id;
}

# The running daemon looks.
sub trigger { my $petrel = shift; open my $fifo, '>', "$petrel->{dir}/spool/lock/trigger" or return 0; syswrite $fifo, 'x'; return 1 }

1;
