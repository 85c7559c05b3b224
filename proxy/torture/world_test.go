package torture

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"postern/proxy/stage"
	"postern/sync/pgtest"
)

// The limits of a run. A round's events must not outnumber what the limited partner may be sent while it settles.
const (
	maxEventBytes = 32 << 10
	limitSends    = 30
	limitWindow   = time.Second
)

// partnerNames are the partners of each world; adHoc is addressed by its URL, the others by name.
var partnerNames = []string{"plain", "limited", "other", "third", "secure", adHoc}

const adHoc = "ad-hoc"

// world is one Postern with everything around it.
type world struct {
	dir        string
	process    *process
	partners   map[string]*partner
	book       *ledger
	lateness   *lateness
	disk       *stage.Disk    // where the spool has a small one of its own
	server     *pgtest.Server // and where it has a Postgres
	db         *pgtest.DB
	serverDisk *stage.Disk     // that the Postgres has for itself
	ca         string          // file
	cert       tls.Certificate // in force
	expired    tls.Certificate
	canary     *partner    // must see nothing
	more       string      // lines of the spool's section
	judged     int         // offers up to this number have been judged
	bulky      atomic.Bool // every event has the greatest size
	limitsOf   time.Time   // arrivals before this are not held against the limits
}

// newWorld makes the partners and the configuration. more are further settings of the spool.
func newWorld(dir, data, more string, server *pgtest.Server, db *pgtest.DB) (*world, error) {
	w := &world{dir: dir, partners: map[string]*partner{}, book: newLedger(), more: more, server: server, db: db, lateness: watchLateness()}
	var err error
	if w.process, err = newProcess(dir, data); err != nil {
		return nil, err
	}
	if err := w.certificates(); err != nil {
		return nil, err
	}
	if w.canary, err = w.newPartner("canary"); err != nil {
		return nil, err
	}
	for _, name := range partnerNames {
		if w.partners[name], err = w.newPartner(name); err != nil {
			return nil, err
		}
	}
	return w, w.configure("")
}

func (w *world) newPartner(name string) (*partner, error) {
	addr, err := stage.FreeAddr()
	if err != nil {
		return nil, err
	}
	p := &partner{name: name, addr: addr, book: w.book, mode: fine, moved: make(chan struct{}), conns: map[net.Conn]bool{}}
	if w.canary != nil {
		p.canary = "http://" + w.canary.addr + "/"
	}
	if name == "secure" {
		p.tls = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if m, _ := p.now(); m == expires {
				return &w.expired, nil
			}
			return &w.cert, nil
		}}
	}
	return p, p.open()
}

// configure writes the configuration file; extra are further lines.
func (w *world) configure(extra string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nadmin: { listen: %s }\nshutdown_grace: %v\nconcurrency: 128\n", w.process.ingest, w.process.admin, grace)
	fmt.Fprintf(&b, "spool: { max_event_bytes: %d, max_endpoint_share: 0.9%s }\n", maxEventBytes, w.more)
	b.WriteString("targets: { allow_private: true }\ndefaults:\n  timeout: 700ms\n  concurrency: 16\n" +
		"  retry: { max_attempts: 30, base_delay: 40ms, max_delay: 200ms, max_retry_after: 2s }\n" +
		"  breaker: { failure_threshold: 6, slow_failure_threshold: 6, cooldown: 200ms, max_cooldown: 400ms }\nendpoints:\n")
	for _, name := range partnerNames {
		switch name {
		case adHoc:
		case "limited":
			fmt.Fprintf(&b, "  - { name: limited, url: \"http://%s/in\", limits: [\"%d/%v\"] }\n", w.partners[name].addr, limitSends, limitWindow)
		case "secure":
			fmt.Fprintf(&b, "  - { name: secure, url: \"https://%s/in\", tls: { ca_file: %q } }\n", w.partners[name].addr, w.ca)
		default:
			fmt.Fprintf(&b, "  - { name: %s, url: \"http://%s/in\" }\n", name, w.partners[name].addr)
		}
	}
	if w.db != nil {
		fmt.Fprintf(&b, "sync: { dsn: %q, schema: %s, interval: 200ms }\n", w.db.DSN, w.db.Schema)
	}
	b.WriteString(extra)
	return os.WriteFile(w.process.config(), []byte(b.String()), 0o600)
}

// close ends everything that the world started.
func (w *world) close() error {
	w.process.kill()
	for _, p := range w.partners {
		p.close()
	}
	w.canary.close()
	w.lateness.stop()
	var err error
	if w.disk != nil {
		err = w.disk.Close()
	}
	return errors.Join(err, w.process.log.Close(), w.process.said.Close())
}

// certificates makes an authority and two certificates of it for 127.0.0.1, one of which has expired.
func (w *world) certificates() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "torture"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return err
	}
	issue := func(until time.Time) (tls.Certificate, error) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(until.UnixNano()), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: now.AddDate(-1, 0, 0), NotAfter: until,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}
	w.ca = filepath.Join(w.dir, "ca.pem")
	err = os.WriteFile(w.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	var err2, err3 error
	w.cert, err2 = issue(now.AddDate(0, 6, 0))
	w.expired, err3 = issue(now.AddDate(0, -6, 0))
	return errors.Join(err, err2, err3)
}
