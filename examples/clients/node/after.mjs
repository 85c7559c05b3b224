// The application hands the postback to Postern. A 202 means that it is on disk.
const PARTNER = process.env.PARTNER ?? "https://partner.example/postback";
const POSTERN = process.env.POSTERN ?? "http://localhost:8089/";

const response = await fetch(POSTERN + PARTNER + "?cid=a+b%20c", {
  method: "POST",
  headers: { "Content-Type": "application/json", "Idempotency-Key": "order-42" },
  body: JSON.stringify({ order: 42, amount: "9.90" }),
});
if (!response.ok) throw new Error(`the postback failed: ${response.status}`);
