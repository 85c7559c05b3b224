package app

import (
	"fmt"

	"postern/configs"
	"postern/proxy/egress"
	"postern/proxy/redact"
)

// Warnings are what is valid in a configuration and will not work: named endpoints whose address is never allowed, so
// that each of their events would become a dead letter at its first attempt.
func Warnings(cfg *configs.Config) []string {
	var all []string
	nets, hosts := egress.ParseAllow(cfg.Targets.Allow)
	reach := egress.Policy{AllowPrivate: cfg.Targets.AllowPrivate, AllowNets: nets, AllowHosts: hosts, OwnOrigin: true}
	for i := range cfg.Endpoints {
		if err := reach.CheckTarget(cfg.Endpoints[i].URL); err != nil {
			all = append(all, fmt.Sprintf("endpoints[%d].url (%s): every attempt will be refused: %v. Write the receiver's own address; one that is meant all the same can be let through by targets.allow",
				i, cfg.Endpoints[i].Name, redact.Error(err)))
		}
	}
	return all
}
