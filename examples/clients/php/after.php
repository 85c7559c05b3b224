<?php
// The application hands the postback to Postern. A 202 means that it is on disk.
$partner = getenv('PARTNER') ?: 'https://partner.example/postback';
$postern = getenv('POSTERN') ?: 'http://localhost:8089/';

$answer = file_get_contents($postern . $partner . '?cid=a+b%20c', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Content-Type: application/json', 'Idempotency-Key: order-42'],
    'content' => json_encode(['order' => 42, 'amount' => '9.90']),
    'timeout' => 15,
]]));
if ($answer === false) { // anything but a 2xx or 3xx
    exit(1);
}
