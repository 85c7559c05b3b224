package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// errKnown means that an event was booked before.
var errKnown = errors.New("the event is booked already")

// book keeps the orders. The ID of an event and its effect are one line of one file, written at once: there is no moment
// in which one is there without the other, so that a crash can neither lose an order nor book it twice. In a database
// this is one transaction, with the ID as a unique key. IDs may be forgotten once nobody repeats them: dead letters are
// replayed for spool.dead_letter_retention, 30 days unless configured.
type book struct {
	mu     sync.Mutex // guards what follows; two attempts of one event may arrive at once
	file   *os.File
	size   int64
	amount map[string]int64 // by event ID
	broken error            // the file could not be repaired after a failed write
}

// entry is one line of the file.
type entry struct {
	ID     string `json:"id"`
	Amount int64  `json:"amount"`
}

// openBook reads what was booked before. A last line that a crash cut short was never answered with yes: it goes.
func openBook(name string) (*book, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b := &book{file: file, amount: map[string]int64{}}
	if err := b.load(); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func (b *book) load() error {
	text, err := io.ReadAll(b.file)
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("a line is damaged: %w", err)
		}
		b.amount[e.ID] = e.Amount
	}
	b.size = int64(len(whole))
	return b.file.Truncate(b.size)
}

// add books one event, or returns errKnown. After nil it is on disk.
func (b *book) add(id string, amount int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken != nil {
		return b.broken
	}
	if _, known := b.amount[id]; known {
		return errKnown
	}
	line, err := json.Marshal(entry{id, amount})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	_, err = b.file.WriteAt(line, b.size)
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil { // perhaps half of it is there: take it back, so that the next attempt finds a clean end
		b.broken = b.file.Truncate(b.size)
		return err
	}
	b.size += int64(len(line))
	b.amount[id] = amount
	return nil
}

// total is the effect of all events.
func (b *book) total() (orders int, sum int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, amount := range b.amount {
		sum += amount
	}
	return len(b.amount), sum
}

func (b *book) close() { b.file.Close() }
