package signing_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"postern/proxy/signing"
)

// A receiver checks the bytes as they came, before it parses them, and drops events that it has seen.
func Example() {
	secret, err := signing.ParseSecret(signing.Standard, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		log.Fatal(err)
	}
	verifier := &signing.Verifier{
		Scheme:  signing.Standard,
		Secrets: [][]byte{secret}, // while it is being changed: the new one and the old one
	}
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			return
		}
		if err := verifier.Verify(r.Header, body); err != nil {
			http.Error(w, "the signature is not valid", http.StatusUnauthorized)
			return
		}
		// Here: has r.Header.Get("Webhook-Id") been seen? If not, take the event.
		w.WriteHeader(http.StatusNoContent)
	}

	body := `{"order":1}`
	signer, err := signing.New(signing.Config{Scheme: signing.Standard, Secrets: [][]byte{secret}})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	for _, field := range signer.Sign("evt_1", time.Now(), []byte(body)) {
		r.Header.Set(field.Name, field.Value)
	}
	w := httptest.NewRecorder()
	receive(w, r)
	fmt.Println(w.Code)
	// Output: 204
}

// The errors tell apart what is wrong; a test sets the clock.
func ExampleVerifier_Verify() {
	verifier := &signing.Verifier{
		Scheme:    signing.Stripe,
		Secrets:   [][]byte{[]byte("new secret"), []byte("old secret")},
		Tolerance: time.Minute,
		Now:       func() time.Time { return time.Unix(1_700_000_100, 0) },
	}
	err := verifier.Verify(http.Header{"Stripe-Signature": {"t=1700000000,v1=00"}}, []byte(`{}`))
	fmt.Println(err)
	if late, ok := errors.AsType[*signing.TimestampError](err); ok && errors.Is(err, signing.ErrTooOld) {
		fmt.Println("sent at", late.At.UTC().Format(time.RFC3339))
	}
	// Output:
	// the timestamp is too old: it is 1m40s off, 1m0s are tolerated
	// sent at 2023-11-14T22:13:20Z
}

// Standard Webhooks, with two secrets while one takes the other's place.
func ExampleSigner_Sign() {
	signer, err := signing.New(signing.Config{
		Scheme:  signing.Standard,
		Secrets: [][]byte{[]byte("new secret"), []byte("old secret")},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, field := range signer.Sign("evt_1", time.Unix(1_700_000_000, 0), []byte(`{"order":1}`)) {
		fmt.Println(field.Name+":", field.Value)
	}
	// Output:
	// Webhook-Id: evt_1
	// Webhook-Timestamp: 1700000000
	// Webhook-Signature: v1,YWR5farGS97oPDHSyhCVTVLt1r0uGWkR9w07lNcdFTM= v1,yemfPNQFyzIv0jbGlfgB9LmfwIlmF7V/fHWBcEiaA1M=
}

// A receiver that was there before the standards, and wants its own header.
func ExampleCheckTemplate() {
	fmt.Println(signing.CheckTemplate("sha256={hex({timestamp}.{body})}"))
	fmt.Println(signing.CheckTemplate("sha256={hex({timestamp})}"))
	// Output:
	// <nil>
	// the template does not sign the body; write {body} between the parentheses
}
