package cli

import (
	"errors"
	"fmt"

	"postern/proxy/client"
)

// letterFilter selects dead letters; without any of it all of them are meant. A flag that is there and empty is told
// from one that is not: it comes from a script whose variable is not set.
type letterFilter struct {
	Endpoint *string `placeholder:"NAME" help:"Only this endpoint: a configured name or an origin."`
	Status   *int    `placeholder:"CODE" help:"Only those whose last attempt got this status (100 to 999)."`
	Error    *string `placeholder:"CLASS" help:"Only those whose last attempt ended so: timeout, dns, http_503, …"`
	Since    *string `placeholder:"TIME" help:"Only those that died at or after this RFC 3339 time, or this long ago (24h)."`
	Until    *string `placeholder:"TIME" help:"Only those that died before it."`
}

// check refuses what selects nothing, or everything, by mistake.
func (f letterFilter) check() error {
	for _, flag := range []struct {
		name  string
		value *string
	}{{"--endpoint", f.Endpoint}, {"--error", f.Error}, {"--since", f.Since}, {"--until", f.Until}} {
		if flag.value != nil && *flag.value == "" {
			return fmt.Errorf("%s is given, but empty (a variable that is not set?); leave it out to select by the others", flag.name)
		}
	}
	if f.Status != nil && (*f.Status < 100 || *f.Status > 999) {
		return errors.New("--status must be from 100 to 999; select failures without an answer by --error, such as timeout")
	}
	return nil
}

func (f letterFilter) filter() client.LetterFilter {
	return client.LetterFilter{Endpoint: given(f.Endpoint), Status: given(f.Status), Error: given(f.Error), Since: given(f.Since), Until: given(f.Until)}
}

// given is what a flag says; a flag that is not there says nothing.
func given[T any](flag *T) (value T) {
	if flag != nil {
		value = *flag
	}
	return value
}

// bulkFlags select dead letters to do something to them.
type bulkFlags struct {
	letterFilter
	All    bool `help:"All dead letters; needed where nothing else selects."`
	DryRun bool `help:"Only count."`
}

// check wants everything to be asked for by name. Counting everything does no harm.
func (f bulkFlags) check(verb string) error {
	if err := f.letterFilter.check(); err != nil {
		return err
	}
	selects := f.letterFilter != letterFilter{}
	switch {
	case f.All && selects:
		return errors.New("--all selects everything, and other flags select less; leave one out")
	case !f.All && !selects && !f.DryRun:
		return fmt.Errorf("say which dead letters to %s: --endpoint, --status, --error, --since, --until, or --all for every one of them", verb)
	}
	return nil
}
