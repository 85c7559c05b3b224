package telemetry

import (
	"bytes"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Every page of these tests is also read by Prometheus' own parser.
func init() {
	crossCheck = func(page []byte) error {
		parser := expfmt.NewTextParser(model.LegacyValidation)
		_, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		return err
	}
}
