package pgstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// endpointRef is an endpoint as rows name it. Two names can lead to one URL, which then has one number.
type endpointRef struct{ name, url string }

// named tells a configured name from the URL that stands in for one.
func (r endpointRef) named() bool { return r.name != "" && r.name != r.url }

// maxKnownEndpoints bounds the memory of numbers; beyond it they are asked for again.
const maxKnownEndpoints = 20_000

// endpointIDs fills in the number of each endpoint, making those that are missing. It is a transaction of its own,
// before the batch's: an insert that waits for another instance's must not hold the batch's rows.
func (s *Store) endpointIDs(ctx context.Context, refs map[endpointRef]int32) error {
	missing := s.recall(refs)
	if len(missing) == 0 {
		return nil
	}
	// The same order for every instance: no deadlocks.
	slices.SortFunc(missing, func(a, b endpointRef) int { return cmp.Or(cmp.Compare(a.url, b.url), cmp.Compare(a.name, b.name)) })
	var ids map[string]int32
	err := s.tx(ctx, s.usual("number the endpoints"), func(ctx context.Context, tx pgx.Tx) (err error) {
		if ids, err = numberEndpoints(ctx, tx, missing); err != nil {
			return err
		}
		return nameEndpoints(ctx, tx, missing, ids)
	})
	if err != nil {
		return err
	}
	found := make(map[endpointRef]int32, len(missing))
	for _, ref := range missing {
		found[ref] = ids[ref.url]
	}
	maps.Copy(refs, found)
	s.remember(found)
	return nil
}

// recall fills in what is remembered and returns the rest.
func (s *Store) recall(refs map[endpointRef]int32) (missing []endpointRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref := range refs {
		if id, ok := s.ids[ref]; ok {
			refs[ref] = id
		} else {
			missing = append(missing, ref)
		}
	}
	return missing
}

func (s *Store) remember(found map[endpointRef]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids)+len(found) > maxKnownEndpoints {
		clear(s.ids)
	}
	maps.Copy(s.ids, found)
}

// errRenumbered means that the tables were made anew beside us: what is remembered is of the old ones.
var errRenumbered = errors.New("the endpoints have other numbers than before: the schema was made anew; the next try will do")

// confirm makes sure, within the transaction that uses them, that the numbers are still those of the URLs.
func confirm(ctx context.Context, tx pgx.Tx, refs map[endpointRef]int32) error {
	ids, urls := make([]int32, 0, len(refs)), make([]string, 0, len(refs))
	for ref, id := range refs {
		ids, urls = append(ids, id), append(urls, ref.url)
	}
	var n int
	const q = `SELECT count(*) FROM unnest($1::integer[], $2::text[]) k(id, url) JOIN endpoints e ON e.endpoint_id = k.id AND e.endpoint_url = k.url`
	if err := tx.QueryRow(ctx, q, ids, urls).Scan(&n); err != nil {
		return err
	}
	if n != len(refs) {
		return errRenumbered
	}
	return nil
}

// forgetEndpoints drops what is remembered, after an error: the tables may have been made anew.
func (s *Store) forgetEndpoints() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.ids)
}

func numberEndpoints(ctx context.Context, tx pgx.Tx, refs []endpointRef) (map[string]int32, error) {
	urls := make([]string, len(refs))
	for i, ref := range refs {
		urls[i] = ref.url
	}
	urls = slices.Compact(urls)
	// What is there is looked up first: an insert that conflicts uses up a number.
	const missing = `INSERT INTO endpoints (endpoint_url)
		SELECT u FROM unnest($1::text[]) u WHERE NOT EXISTS (SELECT FROM endpoints e WHERE e.endpoint_url = u) ORDER BY u
		ON CONFLICT DO NOTHING`
	if _, err := tx.Exec(ctx, missing, urls); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `SELECT endpoint_id, endpoint_url FROM endpoints WHERE endpoint_url = ANY ($1::text[])`, urls)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int32, len(urls))
	var id int32
	var url string
	_, err = pgx.ForEachRow(rows, []any{&id, &url}, func() error {
		ids[url] = id
		return nil
	})
	return ids, err
}

// nameEndpoints notes which configured names the URLs go by.
func nameEndpoints(ctx context.Context, tx pgx.Tx, refs []endpointRef, ids map[string]int32) error {
	var names []string
	var of []int32
	for _, ref := range refs {
		if ref.named() {
			names, of = append(names, ref.name), append(of, ids[ref.url])
		}
	}
	if len(names) == 0 {
		return nil
	}
	const put = `INSERT INTO endpoint_names (endpoint_name, endpoint_id) SELECT * FROM unnest($1::text[], $2::integer[]) u(n, i)
		ORDER BY n, i ON CONFLICT DO NOTHING`
	_, err := tx.Exec(ctx, put, names, of)
	return err
}
