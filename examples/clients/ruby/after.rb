# The application hands the postback to Postern. A 202 means that it is on disk.
require "json"
require "net/http"

PARTNER = ENV.fetch("PARTNER", "https://partner.example/postback")
POSTERN = ENV.fetch("POSTERN", "http://localhost:8089/")

response = Net::HTTP.post(
  URI(POSTERN + PARTNER + "?cid=a+b%20c"),
  JSON.generate(order: 42, amount: "9.90"),
  "Content-Type" => "application/json", "Idempotency-Key" => "order-42"
)
response.value # raises for anything but a 2xx
