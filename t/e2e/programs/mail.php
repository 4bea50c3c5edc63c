<?php
// PHP's mail() sends the text of $BODY.
$headers = "From: " . getenv('FROM') . "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit";
if (!mail(getenv('TO'), 'PHP', file_get_contents(getenv('BODY')), $headers, '-f' . getenv('FROM'))) {
    echo "mail() has failed\n";
    exit(1);
}
