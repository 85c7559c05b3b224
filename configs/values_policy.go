package configs

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"postern/proxy/target"
)

// The windows of a limit: shorter ones would cost more than they hold back; longer ones would have to outlive clocks.
const (
	shortestWindow = time.Millisecond
	longestWindow  = 31 * 24 * time.Hour
	mostPerWindow  = 1_000_000
)

func parseLimit(text string) (Limit, error) {
	count, window, ok := strings.Cut(text, "/")
	n, err := strconv.Atoi(count)
	if !ok || err != nil || strconv.Itoa(n) != count {
		return Limit{}, fmt.Errorf(`%s is not a limit; write requests and window, such as "100/1m"`, quote(text))
	}
	if n < 1 || n > mostPerWindow {
		return Limit{}, fmt.Errorf("a limit of %d requests is out of range (1 to %d); to send nothing, pause the endpoint instead", n, mostPerWindow)
	}
	per, err := time.ParseDuration(window)
	if err != nil {
		return Limit{}, fmt.Errorf(`%s is not a limit: its window needs a number and a unit, such as "100/1m"`, quote(text))
	}
	if per < shortestWindow || per > longestWindow {
		return Limit{}, fmt.Errorf("the window %s is out of range; write one from %s to %s", quote(window), formatDuration(shortestWindow), formatDuration(longestWindow))
	}
	return Limit{n, per}, nil
}

func parseStatus(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 300 || n > 599 {
		return 0, fmt.Errorf("%s is not the status of a failure; write a number from 300 to 599", quote(text))
	}
	return n, nil
}

func parseBurst(text string) (int, error) {
	n, err := intBetween(0, mostPerWindow)(text)
	if err == nil && n == 0 {
		return 0, errors.New("a burst of 0 lets nothing through; write 1 for evenly spaced requests")
	}
	return n, err
}

// pattern is an RE2 expression; an empty text is none.
func pattern(p **regexp.Regexp) kind {
	parse := func(text string) (*regexp.Regexp, error) {
		if text == "" {
			return nil, nil
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("not a valid RE2 expression (%v); put it in single quotes, in which YAML keeps backslashes", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		return re, nil
	}
	return patternKind{scalar[*regexp.Regexp]{p, parse, func(re *regexp.Regexp) any { return patternText(re) }}}
}

// patternKind compares expressions by their text.
type patternKind struct{ scalar[*regexp.Regexp] }

func (k patternKind) raw() any { return patternText(*k.p) }

func patternText(re *regexp.Regexp) string {
	if re == nil {
		return ""
	}
	return re.String()
}

// address is an absolute URL. Its query and user info are not shown.
func address(p *target.Target) kind {
	return scalar[target.Target]{p, parseURL, func(t target.Target) any { return showTarget(t) }}
}

func parseURL(text string) (target.Target, error) {
	if text != strings.TrimSpace(text) {
		return target.Target{}, errors.New("the URL begins or ends with a blank or line break; remove it")
	}
	return target.Parse(text)
}

func parseMatch(text string) (target.Target, error) {
	t, err := parseURL(text)
	switch {
	case err != nil:
		return t, err
	case t.HasUser:
		return t, errors.New("a prefix has no user info; remove it")
	case strings.Contains(t.PathQuery, "?"):
		return t, errors.New("a prefix is compared without the query; end it before the question mark")
	}
	return t, nil
}

// showTarget hides what must not be seen: user info goes, a query becomes ?….
func showTarget(t target.Target) string {
	if t.Host == "" {
		return ""
	}
	if strings.Contains(t.PathQuery, "?") {
		return t.WithoutQuery() + "?…"
	}
	return t.WithoutQuery()
}

const allowForms = "write a network such as 10.1.0.0/16, an address, a host name, or *.partner.example"

// parseAllow reads one entry of targets.allow.
func parseAllow(text string) (string, error) {
	text = strings.ToLower(text)
	if strings.Contains(text, "://") {
		return "", errors.New("a URL is not a host; leave out scheme, port and path: " + allowForms)
	}
	if strings.Contains(text, "/") {
		return parseNetwork(text)
	}
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil && ip.Zone() == "" {
		return ip.Unmap().String(), nil
	}
	host := strings.TrimPrefix(text, "*.")
	if text == "*" {
		return "", errors.New("* alone would allow everything; write targets.allow_private: true if that is meant")
	}
	if t, err := target.Parse("http://" + host + "/"); err != nil || t.Hostname() != host || t.HasUser {
		return "", errors.New("not a host; " + allowForms)
	}
	return text, nil
}

func parseNetwork(text string) (string, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return "", errors.New("not a network; " + allowForms)
	}
	if network.Masked() != network {
		return "", fmt.Errorf("%s has bits set beyond its mask; write %s", quote(text), network.Masked())
	}
	return network.String(), nil
}

// parseServerName reads tls.server_name: a host name, or an address, which is looked for in the certificate alone (RFC
// 6066, section 3: there is no SNI for addresses).
func parseServerName(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if ip, err := netip.ParseAddr(text); err == nil && ip.Zone() == "" {
		return text, nil
	}
	if !isHostName(text) {
		return "", fmt.Errorf("%s is not a server name; write a host name such as partner.example, without scheme, port or wildcard; a name with other letters than a to z in its xn-- form", quote(text))
	}
	return text, nil
}

// isHostName tells whether text is a name as certificates have it: labels of letters, digits, hyphens and underscores.
func isHostName(text string) bool {
	if len(text) > 253 {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

func parseQueryKey(text string) (string, error) {
	if text == "" || strings.ContainsAny(text, "=&?# \t\r\n") {
		return "", fmt.Errorf("%s is not a query key; write its name alone, such as cid", quote(text))
	}
	return text, nil
}
