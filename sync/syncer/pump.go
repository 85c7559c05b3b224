package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"postern/spool"
	"postern/sync/pgstore"
)

// pump carries one batch: read, write, mark. more tells that the outbox had further rows, however many this batch has: big
// bodies end one long before its number of rows does.
func (s *Syncer) pump(ctx context.Context) (more bool, err error) {
	rows, more, err := s.parts.Outbox.Outbox(s.cfg.BatchRows)
	if err != nil {
		return false, fmt.Errorf("read the outbox: %w", err)
	}
	s.meter.waiting(rows, time.Now())
	s.losses.oldest(rows)
	if len(rows) == 0 {
		return false, nil
	}
	poison, err := s.write(ctx, rows)
	if err != nil {
		return false, err
	}
	if err := s.setApart(ctx, rows, poison); err != nil {
		return false, err
	}
	last := rows[len(rows)-1].Index
	if err := within(ctx, func() error { return s.parts.Outbox.OutboxDone(last) }); err != nil {
		return false, fmt.Errorf("mark rows as written: %w", err)
	}
	s.losses.carried(last)
	if !more {
		s.meter.waiting(nil, time.Now())
	}
	return more, nil
}

// refusal is a row that the store refuses, and why.
type refusal struct {
	row   spool.OutboxRow
	cause error
}

// write writes rows. Where the store refuses a batch for one of its rows, the batch is halved until the row is found;
// all the others are written.
func (s *Syncer) write(ctx context.Context, rows []spool.OutboxRow) (poison []refusal, err error) {
	err = s.store.Write(ctx, s.translate(rows))
	switch {
	case err == nil:
		s.refused = 0
		s.meter.wrote(len(rows))
		return nil, nil
	case pgstore.Classify(err) != pgstore.KindData:
		return nil, err
	case len(rows) == 1:
		return []refusal{{rows[0], err}}, nil
	}
	middle := len(rows) / 2
	for _, half := range [][]spool.OutboxRow{rows[:middle], rows[middle:]} {
		found, err := s.write(ctx, half)
		if err != nil {
			return nil, err
		}
		poison = append(poison, found...)
	}
	return poison, nil
}

// maxRefusedInARow rows refused, and none taken in between, are no matter of rows: something refuses them all. Fewer may well
// be, such as all rows of the one event that nothing else came with.
const maxRefusedInARow = 50

// setApart moves refused rows out of the outbox, before the batch is marked. Where nothing is taken any more they stay:
// setting apart is for the exception.
func (s *Syncer) setApart(ctx context.Context, rows []spool.OutboxRow, poison []refusal) error {
	if len(poison) == 0 {
		return nil
	}
	if len(poison) == len(rows) {
		if s.refused += len(rows); s.refused > maxRefusedInARow {
			return fmt.Errorf("every row is refused, which is no fault of the rows; look at the constraints and triggers of the tables: %w", poison[0].cause)
		}
	}
	s.losses.blur()
	for _, p := range poison {
		cause := p.cause.Error()
		if err := within(ctx, func() error { return s.parts.Outbox.OutboxRefuse(p.row.Index, cause) }); err != nil {
			return fmt.Errorf("set a refused row apart: %w", err)
		}
		s.meter.reject()
		s.log.Error("Postgres refuses a row; it is set apart: mend the cause, then run postern sync retry",
			slog.String("event_id", p.row.EventID), slog.Uint64("version", p.row.Version), slog.Any("error", p.cause))
	}
	return nil
}

// within calls something that takes no context and returns when it or the context ends. The spool answers in time
// unless its disk hangs; then the call ends with the process.
func within(ctx context.Context, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// translate puts the spool's rows into the store's terms.
func (s *Syncer) translate(rows []spool.OutboxRow) []pgstore.Row {
	out := make([]pgstore.Row, len(rows))
	endpoints := make(map[string]Endpoint)
	for i, r := range rows {
		e, known := endpoints[r.Endpoint]
		if !known {
			e = s.endpoint(r.Endpoint)
			endpoints[r.Endpoint] = e
		}
		out[i] = pgstore.Row{
			EventID: r.EventID, CreatedAt: r.AcceptedAt, Version: r.Version, EndpointName: r.Endpoint, EndpointURL: e.URL,
			Attempts: r.Attempts, MaxAttempts: e.MaxAttempts, NextAttempt: r.NextAttempt, DeliveredAt: r.DeliveredAt, DeadReason: r.DeadReason,
			DeadAt: r.DeadAt,
		}
		if r.MaxAttempts > 0 {
			out[i].MaxAttempts = r.MaxAttempts
		}
		if r.State != 0 {
			out[i].Status = r.State.String()
		}
		out[i].Attempt = translateAttempt(r.Attempt)
		if s.parts.Payload != nil {
			out[i].Payload = s.parts.Payload(r)
		}
	}
	return out
}

func translateAttempt(a *spool.Attempt) *pgstore.Attempt {
	if a == nil {
		return nil
	}
	return &pgstore.Attempt{
		Number: a.Number, EndedAt: a.StartedAt.Add(a.Duration), Duration: a.Duration, StatusCode: a.StatusCode, Error: a.Error,
	}
}

// endpoint finds what the fleet calls an endpoint. The name of an ad hoc one is its origin; one that left the
// configuration has nothing but its name.
func (s *Syncer) endpoint(name string) Endpoint {
	e, ok := s.parts.Endpoint(name)
	if !ok || e.URL == "" || strings.Contains(name, "://") {
		e.URL = name
	}
	return e
}
