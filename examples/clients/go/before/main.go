// The application calls the partner. When the partner is away, the postback is lost.
package main

import (
	"cmp"
	"log"
	"net/http"
	"os"
	"strings"
)

var partner = cmp.Or(os.Getenv("PARTNER"), "https://partner.example/postback")

func main() {
	request, err := http.NewRequest("POST", partner+"?cid=a+b%20c", strings.NewReader(`{"order":42,"amount":"9.90"}`))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		log.Fatalf("the postback failed: %s", response.Status)
	}
}
