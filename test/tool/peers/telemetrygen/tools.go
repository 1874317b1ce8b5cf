//go:build tools

// Package telemetrygen pins the Collector's generator of telemetry so that it can be built as a dependency.
package telemetrygen

import _ "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen"
