package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"postern/proxy/client"
)

// adminFlags say where the admin API is.
type adminFlags struct {
	Admin     string `placeholder:"ADDR" fromenv:"POSTERN_ADMIN" group:"admin" help:"Admin API of the running Postern: http://HOST:PORT or unix:PATH. Unless given: the address in --config, else http://127.0.0.1:8090."`
	TokenFile string `placeholder:"FILE" fromenv:"POSTERN_ADMIN_TOKEN_FILE" group:"admin" help:"File with the admin API's token, where it asks for one."`
	Config    string `short:"c" placeholder:"FILE" fromenv:"POSTERN_CONFIG" group:"admin" help:"Take address and token file from this configuration file, unless they are given; one that does not tell the address is refused."`
}

// jsonFlag switches from a table to JSON.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print the API's JSON."`
}

// open prepares the client. Without an address it looks where the configuration that was named says; a configuration
// that merely lies in the working directory is not read, since most calls come from elsewhere.
func (f adminFlags) open(s *session) (*client.Admin, error) {
	place := whereabouts{address: f.Admin, tokenFile: f.TokenFile, config: f.Config}
	return connect(s, place, adminFace, client.NewAdmin)
}

func (s *session) agent() string { return "Postern/" + Version }

// printJSON prints the API's answer, indented.
func (s *session) printJSON(raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(raw), "", "  "); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	b.WriteByte('\n')
	_, err := s.out.Write(b.Bytes())
	return err
}

// encode prints v as indented JSON.
func (s *session) encode(v any) error {
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
