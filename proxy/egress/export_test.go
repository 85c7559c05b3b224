package egress

import "time"

// LookAlways has the TLS files looked at for every request.
func (o Options) LookAlways() Options {
	o.lookEvery = time.Nanosecond
	return o
}
