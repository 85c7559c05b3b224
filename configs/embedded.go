package configs

import _ "embed"

// Starter is a short commented configuration to begin with; Full has every setting with its default. Both load as they
// stand.
var (
	//go:embed starter.yaml
	Starter []byte
	//go:embed full.yaml
	Full []byte
)
