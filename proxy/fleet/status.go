package fleet

import (
	"context"
	"encoding/json"
	"time"

	"postern/sync/pgstore"
)

// Status is the one row of pipeline_status with the instances that it sums up.
type Status struct {
	pgstore.Status
	Instances []Instance `json:"instances"`
}

// Instance is one Postern of the fleet.
type Instance struct {
	pgstore.Instance
	Labels json.RawMessage `json:"labels"` // an object
}

// Status reads the state of the fleet, or of one endpoint, and the instances that were heard of within since.
func (f *Fleet) Status(ctx context.Context, endpoint string, since time.Duration) (st Status, err error) {
	_, urls, err := f.choose(ctx, endpoint)
	if err != nil {
		return st, err
	}
	if urls == nil {
		st.Status, err = f.store.FleetStatus(ctx)
	} else {
		st.Status, err = f.store.FleetStatusOf(ctx, urls)
	}
	if err != nil {
		return st, err
	}
	all, err := f.store.FleetInstances(ctx)
	st.Instances = make([]Instance, 0, len(all))
	for _, i := range all {
		if i.Live || st.Now.Sub(i.HeartbeatAt) <= since {
			st.Instances = append(st.Instances, Instance{i, json.RawMessage(i.Labels)})
		}
	}
	return st, err
}
