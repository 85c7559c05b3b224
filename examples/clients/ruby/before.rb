# The application calls the partner. When the partner is away, the postback is lost.
require "json"
require "net/http"

PARTNER = ENV.fetch("PARTNER", "https://partner.example/postback")

response = Net::HTTP.post(
  URI(PARTNER + "?cid=a+b%20c"),
  JSON.generate(order: 42, amount: "9.90"),
  "Content-Type" => "application/json"
)
response.value # raises for anything but a 2xx
