<?php
// The other end of a webhook: takes orders that Postern delivers, trusts none that is not signed, books each one once.
//
//   SECRETS=secrets.txt ORDERS=orders php -S 127.0.0.1:9000 receiver.php
//
// secrets.txt has one secret per line, the same as in Postern's configuration (sign.secrets). This file needs PHP's
// standard library alone; with the package standard-webhooks/standard-webhooks verified() is
// (new Webhook($secret))->verify($body, $headers).
declare(strict_types=1);

const TOLERANCE = 5 * 60; // seconds
const MAX_BODY = 1 << 20;

// With two of them, requests signed by either are accepted, so that a secret can be changed without a gap.
function secrets(): array
{
    $secrets = [];
    foreach (preg_split('/\s+/', file_get_contents(getenv('SECRETS') ?: 'secrets.txt'), -1, PREG_SPLIT_NO_EMPTY) as $line) {
        $secret = base64_decode(preg_replace('/^whsec_/', '', $line), true);
        if ($secret === false || $secret === '') {
            throw new RuntimeException('the file of secrets holds one that cannot be decoded');
        }
        $secrets[] = $secret;
    }
    return $secrets;
}

// verified tells whether one of the secrets signed these bytes, under this ID, just now.
function verified(string $id, string $timestamp, string $signatures, string $body): bool
{
    if ($id === '' || !preg_match('/^\d{1,12}$/D', $timestamp) || abs(time() - (int) $timestamp) > TOLERANCE) {
        return false;
    }
    foreach (secrets() as $secret) {
        $wanted = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $secret, true));
        foreach (explode(' ', $signatures) as $given) {
            if (hash_equals($wanted, $given)) {
                return true;
            }
        }
    }
    return false;
}

// book keeps one event: its ID and its effect are one file that appears whole, under a name that only one can take.
// In a database this is one transaction, with the ID as a unique key.
function book(string $orders, string $id, int $amount): bool
{
    $name = $orders . '/' . hash('sha256', $id);
    $draft = tempnam($orders, 'draft');
    $file = fopen($draft, 'w');
    $written = fwrite($file, json_encode(['id' => $id, 'amount' => $amount])) !== false && fsync($file) && fclose($file);
    $booked = $written && (@link($draft, $name) || file_exists($name)); // it may have been booked before
    unlink($draft);
    return $booked;
}

function receive(string $orders): int
{
    // First the bytes as they came: a signature is about these, not about what a JSON parser makes of them.
    $body = file_get_contents('php://input', false, null, 0, MAX_BODY + 1);
    if (strlen($body) > MAX_BODY) {
        return 413;
    }
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    if (!verified($id, $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '', $body)) {
        return 401; // final: Postern shows it as a dead letter
    }
    $order = json_decode($body, true);
    if (!is_array($order) || !is_int($order['amount'] ?? null)) {
        return 422; // final too
    }
    return book($orders, $id, $order['amount']) ? 204 : 503; // 204 only with the order on disk; after 503 Postern tries again
}

$orders = getenv('ORDERS') ?: 'orders';
is_dir($orders) || mkdir($orders, 0700, true);
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    http_response_code(receive($orders));
    return;
}
$amounts = array_map(fn ($name) => json_decode(file_get_contents($name), true)['amount'], array_filter(glob("$orders/*"), fn ($name) => strlen(basename($name)) === 64));
printf("%d orders, %d in all\n", count($amounts), array_sum($amounts));
