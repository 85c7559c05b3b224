// Receiver-go is the other end of a webhook: it takes orders that Postern delivers, trusts none that is not signed, and
// books each one once, however often it arrives.
//
//	go run ./examples/receiver-go -secrets secrets.txt -journal orders.jsonl
//
// with one secret per line in secrets.txt, the same as in Postern's configuration:
//
//	endpoints:
//	  - name: orders
//	    url: http://127.0.0.1:9000/hook
//	    sign: { scheme: standard, secrets: ["file:secrets.txt"] }
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"postern/proxy/signing"
)

// maxBody bounds what a stranger can make us read before the signature is checked.
const maxBody = 1 << 20

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "where to listen")
	secrets := flag.String("secrets", "secrets.txt", "file with one secret per line; two while one takes the other's place")
	journal := flag.String("journal", "orders.jsonl", "file with the orders that were booked")
	flag.Parse()
	if err := run(*listen, *secrets, *journal); err != nil {
		log.Fatal(err)
	}
}

func run(listen, secretFile, journalFile string) error {
	secrets, err := readSecrets(secretFile)
	if err != nil {
		return err
	}
	book, err := openBook(journalFile)
	if err != nil {
		return err
	}
	defer book.close()
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Printf("listening on http://%s", ln.Addr())
	server := &http.Server{Handler: newHandler(secrets, book), ReadTimeout: 10 * time.Second}
	return server.Serve(ln)
}

// readSecrets reads one secret per line. With two of them, requests signed by either are accepted: put the new one in
// here first, then at the sender, and take the old one out when the sender has dropped it.
func readSecrets(name string) ([][]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var secrets [][]byte
	for _, line := range strings.Fields(string(text)) {
		secret, err := signing.ParseSecret(signing.Standard, line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		secrets = append(secrets, secret)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("%s holds no secret", name)
	}
	return secrets, nil
}

func newHandler(secrets [][]byte, book *book) http.Handler {
	verifier := &signing.Verifier{Scheme: signing.Standard, Secrets: secrets}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) { receive(w, r, verifier, book) })
	mux.HandleFunc("GET /total", func(w http.ResponseWriter, _ *http.Request) {
		orders, total := book.total()
		fmt.Fprintf(w, "%d orders, %d in all\n", orders, total)
	})
	return mux
}

// receive is one delivery. What it answers decides what the sender does next.
func receive(w http.ResponseWriter, r *http.Request, verifier *signing.Verifier, book *book) {
	// First the bytes as they came: a signature is about these, not about what a JSON parser makes of them.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is too long, or broke off", http.StatusRequestEntityTooLarge)
		return
	}
	// Who sent it, whole, and just now? 401 is final: Postern does not try again, and shows it as a dead letter.
	if err := verifier.Verify(r.Header, body); err != nil {
		log.Printf("refused: %v", err) // says which check failed, and nothing of the request
		http.Error(w, "the signature is not valid", http.StatusUnauthorized)
		return
	}
	var order struct {
		Amount *int64 `json:"amount"`
	}
	if err := json.Unmarshal(body, &order); err != nil || order.Amount == nil {
		http.Error(w, "this is no order", http.StatusUnprocessableEntity) // final too
		return
	}
	// The event's ID is the same at every attempt, and it is signed, unlike a header that is not.
	switch err := book.add(r.Header.Get("Webhook-Id"), *order.Amount); {
	case errors.Is(err, errKnown):
		w.WriteHeader(http.StatusOK) // booked before; the answer got lost. Say yes, or it comes again.
	case err != nil:
		log.Printf("cannot book: %v", err)
		http.Error(w, "try again later", http.StatusServiceUnavailable) // Postern does
	default:
		w.WriteHeader(http.StatusNoContent) // only now, with the order on disk
	}
}
