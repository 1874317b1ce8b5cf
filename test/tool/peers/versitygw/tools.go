//go:build tools

// Package versitygw pins the S3 server so that it can be built as a dependency.
package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
