package egress

import (
	"errors"
	"fmt"

	"postern/proxy/retry"
)

// ErrBlocked means that policy does not let this address be reached. Every such error matches it.
var ErrBlocked = errors.New("the target's address is not allowed")

// Errors of building a Client.
var (
	// ErrCA means that the CA file has no certificate in it.
	ErrCA = errors.New("the CA file holds no PEM certificate; give the certificate that signed the receiver's")
	// ErrKeyPair means that only one of the certificate and key files is given.
	ErrKeyPair = errors.New("a client certificate needs both cert_file and key_file")
	// ErrNotFile means that a CA, certificate or key file is something else, such as a pipe.
	ErrNotFile = errors.New("it is no ordinary file, and might never end; use an ordinary one")
	// ErrProxy means that outbound_proxy is not an address of a proxy.
	ErrProxy = errors.New("the outbound proxy must be an http:// or https:// URL with a host, such as http://proxy.internal:3128")
)

// BlockedError says of what class the refused address is. It repeats neither address nor name.
type BlockedError struct{ Class Class }

// Error says what the operator can do about it.
func (e *BlockedError) Error() string {
	switch e.Class {
	case LinkLocal, Metadata, Multicast, Broadcast, Unspecified, Invalid:
		return fmt.Sprintf("%v: it is a %v address", ErrBlocked, e.Class)
	}
	return fmt.Sprintf("%v: it is a %v address; let it through with targets.allow, or name the endpoint in the configuration",
		ErrBlocked, e.Class)
}

// Is makes every BlockedError match ErrBlocked.
func (e *BlockedError) Is(err error) bool { return err == ErrBlocked }

// RetryClass is the contract's word for it.
func (e *BlockedError) RetryClass() retry.Class { return retry.BlockedAddress }

// PhaseError is a failure to get a connection, with the phase in which it happened. Its text is the phase alone: what
// lies under it may name addresses.
type PhaseError struct {
	Phase retry.Class // dns, connect or tls
	Err   error
}

// Error names the phase.
func (e *PhaseError) Error() string { return "no connection: " + string(e.Phase) }

// Unwrap gives the cause.
func (e *PhaseError) Unwrap() error { return e.Err }

// RetryClass is the phase.
func (e *PhaseError) RetryClass() retry.Class { return e.Phase }
