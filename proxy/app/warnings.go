package app

import (
	"fmt"
	"slices"

	"postern/configs"
	"postern/proxy/egress"
	"postern/proxy/redact"
	"postern/proxy/target"
	"postern/sync/pgstore"
)

// Warnings are what is valid in a configuration and will not do what it seems to: named endpoints whose address is never
// allowed, so that each of their events would become a dead letter at its first attempt; TLS settings where there is no TLS;
// a sync.dsn that no Postgres can be reached by; sockets that everybody on the machine may write to; a file that says nothing at all.
func Warnings(cfg *configs.Config) []string {
	var all []string
	if cfg.Blank && cfg.File != "" {
		all = append(all, fmt.Sprintf("%s has no key at all, and everything is as the defaults have it: %s", cfg.File, configs.BlankAdvice))
	}
	nets, hosts := egress.ParseAllow(cfg.Targets.Allow)
	reach := egress.Policy{AllowPrivate: cfg.Targets.AllowPrivate, AllowNets: nets, AllowHosts: hosts, OwnOrigin: true}
	for i := range cfg.Endpoints {
		if err := reach.CheckTarget(cfg.Endpoints[i].URL); err != nil {
			all = append(all, fmt.Sprintf("endpoints[%d].url (%s): every attempt will be refused: %v. Write the receiver's own address; one that is meant all the same can be let through by targets.allow",
				i, cfg.Endpoints[i].Name, redact.Error(err)))
		}
		if key := unusedTLS(&cfg.Endpoints[i]); key != "" {
			all = append(all, fmt.Sprintf("endpoints[%d].tls.%s (%s): the url begins with http://, so that nothing is encrypted and this is never used; write https://, or remove it",
				i, key, cfg.Endpoints[i].Name))
		}
	}
	if cfg.Sync.DSN != "" {
		if err := pgstore.CheckDSN(cfg.Sync.DSN); err != nil {
			all = append(all, fmt.Sprintf("%v; until then nothing reaches Postgres, and deliveries are not affected", redact.Error(err)))
		}
	}
	return append(all, openSockets(cfg)...)
}

// unusedTLS is the first setting about TLS of an endpoint that never uses any.
func unusedTLS(e *configs.Endpoint) string {
	encrypted := func(t target.Target) bool { return t.Scheme != "http" }
	if encrypted(e.URL) || slices.ContainsFunc(e.Match, encrypted) {
		return ""
	}
	switch t := &e.Policy.TLS; {
	case t.ServerName != "":
		return "server_name"
	case t.CAFile != "":
		return "ca_file"
	case t.CertFile != "":
		return "cert_file"
	}
	return ""
}

func openSockets(cfg *configs.Config) (all []string) {
	for key, l := range map[string]*configs.Listener{"socket_mode": &cfg.Listen, "admin.socket_mode": &cfg.Admin} {
		if network, _ := l.Split(); network == "unix" && l.SocketMode&0o002 != 0 && l.TokenFile == "" {
			all = append(all, fmt.Sprintf("%s: %04o lets everybody on this machine use %s; write \"0660\" for the group alone, or name a token_file beside it", key, l.SocketMode, l.Address))
		}
	}
	slices.Sort(all)
	return all
}
