package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
)

func (l *lab) aboutAccept() string {
	return fmt.Sprintf("%d connections, closed loop, for %v: POST of %d bytes of JSON, and GET with a target of %d bytes. Each 202 of Postern comes "+
		"after commit and sync; the endpoint is paused, so that accepting is all that it does. Reference: net/http with a handler that only "+
		"answers 202. CPU is user and system time of the server's process. Allocations are its own count.",
		l.sizes.conns, l.sizes.load, l.sizes.body, getTarget)
}

// What one accept, and one accept with its delivery, allocated before anybody looked at it: the aim is half of that.
const (
	acceptObjectsAtFirst, acceptBytesAtFirst   = 75.0, 8650.0
	deliverObjectsAtFirst, deliverBytesAtFirst = 218.0, 18_950.0
)

// accept compares durable acknowledgements with a handler that does nothing else.
func (l *lab) accept(ctx context.Context) error {
	post, get := l.accepting(), l.accepting()
	get.Get = true
	const answer, answerGet, kept, keptGet = "answer", "answer GET", "postern", "postern GET"
	t, err := l.turns(ctx,
		driven(answer, l.withAnswer, post), driven(kept, l.withPaused(setup{}), post),
		driven(answerGet, l.withAnswer, get), driven(keptGet, l.withPaused(setup{}), get))
	if err != nil {
		return err
	}
	l.add(
		row{Name: "durable accepts", Unit: "/s", Value: over(t.of(kept, "rate"))}.beside("202 only", t.of(answer, "rate")).atLeast(0.75),
		row{Name: "durable accepts, GET", Unit: "/s", Value: over(t.of(keptGet, "rate"))}.beside("202 only", t.of(answerGet, "rate")),
		row{Name: "CPU per accept", Unit: "µs", Value: over(t.of(kept, "cpu"))}.beside("202 only", t.of(answer, "cpu")),
		row{Name: "allocations per accept", Value: over(t.of(kept, "objects"))}.beside("at first", l.constant(acceptObjectsAtFirst)).atMost(0.5),
		row{Name: "allocated per accept", Unit: "B", Value: over(t.of(kept, "bytes"))}.beside("at first", l.constant(acceptBytesAtFirst)).atMost(0.5),
	)
	return nil
}

// constant is a reference that does not change from round to round.
func (l *lab) constant(x float64) []float64 {
	all := make([]float64, l.rounds)
	for i := range all {
		all[i] = x
	}
	return all
}

func (l *lab) aboutEncryption() string {
	return "durable accepts as under ACCEPT, with spool.encryption_key_files. Reference: the same without."
}

// encryption compares accepting with a key with accepting without.
func (l *lab) encryption(ctx context.Context) error {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	file := filepath.Join(l.dir, "key")
	if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key)), 0o600); err != nil {
		return err
	}
	const plain, sealed = "plain", "encrypted"
	t, err := l.turns(ctx,
		driven(plain, l.withPaused(setup{}), l.accepting()),
		driven(sealed, l.withPaused(setup{spool: fmt.Sprintf(", encryption_key_files: [%q]", file)}), l.accepting()))
	if err != nil {
		return err
	}
	l.add(
		row{Name: "durable accepts, encrypted", Unit: "/s", Value: over(t.of(sealed, "rate"))}.beside("without", t.of(plain, "rate")).atLeast(0.9),
		row{Name: "CPU per accept, encrypted", Unit: "µs", Value: over(t.of(sealed, "cpu"))}.beside("without", t.of(plain, "cpu")),
	)
	return nil
}
