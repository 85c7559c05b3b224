package redact

import (
	"crypto/x509"
	"encoding/json"
	"net"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Error shows an error. Of the errors of net, net/url, net/http, crypto/x509, encoding/json, strconv and time, which
// repeat what they were given, only what kind they are of is left, however deep they lie. Nil is an empty text.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(clean(err))
}

// clean rewrites an error's text: what it wraps is replaced in it by its own clean form.
func clean(err error) string {
	if text, known := kind(err); known {
		return text
	}
	text := err.Error()
	for _, inner := range wrapped(err) {
		if raw := inner.Error(); raw != "" {
			text = strings.ReplaceAll(text, raw, clean(inner))
		}
	}
	return text
}

func wrapped(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return []error{inner}
		}
	}
	return nil
}

// kind is the text of an error whose own repeats what it was given; known tells whether err is one.
func kind(err error) (text string, known bool) {
	switch e := err.(type) {
	case *url.Error:
		return urlError(e), true
	case *net.DNSError:
		return dnsError(e), true
	case *net.AddrError:
		return e.Err, true
	case *net.ParseError:
		return "not a valid " + e.Type, true
	case *json.SyntaxError:
		return "not valid JSON at byte " + strconv.FormatInt(e.Offset, 10), true
	case *strconv.NumError:
		return "not a number that can be read: " + e.Err.Error(), true // one of two fixed texts, or of a base or bit size
	case *time.ParseError:
		return "not a time in the expected form", true
	}
	if text, known = certificateError(err); known {
		return text, true
	}
	return foreign(err)
}

func urlError(e *url.Error) string {
	if e.Op == "parse" {
		return "the address cannot be read" // what lies inside repeats pieces of it
	}
	origin := "the address"
	if u, err := url.Parse(e.URL); err == nil {
		origin = URL(u)
	}
	return e.Op + " " + origin + ": " + clean(e.Err)
}

func dnsError(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return "lookup: no such host"
	case e.IsTimeout:
		return "lookup: timeout"
	}
	return "lookup: the resolver failed"
}

// certificateError hides the names in a certificate: it is the receiver who chose them.
func certificateError(err error) (text string, known bool) {
	switch e := err.(type) {
	case x509.HostnameError:
		return "x509: the certificate is for another host name", true
	case x509.UnknownAuthorityError:
		return "x509: certificate signed by unknown authority", true
	case x509.CertificateInvalidError:
		if e.Reason == x509.Expired {
			return "x509: certificate has expired or is not yet valid", true
		}
		return "x509: certificate is not valid (reason " + strconv.Itoa(int(e.Reason)) + ")", true
	}
	return "", false
}

// repeating are the packages whose errors quote what they read.
var repeating = []string{"net/http", "net/textproto", "net/url", "net/mail", "mime", "encoding/", "crypto/x509"}

// foreign shows an error of a package that quotes by its type's name.
func foreign(err error) (text string, known bool) {
	of := reflect.TypeOf(err)
	name := of.String()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	for _, pkg := range repeating {
		if strings.HasPrefix(of.PkgPath(), pkg) {
			return "an error of type " + name, true
		}
	}
	return "", false
}
