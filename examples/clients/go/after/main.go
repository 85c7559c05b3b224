// The application hands the postback to Postern. A 202 means that it is on disk.
package main

import (
	"cmp"
	"log"
	"net/http"
	"os"
	"strings"
)

var partner = cmp.Or(os.Getenv("PARTNER"), "https://partner.example/postback")
var postern = cmp.Or(os.Getenv("POSTERN"), "http://localhost:8089/")

func main() {
	request, err := http.NewRequest("POST", postern+partner+"?cid=a+b%20c", strings.NewReader(`{"order":42,"amount":"9.90"}`))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", "order-42")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		log.Fatalf("the postback failed: %s", response.Status)
	}
}
