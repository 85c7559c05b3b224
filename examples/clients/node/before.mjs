// The application calls the partner. When the partner is away, the postback is lost.
const PARTNER = process.env.PARTNER ?? "https://partner.example/postback";

const response = await fetch(PARTNER + "?cid=a+b%20c", {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ order: 42, amount: "9.90" }),
});
if (!response.ok) throw new Error(`the postback failed: ${response.status}`);
