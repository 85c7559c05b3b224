package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"postern/spool/keyfile"
)

// check holds the settings against each other and against the files they name.
func (c *Config) check(r *reader) {
	c.checkListeners(r)
	c.checkSpool(r)
	c.Defaults.check(r, "defaults", "")
	names, prefixes := make(map[string]string), make(map[string]string)
	for i := range c.Endpoints {
		at := indexPath("endpoints", i)
		c.Endpoints[i].checkUnique(r, at, names, prefixes)
		own := c.Listen.reachedBy(c.Endpoints[i].URL.Hostname(), c.Endpoints[i].URL.Port())
		r.require(!own, []string{joinPath(at, "url")}, "this is where Postern itself listens: its events would go round in a circle; write the receiver's address")
		c.Endpoints[i].Policy.check(r, at, "defaults")
		c.Endpoints[i].Policy.checkTLS(r, joinPath(at, "tls"))
	}
	own := c.OutboundProxy != nil && c.Listen.reachedBy(c.OutboundProxy.Hostname(), proxyPort(c.OutboundProxy))
	r.require(!own, []string{"outbound_proxy"}, "this is where Postern itself listens: its events would go round in a circle; write the proxy's address, or remove the key to send directly")
}

// proxyPort is the port that a proxy without one in its URL is asked at.
func proxyPort(proxy *url.URL) string {
	return cmp.Or(proxy.Port(), map[string]string{"https": "443"}[proxy.Scheme], "80")
}

func (c *Config) checkListeners(r *reader) {
	c.Listen.readToken(r, "listen", "token_file")
	c.Admin.readToken(r, "admin.listen", "admin.token_file")
	c.Listen.checkSocketMode(r, "listen", "socket_mode")
	c.Admin.checkSocketMode(r, "admin.listen", "admin.socket_mode")
	listeners := []struct {
		key string
		Listener
	}{{"listen", c.Listen}, {"admin.listen", c.Admin}, {"probes.listen", c.Probes}}
	for i, a := range listeners {
		for _, b := range listeners[:i] {
			r.require(!a.collides(b.Listener), []string{a.key, b.key},
				"%s and %s are the same address; choose another port for one of them", a.key, b.key)
		}
	}
}

// checkSocketMode refuses a mode that would protect nothing.
func (l *Listener) checkSocketMode(r *reader, listenKey, modeKey string) {
	network, _ := l.Split()
	r.require(network == "unix" || !r.has(modeKey) || l.SocketMode == DefaultSocketMode, []string{modeKey, listenKey},
		"%s is not a Unix socket and has no mode; remove %s, or write %s: unix:/run/postern.sock", quote(l.Address), modeKey, listenKey)
}

// readToken demands a token where strangers can reach the listener, and reads it.
func (l *Listener) readToken(r *reader, listenKey, tokenKey string) {
	if l.TokenFile == "" {
		r.require(l.Loopback(), []string{listenKey, tokenKey},
			"%s is reachable from other machines and needs a token; write %s: PATH of a file that holds one, or listen on 127.0.0.1",
			quote(l.Address), tokenKey)
		return
	}
	name := l.TokenFile
	l.TokenFile = inDir(r.base, name)
	text, err := r.readSecret(name)
	for line := range strings.Lines(text) {
		token := strings.TrimRight(line, "\r\n")
		if err == nil && (token == "" || strings.ContainsAny(token, " \t") || noControl(token) != nil) {
			err = errors.New("a token is one word on a line of its own, without blanks and control characters; correct the file")
		}
		if l.Token == nil {
			l.Token = []byte(token)
		}
	}
	r.require(err == nil, []string{tokenKey}, "%v", unread(err))
}

func (c *Config) checkSpool(r *reader) {
	s := &c.Spool
	r.require(s.MaxEventBytes <= s.largestEvent(), []string{"spool.max_event_bytes", "spool.max_bytes", "spool.max_endpoint_share"},
		"%s is too large for this spool (max_bytes %s): an endpoint's share must hold two such events; write %s or less, or raise max_bytes",
		formatSize(s.MaxEventBytes), formatSize(s.MaxBytes), formatSize(s.largestEvent()))
	r.require(s.HistoryMaxBytes <= s.largestHistory(), []string{"spool.history_max_bytes", "spool.max_bytes"},
		"%s is more than an eighth of max_bytes (%s); events need the rest: write %s or less",
		formatSize(s.HistoryMaxBytes), formatSize(s.MaxBytes), formatSize(s.largestHistory()))
	r.require(c.Sync.MaxBacklogBytes <= s.HistoryMaxBytes, []string{"sync.max_backlog_bytes", "spool.history_max_bytes"},
		"%s is more than spool.history_max_bytes (%s), of which it is a part; write %[2]s or less",
		formatSize(c.Sync.MaxBacklogBytes), formatSize(s.HistoryMaxBytes))
	for i, name := range s.EncryptionKeyFiles {
		err := s.readKey(r, i, name)
		r.require(err == nil, []string{indexPath("spool.encryption_key_files", i)}, "%v", err)
	}
}

// maxKeyBytes is more than any form of a key takes.
const maxKeyBytes = kib

// readKey takes one key from its file.
func (s *Spool) readKey(r *reader, i int, name string) error {
	s.EncryptionKeyFiles[i] = inDir(r.base, name)
	data, err := readLimited(s.EncryptionKeyFiles[i], maxKeyBytes)
	if err != nil {
		return unread(err)
	}
	key, err := keyfile.Parse(data)
	if err != nil {
		return fmt.Errorf("the file %s: %w", quote(name), err)
	}
	for at, other := range s.EncryptionKeys {
		if bytes.Equal(key, other) {
			return fmt.Errorf("the file %s has the same key as entry %d; remove one", quote(name), at+1)
		}
	}
	s.EncryptionKeys = append(s.EncryptionKeys, key)
	return nil
}

// checkUnique refuses a second endpoint of the same name, and a prefix that two endpoints claim.
func (e *Endpoint) checkUnique(r *reader, at string, names, prefixes map[string]string) {
	key := joinPath(at, "name")
	if first, taken := names[e.Name]; taken && e.Name != "" {
		r.require(false, []string{key}, "the name %s is taken by %s; choose another", quote(e.Name), first)
	} else {
		names[e.Name] = at
	}
	for i, m := range e.Match {
		id := m.Origin() + matchPath(m)
		if first, taken := prefixes[id]; taken {
			r.require(false, []string{indexPath(joinPath(at, "match"), i)}, "the same prefix is in %s; a target could use either policy, remove one", first)
			continue
		}
		prefixes[id] = fmt.Sprintf("%s.match", at)
	}
}

// setProxy parses outbound_proxy. Its errors do not repeat it.
func (c *Config) setProxy(text string) error {
	c.OutboundProxy = nil
	if text == "" {
		return nil
	}
	t, err := parseURL(text)
	if err != nil {
		return errors.New("not the URL of a proxy; write http://HOST:PORT or https://HOST:PORT")
	}
	if t.PathQuery != "/" {
		return errors.New("a proxy's URL has no path or query; write http://HOST:PORT or https://HOST:PORT")
	}
	c.OutboundProxy = &url.URL{Scheme: t.Scheme, Host: t.Host}
	if t.HasUser {
		c.OutboundProxy.User = url.UserPassword(t.User, t.Password)
	}
	return nil
}
