package app

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"

	"postern/configs"
	"postern/proxy/server"
)

// listen opens a listener, or says which address it was and how to use another.
func listen(what, key string, l configs.Listener) (net.Listener, error) {
	network, address := l.Split()
	ln, err := server.Listen(network, address, cmp.Or(l.SocketMode, server.DefaultSocketMode))
	if errors.Is(err, server.ErrInUse) {
		return nil, fmt.Errorf("the %s address %s: %w. Stop that one, or set `%s` (%s) to another address",
			what, l.Address, err, key, flagOf(key))
	}
	if network == "unix" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listening on the %s address %s (`%s`): its directory is not there. Make it for the user that Postern runs as, or choose another path", what, l.Address, key)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on the %s address %s (`%s`): %w", what, l.Address, key, err)
	}
	return ln, nil
}

func flagOf(key string) string {
	switch key {
	case "listen":
		return "or --listen"
	case "admin.listen":
		return "or --admin-listen"
	}
	return "in the configuration file"
}

// addressOf is how a listener is shown: what was configured for a socket, what the system chose for a port.
func addressOf(ln net.Listener) string {
	if ln == nil {
		return ""
	}
	if ln.Addr().Network() == "unix" {
		return "unix:" + ln.Addr().String()
	}
	return ln.Addr().String()
}
