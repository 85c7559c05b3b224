package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"postern/proxy/client"
)

// glanceJSON is one glance of top for machines: the API's own answers, lists without their wrapping.
type glanceJSON struct {
	At        time.Time       `json:"at"`
	Status    json.RawMessage `json:"status"`
	Activity  json.RawMessage `json:"activity"`
	Endpoints json.RawMessage `json:"endpoints"`
	Latency   json.RawMessage `json:"latency"`
}

// printGlance prints one glance as one JSON object.
func (s *session) printGlance(ctx context.Context, admin *client.Admin) error {
	status, err := admin.Status(ctx)
	if err != nil {
		return err
	}
	activity, err := admin.Activity(ctx)
	if err != nil {
		return err
	}
	endpoints, err := admin.Endpoints(ctx)
	if err != nil {
		return err
	}
	latency, err := admin.Latency(ctx)
	if err != nil {
		return err
	}
	g := glanceJSON{At: s.now().UTC(), Status: status.Raw, Activity: activity.Raw}
	if g.Endpoints, err = unwrapped(endpoints.Raw); err != nil {
		return err
	}
	if g.Latency, err = unwrapped(latency.Raw); err != nil {
		return err
	}
	return s.encode(g)
}

// unwrapped takes the list of endpoints out of an answer.
func unwrapped(raw json.RawMessage) (json.RawMessage, error) {
	var answer struct{ Endpoints json.RawMessage }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	return answer.Endpoints, nil
}
