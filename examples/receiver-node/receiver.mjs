// The other end of a webhook: takes orders that Postern delivers, trusts none that is not signed, books each one once.
//
//   npm ci
//   SECRETS=secrets.txt ORDERS=orders node receiver.mjs 127.0.0.1:9000
//
// secrets.txt has one secret per line, the same as in Postern's configuration (sign.secrets).
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const MAX_BODY = 1 << 20;
const orders = process.env.ORDERS ?? "orders";
mkdirSync(orders, { recursive: true });

// With two of them, requests signed by either are accepted, so that a secret can be changed without a gap.
const webhooks = readFileSync(process.env.SECRETS ?? "secrets.txt", "utf8").split(/\s+/).filter(Boolean).map((secret) => new Webhook(secret));
if (webhooks.length === 0) throw new Error("the file of secrets holds none");

// verified gives the order, or undefined where no secret signed these bytes, under this ID, just now.
function verified(body, headers) {
  for (const webhook of webhooks) {
    try {
      return { order: webhook.verify(body, headers) };
    } catch (error) {
      if (error instanceof SyntaxError) return { order: undefined }; // signed, and no JSON
      if (!(error instanceof WebhookVerificationError)) throw error;
    }
  }
}

// book keeps one event: its ID and its effect are one file that appears whole, under a name that only one can take.
// In a database this is one transaction, with the ID as a unique key.
function book(id, amount) {
  const name = join(orders, createHash("sha256").update(id).digest("hex"));
  const draft = `${name}.${process.pid}.draft`;
  const file = openSync(draft, "w", 0o600);
  try {
    writeSync(file, JSON.stringify({ id, amount }));
    fsyncSync(file);
    linkSync(draft, name);
  } catch (error) {
    if (error.code !== "EEXIST") throw error; // booked before: the answer got lost. Say yes, or it comes again.
  } finally {
    closeSync(file);
    rmSync(draft, { force: true });
  }
  const directory = openSync(orders, "r");
  fsyncSync(directory);
  closeSync(directory);
}

function receive(body, headers) {
  const signed = verified(body, headers);
  if (!signed) return 401; // final: Postern shows it as a dead letter
  if (!Number.isSafeInteger(signed.order?.amount)) return 422; // final too
  try {
    book(headers["webhook-id"], signed.order.amount);
  } catch {
    return 503; // Postern tries again
  }
  return 204; // only now, with the order on disk
}

function total() {
  const amounts = readdirSync(orders).filter((name) => !name.endsWith(".draft")).map((name) => JSON.parse(readFileSync(join(orders, name), "utf8")).amount);
  return `${amounts.length} orders, ${amounts.reduce((sum, amount) => sum + amount, 0)} in all\n`;
}

const server = createServer(async (request, response) => {
  if (request.method === "GET") return response.end(total());
  // First the bytes as they came: a signature is about these, not about what a JSON parser makes of them.
  const chunks = [];
  let size = 0;
  try {
    for await (const chunk of request) {
      size += chunk.length;
      if (size <= MAX_BODY) chunks.push(chunk); // the rest is read and dropped: who is still writing would see a reset
    }
  } catch {
    return; // the sender broke off
  }
  if (size > MAX_BODY) return response.writeHead(413, { Connection: "close" }).end();
  response.writeHead(receive(Buffer.concat(chunks), request.headers)).end();
});
const [, host, port] = (process.argv[2] ?? "127.0.0.1:9000").match(/^(.*):(\d+)$/);
server.listen(Number(port), host);
